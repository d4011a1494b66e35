"""The lines are the means, the bands the seeds, the dashed line the bounds."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from lengthwise_recipes import pictures


def test_the_lines_are_epoch_times_and_speed_ups():
    seconds = {"1 process": {3: [1.0, 3.0], 1: [4.0, 6.0]}, "2 processes": {1: [2.0, 2.0], 3: [0.5, 0.5]}}
    figure = pictures.speed_up_curves(seconds, {1: 1.0, 3: 5.0}, title="two seeds")
    left, right = figure.axes
    drawn: Any = {line.get_label(): np.stack(line.get_data()).tolist() for line in left.lines}
    assert drawn == {"1 process": [[1, 3], [5, 2]], "2 processes": [[1, 3], [2, 0.5]]}
    faster: Any = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in right.lines}
    most = "by padded frames"
    assert faster == {"1 process": [1, 3], "2 processes": [1, 4], most: [1, 5]}  # of each seed: 4 / 1 and 6 / 3
    band: Any = left.collections[0]
    assert {tuple(place) for place in band.get_paths()[0].vertices} == {(1, 4), (1, 6), (3, 1), (3, 3)}
    assert [text.get_text() for text in right.texts] == [*seconds, most]
    assert (figure.legends, figure.get_suptitle()) == ([], "two seeds")


def test_buckets_without_a_bound_are_refused():
    with pytest.raises(ValueError, match=r"`bounds` must be of buckets \[1\], but is \[2\]"):
        pictures.speed_up_curves({"1 process": {1: [1.0]}}, {2: 1.0})


@pytest.mark.parametrize("seconds", [{}, {"1 process": {}}, {"1 process": {1: [1.0]}, "2 processes": {2: [1.0]}}])
def test_series_of_other_buckets_are_refused(seconds):
    with pytest.raises(ValueError, match="`seconds` must be of series that all have the same numbers of buckets"):
        pictures.speed_up_curves(seconds, {1: 1.0, 2: 2.0})
