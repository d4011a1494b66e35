"""Writes results with their date, machine and command."""

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
    """Returns a parser whose --help prints the docstring of the benchmark."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def hardware() -> str:
    """Returns the model name of the processor."""
    table = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.+)", table.read_text()) if table.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def name_program(path: str) -> str:
    """Returns the path of a benchmark in the repository; `python -m` gives the absolute path."""
    program, root = Path(path).resolve(), Path(__file__).resolve().parents[1]
    return program.relative_to(root).as_posix() if program.is_relative_to(root) else path


def write(kind: str, document: dict[str, Any], *, device_name: str = "") -> Path:
    """Writes benchmarks/results/<kind>_<hardware>_<date>.json; the hardware is the GPU if there is a `device_name`."""
    now = datetime.now(UTC)
    slug = re.sub(r"[^a-z0-9]+", "-", (device_name or hardware()).lower()).strip("-")
    system = {"system": platform.system(), "python": platform.python_version()}
    facts = {
        "what": kind,
        "date": now.isoformat(timespec="seconds"),
        "command": shlex.join(["python", name_program(sys.argv[0]), *sys.argv[1:]]),
        "machine": {"processor": hardware(), **system} | ({"device_name": device_name} if device_name else {}),
        "versions": {name: version(name) for name in ("lengthwise", "numpy", "numba")},
    }
    path = RESULTS / f"{kind}_{slug}_{now:%Y-%m-%d}.json"
    files.write(path, json.dumps({**facts, **document}, indent=1) + "\n")
    return path
