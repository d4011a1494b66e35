"""What people see: within the terminal, no word broken, and nothing missing without saying so."""

import json
import re

import pytest

from lengthwise import cli
from lengthwise.report.words import percent

pytestmark = pytest.mark.usefixtures("few_epochs")

SHORT = ("compare", "--subset", "500", "--strategies", "random,sorted,semi-sorted:0.02,alternated:58")
LABELS = "random,sorted,arrange=in-order,optimal:8,pad-to-edge=true,arrange=longest-first,semi-sorted:0.02"
COMMANDS = {
    "advise": "advise --subset 500 --budget 20000",
    "advise steps": "advise --subset 500 --world-size 4 --micro-batches 2",
    "inspect": "inspect",
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
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) <= 50
    assert "…" not in done.out
    assert ("Lightning, Trainer" in done.out) == name.startswith("advise")


@pytest.mark.parametrize("columns", ["1", "-5", "wide"])
def test_a_terminal_of_no_width_gets_a_table_that_can_be_read(run, monkeypatch, four, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = run("buckets", four, "--buckets", 2, "--budget", 9).out.splitlines()
    assert "rows  up to  sequences  batches  padding" in lines
    assert "   1      9          1        1   0.00 %" in lines


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_help_keeps_within_eighty_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*command.split(), "--help")
    assert (done.status, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


def test_help_lists_the_commands(run):
    out = run("--help").out
    assert all(f"\n    {name} " in out for name in cli.COMMANDS)
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
    monkeypatch.delenv("COLUMNS")  # as in a pipe
    wide = run(*SHORT).out
    assert {"batches", "computed"} <= heads_of(wide)
    assert "Left out" not in wide


@pytest.mark.parametrize("columns", [60, 200])
@pytest.mark.parametrize("command", ["advise --subset 500 --world-size 8", "compare --subset 500"])
def test_the_notes_explain_what_stands_in_the_table_alone(run, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run(*command.split(), "--batch-size", 16).out
    table, notes = heads_of(out), " ".join(out.split("\n\n")[2].split())
    for head, start in {"waiting": "waiting: ", "randomness": "randomness: ", "cost": "largest cost: "}.items():
        assert (start in notes) == (head in table)


def test_long_labels_break_at_commas_only(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("compare", "--subset", 500, "--strategies", LABELS).out.splitlines()
    assert {"sorted,", "optimal:8,", "pad-to-edge=true,"} <= {line.strip() for line in lines}
    assert any(line.startswith("  arrange=in-order ") for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--batch-size", 1200), "batches of 1,200 sequences"),
        (
            ["--budget", "20000", "--chunk", "50", "--world-size", "2", "--micro-batches", "3"],
            "batches of at most 20,000 padded frames; chunks of at most 50 frames; 2 ranks x 3 micro-batches a step",
        ),
        (("--budget", 20_000.5), "batches of at most 20,000.5 padded frames"),
        (("--cut", "budget:9000,max-sequences=8"), "batches of at most 9,000 padded frames and 8 sequences"),
        (("--cut", "dynamic:4"), "batches of at most the padded frames of 4 longest sequences"),
        (("--cut", "dynamic:4,rule=paper"), "batches filled until they reach the padded frames of 4 longest sequences"),
    ],
)
def test_the_table_says_how_batches_are_cut(run, words, expected):
    assert run("plan", "--strategy", "random", *words).out.splitlines()[2] == expected


def cells_of(out):
    """The rows of the first table, from its rule to the next empty line: {first cell: the other cells}."""
    lines = out.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("──"))
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[rule + 1 : lines.index("", rule)]]
    return {row[0].removesuffix(" *"): row[1:] for row in rows}


def sizes(row):
    low, high = row["smallest_batch"], row["largest_batch"]
    return str(low) if low == high else f"{low}-{high}"


# What stands under each head, by the row of the JSON.
CELLS = {
    "batches": lambda row: f"{row['batches']:,}",
    "batch size": sizes,
    "rows": lambda row: f"{row['rows']:,}",
    "fill": lambda row: f"{100 * row['fill']:.2f} %",
    "padding": lambda row: percent(row["padding_share"]),
    "computed / useful": lambda row: f"{1 / (1 - row['padding_share']):.2f}",
    "randomness": lambda row: f"{row['randomness']:.2f}",
    "waiting": lambda row: percent(row["straggler_waste"]),
    "cost spread": lambda row: percent(row["cost_spread"]),
    "largest cost": lambda row: f"{row['largest_cost']:,.0f}",
}
PACKED = {"rows", "fill", "cost spread"}
TABLES = {
    "": set(CELLS) - PACKED - {"waiting"},
    "--world-size 3 --micro-batches 2": set(CELLS) - PACKED,
    "--cut rows:8192,rows=2": PACKED | {"batches", "batch size", "randomness"},
}


def write_cells(words, row):
    return [write(row) for head, write in CELLS.items() if head in TABLES[words]]


@pytest.mark.parametrize("words", TABLES)
def test_compare_and_plan_print_what_their_json_says(run, monkeypatch, tmp_path, words):
    monkeypatch.setenv("COLUMNS", "200")
    options, path = ("--subset", "300", *words.split(), "--json", tmp_path / "a.json"), tmp_path / "a.json"
    printed = cells_of(run("compare", *options, "--strategies", "random,sorted").out)
    assert printed == {row["strategy"]: write_cells(words, row) for row in json.loads(path.read_text())["rows"]}
    out = run("plan", *options).out
    measures, printed = json.loads(path.read_text())["measures"], cells_of(out)
    counts = [f"{measures[name]:,}" for name in ("sequences", "steps")]
    assert [cell for (cell,) in printed.values()] == [*counts, *write_cells(words, measures)]
    # Each measure that is no count is explained below the table, once.
    explained = {line.split(":")[0] for line in out.splitlines() if re.match("[a-z /]+: ", line)} & set(printed)
    assert explained == set(printed) - {"sequences", "steps", "batches", "batch size", "rows"}
