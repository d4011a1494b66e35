"""Parameter averaging: equation 3 by hand and in NumPy, on three ranks of which two are a group, and on one rank."""

import numpy as np
import pytest
import torch
from torch import distributed, nn

import lengthwise as lw
from ranks import ask_ranks, complaint

pytestmark = pytest.mark.processes


def weight(value, dtype=torch.float64):
    """A model of one parameter."""
    model = nn.Linear(1, 1, bias=False, dtype=dtype)
    nn.init.constant_(model.weight, value)
    return model


def by_hand(place, group, *, alpha):
    """The weights of one of a pair, before and after two averages."""
    model = weight([2.0, 5.0][place])
    averaging = lw.torch.ParameterAveraging(model, alpha=alpha, beta=0.25, group=group)
    seen = [model.weight.item()]
    for values in ((4.0, 8.0), (6.5, 7.5)):
        nn.init.constant_(model.weight, values[place])
        averaging.average()
        seen.append(model.weight.item())
    return seen


class Statistics(nn.Module):
    """Buffers of every kind beside a parameter that no gradient moves."""

    def __init__(self, place):
        super().__init__()
        self.frozen = nn.Parameter(torch.full((2,), 1.0 + place), requires_grad=False)
        self.narrow = nn.Parameter(torch.full((3,), 1.0 + place, dtype=torch.bfloat16))
        self.whole = nn.Parameter(torch.tensor([5 - place, -7], dtype=torch.int8), requires_grad=False)
        self.register_buffer("mean", torch.tensor([1.0 + place]))
        self.register_buffer("count", torch.tensor(7 + place))
        self.register_buffer("small", torch.tensor([3 - place], dtype=torch.int16))
        self.register_buffer("flag", torch.tensor(place == 0))


def values_of(model):
    return {name: tensor.tolist() for name, tensor in model.state_dict().items()}


def average_statistics(place, group):
    model = Statistics(place)
    averaging = lw.torch.ParameterAveraging(model, beta=0.0, group=group)
    first = values_of(model)
    model.load_state_dict(Statistics(place).state_dict())
    averaging.average()
    return first, values_of(model)


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4, dtype=torch.float64), nn.Tanh(), nn.Linear(4, 2, dtype=torch.float64))


def move(model, rank, turn):
    """Adds seeded noise to the parameters."""
    generator = torch.Generator().manual_seed(10 * turn + rank)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def train_network(rank, *, is_left):
    """Three rounds of noise and averages; where it is left, saved and loaded within the second round."""
    model = network(0)
    averaging = lw.torch.ParameterAveraging(model, alpha=0.7, beta=0.01)
    for turn in range(3):
        move(model, rank, turn)
        if is_left and turn == 1:
            saved = averaging.state_dict(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
            model = network(1)
            averaging = lw.torch.ParameterAveraging(model, alpha=0.7, beta=0.01)
            averaging.load_state_dict(saved[0])
            model.load_state_dict(saved[1])
        averaging.average()
    return [parameter.tolist() for parameter in model.parameters()]


def refusals(rank, pair):
    cases = {
        "model": lambda: lw.torch.ParameterAveraging(nn.Linear(1, 1 + rank)),
        "beta": lambda: lw.torch.ParameterAveraging(weight(1.0), beta=0.1 * rank),
        "group": lambda: lw.torch.ParameterAveraging(weight(1.0), group=pair),
    }
    return {name: complaint(act) for name, act in cases.items()}


def scenarios():
    """Returns the answers of one of three ranks; the last two are a pair."""
    rank, pair = distributed.get_rank(), distributed.new_group([1, 2])
    answers = {"network": train_network(rank, is_left=False), "resumed": train_network(rank, is_left=True)}
    answers["refused"] = refusals(rank, pair)
    if rank:
        answers["by hand"] = by_hand(rank - 1, pair, alpha=1.0)
        answers["half way"] = by_hand(rank - 1, pair, alpha=0.5)
        answers["statistics"] = average_statistics(rank - 1, pair)
    return answers


def note_collectives():
    """Runs the scenarios, and notes the name, type and contiguity of all that is sent."""
    sent = set()

    def noting(name, collective):
        def call(tensor, *args, **options):
            sent.add((name, str(tensor.dtype), tensor.is_contiguous()))
            return collective(tensor, *args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("all_reduce", "broadcast"):
            patch.setattr(distributed, name, noting(name, getattr(distributed, name)))
        return scenarios() | {"sent": sent}


@pytest.fixture(scope="module")
def ranks():
    return ask_ranks(note_collectives, world_size=3)


def test_equation_3_by_hand_in_a_group(ranks):
    # Both start from the first one's 2. Then 6 - 2/4 = 5.5 from 4 and 8, and 7 - 5.5/4 = 5.625 from 6.5 and 7.5.
    assert [rank["by hand"] for rank in ranks[1:]] == [[2.0, 5.5, 5.625]] * 2
    # Half of the way: 2 + (6 - 2)/2 - 2/4 = 3.5, and 3.5 + (7 - 3.5)/2 - 3.5/4 = 4.375.
    assert [rank["half way"] for rank in ranks[1:]] == [[2.0, 3.5, 4.375]] * 2


def test_equation_3_in_numpy(ranks):
    models = [network(0) for _ in ranks]
    previous = [parameter.detach().numpy().copy() for parameter in models[0].parameters()]
    for turn in range(3):
        for rank, model in enumerate(models):
            move(model, rank, turn)
        for place, parameters in enumerate(zip(*(model.parameters() for model in models), strict=True)):
            mean = np.mean([parameter.detach().numpy() for parameter in parameters], axis=0)
            previous[place] = previous[place] + 0.7 * (mean - previous[place]) - 0.01 * previous[place]
            for parameter in parameters:
                parameter.detach().copy_(torch.from_numpy(previous[place]))
    for found, expected in zip(ranks[0]["network"], previous, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_ranks_and_runs_that_were_resumed_are_the_same_bit_for_bit(ranks):
    assert all(rank["network"] == rank["resumed"] == ranks[0]["network"] for rank in ranks)
    assert ranks[1]["statistics"] == ranks[2]["statistics"]


def test_every_kind_of_parameter_and_buffer(ranks):
    first, averaged = ranks[2]["statistics"]
    assert first == values_of(Statistics(0))
    # Buffers of floating point become their mean, the others and whole parameters those of the first rank.
    means = {"frozen": [1.5, 1.5], "narrow": [1.5, 1.5, 1.5], "mean": [1.5]}
    assert averaged == {**means, "whole": [5, -7], "count": 7, "small": [3], "flag": True}


def test_whole_parameters_do_not_decay():
    model = Statistics(0)
    lw.torch.ParameterAveraging(model).average()
    assert model.whole.tolist() == [5, -7]


def test_what_differs_between_ranks_is_refused_on_all(ranks):
    said = {
        "model": "`model.weight` must be what rank 0 has, 'torch.float32 [1, 1]', but is 'torch.float32 [2",
        "beta": "`beta` must be what rank 0 has, 0.0, but is 0.1 at rank 1. Give every rank the same layers, alpha",
    }
    for rank in ranks:
        for case, sentence in said.items():
            assert rank["refused"][case].startswith(f"PlanMismatchError: {sentence}")
    assert [rank["refused"]["group"] for rank in ranks[1:]] == ["none"] * 2
    assert "`group` must be a process group of torch.distributed that this " in ranks[0]["refused"]["group"]


def train(model, averaging=None):
    """Three epochs of stochastic gradient descent with momentum on fixed inputs."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(5, 3, generator=generator)).square().mean().backward()
            optimizer.step()
        if averaging is not None:
            averaging.average()
    return model.state_dict()


def test_one_rank_without_decay_is_plain_training_bit_for_bit():
    def made():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))

    model = made()
    averaged = train(model, lw.torch.ParameterAveraging(model, beta=0.0))
    for name, tensor in train(made()).items():
        assert tensor.numpy().tobytes() == averaged[name].numpy().tobytes(), name


def test_ranks_that_did_not_start_or_that_came_or_went_are_refused(monkeypatch):
    averaging = lw.torch.ParameterAveraging(weight(2.0))
    averaging.world_size = 2  # as if torch.distributed had ended since
    with pytest.raises(ValueError, match=r"^`world_size` must be 2, as when the averaging was made, but is 1\. Make"):
        averaging.average()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")  # what torchrun sets in the processes that it starts
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"^torch\.distributed is not started in one of 2 processes"):
        lw.torch.ParameterAveraging(weight(1.0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "net"}, "TypeError: `model` must be a torch.nn.Module, but is 'net'"),
        ({"alpha": 0.0}, "ValueError: `alpha` must be finite and above 0, but is 0.0"),
        ({"beta": -1e-6}, "ValueError: `beta` must be at least 0 and at most 1, but is -1e-06"),
        ({"beta": True}, "TypeError: `beta` must be a number, but is True"),
    ],
)
def test_bad_values_are_refused(arguments, said):
    assert complaint(lambda: lw.torch.ParameterAveraging(**{"model": weight(1.0), **arguments})).startswith(said)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "`state` must be of shape (1, 1), but is None at weight."),
        ({"weight": torch.zeros(2)}, "`state` must be of shape (1, 1), but is (2,) at weight."),
        ({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)}, "`state` must be of shape none, but is (1,) at bias."),
    ],
)
def test_a_state_of_another_model_is_refused(state, said):
    averaging = lw.torch.ParameterAveraging(weight(1.0))
    assert complaint(lambda: averaging.load_state_dict(state)).startswith(f"ValueError: {said}")
