"""The figure of a study: validation loss against time, and of few strategies against epochs too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_figure(document: Mapping[str, Any], path: Path) -> None:
    """Draws the figure of a study, of its document or of that as read back from JSON."""
    from lengthwise_recipes.pictures import TOGETHER, learning_curves, learning_panels, save

    title = title_of(document["data"], document["machine"])
    few = len({row["strategy"] for row in document["rows"]}) <= TOGETHER
    draw = learning_curves if few else learning_panels
    save(draw(document["rows"], title=title), path)


def title_of(data: Mapping[str, object], machine: Mapping[str, object]) -> str:
    """What was trained on, and on which machine."""
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    where = machine["device_name"] or f"{machine['cpu']}, {threads}"
    return f"{data['train_samples']:,} {data['name']} ({where})"
