"""The figure of a task: the loss of each strategy minus that of random batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PANELS = {"test_last": "after as many epochs", "test_equal_seconds": "after as much training time"}


def write_figure(document: Mapping[str, Any], path: Path) -> None:
    """Draws the figure of a document of `quality.study`, as read back from JSON."""
    from lengthwise_recipes.pictures import Difference, loss_differences, save

    groups: dict[str, dict[str, list[Difference]]] = {}
    for strategy in document["strategies"]:
        if strategy["label"] != document["reference"]:
            bounds = [strategy["to_random"][panel] for panel in PANELS]
            differences = [Difference(*(bound[name] for name in ("mean", "low", "high"))) for bound in bounds]
            groups.setdefault(group_of(strategy), {})[short_label(strategy)] = differences
    unit = f"test loss minus random's ({document['loss']['unit']}; left is better)"
    title = (
        f"{document['task'].capitalize()}: means of {document['settings']['seeds']} seeds with 95 % intervals of "
        "paired differences, filled where 0 lies outside"
    )
    save(loss_differences(groups, list(PANELS.values()), unit=unit, title=title), path)


def group_of(strategy: Mapping[str, Any]) -> str:
    """Returns the name of the group in which a strategy is compared.

    >>> group_of({"dynamic": False, "padding": 0.05})
    '5 % padding'
    """
    if strategy["dynamic"]:
        return "dynamic sizes"
    return "no knob" if strategy["padding"] is None else f"{100 * strategy['padding']:g} % padding"


def short_label(strategy: Mapping[str, Any]) -> str:
    """Returns the label without the name of its group."""
    return strategy["label"].replace(", dynamic sizes", "")
