"""The picture of buckets: its areas are frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.plot import bucket_histogram
from lengthwise.plot.histograms import bucket_padding


def areas(figure):
    """The blue and the yellow area of the lower panel, in frames."""
    blue, yellow = (patch.get_data() for patch in figure.axes[1].patches)
    return tuple(float(np.sum((each.values - each.baseline) * np.diff(each.edges))) for each in (blue, yellow))


def test_the_panels_of_four_sequences():
    figure = bucket_histogram([1, 2, 9, 10], [2, 10], unit="tokens")
    upper, lower = figure.axes
    assert upper.get_title(loc="left") == "2 buckets: 8.3 % of what is computed is padding"  # 2 of 4 + 20
    assert lower.get_xlabel() == "length (tokens)"
    assert upper.get_ylabel() == "sequences"
    assert upper.patches[0].get_data().values.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]
    assert [text.get_text() for text in upper.texts] == ["10", "2"]  # the edges
    assert [text.get_text() for text in lower.texts] == ["4.2 % padding", "4.2 %", "sequences"]  # 1 of 24 each
    assert not figure.legends
    blue, yellow = (patch.get_data() for patch in lower.patches)
    assert blue.edges.tolist() == [0, 1, 2, 9, 10]
    assert blue.values.tolist() == [4, 3, 2, 1]
    assert yellow.values.tolist() == [4, 4, 2, 2]
    assert areas(figure) == (22.0, 2.0)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=60),
    buckets=st.integers(1, 8),
    beyond=st.integers(0, 50),
)
def test_areas_are_frames(lengths, buckets, beyond):
    edges = lw.quantile_edges(lengths, buckets)
    edges[-1] += beyond  # an edge past the longest, as of fixed shapes
    data, padding = areas(bucket_histogram(lengths, edges))
    assert data == sum(lengths)
    assert data + padding == lw.padded_frames(lengths, edges)
    values, counts = np.unique(lengths, return_counts=True)
    assert bucket_padding(values, counts, edges).sum() == padding


def test_edges_that_would_touch_are_not_written():
    upper = bucket_histogram([1, 2, 3, 4, 97, 100], [2, 3, 4, 97, 100]).axes[0]
    assert [text.get_text() for text in upper.texts] == ["100", "4"]  # 97 lies beside 100, and 2 and 3 beside 4


def test_no_share_is_written_over_the_axis_or_the_border_of_a_taller_bucket():
    lengths = lw.example_lengths("long-tailed")
    figure = bucket_histogram(lengths, lw.optimal_edges(lengths, 8))
    figure.canvas.draw()
    lower = figure.axes[1]
    *shares, _ = lower.texts  # the last names the area
    borders = [0.0, *(segment[0][0] for segment in lower.collections[0].get_segments())]
    for text in shares:
        box = text.get_window_extent().transformed(lower.transData.inverted())
        crossed = [border for border in borders if box.x0 < border < box.x1]
        assert all(border > text.xy[0] for border in crossed)  # of its own bucket or a lower one
        assert box.x0 >= 0.0


def test_every_sequence_stands_in_the_histogram():
    lengths = lw.example_lengths("long-tailed", count=5_000)
    axes = bucket_histogram(lengths, lw.optimal_edges(lengths, 6)).axes[0]
    data = axes.patches[0].get_data()
    assert data.values.sum() == 5_000
    assert len(data.values) <= 101
    assert len(set(np.diff(data.edges))) == 1
    assert axes.get_ylabel() == f"sequences in {int(np.diff(data.edges)[0])} frames"


@pytest.mark.parametrize("lengths", [[7], [5] * 40])
def test_nothing_to_pad(lengths):
    figure = bucket_histogram(lengths, lw.optimal_edges(lengths, 3))
    assert figure.axes[0].get_title(loc="left") == "1 bucket: 0 % of what is computed is padding"
    assert [text.get_text() for text in figure.axes[1].texts] == ["sequences"]


@pytest.mark.parametrize(
    ("lengths", "edges", "sentence"),
    [
        ([3, 9], [4], r"`edges` must be no shorter than the longest sequence, 9, but is \[4\]. Add a longer edge."),
        ([3], [4, 4], r"`edges` must be rising and not empty, but is \[4, 4\]"),
        ([3], [], r"`edges` must be rising and not empty, but is \[\]"),
        ([3], [[3, 4]], r"`edges` must be of shape \[buckets\], but is \(1, 2\)"),
        ([3], [3.5], r"`edges` must be whole numbers, but is \[3.5\]"),
        ([], [4], r"`lengths` must be of shape \[n\], n at least 1, but is \(0,\)"),
        ([[1, 2]], [4], r"`lengths` must be of shape \[n\], n at least 1, but is \(1, 2\)"),
    ],
)
def test_what_is_refused(lengths, edges, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        bucket_histogram(np.array(lengths, int), edges)


def test_a_giant_lies_beyond_the_axis_and_every_other_sequence_on_it():
    lengths = [*range(50, 100), *range(50, 100), *range(50, 100), 50_000]
    figure = bucket_histogram(lengths, [74, 99, 50_000])
    upper, lower = figure.axes
    assert 99 < upper.get_xlim()[1] == lower.get_xlim()[1] < 120
    assert lower.get_xlabel() == "length (frames); the longest, 50,000 frames, lies beyond the axis"
    assert [text.get_text() for text in upper.texts] == ["99", "74"]
    assert upper.patches[0].get_data().values.sum() == len(lengths) - 1
    assert sum(areas(figure)) == lw.padded_frames(lengths, [74, 99, 50_000])
    usual = bucket_histogram(lengths[:-1], [74, 99])
    assert usual.axes[1].get_xlabel() == "length (frames)"
