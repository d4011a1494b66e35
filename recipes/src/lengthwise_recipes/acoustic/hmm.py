"""Hidden Markov models of words: left to right, no state skipped, silence where the speaker pauses.

    silence? word silence? word ... silence?

Words are a row of positions, each with a state. `graph` finds the best path through them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_whole, value_error


@dataclass(frozen=True, kw_only=True, slots=True)
class WordStates:
    """The states of every word. The states of silence come first, and no word has them.

    Attributes:
        words: The vocabulary, V words, without silence.
        rows: States of each word in their order; each lasts at least one frame. Words may share states.
        silence: Number of silence states: they are 0 up to this.
    """

    words: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    silence: int = 1
    _numbers: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words or len(set(self.words)) != len(self.words):
            raise value_error("words", "at least one, and each once", self.words, "Give the vocabulary.")
        if len(self.rows) != len(self.words):
            raise value_error("rows", f"{len(self.words)}, one a word", len(self.rows), "Give one for each word.")
        check_whole("silence", self.silence, minimum=1, remedy="Give silence a state at least.")
        for word, row in zip(self.words, self.rows, strict=True):
            if not row or min(row) < self.silence:
                rule = f"of at least one state, each {self.silence} or more"
                raise value_error("rows", rule, row, "States below are those of silence.", at=f"word {word}")
        object.__setattr__(self, "_numbers", {word: number for number, word in enumerate(self.words)})

    @property
    def total(self) -> int:
        """Number of all states, S."""
        return 1 + max(max(row) for row in self.rows)

    def number(self, word: str) -> int:
        """Returns the number of a word.

        Raises:
            ValueError: The word is not in the vocabulary.
        """
        if word not in self._numbers:
            raise value_error("word", "of the vocabulary", word, "Add it, or leave its utterance out.")
        return self._numbers[word]


def whole_words(words: Sequence[str], *, counts: int | Sequence[int], silence: int = 1) -> WordStates:
    """Gives every word its own states, which suits a small vocabulary such as digits.

    Args:
        words: The vocabulary.
        counts: Number of states of each word, or one number for all words.
        silence: Number of silence states.

    References:
        Doetsch et al. 2017, section 5, has three states for each phoneme in its context, tied to 1500 classes by a
        decision tree: see `units` and `tying`.

    >>> whole_words(["yes", "no"], counts=[3, 2]).rows
    ((1, 2, 3), (4, 5))
    """
    sizes = [counts] * len(words) if isinstance(counts, int) else list(counts)
    for size in sizes:
        check_whole("counts", size, minimum=1, remedy="Give every word a state at least.")
    stops = [silence + stop for stop in itertools.accumulate(sizes)]
    rows = tuple(tuple(range(stop - size, stop)) for stop, size in zip(stops, sizes, strict=True))
    return WordStates(words=tuple(words), rows=rows, silence=silence)


def position_states(words: Sequence[str], states: WordStates) -> NDArray[np.int64]:
    """Returns the state of each position of some words, with a silence before, after and between them.

    Raises:
        ValueError: A word is not in the vocabulary.

    >>> position_states(["no", "yes"], whole_words(["yes", "no"], counts=[2, 1]))
    array([0, 3, 0, 1, 2, 0])
    """
    silence = tuple(range(states.silence))
    rows = [states.rows[states.number(word)] for word in words]
    return np.array(list(itertools.chain(silence, *(row + silence for row in rows))), np.int64)


def fewest_frames(words: Sequence[str], states: WordStates) -> int:
    """Returns the frames of the shortest path through some words."""
    return sum(len(states.rows[states.number(word)]) for word in words) or states.silence
