"""Checkpoints: what each run of a study needs to go on after any of its epochs, in a folder of the study.

A damaged one is passed over, so that a run goes on from the one before it. One of another run or study is refused:
every checkpoint says whose it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes.kept import is_whole, pass_over

STUDY = "study.json"  # what the checkpoints are of
KEPT = 2  # of each run: ranks that are ended together may be one epoch apart
OWNER = "of"  # whose a checkpoint is


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints in a folder. A run is named by a text; each of its ranks keeps its own.

    A checkpoint is written whole or not at all, so that a run may be ended at any time.
    """

    folder: Path

    def claim(self, study: Mapping[str, object]) -> None:
        """Makes the folder and notes what is trained, or checks that it was made for the same.

        Args:
            study: What must stay the same for a run to go on, as plain JSON.

        Raises:
            ValueError: The folder is another study's.
        """
        path = self.folder / STUDY
        text = json.dumps(study, indent=1, sort_keys=True) + "\n"
        found = _read_note(path)
        if found not in (None, text):
            remedy = "Name another folder, or remove this one."
            raise value_error("checkpoints", "of the same data, strategies and settings", str(self.folder), remedy)
        if found is None:
            if path.exists():  # each checkpoint still says which study's it is
                pass_over("study", path, "It is written anew.")
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write(path, text)

    def epochs(self, run: str, rank: int) -> list[int]:
        """The epochs after which a rank's state is there, rising, whole or not."""
        stem = _stem(run, rank)
        ends = (path.stem.removeprefix(f"{stem}_epoch") for path in self.folder.glob(f"{stem}_epoch*.pt"))
        return sorted(int(end) for end in ends if end.isdecimal())

    def save(self, run: str, rank: int, epoch: int, state: Mapping[str, Any]) -> None:
        """Keeps a rank's state after an epoch, and the one before it."""
        content = io.BytesIO()
        torch.save({**state, OWNER: self._owner(run, rank, epoch)}, content)
        files.write(self._path(run, rank, epoch), content.getbuffer())
        for old in self.epochs(run, rank)[:-KEPT]:
            self._path(run, rank, old).unlink()

    def load(self, run: str, rank: int) -> dict[int, dict[str, Any]]:
        """What was saved after each epoch, on the CPU: whoever takes a state moves it, but for counts of optimisers.

        Warns of each that is damaged, and leaves it out.

        Raises:
            ValueError: One was saved of another run or study.
        """
        states = {}
        for epoch in self.epochs(run, rank):
            path = self._path(run, rank, epoch)
            state = _state(path)
            if state is None:
                pass_over("checkpoint", path, "The run goes on from the checkpoint before it, or starts anew.")
                continue
            if state.pop(OWNER, None) != self._owner(run, rank, epoch):
                remedy = "Remove it: the run goes on from the checkpoint before it, or starts anew."
                raise value_error("checkpoint", f"of {run!r} after epoch {epoch}", "of another", remedy, at=str(path))
            states[epoch] = state
        return states

    def _owner(self, run: str, rank: int, epoch: int) -> str:
        study = hashlib.blake2b((_read_note(self.folder / STUDY) or "").encode(), digest_size=8).hexdigest()
        return f"{run}, rank {rank}, epoch {epoch}, study {study}"

    def _path(self, run: str, rank: int, epoch: int) -> Path:
        return self.folder / f"{_stem(run, rank)}_epoch{epoch}.pt"


def _stem(run: str, rank: int) -> str:
    """The name of a run's files.

    >>> _stem("Q = 6, 2 processes, parameter, seed 0", 1)
    'Q-6-2-processes-parameter-seed-0_80a4e314_rank1'
    """
    digest = hashlib.blake2b(run.encode(), digest_size=4).hexdigest()  # names may differ in what hyphens stand for
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', run).strip('-')}_{digest}_rank{rank}"


def _read_note(path: Path) -> str | None:
    """What a study noted of itself; None where it did not, or no longer can be read."""
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        json.loads(text)
    except ValueError:  # no UTF-8, or no JSON
        return None
    return text


def _state(path: Path) -> dict[str, Any] | None:
    """What a checkpoint holds; None where it is damaged."""
    if not is_whole(path):
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, pickle.UnpicklingError):  # a whole archive, but none of PyTorch's
        return None
    return state if isinstance(state, dict) else None
