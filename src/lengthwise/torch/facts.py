"""Compares facts that two ranks, or a checkpoint and the run that goes on from it, must share."""

from __future__ import annotations

from collections.abc import Mapping

from lengthwise import checks
from lengthwise.planning.plan import PlanMismatchError


def check_alike(
    known: Mapping[str, object], facts: Mapping[str, object], *, whose: str, remedy: str, at: str = ""
) -> None:
    """Refuses `facts` that differ from the known ones.

    Raises:
        PlanMismatchError: The sentence names the first fact that differs (or the part of it), and both values.

    >>> known = {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 200.0}}
    >>> check_alike(known, {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 201.0}}, whose="mine", remedy="Ask.")
    Traceback (most recent call last):
    lengthwise.planning.plan.PlanMismatchError: `cut.budget` must be mine, 200.0, but is 201.0. Ask.
    """
    for name, value in known.items():
        if facts[name] != value:
            part, expected, given = _difference(name, value, facts[name])
            rule = f"{whose}, {checks.show_value(expected)}"
            raise PlanMismatchError(checks.sentence(part, rule, given, remedy, at=at))


def _difference(name: str, known: object, given: object) -> tuple[str, object, object]:
    """Of two facts that differ, the first part that does: its name, and its value in both."""
    if isinstance(known, Mapping) and isinstance(given, Mapping):
        # Down to the part: "cut.budget", 200.0 and 201.0, and not two batchings of five lines each.
        for key in known:
            if key in given and known[key] != given[key]:
                return _difference(f"{name}.{key}", known[key], given[key])
    return name, known, given
