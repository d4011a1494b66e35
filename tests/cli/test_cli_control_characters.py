"""Names of files and columns that would colour, clear or move a terminal are written as `repr` does."""

import sys

import pytest

import lengthwise as lw
from table_files import write_table

RED = "\x1b[31mred.csv"
BAD = [
    *(f"{RED}:bad", f"{RED}:\x1b[2Jm", "two\nlines.csv:bad", "right\u202eleft.csv:bad"),
    *("\x1b[2Jabsent.csv", "cells.jsonl:n", "bytes\udce9.csv"),
]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names of files hold no such characters there")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (RED, "two\nlines.csv", "right\u202eleft.csv"):
        write_table(tmp_path / name, **{"\x1b[2Jn": [7, 8, 9], "good": [30, 60, 90], "bad": [4, "x", 5]})
    write_table(tmp_path / "cells.jsonl", n=["\x1b[2J"])


def is_safe(text):
    return text.isascii() and text.replace("\n", "").isprintable()


@pytest.mark.parametrize("command", ["inspect", "advise", "compare", "plan", "buckets --buckets 2"])
def test_commands_show_the_name_of_a_file_escaped(run, command):
    done = run(*command.split(), f"{RED}:good")
    assert "\x1b" not in done.out + done.err
    assert RED.replace("\x1b", "\\x1b") in done.out


@pytest.mark.parametrize("source", BAD)
def test_errors_hold_no_control_characters(run, source):
    assert is_safe(run("inspect", source).err)
    path, _, column = source.partition(":")
    with pytest.raises((ValueError, OSError)) as refused:
        lw.read_lengths(path, column=column or None)
    assert is_safe(str(refused.value))
    assert is_safe(run("inspect", RED, "\x1b[2J", "--\x1b[2J").err)
