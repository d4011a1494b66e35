"""The limits of batches, epochs and steps: against all batchings of tiny sets, random batches, and each other."""

import functools
import itertools
import json
import math
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise_recipes.limits import batch_limit, epoch_limit, kernels, mixing_limit, step_limit
from lengthwise_recipes.limits.levels import group_levels
from lengthwise_recipes.limits.steps import _gaps, rate_in_steps


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


def counted_out(lengths, *ways):
    """The padding share and exp(-I(X; T)) of batchings that are pooled, by the definition."""
    pairs = [(lengths[i], max(lengths[j] for j in batch)) for way in ways for batch in way for i in batch]
    xs, ts = [x for x, _ in pairs], [t for _, t in pairs]
    count = len(pairs)
    information = sum(
        pairs.count(pair) / count * math.log(pairs.count(pair) * count / xs.count(pair[0]) / ts.count(pair[1]))
        for pair in set(pairs)
    )
    return 1 - sum(xs) / sum(ts), math.exp(-information)


TINY = [[1, 1, 1, 1, 9, 9, 9, 9], [1, 1, 2, 2, 3, 3, 10, 10], [5, 6, 6, 6, 20, 21, 40]]
tiny = pytest.mark.parametrize("lengths", TINY, ids=str)


@pytest.mark.parametrize("most", [2, 3])
@tiny
def test_no_batching_of_a_tiny_set_passes_the_limit_of_its_batches_or_of_its_epoch(lengths, most):
    best = {}
    for way in batchings(list(range(len(lengths))), most):
        padding, mixing = counted_out(lengths, way)
        best[round(padding, 9), len(way)] = max(mixing, best.get((round(padding, 9), len(way)), 0.0))
    for (padding, count), mixing in best.items():
        limit = epoch_limit(lengths, padding + 1e-9, batch_size=most, batches=count)
        assert mixing <= limit + 1e-6
        assert limit <= batch_limit(lengths, padding + 1e-9, batch_size=most) + 1e-9


def within(lengths, budget):
    """All batchings of a tiny set under a budget, each with the places that stay empty."""
    for way in batchings(list(range(len(lengths))), len(lengths)):
        places = [max(1, budget // max(lengths[each] for each in batch)) for batch in way]
        if all(len(batch) <= held for batch, held in zip(way, places, strict=True)):
            yield way, sum(places) - len(lengths)


@pytest.mark.parametrize("budget", [10, 40])
@tiny
def test_no_batching_of_a_tiny_set_under_a_budget_passes_its_limits(lengths, budget):
    best = {}
    for way, empty in within(lengths, budget):
        if empty > 2:  # then the limit is nearly that of such batches
            continue
        padding, mixing = counted_out(lengths, way)
        best[round(padding, 9), empty] = max(mixing, best.get((round(padding, 9), empty), 0.0))
    for (padding, empty), mixing in best.items():
        limit = epoch_limit(lengths, padding + 1e-9, budget=budget, empty_places=empty)
        assert mixing <= limit + 1e-6
        assert limit <= batch_limit(lengths, padding + 1e-9, budget=budget) + 1e-9


def test_no_pool_of_epochs_passes_the_limit():
    # Two batchings of eight lengths into three batches of at most 3, pooled: T tells less of X.
    lengths = [1, 2, 3, 5, 8, 13, 21, 34]
    ways = [way for way in batchings(list(range(8)), 3) if len(way) == 3]
    ways = sorted(ways, key=lambda way: sum(len(batch) * lengths[max(batch)] for batch in way))[:10]  # pad the least
    lower = 0
    for pair in combinations(ways, 2):
        padding, mixing = counted_out(lengths, *pair)
        limit = epoch_limit(lengths, padding + 1e-9, batch_size=3, batches=3)
        assert mixing <= limit + 1e-6
        lower += limit < 0.99 * batch_limit(lengths, padding + 1e-9, batch_size=3)
    assert lower > 20  # the limit of an epoch says more


def test_at_the_least_padding_only_sorted_batches_are_left():
    # 1..12 in three batches of 4: T is 4, 8 or 12, and tells which third X is of.
    lengths = np.arange(1, 13)
    least = 1 - lengths.mean() / 8
    assert epoch_limit(lengths, least, batch_size=4, batches=3) == pytest.approx(1 / 3, rel=1e-3)
    assert batch_limit(lengths, least, batch_size=4) > 0.4
    # With a fourth batch it may be 12 again, or another.
    assert epoch_limit(lengths, least, batch_size=4, batches=4) > 0.34


@functools.cache
def random_batches(name, bins, batch):
    """The padding share, and the mixing, of endless random batches, lengths as those of `bins` groups."""
    levels = group_levels(lw.example_lengths(name).astype(np.float64), bins)
    sizes, masses = levels.sizes, levels.masses
    below = np.append(0.0, np.cumsum(masses))
    marginal = np.diff(below**batch)  # T is the longest of `batch`
    # One of the batch is the sequence itself: P(T <= t | X = x) is P(up to t)^(batch - 1) for t >= x.
    reached = np.triu(np.broadcast_to(below[1:] ** (batch - 1), (len(sizes), len(sizes))))
    joint = masses[:, None] * np.diff(reached, axis=1, prepend=0.0)
    seen = joint > 1e-250  # what is smaller carries nothing, and divides by a marginal of 0
    information = joint[seen] @ np.log(joint[seen] / np.outer(masses, marginal)[seen])
    return 1 - float(sizes @ masses) / float(sizes @ marginal), math.exp(-information)


@pytest.mark.parametrize("batch", [2, 16, 256])
@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_random_batches_lie_under_the_limit_and_near_it(name, batch):
    padding, mixing = random_batches(name, 128, batch)
    lengths = lw.example_lengths(name)
    limit = batch_limit(lengths, padding, batch_size=batch, bins=128)
    assert mixing < limit < 1.13 * mixing
    assert limit <= mixing_limit(lengths, padding, bins=128)


@pytest.mark.parametrize("padding", [0.02, 0.3])
def test_the_limit_rises_with_the_batch_to_that_of_endless_batches(padding):
    lengths = lw.example_lengths("long-tailed", count=1_000)
    whole = mixing_limit(lengths, padding)
    limits = [batch_limit(lengths, padding, batch_size=batch) for batch in (1, 8, 64, 10**9)]
    budgets = [batch_limit(lengths, padding, budget=budget) for budget in (int(lengths.max()), 20_000, 10**9)]
    assert (np.diff(limits) > -1e-4).all()
    assert (np.diff(budgets) > -1e-4).all()
    assert limits[-1] == pytest.approx(whole, rel=1e-3)
    assert budgets[-1] == pytest.approx(whole, rel=1e-3)


def setting(levels):
    """Decays at a price of 0.01 a frame, shares, and batches of at most 16, but of one of the longest."""
    most = np.full(len(levels.sizes), 16.0)
    most[-1] = 1.0
    return np.exp(-0.01 * np.diff(levels.sizes)), levels.masses, most


def test_any_weights_prove_a_bound():
    levels = group_levels(lw.example_lengths("speech").astype(np.float64), 64)
    chance = np.random.default_rng(0)
    bounds = [
        kernels.information_in_batches(*setting(levels), np.exp(chance.normal(0, 1, len(levels.sizes))))
        for _ in range(20)
    ]
    marginal, weights = levels.masses.copy(), np.empty(len(levels.sizes))
    kernels.mix_in_batches(*setting(levels), 3_000, marginal, np.ones((2, len(weights))), weights)
    best = kernels.information_in_batches(*setting(levels), weights)
    assert max(bounds) < best
    assert kernels.information_in_batches.py_func(*setting(levels), weights) == pytest.approx(best, rel=1e-12)


LEVELS = st.lists(st.integers(1, 60), min_size=2, max_size=6, unique=True)


def levels_of(sizes, counts):
    return group_levels(np.repeat(np.array(sizes, float), counts), 1_000)


def all_sets(count, batches):
    return [np.array(each) for size in range(1, batches + 1) for each in itertools.combinations(range(count), size)]


def rate_by_all_sets(levels, target, batches):
    """R(target) by Blahut and Arimoto over every set, at the best of many slopes."""
    gaps = np.stack([_gaps(levels.sizes, each) for each in all_sets(len(levels.sizes), batches)], axis=1)
    best = 0.0
    for beta in np.geomspace(1e-4, 10, 80):
        decay = np.exp(-beta * gaps)
        law = np.full(decay.shape[1], 1 / decay.shape[1])
        for _ in range(2_000):
            sums = (levels.masses / (decay @ law)) @ decay
            law = law * sums
            if sums.max() < 1 + 1e-4:
                break
        height = -levels.masses @ np.log(decay @ law) - np.log(sums.max())
        best = max(best, height - beta * target)
    return best


@settings(deadline=None, max_examples=5)
@given(sizes=LEVELS, batches=st.integers(1, 3), share=st.floats(0.02, 0.5), seed=st.integers(0, 99))
def test_the_limit_of_steps_is_that_of_all_sets(sizes, batches, share, seed):
    counts = np.random.default_rng(seed).integers(1, 9, len(sizes))
    levels = levels_of(sizes, counts)
    target = float(levels.sizes @ levels.masses) * share / (1 - share)
    assert rate_in_steps(levels, target, batches) == pytest.approx(rate_by_all_sets(levels, target, batches), abs=8e-3)


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


def test_steps_tell_nothing_from_the_padding_of_the_best_buckets_on():
    lengths = np.random.default_rng(0).choice(np.arange(10, 200, 5), 2_000)  # 38 lengths: none are grouped
    edges = lw.optimal_edges(lengths, 5)
    padding = 1 - lengths.mean() / edges[np.searchsorted(edges, lengths)].mean()
    assert step_limit(lengths, padding + 1e-6, 5) == 1
    assert step_limit(lengths, padding * 0.9, 5) < 0.998


def test_more_batches_a_step_tell_less():
    lengths = lw.example_lengths("long-tailed", count=2_000)
    limits = [step_limit(lengths, 0.05, batches, bins=48) for batches in (1, 2, 4, 16)]
    assert limits == sorted(limits)
    assert limits[0] == pytest.approx(mixing_limit(lengths, 0.05, bins=48), rel=4e-3)
    assert limits[-1] > 0.9


def test_what_has_no_limit_is_refused_in_one_sentence():
    for options, message in (
        ({"batch_size": 2, "batches": 1}, "`batches` must be at least 2, but is 1. 3 sequences need 2 batches of 2."),
        ({"batches": 3}, "`batches` must be given with a batch_size, but is 3. Give `batch_size` and `batches`, or "),
        # 50 and 30, and 30 alone, which has two places more.
        ({"budget": 100, "empty_places": 0}, "`empty_places` must be at least the fewest of any epoch, but is 0. "),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            epoch_limit([30, 30, 50], 0.1, **options)


ROOT = Path(__file__).parents[1]
BOUNDS = ("batch_size", "budget")


def results(what, place=-1):
    return json.loads(sorted((ROOT / "results").glob(f"{what}_*.json"))[place].read_text(encoding="utf-8"))["rows"]


def by_setting(rows):
    """The rows on batches by lengths, in the order of their files, cut and strategy."""
    names = list(dict.fromkeys(row["lengths"] for row in rows))
    batches = [row for row in rows if "mixing" in row]
    return {(names.index(row["lengths"]), *map(row.get, ("batch_size", "budget", "strategy"))): row for row in batches}


def test_the_page_says_what_was_measured():
    page = " ".join((ROOT.parent / "docs" / "theory.md").read_text(encoding="utf-8").split())
    found, pooled = by_setting(results("limits")), by_setting(results("limits", 0))
    ours = {setting: row for setting, row in found.items() if setting[-1].startswith("max-entropy")}
    shares = [[row["mixing"] / row["epoch_limit"] for row in ours.values() if bound in row] for bound in BOUNDS]
    near, far = ([sum(share >= least for share in own) for own in shares] for least in (0.95, 0.8))
    for place in (0, 1):
        near_and_far = f"at {near[place]} of {len(shares[place])} settings, and at least 80 % at {far[place]}."
        assert near_and_far in page
    assert f"The least share is {100 * min(shares[1]):.0f} %, at the padding" in page
    asked = {
        setting: float(setting[-1].partition(":")[2]) / found[(*setting[:-1], "sorted")]["padding_share"]
        for setting in ours
    }
    others = [setting for setting, row in ours.items() if setting[1] and row["mixing"] < 0.8 * row["epoch_limit"]]
    less = [asked[setting] < 2 for setting in others]
    assert f"At the other {len(less)}, all but one, less than twice" in page
    assert less.count(False) == 1
    more = [
        pooled[setting]["mixing"] / row["mixing"] - 1
        for setting, row in ours.items()
        if asked[setting] >= 2 and abs(row["padding_share"] - pooled[setting]["padding_share"]) < 0.003
    ]
    assert f"mixed {100 * np.median(more):.0f} % more at the median of {len(more)} settings" in page
    assert f"and up to {100 * max(more):.0f} % more" in page
    steps = [row["step_mixing"] / row["limit"] for row in results("limits") if row["strategy"].startswith("MaxEntropy")]
    near_steps = f"at {sum(share >= 0.95 for share in steps)} of {len(steps)} settings"
    assert f"{near_steps}, and at least {100 * min(steps):.0f} % at all." in page
