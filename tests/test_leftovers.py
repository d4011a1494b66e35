"""Leftovers passed on to the next bucket: by hand, beside all ways to pass them on, and the promises of the plans."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import choices
import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices import chains
from lengthwise.planning.leftovers import describe_buckets, settle_leftovers
from test_promises import keeps_its_promises, planned
from test_rest import loses_nothing

TOKENS = lw.example_lengths("long-tailed", count=1_500) // 64 + 1


def settle(counts, edges, cut, cost=None):
    rows = np.array(edges).reshape(len(edges), -1)
    return settle_leftovers(describe_buckets(np.array(counts), rows, cut, cost or lw.Padded(), rows.max(axis=0)))


def cost_of_passes(counts, edges, cut, cost, passes):
    """Counts batch by batch, where each marked bucket passes on what fills no batch; None where it would keep none."""
    longest, carried, total = np.array([max(edges)]), 0, 0.0
    for count, edge, does in zip(counts, edges, passes, strict=True):
        held = count + carried
        most = int(cut.batch_sizes(np.array([[edge]]), cost=cost, longest=longest)[0])
        carried = held % most if does else 0
        if does and held < most:
            return None
        held -= carried
        multiple = getattr(cut, "count_multiple_of", 1)
        rows = min(most, held if held < multiple else -(-held // multiple) * multiple)
        total += -(-held // rows) * float(cost(np.array([rows]), np.array([[edge]]))[0])
    return total


def test_leftovers_by_hand():
    # Rows of 9 and 8. Five batches of full shapes: 2 x 72 and 3 x 72; or 1 x 72 and 3 x 72, with 3 passed on.
    passed, cost = settle([12, 20], [8, 9], lw.Budget(72))
    assert (passed.tolist(), cost) == ([3, 0], 288.0)
    passed, cost = settle([9, 20], [8, 9], lw.Budget(72))
    assert (passed.tolist(), cost) == ([0, 0], 288.0)
    # 20 and 3 would be three batches too, but 22 and 3 four: nothing is saved, and nothing passed on.
    assert settle([12, 22], [8, 9], lw.Budget(72)).passed.tolist() == [0, 0]
    # 8 in a bucket of rows of 9 fill no batch; they stay.
    assert settle([8, 8], [8, 9], lw.Budget(72)).passed.tolist() == [0, 0]
    # The second bucket holds (9, 2), and not (5, 5).
    assert settle([5, 3], [(5, 5), (9, 2)], lw.FixedSize(4)).passed.tolist() == [0, 0]
    assert settle([5, 3], [(5, 5), (9, 5)], lw.FixedSize(4)).passed.tolist() == [1, 0]


def test_what_is_passed_on_is_mixed_with_what_the_bucket_holds():
    # 18 of the 22 fours fill a batch of 72; 4 join the 20 nines, in three batches of 8.
    lengths = np.array([4] * 22 + [9] * 20)
    order = lw.Bucketed(edges=(4, 9), pad_to_edge=True, leftovers="next")
    passed = set()
    for epoch in range(12):
        plan = lw.make_plan(lengths, lw.Batching(budget=72, order=order, deal=lw.Mixed()), epoch=epoch)
        fours = sorted((lengths[batch] == 4).sum() for batch in plan.batches())
        assert (sum(fours), fours[-1], len(fours)) == (22, 18, 4)
        passed.add(tuple(fours[:-1]))
    assert len(passed) > 2


@settings(max_examples=50, derandomize=True)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.sampled_from([lw.Budget(60), lw.Budget(90, count_multiple_of=3), lw.FixedSize(5), lw.DynamicSize(2)]),
    st.sampled_from([lw.Padded(), lw.Quadratic(linear=1, quadratic=0.1, per_batch=2), choices.by_calls]),
)
def test_the_best_of_all_ways_to_pass_them_on(counts, cut, cost):
    edges = list(range(4, 4 + len(counts)))
    if isinstance(cut, lw.Budget):
        cut = lw.Budget(cut.budget * 2, count_multiple_of=cut.count_multiple_of)
    tried = [
        cost_of_passes(counts, edges, cut, cost, (*passes, False))
        for passes in itertools.product((False, True), repeat=len(counts) - 1)
    ]
    found = settle(counts, edges, cut, cost)
    assert found.cost == pytest.approx(min(total for total in tried if total is not None))


CUTS = (
    lw.Budget(400),
    lw.Budget(400, count_multiple_of=4),
    lw.Budget(400, multiple_of=4, max_sequences=20),
    lw.FixedSize(16),
    lw.DynamicSize(4),
)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("shapes", [1, 4, 12])
def test_plans_compute_what_was_minimised(cut, shapes):
    found = lw.optimal_shapes(TOKENS, shapes, cut, leftovers="next")
    order = lw.Bucketed(edges=tuple(found[:, 1].tolist()), pad_to_edge=True, leftovers="next")
    batching = lw.Batching(cut=cut, order=order, deal=lw.Balanced())
    assert lw.batch_shapes(TOKENS, batching).tolist() == found.tolist()
    rows = dict(found[:, ::-1].tolist())
    costs = lw.shape_costs(TOKENS, shapes, cut, leftovers="next")
    assert (costs <= lw.shape_costs(TOKENS, shapes, cut)).all()
    for epoch in range(2):
        plan = lw.make_plan(TOKENS, batching, epoch=epoch)
        assert sum(rows[padded] * padded for padded in plan.padded_lengths[:, 0].tolist()) == costs[-1]
        assert (plan.batch_sizes <= [rows[padded] for padded in plan.padded_lengths[:, 0].tolist()]).all()
        assert (TOKENS[plan.sequences] <= np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes)).all()
        assert sorted(plan.sequences.tolist()) == list(range(len(TOKENS)))


def test_where_many_share_a_length_they_save():
    cut = lw.Budget(400)
    saved = 1.0 - lw.shape_costs(TOKENS, 16, cut, leftovers="next")[-1] / lw.shape_costs(TOKENS, 16, cut)[-1]
    assert saved > 0.02


def test_never_dearer_than_without_and_nearly_always_the_best_of_all():
    chance = np.random.default_rng(0)
    ratios = []
    for _ in range(100):
        most = chance.integers(4, 11)
        lengths = chance.lognormal(np.log(most / 2), 0.5, chance.integers(20, 300)).round().clip(1, most).astype(int)
        cut = lw.Budget(int(chance.integers(3, 12) * most), count_multiple_of=int(chance.choice([1, 1, 2, 4])))
        shapes = int(chance.integers(2, 6))
        values, counts = np.unique(lengths, return_counts=True)
        best = np.inf
        for number in range(min(shapes, len(values))):
            for inner in itertools.combinations(range(len(values) - 1), number):
                ends = [*inner, len(values) - 1]
                held = np.diff(np.cumsum(counts)[ends], prepend=0)
                best = min(best, settle(held, values[ends], cut).cost)
        found = lw.shape_costs(lengths, shapes, cut, leftovers="next")[-1]
        assert best <= found <= lw.shape_costs(lengths, shapes, cut)[-1]
        ratios.append(found / best)
    assert np.mean(np.array(ratios) == 1.0) > 0.95
    assert max(ratios) < 1.05


def test_the_kernel_and_its_python_find_the_same(monkeypatch):
    cut = lw.Budget(400)
    costs = lw.shape_costs(TOKENS[:300], 6, cut, leftovers="next")
    with monkeypatch.context() as patched:
        for name in ("pass_on", "_keep_label"):
            patched.setattr(_kernels.leftovers, name, getattr(_kernels.leftovers, name).py_func)
        patched.setattr(chains._kernels, "pass_on", _kernels.leftovers.pass_on)
        assert lw.shape_costs(TOKENS[:300], 6, cut, leftovers="next").tolist() == costs.tolist()


@settings(max_examples=75, derandomize=True)
@given(st.data())
def test_plans_keep_the_promises(data):
    dims = data.draw(st.integers(1, 2))
    lengths = np.array(data.draw(st.lists(st.tuples(*[st.integers(1, 9)] * dims), min_size=1, max_size=60)))
    cut = data.draw(
        st.sampled_from(
            [
                lw.Budget(40, oversize="alone"),
                lw.Budget(14, oversize="drop"),
                lw.Budget(60, oversize="alone"),
                lw.FixedSize(5),
                lw.FixedSize(4, drop_incomplete=True),
                lw.DynamicSize(3),
                lw.DynamicSize(2, rule="paper"),
                lw.Budget(60, oversize="alone", multiple_of=4, count_multiple_of=3),
            ]
        )
    )
    order = lw.Bucketed(buckets=data.draw(st.integers(1, 5)), pad_to_edge=True, leftovers="next")
    deal = data.draw(st.sampled_from([lw.Balanced(), lw.Mixed(), lw.Stratified(), lw.InTurn()]))
    batching = lw.Batching(cut=cut, order=order, deal=deal)
    world = {"world_size": data.draw(st.integers(1, 4)), "micro_batches": data.draw(st.integers(1, 2))}
    keeps_its_promises(lengths, batching, **world)
    loses_nothing(lengths, batching, random.Random(str(lengths)))
    plan = planned(lengths, batching, choices.may_drop(order, cut, deal), **world)
    if plan is None:
        return
    over = set(plan.over_max_cost().tolist())
    assert all(plan.batch_sizes[number] == 1 or getattr(cut, "rule", "") == "paper" for number in over)
    needed = np.repeat(plan.padded_lengths, plan.batch_sizes, axis=0)
    assert (lengths[plan.sequences] <= needed).all()
    shapes = {tuple(edges): most for most, *edges in lw.batch_shapes(lengths, batching).tolist()}
    for size, padded in zip(plan.batch_sizes.tolist(), plan.padded_lengths.tolist(), strict=True):
        assert size <= shapes[tuple(padded)]


def test_they_are_refused_where_they_say_nothing():
    with pytest.raises(ValueError, match=r'^`leftovers` must be "own" without pad_to_edge'):
        lw.Bucketed(buckets=4, leftovers="next")
    order = lw.Bucketed(buckets=4, pad_to_edge=True, leftovers="next")
    for deal in (lw.RandomSteps(), lw.Portions()):
        with pytest.raises(ValueError, match=r'^`leftovers` must be "own" beside RandomSteps'):
            lw.Batching(budget=90, order=order, deal=deal)
    with pytest.raises(ValueError, match=r"^`leftovers` must be one of own, next"):
        lw.optimal_shapes([3, 4], 2, lw.Budget(20), leftovers="up")
    batching = lw.Batching(budget=90, order=order)
    assert lw.Batching.from_json(batching.to_json()) == batching
    assert lw.strategy("optimal:4,pad-to-edge=true,leftovers=next", cut=lw.Budget(90)).order == order
