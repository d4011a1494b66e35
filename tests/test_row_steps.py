"""Random steps of packed rows: the rows of any other deal, as they come, shared out so that batches cost the same."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _kernels

MANY = settings(max_examples=100, derandomize=True)
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)
LENGTHS = np.rint(np.random.default_rng(0).lognormal(7.0, 0.7, 6_000)).astype(np.int64).clip(1, 4_096)
STEPS = lw.Batching(cut=lw.Rows(4_096, rows=8), cost=ATTENTION, deal=lw.RandomSteps(), arrange=lw.InOrder())


class InGivenOrder:
    """An order of the user's own: as the sequences come."""

    def __call__(self, sizes, key):
        del key
        return lw.Ordered(np.arange(len(sizes)))


def in_given_order(lengths, *, rows, tail="split", **world):
    """The batches of each step, as lists of rows, from rows of 10 that are filled until the next does not fit."""
    cut = lw.Rows(10, rows=rows, pool=1)
    deal = lw.RandomSteps(tail=tail)
    given_order = lw.Batching(cut=cut, order=InGivenOrder(), cost=ATTENTION, deal=deal, arrange=lw.InOrder())
    plan = lw.make_plan(lengths, given_order, **world)
    steps = plan.grid.reshape(plan.steps, -1)
    return [[[row.tolist() for row in plan.rows(number)] for number in sorted(step.tolist())] for step in steps]


def rows_of(plan, step=None):
    """The sets of sequences that share a row, of all batches or of a step's."""
    numbers = range(len(plan.costs)) if step is None else plan.grid[step].reshape(-1).tolist()
    return {frozenset(row.tolist()) for number in numbers for row in plan.rows(number)}


def share(costs, taken, slots, most, kind="__call__"):
    """What the kernel says, with the rows of each step put in order here."""
    step = np.repeat(np.arange(len(taken)), taken)
    order = np.lexsort((-np.array(costs), step))
    batch = np.full(len(costs), -1, np.int64)
    getattr(_kernels.share_rows, kind)(np.array(costs), order, np.array(taken), slots, most, batch)
    return batch.tolist()


def sums_of(costs, batch, slots):
    return [sum(cost for cost, slot in zip(costs, batch, strict=True) if slot == number) for number in range(slots)]


def test_a_step_shares_its_rows_out_by_hand():
    # They cost 81, 36, 64 and 49: 81 + 36 beside 64 + 49. The next four are alike.
    assert in_given_order([9, 6, 8, 7, 9, 9, 9, 9], rows=2, world_size=2) == [
        [[[0], [1]], [[2], [3]]],
        [[[4], [6]], [[5], [7]]],
    ]


def test_a_last_step_of_few_rows_borrows_some_and_halves_others():
    # Rows of [9] in steps of 2 x 2: of five the last step has one, and borrows one.
    assert in_given_order([9] * 5, rows=2, world_size=2) == [[[[0], [2]], [[1]]], [[[3]], [[4]]]]
    # One row a batch: nothing can be lent, and the row of most sequences is halved.
    assert in_given_order([9, 9, 2, 2, 2, 2], rows=1, world_size=2) == [[[[0]], [[1]]], [[[2, 3]], [[4, 5]]]]
    assert in_given_order([9] * 5, rows=2, tail="drop", world_size=2) == [[[[0], [2]], [[1], [3]]]]
    # Fewer sequences than places: one is taken again, as by any deal.
    assert in_given_order([9], rows=2, world_size=2) == [[[[0]], [[0]]]]


def test_rows_that_fit_together_in_a_batch_join():
    # The rows [8], [9], [2 2 2 2 2] and [1] cost 64, 81, 20 and 1: 81 + 1 beside 64 + 20.
    assert in_given_order([8, 9, 2, 2, 2, 2, 2, 1], rows=2, world_size=2) == [[[[1, 7]], [[0, 2], [3, 4, 5, 6]]]]


@MANY
@given(
    st.lists(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=7), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_rows_are_shared_out_within_their_number_and_nearly_as_evenly_as_can_be(steps, slots, spare):
    taken = [len(step) for step in steps]
    most = -(-max(taken) // slots) + spare
    costs = list(itertools.chain.from_iterable(steps))
    found = share(costs, taken, slots, most)
    assert found == share(costs, taken, slots, most, "py_func")
    for step, start in zip(steps, np.cumsum(taken) - taken, strict=True):
        batch = found[start : start + len(step)]
        counts = np.bincount(batch, minlength=slots)
        assert counts.max() <= most
        assert counts.min() >= min(1, len(step) // slots)
        ways = itertools.product(range(slots), repeat=len(step))
        allowed = (way for way in ways if max(np.bincount(way)) <= most)
        least = min(max(sums_of(step, way, slots)) for way in allowed)
        assert least <= max(sums_of(step, batch, slots)) <= 1.5 * least
        # No swap of two rows makes the costliest batch cheaper.
        sums = sums_of(step, batch, slots)
        costliest = int(np.argmax(sums))
        for one, other in itertools.product(range(len(step)), repeat=2):
            if batch[one] == costliest != batch[other] and step[one] > step[other]:
                less = step[one] - step[other]
                assert max(sums[costliest] - less, sums[batch[other]] + less) >= sums[costliest]


@MANY
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=9), st.integers(0, 9))
def test_rows_are_laid_from_their_longest(rows, seed):
    lengths = np.concatenate(rows)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    order = np.random.default_rng(seed).permutation(len(rows))
    made = []
    for kind in ("__call__", "py_func"):
        places = np.full(len(lengths), -1, np.int64)
        getattr(_kernels.lay_rows, kind)(lengths, starts, order, places)
        made.append(places.tolist())
    assert made[0] == made[1]
    expected = []
    for row in order:
        members = list(range(starts[row], starts[row + 1]))
        first = max(members, key=lambda place: (lengths[place], -place))
        expected += [first, *(place for place in members if place != first)]
    assert made[0] == expected


@pytest.mark.parametrize("cut", [lw.Rows(4_096, rows=8), lw.Rows(4_096, rows=8, by="best-fit")])
def test_steps_take_the_rows_of_any_other_deal_as_they_come(cut):
    plan = lw.make_plan(LENGTHS, replace(STEPS, cut=cut), world_size=4)
    one_by_one = replace(STEPS, cut=replace(cut, rows=32), deal=lw.InTurn(tail="repeat"))  # a batch is a full step
    steps = lw.make_plan(LENGTHS, one_by_one)
    for step in range(plan.steps - 2):
        assert rows_of(plan, step) == rows_of(steps, step)
    assert rows_of(plan) == rows_of(steps)
    balanced = lw.make_plan(LENGTHS, replace(STEPS, cut=cut, deal=lw.Balanced()), world_size=4)
    ours, theirs = lw.measure(plan, LENGTHS), lw.measure(balanced, LENGTHS)
    assert ours.fill >= theirs.fill
    assert ours.pair_mixing == pytest.approx(theirs.pair_mixing, abs=0.01)
    assert plan.row_counts[plan.grid[:-2]].min() == plan.row_counts.max() == 8


def test_steps_are_random_in_rows_and_balanced():
    lengths = np.rint(np.random.default_rng(1).lognormal(7.0, 0.7, 60_000)).astype(np.int64).clip(1, 4_096)
    found = {
        type(deal).__name__: lw.measure(lw.make_plan(lengths, replace(STEPS, deal=deal), world_size=8), lengths)
        for deal in (lw.RandomSteps(), lw.Balanced(), lw.Mixed())
    }
    assert found["RandomSteps"].straggler_waste < 0.002
    assert found["Mixed"].straggler_waste > 0.1
    assert found["RandomSteps"].step_length_variance < 1.5 < 3 < found["Balanced"].step_length_variance


@pytest.mark.parametrize("tail", ["split", "repeat", "drop"])
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_every_step_has_a_batch_for_each_rank_whatever_is_left(rows, tail):
    for count in range(1, 60, 7):
        batching = replace(STEPS, cut=lw.Rows(4_096, rows=rows), deal=lw.RandomSteps(tail=tail))
        if tail == "drop" and LENGTHS[:count].sum() < 4 * rows * 4_096:
            continue  # no full step
        plan = lw.make_plan(LENGTHS[:count], batching, world_size=2, micro_batches=2)
        assert plan.row_counts.max() <= rows
        taken = np.concatenate([batch for rank in range(2) for batch in plan.batches(rank)])
        if tail == "drop":
            assert len(np.unique(taken)) == len(taken) == count - len(plan.dropped())
        else:
            assert np.unique(taken).tolist() == list(range(count))


def test_a_run_goes_on_with_the_same_steps_on_as_many_places_and_whole_rows_on_others():
    whole = lw.make_plan(LENGTHS, STEPS, seed=1, world_size=4, micro_batches=2)
    same = lw.make_plan(LENGTHS, STEPS, seed=1, world_size=2, micro_batches=4, after=[(4, 2, 6)])
    assert [rows_of(same, step) for step in range(same.steps)] == [
        rows_of(whole, step) for step in range(3, whole.steps)
    ]
    other = lw.make_plan(LENGTHS, STEPS, seed=1, world_size=3, micro_batches=1, after=[(4, 2, 6)])
    early = set(itertools.chain.from_iterable(itertools.chain.from_iterable(rows_of(whole, step) for step in range(3))))
    late = set(itertools.chain.from_iterable(rows_of(other)))
    assert early | late == set(range(len(LENGTHS)))
    assert not early & late
    assert len(rows_of(other) & rows_of(whole)) > 0.95 * len(rows_of(other))


def test_the_choices_are_json_and_other_epochs_other_steps():
    assert lw.Batching.from_json(STEPS.to_json()) == STEPS
    first, again, second = (lw.make_plan(LENGTHS, STEPS, epoch=epoch, world_size=4) for epoch in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != second.fingerprint()
