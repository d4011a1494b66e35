"""The table of all choices, through the promises on steps, sequences and budgets."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.planning.times import draw_times

CASES_PER_PAIR = 5  # plans of each order with each cut
CASES_OF_COPIES = 30  # plans of each cut


@pytest.mark.parametrize("cut", menu.cuts(1, 1))
@pytest.mark.parametrize("order", menu.ORDERS)
def test_every_order_with_every_cut_keeps_the_promises(order, cut):
    chance = random.Random(f"{order} {cut}")
    for _ in range(CASES_PER_PAIR):
        deal = menu.DEALS[chance.choice(list(menu.DEALS))]
        cost = menu.COSTS[chance.choice(list(menu.COSTS))]
        chunks = menu.CHUNKS[chance.choice(list(menu.CHUNKS))]
        lengths = some_lengths(chance, dims=1 if menu.needs_one_length(menu.ORDERS[order], chunks, cut) else 2)
        chosen = menu.cuts(*budgets(lengths, chunks, menu.ORDERS[order], cost))[cut]
        batching = lw.Batching(
            order=menu.suit_order(menu.ORDERS[order], chosen),
            cut=chosen,
            deal=menu.suit(deal, chosen, cost, menu.ORDERS[order]),
            arrange=menu.ARRANGEMENTS[chance.choice(list(menu.ARRANGEMENTS))],
            cost=cost,
            chunks=chunks,
        )
        shape = {"world_size": chance.randint(1, 9), "micro_batches": chance.randint(1, 4)}
        keeps_its_promises(lengths, batching, seed=chance.randint(0, 9), epoch=chance.randint(0, 9), **shape)


@pytest.mark.parametrize("cut", menu.cuts(1, 1))
def test_copies_keep_the_promises_with_every_cut(cut):
    chance = random.Random(f"copies {cut}")
    for _ in range(CASES_OF_COPIES):
        order = menu.ORDERS[chance.choice(list(menu.ORDERS))]
        cost = menu.COSTS[chance.choice(list(menu.COSTS))]
        chunks = menu.CHUNKS[chance.choice(list(menu.CHUNKS))]
        lengths = some_lengths(chance, dims=1 if menu.needs_one_length(order, chunks, cut) else 2)
        chosen = menu.cuts(*budgets(lengths, chunks, order, cost))[cut]
        batching = lw.Batching(
            order=menu.suit_order(order, chosen),
            cut=chosen,
            deal=menu.suit(menu.DEALS[chance.choice(list(menu.DEALS))], chosen, cost, order),
            arrange=menu.ARRANGEMENTS[chance.choice(list(menu.ARRANGEMENTS))],
            cost=cost,
            chunks=chunks,
        )
        which = {"world_size": chance.randint(1, 9), "micro_batches": chance.randint(1, 4)}
        which |= {"seed": chance.randint(0, 9), "epoch": chance.choice([0, 1, 5, 10**6])}
        times = np.array([chance.choice([0.0, 0.4, 1.0, 2.5, 3 * chance.random()]) for _ in lengths], np.float64)
        times[:1] += 0.1  # not all 0
        keeps_its_promises(lengths, batching, **which, times=times)


@pytest.mark.parametrize("deal", menu.DEALS)
def test_what_an_order_drops_whole_is_told_by_every_cut(deal):
    order, lengths = lw.Bucketed(edges=(20, 90), longer="drop"), np.array([100, 200, 100])
    for name, cut in menu.cuts(1_000.0, 250.0).items():
        batching = lw.Batching(order=order, cut=cut, deal=menu.suit(menu.DEALS[deal], cut))
        with pytest.raises(ValueError, match=r"^`steps` must be at least 1, but is 0\. No batch is left\. "):
            print(name, lw.make_plan(lengths, batching, world_size=2))


@settings(max_examples=50, derandomize=True)
@given(
    st.one_of(length_sets.flat, length_sets.pairs),
    st.sampled_from(sorted(menu.DEALS)),
    st.integers(1, 9),
    st.integers(1, 4),
)
def test_every_set_of_lengths_keeps_the_promises(lengths, deal, world_size, micro_batches):
    for order in (lw.Shuffled(), lw.SemiSorted(), lw.Bucketed(size=5)):
        cut = lw.DynamicSize(3)
        batching = lw.Batching(order=order, cut=cut, deal=menu.suit(menu.DEALS[deal], cut))
        keeps_its_promises(lengths, batching, world_size=world_size, micro_batches=micro_batches)


ANY_UNIT = (
    *("shuffled", "sorted", "falling", "semi_sorted", "alternated", "windowed", "bucketed", "optimal"),
    "uniform",
)


@pytest.mark.parametrize("deal", ["Mixed_split", "Balanced_drop", "RandomSteps_split", "portions", "Balanced_repeat"])
@pytest.mark.parametrize("order", ANY_UNIT)
def test_the_unit_of_lengths_changes_no_plan(order, deal):
    """In a unit 2**34 times as fine no length is below 2**31, and the frames of a batch are beyond 2**40."""
    lengths, unit = lw.example_lengths("speech", count=150), 2**34
    for cut in (lw.FixedSize(3), lw.DynamicSize(2), lw.Budget(3_000)):
        plans = []
        for scale in (1, unit):
            own = replace(cut, budget=cut.budget * scale) if isinstance(cut, lw.Budget) else cut
            batching = lw.Batching(order=menu.ORDERS[order], cut=own, deal=menu.suit(menu.DEALS[deal], own))
            plans.append(lw.make_plan(lengths * scale, batching, world_size=3, micro_batches=2))
        small, large = plans
        for name in ("sequences", "offsets", "grid"):
            assert np.array_equal(getattr(small, name), getattr(large, name)), (cut, name)
        assert np.array_equal(small.padded_lengths * unit, large.padded_lengths)
        assert np.array_equal(small.costs * unit, large.costs)
        measures = [lw.measure(plan, lengths * scale) for plan, scale in zip(plans, (1, unit), strict=True)]
        assert measures[0].padding_share == measures[1].padding_share
        assert measures[0].straggler_waste == pytest.approx(measures[1].straggler_waste)


@pytest.mark.parametrize("order", menu.ORDERS)
def test_every_order_takes_more_sequences_and_longer_ones_than_a_short_number_counts(order):
    """66,000 of them, 1 to 570,000 long: a number of 16 bits ends at 65,535. Short ones are told from those beyond."""
    lengths = np.random.default_rng(0).lognormal(9, 0.9, 66_000).astype(np.int64) + 1
    lengths[:4] = 65_535, 65_536, 65_537, 2**20
    order = menu.ORDERS[order]
    if getattr(order, "edges", None):
        order = replace(order, edges=(65_535, 65_536, 2**20))
    plan = lw.make_plan(lengths, lw.Batching(order=order, cut=lw.FixedSize(32), deal=lw.InTurn()), world_size=8)
    assert np.array_equal(np.sort(plan.sequences), np.arange(len(lengths)))
    longest = np.maximum.reduceat(lengths[plan.sequences], plan.offsets[:-1])
    assert (plan.padded_lengths[:, 0] >= longest).all()
    if isinstance(order, lw.Sorted):
        assert (np.diff(lengths[plan.sequences]) * (-1 if order.descending else 1) >= 0).all()


@settings(max_examples=75, derandomize=True)
@given(
    length_sets.flat,
    st.sampled_from(sorted(menu.DEALS)),
    st.sampled_from(
        [{"by": "best-fit"}, {}, {"pool": 1}, {"pool": 5}, {"by": "best-fit", "max_in_row": 2}, {"max_in_row": 2}]
    ),
    st.integers(1, 5),
    st.sampled_from([1.0, 1.5, 4.0]),
    st.integers(1, 9),
    st.integers(1, 4),
)
def test_rows_of_every_set_of_lengths_keep_the_promises(lengths, deal, how, rows, room, world_size, micro_batches):
    cut = lw.Rows(max(1, int(room * lengths.max(initial=1))), rows=rows, **how)
    for cost in (lw.Padded(), menu.COSTS["per_length"]):
        batching = lw.Batching(cut=cut, deal=menu.suit(menu.DEALS[deal], cut), cost=cost)
        keeps_its_promises(lengths, batching, world_size=world_size, micro_batches=micro_batches)


@pytest.mark.parametrize(
    ("lengths", "cut", "world_size", "micro_batches", "repeats"),
    [([5, 6, 7, 8, 9], lw.FixedSize(1), 2, 1, 1), ([900] * 1_001, lw.Budget(1_000), 8, 4, 23)],
)
def test_what_single_sequences_do_not_fill_repeats_the_cheapest_at_no_weight(
    lengths, cut, world_size, micro_batches, repeats
):
    plan = lw.make_plan(lengths, lw.Batching(cut=cut), world_size=world_size, micro_batches=micro_batches)
    assert (plan.batch_sizes == 1).all()
    assert plan.dropped().size == 0
    assert plan.repeated().size == repeats
    assert {lengths[number] for number in plan.repeated()} == {min(lengths)}
    assert (lw.loss_scales(plan) == 0).sum() == repeats


def some_lengths(chance, *, dims):
    """0 to 60 lengths: spread out, long-tailed, all equal, or one giant; [n], or at times [n, 2] where `dims` is 2."""
    count = chance.choice([0, 1, 2, 3, 5, 8, 13, 30, 60])
    draw = chance.choice(
        [
            lambda: chance.randint(80, 800),
            lambda: max(1, round(chance.lognormvariate(4, 0.8))),
            lambda: 37,
            lambda: 900 if chance.random() < 0.05 else 3,
        ]
    )
    shape = (count, 2) if dims == 2 and chance.random() < 0.3 else (count,)
    return np.array([draw() for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def items_of(lengths, chunks):
    """What is planned, worked out anew: [n, dims], each sequence or each chunk of it."""
    if chunks is None:
        return lengths if lengths.ndim == 2 else lengths[:, None]
    step = chunks.step or chunks.size
    sizes = []
    for length in lengths.tolist():
        start = 0
        while start + chunks.size < length:
            sizes.append(chunks.size)
            start += step
        sizes.append(length - start)
    return np.array(sizes, np.int64).reshape(-1, 1)


def budgets(lengths, chunks, order, cost):
    """A budget that every sequence is within, and one that about half of them are."""
    items = items_of(lengths, chunks)
    if not len(items):
        return 10.0, 10.0
    edges = order.edges if getattr(order, "pad_to_edge", False) and order.edges else ()
    longest = np.maximum(items.max(axis=0), np.max(edges, axis=0, initial=0))
    middle = np.sort(items, axis=0)[len(items) // 2]
    return float(cost(np.array([3]), longest[None])[0]), float(cost(np.array([1]), middle[None])[0])


def keeps_its_promises(lengths, batching, *, world_size, micro_batches, seed=0, epoch=0, times=None):
    places = {"world_size": world_size, "micro_batches": micro_batches}
    droppable = menu.may_drop(batching.order, batching.cut, batching.deal)
    plan = planned(lengths, batching, droppable, seed=seed, epoch=epoch, times=times, **places)
    if plan is None:
        return
    taken = np.ones(len(lengths), np.int64) if times is None else draw_times(times, lengths, seed).take(epoch)
    copies = np.repeat(np.arange(len(lengths)), taken)
    items = items_of(lengths[copies], batching.chunks)
    steps_are_equal_on_every_rank(plan, **places)
    counts_are_hard(plan, batching)
    sequences_are_accounted_for(plan, copies if batching.chunks is None else np.arange(len(items)), droppable)
    if batching.chunks is None:
        batches_are_of_the_data_set(plan, lengths, copies)
    nothing_is_repeated_without_need(plan, batching.deal)
    (capacity_is_hard if menu.packs(batching.cut) else budget_is_hard)(plan, items, batching)


def planned(lengths, batching, droppable, **which):
    """The plan, or None where a choice was asked to drop and has dropped all."""
    try:
        return lw.make_plan(lengths, batching, **which)
    except ValueError as error:
        if not droppable or not str(error).startswith("`steps` must be at least 1, but is 0"):
            raise
        return None


def steps_are_equal_on_every_rank(plan, *, world_size, micro_batches):
    assert plan.grid.shape == (plan.steps, micro_batches, world_size)
    for rank in range(world_size):
        taken = list(plan.batches(rank))
        assert len(taken) == len(plan) == plan.steps * micro_batches
        assert all(len(batch) for batch in taken)


def batches_are_of_the_data_set(plan, lengths, copies):
    """Whoever reads a plan of copies is told the numbers of the data set, and their lengths are those padded."""
    assert np.array_equal(plan.numbers, copies[plan.sequences])
    assert plan.population == len(lengths)
    for number in range(len(plan.costs)):
        batch = plan.batch(number)
        assert np.array_equal(batch, plan.numbers[plan.offsets[number] : plan.offsets[number + 1]])
        if plan.row_offsets is None:
            assert (plan.padded_lengths[number] >= lengths.reshape(len(lengths), -1)[batch].max(axis=0)).all()
    measured = lw.measure(plan, lengths)
    assert measured.sequences == len(copies)
    assert measured.dropped == len(plan.dropped())


def sequences_are_accounted_for(plan, names, droppable):
    """`names` [items] are the numbers by which a plan names what it was to take."""
    count = len(names)
    assert plan.count == count
    assert plan.offsets[0] == 0
    assert plan.offsets[-1] == len(plan.sequences)
    assert (np.diff(plan.offsets) > 0).all()
    assert len(np.unique(plan.sequences)) == len(plan.sequences)
    assert sorted(set(plan.grid.reshape(-1).tolist())) == list(range(len(plan.costs)))
    numbers = [plan.sequences[plan.offsets[b] : plan.offsets[b + 1]].tolist() for b in plan.grid.reshape(-1)]
    times = Counter(number for batch in numbers for number in batch)
    assert set(times) <= set(range(count))
    assert plan.dropped().tolist() == sorted(names[list(set(range(count)) - set(times))].tolist())
    assert plan.repeated().tolist() == sorted(names[number] for number, seen in times.items() if seen > 1)
    if not droppable:
        assert plan.dropped().size == 0


def nothing_is_repeated_without_need(plan, deal):
    """Splitting repeats only where a portion has fewer sequences than its rank has batches to take."""
    portions = plan.world_size if isinstance(deal, lw.Portions) else 1
    smallest_portion = plan.count // portions
    taken_of_each = plan.grid.size // portions
    if deal.tail == "drop" or (deal.tail == "split" and not plan.dropped().size and smallest_portion >= taken_of_each):
        assert plan.repeated().size == 0
    if deal.tail == "repeat" and plan.times is None and smallest_portion >= taken_of_each:
        assert plan.grid.size - len(plan.costs) < plan.world_size * plan.micro_batches


def counts_are_hard(plan, batching):
    """No batch has more sequences than the cut allows; random steps share out a fixed size by cost."""
    most = getattr(batching.cut, "max_sequences", None)
    if isinstance(batching.cut, lw.FixedSize) and getattr(batching.deal, "even", False) is False:
        most = batching.cut.batch_size
    assert plan.batch_sizes.max(initial=0) <= (most or len(plan.sequences))


def budget_is_hard(plan, items, batching):
    sizes = np.diff(plan.offsets)
    for number, size in enumerate(sizes):
        members = items[plan.sequences[plan.offsets[number] : plan.offsets[number + 1]]]
        members = menu.padded_to(members, batching.cut)
        padded = plan.padded_lengths[number]
        assert (padded >= members.max(axis=0)).all()
        if not getattr(batching.order, "pad_to_edge", False):
            assert padded.tolist() == members.max(axis=0).tolist()
        multiple = getattr(batching.cut, "count_multiple_of", 1)
        rows = size if size < multiple else -(-size // multiple) * multiple
        assert plan.row_counts[number] == rows
        assert plan.costs[number] == batching.cost(np.array([rows]), padded[None])[0]
        if plan.costs[number] > plan.max_cost:
            allowed_alone = getattr(batching.cut, "oversize", "") == "alone" and size == 1
            assert allowed_alone or getattr(batching.cut, "rule", "") == "paper"
    assert plan.over_max_cost().tolist() == [b for b, cost in enumerate(plan.costs) if cost > plan.max_cost]


def capacity_is_hard(plan, items, batching):
    """Rows hold no more than they may, and each but the last of a batch has no room or place for the next sequence."""
    cut = batching.cut
    assert (plan.padded_lengths == cut.capacity).all()
    for number, members in enumerate(np.split(plan.sequences, plan.offsets[1:-1]) if len(plan.costs) else []):
        rows = [items[row, 0] for row in packed_rows(plan, number)]
        assert np.array_equal(np.concatenate(packed_rows(plan, number)), members)
        assert all(0 < row.sum() <= cut.capacity for row in rows)
        assert cut.max_in_row is None or max(map(len, rows)) <= cut.max_in_row
        assert all(
            row.sum() + after[0] > cut.capacity or len(row) == cut.max_in_row for row, after in itertools.pairwise(rows)
        )
        assert len(rows) == plan.row_counts[number] <= cut.rows
        price, once = batching.cost, 0.0
        alone = [float(price(np.array([1]), items[member][None])[0]) for member in members]
        if isinstance(price, lw.Quadratic):  # what is for the batch and for no sequence: of a batch of none
            once = float(price(np.array([0]), np.array([[cut.capacity]]))[0])
            alone = [
                cost - float(price(np.array([0]), items[m][None])[0]) for cost, m in zip(alone, members, strict=True)
            ]
        assert plan.costs[number] == pytest.approx(once + sum(alone))
    assert not len(plan.over_max_cost())


def packed_rows(plan, number):
    """The rows of one batch, as numbers of what is planned."""
    inside = (plan.row_offsets >= plan.offsets[number]) & (plan.row_offsets <= plan.offsets[number + 1])
    borders = plan.row_offsets[inside]
    return [plan.sequences[start:stop] for start, stop in itertools.pairwise(borders)]
