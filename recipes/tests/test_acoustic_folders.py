"""Folders of speech: what is read of good ones, and what is said of bad ones."""

import numpy as np
import pytest

pytest.importorskip("soundfile")

import soundfile

from lengthwise_recipes.speech.folders import read_folder

RATE = 1000


def write_wav(path, values, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(str(path), np.asarray(values, np.float32), rate, subtype="FLOAT")


@pytest.fixture
def kaldi(tmp_path):
    """Writes a Kaldi folder: recordings r1 and r2 are ramps of 3 and 1 seconds."""

    def write(**files):
        write_wav(tmp_path / "audio" / "r1.wav", np.arange(3 * RATE) / 3000)
        write_wav(tmp_path / "audio" / "r2.wav", np.arange(RATE) / 3000)
        defaults = {"wav.scp": "r1 audio/r1.wav\nr2 audio/r2.wav\n", "text": "r1 one two\nr2 three\n"}
        named = {name.replace("_", "."): content for name, content in files.items()}
        for name, content in (defaults | named).items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path

    return write


def test_recordings_without_segments_are_utterances(kaldi):
    corpus = read_folder(kaldi(utt2spk="r1 ann\nr2 bob\n"), strict=True)
    assert [each.name for each in corpus.utterances] == ["r1", "r2"]
    assert [each.speaker for each in corpus.utterances] == ["ann", "bob"]
    assert corpus.transcripts == [("one", "two"), ("three",)]
    assert [each.count for each in corpus.utterances] == [3000, 1000]
    assert (corpus.rate, corpus.skipped, corpus.vocabulary) == (1000, (), ("one", "three", "two"))
    np.testing.assert_allclose(corpus.utterances[1].load(), np.arange(1000) / 3000, rtol=1e-6)


def test_segments_are_cut_at_their_samples(kaldi):
    folder = kaldi(segments="u1 r1 0.5 1.25\nu2 r1 2 3.4\nu3 r2 0.9 -1\n", text="u1 a\nu2 b c\nu3 d\n")
    corpus = read_folder(folder, strict=True)
    assert [each.count for each in corpus.utterances] == [750, 1000, 100]
    assert [each.speaker for each in corpus.utterances] == ["u1", "u2", "u3"]
    np.testing.assert_allclose(corpus.utterances[0].load(), np.arange(500, 1250) / 3000, rtol=1e-6)
    np.testing.assert_allclose(corpus.utterances[1].load(), np.arange(2000, 3000) / 3000, rtol=1e-6)


BAD_SEGMENTS = {
    "far-beyond": ("u1 r1 2 3.6", "`segment` must be within the 3 seconds of its wav, but is [2.0, 3.6] at u1."),
    "starts-beyond": ("u1 r1 3 3.2", "`segment` must be within the 3 seconds"),
    "backwards": ("u1 r1 2 1", "`segments` must be a recording, a start and an end in seconds, but is 'r1 2 1' at u1."),
    "no-number": ("u1 r1 2 x", "`segments` must be a recording"),
    "not-finite": ("u1 r1 0 inf", "`segments` must be a recording"),
    "short-line": ("u1 r1 2", "`segments` must be a recording"),
    "unknown-recording": ("u1 r9 0 1", "`wav.scp` must be a wav for every utterance, but is 'missing' at u1."),
}


@pytest.mark.parametrize("name", BAD_SEGMENTS)
def test_a_bad_segment_is_named_and_skipped(kaldi, name):
    line, complaint = BAD_SEGMENTS[name]
    folder = kaldi(segments=f"{line}\nu2 r2 0 1\n", text="u1 a\nu2 b\n")
    corpus = read_folder(folder)
    assert [each.name for each in corpus.utterances] == ["u2"]
    assert len(corpus.skipped) == 1
    assert corpus.skipped[0].startswith(complaint)
    with pytest.raises(ValueError, match="u1"):
        read_folder(folder, strict=True)


def test_segments_that_are_all_bad_leave_nothing(kaldi):
    with pytest.raises(ValueError, match=r"speech that can be used, but is .* complaints: `segments` must be"):
        read_folder(kaldi(segments="r1 r1 2 1\n"))


def test_words_without_wav_and_wavs_without_words_are_named(kaldi):
    corpus = read_folder(kaldi(text="r1 one\nr7 lost\n"))
    assert [each.name for each in corpus.utterances] == ["r1"]
    assert corpus.skipped == (
        "`text` must be the words of every utterance, but is 'missing' at r2. Add its line.",
        "`wav.scp` must be a wav for every utterance, but is 'missing' at r7. Add it, or remove the text.",
    )


def test_commands_are_refused_and_not_run(kaldi, tmp_path):
    folder = kaldi(wav_scp=f"r1 touch {tmp_path}/ran |\nr2 audio/r2.wav\n")
    with pytest.raises(ValueError, match=r"`wav\.scp` must be a path in every line") as caught:
        read_folder(folder)
    assert "at r1. Commands are not run" in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_damaged_wavs_and_strange_ones_are_skipped(kaldi):
    folder = kaldi(
        wav_scp="r1 audio/r1.wav\nr2 audio/r2.wav\nr3 audio/gone.wav\nr4 audio/text.wav\nr5 audio/stereo.wav\n"
        "r6 audio/fast.wav\nr7 audio/empty.wav\n",
        text="".join(f"r{number} word\n" for number in range(1, 8)),
    )
    (folder / "audio" / "text.wav").write_text("no sound")
    write_wav(folder / "audio" / "stereo.wav", np.zeros((10, 2)))
    write_wav(folder / "audio" / "fast.wav", np.zeros(10), rate=2000)
    write_wav(folder / "audio" / "empty.wav", [])
    corpus = read_folder(folder)
    assert [each.name for each in corpus.utterances] == ["r1", "r2"]
    for complaint, rule in zip(
        corpus.skipped,
        ("gone.wav", "text.wav", "of one channel, but is 2", "at least one sample", "1000 samples a second, as most"),
        strict=True,
    ):
        assert rule in complaint


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"text": "r1 one\nr1 two\n"}, "`text` must be of one line for each name, but is 'r1' at line 2"),
        ({"wav_scp": "r1 gone.wav\n"}, "`folder` must be a folder with speech that can be used"),
    ],
)
def test_a_folder_that_says_nothing_sure_is_refused(kaldi, files, rule):
    with pytest.raises(ValueError, match=rule):
        read_folder(kaldi(**files))


def test_a_file_that_is_not_utf8_is_named(kaldi):
    folder = kaldi()
    (folder / "text").write_bytes(b"r1 \xff\xfe\n")
    with pytest.raises(ValueError, match=r"`text` must be UTF-8, but is b'.*' at byte 3"):
        read_folder(folder)


def test_wavs_beside_their_words(tmp_path):
    write_wav(tmp_path / "ann" / "1.wav", np.zeros(20))
    write_wav(tmp_path / "ann" / "2.WAV", np.zeros(30))
    write_wav(tmp_path / "bob" / "1.wav", np.zeros(40))
    (tmp_path / "ann" / "1.txt").write_text("one\ntwo ")
    (tmp_path / "ann" / "2.txt").write_text(" \n")
    (tmp_path / "bob" / "1.txt").write_text("three")
    corpus = read_folder(tmp_path)
    assert [(each.name, each.speaker, each.words) for each in corpus.utterances] == [
        ("ann/1", "ann", ("one", "two")),
        ("bob/1", "bob", ("three",)),
    ]
    assert corpus.skipped[0].startswith("`text` must be the words of every wav, but is 'missing' at ann/2. Write its")
    with pytest.raises(ValueError, match="at ann/2"):
        read_folder(tmp_path, strict=True)


def test_a_wav_that_goes_away_is_named_when_it_is_read(kaldi):
    folder = kaldi()
    corpus = read_folder(folder)
    (folder / "audio" / "r2.wav").unlink()
    with pytest.raises(ValueError, match=r"`wav` must be audio that can be read, but is 'broken' at .*r2\.wav"):
        corpus.utterances[1].load()


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Put wav files and texts in"):
        read_folder(tmp_path)


def test_a_byte_order_mark_is_no_word(kaldi, tmp_path):
    corpus = read_folder(kaldi(text="\ufeffr1 one two\nr2 three\n", wav_scp="\ufeffr1 audio/r1.wav\nr2 audio/r2.wav\n"))
    assert (corpus.transcripts, corpus.skipped) == ([("one", "two"), ("three",)], ())
    beside = tmp_path / "beside"
    write_wav(beside / "a.wav", np.zeros(RATE))
    (beside / "a.txt").write_text("\ufeffone", encoding="utf-8")
    assert read_folder(beside).vocabulary == ("one",)
