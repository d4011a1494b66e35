"""What people see: within the terminal, no word broken, and nothing missing without saying so."""

import pytest

SHORT = ("compare", "--subset", "2000", "--strategies", "random,sorted,semi-sorted:0.02,alternated:58")
LABELS = "random,sorted,arrange=in-order,optimal:8,pad-to-edge=true,arrange=longest-first,semi-sorted:0.02"
COMMANDS = {
    "advise": "advise --subset 1000",
    "advise steps": "advise --subset 1000 --world-size 4 --micro-batches 2",
    "inspect": "inspect",
    "compare": " ".join(SHORT),
    "compare long labels": f"compare --subset 500 --strategies {LABELS}",
    "plan": "plan --world-size 2",
    "buckets": "buckets --buckets 6",
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_keeps_within_the_terminal(run, monkeypatch, columns, name):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run(*COMMANDS[name].split())
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= columns
    assert "…" not in done.out


@pytest.mark.parametrize("columns", ["0", "1", "-5", "wide", ""])
def test_a_terminal_of_no_width_gets_a_table_that_can_be_read(run, monkeypatch, four, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = run("buckets", four, "--buckets", 2).out.splitlines()
    assert "up to  sequences  padding" in lines
    assert "9              1   0.00 %" in lines


@pytest.mark.parametrize("command", ["", "advise", "inspect", "compare", "plan", "buckets"])
def test_help_keeps_within_eighty_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*command.split(), "--help")
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


def test_help_lists_the_commands(run):
    out = run("--help").out
    assert all(f"\n    {name} " in out for name in ("advise", "inspect", "compare", "plan", "buckets"))


def heads_of(out):
    """The heads of the first table: words in the two lines above the rule."""
    lines = out.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("──"))
    return set(" ".join(lines[rule - 2 : rule]).split())


def test_columns_are_left_out_and_named(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run(*SHORT).out
    assert {"strategy", "padding", "ZPR", "ABL", "mixing", "batches"} <= heads_of(narrow)
    assert not {"planned", "computed"} & heads_of(narrow)
    assert "Left out for want of room: computed / useful, planned in ms. --json has them." in narrow
    monkeypatch.setenv("COLUMNS", "200")
    wide = run(*SHORT).out
    assert {"planned", "computed"} <= heads_of(wide)
    assert "Left out" not in wide


def test_a_pipe_gets_all_columns(run):
    assert {"planned", "computed", "batches"} <= heads_of(run(*SHORT).out)


def test_long_labels_break_at_commas_only(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("compare", "--subset", 500, "--strategies", LABELS).out.splitlines()
    assert {"sorted,", "optimal:8,", "pad-to-edge=true,"} <= {line.strip() for line in lines}
    assert any(line.startswith("  arrange=in-order ") for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--batch-size", 1200), "batches of 1,200 sequences"),
        (("--budget", 20_000.5), "batches of at most 20,000.5 padded frames"),
        (("--cut", "budget:9000,max-sequences=8"), "batches of at most 9,000 padded frames and 8 sequences"),
        (("--cut", "dynamic:4"), "batches of at most the padded frames of 4 longest sequences"),
        (("--cut", "dynamic:4,rule=paper"), "batches filled until they reach the padded frames of 4 longest sequences"),
    ],
)
def test_the_table_says_how_batches_are_cut(run, words, expected):
    assert run("compare", "--strategies", "random", *words).out.splitlines()[2] == expected
