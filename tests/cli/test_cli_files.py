"""The files that a command is given: what it does not overwrite, and names that no terminal should obey."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
from table_files import write_table

# A command, its output, and the input that would be lost.
INPUTS = [
    ("advise a.csv:n --cost cost.json --json", "cost.json", "cost.json"),
    ("inspect a.csv:n --json", "link.json", "a.csv"),
    ("inspect a.csv:n --json", "hard.json", "a.csv"),
    ("inspect set.saved:n --json", "set.saved/data.stream", "set.saved/data.stream"),
    ("inspect set.saved:n --json", "set.saved/state.json", "set.saved/state.json"),
    ("plan parts:n --output", "parts/b.parquet", "parts/b.parquet"),
    ("compare parts/*.parquet:n --plot", "picture.png", "parts/a.parquet"),
    ("lengths a.npy -o", "a.npy", "a.npy"),
    ("buckets wavs --json", "wavs/a.wav", "wavs/a.wav"),
    ("inspect texts.csv:t --count tokens --tokenizer model --json", "model/tokenizer.json", "model/tokenizer.json"),
]


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "set.saved", "parts/a.parquet", "parts/b.parquet"):
        write_table(tmp_path / name, n=[3, 1, 2])
    np.save("a.npy", [3, 1, 2])
    write_table(tmp_path / "texts.csv", t=["so it begins", "so"])
    for name in ("cost.json", "wavs/a.wav", "model/tokenizer.json", "parts/notes.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("input")
    (tmp_path / "link.json").symlink_to("a.csv")
    (tmp_path / "picture.png").symlink_to("parts/a.parquet")
    os.link("a.csv", "hard.json")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("words", "output", "source"), INPUTS, ids=[f"{row[0]} {row[1]}" for row in INPUTS])
def test_no_output_replaces_what_the_command_reads(run, words, output, source):
    before = Path(source).read_bytes()
    done = run(*words.split(), output)
    assert (done.status, done.out) == (2, "")
    assert f"must be a file that the command neither reads nor writes already, but is '{output}'." in done.err
    assert Path(source).read_bytes() == before


@pytest.mark.usefixtures("inputs")
def test_a_folder_and_a_pattern_are_read_as_by_write_lengths(run):
    for source in ("parts", "parts/*.parquet:n", "parts/?.parquet"):
        # The report of an earlier run may be written again.
        assert lengths_of(run("inspect", source, "--json", "-")) == (6, [1], [3])
        assert run("inspect", source, "--json", "parts/notes.json").status == 0
    assert run("plan", "parts", "--json", "-").json["lengths"]["count"] == 6
    assert "'parts/*.pq'. Check the path; a pattern" in run("inspect", "parts/*.pq").err
    write_table(Path("parts/c.parquet"), n=[5, 0])
    assert "`n` must be at least 1, but is 0 at row 1 of" in (error := run("inspect", "parts").err)
    assert "parts/c.parquet. Drop it, or count it as 1: max(1, length), or the same file" in error


def lengths_of(done):
    facts = done.json["lengths"]
    return facts["count"], facts["min"], facts["max"]


def test_texts_are_counted_and_samples_become_frames(run, tmp_path):
    path = write_table(tmp_path / "a.jsonl", text=["so it begins", "so"], num_samples=[48_000, 160])
    assert lengths_of(run("inspect", f"{path}:text", "--count", "words", "--json", "-")) == (2, [1], [3])
    assert lengths_of(run("inspect", f"{path}:num_samples", "--frame-shift", 160, "--json", "-")) == (2, [1], [300])


@pytest.mark.parametrize("command", ["inspect", "compare", "plan", "buckets --buckets 2", "advise"])
def test_a_name_in_brackets_is_printed_as_it_is_and_code_is_never_broken(run, tmp_path, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "60")
    path = tmp_path / f"[red]a [bold]{80 * 'b'}.csv"
    path.write_text("n\n" + "4\n9\n2\n7\n" * 9)
    done = run(*command.split(), f"{path}:n")
    assert (done.status, done.err) == (0, "")
    assert f"{path}:n" in done.out.replace("\n", "")
    code = f"lengths = lw.read_lengths({str(path)!r}, column='n')\n"
    assert (code in done.out) == (command in ("advise", "buckets --buckets 2"))


# Names of files and columns that would colour, clear or move a terminal are written as `repr` does.

RED = "\x1b[31mred.csv"
BAD = [
    *(f"{RED}:bad", f"{RED}:\x1b[2Jm", "two\nlines.csv:bad", "right\u202eleft.csv:bad"),
    *("\x1b[2Jabsent.csv", "cells.jsonl:n", "bytes\udce9.csv"),
]


@pytest.fixture
def coloured(tmp_path, monkeypatch):
    if sys.platform == "win32":
        pytest.skip("names of files hold no such characters there")
    monkeypatch.chdir(tmp_path)
    for name in (RED, "two\nlines.csv", "right\u202eleft.csv"):
        write_table(tmp_path / name, **{"\x1b[2Jn": [7, 8, 9], "good": [30, 60, 90], "bad": [4, "x", 5]})
    write_table(tmp_path / "cells.jsonl", n=["\x1b[2J"])


def is_safe(text):
    return text.isascii() and text.replace("\n", "").isprintable()


@pytest.mark.usefixtures("coloured")
@pytest.mark.parametrize("command", ["inspect", "advise", "compare", "plan", "buckets --buckets 2"])
def test_commands_show_the_name_of_a_file_escaped(run, command):
    done = run(*command.split(), f"{RED}:good")
    assert "\x1b" not in done.out + done.err
    assert RED.replace("\x1b", "\\x1b") in done.out


@pytest.mark.usefixtures("coloured")
@pytest.mark.parametrize("source", BAD)
def test_errors_hold_no_control_characters(run, source):
    assert is_safe(run("inspect", source).err)
    path, _, column = source.partition(":")
    with pytest.raises((ValueError, OSError)) as refused:
        lw.read_lengths(path, column=column or None)
    assert is_safe(str(refused.value))
    assert is_safe(run("inspect", RED, "\x1b[2J", "--\x1b[2J").err)
