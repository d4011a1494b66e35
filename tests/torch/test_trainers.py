"""What the modules for trainers share: scales, and frames counted again, by a clock that the tests move."""

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.torch import trainers as module
from lengthwise.torch.trainers import PassScales, Speed, Trained, describe_memory

LENGTHS = lw.example_lengths("long-tailed", count=120)


@pytest.fixture
def clock(monkeypatch):
    """Its `append` says what time it is."""
    times = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: times[-1])
    return times


def frames(batches, lengths=LENGTHS):
    """Frames of data, and with padding, of batches."""
    own = [lengths[batch].reshape(len(batch), -1) for batch in batches]
    return sum(int(each.sum()) for each in own), sum(len(each) * int(each.max(axis=0).sum()) for each in own)


def batches_of_all(batching, lengths=LENGTHS, *, world_size, micro_batches, start=0, state=None):
    """The batches that each rank takes from `start` on."""
    taken = []
    for rank in range(world_size):
        sampler = lw.torch.BatchSampler(
            lengths, batching, rank=rank, world_size=world_size, micro_batches=micro_batches
        )
        if state is not None:
            sampler.resume(state)
        taken.append([*sampler][start:])
    return taken


@pytest.mark.parametrize("lengths", [LENGTHS, np.stack([LENGTHS, LENGTHS[::-1]], axis=1)], ids=["one", "two"])
@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 1), (1, 2), (3, 2)])
def test_whole_steps_of_all_ranks_are_counted(clock, lengths, world_size, micro_batches):
    batching, world = lw.Batching(budget=20_000), {"world_size": world_size, "micro_batches": micro_batches}
    sampler = lw.torch.BatchSampler(lengths, batching, rank=0, **world)
    found = Speed()
    found.begin_epoch(sampler)
    for steps in range(1, sampler.steps + 1):
        clock.append(float(steps))
        found.note()
        taken = [
            batch for rank in batches_of_all(batching, lengths, **world) for batch in rank[: steps * micro_batches]
        ]
        assert found.epoch() == (steps, *frames(taken, lengths), steps)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_what_earlier_runs_took_is_not_counted(clock, micro_batches):
    batching = lw.Batching(budget=10_000)
    first = lw.torch.BatchSampler(LENGTHS, batching)
    state = first.state_after(4)
    world = {"world_size": 3, "micro_batches": micro_batches}
    rest = lw.torch.BatchSampler(LENGTHS, batching, rank=1, **world)
    rest.resume(state)
    found = Speed()
    found.begin_epoch(rest)
    clock.append(2.0)
    found.note((len(rest) - rest.start) // micro_batches)
    taken = [batch for rank in batches_of_all(batching, **world, state=state) for batch in rank]
    assert found.epoch() == ((len(rest) - rest.start) // micro_batches, *frames(taken), 2.0)
    again = Speed()  # on as many ranks, the plan is the whole epoch's
    first.resume(state)
    again.begin_epoch(first)
    again.note(len(first) - first.start)
    assert again.epoch().data == frames([*first])[0]


def test_evaluations_are_left_out_and_epochs_and_logs_begin_anew(clock):
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(budget=20_000))
    found = Speed()
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


BATCHINGS = {
    "rows": lw.Batching(cut=lw.Rows(12_000, rows=2)),
    "chunks": lw.Batching(budget=5_000, chunks=lw.Chunks(100)),
    "repeated": lw.Batching(cut=lw.FixedSize(7), deal=lw.Balanced(tail="repeat")),
    "dropped": lw.Batching(cut=lw.Budget(3_000, oversize="drop")),
    "cost": lw.Batching(budget=20_000, cost=lw.Quadratic(quadratic=0.001)),
}


@pytest.mark.parametrize("times", [None, 1.5])
@pytest.mark.parametrize("name", BATCHINGS)
def test_an_epoch_pads_what_measure_says(clock, name, times):
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHINGS[name], rank=0, world_size=2, times=times)
    found = Speed()
    found.begin_epoch(sampler)
    clock.append(1.0)
    found.note(sampler.steps)
    said = found.epoch().as_log()["padding"]
    # `measure` counts each batch once, and a batch that is taken again is computed again
    again = 0.02 if name == "repeated" else 1e-12
    assert said == pytest.approx(lw.measure(sampler.plan, LENGTHS).padding_share, abs=again)


@pytest.mark.parametrize("chunks", [None, lw.Chunks(100)], ids=["whole", "chunks"])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_windows_are_counted_as_plans_are(clock, micro_batches, chunks):
    """In every step of two epochs; the second goes on where another number of ranks stopped, within a window."""
    batching = lw.Batching(cut=lw.FixedSize(3), chunks=chunks)
    given = {"window": 40, "block": 10, "micro_batches": micro_batches}
    ranks = [lw.torch.WindowSampler(LENGTHS, batching, rank=rank, world_size=2, **given) for rank in range(2)]
    one = lw.torch.WindowSampler(LENGTHS, batching, rank=0, world_size=1, **given)
    one.set_epoch(1)
    state, found = one.state_after(3 * micro_batches), Speed()
    assert one.plan.find(3 * micro_batches)[1] > 0
    for epoch in range(2):
        for sampler in ranks:
            sampler.set_epoch(epoch) if epoch == 0 else sampler.resume(state)
        found.begin_epoch(ranks[0])
        taken = [[*sampler] for sampler in ranks]
        for steps in range(1, (len(ranks[0]) - ranks[0].start) // micro_batches + 1):
            found.note()
            batches = [batch for own in taken for batch in own[: steps * micro_batches]]
            assert found.epoch()[:3] == (steps, *frames_of_items(batches))
        assert found.epoch().steps >= 3
    clock.append(1.0)
    assert 0 < found.take_log().as_log()["padding"] < 0.5


def frames_of_items(batches):
    """Frames of data, and with padding, of batches of numbers or of chunks."""
    sizes = [
        [item[2] - item[1] if isinstance(item, tuple) else int(LENGTHS[item]) for item in each] for each in batches
    ]
    return sum(map(sum, sizes)), sum(len(each) * max(each) for each in sizes)


def test_a_window_is_planned_no_second_time_to_be_counted(monkeypatch):
    sampler, found = lw.torch.WindowSampler(LENGTHS, lw.Batching(budget=9_000), window=40, block=10), Speed()
    assert len(sampler) > 9  # which plans all windows once, to count their steps
    planned, plan_anew = [], lw.Windows._plan_anew
    monkeypatch.setattr(lw.Windows, "_plan_anew", lambda *given: planned.append(1) or plan_anew(*given))
    found.begin_epoch(sampler)
    for _ in sampler:
        found.note()
        found.take_log()
    assert 1 <= len(planned) <= len(sampler.windows)
    assert found.epoch().data == LENGTHS.sum()


def test_scales_are_computed_once_for_each_plan(monkeypatch):
    sampler = lw.torch.BatchSampler([5, 9, 2, 4, 7], lw.Batching(cut=lw.FixedSize(2)), micro_batches=3)
    weights, asked, compute = np.arange(1.0, 6.0), [], sampler.loss_scales
    monkeypatch.setattr(sampler, "loss_scales", lambda *given, **choices: asked.append(1) or compute(*given, **choices))
    scales = PassScales(sampler)
    for epoch in (0, 1, 2):
        sampler.set_epoch(epoch)
        for _ in range(2):
            assert scales.now(weights, reduction="sum").tolist() == compute(weights, reduction="sum").tolist()
        assert len(asked) == epoch + 1


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
