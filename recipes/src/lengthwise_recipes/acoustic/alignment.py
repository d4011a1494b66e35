"""Forced alignment: the best path of each utterance through the chain of its words.

scores     [F, S] of each utterance   log likelihood of every frame in every state, or anything that stands for it
stay       [S]                        probability of staying in a state for one more frame
positions  [F] of each utterance      where the best path is, in the chain of the utterance
emissions  [F, B, Q]                  the scores of a batch, frame by frame at the positions of each chain

By hand, since librosa.sequence.viterbi takes utterances of one model and a full matrix of transitions: F x Q x Q steps.
Here every utterance has a chain of its own, a position has three ways in at most, and a batch takes a frame at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise_recipes.acoustic.hmm import NEVER, Chain, WordStates, chain_of
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.features import Features

Scores = NDArray[np.float64]

FRAMES_OF_A_BATCH = 20_000  # padded; what one batch holds in memory


@dataclass(frozen=True, slots=True)
class StatePath:
    """The best path of one utterance.

    Attributes:
        positions: In its chain, one a frame.
        score: Of path and frames together.
    """

    positions: NDArray[np.int64]
    score: float


@dataclass(frozen=True, slots=True)
class _Network:
    """The chains of a batch, each [B, Q]; nothing leads to the positions that a short chain lacks."""

    start: Scores
    onward: Scores
    over: Scores
    end: Scores
    stay: Scores
    leave: Scores


def best_paths(scores: Sequence[Scores], chains: Sequence[Chain], stay: Scores) -> list[StatePath]:
    """Finds the best path of each utterance: Viterbi, one frame of all utterances at a time.

    The score of a path is the sum of its frames' scores, of log stay or log (1 - stay) for every frame (the last is
    left too), and of what the chain says of starts, ends and silences. Where two ways are equally good, the path stays.

    Args:
        scores: [F, S] of each utterance.
        chains: Of each utterance, all with as many states of silence.
        stay: [S].

    Raises:
        ValueError: Where an utterance has fewer frames than its chain needs; see `select_alignable`.

    References:
        Doetsch et al. 2017, section 5: states without skip transitions. Cost: frames x positions.
    """
    for number, (each, chain) in enumerate(zip(scores, chains, strict=True)):
        if len(each) < chain.shortest:
            rule, remedy = f"at least {chain.shortest} frames, one a state", "Leave the utterance out."
            raise value_error("scores", rule, len(each), remedy, at=f"utterance {number}")
    network = _network(chains, stay)
    frames = np.array([len(each) for each in scores])
    ways, last = _forward(_emissions(scores, chains), frames, network, chains[0].reach)
    ends = last + network.end + network.leave
    return _trace(ways, frames, ends, chains[0].reach)


def path_states(path: StatePath, chain: Chain) -> NDArray[np.int64]:
    """The state of each frame, [F]: the labels that a network learns."""
    return chain.states[path.positions]


def batches_of_like_length(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Numbers of the utterances that are searched together: all of them once, with little padding."""
    return iter(lw.evaluation_plan(lengths, lw.Budget(FRAMES_OF_A_BATCH, oversize="alone")).batches())


def even_path(frames: int, chain: Chain) -> StatePath:
    """A path that gives every position as many frames, give or take one: what a flat start begins from."""
    return StatePath(np.arange(frames) * len(chain.states) // frames, 0.0)


def state_priors(labels: Sequence[NDArray[np.int64]], total: int) -> Scores:
    """The share of all frames that each state has, [S], each state with one frame more than it had.

    The network's posteriors are divided by it, Doetsch et al. 2017, section 5.

    >>> state_priors([np.array([0, 0, 2])], 3).tolist()
    [0.5, 0.16666666666666666, 0.3333333333333333]
    """
    counts = 1 + np.bincount(np.concatenate(labels), minlength=total)
    return counts / counts.sum()


def select_alignable(
    corpus: Corpus, features: Sequence[Features], states: WordStates, *, strict: bool = False
) -> tuple[Corpus, list[Features]]:
    """Leaves out what has no alignment: fewer frames than the states of its words, or a word of no known states.

    Args:
        corpus: Utterances.
        features: [F, D] of each.
        states: Of the vocabulary.
        strict: Whether to raise for the first of them.

    Returns:
        The corpus and features of the others; the corpus names those that were left out.
    """
    skipped = Skipped(strict=strict)
    kept = alignable_numbers(corpus, features, states, skipped)
    left = (*corpus.skipped, *skipped.sentences)
    utterances = tuple(corpus.utterances[number] for number in kept)
    return replace(corpus, utterances=utterances, skipped=left), [features[number] for number in kept]


def alignable_numbers(corpus: Corpus, features: Sequence[Features], states: WordStates, skipped: Skipped) -> list[int]:
    """The numbers of the utterances that have an alignment; `skipped` is told of the others."""
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


def _pad(rows: Sequence[NDArray], value: float) -> NDArray:
    out = np.full((len(rows), max(len(row) for row in rows)), value, rows[0].dtype)
    for row, values in zip(out, rows, strict=True):
        row[: len(values)] = values
    return out


def _emissions(scores: Sequence[Scores], chains: Sequence[Chain]) -> Scores:
    shape = (max(len(each) for each in scores), len(scores), max(len(chain.states) for chain in chains))
    emissions = np.zeros(shape)
    for number, (each, chain) in enumerate(zip(scores, chains, strict=True)):
        emissions[: len(each), number, : len(chain.states)] = each[:, chain.states]
    return emissions


def _forward(
    emissions: Scores, frames: NDArray[np.int64], network: _Network, reach: int
) -> tuple[NDArray[np.int8], Scores]:
    """The way into each position at each frame (0 stayed, 1 onward, 2 over), and the scores at each last frame."""
    ways = np.zeros(emissions.shape, np.int8)
    score = network.start + emissions[0]
    last = score.copy()
    onward, over = np.full_like(score, NEVER), np.full_like(score, NEVER)
    for frame in range(1, len(emissions)):
        left = score + network.leave
        onward[:, 1:] = left[:, :-1] + network.onward[:, 1:]
        over[:, reach:] = left[:, :-reach] + network.over[:, reach:]
        stayed = score + network.stay
        score = np.maximum(stayed, onward)
        ways[frame] = onward > stayed
        ways[frame][over > score] = 2
        score = np.maximum(score, over) + emissions[frame]
        going = frame < frames
        last[going] = score[going]
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
