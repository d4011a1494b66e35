"""Steps, frames and seconds of a run, as the modules for trainers count them, by a clock that the tests move."""

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.torch import trainers as module
from lengthwise.torch.trainers import PassScales, Speed, Trained, describe_memory

LENGTHS = lw.example_lengths("long-tailed", count=120)
PAIRS = np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
BUDGET = lw.Batching(budget=8_000)
CHUNKS = lw.Batching(cut=lw.FixedSize(3), chunks=lw.Chunks(100))
WINDOWS = {"window": 40, "block": 10}


@pytest.fixture
def clock(monkeypatch):
    """A list whose last entry is the time."""
    times = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: times[-1])
    return times


def ranks_of(lengths=LENGTHS, batching=BUDGET, *, world_size=2, micro_batches=2, taken=0, **windows):
    """The samplers of all ranks; they go on after what one rank with as many micro-batches has taken of epoch 1."""
    kind = lw.torch.WindowSampler if windows else lw.torch.BatchSampler
    given = {"micro_batches": micro_batches, **windows}
    ranks = [kind(lengths, batching, rank=rank, world_size=world_size, **given) for rank in range(world_size)]
    if taken:
        first = kind(lengths, batching, rank=0, world_size=1, **given)
        first.set_epoch(1)
        for sampler in ranks:
            sampler.resume(first.state_after(taken))
    return ranks


def frames(batches, lengths):
    """The frames of data, and with padding, of batches of numbers or of chunks."""
    data = computed = 0
    for batch in batches:
        sizes = [item[2] - item[1] if isinstance(item, tuple) else lengths[item] for item in batch]
        sizes = np.array(sizes).reshape(len(batch), -1)
        data, computed = data + int(sizes.sum()), computed + len(batch) * int(sizes.max(axis=0).sum())
    return data, computed


CASES = {
    "three ranks": {"world_size": 3},
    "pairs": {"lengths": PAIRS},
    "on one rank, resumed": {"world_size": 1, "taken": 4},  # the plan is the whole epoch's
    "on other ranks, resumed": {"world_size": 3, "micro_batches": 1, "taken": 4},
    "windows": WINDOWS,
    "windows of chunks, resumed": {"batching": CHUNKS, "taken": 6, **WINDOWS},  # from within a window
}


@pytest.mark.parametrize("name", CASES)
def test_whole_steps_of_all_ranks_are_counted_but_what_earlier_runs_took(clock, name):
    ranks, found = ranks_of(**CASES[name]), Speed()
    found.begin_epoch(ranks[0])
    taken, micro_batches = [[*sampler] for sampler in ranks], ranks[0].micro_batches
    for steps in range(1, len(taken[0]) // micro_batches + 1):
        clock.append(float(steps))
        found.note()
        batches = [batch for of_rank in taken for batch in of_rank[: steps * micro_batches]]
        assert found.epoch() == (steps, *frames(batches, CASES[name].get("lengths", LENGTHS)), steps)
    assert found.epoch().steps > 1


def test_evaluations_are_left_out_and_epochs_and_logs_begin_anew(clock):
    sampler, found = lw.torch.BatchSampler(LENGTHS, BUDGET), Speed()
    clock.append(10.0)
    found.begin_epoch(sampler)
    clock.append(11.0)
    found.note()
    clock.append(12.0)
    one = found.take_log()
    assert (one.steps, one.seconds) == (1, 2.0)
    clock.append(50.0)
    found.skip()
    clock.append(51.0)
    found.note(2)
    two = found.take_log()
    assert (two.steps, two.seconds) == (2, 1.0)
    assert tuple(found.epoch()) == tuple(a + b for a, b in zip(one, two, strict=True))
    sampler.set_epoch(1)
    found.begin_epoch(sampler)
    assert found.epoch() == Trained()
    assert found.epoch().as_log() == {}
    assert found.describe_first(1, torch.device("cpu")) == ""
    clock.append(53.0)
    found.note(2)
    assert found.describe_first(1, torch.device("cpu")).startswith("Epoch 1 took 2 steps in 2 s: ")
    assert found.describe_first(1, torch.device("cpu")) == ""


@pytest.mark.parametrize(
    ("batching", "times"),
    [
        (lw.Batching(cut=lw.Rows(12_000, rows=2)), 1.5),
        (lw.Batching(cut=lw.Budget(3_000, oversize="drop")), None),
        (lw.Batching(budget=20_000, cost=lw.Quadratic(quadratic=0.001)), None),
    ],
    ids=["rows", "dropped", "cost"],
)
def test_an_epoch_pads_what_measure_says(clock, batching, times):
    sampler, found = lw.torch.BatchSampler(LENGTHS, batching, rank=0, world_size=2, times=times), Speed()
    found.begin_epoch(sampler)
    clock.append(1.0)
    found.note(sampler.steps)
    assert found.epoch().as_log()["padding"] == pytest.approx(lw.measure(sampler.plan, LENGTHS).padding_share)


def test_scales_are_those_of_the_epoch_that_is_set():
    sampler = lw.torch.BatchSampler([5, 9, 2, 4, 7], lw.Batching(cut=lw.FixedSize(2)), micro_batches=3)
    weights, scales = np.arange(1.0, 6.0), PassScales(sampler)
    for epoch in (0, 0, 1):
        sampler.set_epoch(epoch)
        assert scales.now(weights, reduction="sum").tolist() == sampler.loss_scales(weights, reduction="sum").tolist()


class Properties:
    total_memory = 80 * 2**30


@pytest.mark.parametrize(
    ("gibibytes", "more"), [(20, "\nA larger budget fits: lw.torch.find_budget finds the largest."), (70, "")]
)
def test_memory_that_is_left_is_told(monkeypatch, gibibytes, more):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: gibibytes * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties)
    told = f"Training took at most {gibibytes}.0 of the 80.0 GiB of the GPU.{more}"
    assert describe_memory(torch.device("cuda")) == told
    assert describe_memory(torch.device("cpu")) == ""
