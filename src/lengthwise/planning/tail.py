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
from lengthwise.planning.cutter import split_largest


def complete_steps(
    portions: list[Batches], places: int, steps: int, *, keys: Sequence[Key]
) -> tuple[Batches, NDArray[np.int64]]:
    """Brings all portions to the same number of batches: leaves some out at random, or repeats the cheapest.

    Args:
        portions: Each has too many only where the tail drops.
        places: Batches that each has in a step.
        steps: How many there are to be.
        keys: One for each portion, to draw what is dropped.

    Returns:
        All batches, and the numbers of those that take part, [portions, each]; some may stand twice.
    """
    # Single sequences cannot be split: a portion may have too few batches.
    batches = join(portions)
    wanted = steps * places if len(batches.costs) else 0  # an epoch may take nothing
    borders = np.cumsum([0] + [len(portion.costs) for portion in portions])
    numbers = [
        _fill(np.arange(start, stop), batches.costs, wanted, key)
        for start, stop, key in zip(borders[:-1], borders[1:], keys, strict=True)
    ]
    return batches, np.stack(numbers)


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


def split_batches(batches: Batches, places: int, tail: str, cost: Cost, multiple: int) -> Batches:
    """Halves the batches of most sequences until whole steps are full; the halves stay in their batch's bucket."""
    wanted = count_wanted([len(batches.costs)], places, tail)
    if wanted <= len(batches.costs) or tail != "split":
        return batches
    offsets = split_largest(batches.offsets, wanted)
    # Offsets [0, 2, 6] split to [0, 2, 4, 6] come from the batches [0, 1, 1].
    origins = np.searchsorted(batches.offsets, offsets[:-1], side="right") - 1
    padded = pad(batches.members, offsets, batches.needed, cost, capacity=batches.capacity, multiple=multiple)
    lengths = batches.bucket_lengths
    return padded._replace(bucket_lengths=None if lengths is None else lengths[origins])


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
