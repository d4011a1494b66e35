"""Trains a GMM-HMM from a flat start: fit and align several times, then split every density in two and repeat.

features     [F, D] per utterance
transcripts  the words of each utterance
labels       [F] per utterance: the state of every frame

By hand, since kaldi-hmm-gmm takes frames from Python one by one, splits densities at random, and gives Python no trees
that tie states in context. Loaded after kaldifst, which `graph` needs, it hangs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.acoustic.alignment import best_paths, even_path
from lengthwise_recipes.acoustic.graph import StatePath
from lengthwise_recipes.acoustic.hmm import WordStates, position_states
from lengthwise_recipes.acoustic.mixtures import Mixtures, global_mixtures, refit, split
from lengthwise_recipes.speech.features import Features

STAY_LIMITS = (0.01, 0.99)


@dataclass(frozen=True, kw_only=True, slots=True)
class WordModel:
    """A hidden Markov model of every word and of silence.

    Attributes:
        states: The states of each word.
        mixtures: Densities of the frames of each state.
        stay: Probability of staying in a state for one more frame, [S].
    """

    states: WordStates
    mixtures: Mixtures
    stay: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """Length of the training.

    Attributes:
        splits: Number of times that every density is split; a state has at most 2 ** splits densities.
        alignments: Alignments for each number of densities.
    """

    splits: int = 3
    alignments: int = 5

    def __post_init__(self) -> None:
        check_whole("splits", self.splits, minimum=0, maximum=10, remedy="Give 3 for up to 8 densities a state.")
        check_whole("alignments", self.alignments, minimum=1, remedy="Give 5 or more.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """The result of training.

    Attributes:
        model: After the last fit.
        scores: Log likelihood per frame of the best paths at each alignment, [splits + 1, alignments]; it never falls
            within a row.
        paths: The last alignment of each utterance.
    """

    model: WordModel
    scores: NDArray[np.float64]
    paths: tuple[StatePath, ...]


def train_words(
    features: Sequence[Features],
    transcripts: Sequence[Sequence[str]],
    states: WordStates,
    *,
    rounds: Rounds | None = None,
    paths: Sequence[StatePath] | None = None,
) -> Trained:
    """Trains a model from utterances and their words.

    The flat start gives all positions of an utterance, silences included, the same number of frames. Then two steps
    alternate: fit mixtures and transitions to the alignment, and align by them. Neither step can lower the likelihood
    of the best paths. A variance or transition beyond its limit is set to the limit, the best value allowed.

    Args:
        features, transcripts: Of each utterance, as at the top of this file.
        states: States of the words.
        rounds: Length of the training.
        paths: An alignment to begin from instead of the flat start. It may use other states, but as many per word.

    Raises:
        ValueError: A word has no states, or an utterance has fewer frames than states;
            `alignment.select_alignable` leaves those out.

    References:
        Viterbi training, Rabiner 1989, section V.B (segmental k-means). Doetsch et al. 2017, section 5, only says
        that its labels come from a GMM with three states and no skips.
    """
    rounds = rounds or Rounds()
    if not features:
        raise value_error("features", "of at least one utterance", 0, "Give speech to train on.")
    rows = [position_states(words, states) for words in transcripts]
    paths = paths or [even_path(len(frames), len(row)) for frames, row in zip(features, rows, strict=True)]
    mixtures = global_mixtures(features, states.total)
    model = WordModel(states=states, mixtures=mixtures, stay=np.full(states.total, 0.5))
    scores = np.empty((rounds.splits + 1, rounds.alignments))
    for level in range(rounds.splits + 1):
        labels = _labels(paths, rows)
        if level:
            counts = np.bincount(np.concatenate(labels), minlength=states.total)
            model = replace(model, mixtures=split(model.mixtures, counts))
        model = fit(model, features, paths, labels)
        for column in range(rounds.alignments):
            paths = align(model, features, transcripts)
            scores[level, column] = sum(path.score for path in paths) / sum(map(len, features))
            model = fit(model, features, paths, _labels(paths, rows))
    return Trained(model=model, scores=scores, paths=tuple(paths))


def align(model: WordModel, features: Sequence[Features], transcripts: Sequence[Sequence[str]]) -> list[StatePath]:
    """Returns the best path of each utterance."""
    scores = (model.mixtures.scores(frames) for frames in features)
    return best_paths(scores, transcripts, model.states, model.stay)


def frame_labels(
    model: WordModel, features: Sequence[Features], transcripts: Sequence[Sequence[str]]
) -> list[NDArray[np.int64]]:
    """Returns the state of every frame, [F] per utterance: the labels that a network learns."""
    return _labels(align(model, features, transcripts), [position_states(words, model.states) for words in transcripts])


def fit(
    model: WordModel, features: Sequence[Features], paths: Sequence[StatePath], labels: Sequence[NDArray[np.int64]]
) -> WordModel:
    """Fits mixtures (one step) and transitions to an alignment."""
    return replace(model, mixtures=refit(model.mixtures, features, labels), stay=_stay(paths, labels, model.stay))


def _labels(paths: Sequence[StatePath], rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    return [row[path.positions] for path, row in zip(paths, rows, strict=True)]


def _stay(
    paths: Sequence[StatePath], labels: Sequence[NDArray[np.int64]], previous: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the share of a state's frames after which the path stays, within limits; `previous` without frames."""
    leaves = [label[np.append(np.diff(path.positions) > 0, True)] for path, label in zip(paths, labels, strict=True)]
    left_counts = np.bincount(np.concatenate(leaves), minlength=len(previous))
    frames = np.bincount(np.concatenate(labels), minlength=len(previous))
    share = np.where(frames > 0, 1 - left_counts / np.maximum(frames, 1), previous)
    return np.clip(share, *STAY_LIMITS)
