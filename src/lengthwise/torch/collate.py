"""Collate functions: the samples of a batch padded, packed, or laid end to end.

Each takes samples of any structure (`fields` says of what) and gives a batch of the same structure, where

    a sequence [T, ...]   becomes PaddedSequences, PackedSequence or Concatenated
    a number              a tensor [B]
    an object             a list of B objects

B samples; T frames of the shape `...` in each.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from lengthwise import _samples, checks
from lengthwise.choices.arithmetic import check_multiple, fill_up
from lengthwise.torch.fields import Field, Sequences, move, place, put_together, take_apart


class PaddedSequences(NamedTuple):
    """Sequences of different lengths as one rectangle.

    Attributes:
        values: [B, T, ...], T no less than the longest length.
        lengths: int64 [B].
    """

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Makes the mask, bool [B, T]: True on the frames of the sequences, False on padding."""
        # Lengths [3, 1] in 4 columns: [[1, 1, 1, 0], [1, 0, 0, 0]].
        return torch.arange(self.values.shape[1], device=self.values.device) < self.lengths[:, None]

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> PaddedSequences:
        """The same on `device`, each tensor moved as by `Tensor.to`."""
        return move(self, device, non_blocking=non_blocking)


class Concatenated(NamedTuple):
    """Sequences end to end, without padding.

    Attributes:
        values: [sum of T, ...]; sequence b is values[offsets[b]:offsets[b + 1]].
        offsets: int32 [B + 1], rising from 0 to the sum of T: what varlen attention calls cu_seqlens.
        max_length: The longest T.
    """

    values: Tensor
    offsets: Tensor
    max_length: int

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> Concatenated:
        """The same on `device`, each tensor moved as by `Tensor.to`."""
        return move(self, device, non_blocking=non_blocking)

    def to_nested(self) -> Tensor:
        """The same memory as a jagged NestedTensor [B, T of each, ...]."""
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)


@dataclass(frozen=True, kw_only=True, slots=True)
class PadCollate:
    """Pads every sequence field to the longest of the batch or a multiple, or the batch to one of a few fixed shapes.

    With `shapes`, the batch takes the shape that holds it with the least sum of padded lengths. Missing rows are filled
    with what padding holds, length 0 and mask False, and with 0 in the fields of numbers; a list of objects keeps its
    length.

    In a dict, `labels` or `label` of whole numbers hold -100 in padding and in missing rows: `cross_entropy` of PyTorch
    and the models of Hugging Face leave -100 out. What goes wrong in use: a loss that counts padding all the same.
    Labels without a name, as in a tuple, hold 0, which is a class: give `value=(0, -100)`. Labels of floats or of bool
    hold 0 too: weigh that loss by the mask or the lengths.

    Time comes first: a waveform [1, T], as torchaudio loads it, counts as one frame; `squeeze(0)` makes it [T]. Any
    tensor with an axis is a sequence, also one whose length never varies: a vector for each sample is padded with the
    others unless it has a padded length of its own.

    Args:
        shapes: [k, 2] of (rows, padded length), as `lw.batch_shapes` gives them, for all sequence fields. Or [k, 1 +
            fields], with a padded length for each field in the order of the sample, as it gives them for sequences of
            several lengths: source and target, or the frames and the labels of a CTC model.
        value: What padding holds. One number is for all sequence fields but labels, which hold -100 if they are whole
            numbers, and `attention_mask`, which holds 0. By name, as `{"input_ids": 50_256, "labels": -1}`, it is for
            these fields; others hold 0, -100 and 0 as without. A sequence, such as (0, -100), has one for each sequence
            field in the order of the sample.
        multiple_of: Every sequence field is padded to a multiple of this length. Give the same number to the cut, as
            `Budget(20_000, multiple_of=8)`, so that the plan counts what is computed. Shapes say it already.
        count_multiple_of: Missing rows are filled up to a multiple of this, unless the batch holds fewer samples than
            it. Give the same number to the cut, as `Budget(20_000, count_multiple_of=8)`, so that the budget counts
            the filled rows. Shapes say it already.

    Raises:
        TypeError: `shapes` or `value` of another kind.
        ValueError: `shapes` of another form. When called: samples that are not alike, a batch that fits no shape, a
            value for a field that there is not, or one that the dtype of a field does not hold, such as -100 in labels
            of uint8.

    >>> collate = PadCollate(shapes=[(2, 4), (1, 8)])
    >>> frames, label = collate([(torch.ones(3), 7)])
    >>> frames.values.tolist(), frames.lengths.tolist(), label.tolist()
    ([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [3, 0], [7, 0])
    >>> frames, label = collate([(torch.ones(5), 7)])
    >>> frames.values.shape
    torch.Size([1, 8])
    >>> texts = [{"input_ids": [5, 6, 7], "labels": [1, 0, 1]}, {"input_ids": [8], "labels": [1]}]
    >>> batch = PadCollate(value={"input_ids": 9})(texts)
    >>> batch["input_ids"].values.tolist(), batch["labels"].values.tolist()
    ([[5, 6, 7], [8, 9, 9]], [[1, 0, 1], [1, -100, -100]])
    """

    shapes: Sequence[Sequence[int]] | NDArray[np.int64] | None = None
    value: float | Sequence[float] | Mapping[str, float] = dataclasses.field(default=0.0, hash=False)
    multiple_of: int = 1
    count_multiple_of: int = 1

    def __post_init__(self) -> None:
        for name in ("multiple_of", "count_multiple_of"):
            multiple = check_multiple(name, getattr(self, name))
            checks.keep(self, **{name: multiple})
            if self.shapes is not None and multiple > 1:
                raise checks.value_error(name, "left out beside shapes", multiple, f"Take shapes of a cut with {name}.")
        shapes = None if self.shapes is None else _check_shapes(self.shapes)
        checks.keep(self, shapes=shapes, value=check_value(self.value))

    def __call__(self, samples: Sequence[Any]) -> Any:
        names, fields = take_apart(samples)
        sequences = [field for field in fields if isinstance(field, Sequences)]
        # A batch of 2 samples (frames [T, 3], label []) has 1 sequence field, and the shape (2, longest T).
        rows, *lengths = self._shape(len(samples), sequences)
        values = pad_values(self.value, fields, names)
        padded = map(_pad, sequences, [rows] * len(sequences), lengths, values)
        filled = [self._fill(field, name, rows) for field, name in zip(fields, names, strict=True)]
        return put_together(samples[0], filled, padded)

    def _fill(self, field: Field, name: str, rows: int) -> Field:
        """Fills a field of numbers for the rows that the batch lacks; returns other fields as they are."""
        # Sequences are padded later, and an object that nobody gave cannot be made up.
        if not isinstance(field, Tensor) or len(field) == rows:
            return field
        value = _samples.padding_value(
            self.value if isinstance(self.value, Mapping) else 0.0, name, ignores=leaves_out(field.dtype)
        )
        check_held(value, field.dtype, name)
        return torch.cat([field, field.new_full((rows - len(field),), value)])

    def _shape(self, count: int, sequences: list[Sequences]) -> tuple[int, ...]:
        """Rows of the batch, and the padded length of each sequence field."""
        needed = (count, *(max(field.lengths) for field in sequences))
        if self.shapes is None:
            rows = int(fill_up(np.array([count]), self.count_multiple_of)[0])
            return (rows, *(-(-longest // self.multiple_of) * self.multiple_of for longest in needed[1:]))
        for rows, *lengths in self.shapes:  # sorted: the first that holds the batch pads least
            shape = (rows, *_for_each("shapes", lengths, sequences))
            if all(least <= size for least, size in zip(needed, shape, strict=True)):
                return shape
        rule = f"within (rows, padded length) {' or '.join(map(str, self.shapes)) or 'of nothing'}"
        remedy = (
            "Take lw.batch_shapes(lengths, batching), those of the sampler, and lengths in the order of the dataset."
        )
        raise checks.value_error("samples", rule, needed, remedy)


@dataclass(frozen=True, slots=True)
class PackCollate:
    """Makes every sequence field a `PackedSequence`: recurrent networks run over it without computing padding.

    The samples need not be sorted: `pad_packed_sequence` restores their order.

    Raises:
        ValueError: When called: samples that are not alike, or a sequence of no frames, which PyTorch cannot pack.

    >>> packed = PackCollate()([torch.ones(1, 4), torch.ones(3, 4)])
    >>> output, _ = torch.nn.LSTM(4, 8)(packed)
    >>> torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=True)[1].tolist()
    [1, 3]
    """

    def __call__(self, samples: Sequence[Any]) -> Any:
        _, fields = take_apart(samples)
        return put_together(samples[0], fields, [_pack(field) for field in fields if isinstance(field, Sequences)])


@dataclass(frozen=True, slots=True)
class ConcatCollate:
    """Lays the sequences of every sequence field end to end, for varlen attention and NestedTensor: `Concatenated`.

    Raises:
        ValueError: When called: samples that are not alike, or more frames than int32 offsets count.

    >>> batch = ConcatCollate()([torch.ones(2), torch.zeros(3)])
    >>> batch.values.tolist(), batch.offsets.tolist(), batch.max_length
    ([1.0, 1.0, 0.0, 0.0, 0.0], [0, 2, 5], 3)
    """

    def __call__(self, samples: Sequence[Any]) -> Any:
        _, fields = take_apart(samples)
        joined = [_concatenate(field) for field in fields if isinstance(field, Sequences)]
        return put_together(samples[0], fields, joined)


def _pad(field: Sequences, rows: int, length: int, value: float) -> PaddedSequences:
    check_held(value, field.dtype, field.name)
    # Lengths [3, 1]: the places (0, :3) and (1, :1).
    values = field.lay((rows, length), enumerate(map(slice, field.lengths)), value)
    lengths = np.array(field.lengths + [0] * (rows - len(field.lengths)))
    return PaddedSequences(values, torch.from_numpy(lengths).to(values.device))


def _pack(field: Sequences) -> PackedSequence:
    shortest = min(field.lengths)
    if shortest == 0:
        at = place(field.name, sample=field.lengths.index(0))
        remedy = "Drop the sample, or use PadCollate, which pads it."
        raise checks.value_error("samples", "at least one frame long", shortest, remedy, at=at)
    values, lengths = _pad(field, len(field.entries), max(field.lengths), 0.0)
    return pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)


def _concatenate(field: Sequences) -> Concatenated:
    offsets = [0, *accumulate(field.lengths)]
    if offsets[-1] >= 2**31:
        rule, remedy = "below 2**31 frames in all, which int32 offsets can count", "Plan smaller batches."
        raise checks.value_error("samples", rule, offsets[-1], remedy, at=place(field.name))
    values = field.lay(offsets[-1:], starmap(slice, pairwise(offsets)), 0.0)
    return Concatenated(values, torch.tensor(offsets, dtype=torch.int32, device=values.device), max(field.lengths))


def pad_values(value: Any, fields: list[Field], names: list[str]) -> Sequence[float]:
    """What the padding of each sequence field holds, of a `value` that `check_value` returned.

    Args:
        value: What was asked for.
        fields: All fields.
        names: Of all fields.
    """
    sequences = [field for field in fields if isinstance(field, Sequences)]
    if isinstance(value, tuple):
        return _for_each("value", value, sequences)
    known = [name for field, name in zip(fields, names, strict=True) if not isinstance(field, list)]
    for name in value if isinstance(value, Mapping) else ():
        if name not in known:
            rule = f"by the names of fields that are padded ({', '.join(known)})"
            raise checks.value_error("value", rule, name, "Write the name as the samples have it, or leave it out.")
    return [_samples.padding_value(value, field.name, ignores=leaves_out(field.dtype)) for field in sequences]


def leaves_out(dtype: torch.dtype) -> bool:
    """Whether losses leave labels of this dtype out where they are -100: no floats, and bool does not hold it."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def _for_each(name: str, given: Sequence[Any], sequences: list[Sequences]) -> Sequence[Any]:
    """Returns one for each sequence field; one that is given alone is for all."""
    if len(given) == 1:
        return list(given) * len(sequences)
    if not sequences:
        remedy = "A sample has a tensor of shape [length, ...] for each sequence."
        raise checks.value_error(name, "one number alone for samples without a sequence field", tuple(given), remedy)
    if len(given) != len(sequences):
        fields = ", ".join(field.name for field in sequences)
        rule = f"one for all sequence fields, or one for each of {len(sequences)} ({fields})"
        raise checks.value_error(name, rule, tuple(given), "Give them in the order of the sample.")
    return given


def check_held(value: float, dtype: torch.dtype, name: str) -> None:
    remedy = "Give one value for each sequence field, in the order of the sample, or values by name, as a dict."
    if dtype.is_floating_point or dtype.is_complex:
        # Every float dtype holds infinities, by which scores are masked; float16 does not hold 1e5.
        if math.isfinite(value) and abs(value) > torch.finfo(dtype).max:
            raise checks.value_error("value", f"a number that {dtype} holds", value, remedy, at=place(name))
        return
    low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not (float(value).is_integer() and low <= value <= high):
        raise checks.value_error("value", f"a whole number that {dtype} holds", value, remedy, at=place(name))


def _check_shapes(shapes: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes as whole numbers, by the sum of the padded lengths, these themselves, and then the rows."""
    remedy = "Give what lw.batch_shapes gives: [(16, 100), (8, 200)], for example."
    try:
        rows = [list(shape) for shape in shapes]
    except TypeError as error:  # numbers, or arrays of one number without an axis
        raise checks.type_error("shapes", "rows of whole numbers", shapes, remedy) from error
    whole = [tuple(checks.check_whole("shapes", size, minimum=1, remedy=remedy) for size in row) for row in rows]
    for shape in whole:
        if len(shape) < 2 or len(shape) != len(whole[0]):
            raise checks.value_error("shapes", "rows of one width, at least 2", shape, remedy)
    # Of the shapes (8, 200), (16, 100) and (8, 100): (8, 100), (16, 100), (8, 200).
    return tuple(sorted(whole, key=lambda shape: (sum(shape[1:]), shape[1:], shape[0])))


def check_value(value: Any) -> float | tuple[float, ...] | dict[str, float]:
    if isinstance(value, Mapping):
        return {str(name): _check_number(each) for name, each in value.items()}
    return tuple(map(_check_number, value)) if isinstance(value, list | tuple) else _check_number(value)


def _check_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        remedy = "Give what padding holds, such as 0.0: one number, one for each sequence field, or numbers by name."
        raise checks.type_error("value", "a number", value, remedy)
    return float(value)
