"""Hidden Markov models of words: left to right, no state skipped, silence where the speaker pauses.

    silence? word silence? word ... silence?

A sequence of words is a chain of positions, each with a state. A path stays at a position, goes on to the next, or
skips a silence. Scores are natural logarithms of probabilities.

By hand, since hmmlearn's models have one matrix of transitions between all their states. In a chain of words a state
can have several positions, so every utterance needs its own model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_whole, value_error

BORDER = float(np.log(0.5))  # between two words, silence and no silence are equally likely
NEVER = -np.inf


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """The positions of one sequence of words. All scores are [Q]; -inf forbids a way.

    Attributes:
        states: State of each position.
        start: Score of beginning here.
        onward: Score of coming from the position before, without the score of leaving it.
        over: Score of coming from `reach` positions before, over a silence, without the score of leaving it.
        end: Score of ending here, without the score of leaving.
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
    """Builds the chain of some words, with a silence before, after and between them that paths may skip.

    Raises:
        ValueError: A word is not in the vocabulary.

    >>> chain_of(["no", "yes"], whole_words(["yes", "no"], counts=[2, 1])).states
    array([0, 3, 0, 1, 2, 0])
    """
    silence = np.arange(states.silence)
    rows = [states.rows[states.number(word)] for word in words]
    positions = np.concatenate([silence, *(piece for row in rows for piece in (row, silence))]).astype(np.int64)
    counts = np.array([len(row) for row in rows], np.int64)
    stops = np.cumsum(counts + states.silence)  # where the silences after the words begin
    start, end, over = (np.full(len(positions), NEVER) for _ in range(3))
    onward = np.zeros(len(positions))
    onward[0], onward[stops] = NEVER, BORDER
    start[0], end[-1] = BORDER, 0.0
    over[(stops - counts)[1:]] = BORDER
    if rows:
        start[states.silence], end[stops[-1] - 1] = BORDER, BORDER
    return Chain(
        states=positions,
        start=start,
        onward=onward,
        over=over,
        end=end,
        reach=states.silence + 1,
        shortest=int(counts.sum()) or states.silence,
    )
