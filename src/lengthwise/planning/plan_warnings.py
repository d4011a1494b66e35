"""Warnings of plans: the padding that was asked for is missed, or the budget is in doubt."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import Budget
from lengthwise.choices.deal import World
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted, finds_noise
from lengthwise.lengths import fingerprint
from lengthwise.planning.portion import Settled, mean_cost
from lengthwise.planning.settle import Recent

_TOLERANCE = 0.02  # of the computed frames: a smaller miss is chance, or too small to act on
_NEARLY_ALL = 0.9  # share of sequences over the budget: nobody means to drop so many
# Cases that this process has warned of: (kind, batching, fingerprint of lengths, world). Every window is another case.
_warned: Recent[None] = Recent(most=10_000)


class FirstWarnings:
    """A filter for the warnings of many plans. For each world, it passes those of the first plan that warns."""

    def __init__(self) -> None:
        self._worlds: set[World] = set()

    @contextmanager
    def give(self, world: World) -> Iterator[None]:
        """Gives the warnings of the plan made inside, unless an earlier plan for this `world` had warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        first = [] if world in self._worlds else caught
        self._worlds |= {world} if caught else set()
        for warning in first:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def tell_missed_request(settled: Settled, batching: Batching, *, name: str, world: World) -> None:
    """Warns if plans miss the padding that was asked for; once for the same batching, lengths and world.

    Args:
        settled: The order, and the mean padding of its trials.
        batching: The choices as they were given.
        name: The name of the lengths.
        world: The ranks and micro-batches of a step: for other ranks, plans pad differently.
    """
    mean = settled.trial_padding
    # If neither an order nor a padding was given, nobody has asked for the padding: the order is None.
    order = batching.order if batching.padding is None else MaxEntropy(padding=batching.padding)
    if not finds_noise(order) or mean is None:
        return
    padding = order.padding or 0.0
    # If lengths are nearly equal, even random batches hardly pad.
    alike = type(settled.fitted_order) is Shuffled and mean <= _TOLERANCE
    if alike or abs(mean - padding) <= _TOLERANCE or _already_warned("padding", name, batching, world):
        return
    why = _why_missed(mean, padding, settled.fitted_order)
    checks.warn(f"`padding` must be within {_TOLERANCE} of the {padding:g} asked for, but is {mean:.3f}. {why}")


def _why_missed(mean: float, padding: float, order: Order) -> str:
    """Returns the reason, by the `order` that comes nearest: random batches pad most, and sorted ones least."""
    if type(order) is Shuffled:
        return f"Random batches pad {mean:.3f} here, and nothing pads more: ask for less."
    if type(order) is Sorted:
        return f"Sorting pads {mean:.3f} here: make the batches smaller, or ask for more."
    change = "less" if mean > padding else "more"
    return f"A few long sequences cause most padding: cut by a budget with oversize='alone', or ask for {change}."


def tell_doubted_budget(over: int, items: NDArray[np.int64], batching: Batching, *, name: str = "") -> None:
    """Warns if nearly all sequences are over the budget by themselves.

    For example, the lengths may be in samples, and the budget in frames. If the cut has no policy for sequences over
    the budget, an error says the same.

    Args:
        over: The number of sequences that alone are over the budget.
        items: [n, dims], the lengths that are planned.
        batching: The choices.
        name: The name of the lengths; by default the fingerprint of the items.
    """
    if over < _NEARLY_ALL * len(items) or type(batching.cut) is not Budget:
        return
    cost = mean_cost(items, batching.cost)
    if cost <= batching.cut.budget or _already_warned("budget", name or fingerprint(items), batching):
        return
    rule = f"at least the cost of a sequence of the mean length, {cost:.16g}"
    remedy = (
        f"{over:,} of {len(items):,} sequences are over it: give it in the unit of the lengths. "
        f"16 sequences of the mean length cost about {float(f'{16 * cost:.3g}'):,.16g}."
    )
    checks.warn(checks.sentence("budget", rule, batching.cut.budget, remedy))


def tell_other_steps(steps: int, usual: int | None, epoch: int) -> None:
    """Warns if an epoch has other steps than the `usual` ones; None if epochs may differ."""
    if usual and steps != usual:
        checks.warn(f"Epoch {epoch} has {steps} steps in place of {usual}. It takes longer copies than other epochs.")


def _already_warned(kind: str, name: str, batching: Batching, world: World | None = None) -> bool:
    """Returns True if this process has warned of this case before, and remembers the case."""
    case = (kind, batching.to_json(), name, world)
    warned = case in _warned
    _warned.get(case, lambda: None)
    return warned
