"""Random steps of packed rows: the rows of any other deal, as they come, shared out so that batches cost the same."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise import _kernels

ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)
LENGTHS = np.rint(np.random.default_rng(0).lognormal(7.0, 0.7, 6_000)).astype(np.int64).clip(1, 4_096)
STEPS = lw.Batching(cut=lw.Rows(4_096, rows=8), cost=ATTENTION, deal=lw.RandomSteps(), arrange=lw.InOrder())


def in_given_order(lengths, *, rows, tail="split", **world):
    """Returns the rows of each batch of each step: rows of 10, filled until the next sequence does not fit."""
    cut = lw.Rows(10, rows=rows, pool=1)
    deal = lw.RandomSteps(tail=tail)
    given_order = lw.Batching(cut=cut, order=menu.InGivenOrder(), cost=ATTENTION, deal=deal, arrange=lw.InOrder())
    plan = lw.make_plan(lengths, given_order, **world)
    steps = plan.grid.reshape(plan.steps, -1)
    return [[[row.tolist() for row in plan.rows(number)] for number in sorted(step.tolist())] for step in steps]


def rows_of(plan, step=None):
    """Returns the sets of sequences that share a row, of all batches or of a step's."""
    numbers = range(len(plan.costs)) if step is None else plan.grid[step].reshape(-1).tolist()
    return {frozenset(row.tolist()) for number in numbers for row in plan.rows(number)}


def sums_of(costs, batch, slots):
    return [sum(cost for cost, slot in zip(costs, batch, strict=True) if slot == number) for number in range(slots)]


def test_a_step_shares_its_rows_out_by_hand():
    # They cost 81, 36, 64 and 49: 81 + 36 beside 64 + 49. The next four are alike.
    steps = [[[[0], [1]], [[2], [3]]], [[[4], [6]], [[5], [7]]]]
    assert in_given_order([9, 6, 8, 7, 9, 9, 9, 9], rows=2, world_size=2) == steps


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


@settings(max_examples=50, derandomize=True)
@given(
    st.lists(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=7), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_rows_are_shared_out_within_their_number_and_nearly_as_evenly_as_can_be(steps, slots, spare):
    taken = [len(step) for step in steps]
    most = -(-max(taken) // slots) + spare
    costs = list(itertools.chain.from_iterable(steps))
    order = np.lexsort((-np.array(costs), np.repeat(np.arange(len(taken)), taken)))
    slot_of_row = np.full(len(costs), -1, np.int64)
    _kernels.share_rows(np.array(costs), order, np.array(taken), slots, most, slot_of_row)
    for step, start in zip(steps, np.cumsum(taken) - taken, strict=True):
        batch = slot_of_row[start : start + len(step)].tolist()
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
    assert ours.randomness == pytest.approx(theirs.randomness, abs=0.01)
    assert plan.row_counts[plan.grid[:-2]].min() == plan.row_counts.max() == 8


def test_steps_are_random_in_rows_and_balanced():
    lengths = np.rint(np.random.default_rng(1).lognormal(7.0, 0.7, 20_000)).astype(np.int64).clip(1, 4_096)
    measures = {
        type(deal).__name__: lw.measure(lw.make_plan(lengths, replace(STEPS, deal=deal), world_size=8), lengths)
        for deal in (lw.RandomSteps(), lw.Balanced(), lw.Mixed())
    }
    assert measures["RandomSteps"].straggler_waste < 0.002
    assert measures["Mixed"].straggler_waste > 0.1
    assert measures["RandomSteps"].step_length_variance < 1.5 < 3 < measures["Balanced"].step_length_variance


ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "packing.md").read_text(encoding="utf-8").split())


def test_frames_alone_say_nothing_of_attention():
    """The numbers of the page on packed rows."""
    lengths = lw.example_lengths("long-tailed").clip(max=4_096)
    waits = []
    for cost in (lw.Padded(), lw.Quadratic(linear=1, quadratic=0.001)):
        plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(4_096, rows=8), cost=cost), world_size=8)
        squares = np.add.reduceat(lengths[plan.sequences] ** 2, plan.offsets[:-1])
        of_ranks = squares[plan.grid].sum(axis=1)
        waits.append(1.0 - of_ranks.sum() / (8 * of_ranks.max(axis=1).sum()))
    assert f"8 ranks wait {waits[0]:.0%} of the time that attention takes".replace("%", " %") in PAGE
    assert f"With it they wait {waits[1]:.0%}".replace("%", " %") in PAGE


def test_the_page_prints_what_was_measured():
    document = json.loads(sorted((ROOT / "benchmarks" / "results").glob("peers_*.json"))[-1].read_text())
    rows = {row["peer"]: row for row in document["rows"] if (row["data"], row["world"]) == ("documents", "1x1")}
    large, small = (rows[f"lengthwise_rows{size}"] for size in ("", ":64"))
    words = "randomness is {:.2f}, and rows are {:.1%} full. With `pool=64`, randomness is {:.2f}, "
    told = (words + "and rows are {:.1%} full").format(
        *(value for row in (large, small) for value in (row["randomness"], 1.0 - row["padding"]))
    )
    assert told.replace("%", " %") in PAGE
