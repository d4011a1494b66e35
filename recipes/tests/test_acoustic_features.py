"""Cepstra against values worked out by hand."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.speech.corpus import Corpus, Utterance
from lengthwise_recipes.speech.features import Cepstra, corpus_features, mel_filters, spectrum, with_slopes

RATE = 8000


@given(samples=st.integers(200, 4000))
def test_only_whole_windows_are_frames(samples):
    features = Cepstra()(np.ones(samples, np.float32), rate=RATE)
    starts = [start for start in range(0, samples, 80) if start + 200 <= samples]
    assert features.shape == (len(starts), 16)
    assert features.dtype == np.float32


def test_the_mean_over_the_utterance_is_nil_and_loudness_is_forgotten():
    sound = np.random.default_rng(0).standard_normal(4000).astype(np.float32) / 10
    features = Cepstra()(sound, rate=RATE)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(Cepstra()(sound / 4, rate=RATE), features, atol=1e-3)


def test_twice_the_sound_adds_a_constant_to_the_first_coefficient_alone():
    """Half loud, half twice as loud: log 4 in each of 24 filters, times 1/sqrt(24) each."""
    still = np.sin(np.arange(2000) * 2 * np.pi / 80).astype(
        np.float32
    )  # a period is a shift: every frame sees the same
    features = Cepstra()(np.concatenate([still, 2 * still]), rate=RATE)
    difference = features[-1] - features[5]
    assert difference[0] == pytest.approx(np.log(4) * 24**0.5, rel=1e-4)
    np.testing.assert_allclose(difference[1:], 0, atol=1e-3)


@pytest.mark.parametrize("hertz", [300, 1000, 2500])
def test_a_tone_is_heard_by_the_filter_around_it(hertz):
    """Filter m of M stands around (m + 1) / (M + 1) of the mel scale, which ends at half the rate."""
    weights = mel_filters(24, 256, RATE)
    tone = np.abs(np.fft.rfft(np.sin(2 * np.pi * hertz * np.arange(256) / RATE)))
    mel, top = (2595 * np.log10(1 + value / 700) for value in (hertz, RATE / 2))
    assert abs((weights @ tone).argmax() + 1 - 25 * mel / top) < 1


def test_a_spectrum_has_the_frames_and_the_height_of_its_tone():
    """A tone of amplitude 1 through a window of ones is half the window high, in every frame."""
    tone = np.sin(2 * np.pi * np.arange(1000) / 8)
    found = spectrum(tone, np.ones(256), shift=100)
    assert found.shape == (129, 1 + (1000 - 256) // 100)
    np.testing.assert_allclose(found[256 // 8], 128, rtol=1e-9)
    assert found[[0, 16, 64, 128]].max() < 1e-9


def test_slopes_of_a_parabola():
    """t ** 2 has the slope 2 t, and that the slope 2, away from the borders."""
    times = np.arange(12, dtype=np.float32)
    features = with_slopes((times**2)[:, None])
    assert features.shape == (12, 3)
    np.testing.assert_allclose(features[2:-2, 1], 2 * times[2:-2], rtol=1e-5)
    np.testing.assert_allclose(features[4:-4, 2], 2, rtol=1e-5)
    assert features[0, 1] == pytest.approx((1 * 1 + 2 * 4) / 10)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"coefficients": 25}, "`coefficients` must be at most 24"),
        ({"filters": 0}, "`coefficients` must be at most 0"),
        ({"shift_seconds": 0.0}, "`shift_seconds` must be finite and above 0"),
    ],
)
def test_cepstra_that_cannot_be_are_refused(changes, rule):
    with pytest.raises(ValueError, match=rule):
        Cepstra(**changes)


def test_a_filter_that_hears_nothing_is_refused():
    with pytest.raises(ValueError, match="`filters` must be few enough that each covers a frequency, but is 200"):
        Cepstra(filters=200)(np.zeros(400, np.float32), rate=RATE)


def test_bad_utterances_are_named_and_left_out():
    broken = np.zeros(400, np.float32)
    broken[7] = np.nan
    sounds = {
        "good": np.ones(400, np.float32),
        "short": np.ones(199, np.float32),
        "broken": broken,
        "cut": broken[:300],
    }
    counts = {"good": 400, "short": 199, "broken": 400, "cut": 400}
    utterances = tuple(
        Utterance(name=name, speaker="ann", words=("a",), count=counts[name], load=functools.partial(np.copy, sound))
        for name, sound in sounds.items()
    )
    corpus = Corpus(name="few", rate=RATE, utterances=utterances)
    kept, features = corpus_features(corpus)
    assert [each.name for each in kept.utterances] == ["good"]
    assert [each.shape for each in features] == [(3, 16)]
    assert kept.skipped == (
        "`samples` must be at least one window of 200 samples, but is 199. Leave the utterance out. "
        "This is utterance short.",
        "`samples` must be finite, but is nan at sample 7. Write the file again. This is utterance broken.",
        "`samples` must be 400, as in its header, but is 300. Write the file again. This is utterance cut.",
    )
    with pytest.raises(ValueError, match="This is utterance short"):
        corpus_features(corpus, strict=True)
