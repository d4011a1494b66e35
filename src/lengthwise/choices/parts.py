"""Parts: sequences sorted by their sizes, all at once, or each part of a shuffled order by itself.

A part of some thousand sequences is sorted while it lies in the cache. To sort all of them twice, by size and then by
part, would move every sequence through the whole memory each time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _random
from lengthwise.choices.columns import small_whole

_AT_ONCE = 2**16  # sequences: those of several small parts are sorted by one call
_LAST = np.uint16(2**16 - 1)  # sorts behind every sequence of its row, for it stands behind those of the same size


def sort_by_size(sequences: NDArray[np.int64] | None, sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """`sequences` sorted by their sizes, equals in the order they come in; None for all, as they are numbered."""
    least = sizes.min(initial=0)
    # The sort wants keys of at least 0: -sizes and some warps begin below.
    keys = sizes - least if least < 0 else sizes
    return _random.argsort(keys) if sequences is None else _random.sort_by(sequences, keys)


def sort_parts(
    sequences: NDArray[np.int64], sizes: NDArray[np.float64], starts: NDArray[np.int64], *, turned: bool = False
) -> NDArray[np.int64]:
    """Each part of `sequences` [n] sorted by size, equals in the order they come in: [n].

    Args:
        sequences: Each of 0..n-1 once.
        sizes: [n], of sequence 0, 1, ...
        starts: [parts], rising from 0: part p is sequences[starts[p]:starts[p + 1]].
        turned: Whether the second part, the fourth and so on fall, where the others rise.

    >>> sort_parts(np.array([3, 0, 2, 1, 4]), np.array([5.0, 9.0, 2.0, 7.0, 8.0]), np.array([0, 3]), turned=True)
    array([2, 0, 3, 1, 4])
    """
    whole = small_whole(sizes)
    ends = np.append(starts[1:], len(sequences))
    if whole is None:
        found = _sort_by_part(sequences, sizes, starts)
        return found[_turn_every_other(starts, ends)] if turned else found
    found = np.empty_like(sequences)
    width = int((ends - starts).max(initial=1))
    for first in range(0, len(starts), step := max(1, _AT_ONCE // width)):
        some = slice(first, first + step)
        low, high = int(starts[some][0]), int(ends[some][-1])
        # Parts of [3, 2] sequences from position 6 on, as rows: positions [[6, 7, 8], [9, 10, 11]]. The last one of the
        # second row is in the next part, or in none.
        positions = starts[some, None] + np.arange(width)
        inside = positions < ends[some, None]
        rows = sequences.take(np.minimum(positions, len(sequences) - 1))
        rising = np.argsort(np.where(inside, whole.take(rows), _LAST), axis=1, kind="stable")
        rows = np.take_along_axis(rows, rising, axis=1)
        if turned:
            odd = slice(1 - first % 2, None, 2)
            rows[odd], inside[odd] = rows[odd, ::-1], inside[odd, ::-1]
        found[low:high] = rows[inside]
    return found


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
