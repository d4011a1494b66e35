"""Same inputs, same plan; other seeds and epochs, other plans; the same steps on every split of the ranks."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.cli.strategies import parse_strategy

LENGTHS = lw.example_lengths(count=300)
NAMES = ("random", "semi-sorted:0.1", "alternated:9", "bucketed:64", "optimal:5", "mxnet:4", "max-entropy:0.05")


def batchings():
    of_rows = [lw.Batching(cut=lw.Rows(9_000, rows=2, by=by)) for by in ("pool", "best-fit")]
    return [parse_strategy(name, cut=lw.Budget(20_000)) for name in NAMES] + of_rows


def steps_of(plan):
    """What each step trains on, in order: the batches as sets, wherever they are computed."""
    batches = [frozenset(plan.batch(number).tolist()) for number in range(len(plan.costs))]
    return [frozenset(batches[number] for number in step.reshape(-1)) for step in plan.grid]


def test_the_same_plan_in_a_fresh_process():
    here = [lw.make_plan(LENGTHS, each, seed=5, epoch=3, world_size=2).fingerprint() for each in batchings()]
    script = (
        "from lengthwise.cli.strategies import parse_strategy\n"
        "import lengthwise as lw; lengths = lw.example_lengths(count=300)\n"
        f"batchings = [parse_strategy(name, cut=lw.Budget(20_000)) for name in {NAMES}]\n"
        "batchings += [lw.Batching(cut=lw.Rows(9_000, rows=2, by=by)) for by in ('pool', 'best-fit')]\n"
        "for batching in batchings:\n"
        "    print(lw.make_plan(lengths, batching, seed=5, epoch=3, world_size=2).fingerprint())"
    )
    for settings in ({"PYTHONHASHSEED": "17"}, {"PYTHONHASHSEED": "4"}):
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


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.float64])
def test_lengths_of_any_type_give_the_same_plan(dtype):
    lengths = (LENGTHS % 255 + 1).astype(dtype)
    plans = [lw.make_plan(each, lw.Batching(budget=3_000)) for each in (lengths, lengths.astype(np.int64))]
    assert plans[0].fingerprint() == plans[1].fingerprint()


@pytest.mark.parametrize("order", menu.ORDERS)
def test_every_epoch_and_every_seed_has_its_own_steps(order):
    cut = lw.FixedSize(3)
    kept = LENGTHS[LENGTHS <= 6_000] if order == "edges_fixed" else LENGTHS
    batching = lw.Batching(order=menu.ORDERS[order], cut=cut)
    # Also (0, 1) against (1, 0), which `seed + epoch` would make alike.
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (2**64 - 1, 0), (0, 2**64 - 1)]
    plans = [steps_of(lw.make_plan(kept, batching, seed=seed, epoch=epoch)) for seed, epoch in keys]
    assert len({tuple(steps) for steps in plans}) == len(keys)
    assert len({frozenset(steps) for steps in plans}) == len(keys), "batches anew, not the same ones in another order"


# Portions are dealt for each rank.
@pytest.mark.parametrize("deal", [deal for deal in menu.DEALS if deal != "portions"])
@pytest.mark.parametrize("arrange", menu.ARRANGEMENTS)
def test_steps_do_not_depend_on_how_ranks_and_micro_batches_split_them(deal, arrange):
    for order in (lw.Shuffled(), lw.SemiSorted(), lw.Bucketed(buckets=4)):
        cut = lw.FixedSize(7) if deal == "RandomSteps_by_count" else lw.Budget(10_000)
        batching = lw.Batching(order=order, cut=cut, deal=menu.DEALS[deal], arrange=menu.ARRANGEMENTS[arrange])
        splits = [{"world_size": ranks, "micro_batches": 12 // ranks} for ranks in (1, 2, 3, 4, 6, 12)]
        steps = [steps_of(lw.make_plan(LENGTHS, batching, **split)) for split in splits]
        assert all(each == steps[0] for each in steps)


def test_an_epoch_needs_no_other():
    batching = batchings()[1]
    alone = lw.make_plan(LENGTHS, batching, epoch=7).fingerprint()
    for epoch in range(8):
        last = lw.make_plan(LENGTHS, batching, epoch=epoch).fingerprint()
    assert last == alone
