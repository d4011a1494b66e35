"""The evaluation sampler under a loader and on ranks that are given; `test_ranks.py` has those that talk."""

import pytest
from torch.utils.data import DataLoader

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=101)


def test_under_a_loader_every_pass_is_the_same():
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(20_000))
    loader = DataLoader(range(101), batch_sampler=sampler, collate_fn=list)
    first, second = list(loader), list(loader)
    assert first == second
    assert len(loader) == len(first)
    assert sampler.restore_order([number for batch in first for number in batch]) == list(range(101))


def test_ranks_that_are_given_share_out_by_the_plan_and_gather_elsewhere():
    cost = lw.Quadratic(quadratic=0.01)
    plan = lw.evaluation_plan(LENGTHS, lw.Budget(500_000), cost=cost, world_size=3)
    weights, outputs = lw.evaluation_weights(plan, LENGTHS), []
    for rank in range(3):
        sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(500_000), cost=cost, rank=rank, world_size=3)
        assert sampler.plan.fingerprint() == plan.fingerprint()
        assert sampler.weights(LENGTHS).tolist() == weights[:, :, rank].ravel().tolist()
        outputs.append([number for batch in sampler for number in batch])
    assert lw.restore_order(plan, outputs) == list(range(101))
    assert weights.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"torch\.distributed's own, to gather outputs, but is 2"):
        sampler.restore_order(outputs[2])
