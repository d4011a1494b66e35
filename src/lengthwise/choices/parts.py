"""Parts: sequences sorted by their sizes, all at once, or each part of a shuffled order by itself.

A part of some thousand sequences is sorted while it lies in the cache. To sort all of them twice, by size and then by
part, would move every sequence through the whole memory each time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random
from lengthwise._compile import cores
from lengthwise.choices.columns import small_whole


def sort_by_size(sequences: NDArray[np.int64] | None, sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """`sequences` sorted by their sizes, equals in the order they come in; None for all, as they are numbered."""
    least = sizes.min(initial=0)
    # The sort wants keys of at least 0: -sizes and some warps begin below.
    keys = sizes - least if least < 0 else sizes
    return _random.argsort(keys) if sequences is None else _random.sort_by(sequences, keys)


def sort_parts(
    sequences: NDArray[np.int64], sizes: NDArray[np.float64], starts: NDArray[np.int64], *, turned: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Each part of `sequences` [n] sorted by size, equals in the order they come in: [n]; and their sizes, if at hand.

    Args:
        sequences: Each of 0..n-1 once. They may be sorted in place.
        sizes: [n], of sequence 0, 1, ...
        starts: [parts], rising from 0: part p is sequences[starts[p]:starts[p + 1]].
        turned: Whether the second part, the fourth and so on fall, where the others rise.

    >>> sort_parts(np.array([3, 0, 2, 1, 4]), np.array([5.0, 9.0, 2.0, 7.0, 8.0]), np.array([0, 3]), turned=True)
    (array([2, 0, 3, 1, 4]), array([2, 5, 7, 9, 8], dtype=uint16))
    """
    ends = np.append(starts[1:], len(sequences))
    # The fewer bytes, the more of the sizes lie in the cache, where they are looked up in random order.
    whole = small_whole(sizes, np.uint16, np.int32)
    if whole is None:
        found = _sort_by_part(sequences, sizes, starts)
        return (found[_turn_every_other(starts, ends)] if turned else found), None
    found: NDArray[Any] = np.empty(len(sequences), np.uint16 if whole.dtype == np.uint16 else np.int64)
    top = int(whole.max(initial=0))
    shares = _share_out(starts, len(sequences))
    calls = [(sequences[own], whole, top, ends[parts] - own.start, turned, found[own]) for parts, own in shares]
    cores.call(_kernels.sort_parts, calls)
    return sequences, found


def shuffle_parts(sequences: NDArray[np.int64], starts: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Puts each part of `sequences` [n] in random order, in place.

    Args:
        sequences: [n].
        starts: [parts], as of `sort_parts`.
        words: [n] random words.
    """
    ends = np.append(starts[1:], len(sequences))
    drawn = words.view(np.int64)
    shares = _share_out(starts, len(sequences))
    calls = [(sequences[own], ends[parts] - own.start, drawn[own]) for parts, own in shares]
    cores.call(_kernels.shuffle_parts, calls)


def _share_out(starts: NDArray[np.int64], count: int) -> list[tuple[slice, slice]]:
    """The parts that each core takes, and where their `count` sequences stand.

    An even number of parts, but on the last, so that every other of its own is turned where every other of all is.
    """
    borders = np.append(starts, count)
    firsts = [2 * (int(np.searchsorted(starts, part.start)) // 2) for part in cores.split(count)]
    shares = [slice(*each) for each in pairwise([*firsts, len(starts)]) if each[0] < each[1]]
    return [(share, slice(int(borders[share.start]), int(borders[share.stop]))) for share in shares]


def _sort_by_part(
    sequences: NDArray[np.int64], sizes: NDArray[np.float64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The same for sizes of any kind: all by size, and then stably by part."""
    part_of = np.empty(len(sequences), np.int64)
    part_of[sequences] = np.searchsorted(starts, np.arange(len(sequences)), side="right") - 1
    return _random.sort_by(sort_by_size(sequences, sizes), part_of)


def _turn_every_other(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions 0..n-1, the second part of them, the fourth and so on back to front.

    >>> _turn_every_other(np.array([0, 2, 4]), np.array([2, 4, 6]))
    array([0, 1, 3, 2, 4, 5])
    """
    part = np.repeat(np.arange(len(starts)), ends - starts)
    positions = np.arange(len(part))
    # In a part of the positions 2 and 3: 3 and 2.
    return np.where(part % 2 == 1, starts[part] + ends[part] - 1 - positions, positions)
