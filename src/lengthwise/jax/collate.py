"""A collate function that pads samples to few fixed shapes.

    sample   a pytree of arrays [t, ...] and scalars, such as (inputs, labels)
    shapes   [k, 1 + dims]   rows B and padded lengths T, as from `lw.batch_shapes`; dims is 1 for most data

Missing rows are filled with padding, and masked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _samples, checks
from lengthwise.choices.buckets import find_bucket

_SHAPES_REMEDY = (
    "Give lw.batch_shapes(lengths, batching) with the plan's arguments, and lengths in the dataset's order."
)
_ORDER_REMEDY = "Plan the lengths of this dataset, in its order; give other arrays their length in pad_to."
_PAD_TO_REMEDY = "Raise the number in pad_to, or leave an array that is as long as its sequence out of pad_to."


class PaddedSequences(NamedTuple):
    """One array of the samples, padded for a batch: a pytree of fixed shape.

    Attributes:
        values: [B, T, ...]. Padding holds 0, or the `value` of the collate function.
        lengths: int32 [B]: the lengths of the sequences; 0 in a filled row.
        mask: bool [B, T]: True on the frames of the sequences, False on padding.
    """

    values: NDArray[Any]
    lengths: NDArray[np.int32]
    mask: NDArray[np.bool_]


class PadCollate:
    """Pads samples to the shortest shape that holds the longest of them, and fills the missing rows.

    Filled rows are masked. If the samples are more than the rows of that shape, this is an error, because a longer
    shape would add padding.

    It is a function of a list of samples, for any loader. It returns the structure of a sample, with a
    `PaddedSequences` for each array and an array [B] for each scalar. Two mistakes are usual: the loss counts the
    filled rows, whose lengths are 0; or labels vary in length, and JAX compiles again. So give the length of such
    arrays in `pad_to`.

    In a dict, `labels` or `label` of whole numbers hold -100 in padding and in filled rows, as in `RowCollate`;
    unsigned labels become signed. JAX looks up a class -100 without an error: use `jnp.maximum(labels, 0)` for the
    look-up, and count 0 where `labels` are -100.

    Args:
        shapes: [k, 2], rows and padded length. You may round the rows up, to share them out over devices. For sequences
            of several lengths: [k, 1 + dims]. Then `dims` arrays of a sample take the padded lengths, in the order
            of `jax.tree.leaves`; all others must be in `pad_to`.
        pad_to: The padded length of other arrays, by name: `{"labels": 24}`, or `{"1": 24}` for the second part of a
            tuple. All arrays that are not named take the padded length of the shape.
        value: The value of padding: one number for all arrays but labels of whole numbers, which hold -100, and
            `attention_mask`, which holds 0. Or a dict of numbers by name, as `{"input_ids": 50_256, "labels": -1}`.

    Raises:
        TypeError: `shapes`, `pad_to` or `value` has a wrong type.
        ValueError: `shapes` are not rows of one width, or `pad_to` is below 1.

    >>> collate = PadCollate([[2, 3], [1, 6]])
    >>> inputs, speaker = collate([(np.array([5, 7]), 12)])
    >>> inputs.values.tolist(), inputs.lengths.tolist(), speaker.tolist()
    ([[5, 7, 0], [0, 0, 0]], [2, 0], [12, 0])
    """

    def __init__(
        self, shapes: ArrayLike, *, pad_to: Mapping[str, int] | None = None, value: float | Mapping[str, float] = 0.0
    ) -> None:
        self.shapes: NDArray[np.int64] = np.array(_samples.check_shapes(shapes))
        remedy = "Give the longest labels by name, such as {'labels': 24}."
        if not isinstance(pad_to, Mapping | None):
            raise checks.type_error("pad_to", "a dict of lengths by name", pad_to, remedy)
        self.pad_to: dict[str, int] = {
            str(name): checks.check_whole("pad_to", size, minimum=1, remedy=remedy)
            for name, size in (pad_to or {}).items()
        }
        self.value: _samples.Value = _samples.check_value(value)

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Makes one batch of at least one sample.

        Raises:
            ValueError: No shape holds the samples, they differ in structure, or `value` names a missing array or does
                not fit its dtype.
        """
        columns, names, _ = take_columns(samples)
        # Only arrays that are padded to the shape have the length of the samples. Labels in `pad_to` may have another.
        longest = [max(map(len, columns[at])) for at in self._measured(columns, names)]
        if not longest:
            rule, remedy = "a dict that leaves out an array", "An array that is left out is padded to the shape."
            raise checks.value_error("pad_to", rule, self.pad_to, remedy)
        if self.shapes.shape[1] == 2:
            longest = [max(longest)]
        rows, *padded = self.shapes_of(np.array([len(samples)]), np.array([longest]))[0].tolist()
        return self.pad(samples, rows=rows, padded_length=padded)

    def shapes_of(self, counts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the shapes of batches, by their numbers of sequences and longest lengths: [batches, 1 + dims].

        Args:
            counts: [batches], the numbers of sequences.
            lengths: [batches] or [batches, dims], the longest length in each batch.

        Raises:
            ValueError: No shape holds a batch.
        """
        # Padded lengths [100, 200]: a longest sequence of 100 takes the first shape, one of 101 the second.
        longest = lengths.reshape(len(counts), -1)
        at = find_bucket(longest, self.shapes[:, 1:])
        if (is_beyond := at == len(self.shapes)).any():
            rule = f"padded to at least the longest sequence, {_show(longest[is_beyond].max(axis=0))}"
            raise checks.value_error("shapes", rule, self.shapes[-1].tolist(), _SHAPES_REMEDY)
        shapes = self.shapes[at]
        if (is_over := counts > shapes[:, 0]).any():
            first = int(is_over.argmax())
            rule = f"of at least {counts[first]} rows where sequences are {_show(longest[first])} long"
            raise checks.value_error("shapes", rule, shapes[first].tolist(), _SHAPES_REMEDY)
        return shapes

    def pad(self, samples: Sequence[Any], *, rows: int, padded_length: int | Sequence[int], like: Any = None) -> Any:
        """Makes a batch from at most `rows` samples. Without samples, it has the structure of the sample `like`."""
        examples = samples if len(samples) or like is None else [like]
        columns, names, tree = take_columns(examples)
        _samples.check_names(self.value, names)
        sizes = [self.pad_to.get(name, 0) for name in names]
        measured = self._measured(columns, names)
        padded = np.atleast_1d(np.asarray(padded_length, np.int64)).tolist()
        for at, length in zip(measured, padded * len(measured) if len(padded) == 1 else padded, strict=True):
            sizes[at] = length
            check_column(columns[at], length, remedy=_ORDER_REMEDY)
        leaves = [
            _pad(column, len(samples), rows, size, self.value, name)
            for column, size, name in zip(columns, sizes, names, strict=True)
        ]
        return jax.tree.unflatten(tree, leaves)

    def _measured(self, columns: list[list[NDArray[Any]]], names: list[str]) -> list[int]:
        """Returns the numbers of the leaves that are padded to the shape: all arrays that are not in `pad_to`."""
        _samples.check_names(self.pad_to, names, argument="pad_to")
        measured = [
            at
            for at, (column, name) in enumerate(zip(columns, names, strict=True))
            if column[0].ndim and name not in self.pad_to
        ]
        dims = self.shapes.shape[1] - 1
        if dims > 1 and len(measured) != dims:
            rule = f"of {dims} arrays that are padded to the shape"
            raise checks.value_error("samples", rule, len(measured), "Give each other array its length in pad_to.")
        return measured


def take_columns(samples: Sequence[Any]) -> tuple[list[list[NDArray[Any]]], list[str], Any]:
    """Returns the arrays of the samples leaf by leaf, the names of the leaves, and the tree of a sample.

    >>> take_columns([{"text": {"ids": 1, "mask": 2}, "pair": (3, 4)}])[1]
    ['pair.0', 'pair.1', 'text.ids', 'text.mask']
    """
    checks.check_samples(samples)
    try:
        leaves, trees = zip(*(jax.tree.flatten(sample) for sample in samples), strict=True)
    except (RecursionError, SystemError) as error:  # the latter from the C++ of JAX
        raise _samples.nested_error(samples[0]) from error
    for number, tree in enumerate(trees):
        if tree != trees[0]:
            remedy = "Give every sample the same keys and parts."
            raise checks.value_error("samples", f"built as {trees[0]}", tree, remedy, at=f"sample {number}")
    # Two samples (inputs, label) give the columns [inputs, inputs] and [label, label].
    columns = [[np.asarray(leaf) for leaf in column] for column in zip(*leaves, strict=True)]
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(samples[0])[0]]
    return columns, [".".join(map(_name_key, path)) for path in paths], trees[0]


def _name_key(key: Any) -> str:
    # A key of a dict, a place in a tuple, or a name in a NamedTuple.
    named = (str(getattr(key, part)) for part in ("key", "idx", "name") if hasattr(key, part))
    return next(named, str(key))


def fill(
    column: list[NDArray[Any]], value: _samples.Value, name: str, shape: tuple[int, ...], labels: str | None = None
) -> NDArray[Any]:
    """Returns an array of `shape`, filled with the padding value of a leaf.

    Args:
        column: The arrays of the leaf. The batch has their common dtype: float for integers and floats.
        value: One value for all leaves, or values by name.
        name: The name of the leaf.
        shape: The shape of the array.
        labels: A name of labels in addition to "labels" and "label".
    """
    dtype = np.result_type(*{array.dtype for array in column})
    padding = _samples.padding_value(value, name, is_integer=is_whole(dtype), labels=labels)
    if padding == _samples.IGNORED and dtype.kind == "u":  # -100 needs a sign: uint16 becomes int32
        dtype = np.result_type(dtype, np.int8) if dtype.itemsize < 8 else np.dtype(np.int64)
    limits = (-math.inf, math.inf)
    if dtype.kind in "iub":
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    _samples.check_fits(padding, dtype, limits, is_integer=dtype.kind in "iub", at=_samples.place(name))
    return np.full(shape, padding, dtype)


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Tells if an array of this dtype holds whole numbers; bool does not count."""
    return dtype.kind in "iu"


def _pad(
    column: list[NDArray[Any]], count: int, rows: int, size: int, value: _samples.Value, name: str
) -> PaddedSequences | NDArray[Any]:
    """Pads one leaf of the first `count` samples to `rows` rows."""
    check_column(column, size)
    if column[0].ndim == 0:
        numbers = fill(column, value if isinstance(value, Mapping) else 0.0, name, (rows,))
        numbers[:count] = column[:count]
        return numbers
    lengths = np.zeros(rows, np.int32)
    lengths[:count] = [len(array) for array in column[:count]]
    values = fill(column, value, name, (rows, size, *column[0].shape[1:]))
    # Rows after the last sample stay padding.
    for row, array in zip(values, column[:count], strict=False):
        row[: len(array)] = array
    return PaddedSequences(values, lengths, np.arange(size) < lengths[:, None])


def check_column(column: list[NDArray[Any]], size: int, *, remedy: str = _PAD_TO_REMEDY) -> None:
    # Features [t, 80] and [t, 40] cannot share a batch; [3, 80] and [7, 80] can.
    frame = (column[0].ndim, column[0].shape[1:])
    for number, array in enumerate(column):
        if (array.ndim, array.shape[1:]) != frame:
            rule = f"shaped as {column[0].shape}, except for the first axis, which is padded"
            alike = "Make them alike in the dataset's __getitem__."
            raise checks.value_error("samples", rule, array.shape, alike, at=f"sample {number}")
        if array.ndim and len(array) > size:
            raise checks.value_error("samples", f"at most {size} long", len(array), remedy, at=f"sample {number}")


def _show(lengths: NDArray[np.int64]) -> str:
    return " x ".join(map(str, lengths.tolist()))
