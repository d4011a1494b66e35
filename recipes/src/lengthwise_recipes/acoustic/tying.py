"""Ties states of units in context by decision trees, for vocabularies too large to give each word its own states.

    words -> units (letters, or phonemes of a lexicon) -> three states each, without context
          -> an alignment -> moments of each context -> trees -> states that similar contexts share

counts, sums, squares   [contexts], [contexts, D], [contexts, D]   frames of each context, and their moments

By hand, since of the toolkits that tie states, Kaldi and HTK, the one with wheels (kaldi-hmm-gmm) gives Python only
trees without context. scikit-learn's trees cannot grow by the likelihood of the frames under a Gaussian of each leaf.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.acoustic.graph import StatePath
from lengthwise_recipes.acoustic.hmm import WordStates, position_states
from lengthwise_recipes.acoustic.units import NO_UNIT, PLACES, Context, Units, contexts_of, number_states
from lengthwise_recipes.speech.features import Features

FLOOR_SHARE = 0.01  # smallest variance, as a share of the variance of all frames


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """Limits of the trees' growth.

    Attributes:
        classes: States after tying, with those of silence; never fewer than the units have without context.
        least_frames: Both sides of a split have at least this many frames.
    """

    classes: int = 1500
    least_frames: float = 100.0

    def __post_init__(self) -> None:
        check_whole("classes", self.classes, minimum=1, remedy="Give 1500, or fewer for little speech.")
        check_number("least_frames", self.least_frames, minimum=1.0, remedy="Give a number such as 100.")


class _Moments(NamedTuple):
    """Frames of n contexts, or of n sets of contexts: counts [n], sums [n, D] and sums of squares [n, D]."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]


class _Forest(NamedTuple):
    """Data of all trees: answers [questions, contexts], the moments of each context, and the smallest variance [D]."""

    answers: NDArray[np.bool_]
    moments: _Moments
    floor: NDArray[np.float64]


def tie_states(
    spelled: WordStates,
    features: Sequence[Features],
    transcripts: Sequence[Sequence[str]],
    paths: Sequence[StatePath],
    *,
    units: Units | None = None,
    tree: Tree | None = None,
) -> WordStates:
    """Ties the states of units in context by decision trees.

    1. Each state of a unit begins as one class of all its contexts.
    2. A question asks whether the unit to the left (or right) is in a set. The class and question that raise the
       likelihood of the frames most are chosen, and the class is split.
    3. This repeats until there are `classes` classes, or no split both raises the likelihood and leaves `least_frames`
       on each side.
    The sets come from clustering: the two nearest sets of units are joined, again and again. The answers also send
    contexts that were never spoken to a class.

    Args:
        spelled: From `units.spell_words`, for the vocabulary.
        features: [F, D] per utterance.
        transcripts: Words of each utterance.
        paths: Alignment of each utterance with `spelled`, see `em.Trained`.
        units: As given to `units.spell_words`.
        tree: Limits of growth.

    Returns:
        The tied states. Words have as many states as before, so `paths` stays valid.

    Raises:
        ValueError: `spelled` was made with other units.

    References:
        Young, Odell and Woodland 1994 (trees over states, one Gaussian per class); Doetsch et al. 2017, section 5:
        1500 classes. Contexts end at the borders of words, and the questions come from the data.
    """
    tree = tree or Tree()
    keys = [contexts_of(word, units) for word in spelled.words]
    _check_spelled(spelled, keys)
    apart = WordStates(words=spelled.words, rows=number_states(keys, silence=spelled.silence), silence=spelled.silence)
    contexts = list(dict.fromkeys(context for row in keys for context in row))
    forest = _forest(contexts, _context_frames(apart, features, transcripts, paths), features)
    roots: dict[tuple[str, int], list[int]] = {}
    for number, context in enumerate(contexts):
        roots.setdefault((context.unit, context.place), []).append(number)
    classes = _grow([np.array(root) for root in roots.values()], forest, tree, spelled.silence)
    tied = np.empty(apart.total, np.int64)
    for number, members in enumerate(classes):
        tied[spelled.silence + members] = spelled.silence + number
    rows = tuple(tuple(tied[list(row)].tolist()) for row in apart.rows)
    return WordStates(words=spelled.words, rows=rows, silence=spelled.silence)


def _check_spelled(spelled: WordStates, keys: Sequence[Sequence[Context]]) -> None:
    for word, row, contexts in zip(spelled.words, spelled.rows, keys, strict=True):
        if len(row) != len(contexts):
            rule, remedy = f"of {len(contexts)} states, three a unit", "Make it by units.spell_words."
            raise value_error("spelled", rule, len(row), remedy, at=f"word {word}")


def _context_frames(
    apart: WordStates, features: Sequence[Features], transcripts: Sequence[Sequence[str]], paths: Sequence[StatePath]
) -> _Moments:
    """Computes the moments of every context, from the alignment with one state per context."""
    rows = [position_states(words, apart) for words in transcripts]
    labels = np.concatenate([row[path.positions] for path, row in zip(paths, rows, strict=True)])
    spoken = labels >= apart.silence
    contexts, frames = labels[spoken] - apart.silence, np.concatenate(features)[spoken].astype(np.float64)
    sums = np.zeros((2, apart.total - apart.silence, frames.shape[1]))
    np.add.at(sums[0], contexts, frames)
    np.add.at(sums[1], contexts, frames**2)
    return _Moments(np.bincount(contexts, minlength=sums.shape[1]).astype(np.float64), *sums)


def _forest(contexts: Sequence[Context], moments: _Moments, features: Sequence[Features]) -> _Forest:
    variance = np.concatenate(features).astype(np.float64).var(axis=0)
    questions = list(_questions(contexts, moments, variance))
    sides = [[context.left for context in contexts], [context.right for context in contexts]]
    answers = np.array([[unit in question for unit in side] for side in sides for question in questions])
    return _Forest(answers, moments, FLOOR_SHARE * variance)


def _questions(
    contexts: Sequence[Context], moments: _Moments, variance: NDArray[np.float64]
) -> Iterator[frozenset[str]]:
    """Yields sets of units that sound alike: each unit alone, and every set that joining the nearest two makes.

    Joining the nearest two adds least to the squared distances of the units' middle states from the means of their sets
    (Ward 1963). Units that were never spoken, and the border of a word, are only in sets of their own.
    """
    middles: dict[str, list[int]] = {context.unit: [] for context in contexts}
    for number, context in enumerate(contexts):
        if context.place == PLACES // 2:
            middles[context.unit].append(number)
    yield from (frozenset([unit]) for unit in (*middles, NO_UNIT))
    spoken = [unit for unit, members in middles.items() if moments.counts[members].any()]
    frames = np.array([moments.counts[middles[unit]].sum() for unit in spoken])
    sums = np.array([moments.sums[middles[unit]].sum(axis=0) for unit in spoken])
    if len(spoken) > 2:
        yield from _join([frozenset([unit]) for unit in spoken], frames, sums / frames[:, None] / np.sqrt(variance))


def _join(
    sets: list[frozenset[str]], frames: NDArray[np.float64], means: NDArray[np.float64]
) -> Iterator[frozenset[str]]:
    """Joins the nearest two sets until two are left, and yields every joined set; changes its arguments.

    A joined set takes the place of its first half, and only its distances are updated.

    Args:
        sets: n sets of units.
        frames: Frames of each set, [n].
        means: Mean frame of each set, in standard deviations of all frames, [n, D].
    """
    distances = np.array([_distances(number, frames, means) for number in range(len(sets))])
    np.fill_diagonal(distances, np.inf)
    for _ in range(len(sets) - 2):
        first, second = pair = sorted(divmod(int(distances.argmin()), len(sets)))
        means[first] = frames[pair] @ means[pair] / frames[pair].sum()
        frames[first] += frames[second]
        sets[first] |= sets[second]
        distances[second] = distances[:, second] = np.inf
        distances[first] = np.where(np.isinf(distances[first]), np.inf, _distances(first, frames, means))
        distances[:, first] = distances[first]
        yield sets[first]


def _distances(number: int, frames: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns by how much joining set `number` with each set would raise the squared distances from the means, [n]."""
    return frames[number] * frames / (frames[number] + frames) * np.square(means - means[number]).sum(axis=1)


def _grow(roots: Sequence[NDArray[np.int64]], forest: _Forest, tree: Tree, silence: int) -> list[NDArray[np.int64]]:
    """Splits the class of the greatest gain, again and again; returns the members of each class."""
    tickets = itertools.count()  # of two equal gains, the older entry is first
    heap = [_entry(next(tickets), members, forest, tree) for members in roots]
    heapq.heapify(heap)
    while silence + len(heap) < tree.classes and heap[0][0] < 0:
        _, _, members, yes = heapq.heappop(heap)
        for part in (members[yes], members[~yes]):
            heapq.heappush(heap, _entry(next(tickets), part, forest, tree))
    return [members for _, _, members, _ in heap]


def _entry(
    ticket: int, members: NDArray[np.int64], forest: _Forest, tree: Tree
) -> tuple[float, int, NDArray[np.int64], NDArray[np.bool_]]:
    gain, yes = _best(members, forest, tree)
    return -gain, ticket, members, yes


def _best(members: NDArray[np.int64], forest: _Forest, tree: Tree) -> tuple[float, NDArray[np.bool_]]:
    """Returns the gain of the best question, 0 if no split is allowed, and its answers [members]."""
    answers = forest.answers[:, members]
    every = _Moments(*(moment[members] for moment in forest.moments))
    yes = _Moments(*(answers.astype(np.float64) @ moment for moment in every))
    total = _Moments(*(moment.sum(axis=0, keepdims=True) for moment in every))
    no = _Moments(*(sums - yes_sums for sums, yes_sums in zip(total, yes, strict=True)))
    gains = _likelihoods(yes, forest.floor) + _likelihoods(no, forest.floor) - _likelihoods(total, forest.floor)
    gains[np.minimum(yes.counts, no.counts) < tree.least_frames] = 0.0
    best = int(gains.argmax())
    return max(float(gains[best]), 0.0), answers[best]


def _likelihoods(moments: _Moments, floor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the log likelihood of each set under one diagonal Gaussian, without terms that no split changes, [n]."""
    counts = np.maximum(moments.counts, 1.0)[:, None]
    variances = np.maximum(moments.squares / counts - (moments.sums / counts) ** 2, floor)
    return -0.5 * moments.counts * np.log(variances).sum(axis=1)
