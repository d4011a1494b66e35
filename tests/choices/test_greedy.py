"""Greedy cuts: a batch takes the next sequence exactly if its cost allows, by coefficients and by calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.greedy import Limits, cut_greedily, number_parts

NO_BOUNDARIES = np.empty(0, np.int64)
COEFFICIENTS = ("linear", "quadratic", "per_sequence", "per_batch", "per_length")


def test_a_cut_by_itself_drops_what_is_over_the_budget_and_not_what_equals_it():
    lengths = np.array([[4], [11], [10], [5], [5], [5]])
    for cost in (lw.Padded(), lambda counts, padded: counts * padded[:, 0]):
        rules = {"cost": cost, "longest": np.array([11])}
        kept, offsets = lw.Budget(10, oversize="drop")(lengths, np.array([4]), **rules)
        assert kept.tolist() == [0, 2, 3, 4, 5]
        # A boundary before position 4, the fourth of those that stay: 5 and the two fives behind it do not meet.
        assert offsets.tolist() == [0, 1, 2, 3, 5]


@settings(max_examples=200, derandomize=True)
@given(
    st.integers(1, 3).flatmap(lambda dims: st.lists(st.tuples(*[st.integers(1, 99)] * dims), min_size=1, max_size=60)),
    st.lists(st.integers(1, 59), max_size=4),  # twice the same, where a bucket is empty
    st.tuples(*[st.sampled_from([0.0, 0.25, 1.0, 1.5])] * 5),
    st.one_of(st.integers(1, 400), st.integers(1, 9_000)),
    st.one_of(st.integers(1, 9), st.sampled_from([99, 2**63 - 8])),
    st.sampled_from([(True, 1), (False, 1), (False, 3)]),
)
def test_the_kernel_and_its_python_cut_what_the_rule_does(rows, boundaries, coefficients, budget, most, options):
    lengths, (overshoot, multiple) = np.array(rows, np.int64), options
    boundaries = np.array(sorted(boundary for boundary in boundaries if boundary < len(lengths)), np.int64)
    cost = lw.Quadratic(**dict(zip(COEFFICIENTS, coefficients, strict=True)))
    bounds = Limits(cost, budget, most, multiple).bounds(lengths.shape[1])._replace(overshoot=overshoot)
    order = np.arange(len(lengths)), 0, len(lengths), number_parts(boundaries, len(lengths))
    expected = cut_one_by_one(lengths, boundaries.tolist(), cost, budget, most, overshoot, multiple)
    for kernel in (_kernels.cut_batches, _kernels.cut_batches.py_func):
        ends = np.empty(len(lengths), np.int64)
        batches, *_ = kernel(lengths, *order, bounds, np.inf, False, ends)
        assert [0, *ends[:batches].tolist()] == expected


@np.errstate(divide="ignore", invalid="ignore")
def test_falling_lengths_are_cut_alike_with_a_division_and_without():
    """A division finds how many fit, and rounds: the budgets lie at the cost of so many, and one bit below."""
    chance = np.random.default_rng(0)
    for number in range(600):
        widths, factors = chance.integers(1, 40, 3), chance.random(5) * (chance.random(5) < 0.8)
        lengths = np.concatenate([-np.sort(-chance.integers(1, 9, width)) for width in widths])[:, None]
        order = np.arange(len(lengths)), 0, len(lengths), np.repeat(np.arange(3), widths)
        once, each = factors[0] + factors[4] * lengths[0, 0], factors[1] + np.dot(factors[2:4], lengths[0] ** [1, 2])
        budget = once + chance.integers(1, 30) * each
        budget = np.nextafter(budget, [0.0, budget][number % 2])
        for most, multiple, level in ((5, 1, np.inf), (2**62, 1, budget * 0.7), (2**62, 1, np.inf), (2**62, 8, np.inf)):
            bounds, results = _kernels.Bounds(factors, budget, most, multiple, factors[::-1].copy(), np.empty(1)), []
            for kernel in (_kernels.cut_batches, _kernels.cut_batches.py_func):
                for falling in (False, True):
                    ends = np.zeros(len(lengths), np.int64)
                    results.append([kernel(lengths, *order, bounds, level, falling, ends), ends.tolist()])
            assert results[1:] == results[:1] * 3


@pytest.mark.parametrize("dims", [1, 2, 3, 12])
def test_no_batch_costs_more_than_its_budget_by_a_bit(dims):
    """Prices such as 0.1 round at every sum, so that the sum of 8 lengths depends on the order of its terms."""
    chance = np.random.default_rng(dims)
    for _ in range(12):
        numbers = [*chance.random((2, dims)), *chance.random(2), chance.random(dims)]  # one for each dimension
        cost = lw.Quadratic(**dict(zip(COEFFICIENTS, numbers, strict=True)))
        lengths = chance.integers(1, 999, (30, dims))
        count = int(chance.integers(1, 6))
        budget = float(cost([count], lengths[:count].max(axis=0)[None])[0])
        for max_cost in (budget, float(np.nextafter(budget, 0.0))):  # the first batch just fits, or just exceeds it
            offsets = cut_greedily(lengths, NO_BOUNDARIES, Limits(cost, max_cost))
            sizes, longest = np.diff(offsets), np.maximum.reduceat(lengths, offsets[:-1], axis=0)
            assert (cost(sizes, longest)[sizes > 1] <= max_cost).all()
            assert offsets.tolist() == cut_one_by_one(lengths, [], cost, max_cost, 99, False)


def cut_one_by_one(lengths, boundaries, cost, budget, most, overshoot, multiple=1):
    """The rule in plain Python: a sequence joins the batch or begins the next, and stands alone where it is over."""
    offsets, longest, full = [0], lengths[0], False

    def price(size, longest):
        return cost([size if size < multiple else -(-size // multiple) * multiple], longest[None])[0]

    for index in range(len(lengths)):
        size, joined = index - offsets[-1], np.maximum(longest, lengths[index])
        over = not overshoot and price(size + 1, joined) > budget
        if size and (full or over or size == most or index in boundaries):
            offsets.append(index)
            size, joined = 0, lengths[index]
        reached = price(size + 1, joined)
        longest, full = joined, reached >= budget if overshoot else reached > budget
    return [*offsets, len(lengths)]


def rising(counts, padded_lengths):
    return np.asarray(counts) * np.asarray(padded_lengths, np.float64).sum(axis=1)


def falling_at_times(counts, padded_lengths):
    """What no cost may do, and what is then done must still be the rule: 37 x 2 + 20 x 5 = 174, but 111 + 100 = 11."""
    return (37 * np.asarray(counts) + 5 * np.asarray(padded_lengths).sum(axis=1)) % 200


@pytest.mark.parametrize("cost", [rising, falling_at_times])
@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize("most", [3, 10**9])
@pytest.mark.parametrize("budget", [190, 60_000])
def test_calls_of_a_cost_cut_what_the_rule_does(cost, overshoot, most, budget):
    """Batches of one to hundreds, small beside large: the lengths of the second half are a hundredth of the others."""
    chance = np.random.default_rng(most)
    lengths = np.concatenate([chance.integers(100, 2_000, (300, 2)), chance.integers(1, 20, (600, 2))])
    boundaries = np.unique(chance.integers(1, 900, 9))
    offsets = cut_greedily(lengths, boundaries, Limits(cost, budget, most), overshoot=overshoot)
    expected = cut_one_by_one(lengths, set(boundaries.tolist()), cost, budget, most, overshoot)
    assert offsets.tolist() == expected


@pytest.mark.parametrize("size", [1, 400])
def test_a_cost_is_called_far_less_often_than_there_are_sequences(size):
    calls = []

    def cost(counts, padded_lengths):
        calls.append(len(counts))
        return rising(counts, padded_lengths)

    offsets = cut_greedily(np.full((20_000, 1), 7), NO_BOUNDARIES, Limits(cost, 7 * size))
    assert np.diff(offsets)[:-1].tolist() == [size] * (len(offsets) - 2)
    assert len(calls) < 100
    assert max(calls) < 20_000
