"""Missed: when the plan cannot have the padding that was asked for, one warning says what it has, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import DEFAULT_ORDER, Batching
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.lengths import fingerprint
from lengthwise.planning.draft import Draft, padding_of

_TOLERANCE = 0.02  # of the computed frames: a smaller miss is chance, or too small to act on
_told: set[tuple[str, str]] = set()  # the (batching, fingerprint of lengths) that this process has warned of


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
    about = (batching.to_json(), fingerprint(items))
    if about in _told:
        return
    _told.add(about)
    least, most = (padding_of(draft_by(end), items) for end in (Sorted(), Shuffled()))
    if order.padding > most and most <= _TOLERANCE:  # all lengths are nearly equal: no order pads more
        return
    sentence = f"`padding` must be within {_TOLERANCE} of what was asked, {order.padding:g}, but is {achieved:.3f}."
    # The level is that of the caller of make_plan, which is decorated.
    warnings.warn(f"{sentence} {_say_why(order.padding, achieved, least, most)}", stacklevel=5)


def _say_why(asked: float, achieved: float, least: float, most: float) -> str:
    if asked > most:
        return f"Random batches pad {most:.3f} here, and nothing pads more: ask for less."
    if asked < least:
        return f"Sorting pads {least:.3f} here: make the batches smaller, or ask for more."
    change = "less" if achieved > asked else "more"
    return f"A few long sequences are most of it: cut by a budget with oversize='alone', or ask for {change}."
