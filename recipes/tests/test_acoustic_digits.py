"""Connected digits: made from tones that stand for digits, and from real recordings where they are at hand."""

import dataclasses
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from lengthwise_recipes.speech.digits import RATE, WORDS, Strings, add_noise, digit_strings, read_recordings

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FSDD = DATA / "fsdd" / "fsdd_8k_int16.npz"
CLEAN = (float("inf"),)


def tone_arrays(speakers=("ann", "bob"), numbers=10):
    """Recording r is 100 + r samples of the value r + 1, so that every sample tells its recording."""
    rows = [(digit, speaker, number) for digit in range(10) for speaker in speakers for number in range(numbers)]
    lengths = 100 + np.arange(len(rows))
    return {
        "audio": np.repeat(1 + np.arange(len(rows)), lengths).astype(np.int16),
        "offsets": np.append(0, np.cumsum(lengths)),
        "digit": np.array([row[0] for row in rows], np.int8),
        "speaker": np.array([row[1] for row in rows]),
        "index": np.array([row[2] for row in rows], np.int16),
    }


@pytest.fixture
def stored(tmp_path):
    """Writes arrays to an .npz."""

    def write(**changes):
        np.savez(tmp_path / "tones.npz", **(tone_arrays() | changes))
        return tmp_path / "tones.npz"

    return write


@pytest.fixture
def recordings(stored):
    return read_recordings(stored())


def heard(utterance):
    """The recordings in a clean utterance, read from its samples."""
    samples = np.rint(utterance.load() * 32768).astype(int)
    borders = np.flatnonzero(np.diff(samples, prepend=0, append=0))
    return [int(samples[start] - 1) for start in borders if start < len(samples) and samples[start] > 0]


def test_a_string_is_what_its_words_say(recordings):
    corpus = digit_strings(recordings, Strings(count=60, noise_ratios=CLEAN))
    for utterance in corpus.utterances:
        numbers = heard(utterance)
        assert tuple(WORDS[recordings.digits[number]] for number in numbers) == utterance.words
        assert {str(recordings.speakers[number]) for number in numbers} == {utterance.speaker}
        assert len(utterance.load()) == utterance.count
    assert {len(words) for words in corpus.transcripts} == set(range(1, 13))
    assert corpus.vocabulary == tuple(sorted(WORDS))


def test_train_and_test_share_no_recording(recordings):
    parts = [digit_strings(recordings, Strings(count=80, part=part, noise_ratios=CLEAN)) for part in ("train", "test")]
    train, test = ({number for each in part.utterances for number in heard(each)} for part in parts)
    assert set(recordings.numbers[sorted(test)]) == set(range(5))
    assert set(recordings.numbers[sorted(train)]) == set(range(5, 10))


def test_test_speakers_speak_nothing_else(recordings):
    strings = Strings(count=40, test_speakers=("bob",), noise_ratios=CLEAN)
    train = digit_strings(recordings, strings)
    test = digit_strings(recordings, dataclasses.replace(strings, part="test"))
    assert {each.speaker for each in train.utterances} == {"ann"}
    assert {each.speaker for each in test.utterances} == {"bob"}
    assert {number for each in test.utterances for number in recordings.numbers[heard(each)]} == set(range(10))


def test_string_i_of_a_seed_is_always_the_same(recordings):
    few = digit_strings(recordings, Strings(count=3, seed=7))
    many = digit_strings(recordings, Strings(count=9, seed=7))
    other = digit_strings(recordings, Strings(count=9, seed=8))
    again = pickle.loads(pickle.dumps(many.utterances[2]))
    assert few.transcripts == many.transcripts[:3]
    assert many.transcripts != other.transcripts
    for sound in (many.utterances[2].load(), again.load()):
        np.testing.assert_array_equal(sound, few.utterances[2].load())


@pytest.mark.parametrize("ratio", [20.0, 0.0, -6.0])
@pytest.mark.parametrize("slope", [0.0, 1.5])
def test_noise_has_the_ratio_that_was_asked(ratio, slope):
    signal = np.sin(np.arange(8000) / 7).astype(np.float32)
    noise = add_noise(signal, ratio, slope, np.random.default_rng(1)).astype(np.float64) - signal
    measured = 10 * np.log10(np.mean(signal.astype(np.float64) ** 2) / np.mean(noise**2))
    assert measured == pytest.approx(ratio, abs=0.01)


def test_the_power_of_noise_falls_by_its_slope():
    signal = np.ones(2**16, np.float32)
    noise = add_noise(signal, 0.0, 1.0, np.random.default_rng(2)) - signal
    power = np.abs(np.fft.rfft(noise)) ** 2
    octave = [power[2**bits : 2 ** (bits + 1)].mean() for bits in (8, 12)]
    assert octave[0] / octave[1] == pytest.approx(16, rel=0.2)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"count": 0}, "`count` must be at least 1"),
        ({"part": "dev"}, "`part` must be one of train, test"),
        ({"noise_ratios": ()}, "`noise_ratios` must be at least one number"),
        ({"noise_ratios": (float("nan"),)}, "`noise_ratios` must be"),
        ({"test_speakers": ("eve",)}, "`test_speakers` must be some of ann, bob, but is 'eve'"),
        ({"test_speakers": ("ann", "bob")}, "`part` must be spoken by someone, but is 'train'"),
    ],
)
def test_strings_that_cannot_be_made_are_refused(recordings, changes, rule):
    with pytest.raises(ValueError, match=rule):
        digit_strings(recordings, Strings(**({"count": 1} | changes)))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"offsets": np.array([0, 5])}, "`offsets` must be strictly rising from 0 to the number of samples"),
        ({"digit": np.zeros(3, np.int8)}, "`digit, speaker, index` must be 200 long each"),
        ({"audio": np.zeros(5)}, "`audio` must be samples of 16 bits, int16, but is 'float64'"),
        ({"digit": np.full(200, 11)}, "`digit` must be from 0 to 9, but is"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(stored, changes, rule):
    with pytest.raises(ValueError, match=rule):
        read_recordings(stored(**changes))


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "few.npz", audio=np.zeros(3, np.int16))
    with pytest.raises(ValueError, match="Add offsets, digit, speaker, index"):
        read_recordings(tmp_path / "few.npz")


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "tones.npz").write_text("no arrays")
    with pytest.raises(ValueError, match=r"`path` must be an \.npz with the arrays audio"):
        read_recordings(tmp_path / "tones.npz")


@pytest.mark.skipif(not FSDD.exists(), reason=f"no spoken digits at {FSDD}; set LENGTHWISE_DATA")
def test_real_digits_are_joined():
    real = read_recordings(FSDD)
    assert (len(real.samples), len(set(real.speakers))) == (3000, 6)
    corpus = digit_strings(real, Strings(count=50))
    seconds = np.array([utterance.count for utterance in corpus.utterances]) / RATE
    assert seconds.min() > 0.2
    assert seconds.max() < 12 * (18262 / RATE + 0.3) + 0.3
    assert all(np.abs(utterance.load()).max() > 0.01 for utterance in corpus.utterances[:5])
