"""Steps, frames and seconds of a run, as the modules for trainers count them, by a clock that the tests move."""

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.torch import trainers as module
from lengthwise.torch.trainers import PassScales, Speed, Step, Trained, count_once, describe_memory, scale_by_labels

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


# A step on one rank: the labels and the planned scales of its batches, the labels on all ranks, the ranks, and the
# scales by hand for means and for sums. The planned scale is 0 for a batch that is taken again.
STEPS = {
    "one batch": ([5], [1.0], 5, 1, [1], [1 / 5]),
    "shares of one rank": ([6, 2], [0.5, 0.5], 8, 1, [6 / 8, 2 / 8], [1 / 8, 1 / 8]),
    "shares of two ranks": ([6, 2], [1.0, 1.0], 16, 2, [12 / 16, 4 / 16], [2 / 16, 2 / 16]),
    "two ranks share each sequence": ([6, 2], [1.0, 1.0], 8.0, 2, [12 / 8, 4 / 8], [2 / 8, 2 / 8]),
    "a batch taken again": ([6, 6], [1.0, 0.0], 6, 1, [1, 0], [1 / 6, 0]),
    "a batch without labels": ([4, 0], [0.5, 0.5], 4, 1, [1, 0], [1 / 4, 1 / 4]),
    "no labels": ([0, 0], [0.5, 0.5], 0, 2, [0, 0], [2, 2]),
}


@pytest.mark.parametrize("name", STEPS)
def test_scales_by_labels_are_shares_of_the_labels_of_the_step(name):
    counts, planned, total, ranks, means, sums = STEPS[name]
    for kind in (lambda number: number, torch.tensor):  # the sum over ranks is a tensor
        for reduction, scales in (("mean", means), ("sum", sums)):
            found = scale_by_labels(counts, planned, kind(total), reduction=reduction, ranks=ranks)
            assert [float(scale) for scale in found] == pytest.approx(scales)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_step_scaled_by_labels_has_the_gradient_of_its_mean(reduction):
    # Two ranks with two batches each. The last is the first again: 3 batches do not fill the step.
    labels = [torch.arange(1.0, 4.0).double(), torch.tensor([7.0]).double(), torch.arange(5.0).double()]
    grid, planned = [[0, 1], [2, 0]], [[0.5, 0.5], [0.5, 0.0]]
    counts = [[len(labels[number]) for number in numbers] for numbers in grid]
    total = sum(sum(count_once(*given)) for given in zip(counts, planned, strict=True))
    assert total == 9
    weight = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    for numbers, *given in zip(grid, counts, planned, strict=True):
        scales = scale_by_labels(*given, total, reduction=reduction, ranks=2)
        for number, scale in zip(numbers, scales, strict=True):
            losses = (weight - labels[number]).square()
            (getattr(losses, reduction)() * scale / 2).backward()  # averaged over two ranks
    (whole,) = torch.autograd.grad((weight - torch.cat(labels)).square().mean(), weight)
    assert weight.grad.item() == pytest.approx(whole.item(), rel=1e-14)


def test_a_step_gives_the_scale_of_the_current_batch_as_often_as_it_is_asked():
    step = Step(["long", "short"], [6, 2], [0.75, 0.25])
    for place in [(6, 0.75), (2, 0.25)]:
        step.begin()
        assert [step.read(), step.read()] == [place, place]
        step.check_scaled("compute_loss")
    with pytest.raises(ValueError, match=r"^All 2 batches of this step were trained on\. Call super\(\)\.train"):
        step.begin()


def test_a_loss_without_the_scale_of_its_batch_is_refused():
    step = Step(["long", "short"], [6, 2], [0.75, 0.25])
    step.begin()
    step.read()
    step.begin()
    with pytest.raises(ValueError, match=r"^`Own.compute_loss` does not scale the loss .*\. Let it call super"):
        step.check_scaled("Own.compute_loss")


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
