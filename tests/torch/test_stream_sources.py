"""Sources of streams: with a state of their own, with epochs, that fail, and whose sequences are dropped."""

import copy
import gc
import itertools
import warnings
from types import MappingProxyType

import numpy as np
import pytest
import torch
from streams import ByEpoch, Stateful, length, names, samples, shards_of, stream_of
from torch.utils.data import DataLoader, IterableDataset

import lengthwise as lw
from lengthwise.choices.deal import World
from lengthwise.planning.rest import EarlierRun
from lengthwise.torch import sources
from lengthwise.torch.window import Window, deliver
from ranks import run_ranks

BUDGET = lw.Batching(budget=400)


class Splits(dict):
    """As the dict of splits of Hugging Face."""


def test_a_source_with_a_state_is_not_read_again():
    shards = shards_of([50, 33])
    whole = names(stream_of(shards, BUDGET))
    running = stream_of([Stateful(shard) for shard in shards], BUDGET)
    taken = names(itertools.islice(iter(running), 16))
    assert running.state_dict()["window"] == 1
    state = copy.deepcopy(running.state_dict())
    sources = [Stateful(shard) for shard in shards]
    resumed = stream_of(sources, BUDGET)
    resumed.load_state_dict(state)
    assert taken + names(resumed) == whole
    assert [source.begun for source in sources] == [[20], [20]]
    with pytest.warns(match="second pass"):
        assert names(resumed) == whole  # another pass begins anew


@pytest.mark.parametrize("world", [{}, {"micro_batches": 2}])
def test_sources_with_a_state_are_not_read_twice_after_their_end(world):
    shards = shards_of([50, 33])
    running = stream_of([Stateful(shard) for shard in shards], BUDGET)
    everything = {name for shard in shards for name, _ in shard}
    taken = set()
    for batch in running:
        taken.update(name for name, _ in batch)
        resumed = stream_of([Stateful(shard) for shard in shards], BUDGET, **world)
        resumed.load_state_dict(running.state_dict())
        assert {name for batch in names(resumed) for name in batch} == everything - taken
    resumed.load_state_dict(running.state_dict())
    assert list(resumed) == []


class Handing(Stateful):
    """As a Hugging Face stream, it hands its own `__dict__` to a copy."""

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__ = state


@pytest.mark.parametrize("kind", [Stateful, Handing])
def test_a_source_with_a_state_begins_anew_in_every_pass(kind):
    shards = shards_of([50, 33])
    stream = stream_of([kind(shard) for shard in shards], BUDGET)
    whole = names(stream)
    next(iter(stream))
    with pytest.warns(match="second pass"):
        assert names(stream) == whole


class Living:
    """A source whose state is one dict, in which it goes on writing."""

    def __init__(self, own):
        self.own, self.state = own, {"at": 0}

    def __iter__(self):
        while self.state["at"] < len(self.own):
            self.state["at"] += 1
            yield self.own[self.state["at"] - 1]

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


def test_a_state_stays_as_it_was_saved_whatever_its_source_does():
    shards = shards_of([50, 33])
    stream = stream_of([Living(shard) for shard in shards], BUDGET)
    batches = iter(stream)
    first = names(itertools.islice(batches, 16))
    state = stream.state_dict()
    saved = copy.deepcopy(state)
    others = names(batches)
    assert state == saved
    for _ in range(2):
        resumed = stream_of([Living(shard) for shard in shards], BUDGET)
        resumed.load_state_dict(state)
        assert names(resumed) == others
        assert state == saved
    assert len(first) == 16


@pytest.mark.parametrize("read", [-1, 1.5, "ten", None])
def test_a_state_that_says_no_whole_number_was_read_is_refused(read):
    stream = stream_of(shards_of([9, 5]), BUDGET)
    next(iter(stream))
    state = stream.state_dict()
    state["starts"][1]["read"] = read
    with pytest.raises((ValueError, TypeError), match=r"^`starts` must be (a whole number|at least 0), but is "):
        stream_of(shards_of([9, 5]), BUDGET).load_state_dict(state)


def test_a_window_has_a_sequence_of_each_shard_at_least():
    shards = shards_of([3, 5, 2])
    taken = itertools.chain.from_iterable(names(stream_of(shards, BUDGET, buffer=1)))
    assert sorted(taken) == sorted(name for shard in shards for name, _ in shard)


def test_shards_are_told_the_epoch_of_a_state():
    streams = [stream_of([ByEpoch(90)], BUDGET) for _ in range(2)]
    for stream in streams:
        stream.set_epoch(3)
    whole, running = names(streams[0]), streams[1]
    taken = names(itertools.islice(iter(running), 11))
    resumed = stream_of([ByEpoch(90)], BUDGET)
    resumed.load_state_dict(running.state_dict())
    assert taken + names(resumed) == whole


def test_a_batch_that_cannot_be_collated_was_not_yielded():
    def refuse(batch):
        if any(name == 70 for name, _ in batch):
            raise OSError("no such file")
        return batch

    shards = shards_of([90])
    running = lw.torch.StreamBatches(shards, BUDGET, length=length, collate_fn=refuse, buffer=40)
    taken = []
    with pytest.raises(OSError, match="no such file"):
        taken.extend([name for name, _ in batch] for batch in running)
    resumed = stream_of(shards, BUDGET)
    resumed.load_state_dict(running.state_dict())
    assert taken + names(resumed) == names(stream_of(shards, BUDGET))


def test_a_source_that_fails_in_the_next_window_lets_this_one_end():
    class Late:
        def __iter__(self):
            yield from samples(45)
            raise OSError("the disk is gone")

    found = []
    with pytest.raises(OSError, match="the disk is gone"):
        found.extend(name for batch in stream_of([Late()], BUDGET) for name, _ in batch)
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize(
    "given", [{"train": ["a"]}, [["a"], {"train": ["a"]}], MappingProxyType({}), Splits(train=["a"])]
)
def test_a_dict_is_not_read_as_its_keys(given):
    with pytest.raises(TypeError, match=r"^`shards` must be iterables of samples and no dict, .*data\['train'\]\.$"):
        lw.torch.StreamBatches(given, lw.Batching(cut=lw.FixedSize(2)), length=len)


def test_windows_of_dropped_sequences_have_no_batches():
    drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
    shards = [[(0, 9), (1, 900), (2, 7), (3, 900), (4, 900), (5, 900)]]
    stream = stream_of(shards, drop, buffer=4)
    found, states = [], []
    for batch in stream:
        found += [name for name, _ in batch]
        states.append(stream.state_dict())
    assert sorted(found) == [0, 2]
    resumed = stream_of(shards, drop, buffer=4, micro_batches=2)
    resumed.load_state_dict(states[-1])
    assert list(resumed) == []
    tail = lw.Batching(cut=lw.FixedSize(4), deal=lw.Balanced(tail="drop"))
    assert len(list(stream_of([samples(43)], tail, micro_batches=2))) == 10
    stream = stream_of([samples(43)], tail, micro_batches=20)
    warned = pytest.warns(UserWarning, match=r"^`buffer` must be large enough .* but is 40 at window 0 of epoch 0\. ")
    with warned, pytest.raises(ValueError, match=r"^`steps` must be at least 1, but is 0 at epoch 0\. No window "):
        list(stream)


def test_a_window_whose_sequences_are_all_dropped_is_left_out():
    drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
    shards = [[(0, 9), (1, 7), (2, 900), (3, 900), (4, 8), (5, 9)]]
    stream = stream_of(shards, drop, buffer=2)
    with pytest.warns(UserWarning, match=r"^`buffer` must be large enough .* but is 2 at window 1 of epoch 0\. "):
        found = names(stream)
    assert sorted(itertools.chain(*found)) == [0, 1, 4, 5]


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("cut", [lw.FixedSize(16, drop_incomplete=True), lw.Budget(400, oversize="drop")])
def test_a_last_window_of_several_ranks_may_be_dropped_whole(cut, world_size):
    window = Window(np.full((9, 1), 900), np.ones(9), np.arange(9) % world_size)
    world = World(world_size, 1)
    for runs in ([], [EarlierRun(World(1, 1), 0)]):
        found = deliver(window, lw.Batching(cut=cut), runs, world, seed=0, epoch=0, number=3, whole=False)
        assert found.plan.steps == len(found.members) == 0


class Numbered(IterableDataset):
    """It has no state of its own, and the same lengths throughout: nobody would see what is lost."""

    def __iter__(self):
        return iter([(number, 5) for number in range(100)])


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_loader_of_torchdata_over_a_data_set_without_a_state_resumes_twice():
    loaders = pytest.importorskip("torchdata.stateful_dataloader")

    def made():
        return stream_of([loaders.StatefulDataLoader(Numbered(), batch_size=None)], lw.Batching(budget=10), buffer=10)

    expected, taken, state = names(made()), [], None
    for _ in range(3):
        stream = made()
        if state is not None:
            stream.load_state_dict(state)
        taken += names(itertools.islice(iter(stream), 17))
        state = stream.state_dict()
    assert taken == expected[: len(taken)]
    assert len(taken) > 40


@pytest.mark.parametrize("persistent", [True, False])
def test_workers_that_would_not_hear_of_the_epoch_are_refused(persistent):
    loader = DataLoader(ByEpoch(50), batch_size=None, num_workers=1, persistent_workers=persistent)
    if not persistent:
        assert stream_of([loader], BUDGET).epoch == 0
        return
    with pytest.raises(ValueError, match=r"^`shards` must be loaders whose workers are told the epoch, but is "):
        stream_of([loader], BUDGET)
    kept = DataLoader(Numbered(), batch_size=None, num_workers=1, persistent_workers=True)
    assert stream_of([kept], BUDGET).epoch == 0


class Deep:
    """A source whose state lies in an object that a shallow copy shares; `epoch` is part of it."""

    def __init__(self, count):
        self.count, self.place = count, {"at": 0, "epoch": 0}

    def set_epoch(self, epoch):
        self.place["epoch"] = epoch

    def __iter__(self):
        own = samples(self.count, seed=self.place["epoch"])
        while self.place["at"] < self.count:
            self.place["at"] += 1
            yield own[self.place["at"] - 1]
        self.place["at"] = 0

    def state_dict(self):
        return dict(self.place)

    def load_state_dict(self, state):
        self.place.update(state)


def test_a_source_whose_state_lies_deep_begins_anew_in_every_pass():
    def of_epoch(epoch):
        stream = stream_of([Deep(60)], BUDGET, buffer=10)
        stream.set_epoch(epoch)
        return names(stream)

    stream = stream_of([Deep(60)], BUDGET, buffer=10)
    next(iter(stream))
    assert names(stream) == of_epoch(0)
    stream.set_epoch(1)
    assert len(list(itertools.islice(iter(stream), 3))) == 3
    with pytest.warns(match="left early"):
        stream.set_epoch(2)
    assert names(stream) == of_epoch(2)
    assert of_epoch(1) != of_epoch(2)


def of_nodes():
    nodes = pytest.importorskip("torchdata.nodes")
    return nodes.Loader(nodes.IterableWrapper(samples(60)))


class Around:
    """A source around another, whose state is its own."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(self.inner)

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


class DeepDataset(Deep, IterableDataset):
    """The same for loaders."""


def over_deep():
    return DataLoader(DeepDataset(60), batch_size=None)


def stateful_over_deep():
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader(DeepDataset(60), batch_size=None)


SOURCES = {
    "nodes": of_nodes,
    "around nodes": lambda: Around(of_nodes()),
    "around deep": lambda: Around(Deep(60)),
    "around flat": lambda: Around(Stateful(samples(60))),
    "loader over deep": over_deep,
    "torchdata's loader over deep": stateful_over_deep,
}
with_every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@with_every_source
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("left", [True, False])
def test_epochs_behind_a_resumed_one_are_whole(source, left):
    running = stream_of([source()], BUDGET, buffer=10)
    list(itertools.islice(iter(running), 4))
    resumed = stream_of([source()], BUDGET, buffer=10)
    resumed.load_state_dict(running.state_dict())
    rest = iter(resumed)
    list(itertools.islice(rest, 2) if left else rest)
    for epoch in range(1, 4):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`stream` must be read to its end")
            resumed.set_epoch(epoch)
        assert sum(map(len, resumed)) == 60


@with_every_source
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_shard_that_ends_with_a_window_is_not_read_again(source):
    """In the state of their end, the nodes of torchdata begin anew."""
    shards = [source(), samples(95, first=1_000)]
    whole, running = names(stream_of([source(), samples(95, first=1_000)], BUDGET)), stream_of(shards, BUDGET)
    for taken, _ in enumerate(running, 1):
        if taken % 5 == 0 or taken == len(whole):
            resumed = stream_of([source(), samples(95, first=1_000)], BUDGET)
            resumed.load_state_dict(running.state_dict())
            assert names(resumed) == whole[taken:]


@with_every_source
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_sources_begin_anew_after_a_look_and_resume(source):
    whole, stream = names(stream_of([source()], BUDGET, buffer=10)), stream_of([source()], BUDGET, buffer=10)
    next(iter(stream))
    assert names(itertools.islice(iter(stream), 5)) == whole[:5]
    with pytest.warns(match="left early"):
        stream.set_epoch(1)
    assert sum(map(len, stream)) == 60
    running = stream_of([source()], BUDGET, buffer=10)
    assert names(itertools.islice(iter(running), 8)) == whole[:8]
    resumed = stream_of([source()], BUDGET, buffer=10)
    resumed.load_state_dict(running.state_dict())
    assert names(resumed) == whole[8:]
    with pytest.warns(match="second pass"):
        assert names(resumed) == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda stream: stream.skip(9),
        lambda stream: stream.take(9).map(dict),
        lambda stream: stream.filter(lambda _, number: number >= 9, with_indices=True),
    ],
)
def test_a_stream_of_hugging_face_that_skips_in_each_shard_is_refused(change):
    datasets = pytest.importorskip("datasets")
    stream = change(datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]}))
    given = {"length": lambda row: row["length"], "collate_fn": list, "buffer": 40}
    with pytest.raises(ValueError, match=r"^`shards` must be a stream without skip, take, and f.*'one of 4 shards'"):
        lw.torch.StreamBatches(stream, BUDGET, **given)
    found = [row["name"] for batch in lw.torch.StreamBatches([stream], BUDGET, **given) for row in batch]
    assert sorted(found) == sorted(row["name"] for row in stream)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "'batch_size=1'"),
        ({"batch_size": 8, "collate_fn": list}, "'batch_size=8'"),
        ({"batch_sampler": [[0, 1], [2]]}, "'a batch_sampler'"),
    ],
)
def test_a_loader_that_gives_batches_is_refused(given, named):
    # The length of a batch [1, T] is 1: a batch of the stream would hold as many sequences as the budget has frames.
    loader = DataLoader(samples(20), **given)
    with pytest.raises(
        ValueError, match=rf"^`shards` must be loaders of single samples, but is {named}\. Give it batch"
    ):
        stream_of([loader], BUDGET)


@pytest.mark.parametrize("given", [{"batch_size": None}, {"batch_size": 1, "collate_fn": lambda batch: batch[0]}])
def test_a_loader_that_gives_single_samples_is_a_shard(given):
    whole = [(name, length) for name, length in samples(20)]
    assert names(stream_of([DataLoader(whole, **given)], BUDGET)) == names(stream_of([whole], BUDGET))


def rows(shards):
    for shard in shards:
        yield from ({"name": 100 * shard + number, "length": 1 + number % 7} for number in range(20))


def on_two_ranks(rank, folder, splits):
    datasets = pytest.importorskip("datasets")
    split_dataset_by_node = pytest.importorskip("datasets.distributed").split_dataset_by_node
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    own = datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})
    if splits:
        own = split_dataset_by_node(own, rank=rank, world_size=2)
    stream = lw.torch.StreamBatches(own, BUDGET, length=lambda row: row["length"], buffer=40, collate_fn=list)
    try:
        found = [row["name"] for batch in stream for row in batch]
    except ValueError as error:
        found = str(error)
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_a_stream_that_was_split_by_node_before_is_refused(tmp_path):
    pytest.importorskip("datasets")
    run_ranks(on_two_ranks, tmp_path, True)
    for rank in (0, 1):
        error = f"`shards` must be the same on every rank, but is 'those of node {rank} of 2'. Leave out split_datas"
        assert torch.load(tmp_path / f"{rank}.pt").startswith(error)


def test_a_stream_of_hugging_face_is_dealt_to_the_ranks(tmp_path):
    pytest.importorskip("datasets")
    run_ranks(on_two_ranks, tmp_path, False)
    taken = {name for rank in (0, 1) for name in torch.load(tmp_path / f"{rank}.pt")}
    assert taken == {100 * shard + number for shard in range(4) for number in range(20)}


def shuffled(datasets, kind):
    stream = datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})
    stream = stream.shuffle(seed=1, buffer_size=10)
    if kind == "mapped":
        return stream.map(lambda row: {"length": row["length"]})
    if kind == "interleaved":
        return datasets.concatenate_datasets([stream, stream.map(lambda row: {"name": 1_000 + row["name"]})])
    if kind == "torchdata":
        loaders = pytest.importorskip("torchdata.stateful_dataloader")
        shards = [stream.shard(num_shards=4, index=number) for number in range(4)]
        return [loaders.StatefulDataLoader(shard, batch_size=None) for shard in shards]
    return stream


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind", ["plain", "mapped", "interleaved", "torchdata"])
def test_a_shuffled_stream_of_hugging_face_resumes_exactly(kind):
    """Its state leaves out what its buffer holds. Where all lengths are alike, nobody would see what is lost."""
    datasets = pytest.importorskip("datasets")

    def made():
        return lw.torch.StreamBatches(
            shuffled(datasets, kind), BUDGET, length=lambda _: 50, collate_fn=list, buffer=40, seed=3
        )

    whole, running = made(), made()
    for stream in (whole, running):
        stream.set_epoch(2)
    expected = [[row["name"] for row in batch] for batch in whole]
    for taken, _ in enumerate(running, 1):
        if taken % 4 == 0:
            resumed = made()
            resumed.load_state_dict(running.state_dict())
            assert [[row["name"] for row in batch] for batch in resumed] == expected[taken:]
    whole.set_epoch(3)
    assert [[row["name"] for row in batch] for batch in whole] != expected


def of_hugging_face(stream):
    return lw.torch.StreamBatches(stream, BUDGET, length=lambda row: row["length"], collate_fn=list, buffer=40)


def rows_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    return datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_stream_of_hugging_face_that_another_seed_shuffles_is_refused(interleaved):
    """Each process would share out, and go on in, another order."""
    datasets = pytest.importorskip("datasets")

    def made(seed):
        stream = rows_of_hugging_face()
        if interleaved:
            return of_hugging_face(datasets.interleave_datasets([stream, stream], probabilities=[0.5, 0.5], seed=seed))
        return of_hugging_face(stream.shuffle(seed=seed, buffer_size=10))

    running = made(3)
    whole = [[row["name"] for row in batch] for batch in made(3)]
    taken = [[row["name"] for row in batch] for batch in itertools.islice(iter(running), 3)]
    resumed = made(3)
    resumed.load_state_dict(running.state_dict())
    assert taken + [[row["name"] for row in batch] for batch in resumed] == whole
    for other in (made(4), made(None)):
        with pytest.raises(lw.PlanMismatchError, match=r"^`seeds of shards` must be the checkpoint's, "):
            other.load_state_dict(running.state_dict())
    assert made(None)._facts() != made(None)._facts()  # which ranks compare


@pytest.mark.parametrize("shared", [False, True])
def test_a_second_loop_over_a_stream_of_hugging_face_leaves_the_state_of_the_first(shared):
    stream = rows_of_hugging_face()
    shards = [stream.shard(num_shards=2, index=index) for index in (0, 1)] if shared else stream
    running = of_hugging_face(shards)
    whole = [row["name"] for batch in of_hugging_face(shards) for row in batch]
    batches = iter(running)
    seen = [row["name"] for row in next(batches)]
    next(iter(of_hugging_face(shards) if shared else running))
    seen += [row["name"] for batch in itertools.islice(batches, 4) for row in batch]
    resumed = of_hugging_face(shards)
    resumed.load_state_dict(running.state_dict())
    assert seen + [row["name"] for batch in resumed for row in batch] == whole


@with_every_source
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_another_stream_over_sources_that_were_read_in_part_reads_them_whole(source):
    given = source()
    next(iter(stream_of([given], BUDGET, buffer=10)))
    assert names(stream_of([given], BUDGET, buffer=10)) == names(stream_of([source()], BUDGET, buffer=10))


class Part(Stateful):
    """Equal to every other of its file, whatever part of it it reads."""

    def __eq__(self, other):
        return isinstance(other, Part)

    def __hash__(self):
        return 7


def test_equal_sources_keep_apart_where_they_begin():
    parts = [Part(samples(10)), Part(samples(10, first=100))]
    parts[1].at = 3
    found = names(stream_of(parts, BUDGET, buffer=4))
    assert sorted(itertools.chain(*found)) == [*range(10), *range(103, 110)]


def test_what_is_known_of_a_source_goes_with_it():
    before = len(sources._begins)
    for _ in range(3):
        list(stream_of([Stateful(samples(10))], BUDGET))
    gc.collect()
    assert len(sources._begins) == before


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("loaded", [False, True, "stateful"])
@pytest.mark.parametrize("joined", ["one behind the other", "side by side"])
def test_shards_of_hugging_face_that_share_stages_are_read_whole_and_resume(joined, loaded):
    datasets = pytest.importorskip("datasets")
    if loaded == "stateful":
        loader = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    else:
        loader = DataLoader

    def made():
        one, other = (rows_of_hugging_face() for _ in range(2))
        if joined == "side by side":
            stream = datasets.concatenate_datasets(
                [one, other.map(lambda row: {"twin": row["name"]}).select_columns("twin")], axis=1
            )
        else:
            stream = datasets.concatenate_datasets([one, other])
        shards = [stream, stream.map(lambda row: {"name": 1_000 + row["name"]})]
        return of_hugging_face([loader(each, batch_size=None) for each in shards] if loaded else shards)

    def read(batches):
        return [[row["name"] for row in batch] for batch in batches]

    running, whole = made(), read(made())
    expected = 2 * 80 if joined == "side by side" else 4 * 80
    assert sum(map(len, whole)) == expected
    for taken, _ in enumerate(running, 1):
        if taken % 3 == 0:
            resumed = made()
            resumed.load_state_dict(running.state_dict())
            assert read(resumed) == whole[taken:]
