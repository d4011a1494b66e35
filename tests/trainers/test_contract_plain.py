"""A plain loop of one's own, under DistributedDataParallel: the contract on two ranks."""

import contextlib
import io

import pytest
import torch
from contract import (
    EPOCHS,
    MICRO_BATCHES,
    Model,
    Record,
    Sequences,
    batch_sampler,
    check_resumed,
    check_run,
    optimizer_of,
    run_on_ranks,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import lengthwise as lw

STOP = 7  # optimiser steps after which a run is left: the second of the second epoch


def train(workers=0, stop=None, saved=None):
    """A run of three epochs: left after `stop` steps, or gone on with where one was left."""
    sampler, model, record = batch_sampler(), Model(), Record()
    context = "fork" if workers else None  # spawned workers would import PyTorch for every epoch
    loader = DataLoader(Sequences(), batch_sampler=sampler, num_workers=workers, multiprocessing_context=context)
    wrapped, optimizer = DistributedDataParallel(model), optimizer_of(model)
    parts = {"model": model, "optimizer": optimizer, "sampler": sampler}
    if saved:
        checkpoint = torch.load(io.BytesIO(saved))
        for name, part in parts.items():
            part.load_state_dict(checkpoint[name])
    for epoch in range(sampler.epoch, EPOCHS):
        sampler.set_epoch(epoch)
        scales = lw.loss_scales(sampler.plan)[:, :, sampler.rank].ravel()
        for place, (numbers, features, targets) in enumerate(loader, start=sampler.start):
            stepping = (place + 1) % MICRO_BATCHES == 0
            with contextlib.nullcontext() if stepping else wrapped.no_sync():
                ((wrapped(numbers, features) - targets).square().mean() * scales[place]).backward()
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


def runs():
    return {
        workers: (train(workers), left := train(workers, STOP), train(workers, saved=left.told["saved"]))
        for workers in (0, 2)
    }


@pytest.fixture(scope="module")
def of_ranks():
    return run_on_ranks(runs)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_keeps_the_contract(of_ranks, workers):
    check_run([runs[workers][0] for runs in of_ranks])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(of_ranks, workers):
    whole, before, after = ([runs[workers][turn] for runs in of_ranks] for turn in range(3))
    check_resumed(before, after, whole)
