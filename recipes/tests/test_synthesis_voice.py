"""Sentences of the project's own, and the voice that speaks them."""

import io
import sys

import numpy as np
import pytest

pytest.importorskip("soundfile")

import soundfile
from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.synthesis.sentences import own_sentences
from lengthwise_recipes.synthesis.speech import read_speech
from lengthwise_recipes.synthesis.voice import engine, speak, speak_sentences


@pytest.fixture
def engine_paths():
    pytest.importorskip("espeakng_loader", reason="espeakng-loader is not installed: nothing is spoken")
    return dict(zip(("library", "data"), engine(), strict=True))


@given(st.integers(1, 30), st.integers(1, 25), st.integers(0, 9))
def test_sentences_have_from_one_word_to_the_longest(count, max_words, seed):
    sentences = own_sentences(count, max_words=max_words, seed=seed)
    assert len(sentences) == count
    for sentence in sentences.values():
        assert 1 <= len(sentence.split()) <= max_words
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert "," not in sentence.replace(", ", "")


def test_a_sentence_is_the_same_for_every_count_and_another_for_every_seed():
    few, many, others = own_sentences(5), own_sentences(40), own_sentences(40, seed=1)
    assert list(many.items())[:5] == list(few.items())
    assert not set(many) & set(others)
    assert len(set(many.values()) & set(others.values())) < 5  # of those of one word


def test_long_sentences_are_more_frequent_as_they_are_longer():
    words = np.array([len(sentence.split()) for sentence in own_sentences(1500).values()])
    counts = np.bincount(words, minlength=26)[1:]
    expected = 1500 * (2 * np.arange(1, 26) - 1) / 625  # the square root of a uniform number, in 25 steps
    assert counts.sum() == 1500
    assert np.sum((counts - expected) ** 2 / expected) < 52.6  # chi-squared, 24 degrees of freedom: 1 in 1600


def test_a_sentence_sounds_the_same_whatever_was_said_before(engine_paths):
    first = speak("The quiet garden listens.", **engine_paths)
    speak("A station.", **engine_paths)
    assert speak("The quiet garden listens.", **engine_paths) == first
    samples, rate = soundfile.read(io.BytesIO(first))
    assert rate == 22050
    assert 1.0 < len(samples) / rate < 3.0
    assert np.abs(samples).max() > 0.1


def test_what_is_spoken_is_not_spoken_again(engine_paths, tmp_path):  # noqa: ARG001
    def stamps():
        return {path.stem: path.stat().st_mtime_ns for path in (tmp_path / "wavs").iterdir()}

    speak_sentences({"a": "One.", "b": "Two."}, tmp_path)
    before = stamps()
    (tmp_path / "wavs" / "b.wav").unlink()
    speak_sentences({"a": "One.", "b": "Two.", "c": "Three."}, tmp_path)
    assert stamps()["a"] == before["a"]
    assert set(stamps()) == {"a", "b", "c"}
    speak_sentences({"c": "Three.", "a": "Another one."}, tmp_path)
    assert stamps()["a"] > before["a"]
    assert (tmp_path / "metadata.csv").read_text().splitlines() == ["c|Three.", "a|Another one.", "b|Two."]


def test_an_interrupted_call_goes_on(engine_paths, tmp_path):  # noqa: ARG001
    texts = {"a": "One.", "b": "Two.", "c": "Three."}
    speak_sentences(texts, tmp_path)
    (tmp_path / "metadata.csv").write_text("a|One.\nb|Tw")
    (tmp_path / "wavs" / f".lengthwise-{0:016x}.draft").write_bytes(b"half")
    (tmp_path / "wavs" / "c.wav").unlink()
    stamp = (tmp_path / "wavs" / "a.wav").stat().st_mtime_ns
    speak_sentences(texts, tmp_path)
    assert (tmp_path / "wavs" / "a.wav").stat().st_mtime_ns == stamp
    assert (tmp_path / "metadata.csv").read_text().splitlines() == ["a|One.", "b|Two.", "c|Three."]
    assert len(read_speech(tmp_path, strict=True)) == 3


def test_a_file_of_sentences_is_spoken(engine_paths, tmp_path):  # noqa: ARG001
    (tmp_path / "lines.csv").write_text("x|First.\nbroken\ny|Second.\nz|Third.\n", encoding="utf-8")
    corpus = read_speech(tmp_path / "lines.csv", folder=tmp_path / "spoken", count=2)
    assert [(recording.name, recording.text) for recording in corpus.utterances] == [("x", "First."), ("y", "Second.")]
    assert len(corpus.skipped) == 1
    assert "'broken' at line 2" in corpus.skipped[0]
    own = read_speech(None, folder=tmp_path / "own", count=3, max_words=3)
    assert [recording.text for recording in own.utterances] == list(own_sentences(3, max_words=3).values())


def test_a_voice_that_fails_says_so(engine_paths, tmp_path):
    rule = "`text` must be speakable by eSpeak NG, but is 'One.'. eSpeak NG does not start with the data"
    with pytest.raises(ValueError, match=rule):
        speak("One.", library=engine_paths["library"], data=str(tmp_path / "nothing"))


def test_a_voice_that_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(ValueError, match=r"`espeakng-loader` must be installed .* pip install espeakng-loader"):
        speak_sentences({"a": "One."}, tmp_path)
