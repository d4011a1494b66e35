"""A step that is given: the fewest micro-batches that keep the limits, all sequences once, ranks that hardly wait."""

import itertools
import random
import re

import numpy as np
import pytest

import length_sets
import lengthwise as lw
import menu

ATTENTION = lw.Quadratic(linear=24.0, quadratic=0.05)
COSTS = {**menu.COSTS, "once": lw.Quadratic(per_batch=50.0, per_length=0.5)}
ROWS_OF_TEN = lw.Batching(cut=lw.Rows(10))
LENGTHS = np.array([9, 3, 3, 2, 2, 1])


def by_rank(plan, lengths=None):
    """The sequences of each batch of each rank, or their lengths."""
    batches = [[plan.batch(number) for number in column] for column in plan.grid[0].T]
    return [[(batch if lengths is None else lengths[batch]).tolist() for batch in rank] for rank in batches]


def time_of(plan, meet):
    """The cost of the costliest rank, or the sum of the costliest batches of all meetings."""
    costs = (plan.costs if plan.balances is None else plan.balances)[plan.grid[0]]
    return costs.sum(axis=0).max() if meet == "step" else costs.max(axis=1).sum()


@pytest.mark.parametrize("cut", [lw.Budget(9), lw.FixedSize(2)])
def test_padded_batches_by_hand(cut):
    plan = lw.plan_step(LENGTHS, lw.Batching(cut=cut), world_size=2)
    assert by_rank(plan, LENGTHS) == [[[1], [9]], [[2, 2], [3, 3]]]


def test_ranks_that_meet_after_each_batch_fill_the_meeting_of_a_giant():
    batching = lw.Batching(cut=lw.Rows(100))
    once, each = (
        lw.plan_step(LENGTHS, batching, world_size=2, micro_batches=2, meet=meet) for meet in ("step", "batch")
    )
    assert by_rank(once, LENGTHS) == [[[1], [9]], [[3, 2], [3, 2]]]  # 10 and 10; meetings of 5 and 9
    assert by_rank(each, LENGTHS) == [[[1], [3, 3, 2]], [[2], [9]]]  # 9 and 11; meetings of 2 and 9
    waits = [
        (found.straggler_waste, found.batch_straggler_waste) for found in map(lw.measure, (once, each), 2 * [LENGTHS])
    ]
    assert waits == [pytest.approx((0.0, 1 - 10 / 14)), pytest.approx((1 - 10 / 11, 1 - 10 / 11))]


def test_groups_share_a_rank_and_given_ranks_keep_their_sequences():
    plan = lw.plan_step(LENGTHS, ROWS_OF_TEN, world_size=2, groups=list("abcabc"))
    assert by_rank(plan) == [[[3], [0]], [[1, 5], [2, 4]]]
    plan = lw.plan_step(LENGTHS, ROWS_OF_TEN, world_size=2, ranks=[0, 0, 0, 0, 0, 1])
    assert by_rank(plan, LENGTHS) == [[[9], [3, 3, 2, 2]], [[1], [1]]]
    assert plan.first_taken.tolist() == [[[True, True], [True, False]]]  # the second rank waits with its own


def test_a_rank_without_a_group_takes_a_batch_after_the_rank_that_counts_it():
    plan = lw.plan_step([3, 3, 9], lw.Batching(cut=lw.Rows(9)), world_size=3, micro_batches=2, groups=["a", "a", "b"])
    assert by_rank(plan) == [[[2], [2]], [[0], [1]], [[0], [0]]]
    assert plan.first_taken[0].T.tolist() == [[True, False], [True, True], [False, False]]


def test_batches_that_are_full_to_the_last_bit_are_the_fewest():
    cost = lw.Quadratic(quadratic=0.001)  # ten times the cost of a batch is rounded down
    batching = lw.Batching(cut=lw.Budget(float(cost([1], [[2]])[0])), cost=cost)
    assert lw.plan_step([2] * 10, batching, world_size=1, groups=[0] * 10).micro_batches == 10


def test_fewer_sequences_than_places_are_taken_again_with_weight_0():
    plan = lw.plan_step([9], ROWS_OF_TEN, world_size=2, multiple_of=2)
    assert by_rank(plan) == [[[0], [0]], [[0], [0]]]
    assert lw.loss_scales(plan).tolist() == [[[2.0, 0.0], [0.0, 0.0]]]


def test_no_sequences_are_a_plan_of_no_step():
    for lengths, cut in itertools.product(([], np.empty((0, 2), np.int64)), (lw.Budget(9), lw.FixedSize(2))):
        plan = lw.plan_step(lengths, lw.Batching(cut=cut), world_size=2)
        assert (plan.steps, plan.world_size, list(plan.batches(1))) == (0, 2, [])
        assert lw.measure(plan, lengths).batches == 0


def test_batches_are_as_many_as_asked_or_a_multiple():
    batching = lw.Batching(budget=30, balance=ATTENTION)
    lengths = lw.example_lengths(count=90) % 30 + 1
    fewest = lw.plan_step(lengths, batching, world_size=3).micro_batches
    for multiple in (2, 5):
        plan = lw.plan_step(lengths, batching, world_size=3, multiple_of=multiple)
        assert plan.micro_batches == -(-fewest // multiple) * multiple
    assert lw.plan_step(lengths, batching, world_size=3, micro_batches=fewest + 3).micro_batches == fewest + 3
    with pytest.raises(ValueError, match=rf"^`micro_batches` must be at least {fewest} to keep the limit, but is 2\. "):
        lw.plan_step(lengths, batching, world_size=3, micro_batches=2)


def test_a_plan_is_read_as_any_other(tmp_path):
    lengths = lw.example_lengths(count=300)
    batching = lw.Batching(cut=lw.Rows(6_000), cost=ATTENTION)
    plan = lw.plan_step(lengths, batching, world_size=4, meet="batch")
    plan.save(tmp_path / "step.npz")
    again = lw.Plan.load(tmp_path / "step.npz")
    assert again.fingerprint() == plan.fingerprint() == "73bba183c243c986"
    assert by_rank(again) == by_rank(plan)
    assert lw.Batching.from_json(plan.batching) == batching
    found = lw.measure(plan, lengths)
    assert (found.dropped, found.repeated, found.over_max_cost) == (0, 0, 0)
    assert found.straggler_waste <= found.batch_straggler_waste < 0.01
    assert np.isclose(lw.evaluation_weights(plan, lengths).sum(), 1.0)


def test_sequences_of_two_lengths_are_sorted_in_bands():
    chance = np.random.default_rng(0)
    source = chance.lognormal(2.5, 0.4, 2_000)
    pairs = np.stack([source, source * chance.lognormal(0.0, 0.25, 2_000)], axis=1).astype(int) + 1
    assert lw.measure(lw.plan_step(pairs, lw.Batching(budget=900), world_size=8), pairs).padding_share < 0.1


WRONG = {
    "an order": (
        {"batching": lw.Batching(budget=20, order=lw.Sorted())},
        "`batching` must be a cut, a cost and a balance",
    ),
    "a padding": ({"batching": lw.Batching(budget=20, padding=0.1)}, "`batching` must be a cut, a cost and a balance"),
    "incomplete": (
        {"batching": lw.Batching(cut=lw.FixedSize(2, drop_incomplete=True))},
        "`drop_incomplete` must be False for a step that is given, but is True. ",
    ),
    "paper": (
        {"batching": lw.Batching(cut=lw.DynamicSize(2, rule="paper"))},
        "`cut` must be a FixedSize, a Budget, a Ro",
    ),
    "a meeting": ({"meet": "each"}, "`meet` must be one of step, batch, but is 'each'. "),
    "a multiple": ({"multiple_of": 0}, "`multiple_of` must be at least 1, but is 0. "),
    "both numbers": ({"multiple_of": 2, "micro_batches": 2}, "`micro_batches` and `multiple_of` are both given. "),
    "both places": ({"groups": [0] * 6, "ranks": [0] * 6}, "`groups` and `ranks` are both given. "),
    "few ranks": ({"ranks": [0, 1]}, "`ranks` must be 6 whole numbers from 0 to 1, but is [0, 1]. "),
    "rank 2": ({"ranks": [0, 1, 2, 0, 0, 0]}, "`ranks` must be 6 whole numbers from 0 to 1, but is [0, 1, 2, "),
    "an idle rank": ({"ranks": [1] * 6}, "Rank 0 has no sequence. Give it one of weight 0, or leave out `ranks`"),
    "too long": (
        {"batching": lw.Batching(budget=8)},
        "`budget` must be at least the cost of the costliest sequence, 9, b",
    ),
    "no row": (
        {"batching": lw.Batching(cut=lw.Rows(8))},
        "`capacity` must be at least the longest sequence, 9, but is 8 at",
    ),
    "all dropped": (
        {"batching": lw.Batching(cut=lw.Rows(1, oversize="drop")), "lengths": [9]},
        "No sequence is left: the cut drops all",
    ),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_in_one_sentence(changes, message):
    arguments = {"lengths": LENGTHS, "batching": ROWS_OF_TEN, "world_size": 2} | changes
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        lw.plan_step(**arguments)


def draw_cut(chance, lengths, cost):
    budget, tight = menu.budgets(lengths, None, cost)
    longest = int(lengths.max(initial=1))
    cuts = [
        lw.Budget(budget, max_sequences=chance.choice([None, 1, 3])),
        lw.Budget(3 * budget + 500, multiple_of=8, count_multiple_of=2),
        lw.Budget(tight, oversize="alone"),
        lw.Budget(tight, oversize="drop"),
        lw.FixedSize(chance.choice([1, 3])),
        lw.DynamicSize(2),
    ]
    if lengths.ndim == 1:
        cuts += [
            lw.Rows(chance.choice([longest, 2 * longest, 5 * longest])),
            lw.Rows(3 * longest, max_in_row=chance.choice([1, 2])),
            lw.Rows(2 * longest, rows=3, max_in_row=chance.choice([None, 2])),
            lw.Rows(max(1, longest // 2), rows=2, oversize="drop"),
        ]
    return chance.choice(cuts)


def draw_case(seed):
    chance = random.Random(seed)
    lengths = length_sets.draw_lengths(chance, chance.choice([1, 1, 1, 2]))
    cost = chance.choice(list(COSTS.values()))
    balance = chance.choice(list(COSTS.values())) if chance.random() < 0.4 else None
    batching = lw.Batching(cut=draw_cut(chance, lengths, cost), cost=cost, balance=balance)
    ranks = range(chance.randint(1, 6))
    options = {"world_size": len(ranks), "meet": chance.choice(["step", "batch"])}
    options |= {"multiple_of": chance.randint(2, 4)} if chance.random() < 0.3 else {}
    kind = chance.choice(["free", "groups", "ranks"])
    if kind == "groups":
        options["groups"] = [chance.randrange(1 + len(lengths) // 3) for _ in lengths]
    elif kind == "ranks" and len(lengths) >= len(ranks):
        options["ranks"] = [*ranks, *(chance.choice(ranks) for _ in lengths[len(ranks) :])]
    return lengths, batching, options


@pytest.mark.parametrize("start", range(0, 2_000, 250))
def test_a_step_keeps_every_promise(start):
    kept = 0
    for seed in range(start, start + 250):
        lengths, batching, options = draw_case(seed)
        try:
            plan = lw.plan_step(lengths, batching, **options)
        except ValueError as error:  # a sequence too long was to be dropped, and it was all that a rank had
            known = re.match(r"No sequence is left|Rank \d has no sequence", str(error))
            if not known or batching.cut.oversize != "drop":
                raise
            continue
        if len(lengths):
            check_ranks(plan, lengths, batching, options)
            check_limits(plan, lengths, batching)
            kept += 1
    assert kept > 180


def check_ranks(plan, lengths, batching, options):
    """As many batches on each rank, none empty, each sequence once, those that share a rank together."""
    ranks = by_rank(plan)
    assert (plan.steps, plan.world_size, len(plan) % options.get("multiple_of", 1)) == (1, options["world_size"], 0)
    assert all(batch for rank in ranks for batch in rank)
    outputs = [list(itertools.chain.from_iterable(rank)) for rank in ranks]
    taken, dropped = set(itertools.chain.from_iterable(outputs)), set(plan.dropped().tolist())
    assert sorted([*taken, *dropped]) == list(range(len(lengths)))
    assert getattr(batching.cut, "oversize", "") == "drop" or not dropped
    assert lw.restore_order(plan, outputs) == [None if number in dropped else number for number in range(len(lengths))]
    scales = lw.loss_scales(plan, ranks_averaged=False)
    assert scales.sum() == pytest.approx(1.0)
    assert ((scales > 0) == plan.first_taken).all()
    if "ranks" in options:
        assert all(options["ranks"][number] == rank for rank, numbers in enumerate(outputs) for number in numbers)
    elif "groups" in options:
        counted = [(rank, plan.batch(plan.grid[0, place, rank])) for place, rank in np.argwhere(plan.first_taken[0])]
        homes = {(options["groups"][number], rank) for rank, batch in counted for number in batch}
        assert len({group for group, _ in homes}) == len(homes)
    elif len(taken) >= plan.grid.size:
        assert len(plan.costs) == plan.grid.size  # none is taken again


def check_limits(plan, lengths, batching):
    cut, rows = batching.cut, lengths.reshape(len(lengths), -1)
    for number in range(len(plan.costs)):
        batch = plan.batch(number)
        if isinstance(cut, lw.Rows):
            packed = plan.rows(number)
            assert len(packed) <= cut.rows
            assert max(lengths[row].sum() for row in packed) <= cut.capacity
            assert max(map(len, packed)) <= (cut.max_in_row or len(lengths))
        else:
            most = (
                getattr(cut, "batch_size", None)
                if isinstance(cut, lw.FixedSize)
                else getattr(cut, "max_sequences", None)
            )
            assert len(batch) <= (most or len(lengths))
            is_alone = getattr(cut, "oversize", "") == "alone" and len(batch) == 1
            assert plan.costs[number] <= plan.max_cost or is_alone
            assert (plan.padded_lengths[number] >= rows[batch].max(axis=0)).all()


def assignments(count, bins):
    """Every way to put `count` items into exactly `bins` bins."""

    def extend(ways, used):
        if len(ways) == count:
            yield from [ways] if used == bins else []
            return
        for number in range(min(used + 1, bins)):
            yield from extend([*ways, number], max(used, number + 1))

    return extend([], 0)


def fits(batching, lengths):
    if isinstance(batching.cut, lw.Rows):
        return sum(lengths) <= batching.cut.capacity
    return len(lengths) * max(lengths) <= batching.cut.budget


def fewest_batches(batching, lengths):
    """The fewest batches that hold all lengths, by every way to divide them."""
    for count in range(1, len(lengths) + 1):
        for bin_of in assignments(len(lengths), count):
            bins = [[length for length, own in zip(lengths, bin_of, strict=True) if own == bin] for bin in range(count)]
            if all(fits(batching, own) for own in bins):
                return count
    return None


SMALL = {"rows": lw.Batching(cut=lw.Rows(40), cost=ATTENTION), "padded": lw.Batching(budget=40, balance=ATTENTION)}


@pytest.mark.parametrize("batching", SMALL.values(), ids=SMALL)
def test_small_steps_have_the_fewest_batches_of_all_ways_to_divide_them(batching):
    chance = np.random.default_rng(1)
    for _ in range(150):
        lengths = chance.integers(1, chance.choice([15, 25, 40]) + 1, chance.integers(2, 8))
        world_size = int(chance.integers(1, 3))
        plan = lw.plan_step(lengths, batching, world_size=world_size)
        assert plan.micro_batches == -(-fewest_batches(batching, lengths.tolist()) // world_size)
        ranks = np.arange(len(lengths)) % world_size
        plan = lw.plan_step(lengths, batching, world_size=world_size, ranks=ranks)
        parts = [fewest_batches(batching, lengths[ranks == rank].tolist()) for rank in range(world_size)]
        assert plan.micro_batches == max(parts)


def least_time(batching, lengths, meet):
    """The least time of two ranks with two micro-batches each, by every way to divide the lengths and deal batches."""
    times = []
    for bin_of in assignments(len(lengths), 4):
        bins = [lengths[np.array(bin_of) == number] for number in range(4)]
        if all(fits(batching, own) for own in bins):
            padded = [np.full(len(own), own.max()) if batching.balance else own for own in bins]
            costs = sorted(float(ATTENTION(np.ones(len(own)), own[:, None]).sum()) for own in padded)
            pairs = itertools.combinations(costs[1:], 1)
            ranks = [max(costs[0] + one, sum(costs) - costs[0] - one) for (one,) in pairs]
            times.append(min(ranks) if meet == "step" else costs[1] + costs[3])
    return min(times, default=None)


@pytest.mark.parametrize(("name", "mean", "most"), [("rows", 1.02, 1.12), ("padded", 1.03, 1.2)])
@pytest.mark.parametrize("meet", ["step", "batch"])
def test_small_steps_take_about_the_least_time_of_all_ways_to_divide_them(name, mean, most, meet):
    chance = np.random.default_rng(2)
    ratios = []
    while len(ratios) < 40:
        lengths = np.rint(chance.lognormal(2.3, 0.7, chance.integers(4, 8))).astype(int).clip(1, 40)
        least = least_time(SMALL[name], lengths, meet)
        if least is not None:
            plan = lw.plan_step(lengths, SMALL[name], world_size=2, micro_batches=2, meet=meet)
            ratios.append(time_of(plan, meet) / least)
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < mean
    assert max(ratios) < most


def test_ranks_hardly_wait_and_the_fewest_rows_are_met_on_rollouts():
    chance = np.random.default_rng(0)
    for world_size, capacity in ((8, 16_384), (32, 32_768)):
        lengths = chance.lognormal(7.0, 0.7, 40 * world_size).astype(int).clip(50, capacity)
        batching = lw.Batching(cut=lw.Rows(capacity), cost=lw.Quadratic(linear=24_576.0, quadratic=1.0))
        plan = lw.plan_step(lengths, batching, world_size=world_size)
        assert plan.micro_batches == -(-int(lengths.sum()) // (capacity * world_size))
        assert lw.measure(plan, lengths).straggler_waste < 0.001
        each = lw.plan_step(lengths, batching, world_size=world_size, meet="batch")
        assert lw.measure(each, lengths).batch_straggler_waste < lw.measure(plan, lengths).batch_straggler_waste
