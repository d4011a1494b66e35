"""`--pack`: rows on the command line, and what `compare` says of them."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.cli import compare
from lengthwise.measures.metrics import MOST_EPOCHS

PACKED = ("--cut", "rows:4096,rows=4")


@pytest.fixture
def lengths(tmp_path):
    drawn = np.random.default_rng(0).lognormal(6.0, 0.7, 1_500).astype(np.int64).clip(1, 4_096)
    np.save(tmp_path / "lengths.npy", drawn)
    return tmp_path / "lengths.npy"


@pytest.mark.slow
def test_every_packing_has_a_row_of_what_the_library_measures(run, lengths):
    found = run("compare", lengths, *PACKED, "--json", "-").json
    rows = {row["strategy"]: row for row in found["rows"]}
    assert ",".join(rows) == compare.DEFAULT_OF_ROWS
    array = np.load(lengths)
    for label, row in rows.items():
        cut = lw.Rows(4_096, rows=4, by="best-fit")
        if label != "best-fit":
            cut = lw.Rows(4_096, rows=4, pool=int(label.removeprefix("pool:")))
        plans = [
            lw.make_plan(array, lw.Batching(cut=cut, cost=compare.ATTENTION), epoch=epoch)
            for epoch in range(MOST_EPOCHS)
        ]
        one = lw.measure(plans[0], array)
        assert (row["fill"], row["rows"], row["cost_spread"]) == (one.fill, one.rows, one.cost_spread)
        assert row["randomness"] == lw.measure(plans, array).randomness
        assert row["dropped"] == row["repeated"] == 0
    assert rows["best-fit"]["fill"] == max(row["fill"] for row in rows.values())
    assert rows["pool:1"]["fill"] == min(row["fill"] for row in rows.values())


@pytest.mark.slow
def test_the_table_says_what_its_heads_mean(run, lengths):
    done = run("compare", lengths, *PACKED)
    assert "batches of 4 rows of at most 4,096 frames" in done.out
    assert "fill: the share of computed frames that are data. randomness: 1 if" in " ".join(done.out.split())
    assert "waiting" not in done.out
    assert "random-steps" not in done.out
    steps = run("compare", lengths, *PACKED, "--world-size", 4).out
    assert "waiting: the share" in steps
    assert "\nrandom-steps " in steps
    assert f"\n    lengthwise compare {lengths} --cut rows:4096,rows=4\n" in run("inspect", lengths, *PACKED).out
    limited = run("plan", lengths, "--cut", "rows:4096,rows=4,max-in-row=2").out
    assert "batches of 4 rows of at most 4,096 frames and 2 sequences" in limited


def test_a_plan_of_rows_is_saved(run, lengths, tmp_path):
    words = ("--cut", "rows:4096,rows=4,by=pool")
    done = run("plan", lengths, *words, "-o", tmp_path / "plan.npz", "--json", "-")
    plan = lw.Plan.load(tmp_path / "plan.npz")
    cut = lw.Rows(4_096, rows=4)
    assert plan.fingerprint() == lw.make_plan(np.load(lengths), lw.Batching(cut=cut)).fingerprint()
    assert done.json["measures"]["fill"] > 0.98
    written = [line.split() for line in run("plan", lengths, *words).out.splitlines()]
    assert ["randomness", f"{done.json['measures']['randomness']:.2f}"] in written
    assert ["fill", f"{100 * done.json['measures']['fill']:.2f}", "%"] in written


def test_the_remedies_for_a_sequence_longer_than_a_row_are_commands_that_run(run, lengths):
    for command in ("plan", "inspect"):
        told = run(command, lengths, "--cut", "rows:200").err
        assert "--cut rows:CAPACITY,oversize=drop" in told
        assert "lengthwise plan --chunk CAPACITY" in told
        assert run(command, lengths, "--cut", "rows:200,oversize=drop").status == 0
    assert run("plan", lengths, "--cut", "rows:200", "--chunk", 200).status == 0
