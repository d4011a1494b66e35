"""Missed: if a plan cannot have the padding, mixing or waiting asked for, one warning says what it has, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.batching import DEFAULT_ORDER, Batching
from lengthwise.choices.cut import Budget, Cut, FixedSize
from lengthwise.choices.deal import Balanced
from lengthwise.choices.order import Order, Shuffled, Sorted, finds_noise
from lengthwise.choices.waiting import waiting_of
from lengthwise.choices.world import World
from lengthwise.lengths import fingerprint
from lengthwise.planning.draft import Draft, mean_cost, padding_of
from lengthwise.planning.fit import Settled
from lengthwise.planning.recent import Recent

_TOLERANCE = 0.02  # of the computed frames: a smaller miss is chance, or too small to act on
_NEARLY_ALL = 0.9  # of the sequences are over the budget: nobody means to drop so many
# Of what this process has warned: (what, batching, fingerprint of lengths, world). Windows have lengths of their own.
_told: Recent[None] = Recent(most=10_000)


class FirstWarnings:
    """Of many plans, the warnings of the first that has any: those of the others say the same of other numbers."""

    def __init__(self) -> None:
        self._told: set[World] = set()

    @contextmanager
    def give(self, world: World) -> Iterator[None]:
        """Gives the warnings of a plan for `world` that is made within, unless those of another were given."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        first = [] if world in self._told else found
        self._told |= {world} if found else set()
        for each in first:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def tell_missed_request(
    achieved: float | None,
    items: NDArray[np.int64],
    batching: Batching,
    draft_by: Callable[[Order], list[Draft]],
    *,
    name: str,
    world: World,
) -> None:
    """Warns if plans miss the padding or the mixing that was asked for; once for the same batching, lengths and world.

    The default order does not warn: nobody asked for its padding.

    Args:
        achieved: What trials by the fitted order pad, or mix, on average; None if there were none.
        items: What is planned.
        batching: The choices.
        draft_by: Drafts the same sequences by another order, to see what is possible.
        name: Of the lengths.
        world: What a step is shared out to: on other ranks, plans pad and mix otherwise.
    """
    order = batching.order
    if achieved is None or order is DEFAULT_ORDER or not finds_noise(order):
        return
    if order.padding is not None:
        what, asked = "padding", order.padding
    else:
        what, asked = "mixing", order.mixing or 0.0
    if abs(achieved - asked) <= _TOLERANCE or _was_told(what, name, batching, world):
        return
    why = (
        _say_why_mixing(asked, achieved)
        if what == "mixing"
        else _say_why_padding(asked, achieved, items, draft_by, batching.cut)
    )
    if why:
        checks.warn(f"`{what}` must be within {_TOLERANCE} of what was asked, {asked:g}, but is {achieved:.3f}. {why}")


def _say_why_mixing(asked: float, achieved: float) -> str:
    if achieved > asked:
        return "No batches were found that mix less here: make them smaller, or ask for more."
    return f"Random batches mix {achieved:.3f} here, and nothing mixes more: make the batches larger, or ask for less."


def _say_why_padding(
    asked: float, achieved: float, items: NDArray[np.int64], draft_by: Callable[[Order], list[Draft]], cut: Cut
) -> str:
    """Returns the reason; nothing where all lengths are nearly equal, so that no order pads more."""
    least, most = (padding_of(draft_by(end), items, cut) for end in (Sorted(), Shuffled()))
    if asked > most and most <= _TOLERANCE:
        return ""
    if asked > most:
        return f"Random batches pad {most:.3f} here, and nothing pads more: ask for less."
    if asked < least:
        return f"Sorting pads {least:.3f} here: make the batches smaller, or ask for more."
    change = "less" if achieved > asked else "more"
    return f"A few long sequences are most of it: cut by a budget with oversize='alone', or ask for {change}."


def tell_doubted_budget(over: int, items: NDArray[np.int64], batching: Batching, *, name: str = "") -> None:
    """Warns if nearly all sequences are over the budget by themselves.

    For example, lengths are in samples, and the budget in frames. Without a policy for such sequences this is an error,
    which says the same.

    Args:
        over: How many sequences are over the budget by themselves.
        items: What is planned.
        batching: The choices.
        name: Of the lengths; by default the fingerprint of the items.
    """
    if not over or over < _NEARLY_ALL * len(items) or type(batching.cut) is not Budget:
        return
    cost = mean_cost(items, batching.cost)
    if cost <= batching.cut.budget or _was_told("budget", name or fingerprint(items), batching):
        return
    rule = f"at least the cost of a sequence of the mean length, {cost:.16g}"
    remedy = (
        f"{over:,} of {len(items):,} sequences are over it: give it in the unit of the lengths. "
        f"16 sequences of the mean length cost about {float(f'{16 * cost:.3g}'):,.16g}."
    )
    checks.warn(checks.sentence("budget", rule, batching.cut.budget, remedy))


def tell_other_deal(batching: Batching, settled: Settled, world: World, *, name: str) -> None:
    """Warns if random steps of a fixed size are not taken; once for the same batching, lengths and world.

    Under a budget nothing is said: batches of the padding that was asked share the steps by strata, as documented.

    Args:
        batching: The choices, as they were given.
        settled: What they became.
        world: What a step is shared out to.
        name: Of the lengths.
    """
    deal, order = settled.batching.deal, batching.order
    if not isinstance(batching.cut, FixedSize) or deal == batching.deal or world.slots == 1 or not finds_noise(order):
        return
    if (settled.steps_pad is None and order.mixing is None) or _was_told("steps", name, batching, world):
        return
    if order.mixing is not None:
        sentence = (
            f"`mixing` must be left out beside RandomSteps, which sorts the steps inside, but is {order.mixing:g}."
        )
        remedy = "ask for a padding, or choose that deal"
    else:
        least = f"what random steps of {world.slots:,} batches pad, {settled.steps_pad:.3f}"
        sentence = f"`padding` must be at least {least}, but is {order.padding:g}."
        remedy = "take more ranks or micro-batches, ask for more padding, or cut by a budget"
    shown = f"Balanced(waiting={deal.waiting:g})" if isinstance(deal, Balanced) else "Stratified()"
    checks.warn(f"{sentence} So {shown} deals the batches of the order: {remedy}.")


def tell_missed_waiting(grid: NDArray[np.int64], costs: NDArray[np.float64], batching: Batching, *, name: str) -> None:
    """Warns if the ranks of a whole epoch wait longer than was asked; once for the same batching, lengths and world.

    Args:
        grid: [steps, micro_batches, ranks] of batch numbers.
        costs: What each batch costs.
        batching: The choices.
        name: Of the lengths.
    """
    deal = batching.deal
    if not isinstance(deal, Balanced) or deal.waiting is None or not grid.size:
        return
    achieved = waiting_of((costs / (costs.max() or 1.0))[grid].sum(axis=1))
    world = World(grid.shape[2], grid.shape[1])
    if achieved <= deal.waiting + 1e-9 or _was_told("waiting", name, batching, world):
        return
    sentence = f"`waiting` must be at most what was asked, {deal.waiting:g}, but is {achieved:.3g}."
    remedy = "Cut by a budget, or ask for more." if isinstance(batching.cut, FixedSize) else "Ask for more."
    why = "All batches make one step." if len(grid) == 1 else "Batches of similar cost share the steps already."
    checks.warn(f"{sentence} {why} {remedy}")


def _was_told(what: str, name: str, batching: Batching, world: World | None = None) -> bool:
    """Whether this process has warned of it before, for lengths of this name and this world; from now on it has."""
    about = (what, batching.to_json(), name, world)
    told = about in _told
    _told.get(about, lambda: None)
    return told
