"""The samplers, alone and under PyTorch's loader: their batches are the plan's, and wrong use is told."""

import types

import numpy as np
import pytest
from loaders import Data, planned, refusal, sampler_of
from torch.utils.data import DataLoader, DistributedSampler

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=300)
BATCHING = lw.Batching(cut=lw.Budget(20_000), order=lw.MaxEntropy(padding=0.1))
SECOND_PASS = r"^Epoch 0 is taken a second time\. Call set_epoch with a new number before each epoch\.$"


def test_epochs_differ_repeat_exactly_and_are_those_of_the_plan():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=3)
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        plan = lw.make_plan(LENGTHS, BATCHING, seed=3, epoch=epoch)
        batches = list(sampler)
        assert batches == [batch.tolist() for batch in plan.batches()]
        assert len(batches) == len(sampler)
        for batch in batches:
            batch.clear()  # lists are fresh


def test_chunks_come_as_spans():
    batching = lw.Batching(cut=lw.FixedSize(4), chunks=lw.Chunks(100))
    spans = [span for batch in lw.torch.BatchSampler([250, 40], batching) for span in batch]
    assert sorted(spans) == [(0, 0, 100), (0, 100, 200), (0, 200, 250), (1, 0, 40)]
    assert all(type(number) is int for span in spans for number in span)


def test_groups_are_those_of_the_plan():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, groups=np.arange(300) % 3)
    assert sampler.plan.fingerprint() == lw.make_plan(LENGTHS, BATCHING, groups=np.arange(300) % 3).fingerprint()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_plain_loader_takes_the_same_batches_and_warns_where_its_epoch_never_advances(workers):
    sampler = sampler_of()
    loader = DataLoader(Data(), batch_sampler=sampler, collate_fn=list, num_workers=workers)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert list(loader) == planned(epoch)
    sampler = sampler_of()
    loader = DataLoader(Data(), batch_sampler=sampler, collate_fn=list, num_workers=workers)
    next(iter(loader))  # a look
    for _ in range(2):
        list(loader)
    with pytest.warns(UserWarning, match=SECOND_PASS) as told:
        list(loader)
    assert [each.filename for each in told] == [__file__]  # of the loop, and not of PyTorch's loader
    list(loader)  # warnings are errors here


def test_a_sampler_that_nobody_asks_raises_with_the_next_epoch():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    sampler.set_epoch(0)
    sampler.state_after(0)  # for a checkpoint
    with pytest.raises(ValueError, match=r"^Epoch 0 was set, but the sampler was not read\. .* no training_data"):
        sampler.set_epoch(1)
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    for epoch in range(4):  # who looks ahead at lengths or at plans asks
        sampler.set_epoch(epoch)
        assert (len(sampler) if epoch % 2 else sampler.plan.steps) > 0


def test_an_epoch_that_is_set_within_a_pass_is_refused_and_after_its_last_batch_is_not():
    sampler = sampler_of()
    batches = iter(sampler)
    next(batches)
    sampler.set_epoch(1)
    with pytest.raises(ValueError, match=r"^Epoch 1 was set within a pass over epoch 0\. "):
        next(batches)
    batches = iter(sampler)
    assert [next(batches) for _ in range(len(sampler))] == planned(1)
    sampler.set_epoch(2)
    assert next(batches, None) is None
    for _ in range(2):  # complete passes of the new epoch; a third one would warn
        assert list(sampler) == planned(2)


class Shared(DistributedSampler):
    """Deals a sampler's batches out to ranks, as SpeechBrain does."""

    def __iter__(self):
        batches = list(self.dataset)
        yield from map(batches.__getitem__, super().__iter__())


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_are_dealt_out_or_skipped_once_more_are_refused_with_the_first(workers):
    shared = Shared(sampler_of(rank=1, world_size=2), num_replicas=2, rank=1)
    said = (
        "The sampler has shared its batches out to 2 ranks, and a Shared would do so again. Give the trainer lw.torch"
    )
    assert said in refusal(DataLoader(Data(), batch_sampler=shared, num_workers=workers))
    skip = pytest.importorskip("accelerate").skip_first_batches
    loader = lw.torch.DataLoader(Data(), sampler_of(), collate_fn=list, num_workers=workers)
    assert list(skip(loader, 4)) == planned()[4:]
    loader.load_state_dict(loader.state_dict(delivered=4))
    said = "The sampler begins after 4 batches, as loaded, and skip_first_batches would skip more. Loop over the loader"
    assert said in refusal(skip(loader, 4))
    assert list(loader) == planned()[4:]


def test_steps_of_every_epoch_are_refused_where_epochs_may_differ():
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.DynamicSize(4, rule="paper")))
    with pytest.raises(ValueError, match=r"^`cut` must be one that gives every epoch the same number of steps, but"):
        _ = sampler.steps


def test_a_sampler_says_where_its_passes_begin_and_has_no_batch_size_to_mislead_trainers():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=3)
    sampler.set_epoch(5)
    sampler.resume(sampler.state_after(3))
    assert f"BatchSampler(rank 0 of 1, epoch 5 from batch 3 of {len(sampler)}, 300 sequences, Batch" in repr(sampler)
    assert not hasattr(sampler, "batch_size")


# The sampler of evaluations; `test_ranks.py` has ranks that talk.


def test_every_pass_of_an_evaluation_is_the_same():
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(20_000))
    loader = DataLoader(range(300), batch_sampler=sampler, collate_fn=list)
    first, second = list(loader), list(loader)
    assert first == second
    assert len(loader) == len(first)
    assert sampler.restore_order([number for batch in first for number in batch]) == list(range(300))


def test_ranks_that_are_given_share_out_by_the_plan_and_gather_elsewhere():
    cost = lw.Quadratic(quadratic=0.01)
    plan = lw.evaluation_plan(LENGTHS, lw.Budget(500_000), cost=cost, world_size=3)
    weights, outputs = lw.evaluation_weights(plan, LENGTHS), []
    for rank in range(3):
        sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(500_000), cost=cost, rank=rank, world_size=3)
        assert sampler.plan.fingerprint() == plan.fingerprint()
        assert sampler.weights(LENGTHS).tolist() == weights[:, :, rank].ravel().tolist()
        outputs.append([number for batch in sampler for number in batch])
    assert lw.restore_order(plan, outputs) == list(range(300))
    assert weights.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"torch\.distributed's own, to gather outputs, but is 2"):
        sampler.restore_order(outputs[2])


def test_tab_completion_shows_what_is_public():
    assert [name for name in dir(lw.torch) if not name.startswith("_")] == lw.torch.__all__ == sorted(lw.torch.__all__)
    assert not [name for name in lw.torch.__all__ if isinstance(getattr(lw.torch, name), types.ModuleType)]
