"""The limit of batches of a given size: against all batchings of tiny sets, random batches, and endless batches."""

import functools
import math
import warnings
from itertools import combinations

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.rate_distortion import ends_of_levels, group_levels
from lengthwise.measures.batch_limit import rate_in_batches
from lengthwise.planning.joint import mixing_of_counts


def batchings(members, most):
    """Every way to part `members` into batches of at most `most`."""
    if not members:
        yield []
        return
    first, *rest = members
    for size in range(min(most, len(members))):
        for others in combinations(rest, size):
            left = [each for each in rest if each not in others]
            yield from ([[first, *others], *further] for further in batchings(left, most))


def counted_out(lengths, batches):
    """The padding share and exp(-I(X; T)) of batches, by the definition."""
    pairs = [(lengths[each], max(lengths[other] for other in batch)) for batch in batches for each in batch]
    xs, ts = [x for x, _ in pairs], [t for _, t in pairs]
    count = len(pairs)
    information = sum(
        pairs.count(pair) / count * math.log(pairs.count(pair) * count / xs.count(pair[0]) / ts.count(pair[1]))
        for pair in set(pairs)
    )
    return 1 - sum(xs) / sum(ts), math.exp(-information)


def mixing_in_groups(lengths, plans, bins):
    """exp(-I) of plans in the groups that the limit knows: half of equal mass, half of equal width."""
    starts, _ = ends_of_levels(lengths.astype(np.float64), bins)
    longest = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    own = np.concatenate([lengths[plan.sequences] for plan in plans])
    row, column = (np.searchsorted(starts, each, side="right") - 1 for each in (own, longest))
    cells = np.bincount(row * len(starts) + column, minlength=len(starts) ** 2).reshape(-1, len(starts))
    return mixing_of_counts(cells.astype(np.float64), len(own))


TINY = [
    [1, 2, 3, 4, 5, 6, 7],
    [1, 1, 1, 1, 9, 9, 9, 9],
    [1, 1, 2, 2, 3, 3, 10, 10],
    [5, 6, 6, 6, 20, 21, 40],
    [3, 3, 3, 3, 3, 3, 3, 50],
]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("lengths", TINY, ids=str)
def test_no_batching_of_a_tiny_set_passes_the_limit(lengths, most):
    best = {}
    for batches in batchings(list(range(len(lengths))), most):
        padding, mixing = counted_out(lengths, batches)
        best[round(padding, 9)] = max(mixing, best.get(round(padding, 9), 0.0))
    limit = {padding: lw.mixing_limit(lengths, padding + 1e-9, batch_size=most) for padding in best}
    assert all(mixing <= limit[padding] + 1e-6 for padding, mixing in best.items())
    if most == 1:
        assert best == {0.0: pytest.approx(limit[0.0])}


def test_some_batching_reaches_the_limit():
    # Two short and two long in batches of 2: each long one pads a short one, and T = 9 always. Nothing is told.
    assert lw.mixing_limit([1, 1, 9, 9], 4 / 9, batch_size=2) == pytest.approx(1.0, abs=1e-4)
    # Of four lengths, two may pad the other two: I is at least that of T = 9 for all, of which half are long.
    assert lw.mixing_limit([1, 1, 1, 9], 0.6, batch_size=2) < 0.9


@functools.cache
def random_batches(name, bins, batch):
    """The padding share, and the mixing, of endless random batches, lengths as those of `bins` groups."""
    sizes, masses, _ = group_levels(lw.example_lengths(name).astype(np.float64), bins)
    below = np.append(0.0, np.cumsum(masses))
    marginal = np.diff(below**batch)  # T is the longest of `batch`
    # One of the batch is the sequence itself: P(T <= t | X = x) is P(up to t)^(batch - 1) for t >= x.
    reached = np.triu(np.broadcast_to(below[1:] ** (batch - 1), (len(sizes), len(sizes))))
    joint = masses[:, None] * np.diff(reached, axis=1, prepend=0.0)
    seen = joint > 1e-250  # what is smaller carries nothing, and divides by a marginal of 0
    information = joint[seen] @ np.log(joint[seen] / np.outer(masses, marginal)[seen])
    assert joint.sum(axis=0) == pytest.approx(marginal)
    return 1 - float(sizes @ masses) / float(sizes @ marginal), math.exp(-information)


@pytest.mark.parametrize("batch", [2, 4, 16, 64, 256])
@pytest.mark.parametrize("bins", [128, 1024])
@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_random_batches_lie_under_the_limit_and_near_it(name, bins, batch):
    padding, mixing = random_batches(name, bins, batch)
    lengths = lw.example_lengths(name)
    limit = lw.mixing_limit(lengths, padding, batch_size=batch, bins=bins)
    assert mixing < limit
    assert limit < 1.13 * mixing
    assert limit <= lw.mixing_limit(lengths, padding, bins=bins)


@pytest.mark.parametrize("padding", [0.0, 0.02, 0.1, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_the_limit_rises_with_the_batch_to_that_of_endless_batches(name, padding):
    lengths = lw.example_lengths(name, count=2_000)
    limits = [lw.mixing_limit(lengths, padding, batch_size=batch) for batch in (1, 2, 8, 64, 10**4, 10**9)]
    assert (np.diff(limits) > -1e-4).all()
    assert limits[-1] == pytest.approx(lw.mixing_limit(lengths, padding), rel=1e-3)


def test_an_endless_batch_needs_the_same_information_by_iteration():
    levels = group_levels(lw.example_lengths("long-tailed").astype(np.float64), 200)
    mean = levels.sizes @ levels.masses
    for padding in (0.05, 0.2, 0.5):
        limit = lw.mixing_limit(lw.example_lengths("long-tailed"), padding, bins=200)
        rate = rate_in_batches(levels, float(mean * padding / (1 - padding)), np.full(len(levels.sizes), 1e9))
        assert rate == pytest.approx(-math.log(limit), abs=2e-3)
        assert rate <= -math.log(limit) + 1e-9


def setting(levels):
    """Decays at a price of 0.01 a frame, shares, and batches of at most 16, but of one of the longest."""
    most = np.full(len(levels.sizes), 16.0)
    most[-1] = 1.0
    return np.exp(-0.01 * np.diff(levels.sizes)), levels.masses, most


def test_any_weights_prove_a_bound():
    levels = group_levels(lw.example_lengths("speech").astype(np.float64), 64)
    chance = np.random.default_rng(0)
    bounds = [
        _kernels.information_in_batches(*setting(levels), np.exp(chance.normal(0, 1, len(levels.sizes))))
        for _ in range(20)
    ]
    weights = iterate(_kernels.mix_in_batches, levels, 3_000)
    best = _kernels.information_in_batches(*setting(levels), weights)
    assert max(bounds) < best
    assert _kernels.information_in_batches.py_func(*setting(levels), weights) == pytest.approx(best, rel=1e-12)


def test_the_iteration_is_the_same_in_plain_python():
    levels = group_levels(lw.example_lengths("speech").astype(np.float64), 64)
    found, again = (iterate(each, levels, 30) for each in (_kernels.mix_in_batches, _kernels.mix_in_batches.py_func))
    assert found == pytest.approx(again, rel=1e-9)


def iterate(kernel, levels, rounds):
    marginal, weights = levels.masses.copy(), np.empty(len(levels.sizes))
    kernel(*setting(levels), rounds, marginal, np.ones((2, len(weights))), weights)
    return weights


@pytest.mark.parametrize("budget", [10, 21, 40, 60])
def test_no_batching_of_tiny_sets_within_a_budget_passes_its_limit(budget):
    lower = 0
    for lengths in TINY:
        best = {}
        for batches in batchings(list(range(len(lengths))), len(lengths)):
            if all(len(batch) == 1 or len(batch) * max(lengths[each] for each in batch) <= budget for batch in batches):
                padding, mixing = counted_out(lengths, batches)
                best[round(padding, 9)] = max(mixing, best.get(round(padding, 9), 0.0))
        for padding, mixing in best.items():
            limit = lw.mixing_limit(lengths, padding + 1e-9, budget=budget)
            assert mixing <= limit + 1e-6
            lower += limit < 0.95 * lw.mixing_limit(lengths, padding + 1e-9)
    assert lower  # it says more than the limit of endless batches


@pytest.mark.parametrize("padding", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("bins", [None, 300])
def test_the_limit_of_a_budget_lies_between_those_of_its_smallest_and_its_endless_batches(padding, bins):
    lengths = lw.example_lengths("long-tailed", count=2_000)
    budgets = (int(lengths.max()), 3 * int(lengths.max()), 20_000, 10**9)
    limits = [lw.mixing_limit(lengths, padding, budget=budget, bins=bins) for budget in budgets]
    assert (np.diff(limits) > -1e-4).all()
    assert limits[-1] == pytest.approx(lw.mixing_limit(lengths, padding, bins=bins), rel=1e-3)
    assert limits[0] > lw.mixing_limit(lengths, padding, batch_size=1, bins=bins)
    # Of both bounds the lower one holds.
    both = lw.mixing_limit(lengths, padding, batch_size=4, budget=20_000, bins=bins)
    assert both <= 1e-3 + min(lw.mixing_limit(lengths, padding, batch_size=4, bins=bins), limits[2])


def test_a_budget_in_another_unit_is_doubted_once():
    samples = 160 * lw.example_lengths("speech", count=50)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for padding in (0.1, 0.2):
            lw.mixing_limit(samples, padding, budget=20_000)
    (doubt,) = told
    assert doubt.filename == __file__
    assert "50 of 50 sequences are over it: give it in the unit of the lengths. 16 sequences " in str(doubt.message)


def test_a_budget_below_every_length_leaves_each_sequence_alone():
    lengths = np.arange(10, 30)
    assert lw.mixing_limit(lengths, 0.2, budget=5) == pytest.approx(1 / 20)


@pytest.mark.parametrize("padding", [0.05, 0.1, 0.2, 0.4])
@pytest.mark.slow
def test_max_entropy_under_a_budget_comes_near_its_limit(padding):
    lengths = lw.example_lengths("long-tailed")
    cut = lw.Budget(16 * lengths.mean())
    batching = lw.Batching(cut=cut, order=lw.MaxEntropy(padding=padding), deal=lw.Mixed())
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(60)]
    had = lw.measure(plans, lengths).padding_share
    limit = lw.mixing_limit(lengths, had, budget=cut.budget, bins=1024)
    assert 0.94 * limit < mixing_in_groups(lengths, plans, 1024) < limit


def test_a_batch_of_no_sequence_is_refused():
    with pytest.raises(ValueError, match=r"^`batch_size` must be at least 1, but is 0\. Give the most sequences"):
        lw.mixing_limit([1, 2, 3], 0.1, batch_size=0)
    with pytest.raises(
        ValueError, match=r"^`budget` must be finite and above 0, but is 0\. Give the most padded frames of a batch"
    ):
        lw.mixing_limit([1, 2, 3], 0.1, budget=0)
    assert lw.mixing_limit([5, 5, 5], 0.0, batch_size=2) == 1.0
