"""The limit of steps of k batches, against all sets of k lengths, the limit of one batch, and the best buckets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.rate_distortion import group_levels
from lengthwise.measures.limit import step_limit_curve
from lengthwise.measures.step_limit import _costliest_set, _gaps, rates_in_steps

LEVELS = st.lists(st.integers(1, 60), min_size=2, max_size=7, unique=True)


def levels_of(sizes, counts):
    return group_levels(np.repeat(np.array(sizes, float), counts), 1_000)


def rate_in_steps(levels, target, batches):
    return rates_in_steps(levels, [target], batches, near=2e-4)[0]


def all_sets(count, batches):
    return [np.array(each) for size in range(1, batches + 1) for each in itertools.combinations(range(count), size)]


def rate_by_all_sets(levels, target, batches):
    """R(target) by Blahut and Arimoto over every set, at the best of many slopes."""
    gaps = np.stack([_gaps(levels.sizes, each) for each in all_sets(len(levels.sizes), batches)], axis=1)
    best = 0.0
    for beta in np.geomspace(1e-4, 10, 120):
        decay = np.exp(-beta * gaps)
        law = np.full(decay.shape[1], 1 / decay.shape[1])
        for _ in range(3_000):
            sums = (levels.masses / (decay @ law)) @ decay
            law = law * sums
            if sums.max() < 1 + 1e-4:
                break
        height = -levels.masses @ np.log(decay @ law) - np.log(sums.max())
        best = max(best, height - beta * target)
    return best


@settings(deadline=None, max_examples=12)
@given(sizes=LEVELS, batches=st.integers(1, 3), share=st.floats(0.02, 0.5), seed=st.integers(0, 99))
def test_the_limit_is_that_of_all_sets(sizes, batches, share, seed):
    counts = np.random.default_rng(seed).integers(1, 9, len(sizes))
    levels = levels_of(sizes, counts)
    target = float(levels.sizes @ levels.masses) * share / (1 - share)
    found = rate_in_steps(levels, target, batches)
    wanted = rate_by_all_sets(levels, target, batches)
    assert found == pytest.approx(wanted, abs=6e-3)


@settings(deadline=None)
@given(sizes=LEVELS, batches=st.integers(1, 4), seed=st.integers(0, 99))
def test_no_set_costs_more_than_the_one_found(sizes, batches, seed):
    lengths = np.sort(np.array(sizes, float))
    prices = np.random.default_rng(seed).exponential(size=len(lengths))
    most, chosen = _costliest_set(lengths, prices, 0.1, batches)
    sums = [prices @ np.exp(-0.1 * _gaps(lengths, each)) for each in all_sets(len(lengths), batches)]
    assert most == pytest.approx(max(sums))
    assert prices @ np.exp(-0.1 * _gaps(lengths, chosen)) == pytest.approx(most)
    assert len(chosen) <= batches


@settings(deadline=None, max_examples=40)
@given(
    count=st.integers(1, 60),
    batches=st.integers(1, 12),
    beta=st.sampled_from([1e-9, 1e-4, 0.02, 3.0]),
    seed=st.integers(0, 99),
)
def test_the_kernel_finds_what_trying_every_last_edge_finds(count, batches, beta, seed):
    chance = np.random.default_rng(seed)
    sizes = np.cumsum(chance.integers(1, 40, count)).astype(float)
    prices = chance.exponential(size=count) * (chance.random(count) < 0.8)
    best = {-1: 0.0}  # of the levels up to each, -1 for none, in at most so many edges
    for _ in range(batches):
        best |= {
            last: max(
                sum_before
                + float(prices[first + 1 : last + 1] @ np.exp(-beta * (sizes[last] - sizes[first + 1 : last + 1])))
                for first, sum_before in best.items()
                if first < last
            )
            for last in range(count)
        }
    for kernel in (_kernels.costliest_edges, _kernels.costliest_edges.py_func):
        edges = np.empty(batches, np.int64)
        most, found = kernel(sizes, prices, beta, edges)
        chosen = edges[batches - found :]
        assert most == pytest.approx(max(best.values()), rel=1e-12, abs=1e-12)
        assert (np.diff(chosen) > 0).all()
        assert prices @ np.exp(-beta * _gaps(sizes, chosen)) == pytest.approx(most, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("padding", [0.02, 0.1, 0.3, 0.6])
def test_steps_of_one_batch_have_the_limit_of_batches(padding):
    lengths = lw.example_lengths("long-tailed", count=3_000).astype(float)
    levels = group_levels(lengths, 64)
    target = float(lengths.mean()) * padding / (1 - padding)
    assert np.exp(-rate_in_steps(levels, target, 1)) == pytest.approx(
        lw.mixing_limit(lengths.astype(int), padding, bins=64), rel=4e-3
    )


@pytest.mark.parametrize("ranks", [2, 5, 9])
def test_steps_tell_nothing_from_the_padding_of_the_best_buckets_on(ranks):
    lengths = np.random.default_rng(0).choice(np.arange(10, 200, 5), 2_000)  # 38 lengths: none are grouped
    edges = lw.optimal_edges(lengths, ranks)
    padding = 1 - lengths.mean() / edges[np.searchsorted(edges, lengths)].mean()
    assert lw.mixing_limit(lengths, padding + 1e-6, world_size=ranks) == 1
    assert lw.mixing_limit(lengths, padding * 0.9, world_size=ranks) < 0.998
    assert lw.mixing_limit(lengths, padding + 1e-6, micro_batches=ranks) == 1


def test_more_batches_a_step_tell_less():
    lengths = lw.example_lengths("long-tailed", count=2_000)
    limits = [lw.mixing_limit(lengths, 0.05, world_size=ranks, bins=48) for ranks in (1, 2, 4, 8, 16)]
    assert limits == sorted(limits)
    assert limits[0] < 0.2
    assert limits[-1] > 0.9


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), batches=st.integers(1, 4))
def test_no_steps_are_above_it(seed, batches):
    chance = np.random.default_rng(seed)
    levels = levels_of(range(10, 80, 10), chance.integers(1, 9, 7))
    sets = [np.unique(np.append(chance.integers(0, 7, batches - 1), 6)) for _ in range(5)]
    gaps = np.stack([_gaps(levels.sizes, each) for each in sets], axis=1)
    taken = chance.dirichlet(np.ones(5), size=7)  # which of the five steps a length goes to
    joint = levels.masses[:, None] * taken
    information = float((joint * np.log(taken / joint.sum(axis=0))).sum())
    assert information >= rate_in_steps(levels, float((joint * gaps).sum()), batches) - 1e-9


def test_what_has_no_limit_is_refused_in_one_sentence():
    message = (
        "`batch_size` must be left out for steps of several batches, but is 16. Leave it out: the limit then holds for "
        "batches of any size."
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        lw.mixing_limit([1, 2, 3], 0.1, batch_size=16, world_size=2)
    with pytest.raises(ValueError, match=r"^`world_size` must be at least 1, but is 0"):
        lw.mixing_limit([1, 2, 3], 0.1, world_size=0)


def test_the_limit_of_steps_tells_128_groups_of_lengths_apart():
    lengths = np.arange(100, 300)
    assert lw.mixing_limit(lengths, 0.3, world_size=2) == lw.mixing_limit(lengths, 0.3, world_size=2, bins=128)


def test_a_curve_is_the_limit_at_each_padding():
    lengths = [1, 2, 2, 4, 7, 7, 11, 20]
    paddings = [0.02, 0.1, 0.25]
    curve = step_limit_curve(lengths, paddings, batches=2, bins=32, near=0.003)
    alone = [lw.mixing_limit(lengths, padding, bins=32, world_size=2) for padding in paddings]
    np.testing.assert_allclose(curve, alone, atol=0.006)


@pytest.mark.parametrize("batches", [1, 2, 4])
def test_a_curve_is_bounded_as_its_points_are(batches):
    levels = levels_of([1, 2, 4, 7, 11, 20], [4, 2, 3, 1, 1, 1])
    targets = [0.0, 0.2, 0.7, 1.5, 3.0, 9.0]
    curve = np.exp([-rate for rate in rates_in_steps(levels, targets, batches, near=0.003)])
    alone = np.exp([-rate_in_steps(levels, target, batches) for target in targets])
    np.testing.assert_allclose(curve, alone, atol=0.006)  # 0.003, and what each search may be too high
    assert (np.diff(curve) >= -1e-12).all()
