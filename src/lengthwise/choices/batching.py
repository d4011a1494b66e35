"""Batching: an order, a cut, a deal and an arrangement."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from lengthwise import checks
from lengthwise.choices.arrange import Arrangement, ShuffledSteps
from lengthwise.choices.chunk import Chunks
from lengthwise.choices.cost import Cost, Padded, has_coefficients
from lengthwise.choices.cut import BUDGET_REMEDY, Budget, Cut, is_hard
from lengthwise.choices.deal import TAILS, Balanced, Deal, InTurn, RandomSteps, Stratified, World
from lengthwise.choices.names import describe, make, spell_out_choice, tag_of, write_choice
from lengthwise.choices.order import Bucketed, MaxEntropy, Order, Shuffled, Windowed, finds_noise, pads_to_edge
from lengthwise.choices.rows import Rows

DEFAULT_PADDING = 0.05
_MEGABATCH = 50  # batches that the Trainer's group_by_length sorts together
_DEFAULTS: dict[str, Any] = {"arrange": ShuffledSteps(), "cost": Padded(), "chunks": None, "balance": None}


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Batching:
    """A way to make batches: an order of the sequences, a cut into batches, a deal to steps and ranks, an arrangement.

    If you do not want to choose, take `Batching(budget=20_000)`: batches of at most 20,000 padded frames. The lengths
    and the ranks then decide about order and deal, by the price: the frames computed for each frame of data, waiting
    counted. The price of the Trainer's `group_by_length` on the same lengths and ranks is the measure.

    - Steps of several batches are random steps, `Shuffled()` and `RandomSteps()`, if their price is at most 1.11, and
      at most 2 % above that of `group_by_length`.
    - Otherwise batches pad 5 %, or less: they compute at most 2 % more than those of `group_by_length`. They are dealt
      to steps by `Stratified()`; or by `Balanced()` if ranks would wait more than 5 % of the time.

    `plan.batching` names the decision. With `padding=0.1`, the price of random steps is at most 1 / 0.9, and other
    batches pad 10 %.

    All choices are attributes. Two batchings of the same choices are equal, however they were written.
    `dataclasses.replace(batching, budget=10_000)` changes the budget alone.

    Args:
        cut: The rule that cuts the order into batches; or give `budget`. A budget is hard if no batch of several
            sequences exceeds it: `Budget`, or `DynamicSize` by its rule "hard".
        order: The order in which sequences are cut. If you leave it out, it is chosen as above: `Shuffled()`, or
            `MaxEntropy` with at most 5 % padding. With a deal of `RandomSteps` or a cut that packs rows, it is
            `Shuffled()`.
        deal: The rule by which batches go to steps and ranks. If you leave out order and deal, it is chosen as above.
            Random steps need a hard budget, and `Padded()` or a `Quadratic` as `cost` and `balance`. Otherwise the
            default is `Stratified()` for a hard budget without an order or with `MaxEntropy(padding=...)`, and
            `Balanced()` for all others.
        arrange: The order of the steps; by default `ShuffledSteps()`.
        cost: The cost of batches; by default count x longest. Checkpoints name a cost of your own by module, name and
            `repr`. All lambdas of a module have the same name: only the fingerprint of the plan tells them apart.
        chunks: Cuts sequences into pieces first.
        balance: The cost that ranks share evenly, if it is not the `cost` that the budget bounds. For example, padded
            frames fill the memory, and attention takes the time: `balance=Quadratic(quadratic=0.001)`. No batch is over
            the budget. Random steps are then formed at 0.8 of the budget, which leaves room to balance: about a quarter
            more steps.
        budget: The largest batch in padded frames: 16 sequences have about 16 times their mean length. Short for
            `cut=Budget(budget)`; beside `cut=Budget(...)`, it replaces the budget of the cut.
        padding: The share of the computed frames that may be padding. Unless the lengths and the ranks decide, it is
            short for `order=MaxEntropy(padding=padding)`; beside `order=MaxEntropy(...)`, it replaces the padding of
            the order. If the lengths do not allow it, you get one warning; a padding that you left out never warns.

    Attributes:
        order: The order; None if the lengths and the ranks decide.
        deal: The deal; None if the lengths and the ranks decide.
        padding: Your `padding` if the order is None; else None.

    Raises:
        ValueError: Neither `cut` nor `budget` is given, or `budget` with a cut that has none. Or `padding` is given
            with an order other than `MaxEntropy`, with packed rows, or with `RandomSteps`, whose padding follows from
            the steps.
        TypeError: An argument is no choice of its kind: a deal as the order, or a class that was not called.

    >>> import lengthwise as lw
    >>> batching = Batching(budget=20_000)
    >>> replace(batching, budget=10_000)
    Batching(budget=10000.0)
    >>> plan = lw.make_plan(lw.example_lengths("long-tailed"), batching, world_size=32)
    >>> Batching.from_json(plan.batching)
    Batching(budget=20000.0, deal=RandomSteps(tail='split', even=True))
    """

    cut: Cut
    # An Order and a Deal, or None. They are typed as Any, because planning replaces None before it reads them.
    order: Any
    deal: Any
    arrange: Arrangement
    cost: Cost
    chunks: Chunks | None
    balance: Cost | None
    padding: float | None

    def __init__(
        self,
        cut: Cut | None = None,
        *,
        order: Order | None = None,
        deal: Deal | None = None,
        arrange: Arrangement = _DEFAULTS["arrange"],
        cost: Cost = _DEFAULTS["cost"],
        chunks: Chunks | None = None,
        balance: Cost | None = None,
        budget: float | None = None,
        padding: float | None = None,
    ) -> None:
        cut = _choose_cut(cut, budget)
        choices = {"cut": cut, "order": order, "deal": deal, "arrange": arrange, "cost": cost, "chunks": chunks}
        choices["balance"] = balance
        for name, choice in choices.items():
            if choice is not None or name not in ("order", "deal"):
                check_kind(name, choice)
        if deal is not None:
            checks.check_choice("tail", deal.tail, TAILS)
        may_take_steps = deal is None and _suit_random_steps(cut, cost, balance)
        choices["order"], choices["deal"], padding = _choose_order_and_deal(cut, may_take_steps, order, deal, padding)
        checks.keep(self, **choices, padding=padding)
        if self.takes_random_steps:
            self.deal.check_cut(cut)
            for name in () if isinstance(self.cut, Rows) else ("cost", "balance"):
                if (choice := getattr(self, name)) is not None and not has_coefficients(choice):
                    remedy = "Take another deal, such as Stratified(), or describe the cost by a Quadratic."
                    raise checks.value_error(name, "Padded() or a Quadratic beside RandomSteps", choice, remedy)
            _check_chain(self.order)

    @property
    def budget(self) -> float | None:
        """The most that a batch may cost, in the unit of the cost; None if the cut is no `Budget`."""
        return self.cut.budget if isinstance(self.cut, Budget) else None

    @property
    def takes_random_steps(self) -> bool:
        """True if sequences go to steps before they go to batches."""
        return isinstance(self.deal, RandomSteps)

    def __repr__(self) -> str:
        """Writes a call that makes this batching."""
        return f"Batching({', '.join(f'{name}={value!r}' for name, value in arguments_of(self).items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def to_json(self) -> str:
        """Writes the choices as JSON, which `from_json` reads: the cut, and all else that differs from its default."""
        chosen = {name: choice for name in _CHOICES if (choice := getattr(self, name)) != _DEFAULTS.get(name)}
        described = {name: describe(choice) for name, choice in chosen.items()}
        return json.dumps(described if self.padding is None else described | {"padding": self.padding})

    @classmethod
    def from_json(cls, text: str) -> Batching:
        """Makes the batching that `to_json` wrote. A choice of your own raises: JSON has only its name."""
        remedy = "Give what Batching.to_json wrote."
        try:
            described = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise checks.value_error("text", "JSON", text, remedy) from error
        if not isinstance(described, dict) or set(described) - {field.name for field in fields(cls)}:
            raise checks.value_error("text", "a batching as JSON", text, remedy)
        # Files of 0.1 may write null for what is left out.
        choices = {name: make(choice) for name, choice in described.items() if choice is not None and name != "padding"}
        return cls(**choices, padding=described.get("padding"))


def arguments_of(batching: Batching) -> dict[str, Any]:
    """Returns the fewest arguments that make the batching: its cut or budget, and all that differ from the defaults.

    >>> arguments_of(Batching(budget=500, order=Shuffled(), deal=Balanced()))
    {'budget': 500.0, 'order': Shuffled()}
    """
    cut, budget = batching.cut, batching.budget
    first: dict[str, Any] = {"budget": budget} if budget is not None and cut == Budget(budget) else {"cut": cut}
    last = {name: choice for name, default in _DEFAULTS.items() if (choice := getattr(batching, name)) != default}
    deal: dict[str, Any] = {} if batching.deal is None else {"deal": batching.deal}
    if batching.order is None:
        return first | ({} if batching.padding is None else {"padding": batching.padding}) | deal | last
    order: dict[str, Any] = {"order": batching.order}
    padding: dict[str, Any] = {"padding": batching.order.padding} if finds_noise(batching.order) else {}
    for middle in ({}, padding, order, deal, padding | deal):
        with suppress(ValueError):
            if Batching(**first, **middle, **last) == batching:
                return first | middle | last
    return first | order | deal | last


def write_batching(batching: Batching) -> str:
    """Returns the call that makes the batching, without defaults.

    >>> write_batching(Batching(budget=20_000, padding=0.05))
    'lw.Batching(budget=20_000, padding=0.05)'
    """
    arguments = arguments_of(batching).items()
    return f"lw.Batching({', '.join(f'{name}={write_choice(value)}' for name, value in arguments)})"


def _choose_cut(cut: Cut | None, budget: float | None) -> Any:
    if budget is not None and cut is None:
        return Budget(budget)
    if budget is not None and type(cut) is Budget:
        return replace(cut, budget=budget)
    checks.check_one("Batching", {"cut": cut, "budget": budget}, remedy=f"Choose one of them. {BUDGET_REMEDY}")
    return cut


def order_by_noise(batching: Batching, padding: float, deal: Deal | None = None) -> Batching:
    """Fills in the order, by noise on the lengths that pads `padding`, and the deal, if it is open too."""
    # Batches under a budget cost about the same, so ranks do not wait for unlike ones (docs/results.md).
    deal = batching.deal or deal or (Stratified() if is_hard(batching.cut) else Balanced())
    return replace(batching, padding=None, order=MaxEntropy(padding=padding), deal=deal)


def chooses_deal(batching: Batching) -> bool:
    """Returns True if the lengths and the ranks decide between random steps and steps of batches."""
    choices = batching.cut, batching.cost, batching.balance
    return batching.order is None and batching.deal is None and _suit_random_steps(*choices)


def _suit_random_steps(cut: object, cost: Cost, balance: Cost | None) -> bool:
    return is_hard(cut) and has_coefficients(cost) and (balance is None or has_coefficients(balance))


def group_by_length(size: int, count: int, world: World) -> tuple[Windowed, InTurn]:
    """Returns the order and the deal of the Trainer's group_by_length: it sorts 50 batches of each rank at a time.

    If a quarter of the epoch is shorter, it sorts as many.

    Args:
        size: The sequences of a batch.
        count: The sequences of an epoch.
        world: The ranks and micro-batches of a step.
    """
    step = size * world.micro_batches
    return Windowed(step * (min(count // (4 * step), _MEGABATCH) or 1)), InTurn()


def _choose_order_and_deal(
    cut: object, may_take_steps: bool, order: Order | None, deal: Deal | None, padding: float | None
) -> tuple[Order | None, Deal | None, float | None]:
    """Returns the order, the deal, and the padding of a batching that leaves both open.

    Most defaults of order and deal are here. `planning.settle` fills in what stays open, by the lengths and the ranks.
    """
    packs = isinstance(cut, Rows)
    if packs or isinstance(deal, RandomSteps):
        _refuse_padding(order, padding, packs=packs)
        return order or Shuffled(), deal or Balanced(), None
    if order is None:
        if padding is None or may_take_steps:
            return None, deal, None if padding is None else MaxEntropy(padding=padding).padding  # checked
        order = MaxEntropy(padding=padding)
    elif padding is not None and type(order) is MaxEntropy:
        order = replace(order, padding=padding)
    else:
        checks.check_one("Batching", {"order": order, "padding": padding}, remedy="Only MaxEntropy() takes a padding.")
    return order, deal or (Stratified() if is_hard(cut) and finds_noise(order) else Balanced()), None


def _refuse_padding(order: Order | None, padding: float | None, *, packs: bool) -> None:
    """Refuses a padding beside random steps or packed rows, and an order that pads to edges beside packed rows."""
    if padding is not None or finds_noise(order):
        rule = "left out for RandomSteps, which sort each step into its batches"
        remedy = "Leave out one of the two: a budget alone takes random steps if they pad little enough."
        if packs:  # the rest of a row is padding, whatever lengths are neighbours
            rule = "left out for a cut that packs rows"
            remedy = "Choose how well rows are filled: Rows(4_096, pool=1_024)."
        raise checks.value_error("padding", rule, order if padding is None else padding, remedy)
    if packs and pads_to_edge(order):
        rule = "one that pads to no edges beside a cut that packs rows"
        raise checks.value_error("order", rule, order, "Take Shuffled().")


def _check_chain(order: Order | None) -> None:
    """Refuses to pad random steps to edges of several lengths, unless each bucket can hold those of the bucket before.

    A batch of the buckets (9, 4) and (5, 9) would be padded to (9, 9), which is no bucket.
    """
    if not isinstance(order, Bucketed) or not order.pad_to_edge or order.edges is None:
        return
    rows = np.array(order.edges)
    if rows.ndim == 2 and (np.diff(rows, axis=0) < 0).any():
        rule = "such that no edge is below that of the bucket before, beside RandomSteps"
        raise checks.value_error("edges", rule, order.edges, "Widen them, or take another deal, such as Balanced().")


# The attributes that each choice must have, and an example for the error.
_CHOICES = {
    "cut": (("__call__", "max_cost", "batch_sizes"), "FixedSize(16)"),
    "order": (("__call__",), "Sorted()"),
    "deal": (("portions", "grid", "tail"), "Balanced()"),
    "arrange": (("__call__",), "InOrder()"),
    "cost": (("__call__",), "Padded()"),
    "chunks": (("__call__",), "Chunks(50)"),
    "balance": (("__call__",), "Quadratic(quadratic=0.001)"),
}


def check_batching(batching: object) -> None:
    """Refuses anything that is not a Batching."""
    if not isinstance(batching, Batching):
        remedy = "Make one, such as Batching(budget=20_000)."
        raise checks.type_error("batching", "a Batching", batching, remedy)


def check_kind(name: str, choice: object) -> None:
    """Refuses a value that is no choice for `name`, such as "cut": a number, a name, a class that was not called."""
    if choice is None and name in ("chunks", "balance"):
        return
    verbs, example = _CHOICES[name]
    tag = tag_of(choice)
    # Without tags, Sorted() could pass as a cost, because both can be called. The call would fail in the middle of a
    # plan.
    stage = {"chunks": "chunk", "balance": "cost"}.get(name, name)
    misplaced = tag is not None and tag.partition(".")[0] != stage
    if misplaced or isinstance(choice, type) or not all(hasattr(choice, verb) for verb in verbs):
        remedy = f"Give {name}={example}, for example."
        if name == "cut" and isinstance(choice, numbers.Real):
            remedy = f"Give FixedSize({choice}) for sequences, or Budget({choice}) for padded frames. {BUDGET_REMEDY}"
        elif name == "cut" and hasattr(choice, "cut"):
            remedy = "Give its cut, as batching.cut."
        elif name in ("cost", "balance") and callable(getattr(choice, "seconds", None)):  # what `measure_step` returns
            remedy = "Give its seconds: cost=step_cost.seconds, and a budget in seconds."
        raise checks.type_error(name, f"a choice such as {example}", choice, remedy)


def comparable(described: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a batching as JSON with all its options, so that it compares with files of 0.1.

    >>> comparable({"cut": {"choice": "cut.FixedSize", "batch_size": 4}, "order": None})["padding"]
    0.1
    """
    spelled = spell_out(described)
    # In 0.1, the default padded 10 %. Of windows, no padding gives back the plan: its fingerprint will differ.
    if is_open_in_0_1(described) and spelled["padding"] is None and "windows" not in described:
        spelled["padding"] = 0.1
    return spelled


def is_open_in_0_1(described: Mapping[str, Any]) -> bool:
    """Returns True for a batching of a file of 0.1 with an open order, which later files do not write."""
    return "order" in described and described["order"] is None


def spell_out(described: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a batching as JSON with the options of 0.1 that it leaves out, so that it compares with files of 0.1.

    >>> spell_out({"cut": {"choice": "cut.FixedSize", "batch_size": 4}})["cut"]
    {'choice': 'cut.FixedSize', 'batch_size': 4, 'drop_incomplete': False, 'multiple_of': 1}
    """
    defaults = {name: None if choice is None else describe(choice) for name, choice in _DEFAULTS.items()}
    first = [name for name in _CHOICES if name != "balance"]
    choices = {name: spell_out_choice(described.get(name, defaults.get(name))) for name in first}
    return {**choices, "padding": None, **{name: value for name, value in described.items() if name not in choices}}
