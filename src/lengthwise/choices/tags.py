"""Tags: what each choice is called in JSON, and so in checkpoints, plan files and fingerprints.

A tag stays when a class moves to another file, or gets another name: it is written here, and found nowhere else.
"""

from __future__ import annotations

from typing import Any

from lengthwise.choices import arrange, chunk, cost, cut, deal, order, rows

CLASSES: dict[str, Any] = {
    "arrange.CostliestFirst": arrange.CostliestFirst,
    "arrange.InOrder": arrange.InOrder,
    "arrange.ShortestFirst": arrange.ShortestFirst,
    "arrange.ShuffledSteps": arrange.ShuffledSteps,
    "chunk.Chunks": chunk.Chunks,
    "cost.Padded": cost.Padded,
    "cost.Quadratic": cost.Quadratic,
    "cut.Budget": cut.Budget,
    "cut.DynamicSize": cut.DynamicSize,
    "cut.FixedSize": cut.FixedSize,
    "cut.Rows": rows.Rows,
    "deal.Balanced": deal.Balanced,
    "deal.InTurn": deal.InTurn,
    "deal.Mixed": deal.Mixed,
    "deal.Portions": deal.Portions,
    "deal.RandomSteps": deal.RandomSteps,
    "deal.Stratified": deal.Stratified,
    "order.AlternatedSort": order.AlternatedSort,
    "order.Bucketed": order.Bucketed,
    "order.MaxEntropy": order.MaxEntropy,
    "order.SemiSorted": order.SemiSorted,
    "order.Shuffled": order.Shuffled,
    "order.Sorted": order.Sorted,
    "order.Windowed": order.Windowed,
}

# By class and not by name: a class that extends a choice may do anything, and has no tag.
_TAGS = {kind: tag for tag, kind in CLASSES.items()}


def tag_of(choice: object) -> str | None:
    """The tag of a choice of this package, or of its class; None of anything else, and of what extends a choice.

    >>> tag_of(order.Sorted()), tag_of(order.Sorted), tag_of(len)
    ('order.Sorted', 'order.Sorted', None)
    """
    return _TAGS.get(choice if isinstance(choice, type) else type(choice))
