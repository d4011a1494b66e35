"""Decoding: finds the words with the best path through an utterance, of all words in any order.

scores  [F, S]      log likelihood of every frame in every state, from mixtures or from posteriors / priors
P       positions   the states of every word and a silence after it, and the silence before the first word
H       histories   V + 1: the last word, or none yet

By hand, since the decoders with wheels that we know (pyctcdecode, torchaudio's) read the output of CTC. A hybrid
model has states with probabilities of staying, and the paper's search goes through these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jiwer
import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.acoustic.alignment import Scores, batches_of_like_length
from lengthwise_recipes.acoustic.bigram import Bigram
from lengthwise_recipes.acoustic.hmm import BORDER, NEVER, WordStates


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Weights of the language model and pruning of the search.

    Attributes:
        lm_scale: Factor of the language model's scores; 12 in the paper.
        insertion_penalty: Subtracted from the score for every word.
        histories: Only this many of the words that end at a frame, the best, continue; None continues all. The cost of
            a frame grows with it, and the search is exact only from V + 1 on.
    """

    lm_scale: float = 12.0
    insertion_penalty: float = 0.0
    histories: int | None = None

    def __post_init__(self) -> None:
        check_number("lm_scale", self.lm_scale, remedy="Give 12, or 0 for no language model.")
        remedy = "Give 0 for none; below 0, words are made cheap."
        check_number("insertion_penalty", self.insertion_penalty, minimum=-np.inf, remedy=remedy)
        if self.histories is not None:
            check_whole("histories", self.histories, minimum=1, remedy="Give 50 or more, or none for all.")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The best words of an utterance.

    Attributes:
        words: In their order.
        score: Sum of path, frames, language model and penalties.
    """

    words: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Network:
    """All words in a loop.

    Attributes:
        states: State of each position, [P].
        inward: Score of coming from the position before, [P]; -inf where a word or the first silence begins.
        firsts: First position of each word, [V].
        lasts: Last position of each word, and the silence of the start, [H].
        silences: Last position of the silence after each word, [H].
        stay: Score of staying, [P].
        leave: Score of leaving, [P].
        border: Score of going from `lasts` past the silence, [H].
        pairs: Score of the next word, [H, V].
        ends: Score of no further word, [H].
        histories: Number of words that continue at a frame.
    """

    states: NDArray[np.int64]
    inward: Scores
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    silences: NDArray[np.int64]
    stay: Scores
    leave: Scores
    border: Scores
    pairs: Scores
    ends: Scores
    histories: int


@dataclass(frozen=True, slots=True)
class _Traces:
    """Memory of the search, from which the best words are read backwards.

    Attributes:
        histories: The best history of a word that begins at a frame, [F, B, V].
        first_frames: First frame of a word that ends at a frame, [F, B, H].
        ends: Scores at the last frame of each utterance, [B, H].
    """

    histories: NDArray[np.int32]
    first_frames: NDArray[np.int32]
    ends: Scores


def decode(
    scores: Sequence[Scores], states: WordStates, stay: Scores, bigram: Bigram, *, search: Search | None = None
) -> list[Hypothesis]:
    """Finds the best words of each utterance; exact unless `search.histories` prunes.

    score = path score (see `alignment.best_paths`) + lm_scale x bigram score, start and end included
            - insertion_penalty x number of words

    Silence alone gives no words.

    Args:
        scores: [F, S] per utterance.
        states: States of the words.
        stay: Probability of staying in a state, [S].
        bigram: Has the same words in the same order.
        search: Scale, penalty and pruning.

    Returns:
        One hypothesis per utterance, in their order.

    Raises:
        ValueError: Bigram and states have different words, the scores have another number of states, or an utterance
            is too short for any word.

    References:
        Doetsch et al. 2017, section 5: a hybrid decoder with a scaled language model (RASR's, there). Ney 1984: one
        stage, all words at once. Cost: frames x (positions + histories x V).
    """
    if bigram.words != states.words:
        raise value_error("bigram", "of the words that have states", bigram.words, "Make it of states.words.")
    for number, rows in enumerate(scores):
        _check_scores(rows, states, number)
    network = _network(states, stay, bigram, search or Search())
    hypotheses: dict[int, Hypothesis] = {}
    for batch in batches_of_like_length([len(rows) for rows in scores]):
        decoded = _decode_batch([scores[number] for number in batch], network, states.words)
        hypotheses.update(zip(batch.tolist(), decoded, strict=True))
    return [hypotheses[number] for number in range(len(scores))]


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


def _network(states: WordStates, stay: Scores, bigram: Bigram, search: Search) -> _Network:
    silence = np.arange(states.silence)
    pieces = [piece for word in states.rows for piece in (word, silence)]
    positions = np.concatenate([*pieces, silence]).astype(np.int64)
    counts = np.array([*map(len, states.rows), 0])
    silences = np.cumsum(counts + states.silence) - 1
    lasts = silences - states.silence
    inward = np.zeros(len(positions))
    inward[lasts + 1] = BORDER
    firsts = lasts[:-1] + 1 - counts[:-1]
    inward[firsts], inward[lasts[-1] + 1] = NEVER, NEVER
    border = np.append(np.full(len(states.words), BORDER), NEVER)
    scaled = search.lm_scale * bigram.scores if search.lm_scale else np.zeros_like(bigram.scores)
    return _Network(
        states=positions,
        inward=inward,
        firsts=firsts,
        lasts=np.append(lasts[:-1], silences[-1]),
        silences=silences,
        stay=np.log(stay)[positions],
        leave=np.log1p(-stay)[positions],
        border=border,
        pairs=scaled[:, :-1] - search.insertion_penalty,
        ends=scaled[:, -1],
        histories=min(search.histories or len(counts), len(counts)),
    )


def _decode_batch(scores: Sequence[Scores], network: _Network, words: tuple[str, ...]) -> list[Hypothesis]:
    frames = np.array([len(rows) for rows in scores])
    padded = np.zeros((frames.max(), len(scores), scores[0].shape[1]))
    for number, rows in enumerate(scores):
        padded[: len(rows), number] = rows
    traces = _search(padded, frames, network)
    return [_trace(traces, number, count, words) for number, count in enumerate(frames.tolist())]


def _search(scores: Scores, frames: NDArray[np.int64], network: _Network) -> _Traces:
    """Runs Viterbi over all words, one frame of all utterances [B] at a time."""
    utterances, total = scores.shape[1], len(network.lasts)
    best_histories = np.full((len(scores), utterances, total - 1), total - 1, np.int32)
    first_frames = np.zeros((len(scores), utterances, total), np.int32)
    score = _first_scores(network) + scores[0][:, network.states]
    entered = np.zeros(score.shape, np.int32)
    exits, first_frames[0] = _exits(score, entered, network)
    ends = exits + network.ends
    for frame in range(1, len(scores)):
        score, entered, best_histories[frame] = _advance(score, entered, exits, frame, network)
        score = score + scores[frame][:, network.states]
        exits, first_frames[frame] = _exits(score, entered, network)
        running = frame < frames
        ends[running] = exits[running] + network.ends
    return _Traces(best_histories, first_frames, ends)


def _first_scores(network: _Network) -> Scores:
    score = np.full(len(network.states), NEVER)
    score[network.firsts] = BORDER + network.pairs[-1]
    score[network.silences[-2] + 1] = BORDER  # the silence before the first word is the last of the positions
    return score


def _exits(score: Scores, entered: NDArray[np.int32], network: _Network) -> tuple[Scores, NDArray[np.int32]]:
    """Returns the scores [B, H] of leaving each word, with or without its silence, and the words' first frames."""
    leaving = score + network.leave
    without_silence = leaving[:, network.lasts] + network.border
    with_silence = leaving[:, network.silences]
    first_frames = np.where(with_silence > without_silence, entered[:, network.silences], entered[:, network.lasts])
    return np.maximum(without_silence, with_silence), first_frames


def _advance(
    score: Scores, entered: NDArray[np.int32], exits: Scores, frame: int, network: _Network
) -> tuple[Scores, NDArray[np.int32], NDArray[np.intp]]:
    """Advances by a frame: scores without this frame's own, first frames [B, P], and best histories [B, V]."""
    best, histories = _best_histories(exits, network)
    coming = np.full_like(score, NEVER)
    coming[:, 1:] = (score + network.leave)[:, :-1] + network.inward[1:]
    coming[:, network.firsts] = best
    first_frames = np.roll(entered, 1, axis=1)
    first_frames[:, network.firsts] = frame
    staying = score + network.stay
    return np.maximum(staying, coming), np.where(coming > staying, first_frames, entered), histories


def _best_histories(exits: Scores, network: _Network) -> tuple[Scores, NDArray[np.intp]]:
    """Returns the score of the best way into each word and the word before it, both [B, V]."""
    if network.histories == exits.shape[1]:
        offers = exits[:, :, None] + network.pairs
        return offers.max(axis=1), offers.argmax(axis=1)
    best = np.argpartition(-exits, network.histories - 1, axis=1)[:, : network.histories]
    offers = np.take_along_axis(exits, best, axis=1)[:, :, None] + network.pairs[best]
    return offers.max(axis=1), np.take_along_axis(best, offers.argmax(axis=1), axis=1)


def _trace(traces: _Traces, number: int, frames: int, words: tuple[str, ...]) -> Hypothesis:
    ends = traces.ends[number]
    history, last = int(ends.argmax()), frames - 1
    backwards: list[str] = []
    while history < len(words):
        backwards.append(words[history])
        first = int(traces.first_frames[last, number, history])
        history, last = int(traces.histories[first, number, history]), first - 1
    return Hypothesis(tuple(reversed(backwards)), float(ends.max()))
