"""Fits the knob of each strategy so that its batches pad a given share.

Strategies have knobs of different units (bins, sequences in a bucket, a share of the range of lengths). For a fair
comparison all knobs are fitted to the same padding on the same lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_choice, check_number
from lengthwise.cli.strategies import parse_strategy

ORDERS = ("max-entropy", "semi-sorted", "alternated", "windowed", "bucketed")
EPOCHS = 16  # plans of seed 0 for one padding share
_NEIGHBOURS = 2  # tried on either side: padding does not rise steadily with whole numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A strategy with its fitted knob.

    Attributes:
        strategy: The name on the command line.
        knob: The value.
        padding_share: The padding share of `EPOCHS` plans.
    """

    strategy: str
    knob: float
    padding_share: float


def fit_knob(lengths: NDArray[np.int64], order: str, padding: float, *, cut: lw.FixedSize | lw.DynamicSize) -> Fitted:
    """Finds the value of the knob of an order whose padding share is nearest to `padding`.

    It bisects a list of values by rising padding; for whole numbers it also tries the neighbours. Some strategies
    cannot come near: check `padding_share`.

    Args:
        lengths: [n], of the training sequences.
        order: One of `ORDERS`.
        padding: The target share.
        cut: The cut of the strategy.

    Raises:
        ValueError: Another order, or a share that is not between 0 and 1.
    """
    check_choice("order", order, ORDERS)
    check_number("padding", padding, above=True, maximum=0.99, remedy="Give a share such as 0.05.")
    values = knob_values(lengths, order, cut.batch_size, padding)
    texts = [f"{order}:{value:.12g}" for value in values]

    @cache
    def padding_at(place: int) -> float:
        return padding_share(lengths, parse_strategy(texts[place], cut=cut))

    low, high = 0, len(texts) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if padding_at(middle) < padding else (low, middle)
    neighbours = _NEIGHBOURS if isinstance(values, range) else 0
    candidates = range(max(0, low - neighbours), min(len(texts), high + neighbours + 1))
    best = min(candidates, key=lambda place: abs(padding_at(place) - padding))
    return Fitted(strategy=texts[best], knob=float(values[best]), padding_share=padding_at(best))


def padding_share(lengths: NDArray[np.int64], batching: lw.Batching) -> float:
    """Returns the share of padding in all frames of `EPOCHS` plans of seed 0 together."""
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(EPOCHS)]
    computed = sum(float(plan.batch_sizes @ plan.padded_lengths[:, 0]) for plan in plans)
    return 1.0 - EPOCHS * float(lengths.sum()) / computed


def knob_values(lengths: NDArray[np.int64], order: str, batch_size: int, padding: float) -> Sequence[float]:
    """Returns the values to try for the knob of an order, by rising padding.

    Sizes are whole batches, because a partial batch in each bucket or window would add steps. They are at least two
    batches: buckets of one batch, or one window of all, would be sorting. So would be one bin.
    """
    sizes = range(2 * batch_size, max(len(lengths), 2 * batch_size + 1), batch_size)
    values: dict[str, Sequence[float]] = {
        "max-entropy": [padding],  # it finds its own noise
        # Noises as shares of the range of lengths, of three digits.
        "semi-sorted": list(dict.fromkeys(float(f"{noise:.3g}") for noise in np.geomspace(1e-3, 8.0, 600))),
        "alternated": range(2, max(-(-len(lengths) // batch_size), 2) + 1),
        "windowed": sizes[::-1],
        "bucketed": sizes,
    }
    return values[order]
