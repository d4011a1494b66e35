"""The pictures of knobs and trade-offs, and the rows behind them."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise.plot import knob_curves, sweep, trade_off
from lengthwise.plot.knobs import SHOWN
from lengthwise.plot.style import look, percent, readable
from lengthwise.plot.sweeps import KNOBS
from lengthwise.plot.trade_offs import Curve, limit_curve, share_of_limit

pytestmark = pytest.mark.slow

CUT = lw.FixedSize(8)


@pytest.fixture(scope="module")
def lengths():
    return lw.example_lengths("long-tailed", count=1_000)


@pytest.fixture(scope="module")
def rows(lengths):
    return sweep(lengths, CUT, points=4, epochs=2)


def test_rows_are_means_over_epochs_and_mixing_of_all_together(lengths, rows):
    assert [row["strategy"] for row in rows[:2]] == ["random", "sorted"]
    for row in rows:
        batching = parse_strategy(row["strategy"], cut=CUT)
        plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in (0, 1)]
        shares = [lw.measure(plan, lengths).padding_share for plan in plans]
        assert row["padding_share"] == pytest.approx(np.mean(shares))
        assert row["mixing"] == lw.measure(plans, lengths, bins=row["mixing_bins"]).mixing
        assert row["step_mixing"] == row["mixing"]  # a step is one batch
        assert row["mixing_bins"] == 15  # of 2,000 sequences
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
        assert shares[0] < by_length + 0.35 * (random - by_length)
        assert shares[-1] > by_length + 0.85 * (random - by_length)


def test_epochs_bring_enough_sequences_together():
    few, many = lw.example_lengths(count=10), lw.example_lengths(count=30_000)
    assert sweep(few, CUT, strategies=(), points=2)[0]["sequences"] == 10
    three_epochs = sweep(many, CUT, strategies=(), epochs=3)[0]
    assert sweep(many, CUT, strategies=())[0] == three_epochs  # 80,000 sequences at least


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


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_trade_off_draws_its_rows_and_the_limit(lengths, rows):
    figure = trade_off(rows, lengths=lengths, title="long-tailed")
    left, right = figure.axes
    assert figure.get_suptitle() == "long-tailed"
    assert not figure.legends
    curves = {line.get_label(): line for line in left.lines}
    assert list(curves) == ["random", "sorted", *KNOBS, "limit"]
    for name in KNOBS:
        own = sorted((row["padding_share"], row["mixing"]) for row in rows if row["strategy"].startswith(f"{name}:"))
        np.testing.assert_allclose(np.stack(curves[name].get_data(), axis=1), own)
        assert curves[name].get_color() == look(name).colour
        (text,) = (text for text in left.texts if text.get_text() == name)
        assert text.get_color() == readable(look(name).colour)
        assert text.xy == pytest.approx(own[-1])
    padding, most = curves["limit"].get_data()
    assert padding[-1] == max(row["padding_share"] for row in rows)
    np.testing.assert_allclose(most, [lw.mixing_limit(lengths, share, bins=128) for share in padding])
    assert right.get_title(loc="left") == "mixing as a share of the limit"
    assert right.lines[0].get_ydata()[0] == pytest.approx(
        rows[0]["mixing"] / np.interp(rows[0]["padding_share"], padding, most)
    )
    random = f"random: {rows[0]['mixing']:.2f} at {percent(rows[0]['padding_share'])} padding"
    assert random in texts(left)


def test_panels_that_end_early_say_what_lies_beyond(lengths, rows):
    left, right = trade_off(rows, lengths=lengths, max_padding=0.3).axes
    assert left.get_xlim() == right.get_xlim() == (0.0, pytest.approx(0.306))
    share = f"{percent(rows[0]['padding_share'])} padding \N{RIGHTWARDS ARROW}"
    assert f"random: {rows[0]['mixing']:.2f} at {share}" in texts(left)
    limit = lw.mixing_limit(lengths, rows[0]["padding_share"], bins=128)
    assert f"random: {rows[0]['mixing'] / limit:.2f} at {share}" in texts(right)
    for text in left.texts:
        if text.get_text() in KNOBS:
            assert text.xy[0] <= left.get_xlim()[1]  # named where the curve leaves the panel
    assert left.get_ylim()[1] < rows[0]["mixing"]


def test_a_curve_that_lies_beyond_is_told():
    far = [{"strategy": f"optimal:{number}", "padding_share": 0.4 + 0.1 * number, "mixing": 0.5} for number in (0, 1)]
    near = [{"strategy": f"semi-sorted:{share}", "padding_share": share, "mixing": share} for share in (0.1, 0.2)]
    (axes,) = trade_off([*far, *near], max_padding=0.3).axes
    assert sorted(texts(axes)) == ["optimal: 0.50 at 40 % padding \N{RIGHTWARDS ARROW}", "semi-sorted"]


def test_without_lengths_there_is_no_limit(rows):
    (axes,) = trade_off(rows).axes
    assert len(axes.lines) == 7


def test_rows_of_one_strategy_and_value_make_one_point():
    twice = [{"strategy": "semi-sorted:0.1", "padding_share": share, "mixing": 0.5} for share in (0.1, 0.2)]
    (axes,) = trade_off([*twice, {"strategy": "mine:1,arrange=in-order", "padding_share": 0.4, "mixing": 0.3}]).axes
    assert [line.get_label() for line in axes.lines] == ["semi-sorted", "mine,arrange=in-order"]
    assert axes.lines[0].get_xdata() == pytest.approx([0.15])


def test_shares_of_a_limit_too_low_to_measure_are_left_out():
    limit = Curve(np.array([0.0, 0.5]), np.array([0.0, 1.0]))
    share = share_of_limit(Curve(np.array([0.01, 0.25]), np.array([0.01, 0.4])), limit)
    assert (share.padding.tolist(), share.mixing.tolist()) == ([0.25], [0.8])


def test_two_lengths_are_limited_by_their_sum():
    pairs = np.stack([np.arange(1, 9), np.arange(1, 9)], axis=1)
    limit = limit_curve(pairs, 0.3)
    assert limit.mixing[-1] == lw.mixing_limit(2 * np.arange(1, 9), 0.3, bins=128)


@pytest.mark.parametrize("lengths", [[7], [5] * 40])
def test_lengths_without_any_spread(lengths):
    rows = sweep(lengths, CUT, points=2, epochs=1)
    left, right = trade_off(rows, lengths=lengths).axes
    assert all(line.get_ydata()[0] == 1.0 for line in [*left.lines, *right.lines])
    assert len(knob_curves(lengths, CUT, points=2).axes) == 8


def test_what_is_refused():
    with pytest.raises(ValueError, match="`rows` must be at least one row"):
        trade_off([])
    row = {"strategy": "random", "padding_share": 0.5, "mixing": 1.0}
    with pytest.raises(ValueError, match=r"`max_padding` must be above 0\.5 and at most 1, but is 0\.4"):
        trade_off([row], max_padding=0.4)
    with pytest.raises(ValueError, match="`lengths` must be at least one sequence, but is 0"):
        sweep([], CUT)
    with pytest.raises(ValueError, match="`strategies` must be one of semi-sorted, bucketed, alternated, optimal, "):
        sweep([1, 2], CUT, strategies=("random",))
    with pytest.raises(ValueError, match="`points` must be at least 2, but is 1"):
        sweep([1, 2], CUT, points=1)
    with pytest.raises(ValueError, match="`epochs` must be at least 1, but is 0"):
        sweep([1, 2], CUT, epochs=0)
    with pytest.raises(ValueError, match=r"`selected` must be one of semi-sorted, .*, but is 'optimal'"):
        knob_curves([1, 2], CUT, selected={"optimal": 1})
