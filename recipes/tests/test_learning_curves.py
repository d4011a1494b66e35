"""The picture of a study: its lines are the rows' means, its bands their spread."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from lengthwise_recipes.pictures.learning import OTHERS, curve, learning_curves, learning_panels
from lengthwise_recipes.pictures.style import Look, look

pytestmark = pytest.mark.slow


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
    places, mean, least, greatest = curve(rows("random", scale=10.0), "random", "elapsed_seconds")
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
    assert sorted(text.get_text() for text in by_epoch.texts) == many  # each beside the end of its curve
    assert [text.xy for text in by_epoch.texts] == [(3.0, 0.5)] * 10
    assert not by_time.texts
    assert not figure.legends
    assert len(by_time.collections) == 10  # the bands


@pytest.mark.parametrize("draw", [learning_curves, learning_panels])
def test_a_picture_says_what_its_bands_are(draw):
    assert draw(rows("random"), title="pens").get_suptitle().endswith("means and range of 2 seeds")
    one = [row for row in rows("random") if row["seed"] == 0]
    assert "seeds" not in draw(one, title="pens").get_suptitle()


def test_looks_can_be_given():
    look = Look("#123456", ":", "x")
    figure = learning_curves([*rows("random"), *rows("Q = 3")], looks={"Q = 3": look})
    assert [line.get_color() for line in figure.axes[0].lines] == ["#7F7F7F", "#123456"]


def panels(figure):
    return {axes.get_title(loc="left").replace("\n", " "): axes for axes in figure.axes}


@pytest.mark.parametrize("count", [1, 7, 13])
def test_every_strategy_has_a_panel_beside_the_first(count):
    labels = [f"my strategy number:{number} of many" for number in range(count)]
    figure = learning_panels([row for label in labels for row in rows(label)], title="pens", against="epoch")
    assert list(panels(figure)) == labels
    told = "pens\neach panel: one strategy, my strategy number:0 of many for comparison"
    assert figure.get_suptitle().startswith(told)
    assert figure.get_supxlabel() == "epochs"
    for label, axes in panels(figure).items():
        *pale, first, own = axes.lines
        assert len(pale) == count
        assert {line.get_color() for line in pale} == {OTHERS}
        assert [line.get_label() for line in (first, own)] == [labels[0], label]
        np.testing.assert_allclose(own.get_data(), [[1, 2, 3], [1.5, 0.75, 0.5]])
        assert len(axes.collections) == 1  # the band
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}) == 1


def test_titles_of_panels_do_not_run_into_each_other():
    labels = ["random, padding counted", *(f"strategy:{number}" for number in range(19))]
    figure = learning_panels([row for label in labels for row in rows(label)])
    figure.draw_without_rendering()
    for axes in figure.axes:
        title = axes._left_title.get_window_extent()
        assert not any(title.overlaps(other.bbox) for other in figure.axes if other is not axes)


def test_a_panel_knows_its_columns():
    with pytest.raises(ValueError, match="`against` must be one of elapsed_seconds, epoch, but is 'steps'"):
        learning_panels(rows("random"), against="steps")


def test_the_panel_of_a_strategy_has_its_colour():
    axes = panels(learning_panels([*rows("random"), *rows("optimal:8")]))["optimal:8"]
    assert axes.lines[-1].get_color() == look("optimal").colour


def test_a_diverged_run_leaves_a_gap():
    diverged = [{**row, "validation_loss": None} if row["epoch"] == 2 else row for row in rows("random", seeds=1)]
    figure = learning_curves(diverged)
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).tolist() == [False, True, False]


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="`rows` must be at least one epoch"):
        learning_curves([])
    with pytest.raises(ValueError, match="`rows` must be at least one epoch"):
        learning_panels([])
