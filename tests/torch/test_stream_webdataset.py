"""Streams of WebDataset shards, as docs/streams.md gives them: each once, with workers, on ranks, and resumed."""

import itertools
import random

import pytest
import torch
from torch import distributed
from torch.utils.data import ChainDataset, DataLoader

import lengthwise as lw
from ranks import run_ranks

wds = pytest.importorskip("webdataset", reason="needs webdataset, of which the tests have tried 1.0.2")

BATCHING = lw.Batching(budget=300)
COUNTS = 40, 33, 12
# WebDataset closes a shard that was read in part when its iterator is collected, and Python tells so.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.fixture
def urls(tmp_path):
    """One tar file for each shard, of texts of 1 to 60 letters."""
    files = [str(tmp_path / f"{shard}.tar") for shard in range(len(COUNTS))]
    for shard, (file, count) in enumerate(zip(files, COUNTS, strict=True)):
        with wds.TarWriter(file) as writer:
            for number in range(count):
                writer.write({"__key__": f"{shard}-{number}", "txt": "x" * (1 + (7 * number + shard) % 60)})
    return files


def datasets_of(urls):
    return [wds.WebDataset(url, shardshuffle=False, nodesplitter=None).decode() for url in urls]


def loaders_of(urls):
    return [DataLoader(each, batch_size=None, num_workers=1) for each in datasets_of(urls)]


def length(sample):
    return len(sample["txt"])


def stream_of(shards):
    return lw.torch.StreamBatches(shards, BATCHING, length=length, buffer=30, collate_fn=list)


def names(batches):
    return [[sample["__key__"] for sample in batch] for batch in batches]


EVERY = sorted(f"{shard}-{number}" for shard, count in enumerate(COUNTS) for number in range(count))
WAYS = pytest.mark.parametrize("shards_of", [datasets_of, loaders_of], ids=["alone", "workers"])


@WAYS
def test_each_sample_comes_once_within_the_budget(urls, shards_of):
    stream = stream_of(shards_of(urls))
    epochs = []
    for epoch in (0, 1):
        stream.set_epoch(epoch)
        batches = list(stream)
        assert all(len(batch) * max(map(length, batch)) <= 300 for batch in batches)
        epochs.append(names(batches))
        assert sorted(itertools.chain(*epochs[-1])) == EVERY
    assert epochs[0] != epochs[1]


@WAYS
@pytest.mark.parametrize("taken", [1, 9, 14])
def test_a_stream_goes_on_behind_what_was_taken(urls, shards_of, taken):
    whole = names(stream_of(datasets_of(urls)))
    running = stream_of(shards_of(urls))
    begun = names(itertools.islice(iter(running), taken))
    resumed = stream_of(shards_of(urls))
    resumed.load_state_dict(running.state_dict())
    assert begun + names(resumed) == whole


def on_two_ranks(rank, path, urls, splits):
    given = {} if splits else {"nodesplitter": None}
    shards = [wds.WebDataset(url, shardshuffle=False, **given).decode() for url in urls]
    distributed.init_process_group("gloo", init_method=f"file://{path}/store", rank=rank, world_size=2)
    try:
        found = list(itertools.chain(*names(stream_of(shards))))
    except ValueError as error:
        found = str(error)
    torch.save(found, path / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.processes
def test_the_shards_are_shared_out_to_the_ranks(urls, tmp_path):
    run_ranks(on_two_ranks, tmp_path, urls, False)
    taken = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    assert sorted(set(itertools.chain(*taken))) == EVERY
    assert {name[0] for name in taken[1]} == {"1"}


@pytest.mark.processes
def test_a_data_set_that_shares_the_shards_out_itself_is_refused_on_several_ranks(urls, tmp_path):
    run_ranks(on_two_ranks, tmp_path, urls, True)
    for rank in (0, 1):
        assert "nodesplitter" in torch.load(tmp_path / f"{rank}.pt")


@pytest.mark.parametrize("loaded", [False, True])
def test_a_shuffle_without_a_seed_is_refused_and_one_with_a_seed_resumes(urls, loaded):
    def shards_of(*given, **named):
        shuffled = [each.shuffle(*given, **named) for each in datasets_of(urls)]
        return [DataLoader(each, batch_size=None) for each in shuffled] if loaded else shuffled

    with pytest.raises(ValueError, match=r"^`shards` must be of one order whenever they are read, but is 'one with"):
        stream_of(shards_of(20))
    running = stream_of(shards_of(20, seed=5))
    running.set_epoch(1)
    whole = names(stream_of_epoch(shards_of(20, seed=5), 1))
    taken = names(itertools.islice(iter(running), 9))
    resumed = stream_of(shards_of(20, seed=5))
    resumed.load_state_dict(running.state_dict())
    assert taken + names(resumed) == whole
    assert whole != names(stream_of_epoch(datasets_of(urls), 1))


def stream_of_epoch(shards, epoch):
    stream = stream_of(shards)
    stream.set_epoch(epoch)
    return stream


def shuffling(urls, **given):
    return [wds.WebDataset(urls, shardshuffle=10, nodesplitter=None, **given).decode()]


def test_files_that_are_shuffled_by_another_seed_are_refused_and_by_the_same_resume(urls):
    whole = names(stream_of(shuffling(urls, seed=3)))
    running = stream_of(shuffling(urls, seed=3))
    taken = names(itertools.islice(iter(running), 9))
    resumed = stream_of(shuffling(urls, seed=3))
    resumed.load_state_dict(running.state_dict())
    assert taken + names(resumed) == whole
    unseeded = stream_of(shuffling(urls))  # it has drawn a seed of its own
    with pytest.raises(lw.PlanMismatchError, match=r"^`seeds of shards` must be the checkpoint's, \[3\], but is "):
        unseeded.load_state_dict(running.state_dict())


@pytest.mark.parametrize(
    "within",
    [
        lambda urls: wds.DataPipeline(wds.WebDataset(urls, shardshuffle=False).shuffle(20)),
        lambda urls: wds.WebLoader(wds.WebDataset(urls, shardshuffle=False).shuffle(20), batch_size=None),
        lambda urls: wds.WebDataset(urls, shardshuffle=False).rsample(0.5),
        lambda urls: ChainDataset([wds.WebDataset(urls, shardshuffle=False).shuffle(20)]),
        lambda urls: wds.RandomMix([wds.WebDataset(urls, shardshuffle=False)] * 2),
        lambda urls: wds.DataPipeline(wds.SimpleShardList(urls), wds.resampled(4), wds.tarfile_to_samples()),
    ],
)
def test_another_order_within_a_pipeline_is_refused(urls, within):
    with pytest.raises(ValueError, match=r"^`shards` must be of one order whenever they are read, but is 'one with"):
        stream_of([within(urls)])


@pytest.mark.parametrize(
    "within",
    [
        lambda urls: wds.DataPipeline(wds.SimpleShardList(urls, seed=True), wds.tarfile_to_samples()),
        lambda urls: wds.WebLoader(wds.WebDataset(urls, shardshuffle=9, nodesplitter=None), batch_size=None),
    ],
)
def test_a_seed_within_a_pipeline_is_compared(urls, within):
    state = stream_of([within(urls)]).state_dict()
    with pytest.raises(lw.PlanMismatchError, match=r"^`seeds of shards` must be the checkpoint's, "):
        stream_of([within(urls)]).load_state_dict(state)


@pytest.mark.parametrize(
    "given", [{"detshuffle": True, "seed": 3}, {"resampled": True, "shardshuffle": False}, {"rng": random.Random(3)}]
)
def test_a_data_set_in_another_order_in_every_pass_is_refused(urls, given):
    if "rng" in given:
        shards = [each.shuffle(20, **given) for each in datasets_of(urls)]
    else:
        shards = [wds.WebDataset(urls, nodesplitter=None, **{"shardshuffle": 10, **given}).decode()]
    with pytest.raises(ValueError, match=r"^`shards` must be of one order whenever they are read, but is 'one with"):
        stream_of(shards)
