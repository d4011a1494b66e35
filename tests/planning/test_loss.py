"""Loss scales: the gradient over ranks and micro-batches is that of the whole step in one process."""

import numpy as np
import pytest
import torch

import lengthwise as lw

SCALES = [lw.loss_scales, lw.evaluation_weights]
LENGTHS = np.random.default_rng(0).integers(1, 30, 61)
WEIGHTS = {"sequences": None, "tokens": LENGTHS, "supervised": np.random.default_rng(1).integers(0, 5, 61)}


def gradient(model, numbers, weights, reduction):
    """The gradient of the weighted loss of the sequences `numbers`, by its mean or its sum."""
    model.zero_grad()
    weights = torch.as_tensor(weights[numbers], dtype=torch.float64)
    inputs = torch.stack([torch.sin(torch.arange(4, dtype=torch.float64) * (number + 1)) for number in numbers])
    losses = (model(inputs).squeeze(1) - 1.0) ** 2
    total = (losses * weights).sum()
    ((total / weights.sum() if weights.sum() > 0 else total) if reduction == "mean" else total).backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize(
    ("tail", "ranks", "micro_batches", "after"),
    [("split", 2, 3, []), ("repeat", 5, 2, []), ("drop", 1, 1, []), ("split", 2, 3, [(5, 1, 2)])],
)
def test_the_gradient_of_a_step_is_that_of_one_process(tail, ranks, micro_batches, after, kind, reduction, averaged):
    weights = np.ones(len(LENGTHS)) if WEIGHTS[kind] is None else WEIGHTS[kind]
    batching = lw.Batching(cut=lw.Budget(70), order=lw.MaxEntropy(padding=0.2), deal=lw.Balanced(tail=tail))
    plan = lw.make_plan(LENGTHS, batching, world_size=ranks, micro_batches=micro_batches, after=after)
    options = {"reduction": reduction, "ranks_averaged": averaged, "micro_batches_averaged": averaged}
    scales = lw.loss_scales(plan, WEIGHTS[kind], **options)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1, dtype=torch.float64)
    for step in range(plan.steps):
        grid = plan.grid[step]
        # What stands again to keep the ranks in step belongs to the step that takes it first.
        own = [plan.batch(number) for number in grid[plan.first_taken[step]]]
        whole = gradient(model, np.concatenate(own), weights, "mean")
        parts = sum(
            scales[step, turn, rank] * gradient(model, plan.batch(grid[turn, rank]), weights, reduction)
            for turn in range(micro_batches)
            for rank in range(ranks)
        )
        parts = parts / (ranks * micro_batches) if averaged else parts
        assert torch.allclose(parts, whole, rtol=0, atol=1e-12)


def test_batches_that_weigh_nothing_or_stand_twice_are_scaled_by_0():
    plan = lw.make_plan([5, 6, 7], lw.Batching(cut=lw.FixedSize(1), deal=lw.Balanced(tail="repeat")), world_size=2)
    assert plan.first_taken.sum() == 3
    assert lw.loss_scales(plan)[~plan.first_taken].tolist() == [0.0]
    plan = lw.make_plan([5, 6], lw.Batching(cut=lw.FixedSize(1)), world_size=1)
    assert sorted(lw.loss_scales(plan, [0.0, 2.0]).reshape(-1).tolist()) == [0.0, 1.0]


@pytest.mark.parametrize("scale", SCALES, ids=["losses", "evaluation"])
def test_weights_that_are_all_0_are_refused(scale):
    plan = lw.make_plan([5, 6], lw.Batching(cut=lw.FixedSize(1)))
    message = "^`weights` must be above 0 for some sequence, but is 0.0. Leave them out to count each sequence as 1.$"
    with pytest.raises(ValueError, match=message):
        scale(plan, weights=[0, 0])
    assert scale(lw.make_plan([], lw.Batching(cut=lw.FixedSize(1))), weights=[]).size == 0


@pytest.mark.parametrize("scale", SCALES, ids=["losses", "evaluation"])
def test_weights_that_are_0_for_all_that_is_taken_are_refused(scale):
    size, message = (
        lw.FixedSize(1),
        r"^`weights` must be above 0 for some sequence of the plan, but is 0\.0\. The plan leaves out all ",
    )
    thrice = lw.make_plan([5], lw.Batching(cut=size), times=3)
    with pytest.raises(ValueError, match=r"^`weights` must be of a finite sum, but is inf\. "):
        lw.loss_scales(thrice, [1e308])
    some = lw.make_plan([5, 6, 7], lw.Batching(cut=size), times=[1, 1, 0])
    short = lw.make_plan([5, 6, 7], lw.Batching(cut=lw.Budget(6, oversize="drop")))
    for plan in (some, short):
        with pytest.raises(ValueError, match=message):
            scale(plan, weights=[0, 0, 2])
    # The rest of an epoch may weigh nothing.
    batching = lw.Batching(cut=size, order=lw.Sorted(), arrange=lw.InOrder())
    rest = lw.make_plan([5, 6, 7], batching, after=[(1, 1, 1)])
    assert not scale(rest, weights=[2, 0, 0]).any()
