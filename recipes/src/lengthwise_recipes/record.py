"""Writes results as JSON, with the date, the command, the machine and the versions."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lengthwise import files


def write(path: Path, document: dict[str, Any], *, module: str) -> None:
    """Writes `document` with its origin: the command `python -m module`, the machine and the versions."""
    facts = {
        "date": now(),
        "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
        "machine": {"processor": processor_name(), "system": platform.system(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("lengthwise", "numpy", "numba")},
    }
    files.write(path, json.dumps({**facts, **document}, indent=1) + "\n")


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
