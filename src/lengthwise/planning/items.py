"""Items: the sequences, copies or chunks that one epoch batches, and the groups that no batch mixes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import longest_of, one_length
from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import OversizeError
from lengthwise.planning.times import copies_of


class Items(NamedTuple):
    """Sequences, copies of them, or chunks.

    Attributes:
        lengths: [n, dims].
        groups: [n], the group of each item; None for one group.
        spans: [n, 3], the sequence, start and stop of each chunk; None without chunks.
        times: [sequences], how often the epoch takes each sequence; None if it takes each once.
    """

    lengths: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None
    spans: NDArray[np.int64] | None = None
    times: NDArray[np.int64] | None = None

    def name_sequence(self, error: OversizeError) -> OversizeError:
        """Returns the error with the number that the sequence has in the data set."""
        if self.spans is not None:
            return name_sequence(error, self.spans)
        return error if self.times is None else name_sequence(error, copies_of(self.times))


def take_items(
    array: NDArray[np.int64],
    batching: Batching,
    times: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Items:
    """Takes each sequence of `array`, [n] or [n, dims], once or `times` [n] times; whole, or in chunks.

    >>> from lengthwise.choices.chunk import Chunks
    >>> batching = Batching(budget=20, chunks=Chunks(4))
    >>> take_items(np.array([3, 6]), batching, times=np.array([2, 1])).spans.tolist()
    [[0, 0, 3], [0, 0, 3], [1, 0, 4], [1, 4, 6]]
    """
    copies = None if times is None else copies_of(times)
    if copies is not None:
        array, groups = array[copies], None if groups is None else groups[copies]
    if batching.chunks is None:
        return Items(array if array.ndim == 2 else array[:, None], groups, None, times)
    spans = batching.chunks(one_length(array))
    groups = None if groups is None else groups[spans[:, 0]]
    if copies is not None:
        spans[:, 0] = copies[spans[:, 0]]
    return Items((spans[:, 2] - spans[:, 1])[:, None], groups, spans, times)


def read_groups(groups: ArrayLike, count: int) -> NDArray[np.int64]:
    """Numbers the groups of `count` sequences from 0 on: [count].

    Raises:
        TypeError: `groups` are neither whole numbers nor names.
        ValueError: `groups` are not [count].

    >>> read_groups(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    checks.refuse_masked("groups", groups)
    names = np.asarray(groups)
    if names.dtype == object and all(isinstance(name, str) for name in names.flat):  # a column of a table
        names = names.astype(str)
    remedy = "Give the task or the source of each sequence."
    if names.size and names.dtype.kind not in "iubUS":
        raise checks.type_error("groups", "a list of whole numbers or names", groups, remedy)
    if names.shape != (count,):
        raise checks.value_error("groups", f"of shape [{count}]", names.shape, remedy)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def check_countable(lengths: NDArray[np.int64], multiple: int) -> None:
    """Refuses lengths [n, dims] that a `multiple` may pad to 2**53 frames or more: their sums would not be exact."""
    frames = float(len(lengths) * sum(-(-longest // multiple) * multiple for longest in longest_of(lengths).tolist()))
    if frames >= 2.0**53:
        rule = "few and short enough to be padded to less than 2**53 frames"
        remedy = "Check their unit; plan fewer sequences at a time."
        raise checks.value_error("lengths", rule, frames, remedy)


def name_sequence(error: OversizeError, numbers: NDArray[np.int64]) -> OversizeError:
    """Returns the error with the number that the user knows: item k has `numbers[k]`.

    `numbers` are the numbers of sequences, [n], or the spans of chunks, [n, 3]: (sequence, start, stop).
    """
    # A user's cut may raise an error of its own class that takes fewer arguments.
    details: dict[str, Any] = {} if error.mean_cost is None else {"mean_cost": error.mean_cost}
    if error.span is not None:
        details["span"] = error.span
    if error.sequence is not None:
        sequence, *span = np.atleast_1d(numbers[error.sequence]).tolist()
        details |= {"sequence": sequence} | ({"span": tuple(span)} if span else {})
    return type(error)(error.budget, error.cost, error.position, **details)
