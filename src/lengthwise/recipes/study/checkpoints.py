"""Checkpoints: what each run of a study needs to go on after any of its epochs, in a folder of the study."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lengthwise import _files
from lengthwise._checks import value_error

STUDY = "study.json"  # what the checkpoints are of
KEPT = 2  # of each run: ranks that are ended together may be one epoch apart


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
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _files.write(path, text)
        elif path.read_text(encoding="utf-8") != text:
            remedy = "Name another folder, or remove this one."
            raise value_error("checkpoints", "of the same data, strategies and settings", str(self.folder), remedy)

    def epochs(self, run: str, rank: int) -> list[int]:
        """The epochs after which a rank's state is there, rising."""
        pattern = f"{_stem(run, rank)}_epoch*.pt"
        return sorted(int(path.stem.rpartition("_epoch")[2]) for path in self.folder.glob(pattern))

    def save(self, run: str, rank: int, epoch: int, state: Mapping[str, Any]) -> None:
        """Keeps a rank's state after an epoch, and the one before it."""
        content = io.BytesIO()
        torch.save(dict(state), content)
        _files.write(self._path(run, rank, epoch), content.getbuffer())
        for old in self.epochs(run, rank)[:-KEPT]:
            self._path(run, rank, old).unlink()

    def load(self, run: str, rank: int, epoch: int) -> dict[str, Any]:
        """What was saved, on the CPU: whoever takes the state moves it, but for counts that optimisers keep there."""
        return torch.load(self._path(run, rank, epoch), map_location="cpu", weights_only=True)

    def _path(self, run: str, rank: int, epoch: int) -> Path:
        return self.folder / f"{_stem(run, rank)}_epoch{epoch}.pt"


def _stem(run: str, rank: int) -> str:
    """The name of a run's files.

    >>> _stem("Q = 6, 2 processes, parameter, seed 0", 1)
    'Q-6-2-processes-parameter-seed-0_80a4e314_rank1'
    """
    digest = hashlib.blake2b(run.encode(), digest_size=4).hexdigest()  # names may differ in what hyphens stand for
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', run).strip('-')}_{digest}_rank{rank}"
