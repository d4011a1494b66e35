"""`lengthwise compare`: its JSON is a contract, recomputed here through the library."""

import json
import re

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.advice.candidates import first_budget
from lengthwise.cli import compare
from lengthwise.cli.parser import draw_subset
from lengthwise.cli.strategies import ARRANGEMENTS, STRATEGIES, parse_strategy
from lengthwise.measures.metrics import MOST_EPOCHS
from lengthwise.measures.mixing import fine_bins

PROMISED = {
    "strategy",
    "batches",
    "zero_padding_rate",
    "padding_share",
    "average_batch_length",
    "mixing",
    "largest_cost",
}
SHARES = ("zero_padding_rate", "weighted_zero_padding_rate", "padding_share", "mixing", "step_mixing")
EVERY = (
    "random,sorted,arrange=in-order,semi-sorted:0.1,alternated:9,windowed:64,bucketed:64,optimal:4,uniform:4,quantile:4,"
    "exponential:4,mxnet:4,random-steps,max-entropy:0.1"
)


def test_four_lengths_by_hand(run, four):
    found = run("compare", four, "--strategies", "sorted", "--batch-size", 2, "--json", "-").json
    (row,) = found["rows"]
    assert set(found) == {"lengths", "rows"}
    expected = {"count": 4, "min": 2, "mean": 5.0, "max": 9, "fingerprint": lw.fingerprint([4, 2, 9, 5])}
    assert found["lengths"] == expected
    assert (row["strategy"], row["batches"], row["largest_cost"], row["dropped"]) == ("sorted", 2, 18.0, 0)
    assert row["zero_padding_rate"] == pytest.approx((1 / 4 + 2 / 9) / 2)
    assert row["padding_share"] == pytest.approx(6 / 26)
    assert row["average_batch_length"] == 6.5


def test_without_a_file_every_strategy_has_a_row(run):
    done = run("compare", "--subset", 300, "--strategies", EVERY, "--json", "-")
    rows = {row["strategy"]: row for row in done.json["rows"]}
    assert (done.status, done.err) == (0, "")
    assert {label.partition(",")[0].partition(":")[0] for label in rows} == set(STRATEGIES)
    for row in rows.values():
        assert set(row) >= PROMISED
        assert all(0 <= row[share] <= 1 for share in SHARES)
        assert row["sequences"] == 300
    assert rows["sorted,arrange=in-order"]["padding_share"] == min(row["padding_share"] for row in rows.values())


def test_the_default_strategies_on_the_whole_example(run):
    found = run("compare", "--json", "-").json
    assert found["lengths"]["fingerprint"] == lw.fingerprint(lw.example_lengths())
    assert ",".join(row["strategy"] for row in found["rows"]) == compare.DEFAULT


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        ((), None),
        (("--batch-size", 5), lw.FixedSize(5)),
        (("--budget", 9000), lw.Budget(9000)),
        (("--cut", "dynamic:4,rule=paper"), lw.DynamicSize(4, rule="paper")),
        (("--cut", "budget:500,oversize=drop"), lw.Budget(500, oversize="drop")),
    ],
    ids=str,
)
@pytest.mark.parametrize("world", [{}, {"world_size": 3, "micro_batches": 2}], ids=["one", "six"])
def test_rows_are_what_the_library_measures(run, words, cut, world):
    asked = ("compare", "--example", "speech", "--subset", 200, "--seed", 3, "--json", "-")
    ranks = [word for name, size in world.items() for word in (f"--{name.replace('_', '-')}", size)]
    found = run(*asked, "--strategies", "random,optimal:3", *words, *ranks).json
    chosen = draw_subset(lw.example_lengths("speech"), 200, seed=3)
    assert found["lengths"]["fingerprint"] == lw.fingerprint(chosen)
    bins = fine_bins(200 * MOST_EPOCHS)
    for row in found["rows"]:
        batching = parse_strategy(row["strategy"], cut=cut or lw.Budget(first_budget(chosen)))
        plans = [lw.make_plan(chosen, batching, seed=3, epoch=epoch, **world) for epoch in range(MOST_EPOCHS)]
        measures = lw.measure(plans[0], chosen).as_dict()
        measures |= {"mixing_bins": bins, "mixing_epochs": len(plans), "strategy": row["strategy"]}
        together = lw.measure(plans, chosen, bins=bins)
        mixing = ("mixing", "step_mixing", "randomness")
        measures |= {name: getattr(together, name) for name in (*mixing, "step_length_variance", "straggler_waste")}
        assert row == measures


def test_a_subset_is_drawn_by_the_seed(run):
    def drawn(seed):
        return run("compare", "--subset", 50, "--seed", seed, "--strategies", "random", "--json", "-").json["lengths"]

    assert drawn(0) == drawn(0)
    assert len({drawn(seed)["fingerprint"] for seed in range(5)}) == 5
    assert drawn(1)["count"] == 50


def test_the_whole_as_a_subset_is_the_whole(run, four):
    whole = run("compare", four, "--strategies", "random", "--json", "-").json["lengths"]
    assert run("compare", four, "--subset", 4, "--strategies", "random", "--json", "-").json["lengths"] == whole


def test_json_in_a_file_leaves_the_table(run, tmp_path):
    path = tmp_path / "rows.json"
    done = run("compare", "--subset", 100, "--strategies", "random", "--json", path)
    assert (done.status, done.err) == (0, "")
    assert "batches of at most " in done.out
    document = json.loads(path.read_text())
    assert [row["strategy"] for row in document["rows"]] == ["random"]


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<svg"), (".pdf", b"%PDF")])
def test_plot_with_json_on_standard_output(run, tmp_path, suffix, magic):
    path = tmp_path / f"epoch{suffix}"
    words = ("--strategies", "random,sorted", "--subset", 100, "--plot", path, "--json", "-")
    assert len(run("compare", *words).json["rows"]) == 2
    assert path.read_bytes().startswith(magic)


def test_pairs_of_lengths(run, pairs):
    found = run("compare", pairs, "--strategies", "random,sorted", "--json", "-").json
    assert (found["lengths"]["min"], found["lengths"]["max"]) == ([3, 2], [9, 6])
    assert [row["sequences"] for row in found["rows"]] == [40, 40]
    compared = [row["strategy"] for row in run("compare", pairs, "--json", "-").json["rows"]]
    assert "sorted" in compared
    assert not any(name.startswith("optimal") for name in compared)


def test_help_lists_every_strategy_and_arrangement(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("compare", "--help")
    assert done.status == 0
    for name, kind in STRATEGIES.items():
        shown = f"\n  {name}:{kind.value} " if kind.value else f"\n  {name} "
        assert shown in done.out
    assert all(name in done.out for name in ARRANGEMENTS)
    assert compare.DEFAULT in "".join(done.out.split())


def test_what_is_dropped_or_over_the_cost_is_said(run, four):
    done = run("compare", four, "--strategies", "sorted", "--cut", "budget:8,oversize=drop")
    assert re.search(r" dropped\n.*\n.* 1\n", done.out)
    done = run("compare", four, "--strategies", "sorted", "--cut", "budget:8,oversize=alone")
    assert "over" in done.out
    assert re.search(r"budget\n.*\n.* 1\n", done.out)


@pytest.mark.slow
def test_one_sequence_and_equal_ones(run, tmp_path):
    path = tmp_path / "one.txt"
    for count in (1, 5):
        path.write_text("7\n" * count)
        rows = run("compare", path, "--strategies", EVERY, "--json", "-").json["rows"]
        assert f"\n{count} sequence{'s' * (count > 1)} of 7 to 7 (mean 7.0)" in run("plan", path).out
        assert {(row["padding_share"], row["average_batch_length"]) for row in rows} == {(0.0, 7.0)}
        assert np.isfinite([row["mixing"] for row in rows]).all()


def test_with_several_batches_a_step_steps_have_columns_of_their_own(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    words = ("compare", "--subset", 2_000, "--budget", 20_000, "--world-size", 4, "--micro-batches", 4)
    heads, one = run(*words).out, run(*words[:-4]).out
    assert "4 ranks x 4 micro-batches a step" in heads
    assert "waiting" in heads
    assert "waiting" not in one
    found = run(*words, "--json", "-").json["rows"]
    rows = {row["strategy"]: row for row in found}
    random, steps = rows["random"], rows["random-steps"]
    assert steps["padding_share"] < 0.15 < random["padding_share"]
    assert steps["randomness"] > 0.97
    assert steps["straggler_waste"] < 0.05
    assert rows["sorted"]["step_length_variance"] > 10 * steps["step_length_variance"]


@pytest.mark.parametrize("cut", ["fixed:16,drop-incomplete=true", "dynamic:16,rule=paper"])
def test_cuts_that_form_no_steps_are_compared_without_them(run, cut):
    found = run("compare", "--subset", 500, "--cut", cut, "--world-size", 4, "--json", "-").json["rows"]
    strategies = {row["strategy"] for row in found}
    assert "random" in strategies
    assert "random-steps" not in strategies


def test_a_world_that_cannot_be_is_refused(run):
    done = run("compare", "--world-size", 0)
    assert (done.status, done.out) == (2, "")
    assert "`world_size` must be at least 1, but is 0." in done.err


def test_a_batch_of_one_is_one_sequence(run, four):
    done = run("compare", four, "--strategies", "random", "--batch-size", 1)
    assert "batches of 1 sequence" in done.out
    assert "1 sequences" not in done.out
