"""Shards of streams: with a state or without, with epochs, and of torchdata, Hugging Face and WebDataset."""

import copy
import itertools
import threading

import pytest
from loaders import refusal
from streams import BUDGET, ByEpoch, Stateful, check_goes_on, names, samples, shards_of, stream_after, stream_of, take
from torch import distributed
from torch.utils.data import DataLoader, IterableDataset

import lengthwise as lw
from ranks import ask_ranks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
    # WebDataset closes a file that was read in part when its iterator is collected, and Python tells so.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]


def stateful_loader(source):
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader(source, batch_size=None)


def nodes():
    nodes = pytest.importorskip("torchdata.nodes")
    return nodes.Loader(nodes.IterableWrapper(samples(60)))


SOURCES = {
    "none": lambda: samples(60),
    "own": lambda: Stateful(samples(60)),
    "loader": lambda: DataLoader(Stateful(samples(60)), batch_size=None),
    "workers": lambda: DataLoader(Stateful(samples(60)), batch_size=None, num_workers=1),
    "torchdata's loader": lambda: stateful_loader(Stateful(samples(60))),
    "torchdata's nodes": nodes,
}
with_every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@with_every_source
def test_every_source_goes_on_exactly(source):
    whole = check_goes_on(lambda: stream_of([source(), samples(95, first=1_000)]), every=7)
    assert whole == names(stream_of([samples(60), samples(95, first=1_000)]))


@pytest.mark.filterwarnings("ignore:Epoch [0-9]")
@with_every_source
def test_every_pass_over_every_source_begins_anew(source):
    whole, given = names(stream_of([samples(60)], buffer=10)), source()
    running = stream_of([given], buffer=10)
    take(running, 1)  # a look
    assert names(take(running, 8)) == whole[:8]
    assert names(stream_of([given], buffer=10)) == whole  # another stream over the same source
    resumed = stream_after(running.state_dict(), [source()], buffer=10)
    assert names(resumed) == whole[8:]
    for epoch in range(1, 3):
        resumed.set_epoch(epoch)
        take(resumed, 3)
        assert sum(map(len, resumed)) == 60


def made(**world):
    return stream_of([Stateful(shard) for shard in shards_of([50, 33])], **world)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_state_stays_as_it_was_saved_whatever_its_source_does_and_whoever_goes_on(micro_batches):
    running, taken = made(), set()
    everything = {name for shard in shards_of([50, 33]) for name, _ in shard}
    for batch in running:
        taken.update(name for name, _ in batch)
        state = running.state_dict()
        saved = copy.deepcopy(state)
        for _ in range(2):
            resumed = made(micro_batches=micro_batches)
            resumed.load_state_dict(state)
            assert {name for batch in names(resumed) for name in batch} == everything - taken
            assert state == saved


class Locked(list):
    """A source with a state that cannot be copied."""

    def __init__(self, own):
        super().__init__(own)
        self.lock = threading.Lock()

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def test_a_source_with_a_state_that_cannot_be_copied_is_refused():
    with pytest.raises(TypeError, match=r"^`shards` must be such that copy.deepcopy can copy those with a state_dict"):
        list(stream_of([Locked(samples(5))]))


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
    whole, taken = names(made(3)), names(take(running, 11))
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
    stream = stream_of([samples(60)])
    take(stream, 14)
    said = r"^`shards` must be of at least 40 samples, as many as were read before, but is 20"
    with pytest.raises(ValueError, match=said):
        list(stream_after(stream.state_dict(), [samples(20)]))


def loader_of(loader, **given):
    kind = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader if loader else DataLoader
    return kind(samples(20), **{"batch_size": None, **given})


@pytest.mark.parametrize("torchdata", [False, True])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"shuffle": True}, r"A loader of `shards` has a \w*RandomSampler, so no two passes have the same order\."),
        # The length of a batch [1, T] is 1: batches of the stream would hold as many of them as the budget has frames.
        ({"batch_size": 1}, "`shards` must be loaders of single samples, but is 'batch_size=1'. Give the loader batch"),
        ({"batch_size": 1, "batch_sampler": [[0, 1], [2]]}, "`shards` must be loaders of .* is 'a batch_sampler'"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else "",
)
def test_a_loader_of_batches_or_of_another_order_in_every_pass_is_refused(torchdata, given, told):
    """A resumed run would go on in the middle of another order: some sequences were lost, and others taken twice."""
    with pytest.raises(ValueError, match=f"^{told}"):
        stream_of([loader_of(torchdata, **given)])


def test_workers_that_stay_alive_are_refused_if_the_data_set_has_epochs():
    with pytest.raises(ValueError, match=r"^A loader of `shards` has persistent_workers=True\. Leave it out"):
        stream_of([DataLoader(ByEpoch(5), batch_size=None, num_workers=1, persistent_workers=True)])


# Hugging Face


def rows(shards):
    for shard in shards:
        yield from ({"name": name, "length": length} for name, length in samples(20, seed=shard, first=100 * shard))


def hugging_face():
    datasets = pytest.importorskip("datasets")
    return datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})


EVERY = [100 * shard + number for shard in range(4) for number in range(20)]


def stream_of_rows(shards):
    return lw.torch.StreamBatches(shards, BUDGET, length=lambda row: row["length"], collate_fn=list, buffer=20)


def row_names(batches):
    return [[row["name"] for row in batch] for batch in batches]


class Hidden(IterableDataset):
    """Hides the shuffle buffer of a stream."""

    def __init__(self, stream):
        self.stream, self.state_dict, self.load_state_dict = stream, stream.state_dict, stream.load_state_dict

    def __iter__(self):
        return iter(self.stream)


STREAMS = {
    "plain": hugging_face,
    "shuffled and mapped": lambda: hugging_face().shuffle(seed=1, buffer_size=10).map(dict),
    "hidden": lambda: [Hidden(hugging_face().shuffle(seed=1))],
    "equal lengths": lambda: hugging_face().map(lambda row: row | {"length": 90}).shuffle(seed=1, buffer_size=10),
    "two of one": lambda: [hugging_face().shard(num_shards=2, index=index) for index in (0, 1)],
    "torchdata's loaders": lambda: [stateful_loader(hugging_face().shuffle(seed=1, buffer_size=10))],
}


@pytest.mark.parametrize("source", STREAMS.values(), ids=STREAMS)
def test_a_stream_of_hugging_face_comes_once_and_goes_on_exactly(source):
    """The state of one that is shuffled leaves out what its buffer holds: it is read again."""
    made = lambda: stream_of_rows(source())  # noqa: E731
    whole = check_goes_on(made, every=7, names=row_names)
    once = set(itertools.chain(*whole))
    assert once >= set(EVERY)
    assert sum(map(len, whole)) == len(once)


def ask_two_ranks():
    """The rows that this rank takes of shards that both read whole, or the error of shards that were shared out."""
    rank, split = distributed.get_rank(), pytest.importorskip("datasets.distributed").split_dataset_by_node
    kinds = {
        "whole": hugging_face(),
        "split": split(hugging_face(), rank=rank, world_size=2),
        "part": [list(rows([rank])), list(rows([2 + rank]))],
    }
    answers = {}
    for kind, shards in kinds.items():
        try:
            answers[kind] = list(itertools.chain(*row_names(stream_of_rows(shards))))
        except lw.PlanMismatchError as error:
            answers[kind] = str(error)
    return answers


@pytest.mark.processes
def test_ranks_share_the_shards_out_once():
    """If shards were shared out before, half of them would never be read."""
    pytest.importorskip("datasets")
    ranks = ask_ranks(ask_two_ranks)
    assert sorted({*ranks[0]["whole"], *ranks[1]["whole"]}) == EVERY
    for kind in ("split", "part"):
        assert all(rank[kind].startswith("`lengths of shard 0` must be what rank 0 has, [") for rank in ranks)


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


def test_webdatasets_come_once_and_go_on_exactly_shuffled_ones_by_a_seed_alone(urls):
    whole = check_goes_on(lambda: stream_of_tars(urls, workers=True), every=6, names=keys)
    every = sorted(f"{shard}-{number}" for shard, count in enumerate(COUNTS) for number in range(count))
    assert sorted(itertools.chain(*whole)) == every
    assert check_goes_on(lambda: stream_of_tars(urls, shuffle={"seed": 5}), every=6, names=keys) != whole
    running, resumed = stream_of_tars(urls, shuffle={}), stream_of_tars(urls, shuffle={})
    take(running, 9)
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


def test_a_stream_within_the_workers_of_a_loader_is_refused():
    """Each worker would read all of it, and the trainer would get every sequence as often as there are workers."""
    inside = Inside(stream_of(shards_of([30, 30])))
    refused = refusal(DataLoader(inside, batch_size=None, num_workers=2))
    assert "The dataset reads the stream in worker 0 of 2, so each takes all batches. Loop over it" in refused
    # In the process of the loader it is read once.
    assert names(DataLoader(inside, batch_size=None)) == names(stream_of(shards_of([30, 30])))
