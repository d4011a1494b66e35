"""measure_step on real steps of PyTorch: what is trained is told, and the device is waited for."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import lengthwise as lw
from lengthwise.torch import step_meter
from lengthwise.torch.step_meter import choose_device

pytest.importorskip("scipy")

LENGTHS = [20, 40, 80]


def trainer(optimizer=torch.optim.SGD, **asked):
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    chosen = optimizer(model.parameters(), lr=0.1, **asked)

    def step(batch):
        chosen.zero_grad()
        model(batch).square().mean().backward()
        chosen.step()

    return model, step


def ones(count, length):
    return torch.ones(count, length, 4)


@pytest.mark.parametrize("asked", [{"foreach": False}, {"fused": True}])
def test_a_step_that_trains_is_measured(asked):
    model, step = trainer(torch.optim.Adam, **asked)
    cost = lw.torch.measure_step(step, ones, LENGTHS, model=model, repeats=1)
    assert (cost.measured_seconds > 0).all()
    assert cost.padded_lengths.max() == 80
    assert cost.bytes is None
    assert cost.device.startswith("CPU")


# What both that run steps say of them

BOTH = pytest.mark.parametrize("run", [partial(lw.torch.measure_step, repeats=1), lw.torch.find_budget])


@BOTH
def test_a_step_that_changes_nothing_of_the_model_is_refused(run):
    model, step = trainer()
    other, _ = trainer()
    step(ones(1, 1))
    untrained = (
        r"^`step` must be a function that changes the parameters of `model`, but is 'one that changes none'\. Call"
    )
    for does, of in ((step, other), (lambda batch: model(batch).sum().backward(), model)):
        with pytest.raises(ValueError, match=untrained):
            run(does, ones, LENGTHS, model=of)
    with pytest.raises(TypeError, match=r"^`model` must be a torch\.nn\.Module, but is 7\. "):
        run(step, ones, LENGTHS, model=7)


def test_a_model_that_is_left_in_evaluation_mode_warns():
    model, step = trainer()
    model.eval()
    said = r"^`model` must be in training mode after a step, but is 'in eval.*train\(\)"
    with pytest.warns(UserWarning, match=said) as told:
        lw.torch.measure_step(step, ones, LENGTHS, model=model, repeats=1)
    assert told[0].filename == __file__


@BOTH
def test_a_loss_that_is_no_number_warns_once(run):
    said = r"^`step` must be a function that keeps its loss .* finite, but is nan\. Lower"
    with pytest.warns(UserWarning, match=said) as told:
        run(lambda _: float("nan"), ones, [10, 20])
    assert [each.filename for each in told] == [__file__]


@BOTH
def test_another_error_than_of_memory_is_named(run):
    message = r"^`step` must be a function that trains on the batches of make_batch, but is RuntimeError.* a grad_fn"
    with pytest.raises(ValueError, match=message) as raised:
        run(lambda batch: batch.sum().backward(), ones, LENGTHS)
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_the_device_is_that_of_the_model_unless_it_is_given():
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    assert choose_device(model, None).type == "meta"
    assert choose_device(model, "cpu").type == "cpu"
    assert choose_device(None, None).type == ("cuda" if torch.cuda.is_available() else "cpu")


class Queue:
    """A stand-in for a device that works later: what is put is done only while somebody waits."""

    def __init__(self):
        self.now = self.waiting = 0.0
        self.held = self.peak = 1_000.0  # bytes: the model and its optimizer

    def put(self, seconds, held=0.0):
        self.waiting += seconds
        self.peak = max(self.peak, self.held + held)

    def synchronize(self, device):
        assert device.type == "cuda"
        self.now, self.waiting = self.now + self.waiting, 0.0

    def event(self, *, enable_timing):
        assert enable_timing
        return Event(self)

    def current_stream(self, device):
        assert device == torch.device("cuda", 0)
        return self

    def reset_peak_memory_stats(self, device):
        assert device.type == "cuda"
        self.peak = self.held

    def max_memory_allocated(self, device):
        assert device.type == "cuda"
        return self.peak


class Event:
    """A moment in the queue; PyTorch refuses to compare two that the device has not reached yet."""

    def __init__(self, queue):
        self.queue = queue

    def record(self, stream):
        assert stream is self.queue
        self.at = self.queue.now + self.queue.waiting

    def elapsed_time(self, other):
        assert max(self.at, other.at) <= self.queue.now
        return 1_000 * (other.at - self.at)  # milliseconds


def test_what_a_device_does_later_is_waited_for_and_its_peak_is_that_of_the_step(monkeypatch):
    queue = Queue()
    for name in ("synchronize", "reset_peak_memory_stats", "max_memory_allocated", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(queue, name))
    monkeypatch.setattr(torch.cuda, "Event", queue.event)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a stand-in")
    # The host notices the end a while later: that is no time of the step.
    monkeypatch.setattr(step_meter.time, "perf_counter", lambda: 3 * queue.now)

    def make_batch(count, length):
        queue.put(7.0, held=1e9)  # copies, and more memory than the step takes: neither belongs to the step
        return count, length

    def step(batch):
        count, length = batch
        queue.put(0.5 + 0.01 * count * length, held=64.0 * count * length)

    meter = step_meter.DeviceMeter(torch.device("cuda", 0))
    cost = lw.measure_step(step, make_batch, LENGTHS, repeats=1, meter=meter)
    frames = cost.counts * cost.padded_lengths[:, 0]
    assert cost.measured_seconds == pytest.approx(0.5 + 0.01 * frames)
    assert cost.measured_bytes == pytest.approx(1_000.0 + 64.0 * frames)
    assert cost.device == "CUDA, a stand-in"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_memory_is_measured_and_the_plain_clock_refuses():
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    def make_batch(count, length):
        return torch.ones(count, length, 64, device="cuda")

    lengths = np.array([500, 1_000, 2_000])
    cost = lw.torch.measure_step(step, make_batch, lengths, model=model, budget=100_000)
    assert cost.device.startswith("CUDA")
    assert cost.bytes is not None
    assert cost.bytes_error < 0.2
    with pytest.raises(ValueError, match=r"^`meter` must be a meter that .* Call lengthwise\.torch\.measure_step, "):
        lw.measure_step(step, make_batch, lengths)
