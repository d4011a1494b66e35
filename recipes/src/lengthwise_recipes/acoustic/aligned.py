"""A trained GMM-HMM with the state of every frame, stored in a file.

Training and aligning take minutes or more, so a second run reads the file of the first.
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
    """A GMM-HMM and its alignment of a corpus.

    Attributes:
        model: The GMM-HMM.
        train, validation, test: The state of every frame of the part, with utterances end to end, [F]. Frames of test
            utterances without an alignment have `frames.NO_LABEL`.
        word_error_rate: Word error rate of the GMM-HMM on the test part, 0 or more.
    """

    model: WordModel
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
    word_error_rate: float


def read_or_make(folder: Path | None, key: str, make: Callable[[], Aligned]) -> Aligned:
    """Reads the alignment with this key from a folder, or makes and stores it.

    Args:
        folder: Created if it is missing; None stores nothing.
        key: Names everything that `make` depends on. A file with another key is replaced.
        make: Called if there is nothing to read.
    """
    if folder is None:
        return make()
    path = folder / FILE
    aligned = _read(path, key)
    if aligned is None:
        aligned = make()
        _write(path, key, aligned)
    return aligned


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
    """Returns None if the file is missing or damaged, has another key, or lacks an array."""
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
