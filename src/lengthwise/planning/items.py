"""Items: the sequences, copies or chunks that one epoch batches, and the groups that no batch mixes.

A giant is an item that alone costs more than the budget. It would widen the noise, stretch the buckets, and leave a
short batch on either side. So the order is fitted without giants. They are dropped or stand alone, but for two cases
that `kinds_of` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import length_multiple, longest_of, one_length, round_up
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import costs_alone
from lengthwise.choices.cut import OversizeError, oversize_of
from lengthwise.choices.order import pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.lengths import fingerprint
from lengthwise.lengths.arrays import name_checked, view_lengths
from lengthwise.planning.times import Copies, copies_of, draw_copies, read_times


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

    def select(self, chosen: NDArray[Any]) -> Items:
        """Returns the lengths and groups of the items that are `chosen`, by a mask [n] or by their numbers."""
        return Items(self.lengths[chosen], None if self.groups is None else self.groups[chosen])

    @contextmanager
    def naming_sequences(self) -> Iterator[None]:
        """Gives an `OversizeError` the number that its sequence has in the data set, in place of a chunk or a copy."""
        try:
            yield
        except OversizeError as error:
            if self.spans is not None:
                raise renumber_oversize(error, self.spans) from None
            if self.times is not None:
                raise renumber_oversize(error, copies_of(self.times)) from None
            raise


class Source(NamedTuple):
    """The data set of a run.

    Attributes:
        array: The lengths, [n] or [n, dims].
        groups: [n], the group of each sequence; None for one group.
        copies: The copies of all epochs; None if each takes every sequence once.
        fingerprint: The fingerprint of the lengths.
        name: The name of lengths and groups, by which results are remembered.
    """

    array: NDArray[np.int64]
    groups: NDArray[np.int64] | None
    copies: Copies | None
    fingerprint: str
    name: str

    def items(self, batching: Batching, epoch: int) -> Items:
        """Returns the items of an epoch."""
        return take_items(self.array, batching, None if self.copies is None else self.copies.take(epoch), self.groups)


def read_source(
    lengths: ArrayLike, *, groups: ArrayLike | None = None, times: ArrayLike | None = None, seed: int = 0
) -> Source:
    """Checks the data set of a run: lengths, groups, and how often epochs take each sequence."""
    array = view_lengths(lengths)
    copies = None if times is None else draw_copies(read_times(times, len(array)), array, Key(seed=seed).seed)
    numbers = None if groups is None else read_groups(groups, len(array))
    name = name_checked(array)
    full_name = name if numbers is None else f"{name} in groups {fingerprint(numbers + 1)}"
    return Source(array, numbers, copies, name, full_name)


class Kinds(NamedTuple):
    """Masks [n] of the items, by their cost. Items that are neither ordered nor alone are dropped.

    Attributes:
        ordered: Put in order.
        alone: Giants that stand in a batch of their own.
        regular: Ordered, and no giants: the order is fitted to these.
        giant_count: The number of giants. If it is 0, nobody reads the masks: all items are ordered and regular.
    """

    ordered: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    regular: NDArray[np.bool_]
    giant_count: int


def kinds_of(lengths: NDArray[np.int64], batching: Batching) -> Kinds:
    """Returns the kinds of items, by their lengths [n, dims] and by the `oversize` policy of the cut.

    With "alone", a giant stays among the ordered in two cases. If batches are padded to the edges of buckets, the last
    bucket is for giants. In random steps a giant fills one batch of a step.
    """
    # Each mask is one byte, broadcast to all items: most plans need no more.
    everything, nothing = (np.broadcast_to(np.array(value), len(lengths)) for value in (True, False))
    policy = oversize_of(batching.cut)
    # A user's cut may have policies that only the cut knows.
    if policy not in ("alone", "drop") or not len(lengths):
        return Kinds(everything, nothing, everything, 0)
    if isinstance(batching.cut, Rows):
        over = lengths.max(axis=1) > batching.cut.capacity
    else:
        needed = round_up(lengths, length_multiple(batching.cut))
        over = costs_alone(batching.cost, needed) > batching.cut.max_cost(batching.cost, longest_of(lengths))
    if policy == "alone" and (pads_to_edge(batching.order) or batching.takes_random_steps):
        return Kinds(everything, nothing, ~over, int(over.sum()))
    return Kinds(~over, over if policy == "alone" else nothing, ~over, int(over.sum()))


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


def renumber_oversize(error: OversizeError, numbers: NDArray[np.int64]) -> OversizeError:
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
