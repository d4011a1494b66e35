"""Missed: if a plan cannot have the padding or the waiting that was asked for, a warning says what it has, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import DEFAULT_ORDER, Batching
from lengthwise.choices.cut import FixedSize
from lengthwise.choices.deal import Balanced
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.choices.waiting import waiting_of
from lengthwise.lengths import fingerprint
from lengthwise.planning.draft import Draft, padding_of

_TOLERANCE = 0.02  # of the computed frames: a smaller miss is chance, or too small to act on
_told: set[tuple[str, str, str]] = set()  # (what, batching, fingerprint of lengths) that this process has warned of


def tell_missed_padding(
    achieved: float, items: NDArray[np.int64], batching: Batching, draft_by: Callable[[Order], list[Draft]]
) -> None:
    """Warns if plans miss the padding that was asked for; once for the same batching and lengths.

    The default order does not warn: nobody asked for its padding.

    Args:
        achieved: What plans by the fitted order pad on average, as a share.
        draft_by: Drafts the same sequences by another order, to see which paddings are possible.
    """
    order = batching.order
    if order is DEFAULT_ORDER or not isinstance(order, MaxEntropy) or order.padding is None:
        return
    if abs(achieved - order.padding) <= _TOLERANCE:
        return
    if _was_told("padding", items, batching):
        return
    least, most = (padding_of(draft_by(end), items) for end in (Sorted(), Shuffled()))
    if order.padding > most and most <= _TOLERANCE:  # all lengths are nearly equal: no order pads more
        return
    sentence = f"`padding` must be within {_TOLERANCE} of what was asked, {order.padding:g}, but is {achieved:.3f}."
    # The level is that of the caller of make_plan, which is decorated; so it is below.
    warnings.warn(f"{sentence} {_say_why(order.padding, achieved, least, most)}", stacklevel=5)


def tell_missed_waiting(
    grid: NDArray[np.int64], costs: NDArray[np.float64], items: NDArray[np.int64], batching: Batching
) -> None:
    """Warns if the ranks of a whole epoch wait longer than was asked; once for the same batching and lengths.

    Args:
        grid: [steps, micro_batches, ranks] of batch numbers.
        costs: What each batch costs.
        items: What is planned.
        batching: The choices.
    """
    deal = batching.deal
    if not isinstance(deal, Balanced) or deal.waiting is None or not grid.size:
        return
    had = waiting_of((costs / (costs.max() or 1.0))[grid].sum(axis=1))
    if had <= deal.waiting + 1e-9 or _was_told("waiting", items, batching):
        return
    sentence = f"`waiting` must be at most what was asked, {deal.waiting:g}, but is {had:.3g}."
    remedy = "Cut by a budget, or ask for more." if isinstance(batching.cut, FixedSize) else "Ask for more."
    why = "All batches make one step." if len(grid) == 1 else "Batches of like cost share the steps already."
    warnings.warn(f"{sentence} {why} {remedy}", stacklevel=4)


def _was_told(what: str, items: NDArray[np.int64], batching: Batching) -> bool:
    """Whether this process has warned of it before; from now on it has."""
    about = (what, batching.to_json(), fingerprint(items))
    told = about in _told
    _told.add(about)
    return told


def _say_why(asked: float, achieved: float, least: float, most: float) -> str:
    if asked > most:
        return f"Random batches pad {most:.3f} here, and nothing pads more: ask for less."
    if asked < least:
        return f"Sorting pads {least:.3f} here: make the batches smaller, or ask for more."
    change = "less" if achieved > asked else "more"
    return f"A few long sequences are most of it: cut by a budget with oversize='alone', or ask for {change}."
