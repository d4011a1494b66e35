"""Every strategy measured over the range of its knob: the rows that the pictures of knobs and trade-offs draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.cost import Cost
from lengthwise.choices.cut import Cut
from lengthwise.cli.strategies import parse_strategy
from lengthwise.lengths import as_lengths
from lengthwise.measures.metrics import measure
from lengthwise.planning import make_plan
from lengthwise.planning.joint import mixing_bins

Row = dict[str, Any]

_ENOUGH, _MOST_EPOCHS = 80_000, 64  # sequences to estimate mixing from, which allows 90 bins
_HALF_NOISE = 0.2  # of the range of lengths: about half of the way from sorted to random


class Knob(NamedTuple):
    """The knob that takes a strategy from sorted to random, or back: its name, its scale, and the values to try.

    The values spread out about evenly in padding, closer together where batches are nearly sorted.
    """

    name: str
    scale: str
    values: Callable[[Row, Row, int], list[float]]


def _noises(random: Row, by_length: Row, points: int) -> list[float]:
    del random, by_length
    # 16 points: noises from 0.001 to 4.1 times the range of lengths.
    shares = ((np.arange(points) + 0.5) / points) ** 1.5
    return [float(f"{noise:.2g}") for noise in _HALF_NOISE * shares / (1.0 - shares)]


def _sizes(random: Row, by_length: Row, points: int) -> list[float]:
    # n/1, n/2, n/3 ...: with any other size the last bucket is a small one, which pads and mixes out of line.
    return _distinct(np.ceil(random["sequences"] / np.array(_buckets(random, by_length, points))))


def _buckets(random: Row, by_length: Row, points: int) -> list[float]:
    del random, by_length
    # 4 points: 1, 2, 4 and 16 buckets, from random to nearly sorted.
    return _distinct(np.rint((points / np.arange(1, points + 1)) ** 2))


def _bins(random: Row, by_length: Row, points: int) -> list[float]:
    del by_length
    return _distinct(np.ceil(random["batches"] * (np.arange(1, points + 1) / points) ** 2))


def _shares(random: Row, by_length: Row, points: int) -> list[float]:
    low, high = by_length["padding_share"], random["padding_share"]
    shares = low + (high - low) * (np.arange(1, points + 1) / points) ** 1.5
    return list(dict.fromkeys(float(f"{share:.4f}") for share in shares))


def _distinct(values: NDArray[np.float64]) -> list[float]:
    return np.unique(values.astype(np.int64)).tolist()


KNOBS: Mapping[str, Knob] = MappingProxyType(
    {
        "semi-sorted": Knob("LRF", "log", _noises),
        "bucketed": Knob("bucket size", "log", _sizes),
        "alternated": Knob("bins", "log", _bins),
        "optimal": Knob("buckets", "log", _buckets),
        "max-entropy": Knob("padding asked for", "linear", _shares),
    }
)


def sweep(
    lengths: ArrayLike,
    cut: Cut,
    *,
    strategies: tuple[str, ...] = tuple(KNOBS),
    points: int = 12,
    epochs: int | None = None,
    cost: Cost | None = None,
) -> list[Row]:
    """Measures random and sorted batching, and every strategy at `points` values of its knob, from sorted to random.

    Mixing is estimated on all epochs together. In the few bins that one epoch fills, little mixing looks like more, and
    may seem to pass the limit.

    Args:
        lengths: [n] or [n, dims].
        cut: Of every strategy.
        strategies: Of semi-sorted, bucketed, alternated, optimal and max-entropy.
        points: Values of each knob; where a knob is a whole number there may be fewer.
        epochs: Epochs 0, 1, ... of seed 0 to measure each on; None takes as many as bring 80,000 sequences together, at
            most 64.
        cost: What a batch costs.

    Returns:
        Rows as `lengthwise compare --json` has them: "strategy", the label; "knob", the value or None; and the fields
        of `lw.Measures`, means over the epochs; mixing is of all epochs together.

    Raises:
        ValueError: No length, or a strategy without a knob.
    """
    array = as_lengths(lengths)
    if not len(array):
        raise checks.value_error("lengths", "at least one sequence", len(array), "Give the lengths to batch.")
    for name in strategies:
        checks.check_choice("strategies", name, tuple(KNOBS))
    checks.check_whole("points", points, minimum=2, remedy="Give how many values of each knob to try.")
    epochs = min(_MOST_EPOCHS, -(-_ENOUGH // len(array))) if epochs is None else epochs
    epochs = checks.check_whole("epochs", epochs, minimum=1, remedy="Give how many epochs to measure.")

    def row(label: str, knob: float | None = None) -> Row:
        return measure_strategy(array, label, cut, epochs=epochs, cost=cost) | {"knob": knob}

    # First, for they say between which paddings the knobs move.
    random, by_length = row("random"), row("sorted")
    return [random, by_length] + [
        row(f"{name}:{value}", value) for name in strategies for value in KNOBS[name].values(random, by_length, points)
    ]


def measure_strategy(lengths: ArrayLike, label: str, cut: Cut, *, epochs: int = 1, cost: Cost | None = None) -> Row:
    """The row of one strategy, without "knob"."""
    batching = parse_strategy(label, cut=cut, cost=cost)
    plans = [make_plan(lengths, batching, epoch=epoch) for epoch in range(epochs)]
    each = [measure(plan, lengths).as_dict() for plan in plans]
    # Padding is a mean over epochs. Mixing is not: an estimate from few is biased, and so is the mean of such.
    means = {name: float(np.mean([measures[name] for measures in each])) for name in each[0]}
    bins = mixing_bins(sum(len(plan.sequences) for plan in plans))
    pooled = measure(plans, lengths, bins=bins)
    mixing = {name: getattr(pooled, name) for name in ("mixing", "step_mixing", "mixing_bins")}
    return {"strategy": label, **means, **mixing}
