"""Hidden Markov models of words: left to right, no state skipped, silence where the speaker pauses.

    silence? word silence? word ... silence?

A sequence of words is a chain of positions. Each position has a state; a path stays at a position, goes on to the
next, or passes over a silence. Scores are natural logarithms of probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lengthwise._checks import check_whole, value_error

BORDER = float(np.log(0.5))  # a silence at a border of words is as likely as none
NEVER = -np.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class WordStates:
    """Which states belong to which word: those of silence first, then each word's own, in the order of `words`.

    Attributes:
        words: The vocabulary, V of them, without silence.
        counts: States of each word: every word lasts as many frames at least.
        silence: States of silence.

    References:
        Doetsch et al. 2017, section 5, has three states for each phoneme in context, tied to 1500 classes by a
        decision tree. Where the vocabulary is small, as with digits, each word has states of its own instead.
    """

    words: tuple[str, ...]
    counts: tuple[int, ...]
    silence: int = 1
    _numbers: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words or len(set(self.words)) != len(self.words):
            raise value_error("words", "at least one, and each once", self.words, "Give the vocabulary.")
        if len(self.counts) != len(self.words):
            raise value_error("counts", f"{len(self.words)}, one a word", len(self.counts), "Give one for each word.")
        for count in (*self.counts, self.silence):
            check_whole("counts", count, minimum=1, remedy="Give every word and silence a state at least.")
        object.__setattr__(self, "_numbers", {word: number for number, word in enumerate(self.words)})

    @classmethod
    def even(cls, words: Sequence[str], *, count: int, silence: int = 1) -> WordStates:
        """As many states for every word."""
        return cls(words=tuple(words), counts=(count,) * len(words), silence=silence)

    @property
    def total(self) -> int:
        """All states, S."""
        return self.silence + sum(self.counts)

    def number(self, word: str) -> int:
        """The number of a word.

        Raises:
            ValueError: Where the word is not in the vocabulary.
        """
        if word not in self._numbers:
            raise value_error("word", "of the vocabulary", word, "Add it, or leave its utterance out.")
        return self._numbers[word]

    def states(self, word: int) -> NDArray[np.int64]:
        """The states of a word, [counts[word]].

        >>> WordStates(words=("yes", "no"), counts=(3, 2)).states(1)
        array([4, 5])
        """
        first = self.silence + sum(self.counts[:word])
        return np.arange(first, first + self.counts[word])


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """The positions of one sequence of words. All scores are [Q], -inf where there is no such way.

    Attributes:
        states: State of each position.
        start: Score of beginning here.
        onward: Of coming here from the position before, less the score of leaving that.
        over: Of coming here from `reach` positions before, over a silence.
        end: Of ending here, less the score of leaving.
        reach: Positions from the last state of a word to the first of the next.
        shortest: Frames of the shortest path.
    """

    states: NDArray[np.int64]
    start: NDArray[np.float64]
    onward: NDArray[np.float64]
    over: NDArray[np.float64]
    end: NDArray[np.float64]
    reach: int
    shortest: int


def chain_of(words: Sequence[str], states: WordStates) -> Chain:
    """Lays the states of words in a row, a silence before, after and between them that may be passed over.

    Raises:
        ValueError: Where a word is not in the vocabulary.

    >>> chain_of(["no", "yes"], WordStates(words=("yes", "no"), counts=(2, 1))).states
    array([0, 3, 0, 1, 2, 0])
    """
    silence = np.arange(states.silence)
    spoken = [states.states(states.number(word)) for word in words]
    row = np.concatenate([silence, *(piece for each in spoken for piece in (each, silence))])
    counts = np.array([len(each) for each in spoken], np.int64)
    stops = np.cumsum(counts + states.silence)  # where the silences after the words begin
    start, end, over = (np.full(len(row), NEVER) for _ in range(3))
    onward = np.zeros(len(row))
    onward[0], onward[stops] = NEVER, BORDER
    start[0], end[-1] = BORDER, 0.0
    over[(stops - counts)[1:]] = BORDER
    if spoken:
        start[states.silence], end[stops[-1] - 1] = BORDER, BORDER
    return Chain(
        states=row,
        start=start,
        onward=onward,
        over=over,
        end=end,
        reach=states.silence + 1,
        shortest=int(counts.sum()) or states.silence,
    )
