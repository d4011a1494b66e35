"""Parameter averaging: equation 3 by hand and in NumPy, on real ranks, and started by torchrun on one or two nodes."""

import json
import os
import socket
from datetime import timedelta

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.distributed import run

import lengthwise as lw
from ranks import FORKSERVER, run_ranks

pytestmark = pytest.mark.processes

PATIENCE = 120  # seconds after which a hang is a failure
LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3, 8]
EPOCHS = 3


def weight(value, dtype=torch.float64):
    """A model of one parameter."""
    model = nn.Linear(1, 1, bias=False, dtype=dtype)
    nn.init.constant_(model.weight, value)
    return model


def by_hand(rank, *, alpha):
    model = weight([2.0, 5.0][rank])
    averaging = lw.torch.ParameterAveraging(model, alpha=alpha, beta=0.25)
    seen = [model.weight.item()]
    for values in ((4.0, 8.0), (6.5, 7.5)):
        nn.init.constant_(model.weight, values[rank])
        averaging.average()
        seen.append(model.weight.item())
    return seen


class Statistics(nn.Module):
    """Buffers of every kind beside a parameter that no gradient moves."""

    def __init__(self, rank):
        super().__init__()
        self.frozen = nn.Parameter(torch.full((2,), 1.0 + rank), requires_grad=False)
        self.narrow = nn.Parameter(torch.full((3,), 1.0 + rank, dtype=torch.bfloat16))
        self.register_buffer("mean", torch.tensor([1.0 + rank]))
        self.register_buffer("count", torch.tensor(7 + rank))
        self.register_buffer("small", torch.tensor([3 - rank], dtype=torch.int16))
        self.register_buffer("flag", torch.tensor(rank == 0))


def kinds(rank):
    model = Statistics(rank)
    averaging = lw.torch.ParameterAveraging(model, beta=0.0)
    first = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    model.load_state_dict(Statistics(rank).state_dict())
    averaging.average()
    return first, {name: tensor.tolist() for name, tensor in model.state_dict().items()}


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4, dtype=torch.float64), nn.Tanh(), nn.Linear(4, 2, dtype=torch.float64))


def in_double_precision(rank):
    """Three rounds of seeded noise on each rank's parameters."""
    model = network(0)
    averaging = lw.torch.ParameterAveraging(model, alpha=0.7, beta=0.01)
    for turn in range(3):
        move(model, rank, turn)
        averaging.average()
    return [parameter.tolist() for parameter in model.parameters()]


def move(model, rank, turn):
    generator = torch.Generator().manual_seed(10 * turn + rank)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def resumed(rank):
    """The same run, saved and loaded in between two averages, when ranks differ."""
    model = network(0)
    averaging = lw.torch.ParameterAveraging(model, alpha=0.7, beta=0.01)
    move(model, rank, 0)
    averaging.average()
    move(model, rank, 1)
    saved = averaging.state_dict(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model = network(1)
    averaging = lw.torch.ParameterAveraging(model, alpha=0.7, beta=0.01)
    averaging.load_state_dict(saved[0])
    model.load_state_dict(saved[1])
    averaging.average()
    move(model, rank, 2)
    averaging.average()
    return [parameter.tolist() for parameter in model.parameters()]


def complaint(make):
    try:
        make()
    except ValueError as error:
        return str(error)
    return "none"


def groups(rank):
    alone = distributed.new_group([1])
    model = weight(3.0 + rank)
    told = complaint(lambda: lw.torch.ParameterAveraging(model, beta=0.0, group=alone).average())
    return told, model.weight.item()


def scenarios(rank):
    return {
        "by hand": by_hand(rank, alpha=1.0),
        "half way": by_hand(rank, alpha=0.5),
        "kinds": kinds(rank),
        "in double precision": in_double_precision(rank),
        "resumed": resumed(rank),
        "another model": complaint(lambda: lw.torch.ParameterAveraging(nn.Linear(1, 1 + rank))),
        "another beta": complaint(lambda: lw.torch.ParameterAveraging(weight(1.0), beta=0.1 * rank)),
        "groups": groups(rank),
    }


def sent_by(work):
    """What `work` gives, and the name, type and contiguity of every collective that it calls."""
    sent = set()

    def told(name, collective):
        def call(tensor, *args, **options):
            sent.add((name, str(tensor.dtype), tensor.is_contiguous()))
            return collective(tensor, *args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("all_reduce", "broadcast"):
            patch.setattr(distributed, name, told(name, getattr(distributed, name)))
        return work(), sorted(sent)


def run_rank(rank, folder):
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=PATIENCE),
    )
    found, sent = sent_by(lambda: scenarios(rank))
    (folder / f"rank{rank}.json").write_text(json.dumps({**found, "sent": sent}))
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two gloo ranks found in every scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks(run_rank, folder)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_equation_3_by_hand(ranks):
    # Both start from rank 0's 2. Then 6 - 2/4 = 5.5 from 4 and 8, and 7 - 5.5/4 = 5.625 from 6.5 and 7.5.
    assert [rank["by hand"] for rank in ranks] == [[2.0, 5.5, 5.625]] * 2


def test_alpha_goes_part_of_the_way(ranks):
    # 2 + (6 - 2)/2 - 2/4 = 3.5, and 3.5 + (7 - 3.5)/2 - 3.5/4 = 4.375.
    assert [rank["half way"] for rank in ranks] == [[2.0, 3.5, 4.375]] * 2


def test_equation_3_in_numpy(ranks):
    models = [network(0), network(0)]
    previous = [parameter.detach().numpy().copy() for parameter in models[0].parameters()]
    for turn in range(3):
        for rank, model in enumerate(models):
            move(model, rank, turn)
        for place, parameters in enumerate(zip(*(model.parameters() for model in models), strict=True)):
            mean = np.mean([parameter.detach().numpy() for parameter in parameters], axis=0)
            previous[place] = previous[place] + 0.7 * (mean - previous[place]) - 0.01 * previous[place]
            for parameter in parameters:
                parameter.detach().copy_(torch.from_numpy(previous[place]))
    for rank in ranks:
        for found, expected in zip(rank["in double precision"], previous, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_ranks_are_the_same_afterwards_bit_for_bit(ranks):
    for scenario in ("by hand", "half way", "kinds", "in double precision", "resumed"):
        assert ranks[0][scenario] == ranks[1][scenario]


def test_a_run_that_was_saved_between_averages_goes_on_as_if_not(ranks):
    for rank in ranks:
        assert rank["resumed"] == rank["in double precision"]


def test_every_kind_of_parameter_and_buffer(ranks):
    first, averaged = ranks[1]["kinds"]
    assert first == {name: tensor.tolist() for name, tensor in Statistics(0).state_dict().items()}
    assert averaged == {
        "frozen": [1.5, 1.5],
        "narrow": [1.5, 1.5, 1.5],
        "mean": [1.5],  # floating point: the mean
        "count": 7,  # others: rank 0's
        "small": [3],
        "flag": True,
    }


@pytest.mark.parametrize(("scenario", "kind"), [("another model", "Linear"), ("another beta", "Linear")])
def test_what_differs_between_ranks_is_refused_on_all(ranks, scenario, kind):
    for number, rank in enumerate(ranks):
        assert rank[scenario] == (
            f"`model` must be the same on all ranks, but is {kind!r} at rank {number}. "
            "Give every rank the same layers, alpha and beta."
        )


def test_nccl_has_every_type_that_is_sent(ranks):
    # ncclDataType_t of NCCL 2, as torch.distributed maps to it: no 16-bit integers, no bool, and nothing with gaps.
    types = ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
    for rank in ranks:
        assert {name for name, _, _ in rank["sent"]} == {"all_reduce", "broadcast"}
        assert all(kind.removeprefix("torch.") in types and whole for _, kind, whole in rank["sent"]), rank["sent"]


def test_a_group_is_left_to_its_members(ranks):
    assert ranks[0]["groups"][0].startswith("`world_size` must be at least 1, but is -1.")
    assert ranks[1]["groups"] == ["none", 4.0]


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


def test_ranks_that_came_or_went_since_it_was_made_are_told_of():
    averaging = lw.torch.ParameterAveraging(weight(2.0))
    averaging.world_size = 2  # as if torch.distributed had ended since
    with pytest.raises(ValueError, match=r"^`world_size` must be 2 still, but is 1\. Make the averaging after torch"):
        averaging.average()


def test_one_rank_decays_by_equation_3():
    model = weight(2.0)
    averaging = lw.torch.ParameterAveraging(model)
    nn.init.constant_(model.weight, 3.0)
    averaging.average()
    assert model.weight.item() == 3.0 - 1e-6 * 2.0
    averaging.average()
    assert model.weight.item() == pytest.approx((3.0 - 2e-6) * (1 - 1e-6), rel=1e-15)


SCRIPT = f"""
import sys

import torch
from torch import distributed, nn

import lengthwise as lw

distributed.init_process_group("gloo")
batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Portions())
sampler = lw.torch.BatchSampler({LENGTHS}, batching, seed=4)
model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
nn.init.constant_(model.weight, float(distributed.get_rank()))
averaging = lw.torch.ParameterAveraging(model, alpha=0.9, beta=0.01)
for epoch in range({EPOCHS}):
    sampler.set_epoch(epoch)
    for batch in sampler:
        lengths = torch.tensor(batch, dtype=torch.float64)[:, None]
        gradient = torch.autograd.grad((model(lengths) - 1.0).square().mean(), model.weight)[0]
        model.weight.data -= 0.01 * gradient
    averaging.average()
open(f"{{sys.argv[1]}}/rank{{distributed.get_rank()}}", "w").write(repr(model.weight.item()))
distributed.destroy_process_group()
"""


def expected_weight():
    """The script in NumPy: every rank's steps one by one, then equation 3."""
    batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Portions())
    before = 0.0
    for epoch in range(EPOCHS):
        plan = lw.make_plan(LENGTHS, batching, seed=4, epoch=epoch, world_size=2)
        after = []
        for rank in range(2):
            value = before
            for batch in plan.batches(rank):
                value -= 0.01 * np.mean(2.0 * (value * batch - 1.0) * batch)
            after.append(value)
        before = before + 0.9 * (np.mean(after) - before) - 0.01 * before
    return before


def torchrun(arguments, log):
    """What `torchrun` does, where PyTorch is loaded already; the ranks that it starts load it anew."""
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    run.main(arguments)


@pytest.mark.parametrize("nodes", [1, 2])
def test_torchrun_starts_it(tmp_path, nodes):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agents = []
    for node in range(nodes):
        places = [f"--nnodes={nodes}", f"--nproc-per-node={2 // nodes}", f"--node-rank={node}"]
        meeting = ["--master-addr=127.0.0.1", f"--master-port={port}"]
        arguments = [*places, *meeting, str(script), str(tmp_path)]
        agents.append(FORKSERVER.Process(target=torchrun, args=(arguments, tmp_path / f"said{node}")))
        agents[-1].start()
    try:
        for agent in agents:
            agent.join(PATIENCE)
    finally:
        for agent in agents:
            agent.kill()
            agent.join()
    said = [path.read_text() for path in tmp_path.glob("said*")]
    assert [agent.exitcode for agent in agents] == [0] * nodes, said
    weights = [float((tmp_path / f"rank{rank}").read_text()) for rank in range(2)]
    assert weights == pytest.approx([expected_weight()] * 2, rel=1e-12)


def test_torchrun_without_torch_distributed_is_refused(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")  # what torchrun sets in the processes that it starts
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"`torch\.distributed` must be running, but is 'not running, with"):
        lw.torch.ParameterAveraging(weight(1.0))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"model": "net"}, TypeError, "`model` must be a torch.nn.Module, but is 'net'"),
        ({"alpha": 0.0}, ValueError, "`alpha` must be finite and above 0, but is 0.0"),
        ({"beta": -1e-6}, ValueError, "`beta` must be at least 0 and at most 1, but is -1e-06"),
        ({"beta": True}, TypeError, "`beta` must be a number, but is True"),
    ],
)
def test_bad_values_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        lw.torch.ParameterAveraging(**{"model": weight(1.0), **arguments})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "`state` must be of shape (1, 1), but is None at weight."),
        ({"weight": torch.zeros(2)}, "`state` must be of shape (1, 1), but is (2,) at weight."),
        ({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)}, "`state` must be of shape none, but is (1,) at bias."),
    ],
)
def test_a_state_of_another_model_is_refused(state, message):
    averaging = lw.torch.ParameterAveraging(weight(1.0))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        averaging.load_state_dict(state)
    assert str(caught.value).startswith(message)


def run_in_group(rank, folder):
    """Of three ranks the last two average."""
    init = {"init_method": f"file://{folder}/store", "timeout": timedelta(seconds=PATIENCE)}
    distributed.init_process_group("gloo", rank=rank, world_size=3, **init)
    group = distributed.new_group([1, 2])
    if rank:
        model = weight(10.0 * rank)
        averaging = lw.torch.ParameterAveraging(model, beta=0.0, group=group)
        first = model.weight.item()
        nn.init.constant_(model.weight, 2.0 * rank)
        averaging.average()
        (folder / f"rank{rank}.json").write_text(json.dumps([first, model.weight.item()]))
    distributed.destroy_process_group()


def test_a_group_averages_among_its_members_alone(tmp_path):
    run_ranks(run_in_group, tmp_path, world_size=3)
    assert [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (1, 2)] == [[10.0, 3.0]] * 2
