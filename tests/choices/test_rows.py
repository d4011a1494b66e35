"""Packing: rows by rules that are followed by hand, no sequence later than its turn, and what plans say of rows."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
from lengthwise import _kernels
from lengthwise._kernels import rows
from lengthwise.choices.rows import row_offsets

MANY = settings(max_examples=100, derandomize=True)
NONE = np.empty(0, np.int64)
CAPACITY = 30
within_rows = st.lists(st.integers(1, CAPACITY), min_size=1, max_size=60)
in_row = st.sampled_from([None, 1, 2, 3, 5])  # with None, as many as fit


def rows_of(cut, lengths):
    """The rows that a cut makes of sequences in order, as positions; and how many rows each batch has."""
    array = np.array(lengths, np.int64)
    kept, offsets = cut(array[:, None], NONE, cost=lw.Padded(), longest=array.max(initial=1)[None])
    starts = row_offsets(array[kept], offsets, cut.capacity, cut.max_in_row)
    rows = [kept[start:stop].tolist() for start, stop in itertools.pairwise(starts)]
    return rows, np.diff(np.searchsorted(starts, offsets)).tolist()


def best_fit_by_hand(lengths, capacity, most=None):
    """Each sequence, longest first, into the row with the least room that is enough; the longest waiting of several."""
    rows, waiting = [], []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        room = {row: capacity - sum(lengths[member] for member in rows[row]) for row in waiting}
        fits = [row for row in waiting if room[row] >= lengths[position] and len(rows[row]) != most]
        if fits:
            row = min(fits, key=room.__getitem__)  # the first of several with equal room
            waiting.remove(row)
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(position)
        waiting.append(row)
    return rows


def next_fit_by_hand(lengths, capacity, most=None):
    rows = []
    for position, length in enumerate(lengths):
        if not rows or sum(lengths[member] for member in rows[-1]) + length > capacity or len(rows[-1]) == most:
            rows.append([])
        rows[-1].append(position)
    return rows


def pool_by_hand(lengths, capacity, pool, most=None):
    """The rule of the pool, with the pool as a list."""
    coming, waiting, rows = list(range(len(lengths))), [], []
    while coming or waiting:
        row, room, by_age = [], capacity, True
        while True:
            while coming and len(waiting) < pool:
                waiting.append(coming.pop(0))
            fits = [position for position in waiting if lengths[position] <= room]
            if not fits or len(row) == most:
                break
            by_age = by_age and waiting[0] in fits
            alone = most is not None and len(row) + 1 == most  # the last one: no second is to come
            taken = waiting[0] if by_age else fill_gap(waiting, lengths, room, alone=alone)
            waiting.remove(taken)
            row.append(taken)
            room -= lengths[taken]
        rows.append(row)
    return rows


def fill_gap(waiting, lengths, room, *, alone=False):
    """The oldest of the length that fills a gap best, alone or with one more, of 16 lengths that are tried."""
    sizes = sorted({lengths[position] for position in waiting if lengths[position] <= room}, reverse=True)
    best = chosen = sizes[0]
    for first in sizes[:16] if best < room and not alone else ():
        if 2 * first <= best and first != chosen:
            break
        for second in sizes:
            both = first != second or sum(lengths[position] == first for position in waiting) > 1
            if first + second <= room:
                if both and first + second > best:
                    best, chosen = first + second, first
                break
    return next(position for position in waiting if lengths[position] == chosen)


@MANY
@given(within_rows, st.integers(1, 4), in_row)
def test_best_fit_makes_the_rows_of_the_rule(lengths, each, most):
    rows, counts = rows_of(lw.Rows(CAPACITY, rows=each, by="best-fit", max_in_row=most), lengths)
    by_hand = best_fit_by_hand(lengths, CAPACITY, most)
    assert sorted(rows) == sorted(by_hand)
    assert all(count == each for count in counts[:-1])
    # Batches take rows in the order of the sequences that opened them: in random order, where these stand so.
    opened = [min(row[0] for row in rows[start : start + each]) for start in range(0, len(rows), each)]
    assert opened == sorted(opened)


@MANY
@given(within_rows, st.integers(1, 70), st.integers(1, 4), in_row)
def test_the_pool_makes_the_rows_of_its_rule(lengths, pool, each, most):
    rows, counts = rows_of(lw.Rows(CAPACITY, rows=each, pool=pool, max_in_row=most), lengths)
    assert rows == pool_by_hand(lengths, CAPACITY, pool, most)
    assert all(count == each for count in counts[:-1])
    # No sequence stands in a later row than by next fit, nor is taken before it waits. A pool of one is next fit.
    by_next_fit = next_fit_by_hand(lengths, CAPACITY, most)
    assert pool > 1 or rows == by_next_fit
    row_of, turns = ({member: n for n, row in enumerate(each) for member in row} for each in (rows, by_next_fit))
    assert all(row_of[member] <= turns[member] for member in turns)
    taken = itertools.chain.from_iterable(rows)
    assert all(position < before + pool for before, position in enumerate(taken))


@MANY
@given(within_rows, in_row)
def test_no_other_way_to_fill_rows_in_order_takes_fewer(lengths, most):
    starts = row_offsets(np.array(lengths), np.array([0, len(lengths)]), CAPACITY, most)
    assert np.diff(starts).max() <= (most or len(lengths))
    least = [0]  # rows that the first k sequences take at least
    for stop in range(1, len(lengths) + 1):
        first = max(0, stop - (most or stop))
        fits = [start for start in range(first, stop) if sum(lengths[start:stop]) <= CAPACITY]
        least.append(1 + min(least[start] for start in fits))
    assert len(starts) - 1 == least[-1]


@pytest.mark.parametrize("top", [5, 63, 64, 4_096, 2**18 + 3])
def test_queues_by_number_are_found_from_below_and_from_above(top):
    chance = np.random.default_rng(top)
    queues, held = rows.make_queues.py_func(top, 300), {}
    for item, number in enumerate(chance.integers(0, top + 1, 300).tolist()):
        kind = "py_func" if item % 2 else "__call__"
        if chance.random() < 0.4 and number in held:
            assert getattr(rows.leave, kind)(queues, number) == held[number].pop(0)
        else:
            held.setdefault(number, []).append(item)
            getattr(rows.join, kind)(queues, number, item)
        held = {each: items for each, items in held.items() if items}
        asked = int(chance.integers(0, top + 1))
        for kind in ("py_func", "__call__"):
            least = getattr(rows.least_from, kind)(queues, asked)
            greatest = getattr(rows.greatest_to, kind)(queues, asked)
            assert least == min((each for each in held if each >= asked), default=-1)
            assert greatest == max((each for each in held if each <= asked), default=-1)


@MANY
@given(within_rows, st.integers(1, 9), st.integers(1, 4), in_row)
def test_compiled_and_plain_kernels_pack_alike(lengths, pool, each, most):
    array, made, most = np.array(lengths), [], most or 2**62
    for kind in ("__call__", "py_func"):
        kept, offsets, starts = (np.zeros(len(array) + extra, np.int64) for extra in (0, 1, 1))
        batches = getattr(_kernels.pool_rows, kind)(array, CAPACITY, most, pool, each, 16, kept, offsets)
        order, row_of = np.argsort(-array, kind="stable"), np.zeros_like(array)
        counts = np.bincount(array, minlength=CAPACITY + 1)
        rows = getattr(_kernels.best_fit, kind)(counts, most, row_of)
        grouped, borders = np.zeros_like(array), np.zeros(len(array) + 1, np.int64)
        groups = getattr(_kernels.batch_rows, kind)(order, row_of, rows, each, grouped, borders)
        filled = getattr(_kernels.fill_rows, kind)(array[kept], offsets[: batches + 1], CAPACITY, most, starts)
        joint = np.zeros((3, 3))
        paired = getattr(_kernels.count_pairs, kind)(array % 3, offsets[: batches + 1], 2, joint)
        arrays = (kept, offsets, order, row_of, grouped, borders, starts, joint)
        made.append([batches, rows, groups, filled, paired, *(each_of.tolist() for each_of in arrays)])
    assert made[0] == made[1]


LENGTHS = length_sets.spread_out(40, 400) % 99 + 1
BATCHING = lw.Batching(cut=lw.Rows(128, rows=4))


def all_rows(plan):
    return [row for number in range(len(plan.costs)) for row in plan.rows(number)]


@pytest.mark.parametrize("by", ["pool", "best-fit"])
def test_a_limit_of_any_size_that_no_row_reaches_changes_nothing(by):
    lengths, cut = length_sets.spread_out(500, 2_000), lw.Rows(4_096, rows=4, by=by)
    free, limited = (lw.make_plan(lengths, lw.Batching(cut=replace(cut, max_in_row=most))) for most in (None, 1_000))
    assert np.array_equal(free.sequences, limited.sequences)
    # No rows are fuller than so many sequences make them.
    plan = lw.make_plan(lengths, lw.Batching(cut=replace(cut, max_in_row=3)))
    assert max(map(len, all_rows(plan))) == 3
    assert lw.measure(plan, lengths).fill <= 3 * lengths.mean() / 4_096


def test_a_batch_of_rows_costs_at_most_its_frames_and_attention_has_no_bound():
    assert lw.make_plan(LENGTHS, BATCHING).max_cost == 4 * 128
    assert lw.make_plan(LENGTHS, replace(BATCHING, cost=lw.Quadratic())).max_cost == np.inf


def test_rows_of_chunks_are_spans_and_a_row_of_any_other_plan_is_a_sequence():
    plan = lw.make_plan([5, 9, 2], lw.Batching(cut=lw.FixedSize(3), order=lw.Sorted()))
    assert sorted(row.tolist() for row in plan.rows(0)) == [[0], [1], [2]]
    plan = lw.make_plan([5, 30, 2], lw.Batching(cut=lw.Rows(12), chunks=lw.Chunks(12)))
    rows = all_rows(plan)
    assert sorted(np.concatenate(rows).tolist()) == [[0, 0, 5], [1, 0, 12], [1, 12, 24], [1, 24, 30], [2, 0, 2]]
    assert all((row[:, 2] - row[:, 1]).sum() <= 12 for row in rows)


def test_the_rest_on_other_ranks_keeps_rows_together():
    whole = lw.make_plan(LENGTHS, BATCHING, world_size=4)
    rest = lw.make_plan(LENGTHS, BATCHING, world_size=3, after=[(4, 1, 3)])
    rows = {tuple(row) for row in all_rows(whole)}
    kept = [tuple(row) in rows for row in all_rows(rest)]
    assert np.mean(kept) > 0.8  # but for those in batches that the tail splits


def test_rows_keep_to_their_buckets_however_they_were_packed():
    """A packer reorders, so where a bucket ends is counted among what it keeps, whatever stands there."""
    for cut in (lw.Rows(128, rows=4), lw.Rows(128, rows=4, by="best-fit"), lw.Rows(60, rows=4, oversize="drop")):
        batching = lw.Batching(order=lw.Bucketed(edges=(20, 40, 128)), cut=cut, arrange=lw.ShortestFirst())
        plan = lw.make_plan(LENGTHS, batching)
        bucket = [{int(np.searchsorted((20, 40), LENGTHS[n])) for n in batch} for batch in plan.batches()]
        assert bucket == sorted(bucket, key=max), cut
        assert all(len(each) == 1 for each in bucket)
        assert {max(each) for each in bucket} == {0, 1, 2}


def planned(lengths, **choices):
    return lambda: lw.make_plan(lengths, lw.Batching(**choices))


REFUSED = [
    (lambda: lw.Rows(0), "`capacity` must be at least 1, but is 0. Give the tokens of a row, such as 4096."),
    (lambda: lw.Rows(9, rows=0), "`rows` must be at least 1, but is 0. Give the rows in a batch, such as 8."),
    (lambda: lw.Rows(9, max_in_row=0), "`max_in_row` must be at least 1, but is 0. Give the most sequences in a row, "),
    (lambda: lw.Rows(9, pool=0), "`pool` must be at least 1, but is 0. "),
    (lambda: lw.Rows(9, by="best-fit", pool=4), "`pool` must be left out with best-fit, but is 4."),
    (planned([5, 9], cut=lw.Rows(8)), "`capacity` must be at least the longest sequence, 9, but is 8 at sequence 1."),
    (planned([[5, 9]], cut=lw.Rows(8)), "`lengths` must be of shape [n], but is (1, 2). Take one column, such as"),
    (planned([5, 9, 2], cut=lw.Rows(16), cost=lw.Quadratic(linear=1.2e307)), "`cost` must be finite, but is inf. "),
    (planned([5], cut=lw.Rows(8), padding=0.1), "`padding` must be left out for a cut that packs rows, but is"),
    (
        planned([5], cut=lw.Rows(8), order=lw.MaxEntropy(padding=0.2)),
        "`padding` must be left out for a cut that packs rows, but is MaxEntropy(padding=0.2,",
    ),
    (
        lambda: lw.Batching(cut=lw.Rows(8), order=lw.Bucketed(buckets=2, pad_to_edge=True)),
        "`order` must be one that pads to no edges beside a cut that packs rows, but is Bucketed(",
    ),
    (
        planned([5], cut=lw.Rows(8), deal=lw.RandomSteps(even=False)),
        "`even` must be True beside a budget or rows: only the batches of a FixedSize may all hold ",
    ),
]


@pytest.mark.parametrize(("work", "message"), REFUSED)
def test_what_does_not_go_with_rows_is_refused_in_one_sentence(work, message):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        work()


def test_what_is_longer_than_a_row_is_dropped_on_request_and_listed():
    plan = lw.make_plan([5, 9, 2, 12, 8], lw.Batching(cut=lw.Rows(8, oversize="drop")))
    assert plan.dropped().tolist() == [1, 3]
    with pytest.raises(lw.OversizeError) as caught:
        lw.make_plan([5, 9], lw.Batching(cut=lw.Rows(8)))
    assert (caught.value.budget, caught.value.cost, caught.value.sequence) == (8, 9.0, 1)
    assert replace(lw.Batching(budget=90), cut=lw.Rows(8)).order == lw.Shuffled()  # which pads nothing


def test_a_batch_has_about_as_many_sequences_as_its_rows_hold():
    lengths, longest = np.array([[10], [50], [100]]), np.array([100])
    for most, sizes in ((None, [20, 4, 2]), (3, [6, 4, 2])):
        cut = lw.Rows(100, rows=2, max_in_row=most)
        assert cut.batch_sizes(lengths, cost=lw.Padded(), longest=longest).tolist() == sizes
