"""What users give a stream: functions that fail, samples of the wrong kind, states of other sources, damaged states."""

import copy
import json
import pickle
import threading

import numpy as np
import pytest
import torch
from streams import ByEpoch, Stateful, length, names, samples, shards_of, stream_of
from torch import distributed
from torch.utils.data import DataLoader, IterableDataset

import lengthwise as lw
from lengthwise.torch.shards import BEGIN
from ranks import run_ranks

BUDGET = lw.Batching(budget=400)


def stream_by_len(shards, **given):
    return lw.torch.StreamBatches(shards, BUDGET, **{"length": len, "collate_fn": list, "buffer": 40, **given})


def test_numbers_of_numpy_are_those_of_python_in_a_state():
    given = {"seed": np.int64(2), "buffer": np.int32(40), "micro_batches": np.uint8(2)}
    stream, other = stream_of(shards_of([60]), BUDGET, **given), stream_of(shards_of([60]), BUDGET, seed=2)
    stream.set_epoch(np.int64(1))
    assert len(list(stream)) > 2
    assert json.loads(json.dumps(stream.state_dict()))["epoch"] == 1
    other.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(other) == []


def test_every_seed_of_a_plan_is_one_of_a_stream():
    assert names(stream_of([samples(60)], BUDGET, seed=2**64 - 1)) != names(stream_of([samples(60)], BUDGET))
    with pytest.raises(
        ValueError, match=r"^`seed` must be at most 18446744073709551615, but is 18446744073709551616\."
    ):
        stream_of([samples(60)], BUDGET, seed=2**64)


@pytest.mark.parametrize("name", ["length", "weight"])
def test_what_a_function_raises_is_told_of_which_sequence(name):
    def fail(sample):
        return 3 if sample != "bad" else {}["none"]

    shards = [["a"] * 50, ["b"] * 45 + ["bad"]]
    with pytest.raises(KeyError, match="none") as caught:
        list(stream_by_len(shards, **{name: fail}))
    assert caught.value.__notes__ == [f"`{name}` raised this at sequence 45 of shard 1, 'bad'."]


REFUSED = {
    "sequences as shards": (
        lambda: list(stream_by_len([[5, 6, 7], [8]])),
        TypeError,
        "object of type 'int' has no len",
    ),
    "samples as shards": (
        lambda: stream_by_len([{"tokens": [5]}]),
        TypeError,
        "`shards` must be iterables of samples and no dict, which gives its keys, but is {'tokens': [5]}. If the dicts "
        "are samples, give [samples] for one shard; else name a split: data['train'].",
    ),
    "len of tuples": (
        lambda: list(stream_by_len([[(torch.zeros(50, 3), 1)] * 9])),
        TypeError,
        "`length` must be the length of a sequence, not the number of a tuple's fields, but is <built-in",
    ),
    "numbers beside pairs": (
        lambda: list(stream_by_len([["a"] * 5, ["b", "cc"]], length=lambda text: (1, 2) if text == "cc" else 1)),
        ValueError,
        "`lengths` must be as wide at every sequence as at the first, one number, but is (1, 2) at sequence 1 of sh",
    ),
    "no weight": (
        lambda: list(stream_by_len([["a"] * 5], weight=lambda _: None)),
        TypeError,
        "`weight` must be one number for each sequence, but is None at sequence 0 of shard 0. Give what counts in its",
    ),
    "a weight of text": (
        lambda: list(stream_by_len([["a", "3"]], weight=lambda text: 1 if text == "a" else text)),
        TypeError,
        "`weight` must be one number for each sequence, but is '3' at sequence 1 of shard 0.",
    ),
    "two weights": (
        lambda: list(stream_by_len([["a"]], weight=lambda _: torch.ones(2))),
        TypeError,
        "`weight` must be one number for each sequence, but is tensor([1., 1.]) at sequence 0 of shard 0.",
    ),
    "weight": (
        lambda: stream_by_len([["a"]], weight=3),
        TypeError,
        "`weight` must be a function of a sample, or None, but is 3.",
    ),
    "collate_fn": (
        lambda: stream_by_len([["a"]], collate_fn=None),
        TypeError,
        "`collate_fn` must be a function of a list of samples, but is None.",
    ),
}


@pytest.mark.parametrize(("call", "error", "told"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(call, error, told):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(told)


def test_a_sequence_may_be_a_tuple_of_words_and_a_weight_a_tensor():
    batches = list(stream_by_len([[("so", "it", "begins")] * 9], weight=lambda words: torch.tensor(len(words))))
    assert sum(map(len, batches)) == 9


def made(world=None):
    stream = stream_of(shards_of([200]), BUDGET, **(world or {}))
    next(iter(stream))
    return stream.state_dict()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"runs": [[1, 1, 10**6]]}, "`runs` must be at most "),
        ({"runs": [[2, 1, 10**6]]}, "`runs` must be at most "),
        ({"runs": [[1, 2, 10**6], [1, 1, 0]]}, "`runs` must be at most "),
        ({"seed": torch.tensor([0, 0])}, "`seed` must be of plain numbers and words, but is 'Tensor'."),
        ({"batching": {1, 2}}, "`batching` must be of plain numbers and words, but is 'set'."),
        ({"epoch": 2**40}, "`epoch` must be at most 2147483648, but is 1099511627776. Load the state as it was saved."),
        ({"starts": [BEGIN | {"ended": "no"}]}, "`ended` must be True or False, but is 'no'."),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else "",
)
def test_a_state_that_no_stream_wrote_is_refused(damage, told):
    """Batches that a window does not have would be taken from it without a word."""

    def resume():
        stream = stream_of(shards_of([200]), BUDGET)
        stream.load_state_dict(made() | damage)
        next(iter(stream))

    with pytest.raises((ValueError, TypeError)) as caught:
        resume()
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(("before", "now"), [(Stateful, list), (list, Stateful), (Stateful, Stateful)])
def test_a_run_may_go_on_with_sources_that_keep_a_state_or_not(before, now):
    shards = shards_of([50, 33])
    stream = stream_of([before(shard) for shard in shards], BUDGET)
    batches = iter(stream)
    taken = [name for _ in range(16) for name, _ in next(batches)]
    state = copy.deepcopy(stream.state_dict())
    assert state["window"] == 1
    resumed = stream_of([now(shard) for shard in shards], BUDGET)
    resumed.load_state_dict(state)
    taken += [name for batch in names(resumed) for name in batch]
    assert sorted(taken) == sorted(name for shard in shards for name, _ in shard)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("loader", [DataLoader, "torchdata"])
@pytest.mark.parametrize(
    "given",
    [
        {"shuffle": True},
        {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
        {"sampler": torch.utils.data.SubsetRandomSampler(range(9))},
        {"shuffle": True, "batch_size": 1, "collate_fn": lambda batch: batch[0]},
    ],
)
def test_a_loader_of_another_order_in_every_pass_is_refused(loader, given):
    """A resumed run would go on in the middle of another order: some sequences were lost, and others taken twice."""
    if loader == "torchdata":
        loader = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    shard = loader(samples(20), **{"batch_size": None, **given})
    with pytest.raises(
        ValueError, match=r"^`shards` must be loaders of one order, but is 'one with a \w*RandomSampler'"
    ):
        stream_of([shard], BUDGET)


def test_the_data_set_of_a_loader_is_told_the_epoch():
    alone = stream_of([ByEpoch(90)], BUDGET)
    loaded = stream_of([DataLoader(ByEpoch(90), batch_size=None, collate_fn=tuple)], BUDGET)
    for epoch in (0, 3):
        alone.set_epoch(epoch)
        loaded.set_epoch(epoch)
        batches = iter(loaded)
        assert [[tuple(sample) for sample in batch] for batch in batches] == list(alone)


def without_samples(rank, folder):
    """Rank 1 has nothing, and is to keep rank 0 company with samples that cannot leave it."""
    others = [samples(30, seed=rank), samples(30, seed=9)]
    alone = stream_of(others, BUDGET)
    next(iter(alone))
    state = alone.state_dict()
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    try:
        held = [[(threading.Lock(), 5) for _ in range(30)], []]
        with pytest.raises(TypeError) as caught:
            list(stream_of(held, BUDGET))
        told = "`shards` must be of samples that can be pickled, for ranks that have nothing of a window, but is "
        assert str(caught.value).startswith(told)
        assert "cannot pickle" in str(caught.value)
        with pytest.raises(lw.PlanMismatchError if rank == 0 else KeyError, match="no such") as caught:
            list(stream_of([samples(30), [("bad", 3)]], BUDGET, weight=weigh))
        if rank == 0:
            told = "`window` must be read on every rank, but is 'not read' at rank 1. KeyError: 'no such'; `weight` "
            assert str(caught.value) == told + "raised this at sequence 0 of shard 1, ('bad', 3)."
        with pytest.raises(lw.PlanMismatchError if rank == 0 else RuntimeError, match="StopIteration: `weight` raised"):
            list(stream_of([samples(30), [("stop", 3)]], BUDGET, weight=weigh))
        # Each loads the state of a run on other data, at the same place.
        stream = stream_of(others, BUDGET)
        stream.load_state_dict(state)
        with pytest.raises(lw.PlanMismatchError, match=r"^`lengths` must be what rank 0 has, .* at rank 1\."):
            list(stream)
        # Rank 1 takes the same sample in every step: what is done to a list of it changes no later one.
        stream = lw.torch.StreamBatches([samples(30), []], BUDGET, length=length, collate_fn=pop_all, buffer=40)
        assert all(stream)
        # One number on rank 0, two on rank 1.
        with pytest.raises(ValueError, match=r"^`lengths` must be as wide at .* at sequence 0 of shard 1. Give each"):
            list(stream_of([samples(30), [(1, (2, 3))]], BUDGET))
    finally:
        distributed.destroy_process_group()


def pop_all(batch):
    return [batch.pop() for _ in range(len(batch))]


def weigh(sample):
    if sample[0] == "bad":
        raise KeyError("no such")
    return next(iter([])) if sample[0] == "stop" else 1.0


@pytest.mark.processes
def test_what_cannot_be_told_to_other_ranks_fails_on_all(tmp_path):
    run_ranks(without_samples, tmp_path)


class Inside(IterableDataset):
    """A data set that loops over a stream."""

    def __init__(self, stream):
        self.stream = stream

    def __iter__(self):
        yield from self.stream


@pytest.mark.processes
# Not two that are spawned: the second may still start when the error of the first ends the loader, and finds no locks.
@pytest.mark.parametrize(("start", "workers"), [("fork", 1), ("fork", 2), ("spawn", 1)])
def test_a_stream_within_the_workers_of_a_loader_is_refused(start, workers):
    """Each worker would read all of it, and the trainer would get every sequence as often as there are workers."""
    inside = Inside(stream_of(shards_of([30, 30]), BUDGET))
    loader = DataLoader(inside, batch_size=None, num_workers=workers, multiprocessing_context=start)
    message = f"`stream` must be read in no loader's worker, .* but is 'in worker 0 of {workers}'. Loop over it"
    with pytest.raises(ValueError, match=message):
        list(loader)
    # In the process of the loader it is read once.
    assert names(DataLoader(inside, batch_size=None)) == names(stream_of(shards_of([30, 30]), BUDGET))


@pytest.mark.processes
def test_a_loop_over_a_stream_does_not_go_on_within_workers():
    """Begun before the workers were forked, the loop would give its rest once for each of them."""
    batches = iter(stream_of(shards_of([30, 30]), BUDGET))
    next(batches)
    loader = DataLoader(Inside(batches), batch_size=None, num_workers=2, multiprocessing_context="fork")
    with pytest.raises(ValueError, match="`stream` must be read in no loader's worker"):
        list(loader)


COPIES = [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))]


@pytest.mark.parametrize("copied", COPIES)
def test_a_stream_that_was_begun_is_not_copied(copied):
    """The copy would begin anew, and its state would tell the position of the one that was copied."""
    stream = stream_of(shards_of([90]), BUDGET)
    batches = iter(stream)
    next(batches)
    message = (
        r"^`stream` must be copied or pickled before its first batch, but is 'begun' at window 0 of epoch 0\. Make"
    )
    with pytest.raises(ValueError, match=message):
        copied(stream)
    next(batches)
    rest = list(batches)
    with pytest.raises(ValueError, match="is 'begun' at window"):
        copied(stream)
    stream.set_epoch(1)
    assert rest
    assert list(copied(stream)) == list(stream)


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("shard", [list, Stateful])
def test_a_copy_of_a_stream_goes_on_where_its_state_says(copied, shard):
    stream = stream_of([shard(own) for own in shards_of([90, 30])], BUDGET)
    batches = iter(stream)
    taken = [next(batches) for _ in range(12)]
    resumed = stream_of([shard(own) for own in shards_of([90, 30])], BUDGET)
    resumed.load_state_dict(stream.state_dict())
    other = copied(resumed)
    assert other.state_dict() == stream.state_dict()
    assert list(other) == list(resumed)
    fresh = stream_of([shard(own) for own in shards_of([90, 30])], BUDGET)
    assert [batch for batch, _ in zip(copied(fresh), taken, strict=False)] == taken
