"""Packed rows as tensors, with the positions, segments and offsets that keep the sequences of a row apart.

R rows have a capacity of C frames. For sequences of 3 and 2 frames in a row of 8:

    row          5 5 5 7 7 _ _ _
    positions    0 1 2 0 1 0 1 2      the place in the sequence; padding counts like a sequence
    segments     1 1 1 2 2 0 0 0      the number of the sequence in the row; 0 on padding
    offsets      0, 3, 5, 8, ...      the first frame of each sequence, rows end to end; padding is a segment too
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lengthwise import _samples, checks
from lengthwise.torch.collate import names_of_padded
from lengthwise.torch.fields import Sequences, is_whole, map_leaves, move, pad_with, take_apart

_MASKS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class PackedRows(NamedTuple):
    """A batch of packed rows.

    Attributes:
        fields: The fields, in the structure of a sample. Sequences [T, ...] became a tensor [R, C, ...]; numbers became
            a tensor [B], and objects a list, of the B samples.
        positions: int64 [R, C], from 0 within each sequence.
        segments: int64 [R, C], 1, 2, 3, ... within each row; 0 on padding.
        offsets: int32 [segments + 1], rising from 0 to R x C: the cu_seqlens of varlen attention, for rows end to end.
            The padding of a row is a segment too.
        max_length: The longest segment: the max_seqlen of varlen attention.

    >>> batch = RowCollate(4)([{"input_ids": [5, 6]}, {"input_ids": [7]}]).to("cpu")
    >>> batch.attention_mask()[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    >>> sorted(batch.for_transformers())
    ['input_ids', 'labels', 'position_ids', 'use_cache']
    """

    fields: Any
    positions: Tensor
    segments: Tensor
    offsets: Tensor
    max_length: int

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> PackedRows:
        """Returns the batch on `device`, each tensor moved as by `Tensor.to`; lists of objects stay as they are."""
        return move(self, device, non_blocking=non_blocking)

    def attention_mask(self, *, causal: bool = True) -> Tensor:
        """Returns the mask for `scaled_dot_product_attention`: bool [R, 1, C, C], block-diagonal.

        The mask takes R x C x C bytes. Varlen and flex attention need no mask: give them `offsets`, or compare
        `segments`.
        """
        return block_mask(self.segments, causal=causal)

    def for_transformers(
        self,
        *,
        flat: bool = False,
        causal: bool | None = None,
        dtype: torch.dtype = torch.float32,
        position_start: int = 0,
    ) -> dict[str, Any]:
        """Returns fields, `position_ids` and `use_cache` for a Hugging Face model: `model(**batch.for_transformers())`.

        Many decoders find the sequences of a row by `position_ids`: Llama, Mistral, GPT-2. Others ignore
        the positions, and then the sequences of a row attend to each other (transformers 5.23).

        - With a cache or an `attention_mask`, no model reads the positions. So `use_cache` is False, and an
          `attention_mask` of the samples is left out.
        - BERT, T5, OPT, Falcon and MPT never read the positions: give `causal`.
        - Bloom and GPT-OSS cannot be packed. Nor can layers with a state (Mamba, Bamba, RWKV). Pad instead.
        - Flash attention reads the positions in batches of one row only: give `flat=True`.

        Args:
            flat: If True, lays all rows end to end, [1, R x C], and adds `cu_seq_lens_q`, `cu_seq_lens_k`,
                `max_length_q` and `max_length_k`.
            causal: If given, adds an `attention_mask` [R, 1, C, C]: 0 where attention may look, the least float
                elsewhere. Give True for decoders, False for encoders. Leave it out for models with a sliding window
                (ModernBERT, some Mistral): this mask would replace their own.
            dtype: The dtype of that mask: give `model.dtype`. With another dtype, PyTorch 2.13 computes wrong outputs
                for float64, and BERT raises for bfloat16.
            position_start: The position of the first token of a sequence: 2 for RoBERTa, XLM-R, CamemBERT and MPNet.

        Raises:
            TypeError: The samples were not dicts, or `dtype` is not a float of 16 bits or more.
            ValueError: An `attention_mask` of the samples hides some of their tokens, or both `flat` and `causal` are
                given.
        """
        if not isinstance(self.fields, Mapping):
            remedy = "Give samples that are dicts: {'input_ids': tokens}."
            raise checks.type_error("fields", "a dict", type(self.fields).__name__, remedy)
        remedy = "Give the first position that the model counts: 2 for RoBERTa."
        start = checks.check_whole("position_start", position_start, minimum=0, remedy=remedy)
        inputs = {**self.fields, "position_ids": self.positions + start, "use_cache": False}
        self._check_seen(inputs.pop("attention_mask", None))
        if dtype not in _MASKS:
            rule = "a type of floats of 16 bits or more"
            raise checks.type_error("dtype", rule, dtype, "Give that of the weights: model.dtype.")
        if causal is not None:
            checks.check_flag("causal", causal)
            if flat:
                remedy = "Flash attention takes no such mask: its sequences are those of cu_seq_lens_q."
                raise checks.value_error("causal", "left out if flat=True", causal, remedy)
            hidden = ~self.attention_mask(causal=causal)
            mask = torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)
            inputs["attention_mask"] = mask
        if not flat:
            return inputs
        ends = {"cu_seq_lens_q": self.offsets, "cu_seq_lens_k": self.offsets}
        longest = {"max_length_q": self.max_length, "max_length_k": self.max_length}
        size = self.positions.shape
        flat_inputs = {
            name: field.flatten(0, 1)[None] if isinstance(field, Tensor) and field.shape[:2] == size else field
            for name, field in inputs.items()
        }
        return {**flat_inputs, **ends, **longest}

    def _check_seen(self, mask: Any) -> None:
        """Refuses samples that were padded before they were packed."""
        if not torch.is_tensor(mask) or mask.shape != self.segments.shape:
            return
        hidden = (self.segments > 0) & (mask == 0)
        if hidden.any():
            remedy = "Pack the tokens without padding: tokenize with padding=False."
            raise checks.value_error("attention_mask", "1 at every token of a sample", 0, remedy)


def block_mask(segments: Tensor, *, causal: bool = True) -> Tensor:
    """Returns the attention mask of packed rows: each place attends to its own sequence.

    Padding attends to padding: a place that attends to nothing would give NaN.

    Args:
        segments: [R, C], equal within a sequence, and different for each sequence of a row.
        causal: If True, hides later places.

    Returns:
        bool [R, 1, C, C], True where the place of axis 2 attends to the place of axis 3.

    >>> block_mask(torch.tensor([[1, 1, 2]]))[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    same = segments[:, :, None] == segments[:, None, :]
    return (same.tril() if causal else same)[:, None]


@dataclass(frozen=True, slots=True)
class RowCollate(_samples.RowOptions):
    """Packs the samples of a batch into rows of `capacity` frames, as planned by `lw.Rows(capacity)`.

    A batch lists its samples row by row. A row ends before the first sample that does not fit, or after `max_in_row`
    samples. So the rows are those of the plan.

    All sequence fields of a sample have the same length. Two mistakes are usual: attention or a loss crosses sequences.
    Give attention the `offsets`, `segments` or `attention_mask()`. For the loss, the first label of each sequence and
    those of padding become -100 if samples are dicts. Models of Hugging Face compare each output with the next label:
    the last output of a sequence would meet the first label of another one.

    Args:
        capacity: The frames of a row.
        rows: The rows of every batch; missing rows are padding. So all tensors [R, C, ...] have one shape. By default
            a batch has as many rows as its samples fill.
        value: The value of padding, as in `PadCollate`: one number for all sequence fields, or a dict of numbers by
            name. Padding and first places of the labels hold -100, or their number in the dict. Labels of floats or of
            bool are like other fields, unless the dict names them. Unsigned labels become int64.
        labels: The name of the labels in a dict, at any depth. If no sample has them, they are copied from `inputs`.
            None for no labels.
        inputs: The field that labels are copied from.
        next_token: True if the model shifts the labels: the first label of each sequence becomes -100. False if labels
            belong to their own place, as in tagging, or if the data set has shifted them.
        max_in_row: The most sequences in a row: give the same as to `lw.Rows`.

    Raises:
        TypeError: `labels` or `inputs` are not names. When called: `samples` is one sample, not a list.
        ValueError: When called: the samples differ in structure, as when only some have labels. Or a sample is longer
            than a row or has no frames, its fields differ in length, or the samples fill more than `rows`.

    >>> batch = RowCollate(6)([{"input_ids": [5, 6, 7]}, {"input_ids": [8, 9]}, {"input_ids": [3, 4]}])
    >>> batch.fields["input_ids"].tolist()
    [[5, 6, 7, 8, 9, 0], [3, 4, 0, 0, 0, 0]]
    >>> batch.fields["labels"].tolist()
    [[-100, 6, 7, -100, 9, -100], [-100, 4, -100, -100, -100, -100]]
    >>> batch.positions.tolist(), batch.offsets.tolist()
    ([[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3]], [0, 3, 5, 6, 8, 12])
    """

    def __call__(self, samples: Sequence[Any]) -> PackedRows:
        structure, names, fields = take_apart(samples)
        if _samples.copies_labels(samples[0], self.labels, self.inputs):  # all samples have the same fields
            # The labels share the entries of the inputs, under another name: they are not converted again.
            inputs, name = fields[names.index(self.inputs)], str(self.labels)
            structure = {**structure, name: len(fields)}
            names.append(name)
            fields.append(dataclasses.replace(inputs, name=name) if isinstance(inputs, Sequences) else inputs)
        _samples.check_names(self.value, names_of_padded(names, fields))
        sequences = {field.name: np.array(field.lengths, np.int64) for field in fields if isinstance(field, Sequences)}
        lengths = self.check_lengths(sequences)
        rows, places, (*numbers, borders) = self.find_places(lengths, self.rows)
        batched: list[Any] = [
            self._lay(field, places, rows) if isinstance(field, Sequences) else field for field in fields
        ]
        frames = (*numbers, borders.astype(np.int32))
        device = next(part.device for part in batched if isinstance(part, Tensor))
        positions, segments, offsets = (torch.from_numpy(array).to(device) for array in frames)
        longest = int(np.diff(borders).max())
        return PackedRows(map_leaves(batched.__getitem__, structure), positions, segments, offsets, longest)

    def _lay(self, field: Sequences, places: NDArray[np.int64], rows: int) -> Tensor:
        """Copies the sequences of one field to their `places` in all rows: [R, C, ...]."""
        padding = pad_with(self.value, field.name, field.dtype, labels=self.labels)
        ends = places + field.lengths
        flat = field.lay((rows * self.capacity,), map(slice, places.tolist(), ends.tolist()), padding)
        if self.hides_first(field.name, is_integer=is_whole(field.dtype)):
            flat[torch.from_numpy(places).to(flat.device)] = padding[0]
        return flat.unflatten(0, (rows, self.capacity))
