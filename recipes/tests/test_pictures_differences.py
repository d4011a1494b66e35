"""Differences of losses with their intervals, row by row."""

import json
import math

import pytest

pytest.importorskip("altair")

from lengthwise_recipes import pictures
from lengthwise_recipes.intervals import Interval


def interval(mean, low, high):
    return Interval(mean=mean, low=low, high=high, runs=8)


APART, ALIKE = interval(-1.0, -1.5, -0.5), interval(0.2, -0.4, 0.8)
DIVERGED, ONE_RUN = interval(math.nan, math.nan, math.nan), interval(0.5, -math.inf, math.inf)
GROUPS = {
    "no knob": {"sorted": [APART, ALIKE]},
    "5 % padding": {"semi-sorted:0.1": [ALIKE, DIVERGED], "bucketed:32": [APART, APART]},
}


def drawn(groups, panels=("epochs", "time")):
    """The rows that are drawn, and all of the chart as text."""
    spec = pictures.loss_differences(groups, panels, "Differences", ["Means."]).to_dict()
    return next(iter(spec["datasets"].values())), json.dumps(spec)


def marks(rows, panel):
    """Row, mean and whether it is filled, of every mark of a panel."""
    return [(row["row"], row["mean"], row["apart"]) for row in rows if row["panel"] == panel]


def test_rows_stand_below_their_group_and_what_is_told_apart_is_filled():
    rows, text = drawn(GROUPS)
    names = ["no knob|", "no knob|sorted", "5 % padding|", "5 % padding|semi-sorted:0.1", "5 % padding|bucketed:32"]
    assert json.dumps(names) in text
    means = [(names[1], -1.0, True), (names[3], 0.2, False), (names[4], -1.0, True)]
    assert marks(rows, "epochs") == means
    assert marks(rows, "time") == [(names[1], 0.2, False), (names[3], None, False), (names[4], -1.0, True)]
    assert (rows[1]["low"], rows[1]["high"]) == (-0.4, 0.8)


def test_one_run_has_a_mark_and_no_whisker():
    ((row,), _) = drawn({"one": {"sorted": [ONE_RUN]}}, ["epochs"])
    assert (row["mean"], row["low"], row["high"], row["apart"]) == (0.5, None, None, False)


def test_each_row_has_a_difference_for_each_panel():
    with pytest.raises(ValueError, match="shorter"):
        drawn({"short": {"sorted": [APART]}})


def test_a_panel_without_a_mark_says_that_nothing_is_known():
    rows, _ = drawn({"one": {"sorted": [APART, DIVERGED]}})
    assert [(row["panel"], row["text"]) for row in rows if "text" in row] == [("time", "not known")]
