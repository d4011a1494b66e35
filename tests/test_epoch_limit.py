"""The limit of an epoch of so many batches: against all batchings of tiny sets, sorted batches, and what is drawn."""

from itertools import combinations, product

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.rate_distortion import group_levels
from lengthwise.measures.epoch_limit import _best_path, floors_of_sizes, rate_in_epoch
from test_batch_limit import TINY, batchings, counted_out, mixing_in_groups


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("lengths", TINY, ids=str)
def test_no_batching_of_a_tiny_set_into_so_many_batches_passes_the_limit(lengths, most, more):
    count = -(-len(lengths) // most) + more
    best = {}
    for batches in batchings(list(range(len(lengths))), most):
        if len(batches) != count:
            continue
        padding, mixing = counted_out(lengths, batches)
        best[round(padding, 9)] = max(mixing, best.get(round(padding, 9), 0.0))
    for padding, mixing in best.items():
        assert mixing <= lw.mixing_limit(lengths, padding + 1e-9, batch_size=most, batches=count) + 1e-6


def pooled(lengths, ways, weights):
    """Padding and mixing of batchings that are taken so often, counted out."""
    values, place = np.unique(lengths, return_inverse=True)
    pairs = np.zeros((len(values), len(values)))
    for way, weight in zip(ways, weights, strict=True):
        for batch in way:
            np.add.at(pairs, (place[batch], place[batch].max()), weight / len(lengths))
    seen = pairs > 0
    told = pairs[seen] @ np.log(pairs[seen] / np.outer(pairs.sum(axis=1), pairs.sum(axis=0))[seen])
    return 1 - lengths.mean() / (pairs.sum(axis=0) @ values), np.exp(-told)


def test_no_pool_of_epochs_passes_the_limit():
    # Two batchings of eight lengths into three batches of at most 3, pooled in every proportion: T tells less of X.
    lengths = np.array([1, 2, 3, 5, 8, 13, 21, 34])
    ways = [each for each in batchings(list(range(8)), 3) if len(each) == 3]
    ways = sorted(ways, key=lambda way: sum(len(batch) * lengths[max(batch)] for batch in way))[:12]  # pad the least
    tried = 0
    for first, second in combinations(ways, 2):
        for share in (0.25, 0.5):
            padding, mixing = pooled(lengths, (first, second), (share, 1 - share))
            limit = lw.mixing_limit(lengths, padding + 1e-9, batch_size=3, batches=3)
            assert mixing <= limit + 1e-6
            tried += limit < 0.99 * lw.mixing_limit(lengths, padding + 1e-9, batch_size=3)
    assert tried > 60  # the limit of an epoch says more


def test_both_conditions_together_say_more_than_each():
    lengths = lw.example_lengths("long-tailed")
    levels = group_levels(lengths.astype(np.float64), 1_024)
    limit = lw.mixing_limit(lengths, 0.12, batch_size=16, batches=655, bins=1_024)
    one = lw.mixing_limit(lengths, 0.12, batch_size=16, bins=1_024)
    target = float(lengths.mean() * 0.12 / 0.88)
    endless = np.full(len(levels.sizes), 1e9)
    other = np.exp(-rate_in_epoch(levels, target, endless, floors_of_sizes(levels, 16, 655)))
    assert limit < 0.99 * min(one, other)


def mixing_of(lengths, plan):
    """exp(-I) of one plan, by the definition, and its padding share."""
    longest, own = np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes), lengths[plan.sequences]
    (_, row), (_, column) = (np.unique(each, return_inverse=True) for each in (own, longest))
    shares = np.bincount(row * (column.max() + 1) + column, minlength=(row.max() + 1) * (column.max() + 1))
    shares = shares.reshape(row.max() + 1, -1) / len(own)
    seen = shares > 0
    told = shares[seen] @ np.log(shares[seen] / np.outer(shares.sum(axis=1), shares.sum(axis=0))[seen])
    return np.exp(-told), 1 - own.sum() / longest.sum()


SETS = {
    "few lengths": lambda chance, count: chance.integers(1, 30, count),
    "many": lambda chance, count: chance.integers(1, 3_000, count),
    "Zipf": lambda chance, count: np.minimum(10**6, chance.zipf(1.5, count)),
    "a giant": lambda chance, count: np.append(chance.integers(5, 9, count - 1), 10**5),
    "long-tailed": lambda chance, count: chance.permutation(lw.example_lengths())[:count],
}


# Sorted batches stand at the limit itself, the others below it.
ORDERS = {lw.Sorted(): 3, lw.SemiSorted(0.1): 1, lw.MaxEntropy(scale=0.05): 1}


@pytest.mark.parametrize(("order", "times"), ORDERS.items(), ids=map(str, ORDERS))
@pytest.mark.parametrize("name", SETS)
def test_no_plan_passes_the_limit_of_its_epoch_or_of_its_budget(name, order, times):
    chance = np.random.default_rng(3)
    for _ in range(times):
        batch_size, lengths = int(chance.integers(2, 40)), SETS[name](chance, int(chance.integers(3, 400)))
        plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(batch_size), order=order))
        had, padding = mixing_of(lengths, plan)
        batches = len(plan.batch_sizes)
        assert had <= lw.mixing_limit(lengths, padding + 1e-12, batch_size=batch_size, batches=batches) + 1e-6
        budget = float(lengths.max() * chance.integers(1, 20))
        plan = lw.make_plan(lengths, lw.Batching(cut=lw.Budget(budget), order=order, deal=lw.Balanced()))
        had, padding = mixing_of(lengths, plan)
        empty = int((budget // plan.padded_lengths[:, 0] - plan.batch_sizes).sum())
        assert had <= lw.mixing_limit(lengths, padding + 1e-12, budget=budget, empty_places=empty) + 1e-6


def test_prices_beyond_every_number_prove_no_more_than_is_true():
    # At the least padding a floor may cost tens of thousands of nats, whose exponential is no number.
    lengths = lw.example_lengths("long-tailed")
    had, padding = mixing_of(lengths, lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(64), order=lw.Sorted())))
    assert had <= lw.mixing_limit(lengths, padding, batch_size=64, batches=164) < 1.5 * had


# Two ways of empty places that pad (nearly) as much: which is had is chosen anew in every epoch.
EVENLY_APART = [[1, 2, 3], [4, 16_384, 32_768], [55, 109, 167], [8, 45, 90], [10, 20, 30, 40], [7, 7, 19, 31, 31]]


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("lengths", EVENLY_APART, ids=str)
def test_no_pool_of_two_epochs_with_empty_places_passes_the_limit(lengths, most, more):
    lengths = np.array(lengths)
    count = min(len(lengths), -(-len(lengths) // most) + more)
    ways = [each for each in batchings(list(range(len(lengths))), most) if len(each) == count]
    for pair in [*combinations(ways, 2)][:60]:
        padding, mixing = pooled(lengths, pair, (0.5, 0.5))
        assert mixing <= lw.mixing_limit(lengths, padding + 1e-9, batch_size=most, batches=count) + 1e-6


def test_at_the_least_padding_only_sorted_batches_are_left():
    # 1..12 in three batches of 4: T is 4, 8 or 12, and tells which third X is of.
    lengths = np.arange(1, 13)
    least = 1 - lengths.mean() / 8
    assert lw.mixing_limit(lengths, least, batch_size=4, batches=3) == pytest.approx(1 / 3, rel=1e-3)
    assert lw.mixing_limit(lengths, least, batch_size=4) > 0.4
    # With a fourth batch it may be 12 again, or another.
    assert lw.mixing_limit(lengths, least, batch_size=4, batches=4) > 0.34


@pytest.mark.parametrize("name", ["speech", "long-tailed"])
@pytest.mark.parametrize("batch_size", [16, 64])
def test_the_limit_of_an_epoch_falls_with_fewer_batches_and_nears_the_other(name, batch_size):
    lengths = lw.example_lengths(name, count=64 * 40)
    needed = len(lengths) // batch_size
    limits = [
        [lw.mixing_limit(lengths, padding, batch_size=batch_size, batches=batches, bins=256) for padding in (0.06, 0.3)]
        for batches in (needed, needed + 2, needed + 20)
    ]
    without = [lw.mixing_limit(lengths, padding, batch_size=batch_size, bins=256) for padding in (0.06, 0.3)]
    assert (np.diff([*limits, without], axis=0) > -1e-3).all()
    assert limits[0][1] > 0.85 * without[1]


@pytest.mark.parametrize("padding", [0.06, 0.1, 0.2])
@pytest.mark.parametrize("name", ["speech", "long-tailed"])
@pytest.mark.slow
def test_max_entropy_comes_within_six_hundredths_of_it(name, padding):
    lengths = lw.example_lengths(name, count=10_240)
    batching = lw.Batching(order=lw.MaxEntropy(padding=padding), cut=lw.FixedSize(64))
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(32)]
    had = lw.measure(plans, lengths).padding_share
    limit = lw.mixing_limit(lengths, had, batch_size=64, batches=160, bins=512)
    assert 0.94 * limit < mixing_in_groups(lengths, plans, 512) < limit


def test_the_best_path_is_the_best_of_all():
    chance = np.random.default_rng(1)
    for _ in range(20):
        table, weights = chance.uniform(size=(5, 4)), chance.uniform(size=5)
        paths = [path for path in product(range(4), repeat=5) if (np.diff(path) <= 0).all()]
        sums = [weights @ table[np.arange(5), path] for path in paths]
        assert _best_path(table, weights).tolist() == list(paths[int(np.argmin(sums))])


def test_batches_that_do_not_hold_the_sequences_are_refused():
    with pytest.raises(
        ValueError, match=r"^`batches` must be at least 4, but is 3\. 10 sequences need 4 batches of 3\."
    ):
        lw.mixing_limit(range(1, 11), 0.1, batch_size=3, batches=3)
    with pytest.raises(ValueError, match=r"^`batches` must be left out without batch_size, but is 3\. Give"):
        lw.mixing_limit(range(1, 11), 0.1, batches=3)
    assert lw.mixing_limit([7, 7, 7], 0.0, batch_size=2, batches=2) == 1.0
    assert lw.mixing_limit([7, 8], 0.9, batch_size=2, batches=10**9) == pytest.approx(1.0)


def within(lengths, budget):
    """All batchings of a tiny set under a budget, each with the places that stay empty."""
    for way in batchings(list(range(len(lengths))), len(lengths)):
        places = [max(1, budget // max(lengths[each] for each in batch)) for batch in way]
        if all(len(batch) <= held for batch, held in zip(way, places, strict=True)):
            yield way, sum(places) - len(lengths)


@pytest.mark.parametrize("budget", [10, 21, 40])
@pytest.mark.parametrize("lengths", TINY, ids=str)
def test_no_batching_of_a_tiny_set_under_a_budget_passes_the_limit_of_its_empty_places(lengths, budget):
    best = {}
    for way, empty in within(lengths, budget):
        if empty > 2:  # then it is nearly that of such batches
            continue
        padding, mixing = counted_out(lengths, way)
        best[round(padding, 9), empty] = max(mixing, best.get((round(padding, 9), empty), 0.0))
    for (padding, empty), mixing in best.items():
        limit = lw.mixing_limit(lengths, padding + 1e-9, budget=budget, empty_places=empty)
        assert mixing <= limit + 1e-6
        assert limit <= lw.mixing_limit(lengths, padding + 1e-9, budget=budget) + 1e-9


@pytest.mark.parametrize("budget", [40, 68, 100])
def test_no_pool_of_epochs_under_a_budget_passes_the_limit(budget):
    lengths = np.array([1, 2, 3, 5, 8, 13, 21, 34])
    ways = sorted(within(lengths, budget), key=lambda each: (each[1], counted_out(lengths.tolist(), each[0])[0]))[:12]
    lower = 0
    for (first, empty), (second, more) in combinations(ways, 2):
        padding, mixing = pooled(lengths, (first, second), (0.5, 0.5))
        limit = lw.mixing_limit(lengths, padding + 1e-9, budget=budget, empty_places=max(empty, more))
        assert mixing <= limit + 1e-6
        lower += limit < 0.99 * lw.mixing_limit(lengths, padding + 1e-9, budget=budget)
    assert lower > 4  # it says more


def test_what_an_epoch_is_filled_with_costs_least_of_all_ways():
    # Counts by level, places of a batch there, and every way to open batches and leave places empty, one by one.
    chance, filled = np.random.default_rng(2), 0
    for _ in range(60):
        counts, empty = chance.integers(1, 4, 4), int(chance.integers(0, 4))
        fewest = np.sort(chance.integers(1, 9, 4))[::-1].copy()
        most, prices = fewest + chance.integers(0, 3, 4), chance.exponential(size=3)
        ways = {(0, 0): 0.0}  # (places beside, empty): the least price so far
        for level in (3, 2, 1, 0):
            for _ in range(int(counts.sum())):  # batches
                for (beside, left), price in list(ways.items()):
                    for held in range(fewest[level], most[level] + 1):
                        after = beside + held, left
                        if beside + held <= counts.sum() + 12 and price < ways.get(after, np.inf):
                            ways[after] = price
            for (beside, left), price in sorted(ways.items(), reverse=True):
                for more in range(1, min(beside, empty - left) + 1):
                    after = beside - more, left + more
                    ways[after] = min(price, ways.get(after, np.inf))
            paid = prices[level - 1] if level else 0.0
            ways = {
                (beside - counts[level], left): price + paid * (beside - counts[level])
                for (beside, left), price in ways.items()
                if beside >= counts[level]
            }
        best = min((price for (beside, _), price in ways.items() if beside == 0), default=np.inf)
        filled += best < np.inf
        for kernel in (_kernels.fill_epoch, _kernels.fill_epoch.py_func):
            beside = np.empty(3)
            # With less room it may only cost less, never more.
            for room, exact in ((40, True), (3, False), (1, False)):
                least, opened = np.empty((empty + 1, room + 1)), np.empty((empty + 1, room + 4))
                origins = np.empty((4, *opened.shape), np.int32)
                paid = kernel(counts, fewest, most, prices, least, opened, origins, beside)
                assert paid == pytest.approx(best) if exact else paid <= best + 1e-12
                assert np.isinf(paid) or prices @ beside == pytest.approx(paid)
    assert 10 < filled < 60  # the others leave more places empty than they may


def test_sorted_batches_under_a_budget_are_near_the_limit_of_their_epoch():
    # 10..120 by tens: (120), (110, 100), (90, 80), (70, 60, 50), (40, 30, 20), and 10, which leaves places empty.
    lengths = np.arange(10, 121, 10)
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Budget(240), order=lw.Sorted(), deal=lw.Balanced()))
    had, padding = mixing_of(lengths, plan)
    empty = int((240 // plan.padded_lengths[:, 0] - plan.batch_sizes).sum())
    limit = lw.mixing_limit(lengths, padding, budget=240, empty_places=empty)
    assert had <= limit + 1e-6 < lw.mixing_limit(lengths, padding, budget=240)


def test_empty_places_are_refused_where_they_say_nothing():
    with pytest.raises(ValueError, match=r"^`empty_places` must be left out without budget, but is 3\. For batches of"):
        lw.mixing_limit(range(1, 11), 0.1, empty_places=3)
    with pytest.raises(ValueError, match=r"^`empty_places` must be at least 0, but is -1\. Count how many"):
        lw.mixing_limit(range(1, 11), 0.1, budget=30, empty_places=-1)
    with pytest.raises(ValueError, match=r"^`budget` must be left out for steps of several batches, but is 30"):
        lw.mixing_limit(range(1, 11), 0.1, budget=30, empty_places=1, world_size=2)
    # 50 and 30, and 30 alone, which has two places more.
    with pytest.raises(ValueError, match=r"^`empty_places` must be as many as some epoch leaves empty, but is 0\."):
        lw.mixing_limit([30, 30, 50], 0.1, budget=100, empty_places=0)
    # So many that they are not looked through: the limit is that of such batches.
    lengths = lw.example_lengths(count=2_000)
    without = lw.mixing_limit(lengths, 0.1, budget=20_000)
    assert lw.mixing_limit(lengths, 0.1, budget=20_000, empty_places=10**9) == without


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_whole_numbers_of_numpy_are_taken(kind):
    lengths = np.arange(1, 1001)
    limit = lw.mixing_limit(lengths, 0.1, batch_size=kind(100), batches=kind(120))
    assert limit == lw.mixing_limit(lengths, 0.1, batch_size=100, batches=120)
