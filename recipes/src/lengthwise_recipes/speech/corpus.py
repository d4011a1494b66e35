"""Utterances for training and testing, from any source.

samples  [N] float32   the sound of one utterance, from -1 to 1, one channel
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error

Samples = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Utterance:
    """An utterance of one speaker; `load` reads its sound on demand.

    Attributes:
        name: Unique in the corpus.
        speaker: The speaker; if unknown, `name`.
        words: The spoken words; of a text they are what stands between blanks.
        count: Number of samples, N.
        load: Reads or makes the samples, the same every time.
        sound: Fingerprint of the samples; empty before they are read.
    """

    name: str
    speaker: str
    words: tuple[str, ...]
    count: int
    load: Callable[[], Samples]
    sound: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Utterances with the same sampling rate.

    Attributes:
        name: The source, in a few words.
        rate: Samples per second.
        utterances: The usable utterances.
        skipped: For each utterance that was left out, a sentence that says why.
    """

    name: str
    rate: int
    utterances: tuple[Utterance, ...]
    skipped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for utterance in self.utterances:
            if utterance.name in seen:
                raise value_error("utterances", "of different names", utterance.name, "Rename one of the two.")
            seen.add(utterance.name)

    def __len__(self) -> int:
        return len(self.utterances)

    @property
    def transcripts(self) -> list[tuple[str, ...]]:
        return [utterance.words for utterance in self.utterances]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, sorted."""
        return tuple(sorted({word for words in self.transcripts for word in words}))
