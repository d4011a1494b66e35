"""Labels beside what they name: none over another, each near its place."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib")

from matplotlib.text import Text

from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.labels import EndLabel, label_ends, spread_out

NUMBERS = st.lists(st.floats(-10.0, 10.0), min_size=0, max_size=9)


@given(wanted=NUMBERS, gap=st.floats(0.0, 3.0), low=st.floats(-20.0, 0.0), high=st.floats(0.0, 20.0))
def test_places_keep_their_distance_order_and_bounds(wanted, gap, low, high):
    places = spread_out(wanted, gap, low=low, high=high)
    assert len(places) == len(wanted)
    rising = places[np.argsort(wanted, kind="stable")]
    room = min(gap, (high - low) / max(len(wanted) - 1, 1))
    assert np.all(np.diff(rising) >= room - 1e-9)
    assert np.all((places >= low - 1e-9) & (places <= high + 1e-9))


@given(wanted=NUMBERS)
def test_labels_with_room_stay_where_they_want_to_be(wanted):
    apart = np.diff(np.sort(wanted)).min(initial=1.0)
    np.testing.assert_allclose(spread_out(wanted, apart), wanted, atol=1e-9)


@given(wanted=st.lists(st.tuples(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0)), min_size=1), gap=st.floats(0.0, 2.0))
def test_no_other_places_in_their_order_are_nearer(wanted, gap):
    wished, others = np.array(sorted(wanted)).T
    steps = gap * np.arange(len(wished))
    places = np.maximum.accumulate(others - steps) + steps  # any others that keep the distance
    nearest = spread_out(wished, gap)
    assert np.sum((nearest - wished) ** 2) <= np.sum((places - wished) ** 2) + 1e-6


def ends(axes):
    return [text for text in axes.texts if text.get_text()]


@pytest.mark.parametrize("heights", [[0.5] * 8, [0.0, 0.01, 1.0, 0.99], [0.2, 0.8]])
def test_labels_at_the_ends_do_not_overlap_and_stay_beside_the_panel(heights):
    figure = style.blank_figure(height=3.0)
    axes = figure.subplots()
    style.set_limits(axes, right=1.0, top=1.0)
    label_ends(axes, [EndLabel(f"label {number}", (1.0, height)) for number, height in enumerate(heights)])
    figure.draw_without_rendering()
    boxes = sorted((Text.get_window_extent(text) for text in ends(axes)), key=lambda box: box.y0)
    assert len(boxes) == len(heights)
    panel = axes.get_window_extent()
    for box in boxes:
        assert panel.x1 < box.x0 < box.x1 <= figure.bbox.x1
        assert panel.y0 - box.height <= box.y0 < box.y1 <= panel.y1 + box.height
    assert all(below.y1 <= above.y0 for below, above in itertools.pairwise(boxes))


def test_a_label_alone_stands_at_the_height_of_its_place():
    figure = style.blank_figure(height=3.0)
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_ylim(1.0, 100.0)
    label_ends(axes, [EndLabel("ten", (0.5, 10.0), "#56B4E9")])
    (text,) = ends(axes)
    assert text.get_position()[1] == pytest.approx(0.5)
    assert text.get_color() == style.readable("#56B4E9")


def test_no_labels_are_no_fault():
    axes = style.blank_figure(height=3.0).subplots()
    label_ends(axes, [])
    assert not ends(axes)
