"""Parts: sequences sorted by their sizes, all at once, or each part of a shuffled order by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random
from lengthwise.choices.columns import small_whole


def sort_by_size(sequences: NDArray[np.int64] | None, sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sorts `sequences` by their sizes, equals in the order they come in; None for all, as they are numbered."""
    least = sizes.min(initial=0)
    # The sort wants keys of at least 0: -sizes and some warps begin below.
    keys = sizes - least if least < 0 else sizes
    return _random.argsort(keys) if sequences is None else _random.sort_by(sequences, keys)


def sort_parts(
    sequences: NDArray[np.int64], sizes: NDArray[np.float64], starts: NDArray[np.int64], *, turned: bool = False
) -> NDArray[np.int64]:
    """Sorts each part of `sequences` [n] by size, equals in the order they come in: [n].

    Args:
        sequences: Each of 0..n-1 once.
        sizes: [n], of sequence 0, 1, ...
        starts: [parts], rising from 0: part p is sequences[starts[p]:starts[p + 1]].
        turned: Whether the second part, the fourth and so on fall, where the others rise.

    >>> sort_parts(np.array([3, 0, 2, 1, 4]), np.array([5.0, 9.0, 2.0, 7.0, 8.0]), np.array([0, 3]), turned=True)
    array([2, 0, 3, 1, 4])
    """
    counts = np.diff(np.append(starts, len(sequences)))
    keys = np.repeat(np.arange(len(starts)), counts)  # the part of each, and below its size as it stands in the part
    own = sizes[sequences]
    whole = small_whole(own, 2**40)
    if whole is not None and (most := int(whole.max(initial=0)) + 1) * len(starts) < 2**40:
        keys *= most
        keys += whole
        del own, whole
        order = _random.argsort(keys)
    else:
        order = np.lexsort((own, keys))
    del keys
    if turned:
        # In a part of the positions 2 and 3: 3 and 2.
        turns = np.repeat(np.arange(len(starts)) % 2 == 1, counts)
        mirrored = np.repeat(2 * starts + counts - 1, counts)[turns] - np.flatnonzero(turns)
        order[turns] = order[mirrored]
    return sequences[order]


def shuffle_parts(sequences: NDArray[np.int64], starts: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Puts each part of `sequences` [n] in random order, in place.

    Args:
        sequences: [n].
        starts: [parts], as of `sort_parts`.
        words: [n] random words.
    """
    _kernels.shuffle_parts(sequences, np.append(starts[1:], len(sequences)), words.view(np.int64))
