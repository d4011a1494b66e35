"""Recordings of one voice with their texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lengthwise_recipes.speech.corpus import Samples


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """A spoken sentence; `load` reads its sound when it is needed.

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
    """Recordings of one sampling rate.

    Attributes:
        name: The source, in a few words.
        rate: Samples per second.
        recordings: The usable recordings.
        skipped: A sentence for each that was left out.
    """

    name: str
    rate: int
    recordings: tuple[Recording, ...]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.recordings)
