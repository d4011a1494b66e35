"""Decoding against every string of words there is, and language models by hand."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jiwer")

from lengthwise_recipes.acoustic.alignment import best_paths
from lengthwise_recipes.acoustic.bigram import Bigram, count_bigram, even_bigram
from lengthwise_recipes.acoustic.decoder import Search, decode, hybrid_scores, word_error_rate
from lengthwise_recipes.acoustic.hmm import fewest_frames, whole_words

STATES = whole_words("ab", counts=[2, 1])
LONG_SILENCE = whole_words("abc", counts=[1, 2, 3], silence=2)


def drawn(seed, frames, states):
    """Scores, stay and a bigram, half of whose pairs were never seen."""
    generator = np.random.default_rng(seed)
    size = len(states.words) + 1
    singles, backoffs = np.log(generator.dirichlet(np.ones(size))), np.log(generator.uniform(0.1, 0.9, size))
    seen = {(last, word): generator.uniform(0, 1) for last in range(size) for word in range(size) if (last + word) % 2}
    pairs = {pair: backoffs[pair[0]] + singles[pair[1]] + more for pair, more in seen.items()}
    bigram = Bigram(words=states.words, singles=singles, backoffs=backoffs, pairs=pairs)
    scores = 2 * generator.standard_normal((frames, states.total))
    return scores, generator.uniform(0.1, 0.9, states.total), bigram


def told(bigram, numbers):
    """The bigram's score of words, start and end included."""
    size = len(bigram.words)
    return sum(table_of(bigram)[pair] for pair in itertools.pairwise([size, *numbers, size]))


def table_of(bigram):
    """Log P(w | h) in row h and column w."""
    table = bigram.backoffs[:, None] + bigram.singles
    for pair, score in bigram.pairs.items():
        table[pair] = score
    return table


def every_hypothesis(scores, states, stay, bigram, search):
    """(score, words) of every string of words that fits into the frames."""
    size = len(states.words)
    for count in range(len(scores) + 1):
        for numbers in itertools.product(range(size), repeat=count):
            words = tuple(states.words[number] for number in numbers)
            if fewest_frames(words, states) <= len(scores):
                path = best_paths([scores], [words], states, stay)[0]
                yield path.score + search.lm_scale * told(bigram, numbers) - search.insertion_penalty * count, words


@pytest.mark.parametrize("states", [STATES, LONG_SILENCE])
@pytest.mark.parametrize("search", [Search(lm_scale=1.5), Search(lm_scale=0.0, insertion_penalty=1.0)])
@pytest.mark.parametrize(("seed", "frames"), [(0, 5), (1, 6), (2, 6), (3, 4), (4, 2)])
def test_the_words_are_the_best_of_all(states, search, seed, frames):
    scores, stay, bigram = drawn(seed, frames, states)
    found = decode([scores], states, stay, bigram, search=search)[0]
    score, words = max(every_hypothesis(scores, states, stay, bigram, search))
    assert found.score == pytest.approx(score, rel=1e-5)
    assert found.words == words


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(2, 30), beam=st.sampled_from([1.0, 5.0, 1000.0]))
def test_the_score_is_that_of_the_words_and_no_beam_finds_better(seed, frames, beam):
    scores, stay, bigram = drawn(seed, frames, LONG_SILENCE)
    search = Search(lm_scale=0.7, insertion_penalty=-1.0)
    found = decode([scores], LONG_SILENCE, stay, bigram, search=search)[0]
    numbers = [LONG_SILENCE.words.index(word) for word in found.words]
    path = best_paths([scores], [found.words], LONG_SILENCE, stay)[0]
    assert found.score == pytest.approx(path.score + 0.7 * told(bigram, numbers) + len(numbers), rel=1e-5, abs=1e-4)
    pruned = decode([scores], LONG_SILENCE, stay, bigram, search=dataclasses.replace(search, beam=beam))[0]
    assert pruned == found if beam == 1000 else pruned.score <= found.score + 1e-4


def test_a_penalty_makes_words_few():
    scores, stay, bigram = drawn(6, 40, LONG_SILENCE)
    counts = [
        len(decode([scores], LONG_SILENCE, stay, bigram, search=Search(lm_scale=0, insertion_penalty=penalty))[0].words)
        for penalty in (-20.0, 0.0, 2.0, 1000.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0] > 20, counts[-1]) == (True, 0)


def test_the_language_model_decides_where_the_sound_does_not():
    bigram = count_bigram([["a", "b"], ["a", "b"], ["a", "b"]], ["a", "b"])
    states = whole_words("ab", counts=2)
    scores = np.full((8, states.total), -9.0)
    for frame, either in enumerate([(1, 3), (1, 3), (2, 4), (2, 4)] * 2):
        scores[frame, list(either)] = 0.0  # both words sound alike, and are said twice
    found = decode([scores], states, np.full(states.total, 0.5), bigram)
    assert found[0].words == ("a", "b")


def test_posteriors_are_divided_by_priors():
    scores = hybrid_scores(np.log([[0.5, 0.5]]), np.array([0.8, 0.2]))
    np.testing.assert_allclose(np.exp(scores), [[0.625, 2.5]])
    half = hybrid_scores(np.log([[0.5, 0.5]]), np.array([0.64, 0.36]), prior_scale=0.5)
    np.testing.assert_allclose(np.exp(half), [[0.625, 0.5 / 0.6]])


def test_a_bigram_by_hand():
    """a b | a a: a is followed by b, a and the end once each, b by the end, the start by a twice.

    P(a) = 4/9, P(b) = 2/9, P(end) = 3/9. After a: 0.5/3 each, and 0.5 spared for P; after b: 0.5 for the end, 0.5 for
    P; at the start: 1.5/2 for a, 0.25 for P.
    """
    shares = np.exp(table_of(count_bigram([["a", "b"], ["a", "a"]], ["a", "b"])))
    single = np.array([4, 2, 3]) / 9
    np.testing.assert_allclose(shares[0], 0.5 / 3 + 0.5 * single)
    np.testing.assert_allclose(shares[1], [0, 0, 0.5] + 0.5 * single)
    np.testing.assert_allclose(shares[2], [0.75, 0, 0] + 0.25 * single)


@given(transcripts=st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=6), discount=st.floats(0, 1))
def test_probabilities_sum_to_one(transcripts, discount):
    bigram = count_bigram(transcripts, "abcd", discount=discount)
    np.testing.assert_allclose(np.exp(table_of(bigram)).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(table_of(even_bigram("abcd"))), 0.2)


def test_word_error_rate_counts_all_words_together():
    """One word of one is wrong; of five, one is missing and one too many: 3 of 6."""
    references = [["a"], ["a", "b", "c", "d", "e"]]
    assert word_error_rate(references, [["b"], ["a", "c", "d", "x", "e"]]) == pytest.approx(3 / 6)
    assert word_error_rate(references, [[], []]) == 1.0


def test_what_does_not_fit_is_refused():
    scores, stay, bigram = drawn(0, 4, STATES)
    with pytest.raises(ValueError, match="`bigram` must be of the words that have states"):
        decode([scores], STATES, stay, even_bigram(("b", "a")))
    with pytest.raises(ValueError, match=r"`scores` must be \[frames, 4\], of at least 1 frames, but is \[4, 3\]"):
        decode([scores[:, :3]], STATES, stay, bigram)
    with pytest.raises(ValueError, match="at utterance 1"):
        decode([scores, scores[:0]], STATES, stay, bigram)
    with pytest.raises(ValueError, match="`transcripts` must be of words of the vocabulary, but is 'z'"):
        count_bigram([["a", "z"]], ["a"])
    with pytest.raises(ValueError, match="`lm_scale` must be finite and at least 0"):
        Search(lm_scale=-1.0)
    with pytest.raises(ValueError, match="`beam` must be above 0, but is 0"):
        Search(beam=0)
