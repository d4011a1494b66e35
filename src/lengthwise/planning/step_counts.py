"""How many steps each window of an epoch has: counted once, and kept in a file where that is asked.

    {"facts": {"lengths": "9f...", "seed": 0, "epoch": 3, ...}, "steps": [1310, 1309, -1, -1], "checksum": "3a..."}

-1 stands for a window that was not counted. A file is read for its own facts alone: one that is damaged, or of other
facts, is ignored and written anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files

UNCOUNTED = -1


class StepCounts:
    """The steps of the windows of one epoch; a window is counted when it is first asked for.

    Args:
        facts: What the counts depend on.
        windows: How many windows the epoch has.
        folder: Where the file is kept, `steps-<16 hex digits of the facts>.json`; None for nowhere.
    """

    def __init__(self, facts: Mapping[str, Any], windows: int, folder: Path | None) -> None:
        # Through JSON, so that what is compared with a file is what a file can hold.
        self._facts: dict[str, Any] = json.loads(json.dumps(facts))
        self.path: Path | None = None if folder is None else folder / f"steps-{_digest(self._facts)}.json"
        self._steps: NDArray[np.int64] = _read(self.path, self._facts, windows)

    def of(self, numbers: Iterable[int], count: Callable[[int], int]) -> NDArray[np.int64]:
        """The steps of the windows `numbers`, by `count` where they were not counted; then the file is written."""
        asked = np.fromiter(numbers, np.int64)
        missing = asked[self._steps[asked] == UNCOUNTED]
        for number in missing.tolist():
            self._steps[number] = count(number)
        if len(missing) and self.path is not None:
            content = {"facts": self._facts, "steps": self._steps.tolist()}
            files.write(self.path, json.dumps(content | {"checksum": _digest(content)}) + "\n")
        return self._steps[asked]


def _read(path: Path | None, facts: dict[str, Any], windows: int) -> NDArray[np.int64]:
    """The counts that a file of these facts holds; where there is no such file, none is counted."""
    uncounted = np.full(windows, UNCOUNTED, np.int64)
    if path is None:
        return uncounted
    try:
        content = json.loads(path.read_text())
        checksum = content.pop("checksum")
        if content["facts"] != facts or checksum != _digest(content) or len(content["steps"]) != windows:
            return uncounted
        return np.array(content["steps"], np.int64)
    # No file, no text, no JSON, or JSON of another form: whatever it is, counting goes on without it.
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return uncounted


def _digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()
