"""The figure of a study: validation loss against time; with few strategies also against epochs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_figure(document: Mapping[str, Any], path: Path) -> None:
    """Draws the figure of a study from its document, also one read from JSON."""
    from lengthwise_recipes.pictures import TOGETHER, learning_curves, learning_panels, save

    data, machine = document["data"], document["machine"]
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    where = machine["device_name"] or f"{machine['cpu']}, {threads}"
    strategies = {row["strategy"] for row in document["rows"]}
    draw = learning_curves if len(strategies) <= TOGETHER else learning_panels
    save(draw(document["rows"], title=f"{data['train_samples']:,} {data['name']} ({where})"), path)
