"""How many steps each window of an epoch has: counted once, and kept in a file where that is asked.

    {"facts": {"lengths": "9f...", "seed": 0, "epoch": 3, ...}, "steps": [1310, 1309, -1, -1], "checksum": "3a..."}

-1 stands for a window that was not counted. A file is read for its own facts alone: one that is damaged, or of other
facts, is ignored and written anew. One that cannot be written warns: what it keeps only saves time.

Ranks that count one epoch at the same time share the work through the file, and wait for nobody. Each begins at
another window, goes round, and looks into the file after every few windows for what the others have counted:

    rank 0 of 2    counts windows 0, 1, 2, 3    then finds 4 to 7 in the file
    rank 1 of 2    counts windows 4, 5, 6, 7    then finds 0 to 3 in the file
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks, files

_UNCOUNTED = -1
_TOGETHER = 8  # windows that are counted before the file is looked at


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

    def of(self, numbers: Iterable[int], count: Callable[[int], int], *, begin: float = 0.0) -> NDArray[np.int64]:
        """The steps of the windows `numbers`, by `count` where they were not counted; the file keeps them.

        Args:
            numbers: Of windows.
            count: Plans a window, and returns its steps.
            begin: The share of the windows before the first that is counted here: 0.25 for rank 2 of 8.
        """
        asked = np.fromiter(numbers, np.int64)
        missing = np.unique(asked[self._steps[asked] == _UNCOUNTED])
        missing = np.roll(missing, -int(np.searchsorted(missing, begin * len(self._steps))))
        for start in range(0, len(missing), _TOGETHER):
            together = missing[start : start + _TOGETHER]
            uncounted = together[self._steps[together] == _UNCOUNTED].tolist()
            for number in uncounted:
                self._steps[number] = count(number)
            if uncounted:
                self._exchange()
        return self._steps[asked]

    def _exchange(self) -> None:
        """Takes from the file what others counted, and writes it where it lacks something."""
        if self.path is None:
            return
        # Of two that write at once the later one is kept. What the other wrote is in its own memory, and written again.
        found = _read(self.path, self._facts, len(self._steps))
        self._steps = np.maximum(self._steps, found)
        if not np.array_equal(self._steps, found):
            content = {"facts": self._facts, "steps": self._steps.tolist()}
            try:
                files.write(self.path, json.dumps(content | {"checksum": _digest(content)}) + "\n")
            except OSError as error:  # a full disk, say: no reason to end a training on one of its ranks
                told = os.strerror(error.errno) if error.errno else str(error)
                remedy = f"Until it is, every process counts by itself ({told})."
                rule = "a folder that can be written to"
                checks.warn(checks.sentence("counts", rule, str(self.path.parent), remedy))


def _read(path: Path | None, facts: dict[str, Any], windows: int) -> NDArray[np.int64]:
    """The counts that a file of these facts holds; where there is no such file, none is counted."""
    uncounted = np.full(windows, _UNCOUNTED, np.int64)
    if path is None:
        return uncounted
    try:
        content = json.loads(path.read_text())
        checksum = content.pop("checksum")
        if content["facts"] != facts or checksum != _digest(content) or len(content["steps"]) != windows:
            return uncounted
        steps = np.array(content["steps"], np.int64)
        return steps if steps.ndim == 1 and steps.min(initial=0) >= _UNCOUNTED else uncounted
    # No file, no text, no JSON, or JSON of another form: whatever it is, counting goes on without it.
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return uncounted


def _digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()
