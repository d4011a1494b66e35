"""The features of librosa are those that the committed results were trained on: the same formulas in plain NumPy."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import numpy_features
from lengthwise_recipes.pages import EARLIER_FEATURES, FEATURES_AGREE, SLOPES_AGREE, features_note
from lengthwise_recipes.speech.features import Cepstra, with_slopes
from lengthwise_recipes.synthesis.mel import LogMel

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
DIGITS = DATA / "fsdd" / "fsdd_8k_int16.npz"
RATES = (8000, 11025, 22050)  # windows of even and of odd length

sounds = arrays(np.float32, st.integers(1200, 3000), elements=st.floats(-1, 1, width=32))


def assert_alike(samples, rate, *, within):
    """Cepstra and spectrograms within so much of the formulas, frame by frame."""
    found, expected = Cepstra()(samples, rate=rate), numpy_features.cepstra(samples, rate)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= within
    for bands in (16, 80):
        found, expected = LogMel(bands=bands)(samples, rate=rate), numpy_features.log_mel(samples, rate, bands=bands)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= within


@pytest.mark.parametrize("rate", RATES)
@given(samples=sounds)
def test_features_are_those_of_the_formulas(rate, samples):
    assert_alike(samples, rate, within=1e-4)  # what an FFT rounds off can be all that a filter hears


def test_slopes_are_those_of_the_formula():
    features = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    np.testing.assert_allclose(with_slopes(features)[:, 16:], numpy_features.slopes(features), atol=SLOPES_AGREE)


@pytest.mark.skipif(not DIGITS.exists(), reason=f"no spoken digits at {DIGITS}; set LENGTHWISE_DATA")
def test_features_of_real_speech_agree_as_far_as_the_pages_say():
    with np.load(DIGITS) as held:
        audio, offsets = held["audio"], held["offsets"]
    for number in range(0, 3000, 100):
        samples = (audio[offsets[number] : offsets[number + 1]] / 32768).astype(np.float32)
        for rate in RATES:
            assert_alike(samples, rate, within=FEATURES_AGREE)
        features = numpy_features.cepstra(samples, 8000)
        assert np.abs(with_slopes(features)[:, 16:] - numpy_features.slopes(features)).max() <= SLOPES_AGREE


def test_a_result_says_by_what_its_features_were_made():
    assert features_note({"features": "librosa 0.11.0"}) == "Features by librosa 0.11.0."
    assert features_note({}) == EARLIER_FEATURES
    assert f"{FEATURES_AGREE:g}" in EARLIER_FEATURES
