"""Cuts of least cost, and multiples of lengths and counts: by hand, by brute force, by kernels and by calls."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import choices
import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.greedy import cut_greedily
from lengthwise.choices.least_cost import cut_at_least_cost

NONE = np.empty(0, np.int64)
PRICED = lw.Quadratic(per_batch=90)
CASES = st.tuples(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.integers(1, 2),  # lengths of each sequence
    st.lists(st.integers(1, 8), max_size=2),  # boundaries
    st.integers(5, 70),
    st.one_of(st.none(), st.integers(1, 5)),
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from(list(choices.COSTS.values())),
)


def case_of(drawn):
    """The arguments of a cut: lengths [m, dims], boundaries, and what limits batches."""
    lengths, dims, boundaries, budget, most, multiple, cost = drawn
    rows = np.array([lengths, np.roll(lengths, 1)][:dims]).T
    boundaries = np.unique([each for each in boundaries if each < len(rows)]).astype(np.int64)
    return rows, boundaries, {"budget": float(budget), "most": most, "multiple": multiple, "cost": cost}


def costs_of(rows, offsets, cost):
    return [
        float(cost(np.array([stop - start]), rows[start:stop].max(axis=0)[None])[0])
        for start, stop in itertools.pairwise(offsets)
    ]


def fits(rows, start, stop, *, budget, multiple, cost, **_):
    """Whether a batch is within the budget when it is filled up to the multiple."""
    size = stop - start
    filled = size if size < multiple else -(-size // multiple) * multiple
    return float(cost(np.array([filled]), rows[start:stop].max(axis=0)[None])[0]) <= budget


def allowed(rows, boundaries, start, stop, *, most, multiple, **limits):
    """Whether the rules allow the batch start..stop-1, word by word."""
    size, end = stop - start, min([each for each in (*boundaries, len(rows)) if each > start])
    if most is not None:
        multiple = 1 if most < multiple else multiple
        most = most // multiple * multiple
    limits |= {"multiple": multiple}
    if stop > end or (most is not None and size > most) or (size > 1 and not fits(rows, start, stop, **limits)):
        return False
    fewer = not fits(rows, start, min(start + multiple, end), **limits)
    return size % multiple == 0 or stop == end or fewer


def all_cuts(rows, boundaries, limits):
    """Every cut that the rules allow, as (batches, cost)."""
    count = len(rows)
    for inner in itertools.chain.from_iterable(itertools.combinations(range(1, count), k) for k in range(count)):
        offsets = [0, *inner, count]
        if all(allowed(rows, boundaries, *pair, **limits) for pair in itertools.pairwise(offsets)):
            yield len(offsets) - 1, sum(costs_of(rows, offsets, limits["cost"]))


@settings(max_examples=75, derandomize=True, deadline=None)
@given(CASES)
def test_least_cost_of_all_cuts(drawn):
    rows, boundaries, limits = case_of(drawn)
    known = list(all_cuts(rows, boundaries, limits))
    for fewest in (True, False):
        offsets = cut_at_least_cost(rows, boundaries, fewest=fewest, **limits)
        total = sum(costs_of(rows, offsets, limits["cost"]))
        assert offsets[0] == 0
        assert offsets[-1] == len(rows)
        assert all(allowed(rows, boundaries, *pair, **limits) for pair in itertools.pairwise(offsets.tolist()))
        if fewest:
            least = min(batches for batches, _ in known)
            assert len(offsets) - 1 == least
            assert total == pytest.approx(min(cost for batches, cost in known if batches == least))
        else:
            assert total == pytest.approx(min(cost for _, cost in known))


@settings(max_examples=75, derandomize=True, deadline=None)
@given(CASES)
def test_by_calls_as_by_kernels(drawn):
    rows, boundaries, limits = case_of(drawn)
    called = limits | {"cost": lambda *given: limits["cost"](*given)}
    assert np.array_equal(cut_greedily(rows, boundaries, **limits), cut_greedily(rows, boundaries, **called))
    for fewest in (True, False):
        cuts = [cut_at_least_cost(rows, boundaries, fewest=fewest, **each) for each in (limits, called)]
        assert np.array_equal(*cuts)


SORTED = st.tuples(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    st.integers(5, 400),
    st.one_of(st.none(), st.integers(1, 9)),
    st.sampled_from(["padded", "quadratic", "per_length"]),
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(SORTED)
def test_sorted_lengths_are_cut_in_linear_time_as_any_others(drawn):
    lengths, budget, most, name = drawn
    rows, cost = np.sort(np.array(lengths))[:, None], choices.COSTS[name]
    limits = {"budget": float(budget), "most": most, "fewest": True, "cost": cost}
    offsets = cut_at_least_cost(rows, NONE, **limits)
    called = cut_at_least_cost(rows, NONE, **limits | {"cost": lambda *given: cost(*given)})
    assert len(offsets) == len(called)
    assert sum(costs_of(rows, offsets, cost)) == pytest.approx(sum(costs_of(rows, called, cost)), rel=1e-12)
    if name == "padded":  # of cuts that cost the same, both take the one
        assert np.array_equal(offsets, called)


def test_many_sorted_lengths_are_cut_as_any_others():
    rows = np.sort(lw.example_lengths("long-tailed"))[:, None]
    for dtype, most in itertools.product((np.int64, np.uint16), (None, 37)):
        limits = {"budget": 30_000.0, "most": most, "fewest": True, "cost": lw.Padded()}
        found = cut_at_least_cost(rows.astype(dtype), NONE, **limits)
        # A boundary behind the first sequence hides that the others are sorted.
        other = cut_at_least_cost(np.append(rows[-1:], rows, axis=0), np.array([1]), **limits)[1:] - 1
        assert np.array_equal(found, other)


def test_long_batches_by_calls_as_by_kernels():
    rows = lw.example_lengths(count=400)[:, None] // 30 + 1
    for multiple, fewest in itertools.product((1, 8), (True, False)):
        limits = {"budget": 4_000.0, "multiple": multiple, "fewest": fewest}
        kernel, calls = (cut_at_least_cost(rows, NONE, cost=each, **limits) for each in (PRICED, lambda *g: PRICED(*g)))
        assert np.array_equal(kernel, calls)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(CASES)
def test_greedy_multiples_are_the_rule(drawn):
    rows, boundaries, limits = case_of(drawn)
    offsets = cut_greedily(rows, boundaries, **limits).tolist()
    for start, stop in itertools.pairwise(offsets):
        assert allowed(rows, boundaries, start, stop, **limits)
        # No longer batch from there is allowed, unless it would have to run over one that is not.
        assert not allowed(rows, boundaries, start, min(stop + limits["multiple"], len(rows)), **limits) or stop in (
            *boundaries,
            len(rows),
        )


def test_kernels_are_their_own_python():
    rows, boundaries = lw.example_lengths(count=60)[:, None], np.array([7, 30])
    prices = lw.Quadratic(per_batch=300).prices(1)
    for multiple in (1, 4):
        found = []
        for kernel in (_kernels.cut_to_multiples, _kernels.cut_to_multiples.py_func):
            offsets = np.zeros(61, np.int64)
            found.append(offsets[: kernel(rows, boundaries, prices, 9_000.0, 60, multiple, offsets) + 1].tolist())
        assert found[0] == found[1]


def test_the_kernel_of_sorted_lengths_is_its_own_python():
    lengths, prices = np.sort(lw.example_lengths(count=300)), lw.Quadratic(quadratic=0.01, per_length=3.0).prices(1)
    for budget, most in ((90_000.0, 300), (np.inf, 16), (5_000.0, 7)):
        found = []
        for kernel in (_kernels.least_cost_cut_of_sorted.compiled, _kernels.least_cost_cut_of_sorted.py_func):
            number, total, first, ways = np.zeros(301, np.int64), np.zeros(301), *np.zeros((2, 301), np.int64)
            kernel(lengths, prices, budget, most, number, total, first, ways)
            found.append([number.tolist(), total.tolist(), first.tolist()])
        assert found[0] == found[1]


def test_by_hand():
    # No cut into two batches costs less: 27 + 27 frames.
    lengths = np.array([2, 9, 2, 2, 9, 9])[:, None]
    cost, budget = lw.Padded(), 27.0
    assert cut_greedily(lengths, NONE, cost=cost, budget=budget).tolist() == [0, 3, 6]
    assert cut_at_least_cost(lengths, NONE, cost=cost, budget=budget, fewest=True).tolist() == [0, 3, 6]
    lengths = np.array([2, 2, 2, 9, 9])[:, None]
    assert cut_greedily(lengths, NONE, cost=cost, budget=36.0).tolist() == [0, 4, 5]  # 36 + 9
    assert cut_at_least_cost(lengths, NONE, cost=cost, budget=36.0, fewest=True).tolist() == [0, 3, 5]  # 6 + 18
    # A price of 5 for a batch: 6 + 18 + 2 x 5 is less than 2 + 2 + 2 + 9 + 9 + 5 x 5.
    priced = lw.Quadratic(per_batch=5)
    assert cut_at_least_cost(lengths, NONE, cost=priced, budget=41.0, fewest=False).tolist() == [0, 3, 5]


def test_optimal_is_never_dearer_and_has_as_few_batches():
    lengths = lw.example_lengths(count=3_000)
    for order in (lw.Shuffled(), lw.Sorted(), lw.SemiSorted(), lw.MaxEntropy(padding=0.1)):
        greedy, optimal = (
            lw.make_plan(lengths, lw.Batching(cut=lw.Budget(20_000, by=by), order=order, deal=lw.Stratified()))
            for by in ("greedy", "optimal")
        )
        assert len(greedy.costs) == len(optimal.costs)
        assert optimal.costs.sum() <= greedy.costs.sum()


def test_the_last_batch_holds_what_is_left_over_a_multiple():
    for cost in (lw.Padded(), lambda counts, padded: counts * padded[:, 0]):
        for budget, sizes in ((160, [10]), (159, [8, 2]), (80, [8, 2])):
            rules = {"cost": cost, "longest": np.array([10])}
            cuts = lw.Budget(budget, count_multiple_of=8)(np.full((10, 1), 10), NONE, **rules)
            assert np.diff(cuts.offsets).tolist() == sizes


def test_the_tail_splits_into_multiples():
    """Where the cheapest cut is not levelled, and one batch of 24 is for two ranks."""
    cut = lw.Budget(2_000, by="cheapest", count_multiple_of=8)
    batching = lw.Batching(cut=cut, cost=lw.Quadratic(per_batch=1_000), order=lw.Sorted())
    assert sorted(lw.make_plan([10] * 24, batching, world_size=2).batch_sizes.tolist()) == [8, 16]


def test_what_a_batch_costs_by_its_length_is_a_price_for_it():
    # 6 6 1 5 | 2 costs 27 + 5, and 6 6 | 1 | 5 2 as much, 15 + 4 + 13: of ways that cost the same, the fewest batches.
    lengths = np.array([[6], [6], [1], [5], [2]])
    for cost in (lw.Quadratic(per_batch=3.0), lambda counts, padded: 3.0 + counts * padded[:, 0]):
        cuts = lw.Budget(99, by="cheapest")(lengths, NONE, cost=cost, longest=np.array([6]))
        assert cuts.offsets.tolist() == [0, 4, 5]
    # Apart 6 + 6 + 6, together 3 + 9: each batch pays once for its length.
    cost = lw.Quadratic(per_length=1.0)
    cuts = lw.Budget(20, by="cheapest")(np.array([[3]] * 3), NONE, cost=cost, longest=np.array([3]))
    assert cuts.offsets.tolist() == [0, 3]


def test_the_cheapest_cut_wants_a_price_for_a_batch():
    cut = lw.Budget(20_000, by="cheapest")
    for cost in (lw.Padded(), lw.Largest(), lw.Quadratic(quadratic=1e-3)):
        with pytest.raises(ValueError, match=r"^`cost` must be one that prices a batch.* Take Quadratic\(per_batch"):
            lw.make_plan([5, 9], lw.Batching(cut=cut, cost=cost, order=lw.Sorted()))
    lengths = lw.example_lengths(count=500)
    dear, cheap = (
        lw.make_plan(lengths, lw.Batching(cut=cut, cost=lw.Quadratic(per_batch=price), order=lw.Sorted()))
        for price in (3_000, 30)
    )
    assert len(dear.costs) < len(cheap.costs) < len(lengths)


def test_last_step_is_filled_by_an_optimal_cut_too():
    lengths = lw.example_lengths(count=1_000)
    plans = [
        lw.make_plan(
            lengths,
            lw.Batching(cut=lw.Budget(20_000, by=by), order=lw.Sorted(), deal=lw.Balanced()),
            world_size=16,
        )
        for by in ("greedy", "optimal")
    ]
    assert len({len(plan.costs) for plan in plans}) == 1
    assert plans[1].costs.sum() <= plans[0].costs.sum()


@pytest.mark.parametrize(
    "cut",
    [
        lw.Budget(20_000, multiple_of=64),
        lw.FixedSize(16, multiple_of=64),
        lw.DynamicSize(8, multiple_of=64),
        lw.Budget(20_000, multiple_of=64, by="optimal", count_multiple_of=4),
    ],
)
@pytest.mark.parametrize("order", [lw.Shuffled(), lw.Bucketed(buckets=6, pad_to_edge=True), lw.MaxEntropy(padding=0.2)])
def test_padded_lengths_are_multiples_and_cost_so(cut, order):
    lengths = lw.example_lengths(count=1_000)
    deals = (lw.Balanced(), None) if cut == lw.Budget(20_000, multiple_of=64) else (lw.Balanced(),)
    for deal in deals:
        plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=order, deal=deal), world_size=4)
        assert (plan.padded_lengths % 64 == 0).all()
        assert (plan.costs == plan.batch_sizes * plan.padded_lengths[:, 0]).all()
        assert plan.costs.max() <= plan.max_cost
        useful, computed = lengths.sum(), plan.costs.sum()
        assert lw.measure(plan, lengths).padding_share == pytest.approx(1 - useful / computed)
    evaluation = lw.evaluation_plan(lengths, cut)
    assert (evaluation.padded_lengths % 64 == 0).all()


def test_what_stands_alone_is_padded_to_a_multiple_too():
    cut = lw.Budget(40, oversize="alone", multiple_of=16)
    plan = lw.make_plan([41, 5, 33, 7], lw.Batching(cut=cut, order=lw.Sorted(), deal=lw.Balanced()))
    # 33 fits the budget, and 48 does not.
    assert sorted(plan.padded_lengths[:, 0].tolist()) == [16, 48, 48]
    assert len(plan.over_max_cost()) == 2


def test_edges_are_found_for_the_lengths_that_are_padded_to():
    cut = lw.Budget(400, multiple_of=8)
    order = lw.Bucketed(edges=(10, 50), pad_to_edge=True)
    plan = lw.make_plan([3, 9, 41, 50], lw.Batching(cut=cut, order=order))
    assert sorted(set(plan.padded_lengths[:, 0].tolist())) == [16, 56]
    shapes = lw.batch_shapes([3, 9, 41, 50], lw.Batching(cut=cut, order=order))
    assert shapes.tolist() == [[2, 16], [2, 56]]


def test_counts_are_multiples_but_for_leftovers():
    lengths = np.full(100, 50)
    cut = lw.Budget(1_050, count_multiple_of=8)  # 21 fit; 16 are taken, and of 100 the last 4
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=lw.Sorted()))
    assert plan.batch_sizes.tolist() == [16] * 6 + [4]
    # Only 7 of 150 fit.
    plan = lw.make_plan([150] * 13, lw.Batching(cut=lw.Budget(1_050, count_multiple_of=8), order=lw.Sorted()))
    assert sorted(plan.batch_sizes.tolist()) == [6, 7]


def test_steps_are_filled_with_halves_that_are_multiples():
    cut = lw.Budget(1_600, count_multiple_of=8)
    plan = lw.make_plan(np.full(96, 50), lw.Batching(cut=cut, order=lw.Sorted()), world_size=4)
    assert sorted(plan.batch_sizes.tolist()) == [24, 24, 24, 24]
    plan = lw.make_plan(np.full(96, 50), lw.Batching(cut=lw.FixedSize(32), order=lw.Sorted()), world_size=4)
    assert sorted(plan.batch_sizes.tolist()) == [16, 16, 32, 32]


def test_they_go_through_json_and_the_command_line():
    batching = lw.Batching(cut=lw.Budget(9, by="optimal", multiple_of=8, count_multiple_of=4), order=lw.Sorted())
    assert lw.Batching.from_json(batching.to_json()) == batching
    assert lw.parse_cut("budget:9,by=optimal,multiple-of=8,count-multiple-of=4") == batching.cut


@pytest.mark.parametrize("by", ["optimal", "cheapest"])
def test_random_steps_refuse_what_they_cannot_cut_by(by):
    cut = lw.Budget(9, by=by)
    assert lw.Batching(cut=cut).deal == lw.Stratified()
    sentence = r"^`cut` must be greedy beside RandomSteps, which fills .*Leave out `by`, or take Stratified"
    with pytest.raises(ValueError, match=sentence):
        lw.Batching(cut=cut, deal=lw.RandomSteps())
    for cut in (lw.Budget(9, multiple_of=8), lw.Budget(9, count_multiple_of=8)):
        assert lw.Batching(cut=cut).deal == lw.RandomSteps()


def test_windows_are_padded_to_multiples_too():
    lengths = lw.example_lengths(count=900)
    cut = lw.Budget(20_000, multiple_of=64, by="optimal", count_multiple_of=4)
    windows = lw.Windows(lengths, lw.Batching(cut=cut, order=lw.Shuffled()), window=300, block=10, world_size=2)
    for number in range(len(windows)):
        plan = windows.plan(0, number).plan
        assert (plan.padded_lengths % 64 == 0).all()
        assert plan.costs.max() <= 20_000


def test_the_rest_of_an_epoch_keeps_the_multiples():
    lengths = lw.example_lengths(count=600)
    cut = lw.Budget(20_000, multiple_of=64, count_multiple_of=4)
    batching = lw.Batching(cut=cut, order=lw.Sorted())
    rest = lw.make_plan(lengths, batching, world_size=3, after=[(2, 1, 5)])
    assert (rest.padded_lengths % 64 == 0).all()
    assert rest.costs.max() <= 20_000
    taken = np.concatenate([batch for rank in range(3) for batch in rest.batches(rank)])
    assert sorted({*taken.tolist(), *rest.delivered.tolist()}) == list(range(600))
