"""Names of files and columns that would colour, clear or move a terminal are written as `repr` does."""

import json
import sys

import pytest

import lengthwise as lw
from lengthwise.cli import main

RED = "\x1b[31mred.csv"
MARKUP = "[bold]x[red].csv"

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="names of files cannot hold such characters there"),
    pytest.mark.usefixtures("files"),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (RED, MARKUP, "two\nlines.csv", "right\u202eleft.csv"):
        (tmp_path / name).write_text("\x1b[2Jn,good,bad\n7,30,4\n8,60,x\n9,90,5\n")
    (tmp_path / "cells.jsonl").write_text(json.dumps({"n": "\x1b[2J"}))
    return tmp_path


def is_safe(text):
    return text.isascii() and text.replace("\n", "").isprintable()


@pytest.mark.parametrize("command", ["inspect", "advise", "compare", "plan", "buckets"])
@pytest.mark.parametrize("name", [RED, MARKUP])
def test_commands_show_the_name_of_a_file_as_it_is_or_escaped(capsys, command, name):
    options = {"buckets": ["--buckets", "2"]}.get(command, [])
    assert main([command, f"{name}:good", *options]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert name.replace("\x1b", "\\x1b") in said.out


@pytest.mark.parametrize(
    "words",
    [
        f"{RED}:bad",
        f"{RED}:\x1b[2Jm",
        f"{MARKUP}:bad",
        "two\nlines.csv:bad",
        "right\u202eleft.csv:bad",
        "\x1b[2Jabsent.csv",
        "cells.jsonl:n",
        "bytes\udce9.csv",
    ],
)
def test_errors_hold_no_control_characters(capsys, words):
    assert main(["inspect", words]) == 2
    assert is_safe(capsys.readouterr().err)
    with pytest.raises((ValueError, OSError)) as caught:
        lw.read_lengths(words.partition(":")[0], column=words.partition(":")[2] or None)
    assert is_safe(str(caught.value))


def test_words_that_no_option_takes_hold_none_either(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", RED, "\x1b[2J", "--\x1b[2J"])
    assert is_safe(capsys.readouterr().err)
