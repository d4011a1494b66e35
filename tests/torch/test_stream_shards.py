"""Shards of streams: with a state or without, with epochs, and of torchdata, Hugging Face and WebDataset."""

import copy
import itertools
import threading
import warnings

import pytest
import torch
from streams import BUDGET, ByEpoch, Stateful, check_goes_on, names, samples, shards_of, stream_of
from torch import distributed
from torch.utils.data import DataLoader, IterableDataset

import lengthwise as lw
from ranks import run_ranks

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
    # WebDataset closes a file that was read in part when its iterator is collected, and Python tells so.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]


def stateful_loader(source):
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader(source, batch_size=None)


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


def nodes():
    nodes = pytest.importorskip("torchdata.nodes")
    return nodes.Loader(nodes.IterableWrapper(samples(60)))


SOURCES = {
    "none": lambda: samples(60),
    "own": lambda: Stateful(samples(60)),
    "around": lambda: Around(Stateful(samples(60))),
    "loader": lambda: DataLoader(Stateful(samples(60)), batch_size=None),
    "workers": lambda: DataLoader(Stateful(samples(60)), batch_size=None, num_workers=1),
    "torchdata's loader": lambda: stateful_loader(Stateful(samples(60))),
    "torchdata's loader without a state": lambda: stateful_loader(ByEpoch(60)),
    "torchdata's nodes": nodes,
}
with_every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@with_every_source
def test_every_source_goes_on_exactly(source):
    whole = check_goes_on(lambda: stream_of([source(), samples(95, first=1_000)]), every=7)
    assert whole == names(stream_of([samples(60), samples(95, first=1_000)]))


@with_every_source
def test_every_pass_over_every_source_begins_anew(source):
    whole, given = names(stream_of([samples(60)], buffer=10)), source()
    running = stream_of([given], buffer=10)
    next(iter(running))  # a look
    assert names(itertools.islice(iter(running), 8)) == whole[:8]
    assert names(stream_of([given], buffer=10)) == whole  # another stream over the same source
    resumed = stream_of([source()], buffer=10)
    resumed.load_state_dict(running.state_dict())
    assert names(resumed) == whole[8:]
    for epoch in range(1, 3):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`(stream|epoch)` must be")
            resumed.set_epoch(epoch)
            list(itertools.islice(iter(resumed), 3))
            assert sum(map(len, resumed)) == 60


@pytest.mark.filterwarnings("ignore:`epoch` must be another")
def test_a_source_with_a_state_is_not_read_again():
    running = stream_of([Stateful(shard) for shard in shards_of([50, 33])])
    list(itertools.islice(iter(running), 16))
    assert running.state_dict()["window"] == 1
    sources = [Stateful(shard) for shard in shards_of([50, 33])]
    resumed = stream_of(sources)
    resumed.load_state_dict(running.state_dict())
    list(resumed)
    assert [source.reads for source in sources] == [[20], [20]]


def test_a_state_stays_as_it_was_saved_whatever_its_source_does():
    stream = stream_of([Stateful(shard) for shard in shards_of([50, 33])])
    batches = iter(stream)
    list(itertools.islice(batches, 16))
    state = stream.state_dict()
    saved, others = copy.deepcopy(state), names(batches)
    assert state == saved
    for _ in range(2):
        resumed = stream_of([Stateful(shard) for shard in shards_of([50, 33])])
        resumed.load_state_dict(state)
        assert names(resumed) == others
        assert state == saved


@pytest.mark.parametrize(("before", "now"), [(Stateful, list), (list, Stateful)])
def test_a_run_may_go_on_with_sources_that_keep_a_state_or_not(before, now):
    kinds = itertools.chain([list, before], itertools.repeat(now))
    check_goes_on(lambda: (kind := next(kinds)) and stream_of([kind(shard) for shard in shards_of([50, 33])]))


@pytest.mark.parametrize("world", [{}, {"micro_batches": 2}])
def test_sources_with_a_state_are_not_read_twice_after_their_end(world):
    running = stream_of([Stateful(shard) for shard in shards_of([50, 33])])
    everything = {name for shard in shards_of([50, 33]) for name, _ in shard}
    taken = set()
    for batch in running:
        taken.update(name for name, _ in batch)
        resumed = stream_of([Stateful(shard) for shard in shards_of([50, 33])], **world)
        resumed.load_state_dict(running.state_dict())
        assert {name for batch in names(resumed) for name in batch} == everything - taken


def test_a_source_with_a_state_that_cannot_be_copied_is_refused():
    source = Stateful(samples(5))
    source.own = Around(threading.Lock())
    with pytest.raises(TypeError, match=r"^`shards` must be such that copy.deepcopy can copy those with a state_dict"):
        list(stream_of([Around(threading.Lock())]))


def test_a_window_has_a_sequence_of_each_shard_at_least():
    shards = shards_of([3, 5, 2])
    taken = itertools.chain.from_iterable(names(stream_of(shards, buffer=1)))
    assert sorted(taken) == sorted(name for shard in shards for name, _ in shard)


@pytest.mark.parametrize("loaded", [False, True])
def test_shards_and_the_data_sets_of_loaders_are_told_the_epoch(loaded):
    def made(epoch):
        source = ByEpoch(90)
        stream = stream_of([DataLoader(source, batch_size=None, collate_fn=tuple) if loaded else source])
        stream.set_epoch(epoch)
        return stream

    expected, running = [list(map(tuple, batch)) for batch in stream_of([samples(90, seed=3)])], made(3)
    assert {sample for batch in made(3) for sample in batch} == {sample for batch in expected for sample in batch}
    whole, taken = names(made(3)), names(itertools.islice(iter(running), 11))
    resumed = made(0)
    resumed.load_state_dict(running.state_dict())
    assert taken + names(resumed) == whole


def test_a_source_that_fails_in_the_next_window_lets_this_one_end():
    class Late:
        def __iter__(self):
            yield from samples(45)
            raise OSError("the disk is gone")

    found = []
    with pytest.raises(OSError, match="the disk is gone"):
        found.extend(name for batch in stream_of([Late()]) for name, _ in batch)
    assert sorted(found) == list(range(40))


def test_a_source_that_ends_before_the_checkpoint_is_refused():
    stream, shorter = stream_of([samples(60)]), stream_of([samples(20)])
    list(itertools.islice(iter(stream), 14))
    shorter.load_state_dict(stream.state_dict())
    with pytest.raises(
        ValueError, match=r"^`shards` must be of 40 samples at least, as many as were read of it, but is 20"
    ):
        list(shorter)


def loader_of(loader, **given):
    kind = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader if loader else DataLoader
    return kind(samples(20), **{"batch_size": None, **given})


@pytest.mark.parametrize("torchdata", [False, True])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"shuffle": True}, "loaders of one order, but is 'one with a \\w*RandomSampler'"),
        (
            {"shuffle": True, "batch_size": 1, "collate_fn": tuple},
            "loaders of one order, but is 'one with a",
        ),
        (
            {"sampler": torch.utils.data.SubsetRandomSampler(range(9))},
            "loaders of one order, but is 'one with a",
        ),
        # The length of a batch [1, T] is 1: batches of the stream would hold as many of them as the budget has frames.
        ({"batch_size": 1}, "loaders of single samples, but is 'batch_size=1'. Give it batch"),
        ({"batch_size": 8, "collate_fn": list}, "loaders of single samples, but is 'batch_size=8'"),
        ({"batch_size": 1, "batch_sampler": [[0, 1], [2]]}, "loaders of single samples, but is 'a batch_sampler'"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else "",
)
def test_a_loader_of_batches_or_of_another_order_in_every_pass_is_refused(torchdata, given, told):
    """A resumed run would go on in the middle of another order: some sequences were lost, and others taken twice."""
    with pytest.raises(ValueError, match=f"^`shards` must be {told}"):
        stream_of([loader_of(torchdata, **given)])


@pytest.mark.parametrize("given", [{"batch_size": None}, {"batch_size": 1, "collate_fn": lambda batch: batch[0]}])
def test_a_loader_that_gives_single_samples_is_a_shard(given):
    assert names(stream_of([DataLoader(samples(20), **given)])) == names(stream_of([samples(20)]))


def test_workers_that_would_not_hear_of_the_epoch_are_refused():
    given = {"batch_size": None, "num_workers": 1, "persistent_workers": True}
    with pytest.raises(ValueError, match=r"^`shards` must be loaders whose workers are told the epoch, but is "):
        stream_of([DataLoader(ByEpoch(50), **given)])
    assert stream_of([DataLoader(Stateful(samples(5)), **given)]).epoch == 0


# Hugging Face


def rows(shards):
    for shard in shards:
        yield from ({"name": name, "length": length} for name, length in samples(20, seed=shard, first=100 * shard))


def hugging_face():
    datasets = pytest.importorskip("datasets")
    return datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})


EVERY = [100 * shard + number for shard in range(4) for number in range(20)]


def stream_of_rows(shards):
    return lw.torch.StreamBatches(shards, BUDGET, length=lambda row: row["length"], collate_fn=list, buffer=40)


def row_names(batches):
    return [[row["name"] for row in batch] for batch in batches]


def joined(axis):
    stream = hugging_face()
    other = stream.map(lambda row: {"name": 1_000 + row["name"]})
    if axis:
        other = other.rename_column("name", "twin").select_columns("twin")
    return pytest.importorskip("datasets").concatenate_datasets([stream, other], axis=axis)


STREAMS = {
    "plain": hugging_face,
    "shuffled": lambda: hugging_face().shuffle(seed=1, buffer_size=10),
    "shuffled and mapped": lambda: hugging_face().shuffle(seed=1, buffer_size=10).map(dict),
    "one behind the other": lambda: joined(0),
    "side by side": lambda: joined(1),
    "one shard": lambda: [hugging_face().skip(3)],
    "two of one": lambda: [hugging_face().shard(num_shards=2, index=index) for index in (0, 1)],
    "loaders": lambda: [DataLoader(hugging_face(), batch_size=None)],
    "torchdata's loaders": lambda: [stateful_loader(hugging_face().shuffle(seed=1, buffer_size=10))],
}


@pytest.mark.parametrize("source", STREAMS.values(), ids=STREAMS)
def test_a_stream_of_hugging_face_comes_once_and_goes_on_exactly(source):
    """The state of one that is shuffled leaves out what its buffer holds: it is read again."""
    made = lambda: stream_of_rows(source())  # noqa: E731
    whole = check_goes_on(made, every=7, names=row_names)
    once = set(itertools.chain(*whole))
    assert once >= set(EVERY[3:])
    assert sum(map(len, whole)) == len(once)


def test_a_shuffled_stream_of_hugging_face_has_another_order_in_every_epoch_and_by_every_seed():
    def made(seed=1, epoch=0):
        stream = stream_of_rows(hugging_face().shuffle(seed=seed, buffer_size=10))
        stream.set_epoch(epoch)
        return stream

    assert row_names(made()) == row_names(made()) != row_names(made(epoch=1))
    running, other = made(), made(seed=2)
    list(itertools.islice(iter(running), 3))
    other.load_state_dict(running.state_dict())
    with pytest.raises(lw.PlanMismatchError, match=r"^`window` must be the checkpoint's, "):
        list(other)


def test_a_second_loop_over_a_stream_of_hugging_face_leaves_the_state_of_the_first():
    shards = hugging_face()
    running, whole = stream_of_rows(shards), row_names(stream_of_rows(shards))
    batches = iter(running)
    seen = row_names([next(batches)])
    next(iter(running))
    seen += row_names(itertools.islice(batches, 4))
    resumed = stream_of_rows(shards)
    resumed.load_state_dict(running.state_dict())
    assert seen + row_names(resumed) == whole


def on_two_ranks(rank, folder, kind):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    shards = hugging_face()
    if kind == "split":
        split_dataset_by_node = pytest.importorskip("datasets.distributed").split_dataset_by_node
        shards = split_dataset_by_node(shards, rank=rank, world_size=2)
    elif kind == "part":
        shards = [list(rows([rank])), list(rows([2 + rank]))]
    try:
        found = list(itertools.chain(*row_names(stream_of_rows(shards))))
    except lw.PlanMismatchError as error:
        found = str(error)
    torch.save(found, folder / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["whole", "split", "part"])
def test_ranks_share_the_shards_out_once(tmp_path, kind):
    """Of shards that were shared out before, half would never be read."""
    pytest.importorskip("datasets")
    run_ranks(on_two_ranks, tmp_path, kind)
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    if kind == "whole":
        assert sorted(set(itertools.chain(*found))) == EVERY
    else:
        assert all(error.startswith("`lengths of shard 0` must be what rank 0 has, [") for error in found)


# WebDataset


COUNTS = 40, 33, 12


@pytest.fixture
def urls(tmp_path):
    """One tar file for each shard, of texts of 1 to 60 letters."""
    wds = pytest.importorskip("webdataset", reason="needs webdataset, of which the tests have tried 1.0.2")
    files = [str(tmp_path / f"{shard}.tar") for shard in range(len(COUNTS))]
    for shard, (file, count) in enumerate(zip(files, COUNTS, strict=True)):
        with wds.TarWriter(file) as writer:
            for number in range(count):
                writer.write({"__key__": f"{shard}-{number}", "txt": "x" * (1 + (7 * number + shard) % 60)})
    return files


def stream_of_tars(urls, *, workers=False, shuffle=None):
    wds = pytest.importorskip("webdataset")
    shards = [wds.WebDataset(url, shardshuffle=False, nodesplitter=None).decode() for url in urls]
    if shuffle is not None:
        shards = [shard.shuffle(20, **shuffle) for shard in shards]
    if workers:
        shards = [DataLoader(shard, batch_size=None, num_workers=1) for shard in shards]
    batching, length = lw.Batching(budget=300), lambda sample: len(sample["txt"])
    return lw.torch.StreamBatches(shards, batching, length=length, buffer=30, collate_fn=list)


def keys(batches):
    return [[sample["__key__"] for sample in batch] for batch in batches]


@pytest.mark.parametrize("workers", [False, True])
def test_webdatasets_come_once_and_go_on_exactly(urls, workers):
    whole = check_goes_on(lambda: stream_of_tars(urls, workers=workers), every=6, names=keys)
    assert sorted(itertools.chain(*whole)) == sorted(
        f"{shard}-{number}" for shard, count in enumerate(COUNTS) for number in range(count)
    )


def test_a_webdataset_that_is_shuffled_goes_on_by_a_seed_alone(urls):
    assert check_goes_on(lambda: stream_of_tars(urls, shuffle={"seed": 5}), every=6, names=keys) != keys(
        stream_of_tars(urls)
    )
    running, resumed = stream_of_tars(urls, shuffle={}), stream_of_tars(urls, shuffle={})
    list(itertools.islice(iter(running), 9))
    resumed.load_state_dict(running.state_dict())
    with pytest.raises(lw.PlanMismatchError, match=r"^`window` must be the checkpoint's, .* Resume with shards that"):
        list(resumed)


# Within workers


class Inside(IterableDataset):
    """A data set that loops over a stream."""

    def __init__(self, stream):
        self.stream = stream

    def __iter__(self):
        yield from self.stream


@pytest.mark.processes
@pytest.mark.parametrize(("start", "workers"), [("fork", 2), ("spawn", 1)])
def test_a_stream_within_the_workers_of_a_loader_is_refused(start, workers):
    """Each worker would read all of it, and the trainer would get every sequence as often as there are workers."""
    inside = Inside(stream_of(shards_of([30, 30])))
    loader = DataLoader(inside, batch_size=None, num_workers=workers, multiprocessing_context=start)
    message = f"`stream` must be drawn from in the process that trains, .* in worker 0 of {workers}'. Loop over it"
    with pytest.raises(ValueError, match=message):
        list(loader)
    # In the process of the loader it is read once.
    assert names(DataLoader(inside, batch_size=None)) == names(stream_of(shards_of([30, 30])))
