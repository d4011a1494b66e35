"""Random steps: as many sequences as fit, cut as evenly as can be; the same by kernels and by brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise import _kernels
from lengthwise.planning.exact_count import exact_limits
from lengthwise.planning.steps import form_steps

LONG_TAILED = lw.example_lengths()
QUADRATIC = menu.COSTS["per_length"]


def by_steps(needed, cut, slots, *, cost=None, steps=None, **deal):
    """Returns the steps, each a list of batches, each a list of positions."""
    needed = np.array(needed, np.int64).reshape(len(needed), -1)  # a copy: steps move its rows
    longest = needed.max(axis=0)
    cost = cost or lw.Padded()
    limits = exact_limits(cut, cost, longest)
    batching = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps(**deal), cost=cost)
    formed = form_steps(needed, None, batching, limits, slots=slots, bands=(), steps=steps)
    if formed is None:
        return None
    members, offsets = formed
    assert [offsets[0], offsets[-1]] == [0, len(members)]
    batches = [part.tolist() for part in np.split(members, offsets[1:-1])]
    return [batches[first : first + slots] for first in range(0, len(batches), slots)]


def cuts_of(count, most):
    """Yields the ends of the parts, for every way to cut a row of `count` into at most `most` parts."""
    for parts in range(1, min(most, count) + 1):
        for inner in itertools.combinations(range(1, count), parts - 1):
            yield (*inner, count)


def least_costliest(lengths, slots, cost, most_sequences=None, multiple=1):
    """Returns the least cost of the costliest of `slots` batches, cut from the sequences sorted from the longest."""
    rows = sorted(lengths, key=sum, reverse=True)
    least = np.inf
    for ends in cuts_of(len(rows), slots):
        parts = [rows[start:end] for start, end in zip((0, *ends), ends, strict=False)]
        if most_sequences is None or max(map(len, parts)) <= most_sequences:
            least = min(least, max(cost_of(part, cost, multiple) for part in parts))
    return least


def cost_of(rows, cost, multiple=1):
    """Returns the cost of a batch whose rows are filled up to a multiple, unless it holds less than one."""
    count = len(rows) if len(rows) < multiple else -(-len(rows) // multiple) * multiple
    return float(cost(np.array([count]), np.array(rows).max(axis=0)[None])[0])


def test_steps_by_hand():
    # Two batches of at most 20: 9, 2, 5, 4, 3 and 8 fit, as 9 x 2 and 5 x 4. With 7 they would need a third.
    assert by_steps([9, 2, 5, 4, 3, 8, 7, 1], lw.Budget(20), 2) == [[[0, 5], [2, 3, 4, 1]], [[6], [7]]]
    # Within a budget of 60 all fit, as 9 x 6 and 2 x 2; 9 x 3 and 5 x 5 is the most even way.
    assert by_steps([9, 2, 5, 4, 3, 8, 7, 1], lw.Budget(60), 2) == [[[0, 5, 6], [2, 3, 4, 1, 7]]]


def test_as_many_sequences_a_batch_as_asked_or_as_cost_the_same():
    lengths = [10, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert by_steps(lengths, lw.FixedSize(5), 2, even=False) == [[[0, 9, 1, 2, 3], [4, 5, 6, 7, 8]]]
    assert by_steps(lengths, lw.FixedSize(5), 2) == [[[0], [9, 1, 2, 3, 4, 5, 6, 7, 8]]]  # 10 and 18; else 20 and 8


def test_by_count_every_step_has_its_own_batches():
    assert by_steps(range(1, 11), lw.FixedSize(2), 2, even=False) == [[[3, 2], [1, 0]], [[7, 6], [5, 4]], [[9], [8]]]


def test_a_step_takes_sequences_of_all_buckets_and_pads_each_to_its_own():
    lengths = np.array([7, 70] * 120)
    order = lw.Bucketed(edges=(10, 90), pad_to_edge=True)
    plan = lw.make_plan(lengths, lw.Batching(budget=500, order=order, deal=lw.RandomSteps()), micro_batches=4)
    for step in plan.grid.reshape(-1, 4):
        assert {length for number in step for length in lengths[plan.batch(number)].tolist()} == {7, 70}
        assert set(plan.padded_lengths[step, 0].tolist()) <= {10, 90}


def test_a_step_whose_least_budget_leaves_places_free_has_its_widest_batches_halved():
    """A budget of 5 makes four batches of the first, one of 10 makes two: three places, so one of the two is halved."""
    assert by_steps([5, 5, 5, 5], lw.Budget(20), 3) == [[[0], [1], [2, 3]]]
    assert by_steps([5] * 5, lw.Budget(20), 4) == [[[0], [1], [2, 3], [4]]]


def test_the_last_step_is_filled_from_those_before():
    for tail, sizes in (("split", [4, 4, 3]), ("repeat", [4, 4, 3]), ("drop", [4, 4])):
        steps = by_steps([1] * 11, lw.FixedSize(2), 2, tail=tail)
        assert [sum(map(len, step)) for step in steps] == sizes
    steps = by_steps([1] * 9, lw.FixedSize(2), 2)  # one is left, for two places
    assert [[len(batch) for batch in step] for step in steps] == [[2, 2], [2, 1], [1, 1]]


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_a_step_takes_the_most_that_fit_and_its_costliest_batch_costs_the_least(data):
    dims = data.draw(st.integers(1, 2))
    length = st.tuples(*[st.integers(1, 12)] * dims)
    lengths = data.draw(st.lists(length, min_size=1, max_size=9))
    slots = data.draw(st.integers(1, 4))
    cost = data.draw(st.sampled_from([lw.Padded(), QUADRATIC]))
    multiple = data.draw(st.sampled_from([1, 1, 2, 3]))
    most = data.draw(st.sampled_from([None, 1, 2, 3] if multiple == 1 else [None]))
    budget = max(cost_of([row], cost) for row in lengths) * data.draw(st.sampled_from([1, 1.5, 3]))
    cut = lw.Budget(budget, max_sequences=most, count_multiple_of=multiple)
    steps = by_steps(lengths, cut, slots, cost=cost)
    start = 0
    for number, step in enumerate(steps):
        size = sum(map(len, step))
        taken = [lengths[position] for batch in step for position in batch]
        assert sorted(position for batch in step for position in batch) == list(range(start, start + size))
        costliest = max(cost_of([lengths[position] for position in batch], cost, multiple) for batch in step)
        if dims == 1:
            assert costliest == least_costliest(taken, slots, cost, most, multiple)
        assert costliest <= budget
        further = lengths[start : start + size + 1]
        lent = sum(map(len, steps[-1])) <= slots
        if dims == 1 and number < len(steps) - 1 and not lent:
            assert least_costliest(further, slots, cost, most, multiple) > budget, "one more would have fit"
        start += size
    assert start == len(lengths)


def divisions(lengths, most):
    """Yields the batches, [(count, longest), ...], of every way to divide lengths into at most `most`, in any order."""
    if not lengths:
        yield []
        return
    longest, *others = sorted(lengths, reverse=True)
    # The longest is in one batch, with any others: of [9, 5, 2] these are (9), (9 5), (9 2) and (9 5 2).
    for count in range(len(others) + 1 if most else 0):
        for chosen in itertools.combinations(range(len(others)), count):
            left = [length for place, length in enumerate(others) if place not in chosen]
            yield from ([(count + 1, longest), *batches] for batches in divisions(left, most - 1))


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.data())
def test_no_other_batches_of_the_same_step_make_its_ranks_wait_less(data):
    """Each rank takes one batch. Sequences of any lengths may share one, within the budget."""
    ranks = data.draw(st.integers(2, 4))
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=ranks, max_size=7))
    cost, balance = (data.draw(st.sampled_from([lw.Padded(), QUADRATIC, lw.Quadratic(quadratic=0.2)])) for _ in "ab")
    budget = max(cost_of([(length,)], cost) for length in lengths) * data.draw(st.sampled_from([1, 1.5, 2, 4]))
    batching = lw.Batching(cut=lw.Budget(budget), deal=lw.RandomSteps(), cost=cost, balance=balance)
    plan = lw.make_plan(lengths, batching, world_size=ranks)
    assume(not plan.repeated().size)  # sequences for all places
    assert (plan.costs <= budget).all()
    for step in plan.grid[:, 0]:
        members = [lengths[number] for batch in step for number in plan.batch(batch)]
        ways = [np.array(batches) for batches in divisions(members, ranks)]
        fitting = [way for way in ways if (cost(way[:, 0], way[:, 1:]) <= budget).all()]
        least = min(balance(way[:, 0], way[:, 1:]).max() for way in fitting)
        of_step = balance(plan.batch_sizes[step], plan.padded_lengths[step])
        assert of_step.max() == pytest.approx(least)


@pytest.mark.parametrize(("cost", "dims"), [(lw.Padded(), 1), (QUADRATIC, 2)])
def test_kernels_and_their_python_form_the_same_steps(cost, dims, monkeypatch):
    chance = np.random.default_rng(dims)
    for slots in (1, 3):
        needed = chance.lognormal(4, 0.7, (60, dims)).astype(np.int64) + 1
        few_alone = lw.Budget(3_000, max_sequences=5, oversize="alone")
        filled = lw.Budget(6_000 * dims, count_multiple_of=4)
        for cut in (lw.Budget(6_000 * dims), few_alone, filled, lw.FixedSize(7)):
            steps = by_steps(needed, cut, slots, cost=cost)
            with monkeypatch.context() as patched:
                for module in (_kernels.steps, _kernels.cuts):
                    for name, kernel in vars(module).items():
                        if hasattr(kernel, "py_func"):
                            patched.setattr(module, name, kernel.py_func)
                for name in ("fill_steps", "cut_steps"):
                    patched.setattr(_kernels, name, getattr(_kernels, name).py_func)
                assert by_steps(needed, cut, slots, cost=cost) == steps


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 60))
def test_the_widest_batches_are_halved_as_if_one_after_the_other(sizes, slots):
    slots = max(slots, len(sizes))
    # A second step, which begins where the first ends.
    ends, counts = np.zeros((2, slots), np.int64), np.full(2, len(sizes))
    ends[0, : len(sizes)] = np.cumsum(sizes)
    ends[1, : len(sizes)] = np.cumsum(sizes) + sum(sizes)
    _kernels.split_widest(ends, counts)
    while len(sizes) < slots and max(sizes) > 1:
        at = sizes.index(max(sizes))
        sizes[at : at + 1] = [-(-sizes[at] // 2), sizes[at] // 2]
    assert np.diff(ends[0, : counts[0]], prepend=0).tolist() == sizes
    assert np.diff(ends[1, : counts[1]], prepend=sum(sizes)).tolist() == sizes


def test_a_step_is_a_random_sample_and_its_ranks_wait_for_little():
    batching = lw.Batching(budget=20_000, order=lw.Shuffled(), deal=lw.RandomSteps())
    plans = [lw.make_plan(LONG_TAILED, batching, world_size=8, micro_batches=4, epoch=epoch) for epoch in range(3)]
    measures = lw.measure(plans, LONG_TAILED)
    assert measures.randomness > 0.99
    assert measures.padding_share < 0.055
    assert measures.straggler_waste < 0.025


def test_a_last_step_that_is_not_full_is_dropped_by_the_deal_alone():
    size, budget = lw.FixedSize(2), lw.Budget(80)
    for cut, count, dropped in ((size, 8, 0), (size, 7, 3), (budget, 16, 0), (budget, 31, 15)):
        batching = lw.Batching(cut=cut, deal=lw.RandomSteps(tail="drop"))
        assert lw.make_plan([10] * count, batching, world_size=2).dropped().size == dropped


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"cut": lw.DynamicSize(4, rule="paper")}, "`cut` must be .* RandomSteps, but is DynamicSize"),
        ({"budget": 9, "deal": lw.RandomSteps(even=False)}, "`even` must be True beside a budget"),
        ({"cut": lw.FixedSize(2, drop_incomplete=True)}, "`drop_incomplete` must be False beside RandomSteps"),
    ],
)
def test_a_cut_that_cannot_form_steps_is_refused_when_the_batching_is_made(choices, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        lw.Batching(**{"deal": lw.RandomSteps(), **choices})


def test_a_sequence_over_the_budget_is_named_from_within_a_step():
    batching = lw.Batching(cut=lw.Budget(12), order=lw.Shuffled(), deal=lw.RandomSteps())
    with pytest.raises(lw.OversizeError, match="at sequence 2"):
        lw.make_plan([5, 4, 90, 3, 6, 2], batching, world_size=3)


# From 4,097 on, by longer digits.
@pytest.mark.parametrize("count", [1, 40, 4_096, 4_097, 65_537])
def test_keys_of_any_width_are_sorted_as_numpy_sorts_them(count):
    chance = np.random.default_rng(count)
    for bits in (0, 1, 14, 28, 40):
        keys = chance.integers(0, 2**bits, count)
        order, spare, digits = (np.empty(size, np.int64) for size in (count, count, 4_096))
        _kernels.sort_step(keys, bits, 0, count, order, spare, digits)
        assert np.array_equal(order, np.argsort(keys, kind="stable")), bits


def test_a_cost_that_is_no_sum_of_prices_takes_another_deal_or_is_refused():
    class Mine(lw.Quadratic):
        """As its parent, but not of this package."""

    for cost in (menu.by_calls, Mine(), lw.Padded(dims="largest")):
        assert lw.Batching(budget=90, cost=cost, padding=0.1).deal == lw.Stratified()
        with pytest.raises(ValueError, match=r"^`cost` must be Padded\(\) or a Quadratic beside RandomSteps"):
            lw.Batching(budget=90, cost=cost, deal=lw.RandomSteps())
        plan = lw.make_plan([[5, 9], [2, 4], [7, 1]], lw.Batching(budget=90, cost=cost), world_size=2)
        assert plan.costs.max() <= 90
    lw.Batching(cut=lw.Rows(90), cost=menu.by_calls, deal=lw.RandomSteps())  # packs rows without a price
