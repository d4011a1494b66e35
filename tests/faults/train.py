"""Trains a recurrent network over padded batches, as its user would, and goes on from its last checkpoint.

The tests start it as a process, alone or as one rank of several, and kill it. Each optimiser step prints a line:

    {"epoch": 1, "batches": 7, "sequences": [12, 40, 3], "weights": "9f0c..."}

batches: of this rank, in this epoch, so far; sequences: of this rank, in this step; weights: a digest of them all.
"""

import argparse
import hashlib
import json
import os
import signal
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path

import torch
from torch import distributed, nn
from torch.utils.data import Dataset

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=300).clip(100) // 100
BATCHING = lw.Batching(cut=lw.Budget(32), order=lw.SemiSorted(randomization_factor=0.2))
SEED = 3
STEPS_BETWEEN_CHECKPOINTS = 7


class Waves(Dataset):
    """Sine waves of different lengths: [T, 1] frames, and the frequency that is to be told from them."""

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        frequency = (number + 1) / len(self)
        frames = torch.arange(float(LENGTHS[number])).mul(frequency).sin()
        return number, frames[:, None], frequency


class Network(nn.Module):
    """Padded [B, T, 1] -> [B]."""

    def __init__(self, dropout):
        super().__init__()
        self.recurrent = nn.GRU(1, 8, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, 1)

    def forward(self, frames):
        states, _ = self.recurrent(frames.values)
        means = (states * frames.mask[..., None]).sum(dim=1) / frames.lengths[:, None]
        return self.head(self.dropout(means))[:, 0]


@dataclass
class Training:
    """The parts of a checkpoint, and its folder; `wrapped` is the model, or DistributedDataParallel around it."""

    model: Network
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    sampler: lw.torch.BatchSampler
    loader: lw.torch.DataLoader
    group: distributed.ProcessGroup | None
    folder: Path

    def save(self):
        """Replaces the checkpoint, which is whole at every time."""
        generators = [torch.get_rng_state()]
        if self.group is not None:
            generators = [None] * distributed.get_world_size()
            distributed.all_gather_object(generators, torch.get_rng_state(), group=self.group)
        if self.sampler.rank:
            return
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "loader")}
        torch.save(parts | {"generators": generators}, self.folder / "checkpoint.tmp")
        os.replace(self.folder / "checkpoint.tmp", self.folder / "checkpoint.pt")

    def load(self):
        if not (self.folder / "checkpoint.pt").exists():
            return
        saved = torch.load(self.folder / "checkpoint.pt")
        for name in ("model", "optimizer", "loader"):
            getattr(self, name).load_state_dict(saved[name])
        torch.set_rng_state(saved["generators"][self.sampler.rank % len(saved["generators"])])

    def epoch(self, epoch, killed_after):
        self.loader.set_epoch(epoch)
        taken, micro_batches = self.sampler.start, self.sampler.micro_batches
        batches = zip(self.loader, self.sampler.loss_scales().tolist(), strict=True)
        while step := list(islice(batches, micro_batches)):
            sequences = self.step(step)
            taken += len(step)
            line = {"epoch": epoch, "batches": taken, "sequences": sequences, "weights": digest(self.model)}
            print(json.dumps(line), flush=True)
            if taken % (STEPS_BETWEEN_CHECKPOINTS * micro_batches) == 0:
                self.save()
            if (epoch, taken) == killed_after:
                os.kill(os.getpid(), signal.SIGKILL)

    def step(self, batches):
        """One optimiser step; returns its sequences on this rank."""
        taken = []
        self.optimizer.zero_grad()
        for place, ((numbers, frames, frequencies), scale) in enumerate(batches, start=1):
            self.wrapped.require_backward_grad_sync = place == len(batches)
            loss = (self.wrapped(frames) - frequencies).square().mean()
            (loss * scale).backward()
            taken += numbers.tolist()
        self.optimizer.step()
        return taken


def digest(model):
    named = hashlib.blake2b()
    for parameter in model.parameters():
        named.update(parameter.detach().numpy().tobytes())
    return named.hexdigest()


def joined(options):
    """The ranks that average gradients; None where this process is alone. Who does not answer in time is given up."""
    if "RANK" not in os.environ:
        return None
    rank, world_size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    distributed.init_process_group("gloo", init_method=options.store, rank=rank, world_size=world_size)
    return distributed.new_group(timeout=timedelta(seconds=options.patience))


def made(options, group):
    torch.set_default_dtype(getattr(torch, options.dtype))
    torch.manual_seed(0)
    model = Network(options.dropout)
    wrapped = model if group is None else nn.parallel.DistributedDataParallel(model, process_group=group)
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=SEED, micro_batches=options.micro_batches)
    loader = lw.torch.DataLoader(Waves(), sampler, num_workers=2)
    return Training(model, wrapped, torch.optim.Adam(model.parameters()), sampler, loader, group, options.folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--store", default="env://")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for other ranks in a step")
    parser.add_argument("--kill", type=int, nargs=2, help="epoch, and batches in it, after which to end by SIGKILL")
    options = parser.parse_args()
    torch.set_num_threads(1)
    group = joined(options)
    training = made(options, group)
    (options.folder / f"rank{training.sampler.rank}.pid").write_text(str(os.getpid()))
    training.load()
    for epoch in range(training.loader.epoch, options.epochs):
        training.epoch(epoch, options.kill and tuple(options.kill))
    if training.sampler.rank == 0:
        torch.save(training.model.state_dict(), training.folder / "final.pt")
    del training  # if its DDP model is freed last, PyTorch 2.13 may hang
    if group is not None:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
