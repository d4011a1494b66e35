"""Decoding: the words whose path through an utterance is the best of all words in any order.

scores  [F, S]          log likelihood of every frame in every state: of mixtures, or posteriors / priors
P       positions       the states of every word and a silence after it, and the silence before the first word
H       histories       V + 1: the word said last, or none yet

By hand, since the decoders that we know to have wheels (pyctcdecode, torchaudio's) read the output of CTC. A hybrid
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
    """What weighs against the sound.

    Attributes:
        lm_scale: Factor of the language model's scores; 12 in the paper.
        insertion_penalty: Taken off for every word.
        histories: How many of the words that end at a frame, the best, may be followed by another; all where not given.
            What a frame costs grows with it, and the search is exact only where it is not below V + 1.
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
    """What was understood.

    Attributes:
        words: The best of all.
        score: Of path, frames, language model and penalties together.
    """

    words: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Network:
    """All words in a loop.

    Attributes:
        states: [P].
        inward: [P]: of coming here from the position before, -inf where a word begins and at the first silence.
        firsts: [V]: where the words begin.
        lasts: [H]: where the words end; of the start, its silence.
        silences: [H]: where the silences after them end.
        stay: [P].
        leave: [P].
        border: [H]: of going from `lasts` past the silence.
        pairs: [H, V]: of the next word.
        ends: [H]: of no further word.
        kept: Of the words that end at a frame, how many may be followed by another.
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
    kept: int


@dataclass(frozen=True, slots=True)
class _Traces:
    """What the search remembers of every frame.

    Attributes:
        before: [F, B, V]: the best history of a word that begins here.
        begun: [F, B, H]: the frame at which the word said last began, where it ends here.
        ends: [B, H]: scores at the last frame of each utterance.
    """

    before: NDArray[np.int32]
    begun: NDArray[np.int32]
    ends: Scores


def decode(
    scores: Sequence[Scores], states: WordStates, stay: Scores, bigram: Bigram, *, search: Search | None = None
) -> list[Hypothesis]:
    """Finds the best words of each utterance; exact, nothing is pruned, unless `search.histories` says so.

    The score of words is that of their best path, see `alignment.best_paths`, plus lm_scale x the score of the
    bigram, start and end included, less insertion_penalty for each word. Silence alone is no words.

    Args:
        scores: [F, S] of each utterance, S states of `states`.
        states: Of the words.
        stay: Probability of staying in a state, [S].
        bigram: Of the same words in the same order.
        search: Scale, penalty and pruning.

    Returns:
        In the order given. Utterances of like length are decoded together, which changes nothing.

    Raises:
        ValueError: Where the words of bigram and states differ, the scores are not of `states.total` states, or
            nothing is short enough for an utterance.

    References:
        Doetsch et al. 2017, section 5: a hybrid decoder with a scaled language model (RASR's, there). Ney 1984: one
        stage, all words at once. Cost: frames x (positions + histories x V).
    """
    if bigram.words != states.words:
        raise value_error("bigram", "of the words that have states", bigram.words, "Make it of states.words.")
    for number, each in enumerate(scores):
        _check_scores(each, states, number)
    network = _network(states, stay, bigram, search or Search())
    found: dict[int, Hypothesis] = {}
    for batch in batches_of_like_length([len(each) for each in scores]):
        decoded = _decode_batch([scores[number] for number in batch], network, states.words)
        found.update(zip(batch.tolist(), decoded, strict=True))
    return [found[number] for number in range(len(scores))]


def hybrid_scores(log_posteriors: NDArray[np.floating], priors: Scores, *, prior_scale: float = 1.0) -> Scores:
    """Posteriors of a network, divided by the state priors: likelihoods but for a factor that no path changes.

    Args:
        log_posteriors: [F, S].
        priors: [S], see `alignment.state_priors`.
        prior_scale: Exponent of the priors.
    """
    return log_posteriors.astype(np.float64) - prior_scale * np.log(priors)


def word_error_rate(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> float:
    """Substituted, deleted and inserted words, over the words of all references; by jiwer."""
    return float(jiwer.wer([" ".join(words) for words in references], [" ".join(words) for words in hypotheses]))


def _check_scores(scores: Scores, states: WordStates, number: int) -> None:
    least = min(states.silence, *map(len, states.rows))
    if scores.ndim != 2 or scores.shape[1] != states.total or len(scores) < least:
        rule = f"[frames, {states.total}], of at least {least} frames"
        raise value_error("scores", rule, list(scores.shape), "Give one column a state.", at=f"utterance {number}")


def _network(states: WordStates, stay: Scores, bigram: Bigram, search: Search) -> _Network:
    silence = np.arange(states.silence)
    row = np.concatenate([*(piece for word in states.rows for piece in (word, silence)), silence]).astype(np.int64)
    counts = np.array([*map(len, states.rows), 0])
    silences = np.cumsum(counts + states.silence) - 1
    lasts = silences - states.silence
    inward = np.zeros(len(row))
    inward[lasts + 1] = BORDER
    firsts = lasts[:-1] + 1 - counts[:-1]
    inward[firsts], inward[lasts[-1] + 1] = NEVER, NEVER
    border = np.append(np.full(len(states.words), BORDER), NEVER)
    scaled = search.lm_scale * bigram.scores if search.lm_scale else np.zeros_like(bigram.scores)
    return _Network(
        states=row,
        inward=inward,
        firsts=firsts,
        lasts=np.append(lasts[:-1], silences[-1]),
        silences=silences,
        stay=np.log(stay)[row],
        leave=np.log1p(-stay)[row],
        border=border,
        pairs=scaled[:, :-1] - search.insertion_penalty,
        ends=scaled[:, -1],
        kept=min(search.histories or len(counts), len(counts)),
    )


def _decode_batch(scores: Sequence[Scores], network: _Network, words: tuple[str, ...]) -> list[Hypothesis]:
    frames = np.array([len(each) for each in scores])
    padded = np.zeros((frames.max(), len(scores), scores[0].shape[1]))
    for number, each in enumerate(scores):
        padded[: len(each), number] = each
    traces = _search(padded, frames, network)
    return [_trace(traces, number, count, words) for number, count in enumerate(frames.tolist())]


def _search(scores: Scores, frames: NDArray[np.int64], network: _Network) -> _Traces:
    """Viterbi over all words, one frame of all utterances [B] at a time."""
    batch, histories = scores.shape[1], len(network.lasts)
    before = np.full((len(scores), batch, histories - 1), histories - 1, np.int32)
    begun = np.zeros((len(scores), batch, histories), np.int32)
    score = _first_scores(network) + scores[0][:, network.states]
    entered = np.zeros(score.shape, np.int32)
    exits, begun[0] = _exits(score, entered, network)
    ends = exits + network.ends
    for frame in range(1, len(scores)):
        score, entered, before[frame] = _advance(score, entered, exits, frame, network)
        score = score + scores[frame][:, network.states]
        exits, begun[frame] = _exits(score, entered, network)
        going = frame < frames
        ends[going] = exits[going] + network.ends
    return _Traces(before, begun, ends)


def _first_scores(network: _Network) -> Scores:
    score = np.full(len(network.states), NEVER)
    score[network.firsts] = BORDER + network.pairs[-1]
    score[network.silences[-2] + 1] = BORDER  # the silence before the first word lies behind all others
    return score


def _exits(score: Scores, entered: NDArray[np.int32], network: _Network) -> tuple[Scores, NDArray[np.int32]]:
    """Scores [B, H] of leaving each word, with or without its silence, and the frames at which the words began."""
    left = score + network.leave
    bare = left[:, network.lasts] + network.border
    rested = left[:, network.silences]
    begun = np.where(rested > bare, entered[:, network.silences], entered[:, network.lasts])
    return np.maximum(bare, rested), begun


def _advance(
    score: Scores, entered: NDArray[np.int32], exits: Scores, frame: int, network: _Network
) -> tuple[Scores, NDArray[np.int32], NDArray[np.intp]]:
    """Goes on by a frame: scores without the frame's own and beginnings [B, P], and the best histories [B, V]."""
    best, histories = _best_histories(exits, network)
    came = np.full_like(score, NEVER)
    came[:, 1:] = (score + network.leave)[:, :-1] + network.inward[1:]
    came[:, network.firsts] = best
    begun = np.roll(entered, 1, axis=1)
    begun[:, network.firsts] = frame
    stayed = score + network.stay
    return np.maximum(stayed, came), np.where(came > stayed, begun, entered), histories


def _best_histories(exits: Scores, network: _Network) -> tuple[Scores, NDArray[np.intp]]:
    """The score of the best way into each word, and the word said before it, each [B, V]."""
    if network.kept == exits.shape[1]:
        offers = exits[:, :, None] + network.pairs
        return offers.max(axis=1), offers.argmax(axis=1)
    kept = np.argpartition(-exits, network.kept - 1, axis=1)[:, : network.kept]
    offers = np.take_along_axis(exits, kept, axis=1)[:, :, None] + network.pairs[kept]
    return offers.max(axis=1), np.take_along_axis(kept, offers.argmax(axis=1), axis=1)


def _trace(traces: _Traces, number: int, frames: int, words: tuple[str, ...]) -> Hypothesis:
    ends = traces.ends[number]
    history, last = int(ends.argmax()), frames - 1
    said: list[str] = []
    while history < len(words):
        said.append(words[history])
        first = int(traces.begun[last, number, history])
        history, last = int(traces.before[first, number, history]), first - 1
    return Hypothesis(tuple(reversed(said)), float(ends.max()))
