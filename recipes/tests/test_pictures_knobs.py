"""The picture of knobs, and the rows behind it."""

import pytest

pytest.importorskip("altair")

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.pictures import knob_curves, sweep
from lengthwise_recipes.pictures.knobs import SHOWN
from lengthwise_recipes.pictures.sweeps import KNOBS

pytestmark = pytest.mark.slow

CUT = lw.FixedSize(8)


@pytest.fixture(scope="module")
def lengths():
    return lw.example_lengths("long-tailed", count=1_000)


@pytest.fixture(scope="module")
def rows(lengths):
    return sweep(lengths, CUT, points=4, epochs=2)


def test_rows_are_what_measure_says_of_all_epochs(lengths, rows):
    assert [row["strategy"] for row in rows[:2]] == ["random", "sorted"]
    for row in rows:
        batching = parse_strategy(row["strategy"], cut=CUT)
        plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in (0, 1)]
        assert row["padding_share"] == lw.measure(plans, lengths).padding_share
        assert row["mixing"] == measure_mixing(plans, lengths)
        if row["knob"] is not None:
            assert row["strategy"].endswith(f":{row['knob']}")


def test_every_knob_turns_between_near_sorted_and_near_random(rows):
    random, by_length = rows[0]["padding_share"], rows[1]["padding_share"]
    for name in KNOBS:
        own = [row for row in rows if row["strategy"].startswith(f"{name}:")]
        assert [row["knob"] for row in own] == sorted({row["knob"] for row in own})
        shares = [row["padding_share"] for row in own]
        shares = shares[::-1] if name == "optimal" else shares  # more buckets pad less
        assert shares == sorted(shares)
        assert shares[0] < by_length + 0.4 * (random - by_length)
        assert shares[-1] > by_length + 0.85 * (random - by_length)


def test_a_sweep_over_one_strategy(lengths):
    rows = sweep(lengths, CUT, strategies=("alternated",), points=3, epochs=1)
    assert [row["strategy"] for row in rows[2:]] == [
        "alternated:14",
        "alternated:56",
        "alternated:125",
    ]  # of 125 batches


def test_buckets_are_tried_from_one_to_many(rows):
    knobs = [row["knob"] for row in rows if row["strategy"].startswith("optimal:")]
    assert knobs == [1, 2, 4, 16]  # (4/4)^2, (4/3)^2, (4/2)^2, (4/1)^2, to whole buckets


def test_knob_curves_show_what_plans_measure(lengths):
    selected = {"semi-sorted": 0.1, "bucketed": 64}
    spec = knob_curves(lengths, CUT, selected=selected, points=3, unit="tokens").to_dict()
    panels = [[layer["encoding"] for layer in panel["layer"]] for panel in spec["concat"]]
    assert [lines["x"]["title"] for _, lines, _ in panels[4:]] == ["LRF", "bucket size", "bins", "padding asked for"]
    assert [lines["x"]["scale"]["type"] for _, lines, _ in panels[4:]] == ["log", "log", "log", "linear"]
    assert panels[4][1]["y"]["title"] == "batch length (tokens)"
    for place, panel in enumerate(spec["concat"]):
        name, measure = SHOWN[place % 4], ("zero_padding_rate", "average_batch_length")[place // 4]
        rows = spec["datasets"][panel["layer"][1]["data"]["name"]]
        for row in rows:
            plan = lw.make_plan(lengths, parse_strategy(f"{name}:{row['knob']}", cut=CUT))
            assert row["value"] == pytest.approx(getattr(lw.measure(plan, lengths), measure))
        assert [row["knob"] for row in rows if row["marked"]] == [selected[key] for key in selected if key == name]
    random = lw.measure(lw.make_plan(lengths, parse_strategy("random", cut=CUT)), lengths)
    bounds = spec["datasets"][spec["concat"][0]["layer"][0]["data"]["name"]]
    assert bounds[0] == {"name": "random", "value": random.zero_padding_rate}
