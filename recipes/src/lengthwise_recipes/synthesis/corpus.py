"""Recordings of one voice with their texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lengthwise_recipes.speech.corpus import Samples


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """A spoken sentence; `load` reads the sound on demand.

    Attributes:
        name: Unique in the corpus.
        text: The written text.
        count: Number of samples, N.
        load: Reads the samples [N], from -1 to 1, the same every time.
        sound: Fingerprint of the samples; empty before they are read.
    """

    name: str
    text: str
    count: int
    load: Callable[[], Samples]
    sound: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeechCorpus:
    """Recordings with the same sampling rate.

    Attributes:
        name: The source, in a few words.
        rate: Samples per second.
        recordings: The usable recordings.
        skipped: For each recording that was left out, a sentence that says why.
    """

    name: str
    rate: int
    recordings: tuple[Recording, ...]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.recordings)
