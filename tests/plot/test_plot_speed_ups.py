"""The bars are the means, the whiskers the seeds, the marks the bounds."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from lengthwise import plot


def test_the_bars_are_epoch_times_and_speed_ups():
    figure = plot.speed_up_bars({3: [1.0, 3.0], 1: [4.0, 6.0]}, {1: 1.0, 3: 5.0}, title="two seeds")
    left, right = figure.axes
    times: Any = left.patches
    factors: Any = right.patches
    assert [bar.get_height() for bar in times] == [5.0, 2.0]
    assert [bar.get_height() for bar in factors] == [1.0, 3.0]  # of each seed: 4 / 1 and 6 / 3
    assert [text.get_text() for text in right.get_xticklabels()] == ["1", "3"]
    assert np.asarray(right.lines[-1].get_ydata()).tolist() == [1.0, 5.0]


@pytest.mark.parametrize(("seconds", "bounds"), [({}, {}), ({1: [1.0]}, {2: 1.0})])
def test_buckets_without_a_bound_are_refused(seconds, bounds):
    with pytest.raises(ValueError, match="`bounds` must be of buckets"):
        plot.speed_up_bars(seconds, bounds)
