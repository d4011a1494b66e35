"""Measures every strategy over the range of its knob, for the pictures of knobs and trade-offs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise import checks
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.mixing import measure_mixing

Row = dict[str, Any]

_HALF_NOISE = 0.2  # of the range of lengths: about halfway from sorted to random


class Knob(NamedTuple):
    """The knob of a strategy: its name and the scale of its values."""

    name: str
    scale: Literal["linear", "log"]


KNOBS: Mapping[str, Knob] = MappingProxyType(
    {
        "semi-sorted": Knob("LRF", "log"),
        "bucketed": Knob("bucket size", "log"),
        "alternated": Knob("bins", "log"),
        "optimal": Knob("buckets", "log"),
        "max-entropy": Knob("padding asked for", "linear"),
    }
)


def knob_values(strategy: str, random: Row, by_length: Row, points: int) -> list[float]:
    """Returns the values to try for the knob of a strategy, from sorted to random or back.

    They are about evenly spaced in padding, and closer where batches are nearly sorted.
    """
    steps = np.arange(1, points + 1)
    if strategy == "semi-sorted":
        # 16 points: noises from 0.001 to 4.1 times the range of lengths.
        shares = ((np.arange(points) + 0.5) / points) ** 1.5
        return [float(f"{noise:.2g}") for noise in _HALF_NOISE * shares / (1.0 - shares)]
    if strategy == "max-entropy":
        low, high = by_length["padding_share"], random["padding_share"]
        return list(dict.fromkeys(float(f"{share:.4f}") for share in low + (high - low) * (steps / points) ** 1.5))
    if strategy == "alternated":
        return np.unique(np.ceil(random["batches"] * (steps / points) ** 2).astype(np.int64)).tolist()
    # 4 points: 1, 2, 4 and 16 buckets, from random to nearly sorted.
    buckets = np.unique(np.rint((points / steps) ** 2).astype(np.int64))
    if strategy == "optimal":
        return buckets.tolist()
    # n/1, n/2, n/3 ...: with another size the last bucket is smaller, and pads and mixes differently.
    return np.unique(np.ceil(random["sequences"] / buckets).astype(np.int64)).tolist()


def sweep(
    lengths: NDArray[np.int64],
    cut: lw.FixedSize,
    *,
    strategies: tuple[str, ...] = tuple(KNOBS),
    points: int = 12,
    epochs: int = 1,
) -> list[Row]:
    """Measures random and sorted batching, and every strategy at `points` values of its knob, from sorted to random.

    Args:
        lengths: [n], at least one.
        cut: The cut of every strategy.
        strategies: Names among semi-sorted, bucketed, alternated, optimal and max-entropy.
        points: Values of each knob; there may be fewer for knobs in whole numbers.
        epochs: Epochs 0, 1, ... of seed 0 to measure each on.

    Returns:
        The fields of `lw.Measures` of all epochs together, with "strategy", the label; "mixing"; and "knob", the value
        or None.
    """
    for name in strategies:
        checks.check_choice("strategies", name, tuple(KNOBS))

    def row(label: str, knob: float | None = None) -> Row:
        return measure_strategy(lengths, label, cut, epochs=epochs) | {"knob": knob}

    # First, because they bound the padding of the knobs.
    random, by_length = row("random"), row("sorted")
    return [random, by_length] + [
        row(f"{name}:{value}", value) for name in strategies for value in knob_values(name, random, by_length, points)
    ]


def measure_strategy(lengths: NDArray[np.int64], label: str, cut: lw.FixedSize, *, epochs: int = 1) -> Row:
    """Returns the row of one strategy, without "knob"."""
    batching = parse_strategy(label, cut=cut)
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(epochs)]
    return {"strategy": label, "mixing": measure_mixing(plans, lengths), **lw.measure(plans, lengths).as_dict()}
