"""Forced alignment: the best path of each utterance through the chain of its words.

scores     [F, S] per utterance   log likelihood of every frame in every state, or a substitute for it
stay       [S]                    probability of staying in a state for one more frame
positions  [F] per utterance      the best path's position in the utterance's chain at every frame
emissions  [F, B, Q]              the scores of a batch, by frame, utterance and position in its chain

By hand, since librosa.sequence.viterbi takes utterances of one model and a full matrix of transitions: F x Q x Q steps.
Here every utterance has its own chain, a position has at most three ways in, and a batch advances frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise_recipes.acoustic.hmm import NEVER, Chain, WordStates, chain_of
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.features import Features

Scores = NDArray[np.float64]

FRAMES_OF_A_BATCH = 20_000  # padding included; bounds the memory of a batch


@dataclass(frozen=True, slots=True)
class StatePath:
    """The best path of one utterance.

    Attributes:
        positions: Its position in the chain at every frame, [F].
        score: Log likelihood of path and frames together.
    """

    positions: NDArray[np.int64]
    score: float


@dataclass(frozen=True, slots=True)
class _Network:
    """The chains of a batch, padded: every array is [B, Q], and no path enters the padding."""

    start: Scores
    onward: Scores
    over: Scores
    end: Scores
    stay: Scores
    leave: Scores


def best_paths(scores: Sequence[Scores], chains: Sequence[Chain], stay: Scores) -> list[StatePath]:
    """Finds the best path of each utterance: Viterbi, one frame of all utterances at a time.

    The score of a path is the sum of
    - the score of every frame,
    - log stay or log (1 - stay) for every frame (the path leaves the last one too),
    - the chain's scores of starts, ends and silences.
    If two ways are equally good, the path stays.

    Args:
        scores: [F, S] per utterance.
        chains: One per utterance, all with the same number of silence states.
        stay: [S].

    Raises:
        ValueError: An utterance has fewer frames than its chain needs; see `select_alignable`.

    References:
        Doetsch et al. 2017, section 5: states without skip transitions. Cost: frames x positions.
    """
    for number, (rows, chain) in enumerate(zip(scores, chains, strict=True)):
        if len(rows) < chain.shortest:
            rule, remedy = f"at least {chain.shortest} frames, one a state", "Leave the utterance out."
            raise value_error("scores", rule, len(rows), remedy, at=f"utterance {number}")
    network = _network(chains, stay)
    frames = np.array([len(rows) for rows in scores])
    ways, last = _forward(_emissions(scores, chains), frames, network, chains[0].reach)
    ends = last + network.end + network.leave
    return _trace(ways, frames, ends, chains[0].reach)


def path_states(path: StatePath, chain: Chain) -> NDArray[np.int64]:
    """Returns the state of each frame, [F]: the labels that a network learns."""
    return chain.states[path.positions]


def batches_of_like_length(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yields the numbers of the utterances to search together: every utterance once, with little padding."""
    return iter(lw.evaluation_plan(lengths, lw.Budget(FRAMES_OF_A_BATCH, oversize="alone")).batches())


def even_path(frames: int, chain: Chain) -> StatePath:
    """Returns a path whose frames are spread evenly over the positions: the flat start."""
    return StatePath(np.arange(frames) * len(chain.states) // frames, 0.0)


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
        corpus: Utterances.
        features: [F, D] per utterance.
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
        shortest = chain_of(utterance.words, states).shortest
        if frames < shortest:
            rule = f"at least {shortest}, as many as the states of its words"
            raise value_error("frames", rule, frames, "Leave it out, or give words fewer states.")
    except ValueError as error:
        skipped.add(ValueError(f"{error} This is utterance {utterance.name}."))
        return False
    return True


def _network(chains: Sequence[Chain], stay: Scores) -> _Network:
    states = _pad([chain.states for chain in chains], 0)
    return _Network(
        start=_pad([chain.start for chain in chains], NEVER),
        onward=_pad([chain.onward for chain in chains], NEVER),
        over=_pad([chain.over for chain in chains], NEVER),
        end=_pad([chain.end for chain in chains], NEVER),
        stay=np.log(stay)[states],
        leave=np.log1p(-stay)[states],
    )


def _pad(rows: Sequence[NDArray[Any]], value: float) -> NDArray[Any]:
    out = np.full((len(rows), max(len(row) for row in rows)), value, rows[0].dtype)
    for row, values in zip(out, rows, strict=True):
        row[: len(values)] = values
    return out


def _emissions(scores: Sequence[Scores], chains: Sequence[Chain]) -> Scores:
    shape = (max(len(rows) for rows in scores), len(scores), max(len(chain.states) for chain in chains))
    emissions = np.zeros(shape)
    for number, (rows, chain) in enumerate(zip(scores, chains, strict=True)):
        emissions[: len(rows), number, : len(chain.states)] = rows[:, chain.states]
    return emissions


def _forward(
    emissions: Scores, frames: NDArray[np.int64], network: _Network, reach: int
) -> tuple[NDArray[np.int8], Scores]:
    """Returns the way into each position at each frame (0 stayed, 1 onward, 2 over) and the scores at the last frames.

    The last frame is that of each utterance, so its scores are [B, Q].
    """
    ways = np.zeros(emissions.shape, np.int8)
    score = network.start + emissions[0]
    last = score.copy()
    onward, over = np.full_like(score, NEVER), np.full_like(score, NEVER)
    for frame in range(1, len(emissions)):
        leaving = score + network.leave
        onward[:, 1:] = leaving[:, :-1] + network.onward[:, 1:]
        over[:, reach:] = leaving[:, :-reach] + network.over[:, reach:]
        stayed = score + network.stay
        score = np.maximum(stayed, onward)
        ways[frame] = onward > stayed
        ways[frame][over > score] = 2
        score = np.maximum(score, over) + emissions[frame]
        running = frame < frames
        last[running] = score[running]
    return ways, last


def _trace(ways: NDArray[np.int8], frames: NDArray[np.int64], ends: Scores, reach: int) -> list[StatePath]:
    steps = np.array([0, 1, reach])
    rows = np.arange(len(frames))
    position = ends.argmax(axis=1)
    positions = np.empty(ways.shape[:2], np.int64)
    for frame in range(len(ways) - 1, -1, -1):
        positions[frame] = position
        back = steps[ways[frame, rows, position]]
        position = position - np.where(frame < frames, back, 0)
    totals = ends.max(axis=1)
    return [StatePath(positions[: frames[row], row].copy(), float(totals[row])) for row in rows]
