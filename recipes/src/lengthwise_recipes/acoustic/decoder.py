"""Decoding: finds the words with the best path through an utterance, of all words in any order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jiwer
import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_number, value_error
from lengthwise_recipes.acoustic.bigram import Bigram
from lengthwise_recipes.acoustic.graph import Graph, Scores
from lengthwise_recipes.acoustic.hmm import WordStates


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Weights of the language model and pruning of the search.

    Attributes:
        lm_scale: Factor of the language model's scores; 12 in the paper.
        insertion_penalty: Subtracted from the score for every word.
        beam: Paths that are worse than the best by more than this, at the same frame, are dropped; infinity drops none.
    """

    lm_scale: float = 12.0
    insertion_penalty: float = 0.0
    beam: float = math.inf

    def __post_init__(self) -> None:
        check_number("lm_scale", self.lm_scale, remedy="Give 12, or 0 for no language model.")
        remedy = "Give 0 for none; below 0, words are made cheap."
        check_number("insertion_penalty", self.insertion_penalty, minimum=-np.inf, remedy=remedy)
        if not self.beam > 0:
            raise value_error("beam", "above 0", self.beam, "Give 200 or more, or infinity for none.")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The best words of an utterance.

    Attributes:
        words: In their order.
        score: Sum of path, frames, language model and penalties.
    """

    words: tuple[str, ...]
    score: float


def decode(
    scores: Iterable[Scores], states: WordStates, stay: Scores, bigram: Bigram, *, search: Search | None = None
) -> list[Hypothesis]:
    """Finds the best words of each utterance, in their order; exact unless `search.beam` prunes.

    score = path score (see `graph.Graph`) + lm_scale x bigram score, start and end included
            - insertion_penalty x number of words

    Silence alone gives no words.

    Args:
        scores: [F, S] per utterance, read one by one.
        states, stay: States of the words, and the probability of staying in each, [S].
        bigram: Has the same words in the same order.
        search: Scale, penalty and pruning.

    Raises:
        ValueError: Bigram and states have different words, the scores have another number of states, or an utterance
            is too short for any word.

    References:
        Doetsch et al. 2017, section 5: a hybrid decoder with a scaled language model (RASR's, there).
    """
    if bigram.words != states.words:
        raise value_error("bigram", "of the words that have states", bigram.words, "Make it of states.words.")
    search = search or Search()
    graph = _word_loop(states, stay, bigram, search)
    hypotheses: list[Hypothesis] = []
    for number, rows in enumerate(scores):
        _check_scores(rows, states, number)
        path = graph.best_path(rows, beam=search.beam)
        hypotheses.append(Hypothesis(tuple(states.words[word] for word in path.words), path.score))
    return hypotheses


def hybrid_scores(log_posteriors: NDArray[np.floating], priors: Scores, *, prior_scale: float = 1.0) -> Scores:
    """Divides a network's posteriors by the state priors: likelihoods up to a factor that is the same for all paths.

    Args:
        log_posteriors: [F, S].
        priors: [S], see `alignment.state_priors`.
        prior_scale: Exponent of the priors.
    """
    return log_posteriors.astype(np.float64) - prior_scale * np.log(priors)


def word_error_rate(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> float:
    """Returns substituted, deleted and inserted words over the words of all references; by jiwer."""
    return float(jiwer.wer([" ".join(words) for words in references], [" ".join(words) for words in hypotheses]))


def _check_scores(scores: Scores, states: WordStates, number: int) -> None:
    shortest = min(states.silence, *map(len, states.rows))
    if scores.ndim != 2 or scores.shape[1] != states.total or len(scores) < shortest:
        rule = f"[frames, {states.total}], of at least {shortest} frames"
        raise value_error("scores", rule, list(scores.shape), "Give one column a state.", at=f"utterance {number}")


def _word_loop(states: WordStates, stay: Scores, bigram: Bigram, search: Search) -> Graph:
    """Builds the graph of all words in any order: a node for each last word, and one that has forgotten it."""
    graph = Graph(states, stay)
    firsts = [graph.node() for _ in states.words]
    lasts = [graph.node() for _ in range(len(states.words) + 1)]  # of each word, and of the start
    forgotten = graph.node()
    graph.begin(lasts[-1])
    for first, last, row in zip(firsts, lasts, states.rows, strict=False):
        graph.speak(first, last, row)
    for last, score in zip(lasts, bigram.backoffs, strict=True):
        graph.link(last, forgotten, _cost(score, search))
    singles = ((forgotten, word, score) for word, score in enumerate(bigram.singles))
    pairs = ((lasts[last], word, score) for (last, word), score in bigram.pairs.items())
    for node, word, score in itertools.chain(singles, pairs):
        if word < len(firsts):
            graph.link(node, firsts[word], _cost(score, search) + search.insertion_penalty, word=word + 1)
        else:
            graph.end(node, _cost(score, search))
    return graph


def _cost(score: float, search: Search) -> float:
    return -search.lm_scale * float(score) if search.lm_scale else 0.0
