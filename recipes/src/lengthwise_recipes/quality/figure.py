"""The figure of a task: how far each strategy's loss is from that of random batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PANELS = {"test_last": "test, after as many epochs", "test_equal_seconds": "test, after as much training time"}


def write_figure(document: Mapping[str, Any], path: Path) -> None:
    """Draws the figure of a document of `quality.study`, as read back from JSON."""
    from lengthwise import plot
    from lengthwise_recipes.pictures import Difference, loss_differences

    groups: dict[str, dict[str, list[Difference]]] = {}
    for each in document["strategies"]:
        if each["label"] != document["reference"]:
            bounds = [each["to_random"][panel] for panel in PANELS]
            drawn = [Difference(*(found[name] for name in ("mean", "low", "high"))) for found in bounds]
            groups.setdefault(group_of(each), {})[short_label(each)] = drawn
    unit = f"loss less random's ({document['loss']['unit']})"
    title = f"{document['task']}: {document['settings']['seeds']} seeds, 95 % intervals of paired differences"
    plot.save(loss_differences(groups, list(PANELS.values()), unit=unit, title=title), path)


def group_of(strategy: Mapping[str, Any]) -> str:
    """What a strategy is compared within.

    >>> group_of({"dynamic": False, "padding": 0.05})
    '5 % padding'
    """
    if strategy["dynamic"]:
        return "dynamic sizes"
    return "no knob" if strategy["padding"] is None else f"{100 * strategy['padding']:g} % padding"


def short_label(strategy: Mapping[str, Any]) -> str:
    """A label without what its group says already."""
    return strategy["label"].replace(", dynamic sizes", "")
