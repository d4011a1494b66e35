"""Passes, looks, errors, saves and loads in any order, against a model that knows what the loop was handed."""

import contextlib
import itertools
import json
import random

import pytest
from torch.utils.data import DataLoader

import lengthwise as lw

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths("long-tailed", count=60)
BATCHING = lw.Batching(cut=lw.Budget(3_000, oversize="alone"), order=lw.SemiSorted(randomization_factor=0.2))
KINDS = {"no workers": {}, "workers": {"num_workers": 1, "prefetch_factor": 4}}


class Data:
    """Its sequences come back as their numbers, but for those that cannot be read at the moment."""

    def __init__(self):
        self.broken = set()

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        if number in self.broken:
            raise OSError("this file is gone")
        return number


class Trial:
    """A loop that does what chance says, and the model of it: `handed` and `lost` sequences of the epoch."""

    def __init__(self, seed, kind):
        self.chance, self.options = random.Random(seed), KINDS[kind]
        self.kept = []  # iterators that somebody looked at and forgot to drop
        self.begin_process()

    def begin_process(self, state=None):
        self.sampler, self.data = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=5), Data()
        if state is not None:
            self.sampler.load_state_dict(json.loads(json.dumps(state)))
        self.make_loader()

    def make_loader(self):
        self.loader = DataLoader(self.data, batch_sampler=self.sampler, collate_fn=list, **self.options)
        self.batches = iter(())

    def run(self, epochs):
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            self.handed, self.lost, self.taken, self.failed = [], [], 0, []
            self.plan = [batch.tolist() for batch in self.sampler.plan.batches()]
            self.first = self.chance.random() < 0.5 and self.look()
            self.begin_pass()
            while self.taken + len(self.failed) < len(self.plan):
                self.act()
                self.check()
            self.end()
            assert sorted(self.handed + self.lost) == list(range(len(LENGTHS)))

    def begin_pass(self):
        self.batches, self.of_pass = iter(self.loader), 0

    def act(self):
        acts = [self.take, self.take, self.take, self.fail]
        if not self.options:
            acts += [self.look]
        if self.of_pass > 1 and not self.failed and not self.options:
            acts += [self.count]  # the loop is under way
        if self.of_pass > 1 or self.options:
            acts += [self.resume, self.restart]
        self.chance.choice(acts)()

    def expect(self):
        """The next batch; what failed before it is lost, for the loop has gone on."""
        self.lost += [number for batch in self.failed for number in batch]
        self.taken += len(self.failed)
        self.of_pass += len(self.failed)
        self.failed = []
        return self.plan[self.taken]

    def take(self):
        expected = self.expect()
        assert next(self.batches) == expected
        self.handed += expected
        self.taken += 1
        self.of_pass += 1

    def fail(self):
        """A batch that cannot be read: workers are asked for theirs long before, so there the pass begins anew."""
        if self.options:
            self.go_on(self.sampler.state_dict())
        failing = self.expect()
        self.data.broken = {failing[0]}
        if self.options:
            self.begin_pass()
        with pytest.raises(OSError, match="this file is gone"):
            next(self.batches)
        self.failed = [failing]
        self.data.broken = set()

    def look(self):
        look = iter(self.loader)
        next(look)
        self.kept += [look] if self.chance.random() < 0.3 else []

    def count(self):
        whole = self.chance.random() < 0.5
        for number, _ in enumerate(self.loader):
            if not whole and number == 3:
                break

    def resume(self):
        """In a new process: a batch that failed was not delivered, and is tried again."""
        self.go_on(self.sampler.state_dict(), new=True)

    def restart(self):
        """In this process, as a trainer does."""
        self.go_on(self.sampler.state_dict())

    def go_on(self, state, new=False):
        self.failed = []
        if new:
            self.begin_process(state)
        else:
            self.sampler.load_state_dict(state)
            self.make_loader()
        self.sampler.set_epoch(state["epoch"])
        self.begin_pass()

    def check(self):
        if not self.of_pass:
            return  # a look may also have been a loop that was left
        assert self.sampler.delivered == self.taken
        assert sum(taken for *_, taken in self.sampler.state_dict()["runs"]) == self.taken

    def end(self):
        """A batch that fails at the very end is read in the next process, or the loop that goes on has lost it."""
        while self.failed:
            self.resume()
            self.take()
        assert next(self.batches, None) is None
        self.check()


@pytest.mark.filterwarnings("ignore:`(passes|epoch)` must be")
@pytest.mark.parametrize(
    ("kind", "seed", "epochs"), [*(("no workers", seed, 3) for seed in range(25)), ("workers", 1, 1)]
)
def test_every_sequence_is_seen_exactly_once_whatever_happens(kind, seed, epochs):
    Trial(seed, kind).run(epochs)


def generated(batches):
    yield from batches


WAYS = (
    *(iter, enumerate, generated),
    *(lambda batches: zip(batches, itertools.count(), strict=False), lambda batches: (batch for batch in batches)),
    *(lambda batches: map(str, batches), lambda batches: enumerate(generated(batches))),
)


def look_at_one(batches, _):
    next(iter(batches))


def count_all(batches, _):
    assert sum(1 for _ in batches) == len(batches)


def leave_early(batches, chance):
    for number, _ in enumerate(batches):
        if number == chance.randrange(4):
            break


def fail_within(batches, _):
    with contextlib.suppress(KeyError):
        for number, _ in enumerate(batches):
            if number == 2:
                raise KeyError


def nest(batches, chance):
    for _ in batches:
        if chance.random() < 0.2:
            chance.choice(DETOURS)(batches, chance)


DETOURS = (look_at_one, count_all, leave_early, fail_within, nest)


@pytest.mark.filterwarnings("ignore:`(passes|epoch|batches delivered)` must be")
@pytest.mark.parametrize("kind", ["plain", "no workers"])
@pytest.mark.parametrize("seed", range(40))
def test_a_for_keeps_its_position_whatever_runs_in_its_body(kind, seed):
    chance = random.Random(seed)
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=5)
    loader = sampler if kind == "plain" else DataLoader(Data(), batch_sampler=sampler, collate_fn=list)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        last = chance.choice([1, 2, 5, len(sampler)])
        numbers = itertools.count(1)
        for _ in chance.choice(WAYS)(loader):
            taken = next(numbers)
            if chance.random() < 0.3:
                chance.choice(DETOURS)(loader, chance)
            assert sampler.delivered == taken
            if taken == last:
                break
        assert sampler.delivered == last
        resumed = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=5)
        resumed.load_state_dict(sampler.state_dict())
        resumed.set_epoch(epoch)
        assert list(resumed) == [batch.tolist() for batch in sampler.plan.batches()][last:]
