"""Resume on another number of ranks: exactly the unseen, and the same steps where the micro-batches divide."""

import json
import random

import pytest

import lengthwise as lw

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths("long-tailed", count=180)
BATCHINGS = {
    "fixed": lw.Batching(cut=lw.FixedSize(4)),
    "budget": lw.Batching(cut=lw.Budget(6_000), order=lw.MaxEntropy(scale=20.0), arrange=lw.ShuffledSteps()),
    "portions": lw.Batching(cut=lw.FixedSize(3), deal=lw.Portions()),
    "chunks": lw.Batching(cut=lw.Budget(3_000), chunks=lw.Chunks(300)),
}
MOST_RANKS, MOST_MICRO_BATCHES = 5, 3
PLACES = [(ranks, micro) for ranks in range(1, MOST_RANKS + 1) for micro in range(1, MOST_MICRO_BATCHES + 1)]


class Run:
    """All ranks of a run that may begin from a state: they take batches in step, and agree on where they stand."""

    def __init__(self, batching, places, state=None):
        world_size, micro_batches = places
        common = {"seed": 9, "world_size": world_size, "micro_batches": micro_batches}
        self.ranks = [lw.torch.BatchSampler(LENGTHS, batching, rank=rank, **common) for rank in range(world_size)]
        for sampler in self.ranks:
            sampler.set_epoch(2) if state is None else sampler.resume(json.loads(state))
        self.first = self.ranks[0]
        self.planned_before = len(self.first) - len(self.first.plan)
        self.delivered = self.first.start

    @property
    def left(self):
        return len(self.first) - self.first.start

    def take(self, batches):
        """Takes as many batches on every rank.

        Returns:
            The entries of each optimiser step, which may be a part of one at the beginning and at the end; without
            those of a batch that only keeps its rank in step.
        """
        steps = {}
        self.delivered += batches
        for rank, sampler in enumerate(self.ranks):
            start = sampler.start - self.planned_before
            for number, batch in zip(range(start, start + batches), sampler, strict=False):
                step, micro_batch = divmod(number, sampler.micro_batches)
                counts = sampler.plan.first_taken[step, micro_batch, rank]
                steps.setdefault(step, []).extend(batch if counts else [])
        return [sorted(steps[step]) for step in sorted(steps)]

    def state(self):
        states = [json.dumps(sampler.state_after(self.delivered)) for sampler in self.ranks]
        assert len(set(states)) == 1
        assert len(states[0]) < 1_000
        return states[0]


def everything(batching):
    plan = lw.make_plan(LENGTHS, batching)
    return sorted(range(len(LENGTHS)) if plan.spans is None else map(tuple, plan.spans.tolist()))


def entries(steps):
    return [entry for step in steps for entry in step]


@pytest.mark.parametrize("before", PLACES)
def test_every_pair_of_places_takes_exactly_the_unseen(before):
    chance = random.Random(str(before))
    batching = BATCHINGS["fixed"]
    first = Run(batching, before)
    got = entries(first.take(chance.randint(0, first.left)))
    for after in PLACES:
        second = Run(batching, after, first.state())
        assert sorted(got + entries(second.take(second.left))) == everything(batching)


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
def test_three_changes_in_a_row_lose_and_repeat_nothing(batching):
    chance = random.Random(batching.to_json())
    for _ in range(6):
        run = Run(batching, chance.choice(PLACES))
        got = []
        for _ in range(3):
            got += entries(run.take(chance.randint(0, run.left)))
            run = Run(batching, chance.choice(PLACES), run.state())
        assert sorted(got + entries(run.take(run.left))) == everything(batching)
        assert run.left + run.first.start == len(run.first)


@pytest.mark.parametrize("deal", [lw.Balanced(), lw.Mixed(), lw.InTurn()])
@pytest.mark.parametrize(("before", "after"), [((2, 1), (1, 2)), ((4, 1), (2, 2)), ((2, 3), (3, 2)), ((1, 4), (4, 1))])
def test_the_same_steps_where_the_micro_batches_divide(before, after, deal):
    batching = lw.Batching(cut=lw.Budget(6_000), deal=deal)
    whole = Run(batching, before)
    expected = whole.take(whole.left)
    for steps in (0, 1, len(expected) // 2, len(expected)):
        first = Run(batching, before)
        assert first.take(steps * before[1]) == expected[:steps]
        second = Run(batching, after, first.state())
        assert second.left == (len(expected) - steps) * after[1]
        assert second.take(second.left) == expected[steps:]


def test_a_state_stays_small_after_twenty_changes():
    batching = BATCHINGS["fixed"]
    run, got = Run(batching, (1, 1)), []
    for change in range(20):
        got += entries(run.take(1))
        run = Run(batching, (1 + change % 2, 1), run.state())
    runs = json.loads(run.state())["runs"]
    assert len(runs) == 20 - 1  # the second run has the places of the first
    assert sum(world_size * taken for world_size, _, taken in runs) == 29
    assert sorted(got + entries(run.take(run.left))) == everything(batching)


def test_the_next_epoch_is_whole_again_on_the_new_ranks():
    first = Run(BATCHINGS["budget"], (4, 1))
    first.take(5)
    second = Run(BATCHINGS["budget"], (3, 2), first.state())
    second.take(second.left)
    for sampler in second.ranks:
        sampler.set_epoch(3)
    third = lw.torch.BatchSampler(LENGTHS, BATCHINGS["budget"], seed=9, rank=1, world_size=3, micro_batches=2)
    third.set_epoch(3)
    assert list(second.ranks[1]) == list(third)
    assert (third.start, len(third)) == (0, len(second.ranks[1]))


@pytest.mark.parametrize("make", [lw.torch.BatchSampler, lw.torch.WindowSampler])
@pytest.mark.parametrize(("world_size", "left"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_a_tail_that_drops_leaves_nothing_to_more_ranks_near_the_end(make, world_size, left):
    """Of 8 batches 6 are taken. Of the 2 that are left, 3 ranks make no step: the epoch is at its end."""
    batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Balanced(tail="drop"))
    state = make([5] * 16, batching, rank=0, world_size=1).state_after(6)
    for rank in range(world_size):
        sampler = make([5] * 16, batching, rank=rank, world_size=world_size)
        sampler.resume(state)
        assert len(list(sampler)) == left
        again = make([5] * 16, batching, rank=rank, world_size=world_size)
        again.resume(sampler.state_after(len(sampler)))
        assert not list(again)
        again.set_epoch(1)
        assert len(list(again)) == 8 // world_size
