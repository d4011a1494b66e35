"""The picture of batches shows each batch as it is padded, and says what the whole epoch pads."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise.plot import batch_padding, save, style
from lengthwise.plot.deliveries import delivery

CUT = lw.FixedSize(16)


def stairs(axes):
    return [patch.get_data() for patch in axes.patches]


def plans_of(lengths, text="random,max-entropy:0.05", cut=CUT, **keywords):
    return {name: lw.make_plan(lengths, each, **keywords) for name, each in parse_strategies(text, cut=cut).items()}


def test_six_sequences_drawn_one_by_one():
    lengths = [5, 9, 2, 4, 7, 1]
    plan = lw.make_plan(
        lengths, lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.ShortestFirst(reverse=True))
    )
    figure = batch_padding(lengths, {"sorted": plan}, unit="tokens", title="Six")
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "sorted: 12 % of what is computed is padding"  # 28 of 32 are not: 12.5
    bars, padding, outline = stairs(axes)
    assert bars.values.tolist() == [7, 9, 4, 5, 1, 2]
    assert padding.values.tolist() == [9, 9, 5, 5, 2, 2]
    assert padding.baseline.tolist() == [7, 9, 4, 5, 1, 2]
    assert (outline.values.tolist(), outline.edges.tolist()) == ([9, 5, 2], [0, 2, 4, 6])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "2", "2"]
    assert axes.get_xticks().tolist() == [1.0, 3.0, 5.0]
    assert [text.get_text() for text in axes.texts] == ["padded length", "length", "padding"]
    assert axes.texts[2].xy == (4.5, 1.5)  # of the sequence of length 1, padded to 2
    assert not figure.legends
    assert (figure.get_supylabel(), figure.get_suptitle()) == ("length (tokens)", "Six")


def test_batches_are_those_in_the_middle_and_the_share_is_the_whole_epochs():
    lengths = lw.example_lengths("speech", count=4_000)
    plans = plans_of(lengths)
    figure = batch_padding(lengths, plans, batches=5)
    assert len(figure.axes) == 2
    for axes, (label, plan) in zip(figure.axes, plans.items(), strict=True):
        share = style.percent(lw.measure(plan, lengths).padding_share)
        assert axes.get_title(loc="left") == f"{label}: {share} of what is computed is padding"
        bars, _, outline = stairs(axes)
        each = delivery(plan, lengths)
        np.testing.assert_array_equal(bars.values, each.delivered[1_968:2_048])  # batches 124 to 128 of 250
        np.testing.assert_array_equal(outline.values, each.padded[123:128])
        assert axes.get_xlim() == (0.0, 80.0)


def test_batches_of_other_sizes_say_how_many_they_hold():
    lengths = np.arange(1, 41)
    plans = plans_of(lengths, "sorted,arrange=in-order", lw.DynamicSize(4))
    (axes,) = batch_padding(lengths, plans, batches=100).axes
    sizes = delivery(next(iter(plans.values())), lengths).sizes
    assert len(set(sizes)) > 1
    assert [int(text.get_text()) for text in axes.get_xticklabels()] == sizes.tolist()


@pytest.mark.parametrize("lengths", [[], [7], [3, 9, 4], [5] * 40])
def test_edges_of_the_world_are_drawn(tmp_path, lengths):
    lengths = np.array(lengths, int)
    save(batch_padding(lengths, plans_of(lengths)), tmp_path / "batches.png")
    assert (tmp_path / "batches.png").exists()


def test_a_few_giants_are_told_rather_than_shown():
    lengths = np.append(np.full(99, 100), 9_000)
    figure = batch_padding(lengths, plans_of(lengths, "random", lw.FixedSize(4)), batches=100)
    assert figure.axes[0].get_ylim()[1] == pytest.approx(140.0)
    assert figure.axes[0].get_xlabel().endswith("; the longest, 9,000 frames, lies beyond the axis")


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"`plans` must be at least one plan by its label, but is \{\}"):
        batch_padding([1, 2], {})
    with pytest.raises(ValueError, match=r"by its label, but is Plan\(.*Give \{\"random\": plan\}"):
        batch_padding([1, 2], plans_of([1, 2])["random"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        batch_padding([1, 2], plans_of([1, 3]))
    with pytest.raises(ValueError, match="`batches` must be at least 1, but is 0"):
        batch_padding([1, 2], plans_of([1, 2]), batches=0)
