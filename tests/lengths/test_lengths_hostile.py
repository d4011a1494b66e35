"""Files that would hang a reader, hide what they hold or get in each other's way: one sentence, at once."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from lengthwise.lengths import audio_files, read_lengths

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")

# Reads each source in a process of its own, so that one that hangs is ended by the test.
READER = """
import json, sys
from lengthwise.lengths import read_lengths

found = []
for source in sys.argv[1:]:
    try:
        found.append(read_lengths(source).tolist())
    except (ValueError, TypeError) as error:
        found.append(str(error))
print(json.dumps(found))
"""


def read_all(*sources):
    words = [sys.executable, "-c", READER, *map(str, sources)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    return json.loads(done.stdout)


def write_wav(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(samples, dtype=np.int16), 8000)


PIPES = ["a", "a.txt.gz", "a.csv", "a.json", "a.npy", "a.npz", "a.parquet", "utt2dur", "a.wav"]


@needs_pipes
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    for name in PIPES:
        os.mkfifo(tmp_path / name)
    (tmp_path / "linked.csv").symlink_to("/dev/zero")
    write_wav(tmp_path / "audio" / "a.wav", 800)
    os.mkfifo(tmp_path / "audio" / "b.wav")

    sources = [*(tmp_path / name for name in PIPES), tmp_path / "linked.csv", "/dev/zero", "/dev/null", "/dev/stdin"]
    *refusals, audio = read_all(*sources, tmp_path / "audio")
    for source, refusal in zip(sources, refusals, strict=True):
        rule = f"`source` must be a file or folder, not a device or a named pipe, but is '{source}'. Write its"
        assert refusal.startswith(rule)
    assert audio.endswith(
        f"is '{tmp_path}/audio/b.wav'. Repair or remove it (it is a pipe or a device). Files that cannot be read: 1."
    )


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd here")
@pytest.mark.parametrize(("content", "expected"), [(b"3\n1\n", [3, 1]), (b"3\nx\n", "'x' at line 2 of /dev/fd/")])
def test_a_pipe_that_the_shell_opened_is_read(content, expected):
    """As `lengthwise inspect <(cut -f2 lengths.tsv)` has it."""
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, content)
        os.close(write_end)
        if isinstance(expected, list):
            assert read_lengths(f"/dev/fd/{read_end}").tolist() == expected
        else:
            with pytest.raises(ValueError, match=expected):
                read_lengths(f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="no folders by descriptor here")
@pytest.mark.parametrize("read", [read_lengths, audio_files])
def test_a_folder_that_cannot_be_read_is_named(tmp_path, read):
    """Its path is longer than the system takes, which stops root too, whom no permission stops."""
    write_wav(tmp_path / "a.wav", 800)
    (tmp_path / "utt2num_frames").write_text("a 80\n")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(250 * "x", dir_fd=folder)
        inner = os.open(250 * "x", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    with pytest.raises(ValueError, match=r"^`source` must be a folder that can be read, but is '.*xxx'\. .*too long\)"):
        read(tmp_path)
    shutil.rmtree(tmp_path / (250 * "x"))
    assert len(read(tmp_path)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_name_that_is_not_utf_8_is_read(tmp_path):
    write_wav(tmp_path / "a.wav", 800)
    shutil.copy(tmp_path / "a.wav", os.fsencode(tmp_path) + b"/\xff.wav")
    assert audio_files(tmp_path) == ["a.wav", "\udcff.wav"]
    assert read_lengths(tmp_path).tolist() == [800, 800]
    (tmp_path / "\udcff.wav").write_bytes(b"RIFF junk")
    with pytest.raises(ValueError, match=r"`source` must be audio that can be read, but is '.*\\udcff\.wav'\."):
        read_lengths(tmp_path)
    for suffix in ("parquet", "npy", "txt"):
        path = tmp_path / f"\udcff.{suffix}"
        path.write_bytes(b"\x00junk")
        with pytest.raises(ValueError, match=rf"^`\w+` must be .*\\udcff\.{suffix}"):
            read_lengths(path)


@pytest.mark.parametrize("path", ["", 5000 * "a"])
def test_an_empty_path_and_one_longer_than_the_system_takes_are_not_there(tmp_path, monkeypatch, path):
    (tmp_path / "utt2num_frames").write_text("a 3\n")
    monkeypatch.chdir(tmp_path)  # which an empty path does not stand for
    with pytest.raises(FileNotFoundError, match=rf"^`source` must be a file or folder that exists, but is '{path[:9]}"):
        read_lengths(path)
