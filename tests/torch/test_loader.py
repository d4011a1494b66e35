"""The loader: every batch is a place to resume, and one loop has the position, whatever the others do."""

import itertools
import json
import multiprocessing
import random
import threading
import traceback
from queue import Queue

import pytest
import torch
from loaders import BATCHES, EVERY_KIND, SECOND_PASS, TWO_LOOPS, loader_after, loader_of, planned, rest_of, sampler_of
from torch.utils.data import Dataset

import lengthwise as lw

pytestmark = pytest.mark.slow


@EVERY_KIND
def test_every_batch_of_two_epochs_is_a_place_to_resume(kind):
    loader = loader_of(kind)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        batches = iter(loader)  # workers fetch ahead
        states = [loader.state_dict()]
        for taken, batch in enumerate(batches, start=1):
            assert batch == planned(epoch)[taken - 1]
            assert loader.delivered == taken
            states.append(loader.state_dict())
        for taken, state in enumerate(states):
            assert len(json.dumps(state)) < 1_000
            again = loader_of()
            again.load_state_dict(json.loads(json.dumps(state)))
            assert (again.epoch, again.delivered, len(again)) == (epoch, taken, BATCHES)
            assert list(again) == planned(epoch)[taken:]
            assert (again.delivered, len(again)) == (BATCHES, BATCHES)


def test_persistent_workers_serve_one_loop_at_a_time():
    loader = loader_of("persistent")
    for epoch in range(2):
        loader.set_epoch(epoch)
        assert list(loader) == planned(epoch)
    loader.set_epoch(2)
    batches = iter(loader)
    next(batches)
    assert next(iter(loader)) == planned(2)[0]
    with pytest.raises(ValueError, match=r"^Persistent workers serve one loop at a time, and a later one has begun"):
        next(batches)


@EVERY_KIND
@pytest.mark.parametrize("start", [0, 4, BATCHES - 1, BATCHES])
def test_a_peek_shows_the_next_batch_and_counts_nothing(kind, start):
    loader, begun = loader_after(start, kind), multiprocessing.active_children()
    assert loader.peek() == planned()[start % BATCHES]
    assert multiprocessing.active_children() == begun
    assert loader.delivered == start
    for taken, batch in enumerate(loader, start=start + 1):
        assert batch == planned()[taken - 1]
        if taken in (1, 6, BATCHES):
            assert loader.peek() == planned()[start]
        assert loader.delivered == taken
    assert loader.peek() in planned()
    assert rest_of(loader) == []
    loader.set_epoch(1)
    assert loader.peek() == planned(1)[0]


def test_a_peek_at_a_plan_without_batches_is_refused():
    batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Balanced(tail="drop"))
    alone, third = (lw.torch.BatchSampler([5] * 16, batching, rank=0, world_size=size) for size in (1, 3))
    third.resume(alone.state_after(6))  # two batches make no step of three ranks
    with pytest.raises(ValueError, match=r"^Nothing is left of epoch 0\. Set the next epoch, then look\.$"):
        lw.torch.DataLoader(range(16), third).peek()


class Noisy(Dataset):
    """Draws its samples, as an augmentation does."""

    def __len__(self):
        return 2 * BATCHES

    def __getitem__(self, number):
        return number, torch.rand(1).item()


def test_a_peek_with_workers_draws_what_the_loop_will_draw():
    loader = lw.torch.DataLoader(Noisy(), sampler_of(), num_workers=2, collate_fn=list)
    before = torch.get_rng_state()
    assert loader.peek() == loader.peek() == next(iter(loader))
    assert torch.equal(torch.get_rng_state(), before)


@EVERY_KIND
def test_a_first_batch_counts_until_another_loop_has_one(kind):
    loader = loader_of(kind)
    for batch in loader:
        assert batch == planned()[0]
        assert rest_of(loader) == planned()[1:]
        break
    one_batch = "The state of epoch 0 counts the one batch of a loop that was left. If nothing was trained on it"
    with pytest.warns(UserWarning, match=one_batch):
        assert rest_of(loader) == planned()[1:]
    assert [loader.delivered for _ in loader] == list(range(1, BATCHES + 1))
    loader.set_epoch(1)


@EVERY_KIND
@pytest.mark.parametrize("left", [1, 2])
def test_a_look_at_the_last_batches_of_a_resumed_epoch_uses_nothing_up(kind, left):
    loader = loader_after(BATCHES - left, kind)
    assert next(iter(loader)) == planned()[-left]
    assert list(loader) == planned()[-left:]
    assert loader.delivered == BATCHES


def test_two_loops_are_refused_until_the_earlier_one_goes_on():
    loader = loader_of()
    outer, inner = iter(loader), iter(loader)
    next(outer), next(outer), next(inner)
    with pytest.raises(ValueError, match=TWO_LOOPS):
        loader.state_dict()
    del inner  # the outer loop may have been left for good: which of the two trained?
    with pytest.raises(ValueError, match=TWO_LOOPS):
        loader.state_dict()
    next(outer)
    assert loader.delivered == 3
    kept = iter(loader)
    next(kept), next(kept)
    loader.set_epoch(0)  # begins anew: what was open before is over
    assert loader.delivered == 0
    assert [loader.delivered for _ in loader] == list(range(1, BATCHES + 1))


def test_a_loop_that_goes_on_after_one_within_it_is_no_second_pass():
    loader = loader_of()
    outer = iter(loader)
    next(outer), next(outer)
    for batch, _ in zip(loader, range(3), strict=False):
        assert batch in planned()[:3]
    assert next(outer) == planned()[2]  # warnings are errors here
    assert loader.delivered == 3


@EVERY_KIND
def test_an_early_exit_keeps_its_position(kind):
    loader = loader_of(kind)
    for taken, _ in enumerate(loader, start=1):
        if taken == 5:
            break
    assert rest_of(loader) == planned()[5:]
    with pytest.warns(UserWarning, match=SECOND_PASS):
        assert [loader.delivered for _ in loader] == list(range(1, BATCHES + 1))


def test_a_look_by_a_loop_is_a_second_pass_of_an_epoch_that_was_taken():
    loader = loader_of()
    list(loader)
    with pytest.warns(UserWarning, match=SECOND_PASS):
        next(iter(loader))
    assert loader.delivered == 1


@EVERY_KIND
@pytest.mark.parametrize("broken", [(0, 1), (4, 6, 7, BATCHES - 1)], ids=str)
def test_a_batch_that_cannot_be_read_counts_once_the_loop_goes_on(kind, broken):
    loader = loader_of(kind, broken=[planned()[batch][0] for batch in broken])
    batches, passed = iter(loader), 0
    for place in range(BATCHES):
        try:
            assert next(batches) == planned()[place]
            passed = place + 1
        except OSError as error:
            traceback.clear_frames(error.__traceback__)  # see `refusal`
            assert place in broken
        assert rest_of(loader) == planned()[passed:]
    assert next(batches, None) is None
    assert rest_of(loader) == []
    loader.set_epoch(1)  # no epoch that was left early: warnings are errors here


def test_what_a_prefetching_thread_holds_is_told_by_the_loop():
    loader, queue = loader_of(), Queue(maxsize=3)

    def fetch():
        for batch in loader:
            queue.put(batch)
        queue.put(None)

    thread = threading.Thread(target=fetch)
    thread.start()
    for taken, batch in enumerate(iter(queue.get, None), start=1):
        assert batch == planned()[taken - 1]
        if taken == 7:
            assert rest_of(loader, delivered=taken) == planned()[taken:]
    thread.join()


# The rule behind all of these, by chance


class Trial:
    """A loop that does what chance says, and a count of the batches of the epoch that it took and that failed."""

    def __init__(self, seed, kind):
        self.chance, self.kind, self.loader = random.Random(seed), kind, loader_of(kind)

    def run(self, epoch):
        self.loader.set_epoch(epoch)
        self.epoch, self.taken, self.failed, self.first = epoch, 0, 0, True
        self.peek()
        self.begin()
        while self.taken + self.failed < BATCHES:
            self.chance.choice([self.take] * 4 + [self.fail, self.peek, self.detour, self.resume, self.reload])()
            self.check()
        assert next(self.batches, None) is None
        assert self.loader.delivered == BATCHES

    def begin(self):
        self.batches, self.first = iter(self.loader), True

    def take(self):
        self.taken += self.failed + 1
        self.failed = 0
        assert next(self.batches) == planned(self.epoch)[self.taken - 1]
        self.first = False

    def fail(self):
        if self.kind != "no workers" or self.taken + self.failed == BATCHES:
            return
        broken = self.loader.dataset.broken
        broken.add(planned(self.epoch)[self.taken + self.failed][0])
        with pytest.raises(OSError, match="this file is gone"):
            next(self.batches)
        broken.clear()
        self.failed += 1

    def detour(self):
        """Reads another pass, which is left or ends."""
        if self.kind == "persistent":
            return
        stop = 1 if self.first else self.chance.choice([1, 1, 3, None])
        for _ in itertools.islice(self.loader, stop):
            pass
        if self.taken + self.failed < BATCHES:  # known again with the next batch
            if not self.first:
                with pytest.raises(ValueError, match=TWO_LOOPS):
                    self.loader.state_dict()
            self.take()

    def peek(self):
        assert self.loader.peek() == planned(self.epoch)[self.loader.batch_sampler.start % BATCHES]

    def resume(self):
        state = self.loader.state_dict()
        self.loader = loader_of(self.kind)
        self.go_on(state)

    def reload(self):
        self.go_on(self.loader.state_dict())

    def go_on(self, state):
        self.loader.load_state_dict(state)
        self.loader.set_epoch(self.epoch)
        self.failed = 0
        self.begin()

    def check(self):
        assert self.loader.delivered == self.taken


@pytest.mark.filterwarnings("ignore:(Epoch|The state of epoch)")
@pytest.mark.parametrize(
    ("kind", "seed"), [*(("no workers", seed) for seed in range(16)), ("workers", 1), ("ahead", 2), ("persistent", 3)]
)
def test_every_sequence_is_seen_exactly_once_whatever_happens(kind, seed):
    trial = Trial(seed, kind)
    for epoch in range(2):
        trial.run(epoch)
