"""`lengthwise lengths`: what `read_lengths` reads becomes one file, whatever the size of a table."""

from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
from table_files import write_table

SEVERAL = {"source": [3, 1, 2], "target": [7, 1000, 2], "text": ["so it begins", "so", "it ends"]}
SOURCES = [
    ("parts:source,target", {}),
    ("parts/*.parquet:source", {}),
    ("a.csv.gz:text", {"count": "words"}),
    ("a.jsonl:target", {"frame_shift": 10}),
    ("set.saved:target", {}),
    ("utt2num_frames", {}),
    ("wavs", {"frame_shift": 0.01}),
]


@pytest.mark.parametrize(("source", "options"), SOURCES, ids=[row[0] for row in SOURCES])
def test_every_source_becomes_a_file_that_other_commands_read(run, tmp_path, monkeypatch, source, options):
    monkeypatch.chdir(tmp_path)
    for name in ("parts/a.parquet", "parts/b.parquet", "a.csv.gz", "a.jsonl", "set.saved"):
        write_table(tmp_path / name, **SEVERAL)
    Path("utt2num_frames").write_text("utt1 30\nutt2 70\n")
    Path("wavs").mkdir()
    pytest.importorskip("soundfile").write("wavs/a.wav", np.zeros(1600), 16_000)
    words = [str(word) for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    done = run("lengths", source, *words, "-o", "the lengths.npy")
    path, _, column = source.partition(":")
    expected, written = lw.read_lengths(path, column=column or None, **options), np.load("the lengths.npy")
    assert (written.tolist(), written.dtype) == (expected.tolist(), np.min_scalar_type(expected.max()))
    longest = " x ".join(f"{most:,}" for most in np.atleast_1d(expected.max(axis=0)))
    line = f"Sequences: {len(written)}. The longest: {longest}. Written: the lengths.npy. Next:"
    assert done[:2] == (0, f"{line}\n\n    lengthwise advise 'the lengths.npy'\n")
    assert run("inspect", "the lengths.npy", "--json", "-").json["lengths"]["count"] == len(written)


def test_a_table_is_read_to_its_end_and_its_bad_rows_are_named(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(Path("a.jsonl").absolute(), n=[0, 5, 0])
    done = run("lengths", "a.jsonl", "-o", "a.npy")
    assert (done.status, done.out, Path("a.npy").exists()) == (2, "", False)
    assert '2 of 3 rows of `source` have no length. Repair them, or count each as 1 by bad="one"' in done.err
    done = run("lengths", "a.jsonl", "-o", "a.npy", "--bad", "one")
    assert "Rows without a length, counted as 1: 2." in done.out
    assert np.load("a.npy").tolist() == [1, 5, 1]
    assert "`path` must be the path of a .npy file on a disk, but is 'a'." in run("lengths", "a.jsonl", "-o", "a").err
