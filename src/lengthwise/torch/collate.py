"""Collate functions: the samples of a batch padded, packed, or laid end to end.

Each takes B samples of any structure (see `fields`) and returns a batch of the same structure:

    a sequence [T, ...]   becomes PaddedSequences, PackedSequence or Concatenated
    a number              becomes a tensor [B]
    an object             becomes a list of B objects
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from lengthwise import _samples, checks
from lengthwise.choices.arithmetic import keep_multiples, raise_counts
from lengthwise.torch.fields import Field, Sequences, map_leaves, move, pad_with, take_apart

_INPUTS = ("input_ids", "input_values", "input_features")  # the names of models of Hugging Face


class PaddedSequences(NamedTuple):
    """Sequences of different lengths as one rectangle.

    Attributes:
        values: [B, T, ...]; T is at least the longest length.
        lengths: int64 [B].

    >>> batch = PadCollate()([torch.ones(3), torch.ones(1)])
    >>> batch.lengths.tolist(), batch.mask.int().tolist()
    ([3, 1], [[1, 1, 1], [1, 0, 0]])
    >>> batch.to("cpu", non_blocking=True).values.shape
    torch.Size([2, 3])
    """

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Makes the mask, bool [B, T]: True on the frames of the sequences, False on padding."""
        # Lengths [3, 1] in 4 columns: [[1, 1, 1, 0], [1, 0, 0, 0]].
        return torch.arange(self.values.shape[1], device=self.values.device) < self.lengths.unsqueeze(1)

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> PaddedSequences:
        """Returns the batch on `device`, each tensor moved as by `Tensor.to`."""
        return move(self, device, non_blocking=non_blocking)


class Concatenated(NamedTuple):
    """Sequences end to end, without padding.

    Attributes:
        values: [sum of T, ...]; sequence b is values[offsets[b]:offsets[b + 1]].
        offsets: int32 [B + 1], rising from 0 to the sum of T: the cu_seqlens of varlen attention.
        max_length: The longest T.

    >>> batch = ConcatCollate()([torch.ones(2), torch.ones(3)]).to("cpu")
    >>> [len(sequence) for sequence in batch.to_nested()]
    [2, 3]
    """

    values: Tensor
    offsets: Tensor
    max_length: int

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> Concatenated:
        """Returns the batch on `device`, each tensor moved as by `Tensor.to`."""
        return move(self, device, non_blocking=non_blocking)

    def to_nested(self) -> Tensor:
        """Returns the values as a jagged NestedTensor [B, T of each, ...], without copying them."""
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)


@dataclass(frozen=True, kw_only=True, slots=True)
class PadCollate:
    """Pads sequences to the longest of the batch, to a multiple of a length, or to one of a few fixed shapes.

    With `shapes`, the batch takes a shape that holds it: the one with the least sum of padded lengths. Missing rows are
    all padding, with length 0 and mask False. Fields of numbers hold 0 there, unless they are labels or named in
    `value`. A list of objects keeps its length.

    A usual mistake is a loss that counts padding. So in a dict, `labels` or `label` of whole numbers hold -100 in
    padding and in missing rows: `cross_entropy` of PyTorch and the models of Hugging Face ignore -100. Unsigned labels
    become int64. Labels without a name, as in a tuple, are padded like other fields, by default with 0, which is a
    class: for (frames, labels) give `value={"1": -100}`. Labels of floats or of bool are padded like other fields too:
    weigh that loss by the mask or the lengths.

    A dict with a sequence `input_ids`, `input_values` or `input_features` becomes what models of Hugging Face take:
    a dict of tensors, with an `attention_mask`, int64 [B, T], unless the samples have one.

    Time comes first: a waveform [1, T], as torchaudio loads it, counts as one frame; `squeeze(0)` makes it [T]. Any
    tensor with an axis is a sequence, even if its length never varies. So a vector is padded like the other fields,
    unless `shapes` has a padded length for it.

    Args:
        shapes: [k, 2] of (rows, padded length) for all sequence fields, as from `lw.batch_shapes`. Or [k, 1 + fields],
            with a padded length for each field, in the order of the sample. `lw.batch_shapes` returns these for
            sequences of several lengths, such as source and target.
        value: The value of padding. One number is for all sequence fields except labels of whole numbers, which hold
            -100, and `attention_mask`, which holds 0. Or a dict of values by name, as `{"input_ids": 50_256, "labels":
            -1}`; other fields keep their default. In a tuple, the names are "0", "1" and so on.
        multiple_of: Every sequence field is padded to a multiple of this length. Give the same number to the cut, as
            `Budget(20_000, multiple_of=8)`, so that the plan counts this padding. Leave it out if you give `shapes`.
        count_multiple_of: The number of rows is filled up to a multiple of this, unless the batch is smaller than that.
            Give the same number to the cut, as `Budget(20_000, count_multiple_of=8)`, so that the budget counts the
            filled rows. Leave it out if you give `shapes`.

    Raises:
        TypeError: `shapes` or `value` has a wrong type.
        ValueError: `shapes` are not rows of one width. When called: the samples differ in structure, or the batch fits
            no shape. Or `value` names a missing field, or does not fit the dtype of a field, as 0.5 in int64.

    >>> collate = PadCollate(shapes=[(2, 4), (1, 8)])
    >>> frames, label = collate([(torch.ones(3), 7)])
    >>> frames.values.tolist(), frames.lengths.tolist(), label.tolist()
    ([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [3, 0], [7, 0])
    >>> frames, label = collate([(torch.ones(5), 7)])
    >>> frames.values.shape
    torch.Size([1, 8])
    >>> texts = [{"input_ids": [5, 6, 7], "labels": [1, 0, 1]}, {"input_ids": [8], "labels": [1]}]
    >>> batch = PadCollate(value={"input_ids": 9})(texts)
    >>> batch["input_ids"].tolist(), batch["labels"].tolist(), batch["attention_mask"].tolist()
    ([[5, 6, 7], [8, 9, 9]], [[1, 0, 1], [1, -100, -100]], [[1, 1, 1], [1, 0, 0]])
    """

    shapes: Sequence[Sequence[int]] | NDArray[np.int64] | None = None
    value: float | Mapping[str, float] = dataclasses.field(default=0.0, hash=False)
    multiple_of: int = 1
    count_multiple_of: int = 1

    def __post_init__(self) -> None:
        keep_multiples(self, "multiple_of", "count_multiple_of")
        for name in ("multiple_of", "count_multiple_of"):
            multiple = getattr(self, name)
            if self.shapes is not None and multiple > 1:
                remedy = f"Make the shapes with a cut that has {name}."
                raise checks.value_error(name, "left out if shapes are given", multiple, remedy)
        shapes = None if self.shapes is None else _samples.check_shapes(self.shapes)
        checks.keep(self, shapes=shapes, value=_samples.check_value(self.value))

    def __call__(self, samples: Sequence[Any]) -> Any:
        structure, names, fields = take_apart(samples)
        if isinstance(self.value, Mapping):
            _samples.check_names(self.value, names_of_padded(names, fields))
        # A batch of 2 samples (frames [T, 3], label []) has 1 sequence field, and the shape (2, longest T).
        rows, *lengths = self._shape(len(samples), [field for field in fields if isinstance(field, Sequences)])
        padded_lengths = iter(lengths)
        batched = [
            _pad(field, rows, next(padded_lengths), pad_with(self.value, name, field.dtype))
            if isinstance(field, Sequences)
            else self._fill(field, name, rows)
            for name, field in zip(names, fields, strict=True)
        ]
        batch = map_leaves(batched.__getitem__, structure)
        return _for_transformers(batch) if isinstance(batch, dict) else batch

    def _fill(self, field: Tensor | list[Any], name: str, rows: int) -> Tensor | list[Any]:
        """Fills a field of numbers up to the rows of the batch; lists of objects keep their length."""
        if isinstance(field, list) or len(field) == rows:
            return field
        value = self.value if isinstance(self.value, Mapping) else 0.0
        padding, dtype = pad_with(value, name, field.dtype)
        return torch.cat([field.to(dtype), field.new_full((rows - len(field),), padding, dtype=dtype)])

    def _shape(self, count: int, sequences: list[Sequences]) -> tuple[int, ...]:
        """Returns the rows of the batch, and the padded length of each sequence field."""
        needed = (count, *(max(field.lengths) for field in sequences))
        if self.shapes is None:
            rows = int(raise_counts(np.asarray(count), self.count_multiple_of))
            return (rows, *(-(-longest // self.multiple_of) * self.multiple_of for longest in needed[1:]))
        for rows, *lengths in self.shapes:  # sorted: the first that holds the batch pads least
            shape = (rows, *(lengths * len(sequences) if len(lengths) == 1 else lengths))
            if len(shape) != len(needed):
                fields = ", ".join(field.name for field in sequences)
                rule = f"of one padded length, or of one for each of {len(sequences)} sequence fields ({fields})"
                raise checks.value_error("shapes", rule, tuple(lengths), "Give them in the order of the sample.")
            if all(least <= size for least, size in zip(needed, shape, strict=True)):
                return shape
        rule = f"within (rows, padded length) {' or '.join(map(str, self.shapes))}"
        remedy = (
            "Take lw.batch_shapes(lengths, batching) with the sampler's arguments, and lengths in the dataset's order."
        )
        raise checks.value_error("samples", rule, needed, remedy)


@dataclass(frozen=True, slots=True)
class PackCollate:
    """Makes every sequence field a `PackedSequence`: recurrent networks run over it without computing padding.

    The samples need not be sorted: `pad_packed_sequence` restores their order.

    Raises:
        ValueError: When called: the samples differ in structure, or a sequence has no frames, which PyTorch cannot
            pack.

    >>> packed = PackCollate()([torch.ones(1, 4), torch.ones(3, 4)])
    >>> output, _ = torch.nn.LSTM(4, 8)(packed)
    >>> torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=True)[1].tolist()
    [1, 3]
    """

    def __call__(self, samples: Sequence[Any]) -> Any:
        return _batch_sequences(_pack, samples)


@dataclass(frozen=True, slots=True)
class ConcatCollate:
    """Makes every sequence field a `Concatenated`: its sequences end to end, for varlen attention and NestedTensor.

    Raises:
        ValueError: When called: the samples differ in structure, or have more frames than int32 offsets can count.

    >>> batch = ConcatCollate()([torch.ones(2), torch.zeros(3)])
    >>> batch.values.tolist(), batch.offsets.tolist(), batch.max_length
    ([1.0, 1.0, 0.0, 0.0, 0.0], [0, 2, 5], 3)
    """

    def __call__(self, samples: Sequence[Any]) -> Any:
        return _batch_sequences(_concatenate, samples)


def names_of_padded(names: list[str], fields: list[Field]) -> list[str]:
    """Returns the names of the fields that are sequences or numbers: objects are not padded."""
    return [name for name, field in zip(names, fields, strict=True) if not isinstance(field, list)]


def _for_transformers(batch: dict[str, Any]) -> dict[str, Any]:
    """Returns a batch with inputs of a Hugging Face model as tensors and a mask; others as they are."""
    inputs = next((batch[name] for name in _INPUTS if isinstance(batch.get(name), PaddedSequences)), None)
    if inputs is None:
        return batch
    tensors = {name: field.values if isinstance(field, PaddedSequences) else field for name, field in batch.items()}
    return {"attention_mask": inputs.mask.long()} | tensors


def _batch_sequences(batch: Callable[[Sequences], Any], samples: Sequence[Any]) -> Any:
    structure, _, fields = take_apart(samples)
    batched = [batch(field) if isinstance(field, Sequences) else field for field in fields]
    return map_leaves(batched.__getitem__, structure)


def _pad(field: Sequences, rows: int, length: int, padding: tuple[float, torch.dtype]) -> PaddedSequences:
    # Lengths [3, 1]: the places (0, :3) and (1, :1).
    values = field.lay((rows, length), enumerate(map(slice, field.lengths)), padding)
    lengths = np.array(field.lengths + [0] * (rows - len(field.lengths)), np.int64)
    return PaddedSequences(values, torch.from_numpy(lengths).to(values.device))


def _pack(field: Sequences) -> PackedSequence:
    shortest = min(field.lengths)
    if shortest == 0:
        at = _samples.place(field.name, sample=field.lengths.index(0))
        remedy = "Drop the sample, or use PadCollate, which pads it."
        raise checks.value_error("samples", "at least one frame long", shortest, remedy, at=at)
    values, lengths = _pad(field, len(field.entries), max(field.lengths), (0.0, field.dtype))
    return pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)


def _concatenate(field: Sequences) -> Concatenated:
    offsets = [0, *accumulate(field.lengths)]
    if offsets[-1] >= 2**31:
        rule, remedy = "below 2**31 frames in all, which int32 offsets can count", "Plan smaller batches."
        raise checks.value_error("samples", rule, offsets[-1], remedy, at=_samples.place(field.name))
    values = field.lay(offsets[-1:], starmap(slice, pairwise(offsets)), (0.0, field.dtype))
    return Concatenated(values, torch.tensor(offsets, dtype=torch.int32, device=values.device), max(field.lengths))
