"""Same inputs, same plan; other seeds and epochs, other plans; the same steps on every split of the ranks."""

import os
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import choices
import lengthwise as lw
from lengthwise.planning import fit

LENGTHS = lw.example_lengths(count=300)
NAMES = ("random", "semi-sorted:0.1", "alternated:9", "bucketed:64", "optimal:5", "mxnet:4", "max-entropy:0.05")


def batchings():
    of_rows = [lw.Batching(cut=lw.Rows(9_000, rows=2, by=by)) for by in ("pool", "best-fit")]
    return [lw.strategy(name, cut=lw.Budget(20_000)) for name in NAMES] + of_rows


def steps_of(plan):
    """What each step trains on, in order: the batches as sets, wherever they are computed."""
    batches = [frozenset(plan.batch(number).tolist()) for number in range(len(plan.costs))]
    return [frozenset(batches[number] for number in step.reshape(-1)) for step in plan.grid]


def test_the_same_plan_in_a_fresh_process_with_and_without_compiled_kernels_on_four_cores():
    """Threads that change after every few lines of Python show parts of a call that undo each other's work."""
    here = [lw.make_plan(LENGTHS, each, seed=5, epoch=3, world_size=2).fingerprint() for each in batchings()]
    script = (
        "from lengthwise import _compile; _compile.BEFORE_READING = _compile.BEFORE_COMPILING = 0.0\n"
        "from lengthwise._compile import cores; cores.LEAST, cores.count_cores = 64, lambda: 4\n"
        "import sys; sys.setswitchinterval(1e-6)\n"
        "import lengthwise as lw; lengths = lw.example_lengths(count=300)\n"
        f"batchings = [lw.strategy(name, cut=lw.Budget(20_000)) for name in {NAMES}]\n"
        "batchings += [lw.Batching(cut=lw.Rows(9_000, rows=2, by=by)) for by in ('pool', 'best-fit')]\n"
        "for batching in batchings:\n"
        "    print(lw.make_plan(lengths, batching, seed=5, epoch=3, world_size=2).fingerprint())"
    )
    for settings in ({"PYTHONHASHSEED": "17"}, {"PYTHONHASHSEED": "4", "NUMBA_DISABLE_JIT": "1"}):
        command = [sys.executable, "-W", "ignore::UserWarning", "-c", script]  # of a padding that these lengths miss
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
        assert (done.stdout.split(), done.stderr) == (here, "")


def test_no_global_generator_is_read_or_written():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), str(np.random.get_state())
    first = [lw.make_plan(LENGTHS, each).fingerprint() for each in batchings()]
    assert (random.getstate(), str(np.random.get_state())) == before
    random.seed(2)
    np.random.seed(2)
    assert [lw.make_plan(LENGTHS, each).fingerprint() for each in batchings()] == first


def test_lengths_are_never_touched():
    lengths = np.array([5, 9, 2, 4])
    lw.make_plan(lengths, batchings()[0])
    assert lengths.tolist() == [5, 9, 2, 4]
    assert lengths.flags.writeable


def every_choice():
    """Batchings that have each choice at least once."""
    budget, random = lw.Budget(8_000), lw.Shuffled()
    for name, order in choices.ORDERS.items():
        if name != "edges_drop":  # it would drop all
            yield name, lw.Batching(order=order, cut=budget)
    for name, cut in choices.cuts(40_000, 8_000).items():
        yield name, lw.Batching(order=choices.suit_order(random, cut), cut=cut)
    for name, cost in choices.COSTS.items():
        cut = lw.Budget(20 * (0.5 + 6_000**1.5), oversize="alone")
        yield name, lw.Batching(order=lw.MaxEntropy(padding=0.1), cut=cut, cost=cost)
    for name, deal in choices.DEALS.items():
        if "by_count" not in name:
            yield name, lw.Batching(order=random, cut=budget, deal=deal)
    yield "rows", lw.Batching(cut=lw.Rows(9_000, rows=4), deal=lw.RandomSteps())
    yield "multiples", lw.Batching(cut=lw.Budget(40_000, multiple_of=100, count_multiple_of=4))
    cut = lw.Budget(255, oversize="alone", multiple_of=8)  # 255 is padded to 256
    yield "over by a multiple", lw.Batching(order=random, cut=cut)
    yield "chunks", lw.Batching(cut=lw.FixedSize(8), chunks=lw.Chunks(200, step=50))


def near_two_bytes():
    """Batchings that pad 65,535 frames to more, which two bytes do not hold."""
    edges, budget = (90, 20_000, 70_000), lw.Budget(200_000)
    eights = lw.Budget(200_000, multiple_of=8, count_multiple_of=2)
    yield "fixed", lw.Batching(order=lw.Windowed(30), cut=lw.FixedSize(3, multiple_of=8))
    yield "edges", lw.Batching(order=lw.Bucketed(edges=edges, pad_to_edge=True), cut=lw.FixedSize(3))
    yield "multiples", lw.Batching(order=lw.Shuffled(), cut=eights, deal=lw.Balanced())
    yield "steps", lw.Batching(order=lw.Shuffled(), cut=budget, deal=lw.RandomSteps())
    yield "steps of multiples", lw.Batching(order=lw.Shuffled(), cut=eights, deal=lw.RandomSteps())
    yield "steps of edges", lw.Batching(order=lw.Bucketed(edges=edges, pad_to_edge=True), cut=budget)
    yield "alone", lw.Batching(order=lw.Sorted(), cut=lw.Budget(65_535, oversize="alone", multiple_of=8))
    yield "drop", lw.Batching(order=lw.AlternatedSort(3), cut=lw.Budget(65_535, oversize="drop", multiple_of=8))
    cost = lw.Quadratic(quadratic=1e-6, per_batch=900.0)
    yield "by cost", lw.Batching(order=lw.SemiSorted(), cut=lw.Budget(200_000), cost=cost)
    yield "rows", lw.Batching(cut=lw.Rows(70_000, rows=2))
    yield "steps of rows", lw.Batching(cut=lw.Rows(70_000, rows=2), deal=lw.RandomSteps())
    yield "entropy", lw.Batching(order=lw.MaxEntropy(padding=0.1), cut=lw.DynamicSize(4), deal=lw.Portions())
    yield "by calls", lw.Batching(order=lw.Shuffled(), cut=lw.Budget(3e8), cost=choices.by_calls)


def pairs_near_two_bytes():
    """Batchings of pairs, whose lengths two bytes hold, and whose sums and padded lengths they do not."""
    edges, budget = ((90, 70_000), (20_000, 20_000), (70_000, 70_000)), lw.Budget(500_000)
    eights = lw.Budget(500_000, multiple_of=8, count_multiple_of=2)
    attention = lw.Quadratic(linear=(1.0, 2.0), quadratic=1e-6, per_batch=900.0)
    for name, order in choices.OF_PAIRS.items():
        if "edges" not in name:  # they would drop or refuse nearly all
            yield name, lw.Batching(order=order, cut=lw.FixedSize(3))
    for order in (lw.Sorted(), lw.Shuffled(), lw.Windowed(30)):
        yield f"{order} by multiples", lw.Batching(order=order, cut=eights, deal=lw.Balanced())
    for order in (lw.Sorted(), lw.Shuffled(), lw.MaxEntropy(padding=0.3), lw.MaxEntropy(scale=9_000.0)):
        yield f"{order} by cost", lw.Batching(order=order, cut=budget, cost=attention, deal=lw.Stratified())
    yield "edges", lw.Batching(order=lw.Bucketed(edges=edges, pad_to_edge=True), cut=lw.FixedSize(3))
    for name, cut in (
        ("fixed", lw.FixedSize(3)),
        ("budget", budget),
        ("eights", eights),
        ("dynamic", lw.DynamicSize(2)),
    ):
        yield f"steps of {name}", lw.Batching(order=lw.Shuffled(), cut=cut, deal=lw.RandomSteps())
    yield "steps by cost", lw.Batching(order=lw.Shuffled(), cut=budget, cost=attention, deal=lw.RandomSteps())
    by_calls = lw.Batching(order=lw.Shuffled(), cut=lw.Budget(3e9), cost=choices.by_calls, deal=lw.RandomSteps())
    yield "steps by calls", by_calls
    for name in ("optimal", "uniform"):
        order = lw.Bucketed(buckets=4, by=name, pad_to_edge=True)
        yield f"steps of {name} edges", lw.Batching(order=order, cut=budget, deal=lw.RandomSteps())
    for oversize in ("alone", "drop"):
        cut = lw.Budget(110_000, oversize=oversize)
        yield oversize, lw.Batching(order=lw.Sorted(), cut=cut)
        yield f"steps, {oversize}", lw.Batching(order=lw.Shuffled(), cut=cut, deal=lw.RandomSteps())
    yield "by cost", lw.Batching(order=lw.SemiSorted(), cut=budget, cost=attention)
    yield "portions", lw.Batching(order=lw.Sorted(), cut=budget, deal=lw.Portions())


def plan_as(lengths, batching, monkeypatch=None):
    """A plan by lengths in two bytes; or, with `monkeypatch`, in the eight bytes of int64."""
    fit._remembered.clear()
    if monkeypatch is None:
        return lw.make_plan(lengths, batching, seed=2, world_size=2)
    with monkeypatch.context() as patch:
        patch.setattr("lengthwise.planning.make.narrow", lambda each: each.astype(np.int64))
        return lw.make_plan(lengths, batching, seed=2, world_size=2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batching", [pytest.param(batching, id=name) for name, batching in every_choice()])
def test_lengths_of_few_bits_give_the_plan_that_they_give_as_int64(batching, monkeypatch):
    """They are not copied, and 255 + 1 or 300 x 300 must not be computed in their type."""
    for dtype, most in ((np.uint8, 255), (np.int16, 6_000), (np.uint16, 6_000), (np.uint32, 6_000)):
        lengths = LENGTHS[:100] % most + 1
        lengths[7] = most
        given = lengths.astype(dtype)
        plans = [plan_as(given, batching), plan_as(lengths, batching), plan_as(lengths, batching, monkeypatch)]
        assert len({plan.fingerprint() for plan in plans}) == 1
        for name in ("sequences", "offsets", "padded_lengths", "costs", "grid"):
            assert len({getattr(plan, name).dtype for plan in plans}) == 1
        assert np.array_equal(given, lengths)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("longest", [65_535, 65_536])
@pytest.mark.parametrize("batching", [pytest.param(batching, id=name) for name, batching in near_two_bytes()])
def test_the_longest_that_two_bytes_hold_is_padded_to_more(batching, longest, monkeypatch):
    lengths = np.random.default_rng(6).integers(1, longest + 1, 120)
    lengths[[7, 40]] = longest
    assert plan_as(lengths, batching).fingerprint() == plan_as(lengths, batching, monkeypatch).fingerprint()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("longest", [255, 65_535, 65_536])
@pytest.mark.parametrize("batching", [pytest.param(each, id=name) for name, each in pairs_near_two_bytes()])
def test_pairs_of_few_bits_give_the_plan_that_they_give_as_int64(batching, longest, monkeypatch):
    pairs = np.random.default_rng(6).integers(1, longest + 1, (120, 2))
    pairs[[7, 40]] = longest  # a sum of 131,070
    pairs[9], pairs[11] = (longest, 1), (1, longest)
    plans = [plan_as(pairs, batching), plan_as(pairs, batching, monkeypatch)]
    plans += [plan_as(pairs.astype(dtype), batching) for dtype in (np.min_scalar_type(longest), np.int32)]
    plans.append(plan_as(np.asfortranarray(pairs), batching))
    assert len({plan.fingerprint() for plan in plans}) == 1
    for name in ("sequences", "offsets", "padded_lengths", "costs", "grid"):
        assert len({getattr(plan, name).dtype for plan in plans}) == 1


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_lengths_of_few_bits_are_not_copied(dtype):
    lengths = np.arange(1, 200_001) % 900 + 1
    batching = lw.Batching(order=lw.Sorted(), cut=lw.FixedSize(16))

    def peak(given):
        lw.make_plan(given, batching)
        tracemalloc.start()
        lw.make_plan(given, batching)
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # int64 lengths are not copied either. A copy of all would be 8 bytes a sequence.
    assert peak(lengths.astype(dtype)) < peak(lengths) + 2 * len(lengths)


@pytest.mark.parametrize("order", choices.ORDERS)
def test_every_epoch_and_every_seed_has_its_own_steps(order):
    cut = lw.FixedSize(3)
    kept = LENGTHS[LENGTHS <= 6_000] if order == "edges_fixed" else LENGTHS
    batching = lw.Batching(order=choices.ORDERS[order], cut=cut)
    # Also (0, 1) against (1, 0), which `seed + epoch` would make alike.
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (2**64 - 1, 0), (0, 2**64 - 1)]
    plans = [steps_of(lw.make_plan(kept, batching, seed=seed, epoch=epoch)) for seed, epoch in keys]
    assert len({tuple(steps) for steps in plans}) == len(keys)
    assert len({frozenset(steps) for steps in plans}) == len(keys), "batches anew, not the same ones in another order"


# Portions are dealt for each rank, and ranks wait for each other otherwise where they are fewer.
@pytest.mark.parametrize("deal", [deal for deal in choices.DEALS if not deal.startswith(("portions", "waiting"))])
@pytest.mark.parametrize("arrange", choices.ARRANGEMENTS)
def test_steps_do_not_depend_on_how_ranks_and_micro_batches_split_them(deal, arrange):
    for order in (lw.Shuffled(), lw.SemiSorted(), lw.Bucketed(buckets=4)):
        cut = lw.FixedSize(7) if deal == "RandomSteps_by_count" else lw.Budget(10_000)
        batching = lw.Batching(order=order, cut=cut, deal=choices.DEALS[deal], arrange=choices.ARRANGEMENTS[arrange])
        splits = [{"world_size": ranks, "micro_batches": 12 // ranks} for ranks in (1, 2, 3, 4, 6, 12)]
        steps = [steps_of(lw.make_plan(LENGTHS, batching, **split)) for split in splits]
        assert all(each == steps[0] for each in steps)


def test_an_epoch_needs_no_other():
    batching = batchings()[1]
    alone = lw.make_plan(LENGTHS, batching, epoch=7).fingerprint()
    for epoch in range(8):
        last = lw.make_plan(LENGTHS, batching, epoch=epoch).fingerprint()
    assert last == alone


LONGEST = (255, 256, 65_527, 65_528, 65_535, 65_536)
LIMITS = (2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 65_536)


def squares(counts, padded_lengths):
    """A cost in the numbers that it is given: those of 65,535 do not fit into 32 bits, nor those of 2 rows into 33."""
    return (np.asarray(counts)[:, None] * padded_lengths * padded_lengths).sum(axis=1)


def any_near_a_limit(chance, longest, dims):
    """A batching whose multiples leave two bytes, and whose budget lies at a power of two."""
    multiple = chance.choice([1, 7, 8, 1_000, 65_535, 65_536])
    most = -(-longest // multiple) * multiple
    own = {"multiple_of": multiple}
    budget = chance.choice([dims * most, 3 * dims * most, *(limit for limit in LIMITS if limit >= dims * most)])
    cut = chance.choice(
        [lw.FixedSize(3, **own), lw.DynamicSize(2, **own), lw.Budget(budget, **own)]
        + [lw.Rows(max(longest, limit), rows=2) for limit in LIMITS[:2] if dims == 1]
    )
    cost = lw.Padded() if isinstance(cut, lw.Budget) else chance.choice([squares, *choices.COSTS.values()])
    names = [name for name, order in choices.ORDERS.items() if getattr(order, "edges", None) is None]
    order = choices.suit_order(choices.ORDERS[chance.choice(names)], cut)
    deal = choices.suit(choices.DEALS[chance.choice([name for name in choices.DEALS if "drop" not in name])], cut)
    return lw.Batching(order=order, cut=cut, deal=deal, cost=cost)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("longest", LONGEST)
def test_near_every_power_of_two_the_plans_of_few_bits_are_those_of_int64(longest, monkeypatch):
    chance = random.Random(longest)
    for _ in range(40):
        dims, count = chance.choice([1, 1, 2]), chance.choice([1, 2, 7, 40])
        lengths = np.array([chance.randint(1, longest) for _ in range(count * dims)])
        lengths[0] = longest
        lengths = lengths.reshape(-1, dims) if dims > 1 else lengths
        batching = any_near_a_limit(chance, longest, dims)
        plans = [plan_as(lengths, batching), plan_as(lengths, batching, monkeypatch)]
        assert len({plan.fingerprint() for plan in plans}) == 1, batching
        if isinstance(batching.cut, lw.Budget):
            assert plans[0].costs.max() <= batching.cut.budget
