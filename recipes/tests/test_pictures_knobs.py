"""The picture of knobs, and the rows behind it."""

import pytest

pytest.importorskip("matplotlib")


import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.pictures import knob_curves, sweep
from lengthwise_recipes.pictures.knobs import SHOWN
from lengthwise_recipes.pictures.style import look, percent
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
    figure = knob_curves(lengths, CUT, selected=selected, points=3, unit="tokens")
    assert len(figure.axes) == 8
    upper, lower = figure.axes[:4], figure.axes[4:]
    assert [axes.get_xlabel() for axes in lower] == ["LRF", "bucket size", "bins", "padding asked for"]
    assert [axes.get_xscale() for axes in lower] == ["log", "log", "log", "linear"]
    assert lower[0].get_ylabel() == "average batch length (tokens)"
    for name, above, below in zip(SHOWN, upper, lower, strict=True):
        knobs, rates = above.lines[0].get_data()
        for knob, rate, length in zip(knobs, rates, below.lines[0].get_ydata(), strict=True):
            value = knob if KNOBS[name].name in ("LRF", "padding asked for") else int(knob)
            measures = lw.measure(lw.make_plan(lengths, parse_strategy(f"{name}:{value}", cut=CUT)), lengths)
            assert rate == pytest.approx(measures.zero_padding_rate)
            assert length == pytest.approx(measures.average_batch_length)
        assert above.lines[0].get_color() == look(name).colour
        if name in selected:
            (place,), (height,) = above.lines[1].get_data()
            assert place == selected[name]
            assert (place, height) in set(zip(knobs, rates, strict=True))  # the mark stands on the curve
            assert above.get_title(loc="left") == f"{name}\n{place:,} gives {percent(height)}"
        else:
            assert above.get_title(loc="left") == name
    random = lw.measure(lw.make_plan(lengths, parse_strategy("random", cut=CUT)), lengths)
    assert random.zero_padding_rate in [line.get_ydata()[0] for line in upper[2].lines]
