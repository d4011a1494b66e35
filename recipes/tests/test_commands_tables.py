"""What people see of `study` and `reproduce`: within the terminal, no word broken."""

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_of_a_paper_keeps_within_the_terminal(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run("reproduce", "ge2021-table1", "--seeds", 2)
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= columns
    assert "…" not in done.out


@pytest.mark.parametrize("command", ["reproduce", "reproduce ge2021-table1", "study", "study quality"])
def test_help_of_the_recipes_keeps_within_eighty_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*command.split(), "--help")
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


def test_help_lists_the_commands_of_the_recipes(run):
    out = run("--help").out
    assert all(f"\n    {name} " in out for name in ("study", "reproduce"))
    assert "pip install" not in out


@pytest.mark.parametrize("words", [["--help"], ["study", "--help"], ["reproduce", "ge2021", "--help"]])
def test_help_loads_neither_pytorch_nor_altair(words):
    script = f"""
    import sys
    from lengthwise.cli import main

    try:
        main({words!r})
    except SystemExit as leaving:
        print(leaving.code, sorted({{"torch", "jax", "altair"}} & set(sys.modules)))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n0 []\n")
