"""Graphs of words, and the best path of an utterance through one, by kaldifst and kaldi-decoder.

    silence? word silence? word ... silence?

A position is a state at its place in a graph; a path stays at a position or goes on to another. Kaldi adds up costs,
which are negative scores, in single precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

import kaldi_decoder
import kaldifst
import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.acoustic.hmm import WordStates

Scores = NDArray[np.float64]

PAUSE = float(np.log(2))  # cost at the border of a word: silence and no silence are equally likely


@dataclass(frozen=True, slots=True)
class StatePath:
    """The best path of one utterance.

    Attributes:
        positions: Its position in the graph at every frame, [F].
        score: Log likelihood of path and frames together.
        words: Numbers of the words on it, if arcs of the graph name words.
    """

    positions: NDArray[np.int64]
    score: float
    words: tuple[int, ...] = ()


class Graph:
    """A graph that is built node by node; it begins as its start alone.

    Every frame that a path spends in a state costs -log stay, and the step out of the state -log (1 - stay). A path
    leaves its last state too.
    """

    def __init__(self, states: WordStates, stay: Scores) -> None:
        """Begins a graph; `stay` [S] is the probability of staying in a state for one more frame."""
        self.positions: list[int] = []  # state of each position
        self._silence = range(states.silence)
        self._stay, self._leave = (-np.log(stay)).tolist(), (-np.log1p(-stay)).tolist()
        self._fst = kaldifst.StdVectorFst()
        self.start: int = self.node()
        self._fst.start = self.start

    def node(self) -> int:
        """Adds a node without a state."""
        return self._fst.add_state()

    def link(self, source: int, target: int, cost: float, *, position: int = 0, word: int = 0) -> None:
        """Leads from node to node, unless the cost is infinite; position and word count from 1, and 0 is none."""
        if cost < inf:
            self._fst.add_arc(source, kaldifst.StdArc(position, word, cost, target))

    def end(self, node: int, cost: float = 0.0) -> None:
        """Lets paths end at a node."""
        if cost < inf:
            self._fst.set_final(node, cost)

    def speak(self, source: int, target: int, row: Iterable[int]) -> None:
        """Leads from node to node by a word with these states, and then a silence or none."""
        last, cost = self._pass(source, row, 0.0)
        self._pause(last, target, cost)

    def begin(self, target: int) -> None:
        """Leads from the start to a node by a silence or none."""
        self._pause(self.start, target, 0.0)

    def best_path(self, scores: Scores, *, beam: float = inf) -> StatePath:
        """Finds the best path of an utterance.

        Args:
            scores: [F, S], of enough frames for a path.
            beam: Paths that are worse than the best by more than this, at the same frame, are dropped.
        """
        emissions = scores[:, self.positions].astype(np.float32)
        decoder = kaldi_decoder.FasterDecoder(self._fst, kaldi_decoder.FasterDecoderOptions(beam=beam))
        decoder.decode(kaldi_decoder.DecodableCtc(emissions))
        _, path = decoder.get_best_path()
        _, positions, words, cost = kaldifst.get_linear_symbol_sequence(path)
        return StatePath(np.array(positions) - 1, -(cost.value1 + cost.value2), tuple(word - 1 for word in words))

    def _pause(self, source: int, target: int, cost: float) -> None:
        self.link(source, target, cost + PAUSE)
        last, cost = self._pass(source, self._silence, cost + PAUSE)
        self.link(last, target, cost)

    def _pass(self, source: int, row: Iterable[int], cost: float) -> tuple[int, float]:
        """Adds a position for each state after a node; returns the last one's node and the cost of leaving it."""
        for state in row:
            self.positions.append(state)
            node, position = self.node(), len(self.positions)
            self.link(source, node, cost, position=position)
            self.link(node, node, self._stay[state], position=position)
            source, cost = node, self._leave[state]
        return source, cost
