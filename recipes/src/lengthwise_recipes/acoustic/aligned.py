"""Aligned: a trained GMM-HMM, the states it gives to every frame, and the file that keeps them.

Training and aligning take minutes and more; a run that is called again reads what it had.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise_recipes.acoustic.em import WordModel
from lengthwise_recipes.acoustic.hmm import WordStates
from lengthwise_recipes.acoustic.mixtures import Mixtures
from lengthwise_recipes.kept import is_whole, pass_over

FILE = "alignment.npz"
PARTS = ("train", "validation", "test")
MIXTURES = ("weights", "means", "variances", "floor")
NAMES = {"key", "states", "stay", "word_error_rate", *PARTS, *MIXTURES}


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned:
    """What a GMM-HMM says of a corpus.

    Attributes:
        model: The GMM-HMM.
        train, validation, test: The state of every frame of these parts, their utterances end to end, [F];
            `frames.NO_LABEL` in test utterances that have no alignment.
        word_error_rate: Of the GMM-HMM on the test part, 0..
    """

    model: WordModel
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
    word_error_rate: float


def read_or_make(folder: Path | None, key: str, make: Callable[[], Aligned]) -> Aligned:
    """Reads what a folder keeps of this key, or makes it and keeps it there.

    Args:
        folder: Made where it is missing; None keeps nothing.
        key: Names all that `make` depends on: what was kept of another key is made anew.
        make: Called where there is nothing to read.
    """
    if folder is None:
        return make()
    path = folder / FILE
    found = _read(path, key)
    if found is None:
        found = make()
        _write(path, key, found)
    return found


def _write(path: Path, key: str, aligned: Aligned) -> None:
    model = aligned.model
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        key=np.array(key),
        states=np.array(json.dumps([model.states.words, model.states.rows, model.states.silence])),
        stay=model.stay,
        word_error_rate=np.array(aligned.word_error_rate),
        train=aligned.train,
        validation=aligned.validation,
        test=aligned.test,
        **{name: getattr(model.mixtures, name) for name in MIXTURES},
    )
    files.write(path, content.getbuffer())


def _read(path: Path, key: str) -> Aligned | None:
    """What the file holds; None where there is none, or it is of another key or no whole file of ours."""
    if not path.exists():
        return None
    if not is_whole(path):
        pass_over("alignment", path, "It is made anew.")
        return None
    with np.load(path, allow_pickle=False) as stored:
        if not set(stored.files) >= NAMES or str(stored["key"]) != key:
            return None
        return _make_aligned(stored)


def _make_aligned(stored: Mapping[str, Any]) -> Aligned:
    words, rows, silence = json.loads(str(stored["states"]))
    states = WordStates(words=tuple(words), rows=tuple(map(tuple, rows)), silence=silence)
    mixtures = Mixtures(**{name: stored[name] for name in MIXTURES})
    return Aligned(
        model=WordModel(states=states, mixtures=mixtures, stay=stored["stay"]),
        train=stored["train"],
        validation=stored["validation"],
        test=stored["test"],
        word_error_rate=float(stored["word_error_rate"]),
    )
