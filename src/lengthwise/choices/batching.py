"""Batching: one choice of each verb, and its JSON."""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass, fields
from typing import Any

from lengthwise import _names, checks
from lengthwise.choices import arrange, chunk, cost, cut, deal, order, tags

_RANDOM = order.Shuffled()  # the default itself, which one that was given is not


@checks.show_call("Batching(budget=20_000), or Batching(cut=FixedSize(16))")
@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """How batches are made: one choice of each verb.

    For those who do not want to choose, `Batching(budget=20_000, padding=0.1)` is as random as 10 % padding allows in
    batches of at most 20,000 padded frames: `MaxEntropy(padding=0.1)`, `Budget(20_000)`, `ShuffledSteps()`.

    Args:
        cut: Which sequences of the order share a batch; or give `budget`.
        order: In which order they are cut; random where neither `order` nor `padding` is given.
        deal: Which rank takes which batch.
        arrange: In which order the steps are taken.
        cost: What a batch costs: count x longest, unless said. Checkpoints name one of your own: a function by module
            and name, a partial by its parts, a dataclass by its fields, another object by its class. Where two share
            a name, as the lambdas of a module do, only the fingerprint of the plan tells them apart.
        chunks: Take sequences apart first.
        budget: Short for `cut=Budget(budget)`.
        padding: Short for `order=MaxEntropy(padding=padding)`.

    Raises:
        ValueError: Neither or both of `cut` and `budget`, or both of `order` and `padding`.
        TypeError: A choice of another verb, a class instead of a choice, or no choice at all.

    >>> Batching(budget=20_000, padding=0.1).order
    MaxEntropy(padding=0.1, scale=None, noise='optimal')
    """

    cut: cut.Cut = None  # type: ignore[assignment]  # set below where `budget` is given
    order: order.Order = _RANDOM
    deal: deal.Deal = deal.Balanced()
    arrange: arrange.Arrangement = arrange.ShuffledSteps()
    cost: cost.Cost = cost.Padded()
    chunks: chunk.Chunks | None = None
    budget: InitVar[float | None] = None
    padding: InitVar[float | None] = None

    def __post_init__(self, budget: float | None, padding: float | None) -> None:
        if (self.cut is None) == (budget is None):
            given = (self.cut, budget)
            raise checks.value_error("Batching", "given one of cut, budget", given, "Choose one: budget=20_000, say.")
        if padding is not None and self.order is not _RANDOM:
            raise checks.value_error("Batching", "given one of order, padding", padding, "Choose one of the two.")
        if budget is not None:
            object.__setattr__(self, "cut", cut.Budget(budget))
        if padding is not None:
            object.__setattr__(self, "order", order.MaxEntropy(padding=padding))
        for name, (verbs, example) in _CHOICES.items():
            _check_choice(name, getattr(self, name), verbs, example)

    def to_json(self) -> str:
        """The choices as JSON, from which `from_json` makes them again."""
        return json.dumps({field.name: _describe(getattr(self, field.name)) for field in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Batching:
        """Makes the batching that `to_json` wrote; a cost of your own cannot be made from its name, and raises."""
        remedy = "Give what Batching.to_json wrote."
        try:
            described = json.loads(text)
        except ValueError as error:
            raise checks.value_error("text", "JSON", text, remedy) from error
        if not isinstance(described, dict) or set(described) - {field.name for field in fields(cls)}:
            raise checks.value_error("text", "a batching as JSON", text, remedy)
        return cls(**{name: _make(choice) for name, choice in described.items()})


# What each choice must be able to do, and one that can.
_CHOICES = {
    "cut": (("__call__", "limit", "batch_sizes"), "FixedSize(16)"),
    "order": (("__call__",), "Sorted()"),
    "deal": (("portions", "grid"), "Balanced()"),
    "arrange": (("__call__",), "InOrder()"),
    "cost": (("__call__",), "Padded()"),
    "chunks": (("__call__",), "Chunks(50)"),
}


def _check_choice(name: str, choice: object, verbs: tuple[str, ...], example: str) -> None:
    """Refuses a number, a name, and a class that was not called."""
    if choice is None and name == "chunks":
        return
    tag = tags.tag_of(choice)
    misplaced = tag is not None and tag.partition(".")[0] != _VERB_OF.get(name, name)
    if misplaced or isinstance(choice, type) or not all(callable(getattr(choice, verb, None)) for verb in verbs):
        raise checks.type_error(name, f"a choice such as {example}", choice, f"Give {name}={example}, say.")


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
        remedy = "Make the Batching in code, with the cost itself."
        raise checks.value_error("choice", "one of this package", described["choice"], remedy)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in described.items()}
    del values["choice"]
    unknown = sorted(set(values) - {field.name for field in fields(kind)})
    if unknown:
        raise checks.value_error("choice", f"without {unknown[0]}", described["choice"], remedy)
    return kind(**values)


_VERB_OF = {"chunks": "chunk"}  # where a field is not called as its tags are
