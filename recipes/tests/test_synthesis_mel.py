"""Log-mel spectrograms: which frames there are, and what a tone, silence and bad sounds look like in them."""

import functools

import numpy as np
import pytest

pytest.importorskip("soundfile")

from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.speech.corpus import Corpus, Utterance
from lengthwise_recipes.speech.features import corpus_features
from lengthwise_recipes.synthesis.mel import FLOOR, LogMel

RATE = 8000  # a window is 400 samples, a shift 100


def tone(hertz, *, count=RATE, amplitude=1.0):
    return (amplitude * np.sin(2 * np.pi * hertz * np.arange(count) / RATE)).astype(np.float32)


@given(st.integers(400, 1300), st.sampled_from([8000, 8800, 11025]))
def test_a_frame_stands_at_every_shift(count, rate):
    window, shift = round(0.05 * rate), round(0.0125 * rate)
    count = max(count, window)
    mel = LogMel(bands=5)(np.ones(count, np.float32), rate=rate)
    assert mel.shape == (1 + count // shift, 5)
    assert mel.dtype == np.float32


@pytest.mark.parametrize("hertz", [300, 1000, 2500])
def test_a_tone_is_heard_in_the_band_around_it(hertz):
    log_mel = LogMel(bands=16)
    mel = log_mel(tone(hertz), rate=RATE)
    edges = 700 * (10 ** (np.linspace(0, np.log10(1 + RATE / 2 / 700), 18)) - 1)
    (band,) = set(mel[4:-4].argmax(axis=1))
    assert edges[band] < hertz < edges[band + 2]


def test_a_tone_of_full_scale_has_height_one():
    # One band alone is a triangle of height 1 at mel(4000) / 2. A Hann window spreads a tone over three bins of height
    # 1/2, 1 and 1/2, so that the band hears 2, less the little that the triangle has fallen to either side.
    top = 700 * (10 ** (np.log10(1 + 4000 / 700) / 2) - 1)  # 1114 Hz
    loud = LogMel(bands=1)(tone(top), rate=RATE)[5:-5]
    quiet = LogMel(bands=1)(tone(top, amplitude=0.1), rate=RATE)[5:-5]
    spread = 512 / 400  # bins of the transform for one of the window
    np.testing.assert_allclose(np.exp(loud), 2 * spread, rtol=0.05)
    np.testing.assert_allclose(loud - quiet, np.log(10), atol=1e-4)


def test_silence_is_the_floor_and_shifts_move_frames():
    assert np.all(LogMel(bands=3)(np.zeros(500, np.float32), rate=RATE) == np.float32(np.log(FLOOR)))
    assert FLOOR == 1e-4  # or committed results would be of other spectrograms
    sound = np.concatenate([np.zeros(300, np.float32), tone(700, count=900)])
    early = np.concatenate([sound[100:], np.zeros(100, np.float32)])
    log_mel = LogMel(bands=8)
    np.testing.assert_allclose(log_mel(sound, rate=RATE)[4:9], log_mel(early, rate=RATE)[3:8], atol=1e-5)


@pytest.mark.parametrize("name", ["bands", "window_seconds", "shift_seconds"])
def test_sizes_are_checked(name):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        LogMel(**{name: 0})


def corpus_of(**sounds):
    loads = {name: functools.partial(np.asarray, sound, np.float32) for name, sound in sounds.items()}
    recordings = tuple(
        Utterance(name=name, speaker=name, words=(name,), count=500, load=load) for name, load in loads.items()
    )
    return Corpus(name="test", rate=RATE, utterances=recordings, skipped=("before",))


def test_recordings_that_cannot_be_used_are_named():
    corpus = corpus_of(good=np.ones(500), short=np.ones(490), sick=np.full(500, np.nan))
    kept, mels = corpus_features(corpus, LogMel(bands=4))
    assert ([recording.name for recording in kept.utterances], len(mels)) == (["good"], 1)
    before, short, sick = kept.skipped
    assert before == "before"
    assert short.startswith("`samples` must be 500, as in its header, but is 490")
    assert short.endswith("This is utterance short.")
    assert sick.startswith("`samples` must be finite, but is nan at sample 0")
    with pytest.raises(ValueError, match="This is utterance short"):
        corpus_features(corpus, LogMel(bands=4), strict=True)


def test_more_bands_than_a_window_can_tell_are_refused_at_once():
    pytest.importorskip("torch")
    from lengthwise_recipes.synthesis.task import Network, SynthesisTask

    with pytest.raises(ValueError, match="`filters` must be few enough that each covers a frequency, but is 200"):
        SynthesisTask.of(corpus_of(good=np.ones(500)), network=Network(bands=200))


def test_a_sound_shorter_than_a_window_is_refused():
    with pytest.raises(ValueError, match="`samples` must be at least one window of 400 samples, but is 399"):
        LogMel()(np.zeros(399, np.float32), rate=RATE)
