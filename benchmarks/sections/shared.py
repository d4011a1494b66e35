"""Helpers of the sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lengthwise_recipes.pages import table


def some_rows(heads: Sequence[str], rows: Sequence[tuple[str, ...]], shown: Callable[[tuple[str, ...]], bool]) -> str:
    """Returns a table of the shown rows, and a sentence that says how many there are."""
    short_rows = [row for row in rows if shown(row)]
    return f"{table(heads, short_rows)}\n\nThe table has {len(short_rows)} of {len(rows)} rows."


def processor(machine: dict[str, Any]) -> str:
    """Returns the processor or GPU, and the number of threads."""
    where = machine.get("device_name") or machine.get("processor") or machine.get("cpu")
    threads = f", {machine['threads']} thread{'s' * (machine['threads'] > 1)}" if "threads" in machine else ""
    return f"{where}{threads}"
