"""Folders as LJSpeech's: what is read of good ones, and what is said of bad ones."""

import numpy as np
import pytest

pytest.importorskip("soundfile")

import soundfile

from lengthwise_recipes.synthesis.ljspeech import read_folder
from lengthwise_recipes.synthesis.speech import read_speech
from letter_tones import RATE, sing, write_folder

TEXTS = {"one": "abc", "two": "d e", "three": "ffff"}


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "tones", TEXTS)


def add_lines(folder, text):
    with (folder / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write(text)


def names(corpus):
    return [recording.name for recording in corpus.utterances]


def test_recordings_come_in_the_order_of_their_lines(folder):
    corpus = read_folder(folder, strict=True)
    assert {recording.name: recording.text for recording in corpus.utterances} == TEXTS
    assert (names(corpus), corpus.rate, corpus.skipped) == (list(TEXTS), RATE, ())
    assert [recording.count for recording in corpus.utterances] == [2400, 2400, 3200]
    np.testing.assert_allclose(corpus.utterances[0].load(), sing("abc"), atol=1e-4)


def test_a_byte_order_mark_is_no_text_and_a_line_is_what_ends_in_a_newline(folder):
    text = "\ufeffone|abc\r\ntwo|d\u2028e\r\nthree|ffff\r\n"
    (folder / "metadata.csv").write_text(text, encoding="utf-8", newline="")
    corpus = read_folder(folder, strict=True)
    assert {recording.name: recording.text for recording in corpus.utterances} == TEXTS


def test_only_as_many_are_read_as_asked(folder):
    assert names(read_folder(folder, count=2)) == ["one", "two"]
    assert names(read_folder(folder, count=9)) == list(TEXTS)
    with pytest.raises(ValueError, match="`count` must be at least 1, but is 0"):
        read_folder(folder, count=0)


def test_the_normalised_text_is_taken_where_there_is_one(folder):
    rows = "one|No. 1|number  one\ntwo|plain|\nthree|last\n"
    (folder / "metadata.csv").write_text(rows, encoding="utf-8")
    texts = [recording.text for recording in read_folder(folder, strict=True).utterances]
    assert texts == ["number one", "plain", "last"]


BAD_LINES = {
    "no-text": ("four|\n", "`metadata` must be `id|text` or", "'four|' at line 4"),
    "no-bar": ("four\n", "`metadata` must be `id|text` or", "'four' at line 4"),
    "no-id": ("|words\n", "`metadata` must be `id|text` or", "'|words' at line 4"),
    "outside": ("../one|words\n", "with an id that names a file", "at line 4"),
    "twice": ("two|again\n", "`metadata` must be of one line for each id", "'two' at line 4"),
    "no-wav": ("four|words\n", "`wav` must be audio that can be read", "four.wav"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_skipped(folder, name):
    line, rule, place = BAD_LINES[name]
    add_lines(folder, line)
    corpus = read_folder(folder)
    assert names(corpus) == list(TEXTS)
    (complaint,) = corpus.skipped
    assert rule in complaint
    assert place in complaint
    with pytest.raises(ValueError, match="must be"):
        read_folder(folder, strict=True)


def test_bad_wavs_are_named_and_skipped(folder):
    wavs = folder / "wavs"
    (wavs / "text.wav").write_text("no sound")
    soundfile.write(str(wavs / "stereo.wav"), np.zeros((900, 2)), RATE)
    soundfile.write(str(wavs / "empty.wav"), np.zeros(0), RATE)
    soundfile.write(str(wavs / "fast.wav"), np.zeros(900), 2 * RATE)
    soundfile.write(str(wavs / "untold.wav"), np.zeros(900), RATE)
    add_lines(folder, "".join(f"{name}|word\n" for name in ("text", "stereo", "empty", "fast")))
    corpus = read_folder(folder)
    assert names(corpus) == list(TEXTS)
    rules = ("at untold.wav", "text.wav", "of one channel, but is 2", "at least one sample", "8000 samples a second")
    for complaint, rule in zip(corpus.skipped, rules, strict=True):
        assert rule in complaint


@pytest.mark.parametrize(("content", "rule"), [(b"", "It has no line"), (b"one|\n", "First complaint: `metadata`")])
def test_a_folder_with_nothing_in_it_is_refused(folder, content, rule):
    (folder / "metadata.csv").write_bytes(content)
    for wav in (folder / "wavs").iterdir():
        wav.unlink()
    with pytest.raises(ValueError, match=f"`folder` must be a folder with speech that can be used, but is .*{rule}"):
        read_folder(folder)


def test_metadata_that_cannot_be_read_are_refused(folder):
    (folder / "metadata.csv").write_bytes(b"one|\xff\xfe\n")
    with pytest.raises(ValueError, match="`metadata` must be a file of UTF-8 that can be read"):
        read_folder(folder)
    (folder / "metadata.csv").unlink()
    with pytest.raises(ValueError, match="`metadata` must be a file of UTF-8 that can be read"):
        read_folder(folder)


def test_speech_is_read_where_it_is_or_spoken_to_a_folder(folder, tmp_path):
    assert names(read_speech(folder)) == list(TEXTS)
    with pytest.raises(ValueError, match="`folder` must be left out with recordings, but is '"):
        read_speech(folder, folder=tmp_path)
    with pytest.raises(ValueError, match="`folder` must be given where sentences are spoken, but is None"):
        read_speech(None)
    (tmp_path / "empty.csv").write_text("\n")
    with pytest.raises(ValueError, match="`path` must be a folder of recordings or a file"):
        read_speech(tmp_path / "empty.csv", folder=tmp_path / "spoken")
