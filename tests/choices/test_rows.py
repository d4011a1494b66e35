"""Packing: rows by rules that are followed by hand, no sequence later than its turn, and what plans say of rows."""

import itertools
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
from lengthwise import _kernels
from lengthwise._kernels import rows
from lengthwise.choices.rows import row_offsets

MANY = settings(max_examples=150, derandomize=True)
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


@MANY
@given(within_rows, in_row)
def test_a_pool_of_one_is_next_fit(lengths, most):
    cut = lw.Rows(CAPACITY, pool=1, max_in_row=most)
    assert rows_of(cut, lengths)[0] == next_fit_by_hand(lengths, CAPACITY, most)


@MANY
@given(within_rows, st.integers(1, 70), in_row)
def test_no_sequence_stands_in_a_later_row_than_by_next_fit_nor_is_taken_before_it_waits(lengths, pool, most):
    rows, _ = rows_of(lw.Rows(CAPACITY, pool=pool, max_in_row=most), lengths)
    row_of = {position: number for number, row in enumerate(rows) for position in row}
    by_next_fit = next_fit_by_hand(lengths, CAPACITY, most)
    turns = {position: number for number, row in enumerate(by_next_fit) for position in row}
    assert all(row_of[position] <= turns[position] for position in turns)
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
def test_a_set_of_numbers_in_two_levels_is_a_set(top):
    chance = np.random.default_rng(top)
    bits = np.zeros(top // 64 + 1, np.uint64)
    words, held = np.zeros(len(bits) // 64 + 1, np.uint64), set()
    for number in chance.integers(0, top + 1, 300).tolist():
        if number in held:
            held.remove(number)
            rows.exclude(bits, words, number)
        else:
            held.add(number)
            rows.include(bits, words, number)
        asked = int(chance.integers(0, top + 1))
        for kind in ("py_func", "__call__"):
            least = getattr(rows.least_from, kind)(bits, words, asked)
            greatest = getattr(rows.greatest_to, kind)(bits, words, asked)
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


@pytest.mark.parametrize("most", [2, 4, 16])
def test_each_member_meets_all_others_of_a_small_group_and_as_many_of_a_large_one(most):
    sizes = np.array([1, 2, 3, 5, 8, 16, 17, 18, 40])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((sizes.sum(), sizes.sum()))
    paired, squares = _kernels.count_pairs(np.arange(sizes.sum()), offsets, most, joint)
    assert joint.max() <= 1.0
    both = joint + joint.T
    for start, size in zip(offsets, sizes, strict=False):
        own = both[start : start + size, start : start + size]
        met = min(most, size - 1)
        assert np.diag(own).tolist() == [0.0] * size
        assert (own > 0).sum(axis=1).tolist() == [met] * size
        assert own[own > 0] == pytest.approx(1 / met if met else 0.0)
    assert paired == sizes[1:].sum() == pytest.approx(both.sum())
    assert squares == pytest.approx((both**2).sum())


def spread_out(mean, count, seed=0):
    """Log-normal lengths of a mean, at most 4,096: the sequences of fine-tuning, roughly."""
    drawn = np.random.default_rng(seed).lognormal(0.0, 0.7, count) * mean / np.exp(0.7**2 / 2)
    return np.rint(drawn).astype(np.int64).clip(1, 4_096)


@pytest.mark.parametrize(("mean", "least_fill", "least_mixing"), [(500, 0.998, 0.99), (1_400, 0.995, 0.8)])
def test_rows_are_full_and_mixed_by_default(mean, least_fill, least_mixing):
    lengths = spread_out(mean, 200_000)
    measures = lw.measure(lw.make_plan(lengths, lw.Batching(cut=lw.Rows(4_096, rows=8))), lengths)
    assert measures.fill == pytest.approx(lengths.sum() / (measures.rows * 4_096))
    assert measures.fill >= least_fill
    assert measures.pair_mixing >= least_mixing
    sorted_rows = lw.Batching(cut=lw.Rows(4_096, rows=8, by="best-fit"))
    packed = lw.measure(lw.make_plan(lengths, sorted_rows), lengths)
    assert packed.fill > measures.fill
    assert packed.pair_mixing < 0.1


@pytest.mark.parametrize("most", [1, 3, 8, 10, 1_000])
@pytest.mark.parametrize("by", ["pool", "best-fit"])
def test_a_limit_holds_and_is_all_that_it_changes(by, most):
    lengths = spread_out(500, 5_000)
    cut, limited = (lw.Rows(4_096, rows=4, by=by, max_in_row=limit) for limit in (None, most))
    measures = {}
    for deal in (lw.Balanced(), lw.RandomSteps()):
        plan = lw.make_plan(lengths, lw.Batching(cut=limited, deal=deal), world_size=2)
        rows = [row for number in range(len(plan.costs)) for row in plan.rows(number)]
        assert max(map(len, rows)) == min(most, max(map(len, rows)))
        assert max(lengths[row].sum() for row in rows) <= 4_096
        assert sorted(np.concatenate(rows).tolist()) == list(range(len(lengths)))
        measures[type(deal).__name__] = lw.measure(plan, lengths).fill
    # No rows are fuller than so many sequences make them.
    assert max(measures.values()) <= min(1.0, most * lengths.mean() / 4_096)
    if most == 1_000:
        same = lw.make_plan(lengths, lw.Batching(cut=cut), world_size=2)
        assert np.array_equal(same.sequences, lw.make_plan(lengths, lw.Batching(cut=limited), world_size=2).sequences)


def test_a_limit_is_kept_where_plans_are_saved_split_and_resumed(tmp_path):
    batching = lw.Batching(cut=lw.Rows(128, rows=4, max_in_row=2))
    assert lw.Batching.from_json(batching.to_json()) == batching
    whole = lw.make_plan(LENGTHS, batching, world_size=4)
    whole.save(tmp_path / "plan.npz")
    loaded = lw.Plan.load(tmp_path / "plan.npz")
    other = replace(whole, row_offsets=np.delete(whole.row_offsets, 1))
    assert loaded.fingerprint() == whole.fingerprint() != other.fingerprint()
    rest = lw.make_plan(LENGTHS, batching, world_size=3, after=[(4, 1, 3)])
    for plan in (whole, loaded, rest):
        rows = [row for number in range(len(plan.costs)) for row in plan.rows(number)]
        assert max(map(len, rows)) == 2
        assert plan.row_counts.max() <= 4
    windows = lw.Windows(LENGTHS, batching, window=100, block=10)
    plans = [windows.plan(0, number).plan for number in range(len(windows))]
    assert [np.diff(plan.row_offsets).max() for plan in plans] == [2] * 4


LENGTHS = spread_out(40, 400) % 99 + 1
BATCHING = lw.Batching(cut=lw.Rows(128, rows=4))


def test_a_plan_says_which_row_holds_which_sequences():
    plan = lw.make_plan(LENGTHS, BATCHING, world_size=3)
    for number in range(len(plan.costs)):
        rows = plan.rows(number)
        assert np.concatenate(rows).tolist() == plan.batch(number).tolist()
        assert len(rows) == plan.row_counts[number] <= 4
        assert max(LENGTHS[row].sum() for row in rows) <= 128
    assert plan.row_counts.sum() == len(plan.row_offsets) - 1


def test_a_row_of_any_other_plan_is_a_sequence():
    plan = lw.make_plan([5, 9, 2], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
    number = int(plan.batch_sizes.argmax())
    assert [row.tolist() for row in plan.rows(number)] == [[0], [1]]
    assert plan.row_counts.tolist() == plan.batch_sizes.tolist()


def test_rows_of_chunks_are_spans():
    plan = lw.make_plan([5, 30, 2], lw.Batching(cut=lw.Rows(12), chunks=lw.Chunks(12)))
    rows = [row for number in range(len(plan.costs)) for row in plan.rows(number)]
    assert sorted(np.concatenate(rows).tolist()) == [[0, 0, 5], [1, 0, 12], [1, 12, 24], [1, 24, 30], [2, 0, 2]]
    assert all((row[:, 2] - row[:, 1]).sum() <= 12 for row in rows)


def test_other_epochs_put_others_together_and_the_same_epoch_the_same():
    pairs = []
    for seed, epoch in [(0, 0), (0, 1), (1, 0), (0, 0)]:
        plan = lw.make_plan(LENGTHS, BATCHING, seed=seed, epoch=epoch)
        rows = [row.tolist() for number in range(len(plan.costs)) for row in plan.rows(number)]
        pairs.append({pair for row in rows for pair in itertools.combinations(sorted(row), 2)})
    assert pairs[0] == pairs[3]
    assert all(len(pairs[0] & other) < 0.1 * len(pairs[0]) for other in pairs[1:3])


def test_the_rest_on_other_ranks_keeps_rows_together():
    whole = lw.make_plan(LENGTHS, BATCHING, world_size=4)
    rest = lw.make_plan(LENGTHS, BATCHING, world_size=3, after=[(4, 1, 3)])
    rows = {tuple(row.tolist()) for number in range(len(whole.costs)) for row in whole.rows(number)}
    kept = [tuple(row.tolist()) in rows for number in range(len(rest.costs)) for row in rest.rows(number)]
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


def test_a_batch_costs_what_its_sequences_cost_alone():
    attention = lw.Quadratic(linear=0.0, quadratic=1.0, per_batch=7.0)
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(128, rows=4), cost=attention), world_size=2)
    for number, cost in enumerate(plan.costs):
        assert cost == 7.0 + (LENGTHS[plan.batch(number)].astype(float) ** 2).sum()
    assert plan.max_cost == np.inf
    assert lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(128, rows=4))).max_cost == 4 * 128
    # What is for the batch counts once, for a row of the capacity: 7 + 0.5 x 128.
    recurrent = lw.Quadratic(linear=0.0, quadratic=1.0, per_batch=7.0, per_length=0.5)
    same = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(128, rows=4), cost=recurrent), world_size=2)
    for number, cost in enumerate(same.costs):
        assert cost == 71.0 + (LENGTHS[same.batch(number)].astype(float) ** 2).sum()

    def by_calls(counts, padded_lengths):
        return counts * padded_lengths[:, 0] ** 1.5

    own = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(128), cost=by_calls))
    assert own.costs[3] == pytest.approx((LENGTHS[own.batch(3)] ** 1.5).sum())


@dataclass(frozen=True)
class NextFit:
    """A packer of a user's own, one row a batch."""

    row_capacity: int
    max_in_row: int | None = None
    rows: int = 1

    def __call__(self, lengths, boundaries, *, cost, longest):
        del boundaries, cost, longest
        rows = next_fit_by_hand(lengths[:, 0].tolist(), self.row_capacity, self.max_in_row)
        starts = [row[0] for row in rows[:: self.rows]]
        return lw.Cuts(np.arange(len(lengths)), np.array([*starts, len(lengths)]))

    def max_cost(self, cost, longest):
        del cost, longest
        return np.inf

    def batch_sizes(self, lengths, *, cost, longest):
        del cost, longest
        return np.ones(len(lengths))


def test_a_cut_of_the_users_own_packs_too():
    choices = {"order": InGivenOrder(), "deal": lw.Balanced(tail="repeat")}  # batches are left as the cut makes them
    for most in (None, 2):
        cuts = NextFit(128, most, rows=3), lw.Rows(128, pool=1, rows=3, max_in_row=most)
        mine, ours = (lw.make_plan(LENGTHS, lw.Batching(cut=cut, **choices), world_size=2) for cut in cuts)
        for name in ("sequences", "offsets", "row_offsets", "padded_lengths", "costs", "grid"):
            assert np.array_equal(getattr(mine, name), getattr(ours, name))


def test_a_packer_of_the_users_own_keeps_no_sequence_that_is_longer_than_a_row():
    said = r"^`row_capacity` must be at least the longest sequence that is kept, 9, but is 8\. Leave it out of kept, "
    with pytest.raises(ValueError, match=said):
        lw.make_plan([5, 9, 2], lw.Batching(cut=NextFit(8)))
    with pytest.raises(TypeError, match=r"^`max_in_row` must be a whole number, but is 2\.5\. "):
        lw.make_plan([5, 2], lw.Batching(cut=NextFit(8, 2.5)))
    with pytest.raises(ValueError, match=r"^`lengths` must be of one length each for rows, but is \(1, 2\)\. "):
        lw.make_plan([[5, 2]], lw.Batching(cut=NextFit(8)))


def test_costs_that_sum_to_more_than_any_number_are_refused():
    with pytest.raises(ValueError, match=r"^`cost` must be finite, but is inf\. "):
        lw.make_plan([5, 9, 2], lw.Batching(cut=lw.Rows(16), cost=lw.Quadratic(linear=1.2e307)))


def test_measures_of_rows_by_hand():
    # Rows of 10 in batches of at most two: [9 1], then [4 5] and [6].
    batching = lw.Batching(cut=lw.Rows(10, rows=2, pool=1), order=InGivenOrder(), arrange=lw.InOrder())
    lengths = [9, 1, 4, 5, 6]
    plan = lw.make_plan(lengths, batching)
    assert [[row.tolist() for row in plan.rows(number)] for number in plan.grid.reshape(-1)] == [
        [[0, 1]],
        [[2, 3], [4]],
    ]
    measures = lw.measure(plan, lengths)
    assert measures.rows == 3
    assert measures.fill == pytest.approx(25 / 30)
    assert measures.padding_share == pytest.approx(5 / 30)
    assert measures.zero_padding_rate == pytest.approx((0 / 10 + 5 / 20) / 2)
    assert measures.cost_spread == pytest.approx(np.std([10, 15]) / 12.5)
    assert measures.average_batch_length == 10


class InGivenOrder:
    """An order of the user's own: as the sequences come."""

    def __call__(self, sizes, key):
        del key
        return lw.Ordered(np.arange(len(sizes)))


@settings(max_examples=50, derandomize=True)
@given(length_sets.flat, st.integers(1, 3))
def test_pair_mixing_is_that_of_all_pairs_counted_one_by_one(lengths, ranks):
    if not len(lengths):
        return
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(6_000, rows=2)), world_size=ranks)
    bins = int(np.clip(1 + np.sqrt(len(plan.sequences) / 10), 2, 64))
    _, value, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    bin_of = ((np.cumsum(counts) - counts / 2) * bins / len(lengths)).astype(int).clip(0, bins - 1)[value]
    joint, squares = np.zeros((bins, bins)), 0.0
    for number in range(len(plan.costs)):
        for row in plan.rows(number):
            if len(row) > 17:
                return
            for one, other in itertools.permutations(row.tolist(), 2):
                joint[bin_of[one], bin_of[other]] += 1 / (len(row) - 1)
                squares += 1 / (len(row) - 1) ** 2
    total = joint.sum()
    if not total:
        assert lw.measure(plan, lengths).pair_mixing == 1.0
        return
    share, each = joint / total, joint.sum(axis=1) / total
    seen = share > 0
    information = (share[seen] * np.log(share[seen] / np.outer(each, each)[seen])).sum()
    bias = (seen.sum() - 2 * (each > 0).sum() + 1) / (2 * total**2 / squares)
    assert lw.measure(plan, lengths).pair_mixing == pytest.approx(np.exp(-max(0.0, information - bias)))


def test_pair_mixing_of_random_rows_is_one_and_of_twins_a_bin():
    lengths = spread_out(500, 50_000)
    random = lw.Batching(cut=lw.Rows(4_096, pool=1))
    assert lw.measure(lw.make_plan(lengths, random), lengths).pair_mixing > 0.99
    twins = np.argsort(lengths, kind="stable").reshape(-1, 2)
    assert lw.measure(twins.tolist(), lengths).pair_mixing == pytest.approx(1 / 64, rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.Rows(0), "`capacity` must be at least 1, but is 0. Give the tokens of a row, such as 4096."),
        (lambda: lw.Rows(2**24 + 1), "`capacity` must be at most 16777216, but is 16777217. "),
        (lambda: lw.Rows(9, rows=0), "`rows` must be at least 1, but is 0. Give the rows in a batch, such as 8."),
        (lambda: lw.Rows(9, by="first-fit"), "`by` must be one of pool, best-fit, but is 'first-fit'."),
        (
            lambda: lw.Rows(9, max_in_row=0),
            "`max_in_row` must be at least 1, but is 0. Give the most sequences in a row, such as 64, or leave it out.",
        ),
        (lambda: lw.Rows(9, pool=0), "`pool` must be at least 1, but is 0. "),
        (
            lambda: lw.Rows(9, by="best-fit", pool=4),
            "`pool` must be left out by best-fit, but is 4. All sequences wait there.",
        ),
        (lambda: lw.Rows(9, oversize="alone"), "`oversize` must be one of error, drop, but is 'alone'."),
        (
            lambda: lw.make_plan([5, 9, 2], lw.Batching(cut=lw.Rows(8))),
            "`capacity` must be at least the longest sequence, 9, but is 8 at sequence 1. Raise it, choose ",
        ),
        (
            lambda: lw.make_plan([[5, 9]], lw.Batching(cut=lw.Rows(8))),
            "`lengths` must be of one length each for rows, but is (1, 2). "
            "Give lengths[:, 0], for example (on the command line: FILE:0).",
        ),
        (
            lambda: lw.Batching(cut=lw.Rows(8), padding=0.1),
            "`padding` must be left out beside a cut that packs rows, but is 0.1. Choose how well rows are filled: ",
        ),
        (
            lambda: lw.Batching(cut=lw.Rows(8), order=lw.MaxEntropy(padding=0.2)),
            "`padding` must be left out beside a cut that packs rows, but is MaxEntropy(padding=0.2,",
        ),
        (
            lambda: lw.Batching(cut=lw.Rows(8), order=lw.MaxEntropy(mixing=0.2)),
            "`mixing` must be left out beside a cut that packs rows, but is MaxEntropy(padding=None,",
        ),
        (
            lambda: lw.Batching(cut=lw.Rows(8), order=lw.Bucketed(buckets=2, pad_to_edge=True)),
            "`order` must be one that pads to no edges beside a cut that packs rows, but is Bucketed(",
        ),
        (
            lambda: lw.Batching(cut=NextFit(8), deal=lw.RandomSteps()),
            '`cut` must be a FixedSize, a Budget, a Rows, or a DynamicSize of rule "hard" beside RandomSteps, but is ',
        ),
        (
            lambda: lw.Batching(cut=lw.Rows(8), deal=lw.RandomSteps(even=False)),
            "`even` must be True beside a budget or rows: only the batches of a FixedSize may all hold ",
        ),
    ],
)
def test_what_does_not_go_with_rows_is_one_sentence(make, message):
    with pytest.raises(ValueError, match=r"^`") as caught:
        make()
    assert str(caught.value).startswith(message)


def test_what_is_longer_than_a_row_is_dropped_on_request_and_listed():
    plan = lw.make_plan([5, 9, 2, 12, 8], lw.Batching(cut=lw.Rows(8, oversize="drop")))
    assert plan.dropped().tolist() == [1, 3]
    with pytest.raises(lw.OversizeError) as caught:
        lw.make_plan([5, 9], lw.Batching(cut=lw.Rows(8)))
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert (copied.budget, copied.cost, copied.sequence) == (8, 9.0, 1)


def test_rows_come_with_a_random_order_and_no_padding_to_ask_for():
    assert lw.Batching(cut=lw.Rows(8)) == lw.Batching(cut=lw.Rows(8), order=lw.Shuffled(), deal=lw.Balanced())
    assert lw.Batching.from_json(BATCHING.to_json()) == BATCHING
    assert replace(lw.Batching(budget=90), cut=lw.Rows(8)).order == lw.Shuffled()
