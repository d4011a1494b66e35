"""The rule by which one batching is put before others: nearly the least price, and of these the most mixing.

price        1.09   1.14   1.24   4.91   of which 1.09 is the least; 5 % more is 1.14, and 15 % more is 1.25
mixing       0.05   0.09   1.00   1.00
taken                      *             for it mixes far more than 0.09
"""

from __future__ import annotations

from collections.abc import Sequence

WITHIN = 0.05  # of the least price
FURTHER = 0.15  # of the least price, where that buys a leap
LEAP = 0.5  # of mixing: so much more than all within WITHIN
NOTHING = 0.01  # of the least price: random batches that cost no more than this above it have nothing to gain


def affordable(prices: Sequence[float], within: float) -> list[int]:
    """The places of the prices that are at most `within` above the least.

    >>> affordable([1.02, 1.0, 1.2], 0.05)
    [0, 1]
    """
    most = min(prices) * (1 + within)
    return [place for place, price in enumerate(prices) if price <= most]


def choose(prices: Sequence[float], mixing: Sequence[float], *, random: int | None = None) -> int:
    """The place of the one to put forward: as `lw.advise` chooses without a share of length.

    Args:
        prices: Of at least one batching.
        mixing: Of the same. Of those that mix alike, the least price counts.
        random: The place of random batches, which stay where nothing costs clearly less.

    >>> choose([2.9, 1.01, 1.05, 1.11], [0.84, 0.01, 0.06, 0.13], random=0)
    2
    >>> choose([2.9, 1.01, 1.05, 1.11], [0.84, 0.01, 0.06, 0.71], random=0)
    3
    >>> choose([1.02, 1.01], [0.9, 0.9])
    1
    """
    if random is not None and prices[random] <= min(prices) * (1 + NOTHING):
        return random
    near, far = (
        max(affordable(prices, within), key=lambda place: (mixing[place], -prices[place]))
        for within in (WITHIN, FURTHER)
    )
    return far if mixing[far] >= mixing[near] + LEAP else near
