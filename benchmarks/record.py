"""What every result carries: when, where and by which command it was measured."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lengthwise import files

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))  # real lengths


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that prints a benchmark's own docstring, so that --help never measures anything."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def hardware() -> str:
    """The model name of the processor."""
    table = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.+)", table.read_text()) if table.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def name_program(path: str) -> str:
    """The path of a benchmark within the repository: `python -m benchmarks.planning` is told the whole path."""
    program, root = Path(path).resolve(), Path(__file__).resolve().parents[1]
    return program.relative_to(root).as_posix() if program.is_relative_to(root) else path


def write(what: str, document: dict[str, Any], *, device_name: str = "") -> Path:
    """Writes benchmarks/results/<what>_<hardware>_<date>.json; a GPU that it was measured on names it."""
    now = datetime.now(UTC)
    slug = re.sub(r"[^a-z0-9]+", "-", (device_name or hardware()).lower()).strip("-")
    system = {"system": platform.system(), "python": platform.python_version()}
    facts = {
        "what": what,
        "date": now.isoformat(timespec="seconds"),
        "command": shlex.join(["python", name_program(sys.argv[0]), *sys.argv[1:]]),
        "machine": {"processor": hardware(), **system} | ({"device_name": device_name} if device_name else {}),
        "versions": {name: version(name) for name in ("lengthwise", "numpy", "numba")},
    }
    path = RESULTS / f"{what}_{slug}_{now:%Y-%m-%d}.json"
    files.write(path, json.dumps({**facts, **document}, indent=1) + "\n")
    return path
