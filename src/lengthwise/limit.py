"""How random batches can be at a given padding: the rate-distortion limit, and the sort that comes near it.

X is the length of a sequence, T >= X the length it is padded to. Any way of making batches is a joint law of the two,
so the mutual information I(X; T), in nats, is at least R(D) = min {I : E[T - X] <= D}; `mixing` is exp(-I), and
exp(-R(D)) its limit. The law that reaches R(D) is p(t | x) ~ q(t) exp(-beta (t - x)) for t >= x (Blahut 1972; Arimoto
1972).

To draw from such a law and sort by T is to sort by Lambda(x) + E, with E a standard exponential and Lambda(t) =
-log of the integral of q(s) exp(-beta s) over s >= t. Here Lambda is called the warp, and it is all that a strategy
needs:

    exponential   q flat without end:        Lambda(x) = beta x, which is x + exponential noise of mean 1/beta
    truncated     q flat up to the longest:  nothing is drawn beyond the longest sequence
    optimal       q from Blahut-Arimoto:     the law of the limit itself

Where many sequences are of one length, as where there are few distinct lengths or long ones were cut off, T is one of
these lengths, and the integral is a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _checks, _kernels
from lengthwise.lengths import as_lengths

BatchSizes = Callable[[NDArray[np.float64]], NDArray[np.float64]]

NOISES = ("exponential", "truncated", "optimal")

_CELLS = 128  # cells in which q is constant, or lengths that T is one of
_LEVELS = 2048  # lengths told apart when a warp is fitted; 512 had 2.3 % where 2 % was asked of long-tailed lengths
_COMMON = 1 / 32  # the share of sequences of one length above which T is one of the lengths, not spread between them


@dataclass(frozen=True, kw_only=True, slots=True)
class Warp:
    """Lambda: piecewise linear, rising, through (`lengths`, `heights`), both [knots]; straight on beyond the ends."""

    lengths: NDArray[np.float64]
    heights: NDArray[np.float64]

    def __call__(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        # Multiplied and added by separate operations: fused ones would differ between platforms in the last bit.
        cell = np.clip(np.searchsorted(self.lengths, lengths, side="right") - 1, 0, len(self.lengths) - 2)
        slopes = np.diff(self.heights) / np.diff(self.lengths)
        return self.heights[cell] + slopes[cell] * (lengths - self.lengths[cell])


def mixing_limit(lengths: ArrayLike, padding: float) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding), by Blahut-Arimoto on at most 128 cells of length.

    Args:
        lengths: [n], in any unit.
        padding: The share of what is computed that is padding, 0 <= padding < 1.

    Returns:
        A number from 0 to 1; 1 where padding every sequence to the longest pads no more. Mixing that was estimated in
        few bins may lie above it, because few bins make little mixing look like more.

    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.4)
    1.0

    References:
        Blahut 1972, "Computation of channel capacity and rate-distortion functions".
    """
    _checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, 0.05 say.")
    checked = as_lengths(lengths)
    if checked.ndim != 1 or not len(checked):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say."
        raise _checks.value_error("lengths", "of shape [n], n at least 1", checked.shape, remedy)
    sizes, masses, _ = _levels(checked.astype(np.float64), _CELLS)
    target = float(sizes @ masses) * padding / (1.0 - padding)
    if target >= sizes[-1] - sizes @ masses:
        return 1.0
    low, high = 1e-9 / sizes[-1], 1e3 / np.diff(sizes).min()  # beta weighs differences of lengths
    information = 0.0
    for _ in range(60):
        beta = float(np.sqrt(low * high))
        distortion, information = _rate_distortion(sizes, masses, beta)
        low, high = (beta, high) if distortion > target else (low, beta)
    return float(np.exp(-information))


def fitted_warp(
    sizes: NDArray[np.float64], padding: float, *, noise: str, batch_sizes: BatchSizes, share: float = 1.0
) -> Warp:
    """The warp whose sort pads by a share of `padding`, found on the histogram of `sizes` [n], without a trial plan.

    Padding falls as beta rises, so beta is found between bounds, and rounded to four digits so that every platform
    finds the same. A share that even random batching does not reach gives (nearly) random batching.

    Args:
        batch_sizes: Maps padded lengths [k] to how many sequences such a batch holds, [k].
        share: Of the sequences, that are sorted together: 1/8 where eight ranks each sort a random portion.
    """
    levels = _levels(sizes, _LEVELS)
    levels = levels._replace(total=max(1.0, share * levels.total))
    if len(levels.sizes) < 2:
        return Warp(lengths=np.array([0.0, 1.0]), heights=np.zeros(2))
    spread = float(levels.sizes[-1] - levels.sizes[0])
    warp_at, least = _law(levels, noise)

    def excess(logarithm: float) -> float:
        return _padding_share(levels, warp_at(float(np.exp(logarithm)) + least), batch_sizes) - padding

    root = _falling_root(excess, np.log(1e-4 / spread), np.log(1e4 * len(levels.sizes) / spread))
    return warp_at(float(f"{np.exp(root):.3e}") + least)


def scaled_warp(sizes: NDArray[np.float64], scale: float, *, noise: str) -> Warp:
    """The warp of noise of mean `scale` (exactly so for exponential noise; the others are cut off at the longest)."""
    levels = _levels(sizes, _LEVELS)
    if len(levels.sizes) < 2:
        return Warp(lengths=np.array([0.0, 1.0]), heights=np.zeros(2))
    return _law(levels, noise)[0](1.0 / max(scale, 1e-100))  # less would be the same order, and overflow


def _falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling `function` crosses zero, to 1e-5 in either; the nearer bound where it does not cross.

    Halves the bounds until they are three apart, for the function is flat at both ends; then the secant between
    them, which halves the value at a bound that has stood twice (the Illinois rule).
    """
    at_low, at_high = np.inf, -np.inf
    kept = 0
    while high - low > 1e-5:
        straight = high - low < 3.0 and np.isfinite(at_low) and np.isfinite(at_high)
        middle = low + (high - low) * (at_low / (at_low - at_high) if straight else 0.5)
        value = function(middle)
        if abs(value) < 1e-5:
            return middle
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2 if kept > 0 else at_high
        else:
            high, at_high, at_low = middle, value, at_low / 2 if kept < 0 else at_low
        kept = 1 if value > 0 else -1
    return (low + high) / 2


class _Levels(NamedTuple):
    """Lengths that stand for `total` sequences: `sizes` [levels], rising, each with its share of them."""

    sizes: NDArray[np.float64]
    masses: NDArray[np.float64]
    total: float


class _Cells(NamedTuple):
    """Lengths in cells (edges[c], edges[c + 1]], the first closed below: `edges` [cells + 1], `masses` [cells]."""

    edges: NDArray[np.float64]
    masses: NDArray[np.float64]


def _levels(sizes: NDArray[np.float64], most: int) -> _Levels:
    """Groups lengths into at most `most` levels.

    Where there are more distinct lengths, half of the levels share out the sequences evenly and half the range: a long
    tail is few sequences and much padding. Each level is the mean of its sequences.
    """
    values, counts = np.unique(sizes, return_counts=True)
    if len(values) <= most:
        return _Levels(values.astype(np.float64), counts / len(sizes), len(sizes))
    starts = _spread_out(values, counts / len(sizes), most)
    tallies = np.add.reduceat(counts, starts)
    return _Levels(np.add.reduceat(values * counts, starts) / tallies, tallies / len(sizes), len(sizes))


def _cells(levels: _Levels) -> _Cells:
    ends = np.append(_spread_out(levels.sizes, levels.masses, _CELLS)[1:] - 1, len(levels.sizes) - 1)
    ends = ends[ends > 0]
    starts = np.concatenate([[0], ends[:-1] + 1])
    return _Cells(levels.sizes[np.append(0, ends)], np.add.reduceat(levels.masses, starts))


def _common_lengths(levels: _Levels) -> _Levels:
    """At most `_CELLS` lengths that T is one of, each the longest of its group."""
    starts = _spread_out(levels.sizes, levels.masses, _CELLS)
    ends = np.append(starts[1:], len(levels.sizes)) - 1
    return _Levels(levels.sizes[ends], np.add.reduceat(levels.masses, starts), levels.total)


def _spread_out(values: NDArray[np.float64], masses: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Where to start each of at most `most` groups of the rising `values`: half by equal mass, half by equal width."""
    reached = np.cumsum(masses) / np.sum(masses)
    by_mass = np.searchsorted(reached, np.arange(1, most // 2) / (most // 2))
    by_width = np.searchsorted(values, np.linspace(values[0], values[-1], most // 2 + 1)[1:-1])
    return np.unique(np.concatenate([[0], by_mass, by_width]))


def _law(levels: _Levels, noise: str) -> tuple[Callable[[float], Warp], float]:
    """The warp for each beta, and the least beta, where batches are as random as this noise makes them.

    That is (nearly) random, but for truncated noise where many sequences share a length.
    """
    if noise == "exponential":
        ends = levels.sizes[[0, -1]]
        return lambda beta: Warp(lengths=ends, heights=beta * (ends - ends[0])), 0.0
    # Noise cut off at the longest nears random batching only as it comes to favour the longest: beta goes below zero.
    below_zero = -50.0 / float(levels.sizes[-1] - levels.sizes[0])
    if levels.masses.max() > _COMMON:
        common = _common_lengths(levels)
        return lambda beta: _warp_of_steps(common, beta, noise), below_zero
    cells = _cells(levels)
    return lambda beta: _warp(cells, beta, noise), below_zero if noise == "truncated" else 0.0


def _warp(cells: _Cells, beta: float, noise: str) -> Warp:
    """T spread evenly within each cell."""
    edges, widths = cells.edges, np.diff(cells.edges)
    densities = np.ones(len(widths)) if noise == "truncated" else _marginal(cells, beta) / widths
    parts = np.log(densities + 1e-300) - beta * edges[:-1] + np.log(_mean_decay(beta, widths) * widths)
    heights = -np.logaddexp.accumulate(parts[::-1])[::-1]
    # The warp is infinite at the longest, where nothing is left to draw; three is far enough for one cell.
    heights = np.append(heights, heights[-1] + 3.0) - heights[0]
    return Warp(lengths=edges, heights=np.round(heights * 2.0**30) / 2.0**30)


def _warp_of_steps(common: _Levels, beta: float, noise: str) -> Warp:
    """T one of the lengths `common.sizes`: finite at the longest, of which there are sequences enough to sort among."""
    sizes = common.sizes
    # Flat in the length, not in the count: np.gradient is the width that each of `sizes` stands for.
    shares = np.gradient(sizes) if noise == "truncated" else _marginal_of_steps(common, beta)
    parts = np.log(shares + 1e-300) - beta * sizes
    heights = -np.logaddexp.accumulate(parts[::-1])[::-1]
    return Warp(lengths=sizes, heights=np.round((heights - heights[0]) * 2.0**30) / 2.0**30)


def _mean_decay(beta: float, widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of exp(-beta t) over t in [0, width]."""
    exponents = beta * widths
    small = np.abs(exponents) < 1e-6
    return np.where(small, 1.0 - exponents / 2, -np.expm1(-exponents) / np.where(small, 1.0, exponents))


def _marginal(cells: _Cells, beta: float) -> NDArray[np.float64]:
    """Blahut-Arimoto for T spread evenly within each cell: the probability of each cell, [cells]."""
    widths = np.diff(cells.edges)
    middles = cells.edges[:-1] + widths / 2
    gaps = cells.edges[None, :-1] - middles[:, None]
    decay = np.where(gaps > 0, np.exp(-beta * np.maximum(gaps, 0)), 0.0) * _mean_decay(beta, widths)
    # x and t in the same cell, both anywhere in it: the mean of exp(-beta (t - x)) over t >= x.
    exponents = np.maximum(beta * widths, 1e-4)
    np.fill_diagonal(decay, (exponents + np.expm1(-exponents)) / exponents**2)
    return _blahut_arimoto(cells.masses, decay, rounds=100)


def _marginal_of_steps(common: _Levels, beta: float) -> NDArray[np.float64]:
    """Blahut-Arimoto for T one of the lengths: the probability of each, [levels]."""
    return _blahut_arimoto(common.masses, _decay(common.sizes, beta), rounds=100)


def _decay(sizes: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    """exp(-beta (t - x)) for t >= x, else zero: [x, t], both of `sizes`."""
    gaps = sizes[None, :] - sizes[:, None]
    return np.where(gaps >= 0, np.exp(-beta * np.maximum(gaps, 0)), 0.0)


def _rate_distortion(sizes: NDArray[np.float64], masses: NDArray[np.float64], beta: float) -> tuple[float, float]:
    """The mean of T - X, and I(X; T) in nats, on the point of R(D) with slope -beta."""
    gaps = sizes[None, :] - sizes[:, None]
    decay = _decay(sizes, beta)
    joint = decay * _blahut_arimoto(masses, decay, rounds=400)
    joint *= (masses / joint.sum(axis=1))[:, None]
    independent = masses[:, None] * joint.sum(axis=0)
    seen = joint > 1e-200  # a smaller one carries nothing, and its product above may be zero
    information = np.sum(joint[seen] * np.log(joint[seen] / independent[seen]))
    return float(np.sum(joint * gaps)), float(information)


def _blahut_arimoto(masses: NDArray[np.float64], decay: NDArray[np.float64], *, rounds: int) -> NDArray[np.float64]:
    """The marginal of T: q(t) <- q(t) sum_x p(x) decay(x, t) / sum_s q(s) decay(x, s), from q = p."""
    marginal = masses.copy()
    for _ in range(rounds):
        marginal = marginal * ((masses / (decay @ marginal)) @ decay)
    return marginal / marginal.sum()


def _padding_share(levels: _Levels, warp: Warp, batch_sizes: BatchSizes) -> float:
    """The padding share of batches cut from the sort by warp(length) + a standard exponential."""
    heights = warp(levels.sizes)
    sizes = batch_sizes(np.full(1, levels.sizes @ levels.masses))
    middles = _positions(float(sizes[0]) / levels.total)
    longest = levels.sizes[np.minimum(np.searchsorted(np.cumsum(levels.masses), middles), len(levels.sizes) - 1)]
    for _ in range(2):  # the size of a batch depends on its longest, which depends on its size
        sizes = np.minimum(batch_sizes(longest), levels.total)
        lows = np.clip(middles - sizes / (2 * levels.total), 0.0, 1.0 - sizes / levels.total)
        highs = np.minimum(lows + sizes / levels.total, 1.0)
        longest = np.empty(len(middles))
        _kernels.longest_of_batches(levels.sizes, levels.masses, heights, lows, highs, sizes, longest)
    borders = np.concatenate([[0.0], (middles[1:] + middles[:-1]) / 2, [1.0]])
    return 1.0 - float(levels.sizes @ levels.masses) / float(longest @ np.diff(borders))


def _positions(batch: float) -> NDArray[np.float64]:
    """Quantiles at which to look at batches that hold a share `batch` of the sequences.

    Lengths are sparse at both ends, where one batch spans many of them. So the outermost 48 batches are looked at one
    by one. From there the steps grow, each an eighth of the way from the end, to the 1/192 of the middle.
    """
    ends = batch * (np.arange(48) + 0.5)
    behind, reach = 48 * batch, 1 / 24  # at 1/24, an eighth of the way is 1/192
    if behind < 1 / 192:
        steps = 2 + int(np.log(reach / behind) / np.log(1.125))
        ends = np.concatenate([ends, np.geomspace(behind, reach, steps)[1:-1]])
    middles = np.concatenate([(np.arange(192) + 0.5) / 192, ends, 1.0 - ends])
    return np.unique(middles[(middles > 0.0) & (middles < 1.0)]).astype(np.float64)
