"""The picture of a study: its lines are the rows' means, its bands their spread."""

import json

import pytest

pytest.importorskip("altair")

from lengthwise_recipes.pictures import learning_curves, learning_panels
from lengthwise_recipes.pictures.curves import STRATEGY, curve
from lengthwise_recipes.pictures.looks import Look


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


def drawn(chart):
    """The drawn points, the domain and the ranges of colours and dashes, and all of the chart as text."""
    spec = chart.to_dict()
    encoding = spec["spec"]["layer"][1]["encoding"]
    scales = [encoding[name]["scale"] for name in ("color", "strokeDash")]
    looks = dict(zip(scales[0]["domain"], zip(*(scale["range"] for scale in scales), strict=True), strict=True))
    return next(iter(spec["datasets"].values())), looks, json.dumps(spec)


def test_curves_are_means_with_the_least_and_greatest():
    points = curve(rows("random", scale=10.0), "random", "elapsed_seconds")
    assert [point["x"] for point in points] == [10.5, 20.5, 30.5]
    assert [point["mean"] for point in points] == [1.5, 0.75, 0.5]
    assert [point["least"] for point in points] == [1.0, 0.5, 1 / 3]
    assert [point["greatest"] for point in points] == [2.0, 1.0, 2 / 3]


def test_the_picture_has_two_panels_and_a_look_for_each_strategy():
    many = [f"strategy:{number}" for number in range(10)]
    points, looks, text = drawn(learning_curves([row for label in many for row in rows(label)], title="pens"))
    assert {(point["panel"], point["name"]) for point in points} == {
        (panel, label) for panel in ("training time (s)", "epochs") for label in many
    }
    assert list(looks) == many
    assert len({json.dumps(look) for look in looks.values()}) == 10
    assert "Validation loss (nats per symbol)" in text


@pytest.mark.parametrize("draw", [learning_curves, learning_panels])
def test_a_picture_says_what_its_bands_are(draw):
    title = draw(rows("random"), title="pens").to_dict()["title"]
    assert title["subtitle"] == ["pens", "Means of 2 seeds; bands: from the best to the worst"]
    one = [row for row in rows("random") if row["seed"] == 0]
    assert draw(one, title="pens").to_dict()["title"]["subtitle"] == ["pens"]


def test_looks_can_be_given():
    look = Look("#123456", (1, 1))
    _, looks, _ = drawn(learning_curves([*rows("random"), *rows("Q = 3")], looks={"Q = 3": look}))
    assert looks["Q = 3"] == ("#123456", [1, 1])


@pytest.mark.parametrize("count", [1, 7, 13])
def test_every_strategy_has_a_panel_beside_the_first(count):
    labels = [f"my strategy number:{number} of many" for number in range(count)]
    chart = learning_panels([row for label in labels for row in rows(label)], title="pens", against="epoch")
    points, looks, text = drawn(chart)
    assert '"title": "epochs"' in text
    assert list(looks) == [labels[0], STRATEGY]
    assert chart.to_dict()["facet"]["sort"] == labels
    for label in labels:
        for name in looks:
            curve = [
                (point["x"], point["mean"]) for point in points if (point["panel"], point["name"]) == (label, name)
            ]
            assert curve == [(1, 1.5), (2, 0.75), (3, 0.5)]


def test_a_diverged_run_leaves_a_gap():
    diverged = [{**row, "validation_loss": None} if row["epoch"] == 2 else row for row in rows("random", seeds=1)]
    points, _, _ = drawn(learning_curves(diverged))
    assert [point["mean"] is None for point in points[:3]] == [False, True, False]


@pytest.mark.parametrize("draw", [learning_curves, learning_panels])
def test_no_rows_are_refused(draw):
    with pytest.raises(ValueError, match="`rows` must be at least one epoch"):
        draw([])


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [(1.0, [0.5, 0.7, 1.0, 1.5, 2.0]), (0.05, [0.98, 1.0, 1.02, 1.04]), (0.0, [1.0])],
)
def test_narrow_losses_have_even_ticks(scale, ticks):
    flat = [{**row, "validation_loss": 1 + scale * (row["validation_loss"] - 1)} for row in rows("random")]
    spec = learning_curves(flat, title="pens").to_dict()["spec"]["layer"][1]["encoding"]["y"]["axis"]
    assert spec["values"] == pytest.approx(ticks)
