"""A plain loop of one's own, under DistributedDataParallel: the contract on two ranks, and on one that goes on."""

import contextlib
import io

import pytest
import torch
from contract import (
    EPOCHS,
    MICRO_BATCHES,
    Model,
    Record,
    batch_sampler,
    check_every_sequence_once,
    check_resumed,
    check_run,
    check_weights,
    loader_of,
    optimizer_of,
    plan,
    run_on_ranks,
)
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

pytestmark = pytest.mark.processes

FIRST = plan(0).steps
STOP = FIRST + 2  # optimiser steps after which a run is left: in the middle of the second epoch


def train(sampler, *, workers=0, stop=None, saved=None):
    """A run of three epochs: left after `stop` steps, or gone on with from where one was left."""
    model, record = Model(), Record()
    loader = loader_of(sampler, workers)
    wrapped, optimizer = DistributedDataParallel(model), optimizer_of(model)
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    for name, state in torch.load(io.BytesIO(saved)).items() if saved else ():
        parts[name].load_state_dict(state)
    for epoch in range(loader.epoch, EPOCHS):
        loader.set_epoch(epoch)
        scales = sampler.loss_scales()
        for taken, ((numbers, features, targets), scale) in enumerate(zip(loader, scales, strict=True), start=1):
            stepping = taken % sampler.micro_batches == 0
            with contextlib.nullcontext() if stepping else wrapped.no_sync():
                ((wrapped(numbers, features) - targets).square().mean() * scale).backward()
            if stepping:
                optimizer.step()
                optimizer.zero_grad()
                record.steps += 1
                if record.steps == stop:
                    break
        record.epochs.append(model.taken())
        if record.steps == stop:
            break
    file = io.BytesIO()
    torch.save({name: part.state_dict() for name, part in parts.items()}, file)
    record.told["saved"], record.weights = file.getvalue(), model.weights()
    return record


def runs_on_two_ranks():
    """For each number of workers a whole run, one that is left, and its rest; and what is said of another sampler."""
    halves = {}
    for workers in (0, 2):
        left = train(batch_sampler(), workers=workers, stop=STOP)
        rest = train(batch_sampler(), workers=workers, saved=left.told["saved"])
        halves[workers] = (train(batch_sampler(), workers=workers), left, rest)
    with pytest.raises(TypeError) as caught:
        loader_of(DistributedSampler(batch_sampler()))
    return halves, str(caught.value)


def run_on_one_rank(saved):
    assert distributed.get_world_size() == 1
    return train(batch_sampler(micro_batches=4), saved=saved)


@pytest.fixture(scope="module")
def of_ranks():
    return run_on_ranks(runs_on_two_ranks)


def of(of_ranks, workers, turn):
    return [halves[workers][turn] for halves, _ in of_ranks]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_keeps_the_contract(of_ranks, workers):
    check_run(of(of_ranks, workers, 0))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(of_ranks, workers):
    whole, left, rest = (of(of_ranks, workers, turn) for turn in range(3))
    check_resumed(left, rest, whole)


def test_another_number_of_ranks_takes_the_same_steps(of_ranks):
    left = of(of_ranks, 2, 1)
    (rest,) = run_on_ranks(run_on_one_rank, left[0].told["saved"], world_size=1)
    had = [batch for record in left for batch in record.epochs[1]]
    assert len(had) == (STOP - FIRST) * MICRO_BATCHES * len(left)
    check_every_sequence_once([had, rest.epochs[0]])
    assert rest.steps == sum(plan(epoch).steps for epoch in range(EPOCHS)) - STOP
    check_weights([rest])


def test_a_sampler_that_would_share_the_batches_out_again_is_refused(of_ranks):
    for _, told in of_ranks:
        assert told.startswith(
            "`batch_sampler` must be a lengthwise.torch.BatchSampler, but is <torch.utils.data.distrib"
        )
