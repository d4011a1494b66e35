"""`lengthwise compare`: its JSON is a contract, recomputed here through the library."""

import re

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.advice.candidates import first_budget
from lengthwise.cli.parser import draw_subset
from lengthwise.cli.strategies import STRATEGIES, parse_strategy
from lengthwise.measures.metrics import MOST_EPOCHS

pytestmark = pytest.mark.slow


VALUES = {"semi-sorted": 0.1, "max-entropy": 0.1, "windowed": 64, "bucketed": 64}
EVERY = ",".join(f"{name}:{VALUES.get(name, 4)}" if kind.value else name for name, kind in STRATEGIES.items())
EVERY += ",sorted,arrange=in-order"


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
    assert rows["sorted,arrange=in-order"]["padding_share"] == min(row["padding_share"] for row in rows.values())


SIX = {"world_size": 3, "micro_batches": 2}


@pytest.mark.parametrize(
    ("words", "cut", "world"),
    [
        ((), None, {}),
        (("--batch-size", 5), lw.FixedSize(5), SIX),
        (("--cut", "dynamic:4,rule=paper"), lw.DynamicSize(4, rule="paper"), {}),
        (("--cut", "budget:500,oversize=drop"), lw.Budget(500, oversize="drop"), SIX),
    ],
    ids=str,
)
def test_rows_are_what_the_library_measures(run, words, cut, world):
    asked = ("compare", "--example", "speech", "--subset", 200, "--seed", 3, "--json", "-")
    ranks = [word for name, size in world.items() for word in (f"--{name.replace('_', '-')}", size)]
    found = run(*asked, "--strategies", "random,optimal:3", *words, *ranks).json
    chosen = draw_subset(lw.example_lengths("speech"), 200, seed=3)
    assert found["lengths"]["fingerprint"] == lw.fingerprint(chosen)
    for row in found["rows"]:
        batching = parse_strategy(row["strategy"], cut=cut or lw.Budget(first_budget(chosen)))
        plans = [lw.make_plan(chosen, batching, seed=3, epoch=epoch, **world) for epoch in range(MOST_EPOCHS)]
        measures = lw.measure(plans[0], chosen).as_dict() | {"strategy": row["strategy"]}
        together = lw.measure(plans, chosen)
        pooled = ("randomness", "step_length_variance", "straggler_waste", "batch_straggler_waste")
        measures |= {name: getattr(together, name) for name in pooled}
        assert row == measures


def test_pairs_of_lengths(run, pairs):
    found = run("compare", pairs, "--strategies", "random,sorted", "--json", "-").json
    assert (found["lengths"]["min"], found["lengths"]["max"]) == ([3, 2], [9, 6])
    assert [row["sequences"] for row in found["rows"]] == [40, 40]
    by_default = [row["strategy"] for row in run("compare", pairs, "--json", "-").json["rows"]]
    assert not any(name.startswith("optimal") for name in by_default)


def test_what_is_dropped_or_over_the_cost_is_said(run, four):
    for policy, head in (("drop", " dropped"), ("alone", "budget")):
        done = run("compare", four, "--strategies", "sorted", "--cut", f"budget:8,oversize={policy}")
        assert re.search(rf"{head}\n.*\n.* 1\n", done.out)


@pytest.mark.slow
def test_one_sequence_and_equal_ones(run, tmp_path):
    path = tmp_path / "one.txt"
    for count in (1, 5):
        path.write_text("7\n" * count)
        out = run("plan", path, "--batch-size", count).out
        assert f"\n{count} sequence{'s' * (count > 1)} of 7 to 7 (mean 7.0)" in out
        assert f"batches of {count} sequence{'s' * (count > 1)}\n" in out
        rows = run("compare", path, "--strategies", EVERY, "--json", "-").json["rows"]
        assert {(row["padding_share"], row["average_batch_length"]) for row in rows} == {(0.0, 7.0)}
        assert np.isfinite([row["randomness"] for row in rows]).all()


@pytest.mark.parametrize(
    ("cut", "forms"),
    [("budget:10000", True), ("fixed:16,drop-incomplete=true", False), ("dynamic:16,rule=paper", False)],
)
def test_random_steps_are_compared_where_the_cut_forms_them(run, cut, forms):
    found = run("compare", "--subset", 500, "--cut", cut, "--world-size", 4, "--json", "-").json["rows"]
    assert ("random-steps" in {row["strategy"] for row in found}) == forms


def test_its_report_puts_forward_what_the_rule_of_advise_does(run, tmp_path):
    words = ("compare", "--subset", 2_000, "--world-size", 4, "--micro-batches", 4, "--html", tmp_path / "report.html")
    assert run(*words, "--strategies", "random,random-steps,max-entropy:0.05").status == 0
    page = Page.of_file(tmp_path / "report.html")
    assert "random-steps computes" in page.said("h1")
    assert list(page.table("strategy")) == ["random", "random-steps", "max-entropy:0.05"]
    assert "random-steps" in page.said("code")
