"""Source and target: each field is padded to its own edge, in few shapes, and a run resumes on other ranks."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw

COUNT = 120
EDGES = ((12, 12), (12, 40), (40, 12), (40, 40), (60, 60))
BATCHING = lw.Batching(order=lw.Bucketed(edges=EDGES, pad_to_edge=True), cut=lw.Budget(400))


class Pairs(torch.utils.data.Dataset):
    """A source that counts up, a number, and a target that counts down."""

    def __init__(self):
        chance = np.random.default_rng(0)
        first = chance.integers(1, 40, COUNT)
        self.lengths = np.stack([first, np.maximum(1, first + chance.integers(-20, 20, COUNT))], axis=1)

    def __len__(self):
        return COUNT

    def __getitem__(self, number):
        source, target = self.lengths[number].tolist()
        return torch.arange(1, source + 1), number, -torch.arange(1, target + 1)


PAIRS = Pairs()


def test_each_field_is_padded_to_its_own_edge_in_the_shape_that_was_planned():
    shapes = lw.batch_shapes(PAIRS.lengths, BATCHING)
    assert shapes.shape == (5, 3)
    sampler = lw.torch.BatchSampler(PAIRS.lengths, BATCHING, seed=3)
    plan = lw.make_plan(PAIRS.lengths, BATCHING, seed=3)
    planned = plan.padded_lengths[plan.grid.reshape(-1)].tolist()
    loader = DataLoader(PAIRS, batch_sampler=sampler, collate_fn=lw.torch.PadCollate(shapes=shapes))
    taken = []
    for (source, number, target), padded in zip(loader, planned, strict=True):
        rows = len(number)
        assert [source.values.shape[1], target.values.shape[1]] == padded
        assert [rows, *padded] in shapes.tolist()
        for field, dim in ((source, 0), (target, 1)):
            filled = field.lengths > 0
            assert field.lengths[filled].tolist() == PAIRS.lengths[number[filled].numpy(), dim].tolist()
            assert field.mask.sum(dim=1).tolist() == field.lengths.tolist()
            assert (field.values[~field.mask] == 0).all()
        taken += number[source.lengths > 0].tolist()
    assert sorted(taken) == list(range(COUNT))


def test_a_sample_of_three_fields_takes_a_column_for_each():
    shapes = lw.batch_shapes(PAIRS.lengths, BATCHING)
    samples = [
        {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": target, "number": number}
        for source, number, target in map(PAIRS.__getitem__, range(COUNT))
    ]
    sampler = lw.torch.BatchSampler(PAIRS.lengths, BATCHING, world_size=2, rank=1)
    collate = lw.torch.PadCollate(shapes=shapes[:, [0, 1, 1, 2]])
    planned = [members.tolist() for members in sampler.plan.batches(1)]
    for batch, members in zip(DataLoader(samples, batch_sampler=sampler, collate_fn=collate), planned, strict=True):
        tokens, mask, labels = (batch[name].values for name in ("input_ids", "attention_mask", "labels"))
        assert tokens.shape == mask.shape
        assert [len(tokens), tokens.shape[1], labels.shape[1]] in shapes.tolist()
        assert batch["number"][: len(members)].tolist() == members
        assert mask.sum() == PAIRS.lengths[members, 0].sum()
        assert (labels != -100).sum() == PAIRS.lengths[members, 1].sum()


def test_the_shape_of_the_least_sum_is_taken():
    collate = lw.torch.PadCollate(shapes=[(2, 3, 9), (2, 4, 4), (2, 9, 9)])
    for source, target, shape in ((2, 4, (4, 4)), (3, 4, (4, 4)), (3, 5, (3, 9)), (5, 1, (9, 9))):
        first, second = collate([(torch.ones(source), torch.ones(target))])
        assert (first.values.shape[1], second.values.shape[1]) == shape
    with pytest.raises(ValueError, match=r"`samples` must be within \(rows, padded length\) \(2, 4, 4\) or"):
        collate([(torch.ones(10), torch.ones(1))])


@pytest.mark.parametrize("order", [BATCHING.order, lw.Bucketed(edges=EDGES), lw.MaxEntropy(0.2), lw.Sorted()], ids=repr)
def test_a_run_resumes_at_every_batch_on_other_ranks(order):
    batching = lw.Batching(order=order, cut=lw.Budget(400))
    length = len(lw.torch.BatchSampler(PAIRS.lengths, batching, seed=1, rank=0, world_size=2))
    for taken in range(0, length, 2):
        got, state = [], {}
        for rank in range(2):
            sampler = lw.torch.BatchSampler(PAIRS.lengths, batching, seed=1, rank=rank, world_size=2)
            passed = iter(sampler)
            got += [number for _ in range(taken) for number in next(passed)]
            state = sampler.state_after(taken)
        for rank in range(3):
            resumed = lw.torch.BatchSampler(PAIRS.lengths, batching, seed=1, rank=rank, world_size=3)
            resumed.resume(state)
            got += [number for batch in resumed for number in batch]
        assert set(got) == set(range(COUNT))
        assert len(got) - COUNT < 6  # ranks may be kept in step at the end


def test_changed_pairs_are_refused():
    state = lw.torch.BatchSampler(PAIRS.lengths, BATCHING).state_after(0)
    changed = PAIRS.lengths[:, ::-1].copy()
    with pytest.raises(lw.PlanMismatchError):
        lw.torch.BatchSampler(changed, BATCHING).resume(state)
