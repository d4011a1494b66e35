"""States of units in context, tied by decision trees: for vocabularies too large for states of each word alone.

    words -> units (letters, or phonemes of a lexicon) -> three states each, alike in every context
          -> an alignment -> what each context sounds like -> trees -> states that similar contexts share

counts, sums, squares   [contexts], [contexts, D], [contexts, D]   frames of each context, and their moments

By hand, since only toolkits that are built from source, such as Kaldi and HTK, tie states. scikit-learn's trees cannot
grow by the likelihood that a Gaussian of each leaf gives its frames.
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
from lengthwise_recipes.acoustic.alignment import StatePath, path_states
from lengthwise_recipes.acoustic.hmm import WordStates, chain_of
from lengthwise_recipes.acoustic.units import NO_UNIT, PLACES, Context, Units, contexts_of, number_states
from lengthwise_recipes.speech.features import Features

FLOOR_SHARE = 0.01  # of the variance of all frames, below which none falls


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """How far the trees grow.

    Attributes:
        classes: States after tying, silence included; as many as units have at least.
        least_frames: No state is told apart from another by fewer frames than these.
    """

    classes: int = 1500
    least_frames: float = 100.0

    def __post_init__(self) -> None:
        check_whole("classes", self.classes, minimum=1, remedy="Give 1500, or fewer for little speech.")
        check_number("least_frames", self.least_frames, minimum=1.0, remedy="Give a number such as 100.")


class _Moments(NamedTuple):
    """Frames of some contexts, or of sets of them: how many [n], their sums and sums of squares [n, D]."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]


class _Forest(NamedTuple):
    """What all trees ask of: the answers to every question [questions, contexts], and the frames of each context."""

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

    Each state of a unit begins as one class of all its contexts. Then the class and the question, is the unit to the
    left (or to the right) in this set?, that raise the likelihood of the frames most are taken, and the class is
    split; and so on until there are `classes`, or no question leaves `least_frames` on both sides and raises it.
    The sets are what units cluster to: the two nearest are joined, and the two nearest again. Contexts of the
    vocabulary that were never spoken go where the questions send them.

    Args:
        spelled: What `units.spell_words` gives for the vocabulary.
        features: [F, D] of each utterance.
        transcripts: Its words.
        paths: Its alignment with `spelled`, see `em.Trained`.
        units: As given to `units.spell_words`.
        tree: When to stop.

    Returns:
        States for which `paths` is an alignment as well.

    Raises:
        ValueError: Where `spelled` is not of these units.

    References:
        Young, Odell and Woodland 1994 (trees over states, one Gaussian a class); Doetsch et al. 2017, section 5:
        1500 classes. Contexts end at the borders of words, and the questions are found in the data.
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
    """Moments of every context: the alignment is read anew, as one of states that no context shares."""
    chains = [chain_of(words, apart) for words in transcripts]
    labels = np.concatenate([path_states(path, chain) for path, chain in zip(paths, chains, strict=True)])
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
    """Sets of units that sound alike: each alone, and all that arise as the nearest two are joined.

    Near is what adds least to the squared distances from the means (Ward 1963), by the middle state of each unit.
    Units that were never spoken, and the border of a word, are in no set but their own.
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
    """The sets that arise as the nearest two are joined, until there are two; changes all it is given.

    A joined set stands in the place of its first part, and only distances from it are computed anew.

    Args:
        sets: n of units.
        frames: Of each, [n].
        means: Of their frames, in standard deviations of all frames, [n, D].
    """
    apart = np.array([_distances(number, frames, means) for number in range(len(sets))])
    np.fill_diagonal(apart, np.inf)
    for _ in range(len(sets) - 2):
        first, second = pair = sorted(divmod(int(apart.argmin()), len(sets)))
        means[first] = frames[pair] @ means[pair] / frames[pair].sum()
        frames[first] += frames[second]
        sets[first] |= sets[second]
        apart[second] = apart[:, second] = np.inf
        apart[first] = np.where(np.isinf(apart[first]), np.inf, _distances(first, frames, means))
        apart[:, first] = apart[first]
        yield sets[first]


def _distances(number: int, frames: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """What joining a set with each would add to the squared distances from the means, [n]."""
    return frames[number] * frames / (frames[number] + frames) * np.square(means - means[number]).sum(axis=1)


def _grow(roots: Sequence[NDArray[np.int64]], forest: _Forest, tree: Tree, silence: int) -> list[NDArray[np.int64]]:
    """Splits the class of the greatest gain, again and again; returns the members of each class."""
    tickets = itertools.count()  # so that of two equal gains the older is first
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
    """The gain of the best question, 0 where none may be asked, and its answers [members]."""
    answers = forest.answers[:, members]
    every = _Moments(*(moment[members] for moment in forest.moments))
    yes = _Moments(*(answers.astype(np.float64) @ moment for moment in every))
    total = _Moments(*(moment.sum(axis=0, keepdims=True) for moment in every))
    no = _Moments(*(whole - part for whole, part in zip(total, yes, strict=True)))
    gains = _likelihoods(yes, forest.floor) + _likelihoods(no, forest.floor) - _likelihoods(total, forest.floor)
    gains[np.minimum(yes.counts, no.counts) < tree.least_frames] = 0.0
    best = int(gains.argmax())
    return max(float(gains[best]), 0.0), answers[best]


def _likelihoods(moments: _Moments, floor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log likelihood of each set of frames under one diagonal Gaussian, but for what no split changes, [n]."""
    counts = np.maximum(moments.counts, 1.0)[:, None]
    variances = np.maximum(moments.squares / counts - (moments.sums / counts) ** 2, floor)
    return -0.5 * moments.counts * np.log(variances).sum(axis=1)
