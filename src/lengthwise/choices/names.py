"""Names: the names of choices in JSON, in fingerprints and in checkpoints, and in Python.

{"choice": "cut.Budget", "budget": 20000.0}     a choice of this package, by what differs from its defaults
{"choice": "mine:seconds", "repr": "..."}       a choice that the user wrote
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lengthwise import checks
from lengthwise.choices.arrange import CostliestFirst, InOrder, ShortestFirst, ShuffledSteps
from lengthwise.choices.chunk import Chunks
from lengthwise.choices.cost import Padded, Quadratic
from lengthwise.choices.cut import Budget, DynamicSize, FixedSize
from lengthwise.choices.deal import Balanced, InTurn, Mixed, Portions, RandomSteps, Stratified
from lengthwise.choices.order import AlternatedSort, Bucketed, MaxEntropy, SemiSorted, Shuffled, Sorted, Windowed
from lengthwise.choices.rows import Rows

_STAGES = {
    "arrange": (CostliestFirst, InOrder, ShortestFirst, ShuffledSteps),
    "chunk": (Chunks,),
    "cost": (Padded, Quadratic),
    "cut": (Budget, DynamicSize, FixedSize, Rows),
    "deal": (Balanced, InTurn, Mixed, Portions, RandomSteps, Stratified),
    "order": (AlternatedSort, Bucketed, MaxEntropy, SemiSorted, Shuffled, Sorted, Windowed),
}
# The names of choices in JSON, such as "order.Sorted": moving a class to another file does not change its name.
CLASSES: dict[str, Any] = {f"{stage}.{kind.__name__}": kind for stage, kinds in _STAGES.items() for kind in kinds}

# Tags by class, not by name: a subclass of a choice may do anything, and has no tag.
_TAGS = {kind: tag for tag, kind in CLASSES.items()}


def is_custom(choice: object) -> bool:
    """Returns True if the choice is not of this package, but written by the user."""
    return tag_of(choice) is None


def tag_of(choice: object) -> str | None:
    """Returns the tag of a choice of this package, or of its class; None for anything else, also for a subclass.

    >>> tag_of(Sorted()), tag_of(Sorted), tag_of(len)
    ('order.Sorted', 'order.Sorted', None)
    """
    return _TAGS.get(choice if isinstance(choice, type) else type(choice))


def write_choice(value: Any) -> str:
    """Returns the call that makes a choice, without defaults; a number as 20_000 in place of 20000.0.

    >>> write_choice(FixedSize(16, multiple_of=8))
    'lw.FixedSize(16, multiple_of=8)'
    """
    if tag_of(value) is not None:
        arguments = [field for field in fields(value) if field.init]
        # The first argument has no name.
        words = [
            ("" if field is arguments[0] and not field.kw_only else f"{field.name}=")
            + write_choice(getattr(value, field.name))
            for field in arguments
            if getattr(value, field.name) != field.default
        ]
        return f"lw.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"{int(value):_}"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(choice: Any) -> dict[str, Any]:
    """Describes a choice for JSON: its tag, and the fields that differ from their defaults.

    So an option that a later version adds changes no file. `_name_custom` describes a user's choice.

    >>> describe(Budget(200, multiple_of=8))
    {'choice': 'cut.Budget', 'budget': 200.0, 'multiple_of': 8}
    """
    tag = tag_of(choice)
    if tag is None:
        return _name_custom(choice)
    values = {
        field.name: getattr(choice, field.name)
        for field in fields(choice)
        if field.default != getattr(choice, field.name)
    }
    return {"choice": tag, **values}


# The options of the choices of 0.1, a closed list: a new choice has no line. Fingerprints and digests cover all of
# them, and a later option only where it is not the default.
_FIRST_OPTIONS = {
    "arrange.CostliestFirst": "steps",
    "arrange.ShortestFirst": "epochs reverse",
    "chunk.Chunks": "size step",
    "cost.Padded": "dims",
    "cost.Quadratic": "linear quadratic per_sequence per_batch per_length",
    "cut.Budget": "budget oversize max_sequences multiple_of count_multiple_of",
    "cut.DynamicSize": "batch_size rule multiple_of count_multiple_of",
    "cut.FixedSize": "batch_size drop_incomplete multiple_of",
    "cut.Rows": "capacity rows by pool oversize max_in_row",
    **dict.fromkeys(("deal.Balanced", "deal.InTurn", "deal.Mixed", "deal.Stratified"), "tail"),
    "deal.RandomSteps": "tail even",
    "order.AlternatedSort": "bins",
    "order.Bucketed": "size edges buckets by pad_to_edge longer",
    "order.MaxEntropy": "padding scale",
    "order.SemiSorted": "randomization_factor",
    "order.Sorted": "descending",
    "order.Windowed": "window",
}


def spell_out_choice(choice: Any) -> Any:
    """Returns a described choice with the options of 0.1 that it leaves out."""
    kind = CLASSES.get(choice.get("choice", "")) if isinstance(choice, Mapping) else None
    if kind is None:
        return choice
    names = _FIRST_OPTIONS.get(choice["choice"], "").split()
    first = {field.name: field.default for field in fields(kind) if field.name in names}
    return {"choice": choice["choice"]} | first | choice


def _name_custom(choice: Any) -> dict[str, str]:
    """Names a user's choice by module, name and `repr`: the same in every process.

    >>> import functools
    >>> import numpy as np
    >>> _name_custom(functools.partial(np.full, fill_value=3))
    {'choice': 'functools:partial', 'repr': 'functools.partial(<function full>, fill_value=3)'}
    """
    owner = choice if isinstance(getattr(choice, "__qualname__", None), str) else type(choice)
    name = f"{getattr(owner, '__module__', None) or type(choice).__module__}:{owner.__qualname__}"
    # Addresses differ between processes. A spawned process runs the training script under the name `__mp_main__`.
    described = {"choice": name, "repr": _ADDRESS.sub("", repr(choice))}
    return {key: text.replace("__mp_main__", "__main__") for key, text in described.items()}


def make(described: Any) -> Any:
    """Makes the choice that `describe` described. A choice of the user raises: JSON has only its name."""
    remedy = "Give what Batching.to_json wrote."
    if not isinstance(described, dict) or not isinstance(described.get("choice"), str):
        raise checks.value_error("choice", 'of the form {"choice": ...}', described, remedy)
    kind = CLASSES.get(described["choice"])
    if kind is None:
        remedy = "Make the Batching in code, with the choice itself."
        raise checks.value_error("choice", "one of this package", described["choice"], remedy)
    # JSON has lists only; the fields that hold several numbers, such as edges, are tuples.
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in described.items()}
    del values["choice"]
    unknown = sorted(set(values) - {field.name for field in fields(kind)})
    if unknown:
        raise checks.value_error("choice", f"one with a field {unknown[0]}", described["choice"], remedy)
    return kind(**values)
