"""Resume on other ranks, as samplers do it: exactly the unseen; `test_promises.py` has the plans of all choices."""

import json
import random
from collections import Counter

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


class Run:
    """All ranks of a run that may begin from a state: they take batches in step, and agree on where they stand."""

    def __init__(self, batching, places, state=None, *, epoch=2, times=None):
        world_size, micro_batches = places
        common = {"seed": 9, "world_size": world_size, "micro_batches": micro_batches, "times": times}
        self.ranks = [lw.torch.BatchSampler(LENGTHS, batching, rank=rank, **common) for rank in range(world_size)]
        for sampler in self.ranks:
            sampler.set_epoch(epoch) if state is None else sampler.resume(json.loads(state))
        self.first = self.ranks[0]
        self.planned_before = len(self.first) - len(self.first.plan)
        self.delivered = self.first.start

    @property
    def left(self):
        return len(self.first) - self.first.start

    def take(self, batches):
        """Takes as many batches on every rank; returns their items, without those that only keep a rank in step."""
        items = []
        self.delivered += batches
        for rank, sampler in enumerate(self.ranks):
            start = sampler.start - self.planned_before
            first_taken = sampler.plan.first_taken[:, :, rank].reshape(-1)[start : start + batches]
            for is_first, batch in zip(first_taken, sampler, strict=False):
                items += batch if is_first else []
        return items

    def state(self):
        states = [json.dumps(sampler.state_after(self.delivered)) for sampler in self.ranks]
        assert len(set(states)) == 1
        assert len(states[0]) < 1_000
        return states[0]


@pytest.mark.parametrize("times", [None, TIMES], ids=["each once", "times"])
@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
def test_three_changes_in_a_row_lose_and_repeat_nothing(batching, times):
    chance = random.Random(batching.to_json())
    for epoch in (0, 7):
        run, items = Run(batching, chance.choice(PLACES), epoch=epoch, times=times), []
        for _ in range(3):
            items += run.take(chance.randint(0, run.left))
            run = Run(batching, chance.choice(PLACES), run.state(), times=times)
        items += run.take(run.left)
        plan = lw.make_plan(LENGTHS, batching, seed=9, epoch=epoch, times=times)
        copies = np.ones(len(LENGTHS), int) if times is None else plan.times
        everything = np.repeat(np.arange(len(LENGTHS)), copies).tolist()
        assert Counter(items) == Counter(map(tuple, plan.spans.tolist()) if batching.chunks else everything)


def test_a_state_stays_small_after_twenty_changes():
    batching = BATCHINGS["fixed"]
    run, items = Run(batching, (1, 1)), []
    for change in range(20):
        items += run.take(1)
        run = Run(batching, (1 + change % 2, 1), run.state())
    runs = json.loads(run.state())["runs"]
    assert len(runs) == 20 - 1  # the second run has the places of the first
    assert sum(world_size * count for world_size, _, count in runs) == 29
    assert sorted(items + run.take(run.left)) == list(range(len(LENGTHS)))


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
