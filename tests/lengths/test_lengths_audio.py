"""Folders of audio files."""

import sys

import numpy as np
import pytest
import soundfile

from lengthwise.lengths import audio_files, read_lengths


def write(path, samples, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(samples, dtype=np.int16), rate)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "b.wav", 800)
    write(tmp_path / "a" / "z.flac", 1600)
    write(tmp_path / "a" / "Y.WAV", 2000)
    for hidden in (".hidden.wav", ".cache/c.wav", "a/.old/deep/d.wav"):
        write(tmp_path / hidden, 10)
    (tmp_path / "notes.txt").write_text("not audio")
    return tmp_path


def test_samples_or_frames_sorted_by_path(folder):
    assert read_lengths(folder).tolist() == [2000, 1600, 800]  # a/Y.WAV, a/z.flac, b.wav
    assert read_lengths(str(folder), frame_shift=0.01).tolist() == [25, 20, 10]
    assert audio_files(folder) == ["a/Y.WAV", "a/z.flac", "b.wav"]
    (folder / "none").mkdir()
    for read, name in ((read_lengths, "none"), (audio_files, "none"), (audio_files, "not there")):
        with pytest.raises(ValueError, match=r"^`source` must be a folder with audio files, but is '.*'\. It has no"):
            read(folder / name)


def test_files_of_different_sampling_rates_are_counted_in_frames_only(folder):
    write(folder / "a" / "zz.wav", 1600, rate=16000)
    rule = r"^`frame_shift` must be given, because the sampling rates differ, 8000 and 16000 Hz, but is None at .*zz"
    with pytest.raises(ValueError, match=rule):
        read_lengths(folder)
    assert read_lengths(folder, frame_shift=0.01).tolist() == [25, 20, 10, 10]


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3", ".aiff", ".opus"])
def test_every_kind_of_audio(tmp_path, suffix):
    kind = {"format": "OGG", "subtype": "OPUS"} if suffix == ".opus" else {}
    soundfile.write(tmp_path / f"a{suffix}", np.zeros(48_000, dtype=np.int16), 48_000, **kind)
    assert read_lengths(tmp_path, frame_shift=0.1)[0] in ((10, 11) if suffix == ".mp3" else (10,))


def test_unreadable_files_are_named(folder):
    (folder / "a" / "bad.wav").write_bytes(b"RIFF junk")
    write(folder / "empty.wav", 0)
    (folder / "gone.wav").symlink_to(folder / "nowhere.wav")
    rule = r"`source` must be audio .* but is '.*a/bad.wav'\. Repair or remove it .*: 3\."
    with pytest.raises(ValueError, match=rule):
        read_lengths(folder)


def test_audio_behind_a_link_to_a_folder_is_named(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write(elsewhere / "c.wav", 10)
    (folder / "a" / "linked").symlink_to(elsewhere)
    rule = r"^`source` must be without links to folders, but is '.*linked'\. Left out: 1 such links"
    with pytest.warns(match=rule):
        assert audio_files(folder) == ["a/Y.WAV", "a/z.flac", "b.wav"]
    with pytest.warns(match=rule):
        assert len(read_lengths(folder)) == 3


def test_progress_bar_is_shown_on_request(folder, capfd):
    read_lengths(folder, progress=True)
    assert "3/3" in capfd.readouterr().err
    read_lengths(folder)
    assert capfd.readouterr().err == ""


def test_absent_soundfile_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ModuleNotFoundError, match="pip install soundfile"):
        read_lengths(folder)
