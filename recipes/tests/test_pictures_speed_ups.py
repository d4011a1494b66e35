"""The bars are the means, the whiskers the seeds, the marks the bounds."""

from typing import Any

import pytest

pytest.importorskip("matplotlib")

from lengthwise_recipes import pictures


def test_the_bars_are_epoch_times_and_speed_ups():
    seconds = {"1 process": {3: [1.0, 3.0], 1: [4.0, 6.0]}, "2 processes": {1: [2.0, 2.0], 3: [0.5, 0.5]}}
    figure = pictures.speed_up_bars(seconds, {1: 1.0, 3: 5.0}, title="two seeds")
    left, right = figure.axes
    times: Any = left.patches
    factors: Any = right.patches
    assert [bar.get_height() for bar in times] == [5.0, 2.0, 2.0, 0.5]
    assert [bar.get_height() for bar in factors] == [1.0, 3.0, 1.0, 4.0]  # of each seed: 4 / 1 and 6 / 3
    assert [bar.get_x() for bar in times] == pytest.approx([-0.4, 0.6, 0.0, 1.0])  # side by side at 0 and 1
    assert [text.get_text() for text in right.get_xticklabels()] == ["1", "3"]
    marks: Any = next(each for each in right.collections if each.get_label() == "most that the lengths allow")
    assert [segment[:, 1].tolist() for segment in marks.get_segments()] == [[1.0, 1.0], [5.0, 5.0]]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {*seconds, "most that the lengths allow"}


def test_buckets_without_a_bound_are_refused():
    with pytest.raises(ValueError, match=r"`bounds` must be of buckets \[1\], but is \[2\]"):
        pictures.speed_up_bars({"1 process": {1: [1.0]}}, {2: 1.0})


@pytest.mark.parametrize("seconds", [{}, {"1 process": {}}, {"1 process": {1: [1.0]}, "2 processes": {2: [1.0]}}])
def test_series_of_other_buckets_are_refused(seconds):
    with pytest.raises(ValueError, match="`seconds` must be of series that all have the same numbers of buckets"):
        pictures.speed_up_bars(seconds, {1: 1.0, 2: 2.0})
