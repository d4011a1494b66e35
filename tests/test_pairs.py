"""All promises for two lengths a sequence: every order of pairs, every cut, every deal and every cost."""

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.choices.buckets import EDGES, find_bucket, sort_rows
from lengthwise.cli.strategies import parse_strategies
from test_promises import budgets, keeps_its_promises
from test_rest import loses_nothing
from test_same_plan import steps_of

CASES_PER_PAIR = 5
FIXED = [name for name, order in menu.OF_PAIRS.items() if getattr(order, "pad_to_edge", False)]
IN_EDGES = ["edges", "edges_drop", *FIXED]
BUDGET = 2_500


def some_pairs(chance, most=60):
    """Pairs whose lengths go together, or do not; all alike; or with one giant."""
    count = chance.choice([0, 1, 2, 3, 5, 8, 13, 30, most])
    draw = chance.choice(
        [
            lambda: (chance.randint(80, 800), chance.randint(1, 90)),
            lambda: (
                size := max(1, round(chance.lognormvariate(4, 0.8))),
                max(1, round(size * chance.uniform(0.7, 1.4))),
            ),
            lambda: (37, 12),
            lambda: (900, 3) if chance.random() < 0.05 else (3, 900),
        ]
    )
    return np.array([draw() for _ in range(count)], np.int64).reshape(count, 2)


def pairs_of(count, *, seed=0):
    """Source and target, as of a translation."""
    chance = np.random.default_rng(seed)
    source = chance.lognormal(4.0, 0.5, count)
    return np.stack([source, source * chance.lognormal(0.0, 0.25, count)], axis=1).astype(np.int64) + 1


PAIRS = pairs_of(300)


@pytest.mark.parametrize("cut", menu.padding_cuts(1, 1))
@pytest.mark.parametrize("order", menu.OF_PAIRS)
def test_every_order_with_every_cut_keeps_the_promises(order, cut):
    chance, chosen = random.Random(f"{order} {cut}"), menu.OF_PAIRS[order]
    for _ in range(CASES_PER_PAIR):
        lengths, cost = some_pairs(chance), menu.COSTS[chance.choice(list(menu.COSTS))]
        of_it = menu.padding_cuts(*budgets(lengths, None, chosen, cost))[cut]
        batching = lw.Batching(
            order=chosen,
            cut=of_it,
            deal=menu.suit(menu.DEALS[chance.choice(list(menu.DEALS))], of_it, cost, chosen),
            arrange=menu.ARRANGEMENTS[chance.choice(list(menu.ARRANGEMENTS))],
            cost=cost,
        )
        shape = {"world_size": chance.randint(1, 9), "micro_batches": chance.randint(1, 4)}
        keeps_its_promises(lengths, batching, seed=chance.randint(0, 9), epoch=chance.randint(0, 9), **shape)


@pytest.mark.parametrize("cost", menu.COSTS)
@pytest.mark.parametrize("deal", menu.DEALS)
def test_every_deal_under_a_budget_of_every_cost_keeps_the_promises(deal, cost):
    chance = random.Random(f"{deal} {cost}")
    for name in ("budget", "budget_few", "budget_alone", "budget_drop", "dynamic", "fixed"):
        order = menu.OF_PAIRS[chance.choice(list(menu.OF_PAIRS))]
        lengths = some_pairs(chance)
        cut = menu.padding_cuts(*budgets(lengths, None, order, menu.COSTS[cost]))[name]
        chosen = menu.suit(menu.DEALS[deal], cut, menu.COSTS[cost], order)
        batching = lw.Batching(order=order, cut=cut, deal=chosen, cost=menu.COSTS[cost])
        keeps_its_promises(lengths, batching, world_size=chance.randint(1, 6), micro_batches=chance.randint(1, 3))


@settings(max_examples=50, derandomize=True)
@given(length_sets.pairs, st.sampled_from(sorted(menu.DEALS)), st.integers(1, 9), st.integers(1, 4), st.data())
def test_every_set_of_pairs_keeps_the_promises(lengths, deal, world_size, micro_batches, data):
    name = data.draw(st.sampled_from([*IN_EDGES, "shuffled", "sorted", "entropy_padding"]))
    order = menu.OF_PAIRS[name]
    cut = data.draw(st.sampled_from([lw.DynamicSize(3), lw.FixedSize(4), lw.Budget(60_000)]))
    cost = data.draw(st.sampled_from([lw.Padded(), lw.Padded(dims="largest")]))
    batching = lw.Batching(order=order, cut=cut, deal=menu.suit(menu.DEALS[deal], cut, cost, order), cost=cost)
    keeps_its_promises(lengths, batching, world_size=world_size, micro_batches=micro_batches)


@settings(max_examples=50, derandomize=True)
@given(length_sets.pairs.filter(len), st.sampled_from(IN_EDGES), st.integers(1, 4))
def test_a_batch_is_of_one_bucket_and_padded_to_its_edges(lengths, name, world_size):
    order = menu.OF_PAIRS[name]
    edges = np.array(order.edges)
    plan = lw.make_plan(lengths, lw.Batching(order=order, cut=lw.FixedSize(4)), world_size=world_size)
    for number, padded in enumerate(plan.padded_lengths.tolist()):
        members = lengths[plan.batch(number)]
        (bucket,) = set(find_bucket(members, edges).tolist())
        assert padded == (edges[bucket] if order.pad_to_edge else members.max(axis=0)).tolist()


@pytest.mark.parametrize("deal", menu.DEALS)
@pytest.mark.parametrize("order", ["shuffled", "edges", "edges_fixed", "edges_drop_fixed", "entropy_padding"])
def test_every_sequence_is_taken_once_however_the_ranks_change(order, deal):
    chance, chosen = random.Random(f"{order} {deal}"), menu.OF_PAIRS[order]
    for _ in range(6):
        lengths = some_pairs(chance, 40)
        cuts = menu.padding_cuts(*budgets(lengths, None, chosen, lw.Padded()))
        cut = cuts[chance.choice(list(cuts))]
        dealt = menu.suit(menu.DEALS[deal], cut, order=chosen)
        loses_nothing(lengths, lw.Batching(order=chosen, cut=cut, deal=dealt), chance)


@pytest.mark.parametrize("order", menu.OF_PAIRS)
def test_every_epoch_and_every_seed_has_its_own_steps(order):
    batching = lw.Batching(order=menu.OF_PAIRS[order], cut=lw.FixedSize(3))
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2)]
    plans = [steps_of(lw.make_plan(PAIRS, batching, seed=seed, epoch=epoch)) for seed, epoch in keys]
    assert len({frozenset(steps) for steps in plans}) == len(keys)


@pytest.mark.parametrize("deal", [deal for deal in menu.DEALS if deal != "portions"])
@pytest.mark.parametrize("order", ["shuffled", "sorted", "edges", "edges_fixed"])
def test_steps_do_not_depend_on_how_ranks_and_micro_batches_split_them(order, deal):
    cut = lw.FixedSize(7) if deal == "RandomSteps_by_count" else lw.Budget(BUDGET)
    chosen = menu.OF_PAIRS[order]
    batching = lw.Batching(order=chosen, cut=cut, deal=menu.suit(menu.DEALS[deal], cut))
    splits = [{"world_size": ranks, "micro_batches": 12 // ranks} for ranks in (1, 3, 12)]
    steps = [steps_of(lw.make_plan(PAIRS, batching, **split)) for split in splits]
    assert all(each == steps[0] for each in steps)


@settings(max_examples=50, derandomize=True)
@given(st.data())
def test_every_batch_of_every_plan_fits_a_shape(data):
    lengths = data.draw(length_sets.pairs)
    order = menu.OF_PAIRS[data.draw(st.sampled_from(FIXED))]
    cost = menu.COSTS[data.draw(st.sampled_from(sorted(menu.COSTS)))]
    cuts = menu.padding_cuts(*budgets(lengths, None, order, cost))
    cut = cuts[data.draw(st.sampled_from(sorted(cuts)))]
    deal = menu.suit(menu.DEALS[data.draw(st.sampled_from(sorted(menu.DEALS)))], cut, cost)
    batching = lw.Batching(order=order, cut=cut, cost=cost, deal=deal)
    shape = {"world_size": data.draw(st.integers(1, 9)), "micro_batches": data.draw(st.integers(1, 3))}
    try:
        plan = lw.make_plan(lengths, batching, epoch=data.draw(st.integers(0, 9)), **shape)
        if data.draw(st.booleans()):
            plan = lw.make_plan(lengths, batching, after=[(*shape.values(), len(plan) // 2)], world_size=2)
        shapes = {tuple(row): rows for rows, *row in lw.batch_shapes(lengths, batching).tolist()}
    except ValueError as error:
        if not menu.may_drop(order, cut, deal) or "`steps` must be at least 1" not in str(error):
            raise
        return
    for size, padded in zip(plan.batch_sizes.tolist(), plan.padded_lengths.tolist(), strict=True):
        assert size <= shapes[tuple(padded)]


def test_shapes_worked_by_hand():
    lengths = [[3, 9], [2, 8], [9, 2], [10, 3], [9, 9]]
    batching = lw.Batching(order=lw.Bucketed(edges=((10, 10), (10, 3), (3, 9)), pad_to_edge=True), cut=lw.Budget(30))
    # Two of 12 or 13 frames fit into a budget of 30, and one of 20.
    assert lw.batch_shapes(lengths, batching).tolist() == [[2, 3, 9], [2, 10, 3], [1, 10, 10]]
    assert batching.order.edges == ((3, 9), (10, 3), (10, 10))
    plan = lw.make_plan(lengths, replace(batching, arrange=lw.ShortestFirst()))
    assert plan.padded_lengths.tolist() == [[3, 9], [10, 3], [10, 10]]
    assert plan.costs.tolist() == [24.0, 26.0, 20.0]
    measures = lw.measure(plan, lengths)
    assert measures.padding_share == pytest.approx(1 - 64 / 70)


def test_a_sequence_counts_as_its_bucket_does_under_a_budget():
    """(9, 1) and (1, 9) cost 10 each, and 18 in the one bucket that holds both."""
    lengths, order = [[9, 1], [1, 9], [1, 1]], lw.Bucketed(edges=((9, 9),), pad_to_edge=True)
    with pytest.raises(lw.OversizeError, match=r"`budget` must be at least the cost of the costliest sequence, 18"):
        lw.make_plan(lengths, lw.Batching(order=order, cut=lw.Budget(12)))
    plan = lw.make_plan(lengths, lw.Batching(order=order, cut=lw.Budget(12, oversize="alone")))
    assert plan.costs.tolist() == [18.0] * 3
    assert plan.over_max_cost().tolist() == [0, 1, 2]
    apart = replace(order, edges=((9, 1), (1, 9)))
    assert lw.make_plan(lengths, lw.Batching(order=apart, cut=lw.Budget(20))).costs.max() <= 20


@pytest.mark.parametrize("by", EDGES)
def test_edges_of_several_lengths_are_given_by_hand(by):
    sentence = (
        r"^`buckets` must be left out for several lengths a sequence, but is 3\. "
        r"Give edges by hand, such as Bucketed\(edges=\(\(20, 30\), \(60, 50\)\)\)\.$"
    )
    for cut, deal in ((lw.Budget(BUDGET), lw.RandomSteps()), (lw.Budget(200, oversize="alone"), lw.Balanced())):
        batching = lw.Batching(order=lw.Bucketed(buckets=3, by=by, pad_to_edge=True), cut=cut, deal=deal)
        with pytest.raises(ValueError, match=sentence):
            lw.make_plan(PAIRS, batching)
    with pytest.raises(
        ValueError, match=r"^`lengths` must be of shape \[n\], but is \(300, 2\)\. Take one, .* by hand"
    ):
        EDGES[by](PAIRS, 3)
    assert EDGES[by](PAIRS[:, :1], 3).tolist() == EDGES[by](PAIRS[:, 0], 3).tolist()


def test_steps_that_mix_buckets_are_padded_to_buckets_within_each_other():
    """A batch of the buckets (9, 4) and (5, 9) would be padded to (9, 9), which is no bucket."""
    order, cut = lw.Bucketed(edges=((9, 4), (5, 9), (12, 12)), pad_to_edge=True), lw.Budget(100)
    with pytest.raises(
        ValueError, match=r"^`edges` must be such that each bucket holds the one before it, beside Rand"
    ):
        lw.Batching(order=order, cut=cut, deal=lw.RandomSteps())
    for batching in (
        lw.Batching(order=order, cut=cut, deal=lw.Balanced()),
        lw.Batching(order=replace(order, pad_to_edge=False), cut=cut, deal=lw.RandomSteps()),
        lw.Batching(order=replace(order, edges=((9, 4), (9, 9), (12, 12))), cut=cut, deal=lw.RandomSteps()),
    ):
        plan = lw.make_plan([[9, 1], [1, 9], [9, 4], [5, 5], [12, 2]] * 8, batching, world_size=2)
        padded = {tuple(row) for row in plan.padded_lengths.tolist()}
        assert padded <= set(batching.order.edges) or not batching.order.pad_to_edge


@settings(max_examples=50, derandomize=True)
@given(length_sets.pairs, st.data())
def test_a_sequence_is_in_the_bucket_that_holds_it_with_the_fewest_frames(lengths, data):
    row = st.lists(st.sampled_from([1, 9, 40, 300, 5_000]), min_size=2, max_size=2)
    edges = sort_rows(np.array(data.draw(st.lists(row, min_size=1, max_size=5))))
    for sizes, bucket in zip(lengths.tolist(), find_bucket(lengths, edges).tolist(), strict=True):
        holding = [b for b, row in enumerate(edges.tolist()) if all(s <= e for s, e in zip(sizes, row, strict=True))]
        assert bucket == min(holding, key=lambda b: (sum(edges[b]), edges[b].tolist()), default=len(edges))


def test_edges_of_pairs_go_through_json_and_a_plan_file(tmp_path):
    order = lw.Bucketed(edges=np.array([[400, 400], [90, 90], [20, 40]]), pad_to_edge=True, longer="drop")
    batching = lw.Batching(order=order, cut=lw.Budget(BUDGET))
    assert order == menu.OF_PAIRS["edges_drop_fixed"]
    assert hash(order) == hash(menu.OF_PAIRS["edges_drop_fixed"])
    assert lw.Batching.from_json(batching.to_json()) == batching
    plan = lw.make_plan(PAIRS, batching, world_size=3)
    plan.save(tmp_path / "plan.npz")
    assert lw.Plan.load(tmp_path / "plan.npz").fingerprint() == plan.fingerprint()
    assert lw.Bucketed(edges=((5,), (9,))) == lw.Bucketed(edges=(5, 9))


class ToEdges:
    """An order of the user's own, which pads each sequence to the next ten of each length."""

    def __call__(self, sizes, key):  # noqa: ARG002
        order = np.argsort(sizes, kind="stable")
        return lw.Ordered(order, edges=-(-PAIRS[order] // 10) * 10)


def test_an_order_of_the_users_own_pads_each_length_to_an_edge():
    plan = lw.make_plan(PAIRS, lw.Batching(order=ToEdges(), cut=lw.FixedSize(5)), world_size=2)
    for number, padded in enumerate(plan.padded_lengths.tolist()):
        assert padded == (-(-PAIRS[plan.batch(number)].max(axis=0) // 10) * 10).tolist()
    with pytest.raises(ValueError, match=r"`edges` must be an array of 2 dimension\(s\), but is \(300,\)"):
        lw.make_plan(PAIRS, lw.Batching(order=OneEdge(), cut=lw.FixedSize(5)))


class OneEdge:
    """An order that gives one edge for two lengths."""

    def __call__(self, sizes, key):  # noqa: ARG002
        return lw.Ordered(np.arange(len(sizes)), edges=np.full(len(sizes), 900))


# Whole numbers alone, so that every platform has the same pairs: source and target of 300 sentences.
SENTENCES = np.stack(
    [np.arange(300) * 7_919 % 83 + 4, np.arange(300) * 7_919 % 83 * (np.arange(300) % 5 + 7) // 9 + 3], 1
)
NAMED = {
    "edges": lw.Batching(order=lw.Bucketed(edges=((40, 90), (90, 40), (99, 120))), cut=lw.Budget(900)),
    "sorted": lw.Batching(order=lw.Sorted(), cut=lw.Budget(900), cost=lw.Padded(dims="largest")),
    "max-entropy": lw.Batching(budget=900, padding=0.2, deal=lw.Balanced()),
    "random steps": lw.Batching(cut=lw.Budget(900), order=lw.Shuffled(), deal=lw.RandomSteps()),
}
GOLDEN = {
    "edges": "316d88833120e310 455bac3e58414202",
    "sorted": "c883eb06a7bd6742 80edfa140711168f",
    "max-entropy": "741a4cfd71b2c01e 9fa2cb428cc256a1",
    "random steps": "76c1ae7b325688f6 2d86e2efde9efb80",
}


@pytest.mark.parametrize("name", NAMED)
def test_plans_of_pairs_stay_as_they_are(name):
    plans = [lw.make_plan(SENTENCES, NAMED[name], seed=1, epoch=2, world_size=ranks) for ranks in (1, 4)]
    assert " ".join(plan.fingerprint() for plan in plans) == GOLDEN[name]


@pytest.mark.parametrize("name", ["sorted", "max-entropy:0.1", "random-steps", "bucketed:1024"])
def test_planning_pairs_takes_no_more_memory_than_the_page_on_windows_says(name):
    lengths = lw.example_lengths("long-tailed", count=400_000)
    pairs, batching = np.stack([lengths, lengths[::-1]], axis=1), parse_strategies(name, cut=lw.Budget(40_000))[name]
    lw.make_plan(pairs, batching, world_size=8, epoch=1)  # compiles, and fits
    tracemalloc.start()
    lw.make_plan(pairs, batching, world_size=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * len(pairs)
