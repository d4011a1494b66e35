"""The contract of every trainer: a small run on two real ranks, and the checks of the batches of each rank.

    batches  the sequence numbers of each batch that a model was given, in order: [[3, 9], [0], ...]
    Record   what one rank did: its batches of each epoch, its optimiser steps, its last weights

The three epochs of this run have 6 optimiser steps each.
"""

from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import torch
from torch import nn
from torch.utils.data import Dataset, default_collate

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=60)
BATCHING = lw.Batching(order=lw.SemiSorted(randomization_factor=0.3), cut=lw.Budget(2_000))
SEED = 7
EPOCHS = 3
RANKS = 2
MICRO_BATCHES = 2


@dataclass
class Record:
    """The batches, steps and weights of one rank."""

    epochs: list = field(default_factory=list)  # batches of each epoch
    steps: int = 0
    weights: list = field(default_factory=list)
    told: dict = field(default_factory=dict)  # anything else that a test asks for


class Sequences(Dataset):
    """(number, features [3], target) of each sequence."""

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        features = torch.arange(1, 4, dtype=torch.float64) * (number + 1) % 7 / 7
        return number, features, features.square().sum()


class Model(nn.Module):
    """A linear model in float64 that notes the sequences it was given in training."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 1, dtype=torch.float64)
        nn.init.constant_(self.linear.weight, 0.1)
        nn.init.zeros_(self.linear.bias)
        self.seen = []

    def forward(self, numbers, features):
        if self.training:
            self.seen.append(numbers.tolist())
        return self.linear(features).squeeze(-1)

    def loss(self, numbers, features, targets):
        """The mean over the sequences of a batch."""
        return (self(numbers, features) - targets).square().mean()

    def pop_batches(self):
        """The batches since this was last asked."""
        batches, self.seen = self.seen, []
        return batches

    def weights(self):
        return [value for parameter in self.parameters() for value in parameter.flatten().tolist()]


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # momentum: a state that a resume must bring back


def batch_sampler(**arguments):
    return lw.torch.BatchSampler(LENGTHS, BATCHING, **{"seed": SEED, "micro_batches": MICRO_BATCHES, **arguments})


def loader_of(sampler, workers=0):
    fork = "fork" if workers else None  # spawned workers would import PyTorch for every epoch
    options = {"num_workers": workers, "multiprocessing_context": fork}
    return lw.torch.DataLoader(Sequences(), sampler, collate_fn=default_collate, quiet=True, **options)


@cache
def plan(epoch):
    return lw.make_plan(LENGTHS, BATCHING, seed=SEED, epoch=epoch, world_size=RANKS, micro_batches=MICRO_BATCHES)


@cache
def reference_weights(epochs=EPOCHS):
    """The last weights of a run in one process that takes every step of the plans as one batch."""
    model, sequences = Model(), Sequences()
    optimizer = optimizer_of(model)
    for epoch in range(epochs):
        for step in plan(epoch).grid:
            numbers = sorted({number for batch in step.ravel() for number in plan(epoch).batch(batch).tolist()})
            batch = default_collate([sequences[number] for number in numbers])
            optimizer.zero_grad()
            model.loss(*batch).backward()
            optimizer.step()
    return model.weights()


def check_run(records, epochs=EPOCHS, rtol=1e-9):
    """Every sequence once an epoch, in the plan's batches; its steps; other epochs; the weights of whole steps."""
    for epoch in range(epochs):
        check_every_sequence_once([record.epochs[epoch] for record in records])
        for rank, record in enumerate(records):
            assert record.epochs[epoch] == [batch.tolist() for batch in plan(epoch).batches(rank)]
    assert [len(record.epochs) for record in records] == [epochs] * RANKS
    assert [record.steps for record in records] == [sum(plan(epoch).steps for epoch in range(epochs))] * RANKS
    assert records[0].epochs[0] != records[0].epochs[1]
    check_weights(records, epochs, rtol)


def check_weights(records, epochs=EPOCHS, rtol=1e-9):
    """The weights are the same on every rank, bit for bit, and those of whole steps up to rounding."""
    assert all(record.weights == records[0].weights for record in records)
    weights, expected = torch.tensor([records[0].weights, reference_weights(epochs)], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=rtol, atol=0.0)


def check_every_sequence_once(batches_of_ranks):
    numbers = [number for batches in batches_of_ranks for batch in batches for number in batch]
    assert sorted(numbers) == list(range(len(LENGTHS)))


def check_resumed(before, after, whole):
    """Two halves of a run are the run: the batches of each rank, the steps, and the weights bit for bit.

    Args:
        before: A record of each rank, of the run that was left.
        after: A record of each rank, of the run that went on from its checkpoint.
        whole: A record of each rank, of the run that was not interrupted.
    """
    for first, second, both in zip(before, after, whole, strict=True):
        assert [*chain(*first.epochs), *chain(*second.epochs)] == [*chain(*both.epochs)]
        assert first.steps + second.steps == both.steps
        assert second.weights == both.weights
