"""Counts the files of the package that one plan enters, by a profile. A reader must open these to follow the plan.

    python benchmarks/files_entered.py          the default plan, and random batches of a fixed size

Imports do not count. A kernel counts in the file that calls it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import lengthwise as lw

ROOT = Path(lw.__file__).parent
PLANS = {
    "default": lw.Batching(budget=20_000),
    "random batches of a fixed size": lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled()),
}


def files_entered(call: Callable[[], Any]) -> list[str]:
    """Returns the files of the package whose functions run in the call, sorted."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        if event == "call":
            entered.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = (Path(name) for name in entered if name.startswith(str(ROOT)) and "_kernels" not in name)
    return sorted(path.relative_to(ROOT).as_posix() for path in inside)


def plan(batching: lw.Batching) -> list[str]:
    """Returns the files that a first plan of 300 lengths enters."""
    lengths = lw.example_lengths()[:300]
    return files_entered(lambda: lw.make_plan(lengths, batching, world_size=8))


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for name, batching in PLANS.items():
        files = plan(batching)
        print(f"{name}: {len(files)}", *files, sep="\n  ")
