"""Recordings of one voice and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lengthwise_recipes.speech.corpus import Samples


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One sentence, spoken; its sound stays where it is until it is asked for.

    Attributes:
        name: Unlike any other of the corpus.
        text: What is said, as it is written.
        count: Samples, N.
        load: Reads the samples [N], from -1 to 1, the same every time.
        sound: Fingerprint of the samples; empty until they were read.
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
        name: Where they come from, in a few words.
        rate: Samples a second.
        recordings: All that can be used.
        skipped: What was left out, one sentence each.
    """

    name: str
    rate: int
    recordings: tuple[Recording, ...]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.recordings)
