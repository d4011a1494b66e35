"""Tied states: trees on sounds whose true classes are known, and what every tying promises."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise_recipes.acoustic import tying
from lengthwise_recipes.acoustic.em import Rounds, train_words
from lengthwise_recipes.acoustic.graph import StatePath
from lengthwise_recipes.acoustic.hmm import position_states, whole_words
from lengthwise_recipes.acoustic.tying import Tree, tie_states
from lengthwise_recipes.acoustic.units import spell_words

WORDS = ("axa", "bxa", "cxa", "cxb", "axc", "dxd")
MEANS = {"": 0.0, "a": 3.0, "b": 3.2, "c": -3.0, "d": -3.2, "x": 0.0}  # of a unit's frames; a and b are near, c and d


def letter_sound(word, state, frames, generator):
    """Frames of a state of `word`: those of x are at +2 after a and b, at -2 after c and d."""
    letter = word[state // 3]
    mean = MEANS[letter] + (2 * np.sign(MEANS[word[state // 3 - 1]]) if letter == "x" else 0)
    return np.column_stack([mean + 0.5 * generator.standard_normal(frames), state % 3 + np.zeros(frames)])


def spoken(*, words=WORDS, repeats=5, frames=4, seed=0):
    """Each word some times, alone, every position for as many frames; with its alignment."""
    generator = np.random.default_rng(seed)
    features, paths = [], []
    for word in words * repeats:
        sounds = [letter_sound(word, state, frames, generator) for state in range(3 * len(word))]
        silence = np.full((frames, 2), -9.0)
        features.append(np.concatenate([silence, *sounds, silence]).astype(np.float32))
        paths.append(StatePath(np.repeat(np.arange(3 * len(word) + 2), frames), 0.0))
    return features, [[word] for word in words * repeats], paths


def classes_of(tied, letter):
    """The state of the middle of a letter in every word that has it in the middle."""
    return {word: row[4] for word, row in zip(tied.words, tied.rows, strict=True) if word[1] == letter}


def test_letters_and_phonemes_are_shared_by_words():
    letters = spell_words(["ab", "b"])
    assert letters.rows == ((1, 2, 3, 4, 5, 6), (4, 5, 6))
    phonemes = spell_words(["one", "won"], units={"one": ["W", "AH"], "won": ["W", "AH"]}, silence=2)
    assert phonemes.rows == ((2, 3, 4, 5, 6, 7),) * 2
    with pytest.raises(ValueError, match=r"`units` must be of at least one unit .* but is \(\) at word 'two'"):
        spell_words(["two"], units={"one": ["W"]})


def test_the_first_question_is_the_one_that_tells_most():
    """15 states of letters, silence, and one more: x, whose frames vary most, by what is before it."""
    features, transcripts, paths = spoken()
    tied = tie_states(spell_words(WORDS), features, transcripts, paths, tree=Tree(classes=17, least_frames=10))
    assert tied.total == 17
    states = np.array([tied.rows[WORDS.index(word)][3:6] for word in WORDS])
    after_ab = np.array([word[0] in "ab" for word in WORDS])
    apart = [place for place in range(3) if len(set(states[:, place])) == 2]
    assert len(apart) == 1
    assert len(set(states[after_ab, apart[0]])) == len(set(states[~after_ab, apart[0]])) == 1


def test_the_nearest_sets_are_joined_and_told_apart_by_ward():
    generator = np.random.default_rng(3)
    frames, means = generator.integers(1, 50, 9).astype(float), generator.standard_normal((9, 4))
    sets = [frozenset([letter]) for letter in "abcdefghi"]

    def cost(one, other):
        return one[1] * other[1] / (one[1] + other[1]) * np.square(one[2] - other[2]).sum()

    plain, expected = list(zip(sets, frames.copy(), means.copy(), strict=True)), []
    while len(plain) > 2:
        one, other = min(combinations(plain, 2), key=lambda pair: cost(*pair))
        total = one[1] + other[1]
        both = (one[0] | other[0], total, (one[1] * one[2] + other[1] * other[2]) / total)
        plain = [each for each in plain if each is not one and each is not other] + [both]
        expected.append(both[0])
    assert list(tying._join(sets, frames, means)) == expected


def test_no_tree_grows_where_contexts_sound_alike_or_are_rare():
    features, transcripts, paths = spoken()
    few = tie_states(spell_words(WORDS), features, transcripts, paths, tree=Tree(classes=500, least_frames=1000))
    assert few.rows == spell_words(WORDS).rows
    some = tie_states(spell_words(WORDS), features, transcripts, paths, tree=Tree(classes=500, least_frames=40))
    assert len(set(classes_of(some, "x").values())) == 2


def test_words_never_spoken_go_where_the_questions_send_them():
    words = (*WORDS, "bxd", "dxb")
    features, transcripts, paths = spoken()
    tied = tie_states(spell_words(words), features, transcripts, paths, tree=Tree(classes=19, least_frames=10))
    x = classes_of(tied, "x")
    assert (x["bxd"], x["dxb"]) == (x["bxa"], x["dxd"])
    assert x["bxd"] != x["dxb"]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(1, 60), least_frames=st.sampled_from([1, 8, 40]))
def test_what_every_tying_promises(seed, classes, least_frames):
    spelled = spell_words(WORDS)
    features, transcripts, paths = spoken(repeats=2, seed=seed)
    tree = Tree(classes=classes, least_frames=least_frames)
    tied = tie_states(spelled, features, transcripts, paths, tree=tree)
    assert spelled.total <= tied.total <= max(classes, spelled.total)
    letters = {}
    for row, alike in zip(tied.rows, spelled.rows, strict=True):
        for state, one in zip(row, alike, strict=True):
            assert letters.setdefault(state, one) == one  # a class never mixes units or places
    labels = np.concatenate(
        [position_states(words, tied)[path.positions] for path, words in zip(paths, transcripts, strict=True)]
    )
    shared = np.bincount(list(letters.values()))
    split = [state for state, one in letters.items() if shared[one] > 1]
    assert (np.bincount(labels, minlength=tied.total)[split] >= least_frames).all()


def test_tied_states_fit_better_and_begin_from_the_alignment_of_letters():
    features, transcripts, _ = spoken(repeats=12)
    features = [each[:, :1] + 0.1 * np.random.default_rng(1).standard_normal((len(each), 2)) for each in features]
    features = [each.astype(np.float32) for each in features]
    spelled = spell_words(WORDS)
    rounds = Rounds(splits=0, alignments=4)
    alike = train_words(features, transcripts, spelled, rounds=rounds)
    tied = tie_states(spelled, features, transcripts, alike.paths, tree=Tree(classes=40, least_frames=20))
    better = train_words(features, transcripts, tied, rounds=rounds, paths=alike.paths)
    assert better.scores[0, 0] > alike.scores[0, -1] + 0.05


def test_words_that_are_not_spelled_are_refused():
    features, transcripts, paths = spoken()
    with pytest.raises(ValueError, match="`spelled` must be of 9 states, three a unit, but is 4 at word axa"):
        tie_states(whole_words(WORDS, counts=4), features, transcripts, paths)


@pytest.mark.parametrize("changes", [{"classes": 0}, {"least_frames": 0.5}])
def test_trees_that_cannot_be_are_refused(changes):
    with pytest.raises(ValueError, match="must be"):
        Tree(**changes)
