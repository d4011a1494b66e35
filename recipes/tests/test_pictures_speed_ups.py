"""The lines are the means, the bands the seeds, the dashed line the bounds."""

import pytest

pytest.importorskip("altair")

from lengthwise_recipes import pictures


def test_the_lines_are_epoch_times_and_speed_ups():
    seconds = {"1 process": {3: [1.0, 3.0], 1: [4.0, 6.0]}, "2 processes": {1: [2.0, 2.0], 3: [0.5, 0.5]}}
    (rows,) = pictures.speed_up_curves(seconds, {1: 1.0, 3: 5.0}).to_dict()["datasets"].values()
    curves = {}
    for row in rows:
        curves.setdefault(row["panel"], {}).setdefault(row["name"], []).append((row["x"], row["mean"]))
    assert curves["seconds per epoch"] == {"1 process": [(1, 5), (3, 2)], "2 processes": [(1, 2), (3, 0.5)]}
    assert curves["speed-up over Q = 1"] == {
        "1 process": [(1, 1), (3, 3)],  # of each seed: 4 / 1 and 6 / 3
        "2 processes": [(1, 1), (3, 4)],
        "by padded frames": [(1, 1), (3, 5)],
    }
    assert [(row["least"], row["greatest"]) for row in rows[:2]] == [(4, 6), (1, 3)]
