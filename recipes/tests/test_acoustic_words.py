"""From sound to words: tones that stand for digits, and real digits where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jiwer")

from lengthwise_recipes.acoustic.alignment import select_alignable, state_priors
from lengthwise_recipes.acoustic.bigram import even_bigram
from lengthwise_recipes.acoustic.decoder import decode, hybrid_scores, word_error_rate
from lengthwise_recipes.acoustic.em import Rounds, frame_labels, train_words
from lengthwise_recipes.acoustic.hmm import whole_words
from lengthwise_recipes.speech.digits import RATE, WORDS, Recordings, Strings, digit_strings, read_recordings
from lengthwise_recipes.speech.features import corpus_features, with_slopes

pytestmark = pytest.mark.slow

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FSDD = DATA / "fsdd" / "fsdd_8k_int16.npz"
STATES = whole_words(WORDS, counts=4)


def tones():
    """A digit is two tones, one after the other; each recording is a little higher or lower, longer or shorter."""
    generator = np.random.default_rng(0)
    rows = [(digit, number) for digit in range(10) for number in range(8)]
    samples = []
    for digit, _ in rows:
        count = int(generator.integers(1600, 2800))
        pitches = np.repeat([300 + 300 * digit, 3500 - 310 * digit], [count // 2, count - count // 2])
        phases = np.cumsum(pitches * generator.uniform(0.98, 1.02)) * 2 * np.pi / RATE
        samples.append((0.3 * np.sin(phases)).astype(np.float32))
    digits, numbers = (np.array(column) for column in zip(*rows, strict=True))
    return Recordings(samples=tuple(samples), digits=digits, speakers=np.full(80, "tone"), numbers=numbers)


def features_of(recordings, **choices):
    corpus, features = select_alignable(*corpus_features(digit_strings(recordings, Strings(**choices))), STATES)
    return corpus.transcripts, [with_slopes(each) for each in features]


def test_tones_are_understood():
    recordings = tones()
    transcripts, features = features_of(recordings, count=60)
    model = train_words(features, transcripts, STATES, rounds=Rounds(splits=0, alignments=5)).model
    told, heard = features_of(recordings, count=20, part="test")
    found = decode([model.mixtures.scores(each) for each in heard], STATES, model.stay, even_bigram(WORDS))
    assert word_error_rate(told, [hypothesis.words for hypothesis in found]) < 0.05


def test_a_perfect_network_gives_the_words_of_its_labels():
    transcripts, features = features_of(tones(), count=30)
    model = train_words(features, transcripts, STATES, rounds=Rounds(splits=0, alignments=5)).model
    labels = frame_labels(model, features, transcripts)
    posteriors = [np.log(np.where(np.eye(STATES.total)[each] > 0, 0.9, 0.1 / (STATES.total - 1))) for each in labels]
    priors = state_priors(labels, STATES.total)
    found = decode([hybrid_scores(each, priors) for each in posteriors], STATES, model.stay, even_bigram(WORDS))
    assert [hypothesis.words for hypothesis in found] == transcripts


@pytest.mark.skipif(not FSDD.exists(), reason=f"no spoken digits at {FSDD}; set LENGTHWISE_DATA")
def test_real_digits_are_understood():
    recordings = read_recordings(FSDD)
    transcripts, features = features_of(recordings, count=80)
    model = train_words(features, transcripts, STATES, rounds=Rounds(splits=1, alignments=4)).model
    told, heard = features_of(recordings, count=30, part="test")
    found = decode([model.mixtures.scores(each) for each in heard], STATES, model.stay, even_bigram(WORDS))
    assert word_error_rate(told, [hypothesis.words for hypothesis in found]) < 0.2
