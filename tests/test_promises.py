"""The table of choices times promises: plans of every order with every cut, and of random other choices."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.choices.deal import has_equal_epochs

QUICK = {"fixed", "budget_drop", "rows"}  # the cuts that `make check` tries


@pytest.fixture(
    scope="module",
    params=[pytest.param(cut, marks=() if cut in QUICK else pytest.mark.slow) for cut in menu.cuts(1, 1)],
)
def plans(request):
    """Every case of one cut, with its plan."""
    cases = [(case, case.plan()) for case in menu.draw_cases(request.param)]
    return [(case, plan) for case, plan in cases if plan is not None]


def test_every_rank_takes_as_many_batches_in_every_step_of_every_epoch(plans):
    for case, plan in plans:
        assert plan.grid.shape == (plan.steps, case.options["micro_batches"], case.options["world_size"])
        assert all(len(list(plan.batches(rank))) == len(plan) for rank in range(plan.world_size))
        if has_equal_epochs(case.batching.cut) and "times" not in case.options:
            assert {case.plan(epoch=epoch).steps for epoch in (2, 3)} == {plan.steps}


def test_each_sequence_is_taken_as_often_as_asked_and_what_is_dropped_is_listed(plans):
    for case, plan in plans:
        names = np.arange(plan.count) if plan.copies is None else plan.copies
        batches = batches_of(plan)
        assert all(map(len, batches))
        assert len(np.unique(plan.sequences)) == len(plan.sequences)
        taken = Counter(itertools.chain.from_iterable(batches[b].tolist() for b in plan.grid.reshape(-1)))
        assert set(taken) == set(plan.sequences.tolist()) <= set(range(plan.count))
        dropped = sorted(set(range(plan.count)) - set(taken))
        assert plan.dropped().tolist() == names[dropped].tolist()
        assert menu.may_drop(case.batching) or not dropped
        assert plan.repeated().tolist() == sorted(names[number] for number, often in taken.items() if often > 1)
        assert plan.times is None or (abs(plan.times - case.options["times"]) < 1).all()


def test_nothing_is_repeated_without_need(plans):
    for case, plan in plans:
        # Each portion fills its own places. Copies are others in every epoch, which may have fewer batches than most.
        if not isinstance(case.batching.deal, lw.Portions) and plan.times is None:
            assert repeats_to_fill_a_step(plan, case.batching.deal.tail)


def test_batches_are_of_the_data_set_and_padded_to_their_longest(plans):
    for case, plan in plans:
        items, batching = items_of(case, plan), case.batching
        multiple = getattr(batching.cut, "multiple_of", 1)
        for number, members in enumerate(batches_of(plan)):
            lengths, padded = items[members], plan.padded_lengths[number]
            longest = -(-lengths.max(axis=0) // multiple) * multiple
            assert (padded >= longest).all()
            assert padded.tolist() == longest.tolist() or menu.packs(batching.cut) or batching.order.pad_to_edge
            assert batching.chunks or np.array_equal(case.lengths[plan.batch(number)].reshape(lengths.shape), lengths)
        assert lw.measure(plan, case.lengths).dropped == len(plan.dropped())


def test_no_batch_has_more_sequences_or_costs_more_than_asked(plans):
    """Rows that are filled up to a multiple cost too. Only a sequence that is over the budget by itself is over it."""
    for case, plan in plans:
        cut, cost, sizes = case.batching.cut, case.batching.cost, plan.batch_sizes
        if menu.packs(cut):
            continue
        most = getattr(cut, "max_sequences", None) or len(plan.sequences)
        if isinstance(cut, lw.FixedSize) and not getattr(case.batching.deal, "even", False):
            most = cut.batch_size
        assert sizes.max(initial=0) <= most
        multiple = getattr(cut, "count_multiple_of", 1)
        rows = np.where(sizes < multiple, sizes, -(-sizes // multiple) * multiple)
        assert plan.row_counts.tolist() == rows.tolist()
        assert plan.costs.tolist() == [float(cost(rows[[b]], plan.padded_lengths[[b]])[0]) for b in range(len(rows))]
        over = plan.costs > plan.max_cost
        assert plan.over_max_cost().tolist() == np.flatnonzero(over).tolist()
        alone = (sizes == 1) if getattr(cut, "oversize", "") == "alone" else np.zeros(len(sizes), bool)
        assert getattr(cut, "rule", "") == "paper" or not (over & ~alone).any()


def test_no_row_is_over_its_capacity_and_each_ends_only_where_the_next_sequence_does_not_fit(plans):
    for case, plan in plans:
        cut, items = case.batching.cut, items_of(case, plan)
        for number, members in enumerate(batches_of(plan) if menu.packs(cut) else ()):
            counts = [len(row) for row in plan.rows(number)]
            rows = [items[part, 0] for part in np.split(members, np.cumsum(counts)[:-1])]
            assert all(0 < row.sum() <= cut.capacity for row in rows)
            assert cut.max_in_row is None or max(counts) <= cut.max_in_row
            for row, following in itertools.pairwise(rows):
                assert len(row) == cut.max_in_row or row.sum() + following[0] > cut.capacity
            assert len(rows) == plan.row_counts[number] <= cut.rows
            assert case.batching.cost != lw.Padded() or plan.costs[number] == items[members].sum()


def test_no_batch_mixes_two_groups(plans):
    for case, plan in plans:
        groups = case.options.get("groups")
        for batch in plan.batches() if groups is not None else ():
            sequences = batch if case.batching.chunks is None else batch[:, 0]
            assert len(set(groups[sequences].tolist())) == 1


def test_a_loss_scale_is_the_share_of_a_batch_in_its_step(plans):
    for _, plan in plans:
        weights = np.where(plan.first_taken, plan.batch_sizes[plan.grid], 0)
        shares = weights / np.maximum(1, weights.sum(axis=(1, 2), keepdims=True))
        assert lw.loss_scales(plan, ranks_averaged=False) == pytest.approx(shares)


def test_the_same_steps_follow_however_ranks_and_micro_batches_share_them_out(plans):
    for case, plan in plans:
        if not isinstance(case.batching.deal, lw.Portions):
            slots = plan.world_size * plan.micro_batches
            assert steps_of(case.plan(world_size=slots, micro_batches=1)) == steps_of(plan)
            taken = plan.micro_batches if plan.steps else 0
            rest = case.plan(world_size=1, micro_batches=slots, after=[(plan.world_size, plan.micro_batches, taken)])
            assert steps_of(rest) == steps_of(plan)[1:]


def test_nothing_is_lost_or_taken_twice_however_often_the_ranks_change(plans):
    for number, (case, plan) in enumerate(plans):
        chance, runs, taken = random.Random(number), [], [np.empty(0, np.int64)]
        for left in reversed(range(chance.randint(2, 4))):
            shape = {"world_size": chance.randint(1, 6), "micro_batches": chance.randint(1, 3)}
            shape |= {"micro_batches": 3} if "groups" in case.options else {}
            plan = case.plan(**shape, after=runs)
            if plan is None:
                break
            assert not runs or plan.delivered.tolist() == sorted(np.concatenate(taken).tolist())
            # Full batches of copies are too few in some epochs, and may not be made smaller.
            full = "times" in case.options and getattr(case.batching.cut, "drop_incomplete", False)
            if runs and not full and not isinstance(case.batching.deal, lw.Portions):
                assert repeats_to_fill_a_step(plan, case.batching.deal.tail)
            runs.append((*shape.values(), chance.randint(0, len(plan)) if left else len(plan)))
            grid, first = (array.reshape(-1, plan.world_size)[: runs[-1][2]] for array in (plan.grid, plan.first_taken))
            batches = batches_of(plan)
            taken += [batches[number] for number in grid[first]]
        else:
            sequences = np.concatenate(taken)
            assert len(np.unique(sequences)) == len(sequences)
            missing = np.setdiff1d(np.arange(plan.count), sequences)
            assert plan.dropped().tolist() == (missing if plan.copies is None else plan.copies[missing]).tolist()
            assert menu.may_drop(case.batching) or not len(missing)


def test_the_same_arguments_make_the_same_plan_and_no_lengths_are_touched(plans):
    for case, plan in plans:
        before = case.lengths.copy()
        assert case.plan().fingerprint() == plan.fingerprint()
        assert np.array_equal(case.lengths, before)


# By these cuts epochs need more batches or fewer: without a second draw, one in twenty has too many for its steps.
UNEVEN = np.random.default_rng(3).lognormal(4, 0.7, 120).astype(int).clip(1, 300)
CUTS = [lw.Budget(360), lw.Budget(600, max_sequences=3), lw.DynamicSize(1), lw.Rows(400, pool=1), lw.FixedSize(4)]
SHARED_OUT = itertools.cycle([(1, 1), (2, 1), (3, 2)])
MANY_EPOCHS = [
    (menu.suit(deal, cut), cut, *next(SHARED_OUT))
    for deal in menu.DEALS.values()
    for cut in CUTS
    if getattr(deal, "even", True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("deal", "cut", "world_size", "micro_batches"), MANY_EPOCHS, ids=str)
def test_no_epoch_of_many_drops_or_repeats_what_its_tail_does_not(deal, cut, world_size, micro_batches):
    batching = lw.Batching(cut=cut, order=lw.Shuffled(), deal=deal)
    shape = {"world_size": world_size, "micro_batches": micro_batches}
    plans = [lw.make_plan(UNEVEN, batching, epoch=epoch, **shape) for epoch in range(10)]
    for plan in plans:
        ranks = itertools.chain.from_iterable(plan.batches(rank) for rank in range(world_size))
        taken = np.bincount(np.concatenate(list(ranks)), minlength=len(UNEVEN))
        assert plan.dropped().tolist() == np.flatnonzero(taken == 0).tolist()
        assert plan.repeated().tolist() == np.flatnonzero(taken > 1).tolist()
        assert deal.tail == "drop" or not len(plan.dropped())
        assert deal.tail == "repeat" or not len(plan.repeated())
        assert (~plan.first_taken).sum() < world_size * micro_batches
    assert len({plan.steps for plan in plans}) == 1


def batches_of(plan):
    """Returns the numbers of what is planned, batch by batch: of sequences, copies or chunks."""
    return np.split(plan.sequences, plan.offsets[1:-1]) if len(plan.costs) else []


def steps_of(plan):
    """Returns the sequences of each step's batches, wherever they are computed."""
    batches = [frozenset(batch.tolist()) for batch in batches_of(plan)]
    return [frozenset(batches[number] for number in step.reshape(-1)) for step in plan.grid]


def items_of(case, plan):
    """Returns the lengths of what the plan counts: of its sequences, copies or chunks; [count, dims]."""
    if plan.spans is not None:
        return np.diff(plan.spans[:, 1:], axis=1)
    lengths = case.lengths if case.lengths.ndim == 2 else case.lengths[:, None]
    return lengths if plan.times is None else np.repeat(lengths, plan.times, axis=0)


def repeats_to_fill_a_step(plan, tail):
    """Checks that less than a step is taken again, and only where the tail says so or no batch could be split."""
    again, single = int((~plan.first_taken).sum()), (plan.batch_sizes == 1).all()
    few = again < plan.world_size * plan.micro_batches or single
    return few and (not again or tail == "repeat" or (tail == "split" and single))
