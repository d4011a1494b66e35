"""Resume on other ranks, as samplers do it; `test_promises.py` has the plans of what runs leave, for all choices."""

import json
import random

import numpy as np
import pytest

import lengthwise as lw

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths("long-tailed", count=180)
TIMES = np.repeat([0.4, 2.5, 0.0, 1.0], [100, 40, 20, 20])
BATCHINGS = {
    "fixed": lw.Batching(cut=lw.FixedSize(4)),
    "budget": lw.Batching(cut=lw.Budget(6_000), order=lw.MaxEntropy(scale=20.0), arrange=lw.ShuffledSteps()),
    "steps": lw.Batching(cut=lw.Budget(9_000), order=lw.Shuffled(), deal=lw.RandomSteps()),
    "portions": lw.Batching(cut=lw.FixedSize(3), deal=lw.Portions()),
    "rows": lw.Batching(cut=lw.Rows(8_000, rows=2)),
    "chunks": lw.Batching(cut=lw.Budget(3_000), chunks=lw.Chunks(300)),
}
PLACES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 3), (5, 2)]  # ranks and micro-batches


@pytest.mark.parametrize("times", [None, TIMES], ids=["each once", "times"])
@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
def test_after_any_changes_the_ranks_take_what_the_runs_before_have_left(batching, times):
    chance, state, runs = random.Random(batching.to_json()), None, []
    options = {"seed": 9, "times": times}
    for _ in range(20):
        world_size, micro_batches = chance.choice(PLACES)
        world = {"world_size": world_size, "micro_batches": micro_batches}
        ranks = [lw.torch.BatchSampler(LENGTHS, batching, rank=rank, **world, **options) for rank in range(world_size)]
        for sampler in ranks:
            sampler.set_epoch(2) if state is None else sampler.resume(json.loads(state))
        # A run in the world of the run before goes on with its plan.
        taken = runs.pop()[2] if runs and runs[-1][:2] == [world_size, micro_batches] else 0
        plan = lw.make_plan(LENGTHS, batching, epoch=2, after=runs, **world, **options)
        for rank, sampler in enumerate(ranks):
            items = [
                list(map(tuple, batch)) if batch.ndim == 2 else batch.tolist() for batch in plan.batches(rank, taken)
            ]
            assert list(sampler) == items
        taken += chance.randint(0, min(2, len(plan) - taken))
        delivered = sum(batches for _, _, batches in runs) + taken
        (state,) = {json.dumps(sampler.state_after(delivered)) for sampler in ranks}
        assert len(state) < 1_000
        taken -= taken % micro_batches  # the gradients of an unfinished step are lost: it is taken again
        runs += [[world_size, micro_batches, taken]] if taken else []
        assert json.loads(state)["runs"] == runs


@pytest.mark.parametrize("make", [lw.torch.BatchSampler, lw.torch.WindowSampler])
@pytest.mark.parametrize(("world_size", "left"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_a_tail_that_drops_leaves_nothing_to_more_ranks_near_the_end(make, world_size, left):
    """After 6 of 8 batches, 2 are left. They make no step of 3 ranks: the epoch is at its end."""
    batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Balanced(tail="drop"))
    state = make([5] * 16, batching, rank=0, world_size=1).state_after(6)
    for rank in range(world_size):
        sampler, again = (make([5] * 16, batching, rank=rank, world_size=world_size) for _ in range(2))
        sampler.resume(state)
        assert len(list(sampler)) == left
        again.resume(sampler.state_after(len(sampler)))
        assert not list(again)
        again.set_epoch(1)
        assert len(list(again)) == 8 // world_size


def test_the_position_counts_the_batches_of_all_earlier_runs():
    """Of 12 batches, 4 ranks take one each, then 2 ranks two each; one rank has the other four.

    A step of 2 ranks x 2 micro-batches has as many batches as one of 4 ranks, but each rank takes twice as many.
    """
    batching = lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted(), arrange=lw.InOrder())

    def run(world_size, micro_batches=1, state=None):
        places = {"world_size": world_size, "micro_batches": micro_batches}
        ranks = [lw.torch.BatchSampler(range(1, 13), batching, rank=rank, **places) for rank in range(world_size)]
        if state is not None:
            for sampler in ranks:
                sampler.resume(state)
        return ranks[0], sorted(number for sampler in ranks for (number,) in sampler)

    first, _ = run(4)
    left = sorted(np.concatenate([first.plan.batch(number) for number in first.plan.grid[1:].flat]).tolist())
    again, items = run(2, 2, first.state_after(1))
    assert (again.start, len(again), items) == (1, 5, left)
    second, items = run(2, 1, first.state_after(1))
    assert (second.start, len(second), items) == (1, 5, left)
    third, items = run(1, 1, second.state_after(3))
    assert (third.start, len(third), len(items)) == (3, 7, 4)
