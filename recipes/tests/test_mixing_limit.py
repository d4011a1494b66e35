"""The rate-distortion limit of any batches, and how near max-entropy sorting comes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise_recipes.limits import mixing_limit
from lengthwise_recipes.limits.levels import Levels, information_of_flows, least_flows, padding_of_flows
from lengthwise_recipes.mixing import measure_mixing

pytestmark = pytest.mark.slow

BINS = 128
# By how much the estimate of mixing, from 80,000 sequences in these bins, may stand above the truth.
TOLERANCE = 0.01


def padding_and_mixing(lengths, order, epochs=8):
    """Pooled over epochs of batches of 16."""
    batching = lw.Batching(order=order, cut=lw.FixedSize(16))
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(epochs)]
    return lw.measure(plans, lengths).padding_share, measure_mixing(plans, lengths, bins=BINS)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.7])
def test_the_limit_of_a_constant_less_an_exponential_is_the_share_of_the_most_padding(share):
    # X = C - E. With probability s let T be C, else C - E' with E' like E; then X = T - s E has the law asked for, and
    # D = s times the mean of E, which is what one batch of all pads. I = log(1 / s), and there is no lower one.
    count = 1_000_000
    tail = -np.log((np.arange(count) + 0.5) / count)  # the mean of E is 1
    lengths = np.rint(1e6 - 5e4 * tail).astype(np.int64)
    spent = share * (lengths.max() - lengths.mean())
    limit = mixing_limit(lengths, spent / (lengths.mean() + spent))
    assert limit == pytest.approx(share, rel=0.02)


def test_no_law_of_three_lengths_passes_the_limit_and_one_comes_near():
    sizes, masses = np.array([10.0, 13.0, 20.0]), np.array([0.5, 0.2, 0.3])
    share = np.linspace(0, 1, 41)
    # Of the first length a share `low` stays, `middle` of the rest goes to the second; of the second `stays` stay.
    low, middle, stays = (axis.ravel() for axis in np.meshgrid(share, share, share))
    joint = np.zeros((3, 3, low.size))
    joint[0] = masses[0] * np.array([low, (1 - low) * middle, (1 - low) * (1 - middle)])
    joint[1, 1:] = masses[1] * np.array([stays, 1 - stays])
    joint[2, 2] = masses[2]
    marginal = joint.sum(axis=0)
    ratio = np.where(joint > 0, joint / (masses[:, None, None] * np.maximum(marginal, 1e-300)), 1.0)
    information = (joint * np.log(ratio)).sum(axis=(0, 1))
    padded = marginal.T @ sizes - sizes @ masses
    for spent in (0.3, 1.0, 2.0, 4.0, 6.0):
        best = np.exp(-information[padded <= spent].min())
        limit = mixing_limit([10] * 5 + [13] * 2 + [20] * 3, spent / (spent + sizes @ masses))
        assert best <= limit + 1e-12
        assert best == pytest.approx(limit, abs=0.01)


def information_by_definition(masses, flows):
    """I(X; T) of the law in which all that are open close with the same chance, by the joint histogram."""
    opened = np.append(0.0, flows) + masses
    stay = np.append(flows, 0.0) / opened
    count = len(masses)
    joint = np.zeros((count, count))
    for x in range(count):
        for t in range(x, count):
            joint[x, t] = masses[x] * np.prod(stay[x:t]) * (1.0 - stay[t])
    assert joint.sum() == pytest.approx(1.0)
    seen = joint > 0
    return joint[seen] @ np.log(joint[seen] / np.outer(masses, joint.sum(axis=0))[seen])


@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_the_information_of_flows_is_that_of_their_law_and_none_is_less(count, seed):
    chance = np.random.default_rng(seed)
    sizes, masses = np.cumsum(chance.uniform(1, 9, count)), chance.dirichlet(np.ones(count))
    levels, beta = Levels(sizes, masses, 1, sizes, sizes), float(np.exp(chance.uniform(-5, 1)))
    best, _ = least_flows(levels, beta, np.zeros(count - 1))
    assert information_of_flows(levels, best) == pytest.approx(information_by_definition(masses, best), abs=1e-12)
    height = information_of_flows(levels, best) + beta * padding_of_flows(levels, best)
    for _ in range(200):  # other flows, far and near, under the same conditions
        share = chance.uniform(0, 1) ** 3
        wild = np.sort(chance.uniform(0, 1, count - 1)) * np.cumsum(masses)[:-1]
        closed = (1 - share) * (np.cumsum(masses)[:-1] - best) + share * wild
        other = np.cumsum(masses)[:-1] - np.maximum.accumulate(closed)
        if (np.diff(np.cumsum(masses)[:-1] - other) < 0).any():
            continue
        assert information_of_flows(levels, other) + beta * padding_of_flows(levels, other) >= height - 1e-9


def test_few_bins_have_a_limit_of_their_own():
    lengths = lw.example_lengths("long-tailed")
    limits = [mixing_limit(lengths, 0.1, bins=bins) for bins in (16, 64, 256, 1024)]
    assert (np.diff(limits) < 0).all()
    assert limits[-1] == pytest.approx(mixing_limit(lengths, 0.1), abs=0.003)
    with pytest.raises(ValueError, match=r"^`bins` must be at least 2, but is 1\."):
        mixing_limit(lengths, 0.1, bins=1)


@pytest.mark.parametrize("shortest", [2_900, 10**6])
def test_the_limit_of_lengths_that_lie_close_together_is_that_of_their_differences(shortest):
    near = np.arange(1, 102)
    far = near + shortest
    assert mixing_limit(far, 0.0) == pytest.approx(1 / 101, rel=1e-3)
    for extra in (0.01, 1.0, 20.0):  # frames of padding a sequence
        limits = [mixing_limit(sizes, extra / (extra + sizes.mean())) for sizes in (near, far)]
        assert limits[1] == pytest.approx(limits[0], rel=1e-4)


def test_the_limit_rises_with_padding_to_one():
    lengths = lw.example_lengths("long-tailed", count=2_000)
    everything = 1 - lengths.mean() / lengths.max()  # all padded to the longest
    rising = [mixing_limit(lengths, share * everything) for share in (0.0, 0.05, 0.3, 0.6, 0.9)]
    assert (np.diff(rising) > 0).all()
    assert 0 < rising[0] < 0.02
    assert rising[-1] < 1
    assert mixing_limit(lengths, everything + 1e-9) == 1.0
    assert mixing_limit([5, 5, 5], 0.0) == 1.0


FEW_LENGTHS = {"two": {100: 9, 1000: 1}, "five": {80: 1, 260: 4, 440: 2, 620: 2, 800: 1}}


def of_few_lengths(tallies, count=20_000):
    """`count` lengths, each as often as it is tallied."""
    return np.repeat(np.array(list(tallies)), np.array(list(tallies.values())) * count // sum(tallies.values()))


@pytest.mark.parametrize("tallies", FEW_LENGTHS.values(), ids=FEW_LENGTHS)
def test_few_distinct_lengths_are_mixed_as_far_as_the_limit(tallies):
    lengths = of_few_lengths(tallies)
    for padding in (0.1, 0.4):
        plan = lw.make_plan(lengths, lw.Batching(padding=padding, cut=lw.FixedSize(16)))
        limit = mixing_limit(lengths, lw.measure(plan, lengths).padding_share)
        assert 0.92 * limit < measure_mixing(plan, lengths) < limit + 0.02


@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_max_entropy_comes_near_the_limit_and_does_not_pass_it(name):
    lengths = lw.example_lengths(name)
    padding, mixing = padding_and_mixing(lengths, lw.MaxEntropy(padding=0.1))
    assert 0.9 * mixing_limit(lengths, padding) < mixing < mixing_limit(lengths, padding, bins=BINS) + TOLERANCE


def test_what_has_no_limit_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^`lengths` must be of shape \[n\], n at least 1, but is \(0,\)\."):
        mixing_limit([], 0.1)
    with pytest.raises(ValueError, match=r"^`padding` must be at least 0 and at most 0\.999, but is 1\.0\."):
        mixing_limit([1, 2], 1.0)
