"""The rate-distortion limit, the padding that max-entropy sorting is fitted to, and how near the limit it comes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.measures.limit import Levels, information_of_flows, least_flows, padding_of_flows

pytestmark = pytest.mark.slow

BINS = 128
# By how much the estimate of mixing, from 80,000 sequences in these bins, may stand above the truth.
TOLERANCE = 0.01


def padding_and_mixing(lengths, order, epochs=8):
    """Pooled over epochs of batches of 16."""
    batching = lw.Batching(order=order, cut=lw.FixedSize(16))
    measures = lw.measure([lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(epochs)], lengths, bins=BINS)
    return measures.padding_share, measures.mixing


@pytest.mark.parametrize("share", [0.01, 0.1, 0.7])
def test_the_limit_of_a_constant_less_an_exponential_is_the_share_of_the_most_padding(share):
    # X = C - E. With probability s let T be C, else C - E' with E' like E; then X = T - s E has the law asked for, and
    # D = s times the mean of E, which is what one batch of all pads. I = log(1 / s), and there is no lower one.
    count = 1_000_000
    tail = -np.log((np.arange(count) + 0.5) / count)  # the mean of E is 1
    lengths = np.rint(1e6 - 5e4 * tail).astype(np.int64)
    spent = share * (lengths.max() - lengths.mean())
    limit = lw.mixing_limit(lengths, spent / (lengths.mean() + spent))
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
        limit = lw.mixing_limit([10] * 5 + [13] * 2 + [20] * 3, spent / (spent + sizes @ masses))
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
    levels, beta = Levels(sizes, masses), float(np.exp(chance.uniform(-5, 1)))
    best = least_flows(levels, beta)
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
    limits = [lw.mixing_limit(lengths, 0.1, bins=bins) for bins in (16, 64, 256, 1024)]
    assert (np.diff(limits) < 0).all()
    assert limits[-1] == pytest.approx(lw.mixing_limit(lengths, 0.1), abs=0.003)
    with pytest.raises(ValueError, match=r"^`bins` must be at least 2, but is 1\."):
        lw.mixing_limit(lengths, 0.1, bins=1)


@pytest.mark.parametrize("shortest", [2_900, 10**6])
def test_the_limit_of_lengths_that_lie_close_together_is_that_of_their_differences(shortest):
    near = np.arange(1, 102)
    far = near + shortest
    assert lw.mixing_limit(far, 0.0) == pytest.approx(1 / 101, rel=1e-3)
    for extra in (0.01, 1.0, 20.0):  # frames of padding a sequence
        limits = [lw.mixing_limit(sizes, extra / (extra + sizes.mean())) for sizes in (near, far)]
        assert limits[1] == pytest.approx(limits[0], rel=1e-4)


def test_the_limit_rises_with_padding_to_one():
    lengths = lw.example_lengths("long-tailed", count=2_000)
    everything = 1 - lengths.mean() / lengths.max()  # all padded to the longest
    rising = [lw.mixing_limit(lengths, share * everything) for share in (0.0, 0.05, 0.3, 0.6, 0.9)]
    assert (np.diff(rising) > 0).all()
    assert 0 < rising[0] < 0.02
    assert rising[-1] < 1
    assert lw.mixing_limit(lengths, everything + 1e-9) == 1.0
    assert lw.mixing_limit([5, 5, 5], 0.0) == 1.0


FEW_LENGTHS = {"two": {100: 9, 1000: 1}, "five": {80: 1, 260: 4, 440: 2, 620: 2, 800: 1}}


def of_few_lengths(tallies, count=20_000):
    """`count` lengths, each as often as it is tallied."""
    return np.repeat(np.array(list(tallies)), np.array(list(tallies.values())) * count // sum(tallies.values()))


def padding_had(lengths, order, cut, epochs=3):
    """Pooled over epochs: where few batches are padded, chance decides how many."""
    plans = [lw.make_plan(lengths, lw.Batching(order=order, cut=cut), epoch=epoch) for epoch in range(epochs)]
    return 1.0 - epochs * lengths.sum() / sum(plan.padded_lengths[:, 0] @ plan.batch_sizes for plan in plans)


@pytest.mark.parametrize("tallies", FEW_LENGTHS.values(), ids=FEW_LENGTHS)
def test_few_distinct_lengths_are_mixed_as_far_as_the_limit(tallies):
    lengths = of_few_lengths(tallies)
    for padding in (0.1, 0.4):
        plan = lw.make_plan(lengths, lw.Batching(padding=padding, cut=lw.FixedSize(16)))
        had = lw.measure(plan, lengths)
        limit = lw.mixing_limit(lengths, had.padding_share)
        assert 0.92 * limit < had.mixing < limit + 0.02


@settings(max_examples=12, derandomize=True, deadline=None)
@given(
    # From 20 on: of two or three batches none has a padding that was asked for.
    st.dictionaries(st.integers(20, 1_000), st.integers(1, 20), min_size=2, max_size=6),
    st.sampled_from([lw.FixedSize(16), lw.Budget(16_000), lw.Budget(16_000, max_sequences=40)]),
    st.floats(0.0, 1.0),
)
def test_any_few_lengths_are_padded_as_asked_between_sorted_and_random(tallies, cut, share):
    lengths = of_few_lengths(tallies)
    least, most = (padding_had(lengths, order, cut) for order in (lw.Sorted(), lw.Shuffled()))
    padding = least + share * (most - least)
    assert padding_had(lengths, lw.MaxEntropy(padding=padding), cut) == pytest.approx(padding, abs=0.02)


def test_noise_of_a_scale_is_exponential_and_hardly_any_sorts():
    lengths, choices = lw.example_lengths(count=5_000), {"cut": lw.FixedSize(1), "deal": lw.InTurn()}
    plan = lw.make_plan(lengths, lw.Batching(order=lw.MaxEntropy(scale=50.0), **choices))
    assert abs(np.corrcoef(np.arange(5_000), lengths[plan.sequences])[0, 1]) > 0.8
    # The longest of 5,000 noises is about 50 log(5,000) = 426, and hardly ever above 800.
    ahead = np.maximum.accumulate(lengths[plan.sequences])
    assert 200 < (ahead - lengths[plan.sequences]).max() < 800
    tiny = lw.Batching(order=lw.MaxEntropy(scale=5e-324), arrange=lw.InOrder(), **choices)
    assert lw.make_plan([9, 4, 7, 1], tiny).sequences.tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_max_entropy_comes_near_the_limit_and_does_not_pass_it(name):
    lengths = lw.example_lengths(name)
    padding, mixing = padding_and_mixing(lengths, lw.MaxEntropy(padding=0.1))
    assert 0.9 * lw.mixing_limit(lengths, padding) < mixing < lw.mixing_limit(lengths, padding, bins=BINS) + TOLERANCE
