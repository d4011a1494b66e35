"""Chains of words by hand, and their best paths against every path there is."""

import itertools

import numpy as np
import pytest

from lengthwise_recipes.acoustic.alignment import (
    best_paths,
    even_path,
    select_alignable,
    state_priors,
)
from lengthwise_recipes.acoustic.hmm import WordStates, fewest_frames, position_states, whole_words
from lengthwise_recipes.speech.corpus import Corpus, Utterance

STATES = whole_words("ab", counts=[2, 1])
LONG_SILENCE = whole_words("ab", counts=[1, 2], silence=2)


def segmentations(words, states):
    """All rows of states that words may be said in: with or without silence at every border."""
    silence = list(range(states.silence))
    for pauses in itertools.product([False, True], repeat=len(words) + 1):
        row = silence * pauses[0]
        for word, pause in zip(words, pauses[1:], strict=True):
            row = row + list(states.rows[states.words.index(word)]) + silence * pause
        yield row


def every_path(frames, words, states, scores, stay):
    """(score, states) of every path: one state of a row lasts for one or more frames."""
    for row in segmentations(words, states):
        for cuts in itertools.combinations(range(1, frames), len(row) - 1):
            lasts = np.diff([0, *cuts, frames])
            path = np.repeat(row, lasts)
            score = scores[np.arange(frames), path].sum() + (len(words) + 1) * np.log(0.5)
            score += ((lasts - 1) * np.log(stay[row]) + np.log(1 - stay[row])).sum()
            yield score, path.tolist()


def drawn_scores(seed, frames, states):
    generator = np.random.default_rng(seed)
    return 3 * generator.standard_normal((frames, states.total)), generator.uniform(0.1, 0.9, states.total)


@pytest.mark.parametrize("states", [STATES, LONG_SILENCE])
@pytest.mark.parametrize("words", [["a"], ["b", "a"], ["b", "b"], ["a", "b", "a"]])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_path_is_the_best_of_all(states, words, seed):
    scores, stay = drawn_scores(seed, 7, states)
    path = best_paths([scores], [words], states, stay)[0]
    score, best = max(every_path(7, words, states, scores, stay))
    assert path.score == pytest.approx(score, rel=1e-5)
    assert position_states(words, states)[path.positions].tolist() == best


def test_positions_by_hand():
    """Silence 0; a has the states 1 and 2, b has 3."""
    assert position_states(["b", "a"], STATES).tolist() == [0, 3, 0, 1, 2, 0]
    assert (fewest_frames(["b", "a"], STATES), fewest_frames([], LONG_SILENCE)) == (3, 2)


def test_the_shortest_utterance_has_one_path():
    scores, stay = drawn_scores(0, 3, LONG_SILENCE)
    path = best_paths([scores], [["b", "a"]], LONG_SILENCE, stay)[0]
    assert position_states(["b", "a"], LONG_SILENCE)[path.positions].tolist() == [3, 4, 2]
    with pytest.raises(ValueError, match="`scores` must be at least 3 frames, one a state, but is 2 at utterance 1"):
        best_paths([scores, scores[:2]], [["b", "a"]] * 2, LONG_SILENCE, stay)


def test_an_even_path_visits_every_position_alike():
    assert even_path(9, 4).positions.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]


def test_priors_count_every_label_and_one_more():
    priors = state_priors([np.array([0, 1, 1]), np.array([1])], 3)
    assert priors.tolist() == [2 / 7, 4 / 7, 1 / 7]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"words": ("a", "a")}, "`words` must be at least one, and each once"),
        ({"words": (), "rows": ()}, "`words` must be at least one"),
        ({"rows": ((1,),)}, "`rows` must be 2, one a word, but is 1"),
        ({"rows": ((1,), ())}, r"`rows` must be of at least one state, each 1 or more, but is \(\) at word b"),
        ({"rows": ((1,), (2, 0))}, r"but is \(2, 0\) at word b"),
        ({"silence": 0}, "`silence` must be at least 1"),
    ],
)
def test_states_that_cannot_be_are_refused(changes, rule):
    with pytest.raises(ValueError, match=rule):
        WordStates(**({"words": ("a", "b"), "rows": ((1,), (2,))} | changes))


def test_words_without_states_are_refused():
    with pytest.raises(ValueError, match="`counts` must be at least 1, but is 0"):
        whole_words("ab", counts=[1, 0])


def test_words_may_share_states():
    states = WordStates(words=("ab", "ba"), rows=((1, 2), (2, 1)))
    scores, stay = drawn_scores(3, 8, states)
    row = position_states(["ab", "ba"], states)
    assert (states.total, row.tolist()) == (3, [0, 1, 2, 0, 2, 1, 0])
    score, best = max(every_path(8, ["ab", "ba"], states, scores, stay))
    path = best_paths([scores], [["ab", "ba"]], states, stay)[0]
    assert (path.score, row[path.positions].tolist()) == (pytest.approx(score, rel=1e-5), best)


def test_what_cannot_be_aligned_is_named():
    told = {"good": ("a", "b"), "short": ("a", "a", "a"), "strange": ("a", "zebra")}
    utterances = tuple(
        Utterance(name=name, speaker="ann", words=words, count=1, load=lambda: np.zeros(1, np.float32))
        for name, words in told.items()
    )
    corpus = Corpus(name="few", rate=8000, utterances=utterances, skipped=("before",))
    features = [np.zeros((5, 2), np.float32)] * 3
    kept, left = select_alignable(corpus, features, STATES)
    assert [each.name for each in kept.utterances] == ["good"]
    assert len(left) == 1
    assert kept.skipped == (
        "before",
        "`frames` must be at least 6, one for each state of the words, but is 5. "
        "Leave the utterance out, or give words fewer states. This is utterance short.",
        "`word` must be of the vocabulary, but is 'zebra'. Add it, or leave its utterance out. "
        "This is utterance strange.",
    )
    with pytest.raises(ValueError, match="This is utterance short"):
        select_alignable(corpus, features, STATES, strict=True)
