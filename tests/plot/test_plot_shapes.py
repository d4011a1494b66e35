"""The picture of how many shapes are worth compiling: its curves are what the library says."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.planning.few_shapes import cost_of_edges
from lengthwise.plot import shape_curve

LENGTHS = lw.example_lengths("long-tailed", count=500)
CUT = lw.Budget(20_000, multiple_of=8)


def test_curves_are_the_shares_of_padding_and_have_names():
    figure = shape_curve(LENGTHS, CUT, shapes=6)
    axes = figure.axes[0]
    curves = {line.get_label(): line for line in axes.lines}
    assert list(curves) == ["optimal edges", "quantiles", "equal widths", "optimal shapes"]
    shares = 1.0 - LENGTHS.sum() / lw.shape_costs(LENGTHS, 6, CUT)
    assert curves["optimal shapes"].get_xdata().tolist() == [1, 2, 3, 4, 5, 6]
    assert curves["optimal shapes"].get_ydata() == pytest.approx(shares)
    beside = 1.0 - LENGTHS.sum() / cost_of_edges(LENGTHS, lw.quantile_edges(LENGTHS, 6), CUT)
    assert curves["quantiles"].get_ydata()[-1] == pytest.approx(beside)
    edges = curves["optimal edges"]
    assert (shares[np.array(edges.get_xdata()) - 1] <= np.array(edges.get_ydata()) + 1e-12).all()
    assert axes.get_title(loc="left").startswith("6 shapes: ")


def test_one_shape_of_one_length_is_drawn_too():
    assert shape_curve([7, 7], lw.FixedSize(2), shapes=1).axes[0].lines[-1].get_ydata().tolist() == [0.0]


def test_shapes_of_pairs_are_drawn_too():
    pairs = np.stack([LENGTHS, LENGTHS // 2 + 1], axis=1)
    cut = lw.Budget(40_000)
    drawn = shape_curve(pairs, cut, shapes=4).axes[0].lines[-1].get_ydata()
    assert drawn == pytest.approx(1.0 - pairs.sum() / lw.shape_costs(pairs, 4, cut))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"^`lengths` must be of at least one sequence"):
        shape_curve([], CUT)


@pytest.mark.parametrize(("lengths", "needed"), [([7, 7], "1 shape: 0 %"), ([3, 3, 9, 9], "2 shapes: 0 %")])
def test_the_title_counts_the_shapes_that_are_needed(lengths, needed):
    axes = shape_curve(lengths, lw.FixedSize(2), shapes=6).axes[0]
    assert axes.get_title(loc="left") == f"{needed} of what is computed is padding"
    assert axes.get_xticks().tolist() == [1, 2, 4, 6]
