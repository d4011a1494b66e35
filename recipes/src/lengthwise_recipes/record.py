"""Writes results as JSON, with the date, the command, the machine and the versions."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lengthwise import files

TABLES = ("rows", "timed")  # of a study


def write(path: Path, document: dict[str, Any], *, module: str) -> None:
    """Writes `document` with its origin: the command `python -m module`, the machine and the versions."""
    facts = {
        "date": now(),
        "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
        "machine": {"processor": processor_name(), "system": platform.system(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("lengthwise", "numpy", "numba")},
    }
    files.write(path, json.dumps({**facts, **document}, indent=1) + "\n")


def write_study(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document with a study, its rows as columns, each on one line: a quarter of the bytes."""
    study, columns = dict(document["study"]), {}
    for part in (part for part in TABLES if study.get(part)):
        names = {name: f"column {name} of {part}" for name in study[part][0]}
        columns |= {word: [row[name] for row in study[part]] for name, word in names.items()}
        study[part] = names
    text = json.dumps({**document, "study": study}, indent=1, allow_nan=False) + "\n"
    for word, values in reversed(columns.items()):  # a column may hold the word that stands for a later one
        text = text.replace(json.dumps(word), json.dumps(values, allow_nan=False), 1)
    files.write(path, text)


def read(path: Path) -> dict[str, Any]:
    """Reads a document; the rows of its study become dicts again."""
    document = json.loads(path.read_text(encoding="utf-8"))
    study = document.get("study", {})
    for part in TABLES:
        if isinstance(columns := study.get(part), dict):
            study[part] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return document


def now() -> str:
    """Returns the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def processor_name(table: Path = Path("/proc/cpuinfo")) -> str:
    """Returns the model name of the first processor; without `table`, the name of `platform`."""
    if table.exists():
        for line in table.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
