"""Packed rows of one fixed shape: what a network needs to take each sequence as if it stood alone.

R rows of a capacity of C frames; sequences of T frames of the shape `...`

    row          5 5 5 7 7 _ _ _      sequences of 3 and 2 in 8 places
    positions    0 1 2 0 1 0 1 2      within each sequence; what is left of the row counts for itself
    segments     1 1 1 2 2 0 0 0      which sequence of the row; 0 on padding
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from lengthwise import _samples, checks
from lengthwise.choices.rows import (
    check_in_row,
    find_places,
    number_frames,
    row_offsets,
)
from lengthwise.jax.collate import (
    check_column,
    fill,
    is_whole,
    take_columns,
)

_UNBOUNDED = 2**62  # frames: more than any array has


class PackedRows(NamedTuple):
    """A batch of packed rows, a pytree of one fixed shape.

    Attributes:
        fields: In the structure of a sample: an array [T, ...] became one [R, C, ...].
        positions: int32 [R, C], from 0 within each sequence.
        segments: int32 [R, C], 1, 2, 3, ... within each row; 0 on padding.
    """

    fields: Any
    positions: NDArray[np.int32]
    segments: NDArray[np.int32]


def block_mask(segments: Any, *, causal: bool = True) -> Any:
    """Returns where each place of a row may look: at places of its own segment alone. It runs inside of `jax.jit` too.

    Args:
        segments: [R, C], of NumPy or JAX; equal within a sequence, and different for each sequence of a row.
        causal: Whether later places are hidden.

    Returns:
        bool [R, 1, C, C], as `jax.nn.dot_product_attention` takes it: True where place 2 (the last axis) is seen from
        place 1. Padding sees padding, so that no row of scores is empty.

    >>> block_mask(np.array([[1, 1, 2]]))[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    same = segments[:, :, None] == segments[:, None, :]
    places = np.arange(segments.shape[1])
    return (same & (places[:, None] >= places) if causal else same)[:, None]


@dataclass(frozen=True, slots=True)
class RowCollate:
    """Packs the samples of a batch into `rows` rows of `capacity` frames, as the plan of `lw.Rows` says.

    A batch comes row by row, and each row is filled until the next sample does not fit. So the samples alone say where
    rows end, and the rows are those of the plan; with `max_in_row`, a row also ends once it holds so many. Rows that a
    batch lacks are padding: all batches have one shape, and `jax.jit` compiles once.

    All arrays of a sample have the same length; a scalar has no place in a row. What goes wrong in use: a network that
    attends across sequences, or a loss across them. Give attention the `block_mask` of the segments. For the loss, the
    first of the `labels` of each sequence is -100, if samples are dicts, and so is padding: compare each place with the
    next label, and leave out -100. If samples are no dicts, leave out every place whose segment is not the next one's.

    Args:
        capacity: Frames of a row.
        rows: Rows of every batch, as in `lw.Rows`. There may be more, to share them out over devices.
        value: What padding holds, as in `PadCollate`: one number, or numbers by name. The labels hold -100, unless
            their name is given another number; the first ones hold it too. Labels of floats or of bool are as other
            arrays, unless their name is given a number.
        labels: The field of a dict that is labels, also in a dict within the sample. If no sample has it, `inputs` is
            copied. None for no labels.
        inputs: The field that labels are copied from.
        next_token: Whether labels are shifted in the loss, so that the first of each sequence is -100. False for
            labels of each place itself, as in tagging, and for those that the data set has shifted already.
        max_in_row: The most sequences in a row, as in `lw.Rows`. Without it, rows of a cut that has it hold more.

    Raises:
        TypeError: `labels` or `inputs` are no names. When called: one sample in place of a list.
        ValueError: When called: samples that are not built alike, a sample that is longer than a row or has no frames,
            arrays of different lengths, a scalar, or more rows than `rows`.

    >>> tokens = [{"input_ids": [5, 6, 7]}, {"input_ids": [8, 9]}, {"input_ids": [3, 4]}]
    >>> batch = RowCollate(6, rows=2)(tokens)
    >>> batch.fields["input_ids"].tolist()
    [[5, 6, 7, 8, 9, 0], [3, 4, 0, 0, 0, 0]]
    >>> batch.fields["labels"].tolist()
    [[-100, 6, 7, -100, 9, -100], [-100, 4, -100, -100, -100, -100]]
    >>> batch.positions.tolist(), batch.segments.tolist()
    ([[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3]], [[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0]])
    """

    capacity: int
    _: KW_ONLY
    rows: int = 1
    value: float | Mapping[str, float] = dataclasses.field(default=0.0, hash=False)
    labels: str | None = "labels"
    inputs: str = "input_ids"
    next_token: bool = True
    max_in_row: int | None = None

    def __post_init__(self) -> None:
        remedy = "Give the tokens of a row, as in lw.Rows."
        checks.keep(self, capacity=checks.check_whole("capacity", self.capacity, minimum=1, remedy=remedy))
        remedy = "Give the rows of a batch, as in lw.Rows."
        checks.keep(self, rows=checks.check_whole("rows", self.rows, minimum=1, remedy=remedy))
        checks.keep(self, value=_samples.check_value(self.value), max_in_row=check_in_row(self.max_in_row))
        checks.check_flag("next_token", self.next_token)
        _samples.check_names_of_labels(self.labels, self.inputs)

    def __call__(self, samples: Sequence[Any]) -> PackedRows:
        """Makes one batch of at least one sample."""
        checks.check_samples(samples)
        return self.lay(samples, rows=self.rows, like=samples[0])

    def lay(self, samples: Sequence[Any], *, rows: int, like: Any) -> PackedRows:
        """Makes a batch of so many `rows`, which may hold no sample: it is built of arrays `like` those of a sample."""
        arrays = [_as_arrays(sample) for sample in (samples if len(samples) else [like])]
        # If some have labels and others do not, none is copied: a copy would learn a prompt that the others hide.
        if all(_samples.copies_labels(sample, self.labels, self.inputs) for sample in arrays):
            arrays = [{**sample, self.labels: sample[self.inputs]} for sample in arrays]
        columns, names, tree = take_columns(arrays)
        _samples.check_names(self.value, names)
        lengths = self._lengths(columns)[: len(samples)]
        starts = row_offsets(lengths, np.array([0, len(lengths)]), self.capacity, self.max_in_row)
        if len(starts) - 1 > rows:
            remedy = "Give the capacity and the rows of the plan, and samples in its order."
            raise checks.value_error("samples", f"within {rows} rows of {self.capacity}", len(starts) - 1, remedy)
        places = find_places(lengths, starts, self.capacity)
        laid = [self._lay(column, places, rows, name) for column, name in zip(columns, names, strict=True)]
        positions, segments, _ = number_frames(lengths, places, starts, rows, self.capacity)
        return PackedRows(jax.tree.unflatten(tree, laid), positions.astype(np.int32), segments.astype(np.int32))

    def _lengths(self, columns: list[list[NDArray[Any]]]) -> NDArray[np.int64]:
        """Returns the length of each sample, which all its arrays have."""
        for column in columns:
            check_column(column, _UNBOUNDED)
            if column[0].ndim == 0:
                remedy = "Leave numbers out, or repeat each for all frames of its sequence."
                raise checks.value_error("samples", "of arrays alone", column[0].item(), remedy)
        lengths = [np.array([len(array) for array in column], np.int64) for column in columns]
        if not lengths:
            raise checks.value_error("samples", "of at least one array", 0, "Give samples with tokens, for example.")
        first = lengths[0]
        if (wrong := (first < 1) | (first > self.capacity)).any():
            rule, remedy = f"1 to {self.capacity} frames long", "Plan with the lengths of these samples."
            raise checks.value_error("samples", rule, int(first[wrong][0]), remedy, at=f"sample {wrong.argmax()}")
        for own in lengths[1:]:
            if (wrong := own != first).any():
                rule, remedy = f"{first[wrong][0]} long as its first array", "Give one array for each collate function."
                raise checks.value_error("samples", rule, int(own[wrong][0]), remedy, at=f"sample {wrong.argmax()}")
        return first

    def _lay(self, column: list[NDArray[Any]], places: NDArray[np.int64], rows: int, name: str) -> NDArray[Any]:
        """Lays one array of all samples to their `places` in all rows: [R, C, ...]."""
        flat = fill(column, self.value, name, (rows * self.capacity, *column[0].shape[1:]), self.labels)
        # Labels of floats are targets, of which no loss leaves -100 out: they hold it only where it is asked for.
        named = isinstance(self.value, Mapping) and name in self.value
        whole = is_whole(np.result_type(*{array.dtype for array in column}))
        hides_first = self.next_token and _samples.is_name_of(name, self.labels) and (named or whole)
        hidden = flat[:1].copy()  # nothing but padding yet
        for place, array in zip(places.tolist(), column, strict=False):
            flat[place : place + len(array)] = array
        if hides_first:
            flat[places] = hidden
        return flat.reshape(rows, self.capacity, *column[0].shape[1:])


def _as_arrays(sample: Any) -> Any:
    """Returns the sample, with each list of numbers as an array: JAX takes a list for a part of the tree."""
    if isinstance(sample, Mapping):
        return {key: _as_arrays(part) for key, part in sample.items()}
    if isinstance(sample, list) and all(np.ndim(part) == 0 for part in sample):
        return np.asarray(sample)
    if not isinstance(sample, list | tuple):
        return sample
    parts = [_as_arrays(part) for part in sample]
    return type(sample)(*parts) if hasattr(sample, "_fields") else type(sample)(parts)
