"""Forced alignment: the best path of each utterance through its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise_recipes.acoustic.graph import Graph, Scores, StatePath
from lengthwise_recipes.acoustic.hmm import WordStates, fewest_frames
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.features import Features


def best_paths(
    scores: Iterable[Scores], transcripts: Sequence[Sequence[str]], states: WordStates, stay: Scores
) -> list[StatePath]:
    """Finds the best path of each utterance through its words.

    Args:
        scores: [F, S] per utterance, read one by one.
        transcripts: Words of each utterance.
        states: States of the words.
        stay: Probability of staying in a state for one more frame, [S].

    Raises:
        ValueError: An utterance has fewer frames than its words need; see `select_alignable`.

    References:
        Doetsch et al. 2017, section 5: states without skip transitions.
    """
    return [
        _best_path(rows, words, states, stay, number)
        for number, (rows, words) in enumerate(zip(scores, transcripts, strict=True))
    ]


def even_path(frames: int, positions: int) -> StatePath:
    """Returns a path whose frames are spread evenly over the positions: the flat start."""
    return StatePath(np.arange(frames) * positions // frames, 0.0)


def state_priors(labels: Sequence[NDArray[np.int64]], total: int) -> Scores:
    """Returns each state's share of all frames, [S], after adding one frame to every state.

    The network's posteriors are divided by it, Doetsch et al. 2017, section 5.

    >>> state_priors([np.array([0, 0, 2])], 3).tolist()
    [0.5, 0.16666666666666666, 0.3333333333333333]
    """
    counts = 1 + np.bincount(np.concatenate(labels), minlength=total)
    return counts / counts.sum()


def select_alignable(
    corpus: Corpus, features: Sequence[Features], states: WordStates, *, strict: bool = False
) -> tuple[Corpus, list[Features]]:
    """Leaves out utterances without an alignment: too few frames for their states, or a word without states.

    Args:
        corpus, features: Utterances, and the features [F, D] of each.
        states: States of the vocabulary.
        strict: Raise for the first utterance without an alignment.

    Returns:
        Corpus and features of the rest; the corpus names the utterances that were left out.
    """
    skipped = Skipped(strict=strict)
    numbers = alignable_numbers(corpus, features, states, skipped)
    sentences = (*corpus.skipped, *skipped.sentences)
    utterances = tuple(corpus.utterances[number] for number in numbers)
    return replace(corpus, utterances=utterances, skipped=sentences), [features[number] for number in numbers]


def alignable_numbers(corpus: Corpus, features: Sequence[Features], states: WordStates, skipped: Skipped) -> list[int]:
    """Returns the numbers of the utterances that have an alignment, and adds the others to `skipped`."""
    return [number for number in range(len(corpus)) if _fits(corpus, features, number, states, skipped)]


def _fits(corpus: Corpus, features: Sequence[Features], number: int, states: WordStates, skipped: Skipped) -> bool:
    utterance, frames = corpus.utterances[number], len(features[number])
    try:
        fewest = fewest_frames(utterance.words, states)
        if frames < fewest:
            rule = f"at least {fewest}, one for each state of the words"
            raise value_error("frames", rule, frames, "Leave the utterance out, or give words fewer states.")
    except ValueError as error:
        skipped.add(ValueError(f"{error} This is utterance {utterance.name}."))
        return False
    return True


def _best_path(scores: Scores, words: Sequence[str], states: WordStates, stay: Scores, number: int) -> StatePath:
    fewest = fewest_frames(words, states)
    if len(scores) < fewest:
        rule, remedy = f"at least {fewest} frames, one a state", "Leave the utterance out."
        raise value_error("scores", rule, len(scores), remedy, at=f"utterance {number}")
    graph = Graph(states, stay)
    node = graph.node()
    graph.begin(node)
    for word in words:
        source, node = node, graph.node()
        graph.speak(source, node, states.rows[states.number(word)])
    graph.end(node)
    return graph.best_path(scores)
