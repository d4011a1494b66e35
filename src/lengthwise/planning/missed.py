"""Missed: warns once of a padding that was asked for and not reached, with the padding reached and the reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import DEFAULT_ORDER, Batching
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.lengths import fingerprint
from lengthwise.planning.draft import Draft

_TOLERANCE = 0.02  # of the computed frames: a smaller miss is chance, or too small to act on
_FEW = 100  # batches, below which chance decides what they pad
_told: set[tuple[str, str]] = set()  # the (batching, fingerprint of lengths) that this process has warned of


class _Achieved(NamedTuple):
    """What drafts pad, as a share of what they compute, in how many batches of how many dimensions."""

    padding: float
    batches: int
    dims: int


def tell_missed_padding(
    drafts: list[Draft], items: NDArray[np.int64], batching: Batching, draft_by: Callable[[Order], list[Draft]]
) -> None:
    """Warns if the order misses the padding that it was asked for; once for the same batching and lengths.

    The default order does not warn: nobody asked for its padding.

    Args:
        drafts: By the batching's own order.
        draft_by: Drafts the same sequences by another order, to see which paddings are possible.
    """
    if batching.order is DEFAULT_ORDER:
        return
    if not isinstance(batching.order, MaxEntropy) or batching.order.padding is None:
        return  # an order of the user's may call anything its padding
    asked = batching.order.padding
    had = _measure_drafts(drafts, items)
    if not had.batches or abs(had.padding - asked) <= _TOLERANCE:
        return
    about = (batching.to_json(), fingerprint(items))
    if about in _told:
        return
    _told.add(about)
    least, most = (_measure_drafts(draft_by(order), items).padding for order in (Sorted(), Shuffled()))
    if asked > most and most <= _TOLERANCE:  # all lengths are nearly equal: no order pads more, and nothing is lost
        return
    sentence = f"`padding` must be within {_TOLERANCE} of what was asked, {asked:g}, but is {had.padding:.3f}."
    # The level is that of the caller of make_plan, which is decorated.
    warnings.warn(f"{sentence} {_why(asked, had, least, most)}", stacklevel=5)


def _measure_drafts(drafts: list[Draft], items: NDArray[np.int64]) -> _Achieved:
    """What the drafts pad."""
    # A draft is not padded yet: each of its batches computes its count x the longest that its members need.
    useful = sum(int(items[draft.members].sum()) for draft in drafts)
    longest = [np.maximum.reduceat(draft.needed, draft.offsets[:-1]) for draft in drafts if len(draft.members)]
    sizes = [np.diff(draft.offsets) for draft in drafts if len(draft.members)]
    computed = sum(int(counts @ lengths.sum(axis=1)) for counts, lengths in zip(sizes, longest, strict=True))
    padding = 1.0 - useful / computed if computed else 0.0
    return _Achieved(padding, sum(map(len, sizes)), items.shape[1])


def _why(asked: float, had: _Achieved, least: float, most: float) -> str:
    # The first reason that applies: what the lengths allow, then their dimensions, then chance, then a few giants.
    correct = f"ask for {'less' if had.padding > asked else 'more'} to correct it."
    if asked > most:
        return f"Random batches pad {most:.3f} here, and nothing pads more: ask for less."
    if asked < least:
        sorting = "Sorting" if had.dims == 1 else f"Sorting by the sum of {had.dims} lengths"
        remedy = "take order=lw.Sorted()" if had.padding > least + _TOLERANCE else "make the batches smaller"
        return f"{sorting} pads {least:.3f} here: {remedy}, or ask for more."
    if had.dims > 1:
        return f"It is fitted to the sum of the {had.dims} lengths: {correct}"
    if had.batches < _FEW:
        return f"With {had.batches} batches it depends on chance: plan more sequences, or {correct}"
    return f"A few long sequences are most of it: cut by a budget with oversize='alone', or {correct}"
