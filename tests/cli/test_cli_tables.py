"""What people see: within the terminal, no word broken, and nothing missing without saying so."""

import json
import re

import pytest

from lengthwise.report.words import percent

pytestmark = pytest.mark.usefixtures("few_epochs")

SHORT = ("compare", "--subset", "2000", "--strategies", "random,sorted,semi-sorted:0.02,alternated:58")
LABELS = "random,sorted,arrange=in-order,optimal:8,pad-to-edge=true,arrange=longest-first,semi-sorted:0.02"
COMMANDS = {
    "advise": "advise --subset 1000",
    "advise steps": "advise --subset 1000 --world-size 4 --micro-batches 2",
    "inspect": "inspect",
    "compare": " ".join(SHORT),
    "compare long labels": f"compare --subset 500 --strategies {LABELS}",
    "plan": "plan --world-size 2",
    "buckets": "buckets --buckets 2",
}


@pytest.mark.slow
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
    lines = run("buckets", four, "--buckets", 2, "--budget", 9).out.splitlines()
    assert "rows  up to  sequences  batches  padding" in lines
    assert "   1      9          1        1   0.00 %" in lines


@pytest.mark.parametrize("command", ["", "advise", "inspect", "compare", "plan", "buckets"])
def test_help_keeps_within_eighty_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*command.split(), "--help")
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


def test_help_lists_the_commands(run):
    out = run("--help").out
    assert all(f"\n    {name} " in out for name in ("advise", "inspect", "compare", "plan", "buckets"))
    assert run() == run("--help")  # who types the name alone asks what there is


def heads_of(out):
    """The heads of the first table: words in the two lines above the rule."""
    lines = out.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("──"))
    return set(" ".join(lines[rule - 2 : rule]).split())


def test_columns_are_left_out_and_named(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "58")
    narrow = run(*SHORT).out
    assert {"strategy", "padding", "randomness", "largest"} <= heads_of(narrow)
    assert not {"batches", "computed"} & heads_of(narrow)
    assert "Left out of a narrow terminal: batches, computed / useful. --json has them." in " ".join(narrow.split())
    monkeypatch.setenv("COLUMNS", "200")
    wide = run(*SHORT).out
    assert {"batches", "computed"} <= heads_of(wide)
    assert "Left out" not in wide


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", ["advise --subset 1000 --world-size 8", "compare --subset 500"])
def test_the_notes_explain_what_stands_in_the_table_alone(run, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run(*command.split(), "--batch-size", 16).out
    table, notes = heads_of(out), " ".join(out.split("\n\n")[2].split())
    for head, start in {"waiting": "waiting: ", "randomness": "randomness: ", "cost": "largest cost: "}.items():
        assert (start in notes) == (head in table)


def test_a_pipe_gets_all_columns(run):
    assert {"computed", "batches"} <= heads_of(run(*SHORT).out)


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


def cells_of(out):
    """The rows of the first table, from its rule to the next empty line: {first cell: the other cells}."""
    lines = out.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("──"))
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[rule + 1 : lines.index("", rule)]]
    return {row[0].removesuffix(" *"): row[1:] for row in rows}


def share(row, name, digits=1):
    return f"{100 * row[name]:.{digits}f} %"


def sizes(row):
    low, high = row["smallest_batch"], row["largest_batch"]
    return str(low) if low == high else f"{low}-{high}"


def cells_of_batches(row):
    computed = f"{1 / (1 - row['padding_share']):.2f}"
    return [
        *(f"{row['batches']:,}", sizes(row), percent(row["padding_share"]), computed),
        *(f"{row['randomness']:.2f}", f"{row['largest_cost']:,.0f}"),
    ]


def cells_of_steps(row):
    computed = f"{1 / (1 - row['padding_share']):.2f}"
    return [
        *(f"{row['batches']:,}", sizes(row), percent(row["padding_share"]), computed, f"{row['randomness']:.2f}"),
        *(percent(row["straggler_waste"]), f"{row['largest_cost']:,.0f}"),
    ]


def cells_of_rows(row):
    return [
        *(f"{row['batches']:,}", sizes(row), f"{row['rows']:,}", share(row, "fill", 2), f"{row['randomness']:.2f}"),
        percent(row["cost_spread"]),
    ]


@pytest.mark.parametrize(
    ("words", "write"),
    [
        ("--strategies random,sorted,semi-sorted:0.2 --budget 20000", cells_of_batches),
        ("--strategies random,random-steps --world-size 3 --micro-batches 2", cells_of_steps),
        ("--strategies random,best-fit --cut rows:8192,rows=2", cells_of_rows),
    ],
)
def test_compare_prints_what_its_json_says(run, monkeypatch, tmp_path, words, write):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "rows.json"
    words = ("compare", "--subset", "300", *words.split())
    printed = cells_of(run(*words, "--json", path).out)
    rows = json.loads(path.read_text())["rows"]
    assert printed == {row["strategy"]: write(row) for row in rows}


@pytest.mark.parametrize("words", ["", "--world-size 3", "--micro-batches 2", "--cut rows:8192,rows=2"])
def test_plan_prints_what_its_json_says(run, words):
    packed, steps = "rows" in words, words.startswith(("--world-size", "--micro-batches"))
    words = ("plan", "--subset", 300, *words.split())
    out, measures = run(*words).out, run(*words, "--json", "-").json["measures"]
    write = cells_of_rows if packed else cells_of_steps if steps else cells_of_batches
    counts = [f"{measures[name]:,}" for name in ("sequences", "steps")]
    printed = cells_of(out)
    assert [cell for (cell,) in printed.values()] == [*counts, *write(measures)]
    # Each measure that is no count is explained below the table, once.
    explained = {line.split(":")[0] for line in out.splitlines() if re.match("[a-z /]+: ", line)} & set(printed)
    assert explained == set(printed) - {"sequences", "steps", "batches", "batch size", "rows"}


@pytest.mark.parametrize("words", ["--world-size 2", "--batch-size 8 --seed 2"])
def test_advise_prints_what_its_json_says(run, monkeypatch, tmp_path, words):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "advice.json"
    words = ("advise", "--example", "speech", "--subset", "100", *words.split())
    out = run(*words, "--json", path).out
    found, printed = json.loads(path.read_text()), cells_of(out)
    rows = {row["strategy"]: row for row in found["candidates"]}
    for label, row in rows.items():
        steps = [percent(row["straggler_waste"])] if found["world_size"] > 1 else []
        cells = [percent(row["padding_share"]), *steps, f"{row['randomness']:.2f}", f"{row['largest_cost']:,.0f}"]
        shipped = [row["ships_in"]] if row["ships_in"] else []
        assert printed[label] == [*shipped, *cells, f"{row['price']:,.2f}"]
    assert list(printed) == list(rows)
    assert re.findall(r"^(\S+) \*", out, re.MULTILINE) == [found["best"]]
