"""Checkpoints: the state of each run of a study after its epochs, in a folder of the study.

A damaged checkpoint is skipped: the run continues from the previous one. Every checkpoint names its run and study; one
of another run or study raises an error.
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

STUDY = "study.json"  # describes the study of the checkpoints
KEPT = 2  # checkpoints of each run: interrupted ranks may be one epoch apart
OWNER = "of"  # key of the run and study of a checkpoint


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints in a folder. A run has a name; each of its ranks has its own checkpoints.

    A checkpoint is written whole or not at all, so a run may be interrupted at any time.
    """

    folder: Path

    def claim(self, study: Mapping[str, object]) -> None:
        """Makes the folder and writes `study` to it, or checks that it belongs to the same study.

        Args:
            study: Everything that must stay the same to continue, as plain JSON.

        Raises:
            ValueError: The folder belongs to another study.
        """
        path = self.folder / STUDY
        text = json.dumps(study, indent=1, sort_keys=True) + "\n"
        note = _read_note(path)
        if note not in (None, text):
            remedy = "Name another folder, or remove this one."
            raise value_error("checkpoints", "of the same data, strategies and settings", str(self.folder), remedy)
        if note is None:
            if path.exists():  # each checkpoint still names its study
                pass_over("study", path, "It is written again.")
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write(path, text)

    def epochs(self, run: str, rank: int) -> list[int]:
        """Returns the epochs with a checkpoint of a rank, rising, also damaged ones."""
        stem = _stem(run, rank)
        ends = (path.stem.removeprefix(f"{stem}_epoch") for path in self.folder.glob(f"{stem}_epoch*.pt"))
        return sorted(int(end) for end in ends if end.isdecimal())

    def save(self, run: str, rank: int, epoch: int, state: Mapping[str, Any]) -> None:
        """Writes the state of a rank after an epoch, and deletes all but the last `KEPT`."""
        content = io.BytesIO()
        torch.save({**state, OWNER: self._owner(run, rank, epoch)}, content)
        files.write(self._path(run, rank, epoch), content.getbuffer())
        for old in self.epochs(run, rank)[:-KEPT]:
            self._path(run, rank, old).unlink()

    def load(self, run: str, rank: int) -> dict[int, dict[str, Any]]:
        """Reads the states of a rank by epoch. Their tensors are on the CPU.

        Warns of damaged checkpoints and leaves them out.

        Raises:
            ValueError: A checkpoint is of another run or study.
        """
        states = {}
        for epoch in self.epochs(run, rank):
            path = self._path(run, rank, epoch)
            state = _state(path)
            if state is None:
                pass_over("checkpoint", path, "The run continues from the previous checkpoint, or starts again.")
                continue
            if state.pop(OWNER, None) != self._owner(run, rank, epoch):
                remedy = "Remove it: the run continues from the previous checkpoint, or starts again."
                raise value_error("checkpoint", f"of {run!r} after epoch {epoch}", "of another", remedy, at=str(path))
            states[epoch] = state
        return states

    def _owner(self, run: str, rank: int, epoch: int) -> str:
        study = hashlib.blake2b((_read_note(self.folder / STUDY) or "").encode(), digest_size=8).hexdigest()
        return f"{run}, rank {rank}, epoch {epoch}, study {study}"

    def _path(self, run: str, rank: int, epoch: int) -> Path:
        return self.folder / f"{_stem(run, rank)}_epoch{epoch}.pt"


def _stem(run: str, rank: int) -> str:
    """Returns the start of the file names of a run.

    >>> _stem("Q = 6, 2 processes, parameter, seed 0", 1)
    'Q-6-2-processes-parameter-seed-0_80a4e314_rank1'
    """
    # The digest tells names apart that differ only in characters that become hyphens.
    digest = hashlib.blake2b(run.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', run).strip('-')}_{digest}_rank{rank}"


def _read_note(path: Path) -> str | None:
    """Reads the description of a study; None if it is missing or damaged."""
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        json.loads(text)
    except ValueError:  # no UTF-8, or no JSON
        return None
    return text


def _state(path: Path) -> dict[str, Any] | None:
    """Reads a checkpoint; None if it is damaged."""
    if not is_whole(path):
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, pickle.UnpicklingError):  # a whole archive, but not from PyTorch
        return None
    return state if isinstance(state, dict) else None
