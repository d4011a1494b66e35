"""measure_step on real steps of PyTorch: what is trained is told, and the device is waited for."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import lengthwise as lw
from lengthwise.torch import step_meter
from lengthwise.torch.step_meter import choose_device

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
    assert cost.device.startswith("CPU")


BOTH = pytest.mark.parametrize("run", [partial(lw.torch.measure_step, repeats=1), lw.torch.find_budget])


@BOTH
def test_a_step_that_changes_nothing_of_the_model_is_refused(run):
    model, step = trainer()
    other, _ = trainer()
    step(ones(1, 1))
    untrained = "^`step` must be a function that changes the parameters of `model`, but is 'one that changes none'"
    for does, of in ((step, other), (lambda batch: model(batch).sum().backward(), model)):
        with pytest.raises(ValueError, match=untrained):
            run(does, ones, LENGTHS, model=of)


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


def test_what_a_device_does_later_is_waited_for(monkeypatch):
    queue = {"now": 0.0, "waiting": 0.0}  # what is put is done only while somebody waits

    def put(seconds):
        queue["waiting"] += seconds

    def make_batch(count, length):
        put(7.0)  # copies, which do not belong to the step
        return count, length

    def wait(_):
        queue.update(now=queue["now"] + queue["waiting"], waiting=0.0)

    monkeypatch.setattr("time.perf_counter", lambda: queue["now"])
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a stand-in")
    monkeypatch.setattr(step_meter, "choose_device", lambda *_: torch.device("cuda", 0))
    cost = lw.torch.measure_step(lambda shape: put(0.5 + np.prod(shape)), make_batch, LENGTHS, repeats=1)
    assert cost.measured_seconds == pytest.approx(0.5 + cost.counts * cost.padded_lengths[:, 0])
    assert cost.device == "CUDA, a stand-in"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_waited_for_and_the_plain_clock_refuses():
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
    with pytest.raises(ValueError, match=r"^This clock does not wait for the GPU\. Call lengthwise\.torch\."):
        lw.measure_step(step, make_batch, lengths)
