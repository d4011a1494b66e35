"""Mixtures and the training of word models: by hand, by law, and on speech whose segments are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise_recipes.acoustic.em import Rounds, frame_labels, train_words
from lengthwise_recipes.acoustic.hmm import whole_words
from lengthwise_recipes.acoustic.mixtures import Mixtures, global_mixtures, refit, split

STATES = whole_words("abc", counts=2)


def spoken(seed, *, count=30, noise=0.3):
    """Utterances of 1 to 4 words and pauses; every state has its own mean. Also the true state of every frame."""
    generator = np.random.default_rng(seed)
    means = 4 * np.random.default_rng(99).standard_normal((STATES.total, 3))
    features, transcripts, labels = [], [], []
    for _ in range(count):
        words = generator.choice(STATES.words, size=generator.integers(1, 5)).tolist()
        row = [0, *(state for word in words for state in (*STATES.rows[STATES.words.index(word)], 0))]
        truth = np.repeat(row, generator.integers(3, 9, size=len(row)))
        features.append((means[truth] + noise * generator.standard_normal((len(truth), 3))).astype(np.float32))
        transcripts.append(words)
        labels.append(truth)
    return features, transcripts, labels


def test_scores_are_those_of_the_formula():
    """0.25 N(1; 0, 1) + 0.75 N(1; 3, 4) = 0.25 x 0.241971 + 0.75 x 0.120985 = 0.151232."""
    mixtures = Mixtures(
        weights=np.array([[0.25, 0.75], [1.0, 0.0]]),
        means=np.array([[[0.0], [3.0]], [[1.0], [9.0]]]),
        variances=np.array([[[1.0], [4.0]], [[1.0], [1.0]]]),
        floor=np.array([0.1]),
    )
    scores = mixtures.scores(np.array([[1.0]], np.float32))
    np.testing.assert_allclose(np.exp(scores), [[0.151232, 0.398942]], rtol=1e-5)


def test_one_density_is_fitted_by_mean_and_variance():
    features, labels = [np.array([[0.0], [2.0], [7.0]], np.float32)], [np.array([0, 0, 1])]
    fitted = refit(global_mixtures(features, 3, floor_share=0.01), features, labels)
    assert fitted.means[:, 0, 0].tolist() == [1.0, 7.0, 3.0]  # the third state has no frames: the mean of all
    np.testing.assert_allclose(fitted.variances[:, 0, 0], [1.0, 0.01 * 26 / 3, 26 / 3])
    assert fitted.weights.tolist() == [[1.0], [1.0], [1.0]]


def test_densities_with_too_few_frames_stay_whole():
    features = [np.arange(8, dtype=np.float32)[:, None]]
    mixtures = global_mixtures(features, 2)
    halves = split(mixtures, np.array([40, 39]), least_frames=20)
    assert halves.weights.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    deviation = np.std(np.arange(8))
    np.testing.assert_allclose(halves.means[0, :, 0], [3.5 - 0.2 * deviation, 3.5 + 0.2 * deviation])
    assert halves.means[1, 0, 0] == 3.5


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), splits=st.integers(0, 3), frames=st.integers(2, 60))
def test_a_step_never_lowers_the_likelihood(seed, splits, frames):
    generator = np.random.default_rng(seed)
    features = [generator.standard_normal((frames, 2)).astype(np.float32) ** 3]
    labels = [generator.integers(0, 2, size=frames)]
    mixtures = global_mixtures(features, 2)
    for _ in range(splits):
        mixtures = split(mixtures, np.bincount(labels[0], minlength=2), least_frames=3)
    likelihoods = []
    for _ in range(5):
        likelihoods.append(mixtures.scores(features[0])[np.arange(frames), labels[0]].sum())
        mixtures = refit(mixtures, features, labels)
    assert (np.diff(likelihoods) >= -1e-7 * np.abs(likelihoods[0])).all()
    np.testing.assert_allclose(mixtures.weights.sum(axis=1), 1)


@pytest.mark.parametrize("seed", range(3))
def test_training_never_lowers_the_likelihood_of_the_best_paths(seed):
    features, transcripts, _ = spoken(seed, noise=3.0)
    trained = train_words(features, transcripts, STATES, rounds=Rounds(splits=2, alignments=6))
    assert trained.scores.shape == (3, 6)
    assert (np.diff(trained.scores, axis=1) >= -1e-5).all()  # Kaldi adds in single precision
    assert trained.scores[0, -1] > trained.scores[0, 0]


def test_a_flat_start_finds_the_borders():
    features, transcripts, truth = spoken(5, count=60)
    model = train_words(features, transcripts, STATES, rounds=Rounds(splits=0, alignments=8)).model
    labels = frame_labels(model, features, transcripts)
    agreed = np.concatenate(labels) == np.concatenate(truth)
    assert agreed.mean() > 0.97
    lasts = np.full(STATES.total, 1 - 1 / 5.5)  # states last 3 to 8 frames, 5.5 in the mean
    np.testing.assert_allclose(model.stay, lasts, atol=0.05)


def test_training_twice_gives_the_same():
    features, transcripts, _ = spoken(1)
    first, second = (train_words(features, transcripts, STATES, rounds=Rounds(splits=1)) for _ in range(2))
    np.testing.assert_array_equal(first.model.mixtures.means, second.model.mixtures.means)
    np.testing.assert_array_equal(first.scores, second.scores)


@pytest.mark.parametrize("changes", [{"splits": -1}, {"alignments": 0}])
def test_rounds_that_cannot_be_are_refused(changes):
    with pytest.raises(ValueError, match="must be at least"):
        Rounds(**changes)


def test_nothing_to_train_on_is_refused():
    with pytest.raises(ValueError, match="`features` must be of at least one utterance"):
        train_words([], [], STATES)
