"""Packed rows of one fixed shape, with the positions and segments that keep the sequences of a row apart.

R rows have a capacity of C frames. For sequences of 3 and 2 frames in a row of 8:

    row          5 5 5 7 7 _ _ _
    positions    0 1 2 0 1 0 1 2      the place in the sequence; padding counts like a sequence
    segments     1 1 1 2 2 0 0 0      the number of the sequence in the row; 0 on padding
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from lengthwise import _samples, checks
from lengthwise.jax.collate import check_column, fill, is_whole, take_columns

_UNBOUNDED = 2**62  # more frames than any array has


class PackedRows(NamedTuple):
    """A batch of packed rows, a pytree of one fixed shape.

    Attributes:
        fields: The fields, in the structure of a sample: arrays [T, ...] became one array [R, C, ...].
        positions: int32 [R, C], from 0 within each sequence.
        segments: int32 [R, C], 1, 2, 3, ... within each row; 0 on padding.
    """

    fields: Any
    positions: NDArray[np.int32]
    segments: NDArray[np.int32]


def block_mask(segments: Any, *, causal: bool = True) -> Any:
    """Returns the attention mask of packed rows: each place attends to its own sequence. Works within `jax.jit`.

    Args:
        segments: [R, C], of NumPy or JAX; equal within a sequence, and different for each sequence of a row.
        causal: If True, hides later places.

    Returns:
        bool [R, 1, C, C], for `jax.nn.dot_product_attention`: True where the place of axis 2 attends to the place of
        axis 3. Padding attends to padding, so that no row of scores is empty.

    >>> block_mask(np.array([[1, 1, 2]]))[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    same = segments[:, :, None] == segments[:, None, :]
    places = np.arange(segments.shape[1])
    return (same & (places[:, None] >= places) if causal else same)[:, None]


@dataclass(frozen=True, slots=True)
class RowCollate(_samples.RowOptions):
    """Packs the samples of a batch into `rows` rows of `capacity` frames, as planned by `lw.Rows`.

    A batch lists its samples row by row. A row ends before the first sample that does not fit, or after `max_in_row`
    samples. So the rows are those of the plan. Missing rows are padding: all batches have one shape, and `jax.jit`
    compiles once.

    All arrays of a sample have the same length; scalars are refused. Two mistakes are usual: attention or a loss
    crosses sequences. Give attention the `block_mask` of the segments. For the loss, the first label of each sequence
    and those of padding become -100 if samples are dicts. Compare each place with the next label, and skip -100. If
    samples are not dicts, skip every place whose segment differs from that of the next place.

    Args:
        capacity: The frames of a row.
        rows: The rows of every batch, as in `lw.Rows`, or more, to share them out over devices.
        value: The value of padding, as in `PadCollate`: one number, or a dict of numbers by name. Padding and first
            places of the labels hold -100, or their number in the dict. Labels of floats or of bool are like other
            arrays, unless the dict names them.
        labels: The name of the labels in a dict, at any depth. If no sample has them, they are copied from `inputs`.
            None for no labels.
        inputs: The field that labels are copied from.
        next_token: True if the loss shifts the labels: the first label of each sequence becomes -100. False if labels
            belong to their own place, as in tagging, or if the data set has shifted them.
        max_in_row: The most sequences in a row: give the same as to `lw.Rows`.

    Raises:
        TypeError: `labels` or `inputs` are not names. When called: `samples` is one sample, not a list.
        ValueError: When called: the samples differ in structure, or have a scalar. Or a sample is longer than a row or
            has no frames, its arrays differ in length, or the samples fill more than `rows`.

    >>> tokens = [{"input_ids": [5, 6, 7]}, {"input_ids": [8, 9]}, {"input_ids": [3, 4]}]
    >>> batch = RowCollate(6, rows=2)(tokens)
    >>> batch.fields["input_ids"].tolist()
    [[5, 6, 7, 8, 9, 0], [3, 4, 0, 0, 0, 0]]
    >>> batch.fields["labels"].tolist()
    [[-100, 6, 7, -100, 9, -100], [-100, 4, -100, -100, -100, -100]]
    >>> batch.positions.tolist(), batch.segments.tolist()
    ([[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3]], [[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0]])
    """

    _: KW_ONLY
    rows: int = 1

    def __post_init__(self) -> None:
        _samples.RowOptions.__post_init__(self)
        checks.keep_whole(self, "rows", remedy="Give the rows of a batch, as in lw.Rows.")

    def __call__(self, samples: Sequence[Any]) -> PackedRows:
        """Makes one batch of at least one sample."""
        checks.check_samples(samples)
        return self.lay(samples, rows=self.rows, like=samples[0])

    def lay(self, samples: Sequence[Any], *, rows: int, like: Any) -> PackedRows:
        """Makes a batch of `rows` rows. Without samples, it has the structure of the sample `like`."""
        arrays = [_as_arrays(sample) for sample in (samples if len(samples) else [like])]
        # If only some samples have labels, no inputs are copied: the copies would teach prompts, which the labels of
        # the other samples hide.
        if all(_samples.copies_labels(sample, self.labels, self.inputs) for sample in arrays):
            arrays = [{**sample, self.labels: sample[self.inputs]} for sample in arrays]
        columns, names, tree = take_columns(arrays)
        _samples.check_names(self.value, names)
        for column in columns:
            check_column(column, _UNBOUNDED)
            if column[0].ndim == 0:
                remedy = "Leave numbers out, or repeat each for all frames of its sequence."
                raise checks.value_error("samples", "of arrays alone", column[0].item(), remedy)
        sizes = [np.array([len(array) for array in column], np.int64) for column in columns]
        lengths = self.check_lengths(dict(zip(names, sizes, strict=True)))[: len(samples)]
        rows, places, (positions, segments, _) = self.find_places(lengths, rows)
        leaves = [self._lay(column, places, rows, name) for column, name in zip(columns, names, strict=True)]
        return PackedRows(jax.tree.unflatten(tree, leaves), positions.astype(np.int32), segments.astype(np.int32))

    def _lay(self, column: list[NDArray[Any]], places: NDArray[np.int64], rows: int, name: str) -> NDArray[Any]:
        """Copies one array of all samples to their `places` in all rows: [R, C, ...]."""
        flat = fill(column, self.value, name, (rows * self.capacity, *column[0].shape[1:]), self.labels)
        hidden = flat[:1].copy()  # only padding so far
        for place, array in zip(places.tolist(), column, strict=False):
            flat[place : place + len(array)] = array
        is_integer = is_whole(np.result_type(*{array.dtype for array in column}))
        if self.hides_first(name, is_integer=is_integer):
            flat[places] = hidden
        return flat.reshape(rows, self.capacity, *column[0].shape[1:])


def _as_arrays(sample: Any) -> Any:
    """Returns the sample with lists of numbers as arrays: JAX would treat a list as a part of the tree."""
    if isinstance(sample, Mapping):
        return {key: _as_arrays(part) for key, part in sample.items()}
    if isinstance(sample, list) and all(np.ndim(part) == 0 for part in sample):
        return np.asarray(sample)
    if not isinstance(sample, list | tuple):
        return sample
    parts = [_as_arrays(part) for part in sample]
    return type(sample)(*parts) if hasattr(sample, "_fields") else type(sample)(parts)
