"""Differences of losses with their intervals, row by row."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from lengthwise_recipes import pictures
from lengthwise_recipes.pictures.differences import Difference

APART, ALIKE = Difference(-1.0, -1.5, -0.5), Difference(0.2, -0.4, 0.8)
GROUPS = {
    "no knob": {"sorted": [APART, ALIKE]},
    "5 % padding": {"semi-sorted:0.1": [ALIKE, Difference(None, None, None)], "bucketed:32": [APART, APART]},
}


def marks(axes):
    """Place, mean and whether it is filled, of every mark from the top down."""
    dots = [line for line in axes.get_lines() if line.get_marker() not in ("None", None)]
    return [(line.get_ydata()[0], line.get_xdata()[0], line.get_markerfacecolor() != "white") for line in dots]


def test_rows_stand_below_their_group_and_what_is_told_apart_is_filled():
    first, second = pictures.loss_differences(GROUPS, ["epochs", "time"], unit="nats").axes
    names = [text.get_text() for text in first.get_yticklabels()]
    assert names == ["no knob", "sorted", "5 % padding", "semi-sorted:0.1", "bucketed:32"]
    assert marks(first) == [(1, -1.0, True), (3, 0.2, False), (4, -1.0, True)]
    assert marks(second) == [(1, 0.2, False), (4, -1.0, True)]  # a run that diverged leaves its row empty
    assert first.get_ylim() == (4.5, -0.7)


def test_whiskers_reach_over_the_intervals():
    axes = pictures.loss_differences({"one": {"sorted": [ALIKE]}}, ["epochs"], unit="nats").axes[0]
    assert [-0.4, 0.8] in [np.array(line.get_xdata()).tolist() for line in axes.get_lines()]


def test_one_run_has_a_mark_and_no_whisker():
    axes = pictures.loss_differences({"one": {"sorted": [Difference(0.5, None, None)]}}, ["epochs"], unit="nats").axes[
        0
    ]
    assert marks(axes) == [(1, 0.5, False)]


@pytest.mark.parametrize("groups", [{}, {"none": {}}, {"short": {"sorted": [APART]}}, {"none": {"sorted": []}}])
def test_rows_that_do_not_fit_the_panels_are_refused(groups):
    with pytest.raises(ValueError, match="`groups` must be rows of 2 differences"):
        pictures.loss_differences(groups, ["epochs", "time"], unit="nats")


def test_a_panel_without_a_mark_says_that_nothing_is_known():
    groups = {"one": {"sorted": [APART, Difference(None, None, None)]}}
    known, empty = pictures.loss_differences(groups, ["epochs", "time"], unit="nats").axes
    assert [text.get_text() for text in empty.texts] == ["not known"]
    assert not known.texts
