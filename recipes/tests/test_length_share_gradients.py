"""`length_share` against gradients computed by hand, and what it leaves as it was."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import lengthwise as lw
from lengthwise_recipes.length_share.gradients import _WIDTH, _Sketch, length_share
from lengthwise_recipes.length_share.share import LengthShare

COUNT = 96
LENGTHS = np.random.default_rng(0).integers(4, 30, COUNT)
FRAMES = [
    torch.randn(int(length), 3, generator=torch.Generator().manual_seed(number)) + 0.05 * int(length)
    for number, length in enumerate(LENGTHS)
]


def square(model, batch):
    return model(batch).square().mean()


def linear():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


@pytest.mark.parametrize("weights", [None, LENGTHS])
def test_the_gradients_are_those_of_single_sequences(weights):
    model = linear()
    rows = []
    for frames in FRAMES:
        model.zero_grad()
        square(model, frames[None]).backward()
        rows.append(np.concatenate([each.grad.double().numpy().ravel() for each in model.parameters()]))
    wanted = LengthShare.of(rows, np.arange(COUNT), LENGTHS, weights=weights)
    found = length_share(model, square, FRAMES, LENGTHS, weights=weights)
    assert found.sampled == COUNT
    assert (found.share, found.noise_scale) == pytest.approx((wanted.share, wanted.noise_scale), rel=1e-5)


def test_what_a_plan_is_worth_is_what_its_batches_show():
    model = linear()
    share = length_share(model, square, FRAMES, LENGTHS)

    def gradient(members):
        model.zero_grad()
        sum(square(model, FRAMES[number][None]) for number in members).div(len(members)).backward()
        return torch.cat([each.grad.reshape(-1).clone() for each in model.parameters()])

    whole = gradient(range(COUNT))

    def variance(order, epochs):
        batching = lw.Batching(cut=lw.FixedSize(8), order=order)
        plans = [lw.make_plan(LENGTHS, batching, epoch=epoch) for epoch in range(epochs)]
        found = [(gradient(batch) - whole).square().sum().item() for plan in plans for batch in plan.batches()]
        return np.mean(found), plans

    sorted_variance, plans = variance(lw.Sorted(), 4)
    shown = sorted_variance / variance(lw.Shuffled(), 24)[0]
    assert shown > 3  # the frames of long sequences are larger here
    assert share.measure(plans).variance_ratio == pytest.approx(shown, rel=0.15)


class Everything(nn.Module):
    """Dropout, statistics and a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.recurrent = nn.LSTM(3, 4, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, frames):
        return self.dropout(self.recurrent(self.norm(frames.transpose(1, 2)).transpose(1, 2))[0])


def test_the_model_and_the_random_numbers_are_left_as_they_were():
    torch.manual_seed(3)
    model = Everything()
    model.recurrent.weight_hh_l0.grad = torch.full_like(model.recurrent.weight_hh_l0, 7.0)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    state = torch.get_rng_state()
    shares = [length_share(model, square, FRAMES, LENGTHS, sample=64).share for _ in range(2)]
    assert shares[0] == shares[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert model.training
    assert model.unused.grad is None
    assert (model.recurrent.weight_hh_l0.grad == 7.0).all()


def test_a_large_gradient_keeps_its_inner_products():
    numbers = torch.Generator().manual_seed(0)
    rows = torch.randn(20, 5 * _WIDTH + 17, generator=numbers) + 0.2
    sketch = _Sketch(rows.shape[1], seed=0)
    small = np.stack([sketch.shrink(row) for row in rows])
    assert small.shape == (20, _WIDTH)
    exact = (rows @ rows.T).double().numpy()
    norms = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs((small @ small.T - exact) / norms).max() < 5 / np.sqrt(_WIDTH)


VALUES = {
    "sample": (
        {"sample": 8},
        "`sample` must be at least 32, but is 8. Give the number of gradients to measure, at least 32.",
    ),
    "no scalar": (
        {"loss": lambda _, batch: batch.mean()},
        r"`loss` must be a scalar tensor with a gradient, but is tensor\(.*\) at sequence \d+\. Return the mean loss "
        r"of the batch, from the model's output\.",
    ),
    "not finite": (
        {"loss": lambda model, batch: square(model, batch) * float("inf")},
        r"`loss` must be finite, but is inf at sequence \d+\. Leave the sequence out of lengths and dataset, or give "
        r"it a finite loss\.",
    ),
}


@pytest.mark.parametrize(("given", "message"), VALUES.values(), ids=VALUES)
def test_what_cannot_be_measured_is_refused_in_one_sentence(given, message):
    arguments = {"model": linear(), "loss": square, "dataset": FRAMES, "lengths": LENGTHS} | given
    pattern = message if "\\" in message else re.escape(message)
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        length_share(**arguments)
