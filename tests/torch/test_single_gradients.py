"""`lw.torch.length_share` against gradients computed by hand, and what it leaves as it was."""

import re

import numpy as np
import pytest
import torch
from torch import distributed, nn

import lengthwise as lw
from lengthwise.torch.single_gradients import _WIDTH, _Sketch

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
    wanted = lw.LengthShare.of(rows, np.arange(COUNT), LENGTHS, weights=weights)
    found = lw.torch.length_share(model, square, FRAMES, LENGTHS, weights=weights)
    assert found.sampled == COUNT
    assert (found.share, found.noise_scale) == pytest.approx((wanted.share, wanted.noise_scale), rel=1e-5)


def test_what_a_plan_is_worth_is_what_its_batches_show():
    model = linear()
    share = lw.torch.length_share(model, square, FRAMES, LENGTHS)

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
    shares = [lw.torch.length_share(model, square, FRAMES, LENGTHS, sample=64).share for _ in range(2)]
    assert shares[0] == shares[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert model.training
    assert model.unused.grad is None
    assert (model.recurrent.weight_hh_l0.grad == 7.0).all()


def test_the_model_is_left_as_it_was_after_an_error():
    model = Everything()
    before = {name: each.clone() for name, each in model.state_dict().items()}

    def fail(model, batch):
        if len(batch[0]) > 25:
            raise RuntimeError("a loss of the user's")
        return square(model, batch)

    with pytest.raises(RuntimeError, match="a loss of the user's"):
        lw.torch.length_share(model, fail, FRAMES, LENGTHS)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


def test_gradients_are_measured_where_none_are_wanted():
    with torch.no_grad():
        lw.torch.length_share(linear(), square, FRAMES, LENGTHS, sample=32)


def test_a_large_gradient_keeps_its_inner_products():
    numbers = torch.Generator().manual_seed(0)
    rows = torch.randn(20, 5 * _WIDTH + 17, generator=numbers) + 0.2
    sketch = _Sketch(rows.shape[1], seed=0)
    small = np.stack([sketch.shrink(row) for row in rows])
    assert small.shape == (20, _WIDTH)
    exact = (rows @ rows.T).double().numpy()
    norms = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs((small @ small.T - exact) / norms).max() < 5 / np.sqrt(_WIDTH)


def test_a_large_model_is_measured_as_a_small_one():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 1))
    assert sum(each.numel() for each in model.parameters()) > 2 * _WIDTH
    found = lw.torch.length_share(model, square, FRAMES, LENGTHS)
    rows = []
    for frames in FRAMES:
        model.zero_grad()
        square(model, frames[None]).backward()
        rows.append(np.concatenate([each.grad.numpy().ravel() for each in model.parameters()]))
    wanted = lw.LengthShare.of(rows, np.arange(COUNT), LENGTHS)
    assert found.share == pytest.approx(wanted.share, abs=0.02)


@pytest.mark.processes
def test_the_model_inside_ddp_is_measured():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(linear())
        found = lw.torch.length_share(model, square, FRAMES, LENGTHS)
        del model  # if it is freed last, PyTorch 2.13 may hang
    finally:
        distributed.destroy_process_group()
    assert found.share == lw.torch.length_share(linear(), square, FRAMES, LENGTHS).share


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(FRAMES)


NO_GRADIENT = linear().requires_grad_(False)
VALUES = {
    "sample": (
        {"sample": 8},
        "`sample` must be at least 32, but is 8. Give how many gradients to measure, 32 at least.",
    ),
    "lengths": (
        {"dataset": FRAMES[:-1]},
        "`lengths` must be one for each of the 95 sequences of `dataset`, but is 96. Give the lengths of this dataset.",
    ),
    "nothing to learn": (
        {"model": NO_GRADIENT},
        "`model` must be of parameters to learn, but is 'Linear'. Set requires_grad of some of them.",
    ),
    "without a shape": (
        {"model": nn.LazyLinear(1)},
        "`model` must be of parameters that have a shape, but is 'LazyLinear'. Call it once on a batch: a lazy module "
        "makes its parameters then.",
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
    "infinite gradient": (
        {"loss": lambda model, batch: (model(batch) * 0).square().sum().sqrt()},
        r"`loss` must be of a finite gradient, but is 0.0 at sequence \d+\. Leave the sequence out\.",
    ),
}


@pytest.mark.parametrize(("given", "message"), VALUES.values(), ids=VALUES)
def test_what_cannot_be_measured_is_refused_in_one_sentence(given, message):
    arguments = {"model": linear(), "loss": square, "dataset": FRAMES, "lengths": LENGTHS} | given
    pattern = message if "\\" in message else re.escape(message)
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        lw.torch.length_share(**arguments)


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"^`model` must be a torch\.nn\.Module, but is 3\. Give the model"):
        lw.torch.length_share(3, square, FRAMES, LENGTHS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": None}, r"^`loss` must be a function, but is None\. Give a function of the model and a batch"),
        ({"dataset": iter(FRAMES)}, r"^`dataset` must be one of sequences by number, as a list is, but is .*iterator"),
        ({"dataset": Stream()}, r"^`dataset` must be one of sequences by number, .* Put the sequences of a stream in"),
    ],
)
def test_what_is_never_called_or_numbered_is_refused(given, message):
    arguments = {"model": linear(), "loss": square, "dataset": FRAMES, "lengths": LENGTHS} | given
    with pytest.raises(TypeError, match=message):
        lw.torch.length_share(**arguments)


class Words(nn.Module):
    """Tied weights, gradients that may be sparse, and a layer that the loss does not reach."""

    def __init__(self, *, sparse):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(9, 4, sparse=sparse)
        self.out = nn.Linear(4, 9, bias=False)
        if not sparse:  # PyTorch adds no sparse gradient to a dense one
            self.out.weight = self.words.weight
        self.unused = nn.Linear(2, 2)

    def forward(self, batch):
        return self.out(self.words((batch[..., 0] * 10).long() % 9))


def test_sparse_gradients_are_those_of_a_dense_embedding():
    dense, sparse = Words(sparse=True), Words(sparse=True)
    dense.words.sparse = False
    found = [lw.torch.length_share(model, square, FRAMES, LENGTHS) for model in (dense, sparse)]
    assert found[0].share == pytest.approx(found[1].share, rel=1e-9)
    assert np.isfinite(lw.torch.length_share(Words(sparse=False), square, FRAMES, LENGTHS).share)


@pytest.mark.filterwarnings("ignore:Complex modules")
def test_a_complex_parameter_counts_as_two_real_ones():
    def size(model, batch):
        return (model(batch.to(torch.complex64)) - 1j).abs().square().mean()

    model = nn.Linear(3, 1).to(torch.complex64)
    rows = []
    for frames in FRAMES:
        grads = torch.autograd.grad(size(model, frames[None]), list(model.parameters()))
        rows.append(torch.cat([torch.view_as_real(each).reshape(-1) for each in grads]).numpy())
    wanted = lw.LengthShare.of(rows, np.arange(COUNT), LENGTHS)
    assert lw.torch.length_share(model, size, FRAMES, LENGTHS).share == pytest.approx(wanted.share, rel=1e-6)


class Counts(nn.Module):
    """Puts another tensor in the place of its buffer, as running means often do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("last", None)

    def forward(self, frames):
        output = self.layer(frames)
        self.mean = 0.9 * self.mean + output.detach().mean()
        self.last = self.mean
        return output


def test_a_buffer_that_the_model_replaces_is_put_back():
    model = Counts()
    mean = model.mean
    lw.torch.length_share(model, square, FRAMES, LENGTHS, sample=32)
    assert model.mean is mean
    assert model.mean.item() == 0
    assert model.last is None


def test_gradients_are_measured_in_inference_mode():
    model = linear()
    with torch.inference_mode():
        found = lw.torch.length_share(model, square, FRAMES, LENGTHS, sample=32)
    assert found.share == lw.torch.length_share(model, square, FRAMES, LENGTHS, sample=32).share


@pytest.mark.parametrize(
    ("lengths", "weights", "message"),
    [
        (
            LENGTHS[:31],
            None,
            "`lengths` must be of at least 32 sequences, but is 31. Fewer gradients do not tell a share.",
        ),
        ([], None, "`lengths` must be of at least 32 sequences, but is 0. Fewer gradients do not tell a share."),
        (LENGTHS, [1.0], "`weights` must be of shape [96], but is (1,). Give one weight for each sequence."),
    ],
)
def test_what_can_be_refused_is_refused_before_the_first_gradient(lengths, weights, message):
    def never(*arguments):
        raise AssertionError(arguments)

    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lw.torch.length_share(linear(), never, FRAMES[: len(lengths)], lengths, weights=weights)
