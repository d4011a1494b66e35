"""The warp: a sort by warp(length) + standard exponential noise makes a joint law of length and padded length.

A sequence that is open at length s closes there with some chance, the same for all that are open (`rate_distortion`).
Sorting by Lambda(x) + E does that. E is a standard exponential, and Lambda rises from one length to the next by -log of
the share of the open ones that stay open. This code calls Lambda the warp. A strategy is given by it:

    exponential   Lambda(x) = beta x, which is x + exponential noise of mean 1/beta
    truncated     the same, but nothing is drawn beyond the longest sequence
    optimal       from the flows of the limit itself: beta is the price of a frame
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact, _kernels
from lengthwise.choices.columns import distinct
from lengthwise.choices.rate_distortion import Levels, group_levels, least_flows

BatchSizes = Callable[[NDArray[np.float64]], NDArray[np.float64]]

NOISES = ("exponential", "truncated", "optimal")

_LEVELS = 2048  # lengths told apart when a warp is fitted; 512 had 2.3 % where 2 % was asked of long-tailed lengths


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Piecewise linear through the points (`lengths`, `heights`), both [knots], and on beyond; `lengths` rise."""

    lengths: NDArray[np.float64]
    heights: NDArray[np.float64]

    def __call__(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        # Multiplied and added by separate operations: fused ones would differ between platforms in the last bit.
        cell = np.clip(np.searchsorted(self.lengths, lengths, side="right") - 1, 0, len(self.lengths) - 2)
        slopes = np.diff(self.heights) / np.diff(self.lengths)
        return self.heights[cell] + slopes[cell] * (lengths - self.lengths[cell])

    def stretch(self, times: float) -> Curve:
        """The same heights at `times` the lengths."""
        return Curve(lengths=times * self.lengths, heights=self.heights)

    def steepen(self, times: float) -> Curve:
        """`times` the heights at the same lengths."""
        return Curve(lengths=self.lengths, heights=times * self.heights)


def fit_warp(
    sizes: NDArray[np.float64], padding: float, *, noise: str, batch_sizes: BatchSizes, share: float = 1.0
) -> Curve:
    """The warp whose sort pads by a share of `padding`, found on the histogram of `sizes` [n], without a trial plan.

    Padding falls as beta rises, so beta is found between bounds, and rounded to four digits. A padding that even
    random batching does not reach gives (nearly) random batching.

    Args:
        batch_sizes: Maps padded lengths [k] to how many sequences such a batch holds, [k].
        share: The share of the sequences that are sorted together: 1/8 where eight ranks each sort a random portion.
    """
    levels = group_levels(sizes, _LEVELS)
    levels = levels._replace(total=max(1.0, share * levels.total))
    if len(levels.sizes) < 2:  # one length: whatever the order, nothing is padded
        return Curve(lengths=np.array([0.0, 1.0]), heights=np.zeros(2))
    spread = float(levels.sizes[-1] - levels.sizes[0])
    warp_at, least = _law(levels, noise)

    def excess(logarithm: float) -> float:
        return _padding_share(levels, warp_at(_exact.exp(logarithm) + least), batch_sizes) - padding

    # At the lower bound the noise is 10,000 times the range of lengths: random. At the upper one it is far below the
    # gap between two levels: sorted. Beta spans many decades, so its logarithm is what is halved.
    root = find_root(excess, _exact.log(1e-4 / spread), _exact.log(1e4 * len(levels.sizes) / spread))
    return warp_at(float(f"{_exact.exp(root):.3e}") + least)


def scale_warp(sizes: NDArray[np.float64], scale: float, *, noise: str) -> Curve:
    """The warp of noise of mean `scale` (exactly so for exponential noise; the others are cut off at the longest)."""
    levels = group_levels(sizes, _LEVELS)
    if len(levels.sizes) < 2:
        return Curve(lengths=np.array([0.0, 1.0]), heights=np.zeros(2))
    return _law(levels, noise)[0](1.0 / max(scale, 1e-100))  # less would be the same order, and overflow


def find_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    near: float = 1e-5,
    ends: tuple[float, float] = (np.inf, -np.inf),
    most: int = 1_000,
) -> float:
    """Where a falling `function` crosses zero, to `near` in either; the nearer bound where it does not cross.

    What the function is at both bounds may be given as `ends`; then the secant is taken from the first call on. Else
    the function is taken to be flat at both ends: the interval is halved until it is 3 long. If it then still ends at a
    bound, the function is called there: that says whether it crosses at all.

    Args:
        most: At most so many calls are made, and those at the bounds.
    """
    at_low, at_high = ends
    flat = not np.isfinite(at_low - at_high)
    kept = 0
    for _ in range(most):
        if high - low <= near:
            break
        if flat and high - low < 3.0:
            flat = False
            if np.isposinf(at_low) and (at_low := function(low)) <= 0.0:
                return low
            if np.isneginf(at_high) and (at_high := function(high)) >= 0.0:
                return high
        middle = low + (high - low) * (0.5 if flat else at_low / (at_low - at_high))
        value = function(middle)
        if abs(value) < near:
            return middle
        # The Illinois rule: the secant may move one bound alone, in ever smaller steps. So a bound that has stood twice
        # counts with half its value, which draws the next secant towards it.
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2 if kept > 0 else at_high
        else:
            high, at_high, at_low = middle, value, at_low / 2 if kept < 0 else at_low
        kept = 1 if value > 0 else -1
    return (low + high) / 2


def _law(levels: Levels, noise: str) -> tuple[Callable[[float], Curve], float]:
    """The warp for each beta, and the least beta, where batches are as random as this noise makes them.

    That is (nearly) random, but for truncated noise where many sequences share a length.
    """
    sizes = levels.sizes
    if noise == "exponential":
        ends = sizes[[0, -1]]
        return lambda beta: Curve(lengths=ends, heights=beta * (ends - ends[0])), 0.0
    if noise == "optimal":
        return lambda beta: _warp_of_flows(levels, beta), 0.0
    # Noise cut off at the longest nears random batching only as it comes to favour the longest: beta goes below zero.
    return lambda beta: _truncated_warp(sizes, beta), -50.0 / float(sizes[-1] - sizes[0])


def _warp_of_flows(levels: Levels, beta: float) -> Curve:
    """Rises at each length by -log of the share of the open sequences that stay open."""
    flows = least_flows(levels, beta)
    opened = np.append(0.0, flows[:-1]) + levels.masses[:-1]
    rises = _exact.logs(opened / np.maximum(flows, opened * 1e-20))  # none stays open: far enough to sort by
    # Rounded to 2**-30 since exp and log differed between platforms in the last bits: plans of before are to stay.
    heights = np.round(np.append(0.0, np.cumsum(rises)) * 2.0**30) / 2.0**30
    return Curve(lengths=levels.sizes, heights=heights)


def _truncated_warp(sizes: NDArray[np.float64], beta: float) -> Curve:
    """-log of the sum of exp(-beta t) over all t from a length to the longest, each as wide as the gaps about it."""
    parts = _exact.logs(np.gradient(sizes)) - beta * sizes
    heights = -_exact.add_logs(parts[::-1])[::-1]
    return Curve(lengths=sizes, heights=np.round((heights - heights[0]) * 2.0**30) / 2.0**30)


def _padding_share(levels: Levels, warp: Curve, batch_sizes: BatchSizes) -> float:
    """The padding share of batches cut from the sort by warp(length) + a standard exponential."""
    # In the sorted sequence, the batch about the quantile m reaches from m - s/2n to m + s/2n, of s in n sequences.
    heights = warp(levels.sizes)
    mean = _exact.dot(levels.sizes, levels.masses)
    sizes = batch_sizes(np.full(1, mean))
    middles = _positions(float(sizes[0]) / levels.total)
    longest = levels.sizes[np.minimum(np.searchsorted(np.cumsum(levels.masses), middles), len(levels.sizes) - 1)]
    for _ in range(2):  # the size of a batch depends on its longest, which depends on its size
        sizes = np.minimum(batch_sizes(longest), levels.total)
        lows = np.clip(middles - sizes / (2 * levels.total), 0.0, 1.0 - sizes / levels.total)
        highs = np.minimum(lows + sizes / levels.total, 1.0)
        longest = np.empty(len(middles))
        _kernels.longest_of_batches(levels.sizes, levels.masses, heights, lows, highs, sizes, longest)
    # Each batch that was looked at stands for the quantiles nearer to it than to its neighbours.
    borders = np.concatenate([[0.0], (middles[1:] + middles[:-1]) / 2, [1.0]])
    return 1.0 - mean / _exact.dot(longest, np.diff(borders))


def _positions(batch: float) -> NDArray[np.float64]:
    """Quantiles at which to look at batches that hold a share `batch` of the sequences.

    Lengths are sparse at both ends, where one batch spans many of them. So the outermost 48 batches are looked at one
    by one. From there the steps grow, each an eighth of the way from the end, to the 1/192 of the middle.
    """
    ends = batch * (np.arange(48) + 0.5)
    behind, reach = 48 * batch, 1 / 24  # at 1/24, an eighth of the way is 1/192
    if behind < 1 / 192:
        growth = _exact.log(reach / behind)
        steps = 1 + int(growth / _exact.log(1.125))
        ends = np.concatenate([ends, behind * _exact.exps(np.arange(1, steps) * (growth / steps))])
    middles = np.concatenate([(np.arange(192) + 0.5) / 192, ends, 1.0 - ends])
    return distinct(middles[(middles > 0.0) & (middles < 1.0)]).astype(np.float64)
