"""Batching: an order, a cut, a deal and an arrangement, and their JSON."""

from __future__ import annotations

import json
import numbers
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from lengthwise import _names, checks
from lengthwise.choices import tags
from lengthwise.choices.arrange import Arrangement, ShuffledSteps
from lengthwise.choices.chunk import Chunks
from lengthwise.choices.cost import Cost, Padded, check_priced, is_priced
from lengthwise.choices.cut import BUDGET_REMEDY, Budget, Cut, DynamicSize
from lengthwise.choices.deal import TAILS, Balanced, Deal, RandomSteps, Stratified
from lengthwise.choices.order import Bucketed, MaxEntropy, Order, Shuffled, finds_noise
from lengthwise.choices.rows import Rows, row_capacity

DEFAULT_ORDER = MaxEntropy(padding=0.1)  # told by `is`: a user who gives an equal one has asked for that padding
_DEFAULTS = {"arrange": ShuffledSteps(), "cost": Padded(), "chunks": None}


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Batching:
    """How batches are made: an order of the sequences, a cut into batches, a deal to steps and ranks, an arrangement.

    If you do not want to choose, take `Batching(budget=20_000)`: batches of at most 20,000 padded frames, as random as
    10 % padding allows, in steps of all lengths. It is `Budget(20_000)` with `MaxEntropy(padding=0.1)`,
    `RandomSteps()` and `ShuffledSteps()`.

    All choices are attributes. `budget` and `padding` are read from the cut and the order. Two batchings of the same
    choices are equal, however they were written. `dataclasses.replace(batching, budget=10_000)` changes that alone.

    Args:
        cut: Which sequences of the order share a batch; or give `budget`.
        order: In which order sequences are cut; by default `MaxEntropy(padding=0.1)`, or `Shuffled()` beside a cut that
            packs rows. If the lengths do not allow the padding, a padding that you gave warns; the default does not.
        deal: Which batches share a step, and which rank takes which. By default `RandomSteps()` for a budget with
            `MaxEntropy(padding=...)` or `MaxEntropy(mixing=...)`: it makes steps of all lengths. `Stratified()` if that
            budget has another `by`. Otherwise `Balanced()`.
        arrange: In which order the steps are taken; by default `ShuffledSteps()`.
        cost: What a batch costs; by default count x longest. Checkpoints name a cost of your own: a function by module
            and name, a partial by its parts, a dataclass by its fields, another object by its class. Lambdas of one
            module share a name: only the fingerprint of the plan tells them apart.
        chunks: Cut sequences into pieces first.
        budget: The most padded frames of a batch: 16 sequences have about 16 times their mean length. Short for
            `cut=Budget(budget)`; beside a `Budget`, the budget in place of its own.
        padding: Short for `order=MaxEntropy(padding=padding)`; beside a `MaxEntropy`, the padding in place of its own.

    Raises:
        ValueError: Neither `cut` nor `budget`; `budget` beside another cut, or `padding` beside another order.
        TypeError: A deal given as the order, a class instead of a choice, or no choice at all.

    >>> batching = Batching(budget=20_000)
    >>> batching
    Batching(budget=20000.0, padding=0.1)
    >>> batching.order
    MaxEntropy(padding=0.1, scale=None, mixing=None)
    >>> replace(batching, budget=10_000).cut.budget
    10000.0
    """

    cut: Cut
    order: Order
    deal: Deal
    arrange: Arrangement
    cost: Cost
    chunks: Chunks | None

    def __init__(
        self,
        *,
        cut: Cut | None = None,
        order: Order = DEFAULT_ORDER,
        deal: Deal | None = None,
        arrange: Arrangement = _DEFAULTS["arrange"],
        cost: Cost = _DEFAULTS["cost"],
        chunks: Chunks | None = None,
        budget: float | None = None,
        padding: float | None = None,
    ) -> None:
        cut = _choose_cut(cut, budget)
        order = _choose_order(order, padding, packed=row_capacity(cut) is not None)
        deal = default_deal(cut, order, cost) if deal is None else deal
        checks.keep(self, cut=cut, order=order, deal=deal, arrange=arrange, cost=cost, chunks=chunks)
        for name in _CHOICES:
            check_choice(name, getattr(self, name))
        checks.check_choice("tail", getattr(deal, "tail", None), TAILS)
        if isinstance(deal, RandomSteps):
            deal.check_cut(self.cut)
            if not isinstance(self.cut, Rows):
                check_priced(self.cost)
            _check_chain(order)

    @property
    def budget(self) -> float | None:
        """The most that a batch may cost, in the unit of the cost; None where the cut is no `Budget`."""
        return self.cut.budget if isinstance(self.cut, Budget) else None

    @property
    def padding(self) -> float | None:
        """The share of padding that the order is to spend, 0..1; None where it is no `MaxEntropy` of a padding."""
        return self.order.padding if isinstance(self.order, MaxEntropy) else None

    def __repr__(self) -> str:
        """A call that makes this batching."""
        return f"Batching({', '.join(f'{name}={value!r}' for name, value in arguments_of(self).items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A default order is left out, so that it is the default again where a copy is made.
        choices = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: choice for name, choice in choices.items() if choice is not DEFAULT_ORDER}
        return partial(type(self), **given), ()

    def to_json(self) -> str:
        """The choices as JSON, which `from_json` reads."""
        return json.dumps({field.name: _describe(getattr(self, field.name)) for field in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Batching:
        """Makes the batching that `to_json` wrote; a choice of your own cannot be made from its name, and raises."""
        remedy = "Give what Batching.to_json wrote."
        try:
            described = json.loads(text)
        except ValueError as error:
            raise checks.value_error("text", "JSON", text, remedy) from error
        if not isinstance(described, dict) or set(described) - {field.name for field in fields(cls)}:
            raise checks.value_error("text", "a batching as JSON", text, remedy)
        return cls(**{name: _make(choice) for name, choice in described.items()})


def arguments_of(batching: Batching) -> dict[str, Any]:
    """What makes the batching: its cut and order, or `budget` and `padding` where these say it all; what else it sets.

    >>> arguments_of(Batching(budget=500, order=Shuffled(), deal=Balanced()))
    {'budget': 500.0, 'order': Shuffled()}
    """
    cut, order, budget, padding = batching.cut, batching.order, batching.budget, batching.padding
    said_by_budget = budget is not None and cut == Budget(budget)
    said_by_padding = padding is not None and order == MaxEntropy(padding=padding)
    given = {"budget": budget} if said_by_budget else {"cut": cut}
    given |= {"padding": padding} if said_by_padding else {"order": order}
    defaults = {"deal": default_deal(cut, order, batching.cost), **_DEFAULTS}
    others = {name: getattr(batching, name) for name in defaults}
    return given | {name: choice for name, choice in others.items() if choice != defaults[name]}


def _choose_cut(cut: Cut | None, budget: float | None) -> Any:
    if budget is not None and cut is None:
        return Budget(budget)
    if budget is not None and type(cut) is Budget:
        return replace(cut, budget=budget)
    if (cut is None) == (budget is None):
        raise checks.value_error("Batching", "given one of cut, budget", (cut, budget), f"Choose one. {BUDGET_REMEDY}")
    return cut


def default_deal(cut: object, order: object, cost: Cost) -> Deal:
    """By docs/results.md: random steps, or strata, wherever batches cost about the same and pad as asked."""
    by_budget = isinstance(cut, Budget) or (isinstance(cut, DynamicSize) and cut.rule == "hard")
    if not (by_budget and finds_noise(order)):
        return Balanced()
    return RandomSteps() if is_priced(cost) else Stratified()


def _check_chain(order: Order) -> None:
    """Refuses padding to edges of several lengths where batches mix buckets, unless each bucket holds the one before.

    A batch of the buckets (9, 4) and (5, 9) would be padded to (9, 9), which is no bucket.
    """
    if not isinstance(order, Bucketed) or not order.pad_to_edge or order.edges is None:
        return
    rows = np.array(order.edges)
    if rows.ndim == 2 and (np.diff(rows, axis=0) < 0).any():
        rule = "such that each bucket holds the one before it, beside RandomSteps"
        raise checks.value_error("edges", rule, order.edges, "Widen them, or take another deal, such as Balanced().")


def _choose_order(order: Order, padding: float | None, *, packed: bool) -> Order:
    if packed:
        return _choose_order_of_rows(order, padding)
    if padding is None:
        return order
    if order is DEFAULT_ORDER:  # given alone, a padding makes the order; beside a MaxEntropy, it replaces its own
        return MaxEntropy(padding=padding)
    if type(order) is MaxEntropy:
        return replace(order, padding=padding)
    raise checks.value_error("Batching", "given one of order, padding", padding, "Choose one of the two.")


def _choose_order_of_rows(order: Order, padding: float | None) -> Order:
    """Rows are random by default: what is left of a row is padding, whatever the lengths beside each other are."""
    if padding is None and order is DEFAULT_ORDER:
        return Shuffled()
    if padding is not None or getattr(order, "padding", None) is not None:
        given = order if padding is None else padding
        remedy = "Choose how well rows are filled: Rows(4_096, pool=1_024)."
        raise checks.value_error("padding", "left out beside a cut that packs rows", given, remedy)
    if getattr(order, "mixing", None) is not None:
        remedy = "Rows of a pool are mixed already: Rows(4_096, pool=1_024)."
        raise checks.value_error("mixing", "left out beside a cut that packs rows", order, remedy)
    if getattr(order, "pad_to_edge", False):
        rule = "one that pads to no edges beside a cut that packs rows"
        raise checks.value_error("order", rule, order, "Take Shuffled().")
    return order


# The methods that each choice must have, and an example for the error.
_CHOICES = {
    "cut": (("__call__", "max_cost", "batch_sizes"), "FixedSize(16)"),
    "order": (("__call__",), "Sorted()"),
    "deal": (("portions", "grid"), "Balanced()"),
    "arrange": (("__call__",), "InOrder()"),
    "cost": (("__call__",), "Padded()"),
    "chunks": (("__call__",), "Chunks(50)"),
}


def check_batching(batching: object) -> None:
    """Refuses what is no batching."""
    if not isinstance(batching, Batching):
        remedy = "Make one, such as Batching(budget=20_000)."
        raise checks.type_error("batching", "a Batching", batching, remedy)


def check_choice(name: str, choice: object) -> None:
    """Refuses what is no choice for `name`, such as "cut": a number, a name, and a class that was not called."""
    if choice is None and name == "chunks":
        return
    verbs, example = _CHOICES[name]
    tag = tags.tag_of(choice)
    # Only a tag tells Sorted() in place of a cost: both are called, and the call would fail in the middle of a plan.
    misplaced = tag is not None and tag.partition(".")[0] != _VERB_OF.get(name, name)
    if misplaced or isinstance(choice, type) or not all(callable(getattr(choice, verb, None)) for verb in verbs):
        remedy = f"Give {name}={example}, for example."
        if name == "cut" and isinstance(choice, numbers.Real):
            remedy = f"Give FixedSize({choice}) for sequences, or Budget({choice}) for padded frames. {BUDGET_REMEDY}"
        elif name == "cost" and callable(getattr(choice, "seconds", None)):  # what `measure_step` returns
            remedy = "Give its seconds: cost=step_cost.seconds, and a budget in seconds."
        raise checks.type_error(name, f"a choice such as {example}", choice, remedy)


def _describe(choice: Any) -> Any:
    """A choice as JSON: its tag and fields; one of the user's by its name, as `_names` says."""
    if choice is None:
        return None
    tag = tags.tag_of(choice)
    if tag is None:
        return {"choice": _names.name_of(choice), "repr": _names.parts_of(choice)}
    return {"choice": tag, **{field.name: getattr(choice, field.name) for field in fields(choice)}}


def _make(described: Any) -> Any:
    if described is None:
        return None
    remedy = "Give what Batching.to_json wrote."
    if not isinstance(described, dict) or not isinstance(described.get("choice"), str):
        raise checks.value_error("choice", 'of the form {"choice": ...}', described, remedy)
    kind = tags.CLASSES.get(described["choice"])
    if kind is None:
        remedy = "Make the Batching in code, with the choice itself."
        raise checks.value_error("choice", "one of this package", described["choice"], remedy)
    # JSON has lists alone; the fields that hold several numbers, such as edges, are tuples.
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in described.items()}
    del values["choice"]
    unknown = sorted(set(values) - {field.name for field in fields(kind)})
    if unknown:
        raise checks.value_error("choice", f"without {unknown[0]}", described["choice"], remedy)
    return kind(**values)


_VERB_OF = {"chunks": "chunk"}  # the field is `chunks`, and its tags begin with "chunk."
