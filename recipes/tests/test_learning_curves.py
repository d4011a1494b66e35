"""The picture of a study: its lines are the rows' means, its bands their spread."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from lengthwise_recipes.pictures.learning import curve, learning_curves


def rows(label, *, seeds=2, epochs=3, scale=1.0):
    return [
        {
            "strategy": label,
            "seed": seed,
            "epoch": epoch,
            "elapsed_seconds": scale * epoch + seed,
            "validation_loss": (1.0 + seed) / epoch,
        }
        for seed in range(seeds)
        for epoch in range(1, epochs + 1)
    ]


def test_curves_are_means_with_the_least_and_greatest():
    places, mean, least, greatest = curve(rows("random", scale=10.0), "elapsed_seconds")
    np.testing.assert_allclose(places, [10.5, 20.5, 30.5])
    np.testing.assert_allclose(mean, [1.5, 0.75, 0.5])
    np.testing.assert_allclose(least, [1.0, 0.5, 1 / 3])
    np.testing.assert_allclose(greatest, [2.0, 1.0, 2 / 3])


def test_the_picture_has_two_panels_and_a_colour_for_each_strategy():
    many = [f"strategy:{number}" for number in range(10)]
    figure = learning_curves([row for label in many for row in rows(label)], title="pens")
    by_time, by_epoch = figure.axes
    assert by_time.get_xlabel() == "training time (s)"
    assert by_epoch.get_xlabel() == "epochs"
    assert by_time.get_ylabel() == "validation loss (nats per symbol)"
    assert [line.get_label() for line in by_epoch.lines] == many
    assert len({(line.get_color(), line.get_linestyle()) for line in by_time.lines}) == 10
    assert [text.get_text() for text in figure.legends[0].get_texts()] == many
    assert len(by_time.collections) == 10  # the bands


@pytest.mark.parametrize(("label", "columns"), [("short", 4), ("max-entropy:0.15, 2 processes, parameter", 2)])
def test_the_legend_has_as_many_columns_as_fit(label, columns):
    figure = learning_curves([row for number in range(6) for row in rows(f"{label} {number}")])
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    lefts = {round(text.get_window_extent().x0) for text in figure.legends[0].get_texts()}
    assert len(lefts) == columns


def test_a_diverged_run_leaves_a_gap():
    diverged = [{**row, "validation_loss": None} if row["epoch"] == 2 else row for row in rows("random", seeds=1)]
    figure = learning_curves(diverged)
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).tolist() == [False, True, False]


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="`rows` must be at least one epoch"):
        learning_curves([])
