"""The picture of an epoch shows what the plan says, sequence by sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise.plot import batch_padding, epoch_lengths, save
from lengthwise.plot.deliveries import Delivery, delivery, middle_batches, top_of
from lengthwise.plot.epochs import spread
from lengthwise.plot.style import percent


def plans_of(lengths, text="random,semi-sorted:0.1", cut=None, **keywords):
    named = parse_strategies(text, cut=cut or lw.FixedSize(4))
    return {label: lw.make_plan(lengths, batching, **keywords) for label, batching in named.items()}


def stairs(axes):
    return [patch.get_data() for patch in axes.patches]


def test_six_sequences_drawn_one_by_one():
    lengths = [5, 9, 2, 4, 7, 1]
    plan = lw.make_plan(
        lengths, lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.ShortestFirst(reverse=True))
    )
    figure = epoch_lengths(lengths, {"sorted": plan}, unit="tokens")
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "sorted: padding 12 %"  # padded 9 + 9 + 5 + 5 + 2 + 2 = 32 for 28
    bars, padding, outline = stairs(axes)
    assert bars.values.tolist() == [7, 9, 4, 5, 1, 2]
    assert bars.edges.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert padding.values.tolist() == [9, 9, 5, 5, 2, 2]
    assert padding.baseline.tolist() == [7, 9, 4, 5, 1, 2]
    assert (outline.values.tolist(), outline.edges.tolist()) == ([9, 5, 2], [0, 2, 4, 6])
    assert figure.get_supylabel() == "length (tokens)"
    assert axes.get_xlim() == (0.0, 6.0)
    assert axes.get_ylim() == (0.0, 9 * 1.05)


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    world_size=st.integers(1, 3),
    micro_batches=st.integers(1, 2),
)
def test_delivery_is_what_the_ranks_take(lengths, world_size, micro_batches):
    batching = lw.Batching(cut=lw.FixedSize(3), deal=lw.Balanced(tail="repeat"))
    plan = lw.make_plan(lengths, batching, world_size=world_size, micro_batches=micro_batches)
    taken = [list(plan.batches(rank)) for rank in range(world_size)]
    batches = [np.array(lengths)[taken[rank][number]] for number in range(len(plan)) for rank in range(world_size)]
    each = delivery(plan, lengths)
    assert each.delivered.tolist() == np.concatenate(batches).tolist()
    assert each.sizes.tolist() == [len(batch) for batch in batches]
    assert each.padded.tolist() == [max(batch) for batch in batches]


def test_chunks_and_two_lengths_count_as_they_are_padded():
    chunked = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder(), chunks=lw.Chunks(size=3))
    plan = lw.make_plan([7], chunked)
    chunks = plan.spans[:, 2] - plan.spans[:, 1]
    assert sorted(delivery(plan, [7]).delivered.tolist()) == sorted(chunks.tolist())
    pairs = [[3, 1], [2, 8]]
    plan = lw.make_plan(pairs, lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
    assert delivery(plan, pairs).delivered.tolist() == [4, 10]
    assert delivery(plan, pairs).padded.tolist() == [11]  # 3 + 8


def test_packed_rows_are_delivered_as_long_as_those_in_them():
    lengths = [3, 2, 4, 1, 4]
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(5, rows=2)))
    each = delivery(plan, lengths)
    rows = [[lengths[n] for n in row] for batch in plan.grid.reshape(-1) for row in plan.rows(int(batch))]
    assert each.delivered.tolist() == [sum(row) for row in rows]
    assert each.sizes.tolist() == [len(plan.rows(int(batch))) for batch in plan.grid.reshape(-1)]
    assert set(each.padded.tolist()) == {5}


def test_the_axis_ends_beyond_what_most_are_padded_to_in_any_epoch():
    short, long = (Delivery(np.full(100, n), np.full(10, 10), np.full(10, n)) for n in (50, 100))
    giant = Delivery(np.full(100, 50), np.full(100, 1), np.append(np.full(99, 50), 9_000))
    assert top_of({"short": short, "long": long}) == pytest.approx(105)
    assert top_of({"short": short, "long": long, "giant": giant}) == pytest.approx(140)
    assert top_of({"giant": giant}) == pytest.approx(70)


def test_a_long_epoch_has_a_row_of_two_panels_for_each_plan():
    lengths = lw.example_lengths("speech", count=4_000)
    plans = plans_of(lengths, "random,sorted,arrange=in-order,max-entropy:0.05", lw.FixedSize(16))
    figure = epoch_lengths(lengths, plans)
    assert len(figure.axes) == 6
    for number, (label, plan) in enumerate(plans.items()):
        left, right = figure.axes[2 * number : 2 * number + 2]
        assert left.get_title(loc="left") == f"{label}: padding {percent(lw.measure(plan, lengths).padding_share)}"
        assert right.get_title(loc="left") == "batches 120 to 131 of 250"  # around sequence 2000
        each = delivery(plan, lengths)
        places, shown = left.lines[0].get_data()
        assert len(places) == 3_000
        np.testing.assert_array_equal(shown, each.delivered[places])
        (line,) = stairs(left)
        np.testing.assert_allclose(line.values @ np.diff(line.edges), each.sizes @ each.padded)  # the same area
        bars, padding, outline = stairs(right)
        np.testing.assert_array_equal(bars.values, each.delivered[1_904:2_096])
        np.testing.assert_array_equal(padding.values, np.repeat(each.padded[119:131], 16))
        np.testing.assert_array_equal(outline.values, each.padded[119:131])
        assert left.get_xlim() == (0.0, 4_000.0)
        assert right.get_xlim() == (0.0, 192.0)
        assert left.get_ylim() == right.get_ylim() == figure.axes[0].get_ylim()


def test_a_few_giants_are_told_rather_than_shown():
    lengths = np.append(np.full(999, 100), 9_000)
    figure = epoch_lengths(lengths, plans_of(lengths))
    assert figure.axes[0].get_ylim()[1] == pytest.approx(140.0)
    label, _ = figure.axes[-2].get_xlabel().splitlines()
    assert label == "sequences delivered; the longest, 9,000 frames, lies beyond the axis"


@given(count=st.integers(0, 5_000), most=st.integers(1, 400))
def test_dots_are_spread_over_the_epoch(count, most):
    places = spread(count, most)
    assert len(places) == min(count, most)
    borders = np.arange(len(places) + 1) * count // max(len(places), 1)
    assert np.all((borders[:-1] <= places) & (places < borders[1:]))  # one in each stretch


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=40), window=st.integers(1, 100))
def test_the_middle_batches_fill_the_window(sizes, window):
    sizes = np.array(sizes)
    shown = middle_batches(Delivery(np.ones(sizes.sum(), int), sizes, np.ones(len(sizes), int)), window)
    assert 1 <= len(shown) <= len(sizes)
    held = sizes[shown.start : shown.stop].sum()
    assert held >= window or shown.stop == len(sizes)
    assert held - sizes[shown.stop - 1] < window


@pytest.mark.parametrize("lengths", [[], [7], [3, 9, 4], [5] * 40, [5] * 4_000])
def test_edges_of_the_world_are_drawn(tmp_path, lengths):
    plans = plans_of(np.array(lengths, int))
    figure = epoch_lengths(np.array(lengths, int), plans)
    save(figure, tmp_path / "plans.png")
    assert len(figure.axes) == (4 if len(lengths) == 4_000 else 2)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"`plans` must be at least one plan by its label, but is \{\}"):
        epoch_lengths([1, 2], {})
    with pytest.raises(ValueError, match=r"by its label, but is Plan\(.*Give \{\"random\": plan\}"):
        epoch_lengths([1, 2], plans_of([1, 2])["random"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        epoch_lengths([1, 2], plans_of([1, 3]))
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        epoch_lengths([1, 2], plans_of([1, 3, 5]))


def test_the_line_of_few_batches_is_that_of_each_batch():
    lengths = [100, 900] * 500
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.Sorted()))
    figure = epoch_lengths(lengths, {"sorted": plan})
    (line,) = stairs(figure.axes[0])
    assert set(line.values) == {100, 900}  # and no mean of neighbours between them
    assert figure.axes[0].get_xlabel() == "sequences delivered\ndots: lengths; line: mean padded length"


def test_the_axis_of_several_lengths_says_that_it_is_of_their_sum():
    pairs = [[3, 1], [2, 8]]
    plan = lw.make_plan(pairs, lw.Batching(cut=lw.FixedSize(2)))
    assert epoch_lengths(pairs, {"all": plan}).get_supylabel() == "length (frames, the sum of 2 lengths)"


@pytest.mark.parametrize(
    ("batching", "item"),
    [(lw.Batching(cut=lw.Rows(9)), "rows"), (lw.Batching(cut=lw.FixedSize(2), chunks=lw.Chunks(3)), "chunks")],
)
def test_what_is_delivered_has_its_own_name(batching, item):
    plan = lw.make_plan([5, 9, 2, 4], batching)
    assert epoch_lengths([5, 9, 2, 4], {"mine": plan}).axes[0].get_xlabel() == f"{item} delivered"
    assert batch_padding([5, 9, 2, 4], {"mine": plan}).axes[-1].get_xlabel() == f"{item} in each batch"
