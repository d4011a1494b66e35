"""Tail: fills a last step that is not full, or leaves it out, so that all ranks take the same number of batches.

    batches   14 of them, for steps of 4
    split     the 2 batches of most sequences are halved: 16 batches
    repeat    the 2 cheapest are taken twice: 16 places
    drop      2 batches, drawn at random, take no part: 12 places

Each portion is filled by itself, to as many batches as the largest portion needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.cost import Cost
from lengthwise.planning.batches import Batches, join, pad


def complete_steps(
    portions: list[Batches],
    places: int,
    *,
    tail: str,
    cost: Cost,
    keys: Sequence[Key],
    multiple: int = 1,
) -> tuple[Batches, NDArray[np.int64]]:
    """Brings all portions to the same number of batches, a multiple of the `places` that each has in a step.

    Args:
        portions: The list is emptied, so that each is let go of as soon as it is split.
        keys: One for each portion, to draw what is dropped.
        multiple: Up to a multiple of how many rows batches are filled.

    Returns:
        All batches, and the numbers of those that take part, [portions, each]; some may stand twice.
    """
    wanted = count_wanted([len(portion.costs) for portion in portions], places, tail)
    if tail == "split":
        portions = [_split(portions.pop(0), wanted, cost, multiple) for _ in range(len(portions))]
        # Single sequences cannot be split: a portion may still have too few batches, and `_fill` repeats some.
        wanted = count_wanted([len(portion.costs) for portion in portions], places, tail)
    batches = join(portions)
    borders = np.cumsum([0] + [len(portion.costs) for portion in portions])
    numbers = [
        _fill(np.arange(start, stop), batches.costs, wanted, key)
        for start, stop, key in zip(borders[:-1], borders[1:], keys, strict=True)
    ]
    return batches, np.stack(numbers)


def split_largest(offsets: NDArray[np.int64], batches: int) -> NDArray[np.int64]:
    """Halves the batches of most sequences until there are `batches`, or until every batch is one sequence.

    >>> split_largest(np.array([0, 2, 6, 7]), 4)
    array([0, 2, 4, 6, 7])
    """
    return _halve_largest(offsets, batches)[0]


def _halve_largest(offsets: NDArray[np.int64], batches: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The offsets of `split_largest`, and for each batch the number of the one that it was split from."""
    origins = np.arange(len(offsets) - 1)
    # A halving adds one batch for each that it splits, so a large `batches` takes several rounds.
    while (missing := batches - len(origins)) > 0:
        sizes = np.diff(offsets)
        largest = _find_largest(sizes, missing)
        if not len(largest):
            break
        offsets = np.insert(offsets, largest + 1, offsets[largest] + sizes[largest] // 2)
        origins = np.insert(origins, largest + 1, origins[largest])
    return offsets, origins


def _find_largest(sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The numbers of the `most` largest of `sizes`, of equal ones the first; of those of at least 2.

    >>> _find_largest(np.array([4, 1, 7, 4, 4]), 3)
    array([0, 2, 3])
    """
    if most >= np.count_nonzero(sizes > 1):
        return np.flatnonzero(sizes > 1)
    # A few of many: they are found without sorting all.
    least = np.partition(sizes, -most)[-most]
    larger, equal = np.flatnonzero(sizes > least), np.flatnonzero(sizes == least)
    return np.sort(np.concatenate([larger, equal[: most - len(larger)]]))


def count_wanted(batches: Sequence[int], places: int, tail: str) -> int:
    """How many batches each portion must have: whole steps of them, rounded down where the tail drops, else up.

    Args:
        batches: How many each portion has.
        places: Batches that each portion has in a step.
        tail: What becomes of a last step that is not full.
    """
    most = max(batches)
    # 14 batches in steps of 4: 12 where the tail drops, else 16.
    return most // places * places if tail == "drop" else -(-most // places) * places


def _split(batches: Batches, wanted: int, cost: Cost, multiple: int) -> Batches:
    """Halves the batches of most sequences until there are `wanted`; the halves stay in their batch's bucket."""
    if wanted <= len(batches.costs):
        return batches
    # Offsets [0, 2, 6] split to [0, 2, 4, 6] come from the batches [0, 1, 1]. The halves alone are padded anew.
    offsets, origins = _halve_largest(batches.offsets, wanted)
    twice = origins[1:] == origins[:-1]
    halves = np.flatnonzero(np.append(twice, False) | np.append(False, twice))
    sizes = np.diff(offsets)[halves]
    own = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(own[-1]) + np.repeat(offsets[halves] - own[:-1], sizes)
    padded = pad(
        batches.members[places], own, batches.needed[places], cost, capacity=batches.capacity, multiple=multiple
    )
    # One array after another takes the place of the one before.
    batches = batches._replace(offsets=offsets)
    batches = batches._replace(padded_lengths=batches.padded_lengths[origins])
    batches = batches._replace(costs=batches.costs[origins])
    batches.padded_lengths[halves], batches.costs[halves] = padded.padded_lengths, padded.costs
    if batches.bucket_lengths is None:
        return batches
    return batches._replace(bucket_lengths=batches.bucket_lengths[origins])


def _fill(numbers: NDArray[np.int64], costs: NDArray[np.float64], wanted: int, key: Key) -> NDArray[np.int64]:
    """Brings `numbers` to `wanted` batch numbers: leaves some out at random, or repeats the cheapest.

    A portion without batches takes the cheapest of all portions, to keep its rank in step.
    """
    if wanted == len(numbers):
        return numbers
    if wanted < len(numbers):
        return numbers[np.sort(key.permutation(len(numbers))[:wanted])]
    spare = numbers if len(numbers) else np.arange(len(costs))
    cheapest = spare[np.argsort(costs[spare], kind="stable")]
    # 2 more of the batches [7, 8, 9], of which 8 and 7 are the cheapest: [7, 8, 9, 8, 7].
    return np.concatenate([numbers, np.resize(cheapest, wanted - len(numbers))])
