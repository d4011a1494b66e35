"""The pool: max-entropy batches are drawn at random from the sequences that are open.

Sequences come in by length, the shortest first. Those that came in and are in no batch yet are the pool. As soon as the
pool is full, a batch is drawn from it at random, and is padded to the longest that was drawn. How many sequences the
pool holds at each length says how far batches mix:

    the pool holds            batches are
    one batch at a time       sorted
    all sequences             random
    the flow of the limit     as random as their padding allows

The flow of `rate_distortion` is the share of the sequences that should be open between two lengths. Its law lets all
that are open close with the same chance, and so does a random draw. The price beta of a frame is chosen so that what
the draws pad is what was asked for.

    lengths 1 2 3 4 5 6, batches of 2, the pool holds 4      1 2 3 4 -> (3, 1), then 2 4 5 6 -> (4, 5), (2, 6)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact, _kernels
from lengthwise._random import Key
from lengthwise.choices.columns import KEPT, keep_last
from lengthwise.choices.parts import sort_by_size
from lengthwise.choices.rate_distortion import Levels, group_levels, least_flows, spread_out
from lengthwise.choices.warp import BatchSizes, Curve, find_root

_LEVELS = 2048  # lengths told apart when a pool is fitted
_LOOKED_AT = 256  # levels of which it is asked how much shorter than they are what is drawn there is


class _Admitted(NamedTuple):
    """What `draw_batches` takes, but for its random words.

    Attributes:
        sequences: [n], in the order in which they come in.
        values, ends, opened, fits, most: [levels], as the kernel describes them; `values` are its `sizes`.
        largest: How many sequences the pool may hold.
    """

    sequences: NDArray[np.int64]
    values: NDArray[np.int64]
    ends: NDArray[np.int64]
    opened: NDArray[np.float64]
    fits: NDArray[np.int64]
    most: NDArray[np.int64]
    largest: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """How much is open at each length, and how many sequences fill a batch that is padded to it.

    Attributes:
        open_share: The share of all sequences that should be open beyond a length.
        batch_sizes: Maps padded lengths [k] to how many sequences such a batch holds, [k].
    """

    open_share: Curve
    batch_sizes: BatchSizes
    _admit: Callable[[NDArray[np.float64]], _Admitted] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Trials draw from the same few lengths again and again.
        object.__setattr__(self, "_admit", keep_last(self._admit_anew))

    def draw(self, sizes: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        """Draws the numbers of `sizes` [n], batch after batch: [n]."""
        sequences, *admitted, room = self._admit(sizes)
        if len(sizes) <= KEPT:  # the next draw finds them in this order
            sequences = sequences.copy()
        words = key.words(len(sizes) + 1).view(np.int64)
        _kernels.draw_batches(sequences, *admitted, words, np.empty(room, np.int64))
        return sequences

    def _admit_anew(self, sizes: NDArray[np.float64]) -> _Admitted:
        """All that does not depend on chance."""
        sequences, values, ends = _by_length(sizes)
        most = np.clip(self.batch_sizes(values), 1, len(sizes)).astype(np.int64)  # of no length, endlessly many fit
        opened = self.open_share(values) * len(sizes)
        # At least so many are drawn from that the next sequence would no longer fit into the batch.
        fits = np.minimum(most, np.append(most[1:], most[-1]))
        # Before a level comes in, the pool is not full by the level before it.
        room = np.diff(ends, prepend=0) + np.append(0.0, np.maximum(fits, opened + most)[:-1])
        largest = int(min(room.max() + 1, len(sizes)))
        return _Admitted(sequences, values.astype(np.int64), ends, opened, fits, most, largest)


def fit_pool(sizes: NDArray[np.float64], padding: float, *, batch_sizes: BatchSizes, share: float = 1.0) -> Pool:
    """The pool whose batches pad by a share of `padding`, found on the histogram of `sizes` [n], without a trial plan.

    Padding falls as beta rises, so beta is found between bounds, and rounded to four digits. A padding that even
    random batching does not reach gives (nearly) random batching.

    Args:
        sizes: [n], the lengths.
        padding: The share of the computed frames.
        batch_sizes: As in `Pool`.
        share: The share of the sequences that are batched together: 1/8 where eight ranks each batch a random portion.
    """
    levels = group_levels(sizes, _LEVELS)
    levels = levels._replace(total=max(1.0, share * levels.total))
    if len(levels.sizes) < 2:  # one length: whatever the order, nothing is padded
        return Pool(open_share=Curve(lengths=np.array([0.0, 1.0]), heights=np.ones(2)), batch_sizes=batch_sizes)
    spread = float(levels.sizes[-1] - levels.sizes[0])
    most = np.clip(batch_sizes(levels.sizes), 1.0, levels.total)
    padding_at = _paddings(np.concatenate([[levels.total], levels.sizes, levels.masses, most]))

    def excess(logarithm: float) -> float:
        return padding_at(logarithm) - padding

    # At the lower bound a frame costs nothing, and all wait; at the upper one none does. Beta spans many decades, so
    # its logarithm is what is halved.
    root = find_root(excess, _exact.log(1e-4 / spread), _exact.log(1e4 * len(levels.sizes) / spread))
    flows = np.append(least_flows(levels, float(f"{_exact.exp(root):.3e}")), 0.0)
    # Rounded to 2**-40 since exp differed between platforms in the last bits: plans of before are to stay as they are.
    return Pool(
        open_share=Curve(lengths=levels.sizes, heights=np.round(flows * 2.0**40) / 2.0**40), batch_sizes=batch_sizes
    )


def _by_length(sizes: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Sorts `sizes` [n]: the numbers by size, [n]; the distinct sizes, [levels]; and where each ends, [levels]."""
    sequences = sort_by_size(None, sizes)
    rising = sizes[sequences]
    ends = np.append(np.flatnonzero(rising[1:] != rising[:-1]) + 1, len(sizes))
    return sequences, rising[ends - 1].astype(np.float64, copy=False), ends


def _paddings_anew(numbers: NDArray[np.float64]) -> Callable[[float], float]:
    """The padding share of batches from a pool, as a function of the logarithm of beta.

    Each share is computed once.

    Args:
        numbers: [1 + 3 levels]. First the total of the levels; then their sizes; then their masses; then how many
            sequences a batch holds at each level.
    """
    total, (sizes, masses, most) = float(numbers[0]), numbers[1:].reshape(3, -1)
    levels = Levels(sizes, masses, total)
    counts = masses * total
    came, data = np.cumsum(counts), _exact.dot(sizes, counts)
    # What is drawn is shorter than the level it is drawn at. By how much is asked at some levels, for those near them.
    every = np.arange(len(sizes))
    few = len(sizes) <= _LOOKED_AT
    looked_at = every if few else np.append(spread_out(sizes, masses, _LOOKED_AT), len(sizes) - 1)
    near = every if few else np.searchsorted((looked_at[1:] + looked_at[:-1]) / 2.0, every)

    @cache
    def padding_at(logarithm: float) -> float:
        flows = least_flows(levels, _exact.exp(logarithm))
        # On average over the levels to which it fills: (b/2) (1 + (nF/b)^2) are open where nF is less than a batch b.
        batches = total * flows / most[:-1]
        opened = np.where(batches < 1.0, (1.0 + batches * batches) / 2.0, batches) * most[:-1] - 0.5
        opened = np.minimum(np.maximum(opened, 0.0), came[:-1])
        closed = np.diff(np.maximum.accumulate(came - np.append(opened, 0.0)), prepend=0.0)
        stay = np.minimum(1.0, opened / (np.append(0.0, opened[:-1]) + counts[:-1]))
        shorter = np.empty(len(looked_at))
        _kernels.shorter_in_pool(sizes, counts, opened, stay, most, looked_at, shorter)
        return 1.0 - data / _exact.dot(closed, sizes - shorter[near])

    return padding_at


# Trials fit one padding after the other to the same lengths. The search for each begins at the same bounds.
_paddings = keep_last(_paddings_anew)
