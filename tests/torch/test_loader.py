"""The loader: whose loop holds the position, what is refused, and what it pads by. The rows of docs/resume.md first."""

import itertools
import json
import random
import threading
from queue import Queue

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import lengthwise as lw

BATCHES = 20
LENGTHS = [5] * (2 * BATCHES)
BATCHING = lw.Batching(cut=lw.FixedSize(2))
KINDS = {
    "no workers": {},
    "workers": {"num_workers": 2, "prefetch_factor": 1},
    "ahead": {"num_workers": 1, "prefetch_factor": 40},  # all batches of an epoch are fetched before the first comes
    "persistent": {"num_workers": 1, "persistent_workers": True},
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
TWO_OPEN = "`loops` must be one at a time, for a position to be known, but is 'two that are open'. Give the other loop"


class Data(Dataset):
    """Gives back what it is asked for, but for the sequences that cannot be read."""

    def __init__(self, broken=()):
        self.broken = set(broken)

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        if number in self.broken:
            raise OSError("this file is gone")
        return number


def sampler_of(**options):
    return lw.torch.BatchSampler(LENGTHS, BATCHING, **{"seed": 2} | options)


def loader_of(kind="no workers", broken=(), sampler=None):
    return lw.torch.DataLoader(Data(broken), sampler or sampler_of(), collate_fn=list, **KINDS[kind])


def planned(epoch=0):
    return [batch.tolist() for batch in lw.make_plan(LENGTHS, BATCHING, seed=2, epoch=epoch).batches()]


def rest_of(loader, **delivered):
    """What a new process goes on with."""
    resumed = loader_of()
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict(**delivered))))
    return list(resumed)


def train(loader, steps):
    """A loop that calls `next`, as many trainers do."""
    batches = iter(loader)
    for _ in range(steps):
        yield next(batches)


# The rows of the table.


@pytest.mark.parametrize("kind", ["workers", "ahead"])
def test_what_workers_fetch_ahead_does_not_count(kind):
    loader = loader_of(kind)
    for taken, _ in enumerate(loader, start=1):
        if taken in (1, 7, BATCHES):
            assert rest_of(loader) == planned()[taken:]


def test_persistent_workers_serve_one_loop_at_a_time():
    loader = loader_of("persistent")
    for epoch in range(2):
        loader.set_epoch(epoch)
        assert list(loader) == planned(epoch)
    loader.set_epoch(2)
    batches = iter(loader)
    next(batches)
    assert next(iter(loader)) == planned(2)[0]
    with pytest.raises(ValueError, match="`loop` must be the one that was begun last, but is 'an earlier one'"):
        next(batches)


@EVERY_KIND
def test_a_look_takes_nothing(kind):
    loader = loader_of(kind)
    assert next(iter(loader)) == planned()[0]
    assert rest_of(loader) == planned()  # though no loop follows
    for taken, batch in enumerate(loader, start=1):
        assert batch == planned()[taken - 1]
        if taken in (1, 4) and kind in ("no workers", "workers"):
            next(iter(loader))
        assert loader.delivered == taken
    if kind != "ahead":  # three looks that fetch all batches are to the sampler as three epochs are
        next(iter(loader))
    assert loader.delivered == BATCHES


@EVERY_KIND
@pytest.mark.parametrize("left", [1, 2])
def test_a_look_at_the_last_batches_of_a_resumed_epoch_uses_nothing_up(kind, left):
    loader = loader_of(kind)
    loader.load_state_dict(sampler_of().state_after(BATCHES - left))
    next(iter(loader))
    assert loader.delivered == BATCHES - left
    assert list(loader) == planned()[-left:]
    assert loader.delivered == BATCHES


@pytest.mark.parametrize("kind", ["no workers", "workers", "ahead"])
def test_a_pass_within_a_pass_gives_the_position_back_with_the_next_batch(kind):
    loader = loader_of(kind)
    for taken, _ in enumerate(train(loader, 7), start=1):
        if taken == 4:
            assert len(list(loader)) == BATCHES
            with pytest.raises(ValueError, match=TWO_OPEN):
                loader.state_dict()
            assert rest_of(loader, delivered=4) == planned()[4:]
        else:
            assert rest_of(loader) == planned()[taken:]
    assert rest_of(loader) == planned()[7:]


def test_two_loops_that_are_open_are_refused_until_one_is_dropped():
    loader = loader_of()
    outer, inner = iter(loader), iter(loader)
    next(outer), next(outer), next(inner)
    with pytest.raises(ValueError, match=TWO_OPEN):
        loader.state_dict()
    del inner
    assert loader.delivered == 2
    kept = iter(loader)
    next(kept), next(kept)
    loader.set_epoch(0)  # begins anew: what was open before is over
    assert loader.delivered == 0
    assert [loader.delivered for _ in loader] == list(range(1, BATCHES + 1))


@EVERY_KIND
def test_an_early_exit_keeps_its_position(kind):
    loader = loader_of(kind)
    for taken, _ in enumerate(loader, start=1):
        if taken == 5:
            break
    assert rest_of(loader) == planned()[5:]
    next(iter(loader))
    assert loader.delivered == 5
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch"):
        assert [loader.delivered for _ in loader] == list(range(1, BATCHES + 1))


def test_a_loop_that_fails_in_its_body_keeps_its_position():
    loader = loader_of()
    with pytest.raises(ZeroDivisionError):
        _ = [1 / (5 - taken) for taken, _ in enumerate(loader, start=1)]
    assert rest_of(loader) == planned()[5:]


@EVERY_KIND
@pytest.mark.parametrize("broken", [(4,), (0, 1), (4, 6, 7), (BATCHES - 1,)], ids=str)
def test_a_batch_that_cannot_be_read_counts_once_the_loop_goes_on(kind, broken):
    loader = loader_of(kind, broken=[planned()[batch][0] for batch in broken])
    batches, passed = iter(loader), 0
    for place in range(BATCHES):
        try:
            assert next(batches) == planned()[place]
            passed = place + 1
        except OSError:
            assert place in broken
        assert rest_of(loader) == planned()[passed:]
    assert next(batches, None) is None
    assert rest_of(loader) == []
    loader.set_epoch(1)  # no epoch that was left early: warnings are errors here


def test_islice_counts_what_it_takes():
    loader = loader_of("workers")
    assert list(itertools.islice(loader, 6)) == planned()[:6]
    assert rest_of(loader) == planned()[6:]


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


@pytest.mark.parametrize("after", [6, 3, 1])
def test_another_number_of_ranks_takes_what_was_left_and_back(after):
    lengths = lw.example_lengths("long-tailed", count=400)
    batching = lw.Batching(budget=20_000, padding=0.1)
    seen, state = [], None
    for world_size, steps in ((8, 2), (after, 2), (8, None)):
        loaders = [
            lw.torch.DataLoader(
                range(400),
                lw.torch.BatchSampler(lengths, batching, rank=rank, world_size=world_size),
                collate_fn=list,
                quiet=True,
            )
            for rank in range(world_size)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
            seen += [number for batch in itertools.islice(loader, steps) for number in batch]
        (text,) = {json.dumps(loader.state_dict()) for loader in loaders}
        state = json.loads(text)
    assert sorted(seen) == list(range(400))


# The rule behind the rows, by chance.


class Trial:
    """A loop that does what chance says, and a model: `taken` batches of the epoch, with those that failed."""

    def __init__(self, seed, kind):
        self.chance, self.kind, self.loader = random.Random(seed), kind, loader_of(kind)

    def run(self, epoch):
        self.loader.set_epoch(epoch)
        self.epoch, self.taken, self.failed, self.first = epoch, 0, 0, True
        self.detour()
        self.begin()
        while self.taken + self.failed < BATCHES:
            self.chance.choice([self.take] * 4 + [self.fail, self.detour, self.resume, self.reload])()
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
        """A look, or another pass that is left or ends."""
        if self.kind == "persistent":
            return
        stop = 1 if self.first else self.chance.choice([1, 1, 3, None])
        for _ in itertools.islice(self.loader, stop):
            pass
        if stop != 1 and self.taken + self.failed < BATCHES:  # known again with the next batch
            with pytest.raises(ValueError, match="two that are open"):
                self.loader.state_dict()
            self.take()

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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`(epoch|batches delivered)` must be")
@pytest.mark.parametrize(
    ("kind", "seed"), [*(("no workers", seed) for seed in range(40)), ("workers", 1), ("ahead", 2), ("persistent", 3)]
)
def test_every_sequence_is_seen_exactly_once_whatever_happens(kind, seed):
    trial = Trial(seed, kind)
    for epoch in range(2):
        trial.run(epoch)


# What is refused, and what is said.


def test_a_sampler_has_no_state_of_its_own_to_mislead_loaders():
    assert not hasattr(sampler_of(), "state_dict")
    with pytest.raises(TypeError, match="delivered"):
        sampler_of().state_after()


@pytest.mark.parametrize("size", [0, 39, 41])
def test_a_dataset_of_another_size_is_refused_at_once(size):
    said = f"`lengths` must be as many as the {size} sequences of the loader's dataset, but is 40. Give the lengths of"
    with pytest.raises(ValueError, match=said):
        lw.torch.DataLoader(range(size), sampler_of())


class Unsized:
    def __getitem__(self, item):
        return item


def test_a_dataset_that_does_not_tell_its_size_is_taken_as_it_is():
    assert list(lw.torch.DataLoader(Unsized(), sampler_of(), collate_fn=list)) == planned()


@pytest.mark.parametrize("other", [None, [[0, 1]], lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2))], ids=str)
def test_another_sampler_is_refused(other):
    with pytest.raises(TypeError, match=r"`batch_sampler` must be a lengthwise\.torch\.BatchSampler, but is "):
        lw.torch.DataLoader(range(40), other)


class Stream(IterableDataset):
    """Iterates a sampler by itself."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.parametrize("make", [sampler_of, lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2))])
def test_a_dataset_that_draws_from_a_sampler_in_a_worker_is_refused(make):
    batches = iter(DataLoader(Stream(make()), batch_size=None, num_workers=1))
    given = "drawn from by the dataset, in worker 0 of 1"
    with pytest.raises(ValueError, match=f"`sampler` must be drawn from in the process that trains, but is '{given}'"):
        next(batches)


@pytest.mark.parametrize("make", [lw.torch.BatchSampler, lw.torch.EvaluationSampler])
def test_whoever_asks_one_rank_of_several_to_drop_the_last_is_refused(make):
    how = BATCHING if make is lw.torch.BatchSampler else lw.FixedSize(2)
    assert make(LENGTHS, how, rank=0, world_size=1).drop_last is False
    with pytest.raises(ValueError, match="`batches` must be shared out once, by the sampler's own rank and world_size"):
        assert make(LENGTHS, how, rank=0, world_size=2).drop_last


def test_a_plain_loader_takes_the_same_batches():
    sampler = sampler_of()
    loader = DataLoader(Data(), batch_sampler=sampler, collate_fn=list, num_workers=2)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert list(loader) == planned(epoch)


def test_a_plain_loader_whose_epoch_is_never_set_is_told_at_its_third_end():
    loader = DataLoader(Data(), batch_sampler=sampler_of(), collate_fn=list)
    next(iter(loader))
    for _ in range(2):
        list(loader)
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch, but is 0 at the second pass"):
        list(loader)


def test_the_first_batch_says_once_what_an_epoch_pads(capsys):
    lengths = np.arange(1, 41)
    for rank, quiet in ((0, False), (1, False), (0, True)):
        sampler = lw.torch.BatchSampler(lengths, BATCHING, rank=rank, world_size=2)
        loader = lw.torch.DataLoader(range(40), sampler, collate_fn=list, quiet=quiet)
        for epoch in range(2):
            loader.set_epoch(epoch)
            list(loader)
        share = lw.measure(lw.make_plan(lengths, BATCHING, world_size=2), lengths).padding_share
        said = f"Lengthwise: epoch 0 has 10 steps; {share:.2g}"
        heard = capsys.readouterr().err
        assert heard == "" if rank or quiet else heard.startswith("Lengthwise: epoch 0 has 10 steps; "), said
        assert heard.count("Lengthwise") == (not rank and not quiet)


def test_workers_are_seeded_by_the_place_and_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    loader = loader_of("workers")
    list(loader)
    assert torch.equal(torch.get_rng_state(), before)
    seeds = set()
    for epoch in (1, 2):
        loader.set_epoch(epoch)
        iter(loader)
        seeds.add(loader.generator.initial_seed())
    assert len(seeds) == 2


# What a batch is made by.

SEQUENCES = [torch.ones(int(n)) for n in range(1, 41)]


@pytest.mark.parametrize(
    ("cut", "collate"),
    [
        (lw.FixedSize(4), lw.torch.PadCollate()),
        (lw.FixedSize(4, multiple_of=8), lw.torch.PadCollate(multiple_of=8)),
        (lw.Budget(400, count_multiple_of=4), lw.torch.PadCollate(count_multiple_of=4)),
        (lw.Rows(50, max_in_row=3), lw.torch.RowCollate(50, max_in_row=3)),
    ],
    ids=str,
)
def test_batches_are_padded_or_packed_as_the_plan_counts(cut, collate):
    sampler = lw.torch.BatchSampler(np.arange(1, 41), lw.Batching(cut=cut))
    loader = lw.torch.DataLoader(SEQUENCES, sampler)
    assert loader.collate_fn == collate
    assert {type(batch) for batch in loader} == {type(collate([SEQUENCES[0]]))}


def test_samples_without_a_sequence_are_stacked():
    batch = next(iter(lw.torch.DataLoader([(n, str(n)) for n in range(40)], sampler_of())))
    assert batch[0].tolist() == [int(text) for text in batch[1]]
