"""Who may draw from a sampler: refused with the first batch, and samplers that do not look at their callers."""

import traceback
import warnings
from contextlib import contextmanager
from itertools import chain, compress, cycle, islice

import pytest
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=40)
BATCHING = lw.Batching(cut=lw.FixedSize(4))
BATCHES = 10


def training(**changed):
    return lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.FixedSize(4), **changed), rank=0, world_size=1)


def evaluation():
    return lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(4), rank=0, world_size=1)


BOTH = pytest.mark.parametrize("make", [training, evaluation])
WORKERS = pytest.mark.parametrize("workers", [0, 1])


def as_is(item):
    return item


class Stream(IterableDataset):
    """Iterates a sampler by itself."""

    def __init__(self, batches, listed=False):
        self.batches, self.listed = batches, listed

    def __iter__(self):
        return iter(list(self.batches)) if self.listed else (batch for batch in self.batches)


class Table(Dataset):
    """Draws from a sampler for each of its items."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return BATCHES

    def __getitem__(self, number):
        return next(iter(self.batches))


@contextmanager
def refused(sentence):
    """`pytest.raises`, after which the loader's workers end at once.

    The error of a worker holds its own traceback, and so the loader's iterator, in a cycle. The garbage collector
    takes its parts in any order: the iterator then waits ten seconds for workers whose queues went before it.
    """
    with pytest.raises(ValueError, match=sentence) as caught:
        yield
    for frame, _ in traceback.walk_tb(caught.tb):
        if isinstance(iterator := frame.f_locals.get("self"), _MultiProcessingDataLoaderIter):
            iterator._shutdown_workers()


@BOTH
@WORKERS
@pytest.mark.parametrize("dataset", [Stream, lambda batches: Stream(batches, listed=True), Table])
def test_a_dataset_that_draws_from_a_sampler_is_refused(make, workers, dataset):
    loader = DataLoader(dataset(make()), batch_size=None, num_workers=workers)
    given = "drawn from by the dataset" + (", in worker 0 of 1" if workers else "")
    with refused(f"`sampler` must be drawn from by the loader, but is '{given}'. Give the"):
        list(loader)


def test_a_dataset_may_read_a_plan():
    plan = lw.make_plan(LENGTHS, BATCHING)
    loader = DataLoader(Stream(list(plan.batches(0))), batch_size=None, collate_fn=as_is)
    assert sorted(number for batch in loader for number in batch.tolist()) == list(range(40))


@BOTH
@WORKERS
@pytest.mark.parametrize("size", [39, 41, 0])
def test_a_dataset_of_another_size_is_refused(make, workers, size):
    loader = DataLoader(range(size), batch_sampler=make(), num_workers=workers)
    said = f"`lengths` must be as many as the {size} sequences of the loader's dataset, but is 40. Give the lengths of"
    with refused(said):
        list(loader)


class Spans(Dataset):
    """Gives chunks of its sequences, and has as many sequences as it says."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, span):
        return span


def test_of_chunks_the_sequences_are_counted():
    sampler = training(chunks=lw.Chunks(300))
    assert len(sampler.plan.spans) > len(LENGTHS)
    batches = list(DataLoader(Spans(40), batch_sampler=sampler, collate_fn=as_is))
    assert sum(len(batch) for batch in batches) == len(sampler.plan.spans)
    sampler.set_epoch(1)
    with refused(f"as many as the {len(sampler.plan.spans)} sequences"):
        list(DataLoader(Spans(len(sampler.plan.spans)), batch_sampler=sampler, collate_fn=as_is))


class Unsized:
    def __getitem__(self, item):
        return item


class Unwilling(Unsized):
    def __len__(self):
        raise NotImplementedError


@BOTH
@pytest.mark.parametrize(
    "dataset", [Unsized(), Unwilling(), {number: number for number in range(40)}], ids=lambda data: type(data).__name__
)
def test_a_dataset_that_does_not_tell_its_size_is_taken_as_it_is(make, dataset):
    loader = DataLoader(dataset, batch_sampler=make(), collate_fn=as_is)
    assert sorted(number for batch in loader for number in batch) == list(range(40))


class Wrapping(Sampler):
    """Stands between a sampler and its loader; may draw all batches before it hands on the first."""

    def __init__(self, inner, eager):
        self.inner, self.eager = inner, eager

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        return iter(list(self.inner)) if self.eager else (batch for batch in self.inner)


@WORKERS
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_sampler_between_may_draw_as_it_likes(workers, eager, persistent):
    sampler = training()
    options = {"num_workers": workers, "persistent_workers": persistent and workers > 0}
    loader = DataLoader(range(40), batch_sampler=Wrapping(sampler, eager), collate_fn=as_is, **options)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        whole = [batch.tolist() for batch in sampler.plan.batches()]
        for taken, batch in enumerate(loader, start=1):
            assert batch == whole[taken - 1]
            assert sampler.delivered == taken


@BOTH
@pytest.mark.parametrize("eager", [True, False])
def test_batches_are_the_same_under_a_wrapper(make, eager):
    loader = DataLoader(range(40), batch_sampler=Wrapping(make(), eager), collate_fn=as_is)
    assert list(loader) == list(make())


class Uncounted(_SingleProcessDataLoaderIter):
    """Of a loader that does not say how many batches it handed on."""

    def __init__(self, loader):
        super().__init__(loader)
        del self._num_yielded

    def __next__(self):
        return self._next_data()


class Foreign(DataLoader):
    def _get_iterator(self):
        return Uncounted(self)


def test_a_loader_that_cannot_be_read_is_told_of_and_what_was_drawn_counts():
    sampler = training()
    loader = Foreign(range(40), batch_sampler=sampler, collate_fn=as_is)
    said = (
        r"`loader` must be one that counts the batches it hands on, .+ but is 'Uncounted'\. Give state_dict the .+\.$"
    )
    with pytest.warns(UserWarning, match=said):
        assert [sampler.delivered for _ in loader] == list(range(1, BATCHES + 1))
    silent = training()
    silent.reads_callers = False
    assert [silent.delivered for _ in Foreign(range(40), batch_sampler=silent)] == list(range(1, BATCHES + 1))


@BOTH
def test_a_sampler_that_does_not_read_its_callers_refuses_none(make):
    sampler = make()
    sampler.reads_callers = False
    assert sorted(number for batch in DataLoader(Stream(sampler), batch_size=None) for number in batch) == list(
        range(40)
    )
    assert len(list(DataLoader(range(99), batch_sampler=make_unread(make), collate_fn=as_is))) == BATCHES


def make_unread(make):
    sampler = make()
    sampler.reads_callers = False
    return sampler


def test_a_sampler_that_does_not_read_its_callers_counts_what_it_yields():
    sampler = make_unread(training)
    loader = DataLoader(range(40), batch_sampler=sampler, num_workers=2, prefetch_factor=2, collate_fn=as_is)
    for taken, _ in enumerate(loader, start=1):
        assert sampler.delivered == min(taken + 4, BATCHES)  # four batches ahead of the loop
        resumed = training()
        resumed.load_state_dict(sampler.state_dict(delivered=taken))
        assert resumed.start == taken


@BOTH
def test_two_samplers_say_what_they_are(make):
    sampler = make()
    assert "rank 0 of 1" in repr(sampler)
    assert f"{BATCHES} batches" in repr(sampler)
    assert "40 sequences" in repr(sampler)
    assert "FixedSize(batch_size=4" in repr(sampler)


def test_a_batch_sampler_says_where_it_stands():
    sampler = training(order=lw.Sorted())
    said = "(rank 0 of 1, epoch {}, {} of 10 batches delivered, 40 sequences, Batching("
    assert said.format(0, 0) in repr(sampler)
    for _ in zip(range(3), sampler, strict=False):
        pass
    assert said.format(0, 3) in repr(sampler)
    resumed = training(order=lw.Sorted())
    resumed.load_state_dict(sampler.state_dict())
    assert said.format(0, 3) in repr(resumed)
    assert len(list(resumed)) == 7
    assert said.format(0, 10) in repr(resumed)
    resumed.set_epoch(5)
    assert said.format(5, 0) in repr(resumed)


class SharedOut(Sampler):
    """Another sampler above ours, which yields what the first of two ranks would take."""

    num_replicas = 2

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        for number, batch in enumerate(self.sampler):
            if number % 2 == 0:
                yield batch


def test_the_batches_of_all_ranks_may_be_shared_out_by_another_and_those_of_one_may_not():
    assert len(list(SharedOut(training()))) == BATCHES // 2
    one = lw.torch.BatchSampler(LENGTHS, BATCHING, rank=0, world_size=2)
    with pytest.raises(
        ValueError, match=r"^`batches` must be shared out once, .+ but is .shared out to 2 again by Shared"
    ):
        list(SharedOut(one))


class Bare:
    """Stands between a sampler and its loader without being a sampler, and says nothing of the ranks."""

    def __init__(self, sampler, hand_on):
        self.sampler, self.hand_on = sampler, hand_on

    def __iter__(self):
        return iter(self.hand_on(self.sampler, self.sampler.rank))


def in_turn(sampler, rank):
    for number, batch in enumerate(sampler):
        if number % 2 == rank:
            yield batch


def buffered(sampler, _):
    held = []
    for batch in sampler:
        held.append(batch)
        if len(held) == 4:
            yield held.pop()
    yield from held


LOSES = {
    "islice": lambda sampler, rank: islice(sampler, rank, None, 2),
    "a generator expression": lambda sampler, rank: (each for n, each in enumerate(sampler) if n % 2 == rank),
    "a generator": in_turn,
    "compress": lambda sampler, rank: compress(sampler, cycle((rank == 0, rank == 1))),
}
KEEPS = {
    "a generator expression": lambda sampler, _: (batch for batch in sampler),
    "map": lambda sampler, _: map(list, sampler),
    "a buffer": buffered,
    "pairs": lambda sampler, _: chain.from_iterable(zip(*[iter(sampler)] * 2, strict=True)),
    "islice, to resume": lambda sampler, _: islice(sampler, 7, None),
}


def pass_of_two_ranks(between, *, workers=0, **world):
    """How many batches each rank takes of 10, and what is said of that."""
    taken, said = [], []
    for rank in range(2):
        sampler = lw.torch.BatchSampler([*LENGTHS] * 2, BATCHING, **({"rank": rank, "world_size": 2} | world))
        loader = DataLoader(range(80), batch_sampler=Bare(sampler, between), num_workers=workers, collate_fn=as_is)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            taken.append(len(list(loader)))
            sampler.set_epoch(1)
            list(loader)
        said.append([str(each.message) for each in caught])
    return taken, said


@WORKERS
@pytest.mark.parametrize("between", LOSES.values(), ids=LOSES)
def test_batches_that_nobody_is_handed_are_told_at_the_end_of_the_first_epoch(between, workers):
    taken, said = pass_of_two_ranks(between, workers=workers)
    assert taken == [5, 5]
    for rank, drawn in enumerate((10, 9)):  # what is skipped at first may be skipped to resume
        (told,) = said[rank]
        assert told == (
            f"`batches` must be handed to the loader, all {drawn} of this rank, but is 5 at epoch 0. Something between "
            "the sampler and its loader leaves out the others. If it shares them out to the ranks, remove it, or make "
            "the sampler with rank=0, world_size=1."
        )


@WORKERS
@pytest.mark.parametrize("between", KEEPS.values(), ids=KEEPS)
def test_what_hands_on_every_batch_says_nothing(between, workers):
    assert pass_of_two_ranks(between, workers=workers)[1] == [[], []]


@WORKERS
def test_the_batches_of_one_rank_may_be_shared_out_by_a_generator(workers):
    taken, said = pass_of_two_ranks(
        lambda sampler, _: islice(sampler, 0, None, 2), workers=workers, world_size=1, rank=0
    )
    assert (taken, said) == ([10, 10], [[], []])


@WORKERS
def test_a_list_of_every_second_batch_is_an_epoch_that_was_left_early(workers):
    said = pass_of_two_ranks(lambda sampler, rank: list(sampler)[rank::2], workers=workers)[1]
    assert [told[0].partition(" Raise")[0] for told in said] == 2 * [
        "`batches delivered` must be 10 before the next epoch, or sequences are lost, but is 5 at epoch 0."
    ]
