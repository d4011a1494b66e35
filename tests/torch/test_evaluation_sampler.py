"""The evaluation sampler under DataLoader, alone and on two ranks."""

import json

import pytest
from torch import distributed
from torch.utils.data import DataLoader

import lengthwise as lw
from ranks import run_ranks

pytestmark = pytest.mark.processes

LENGTHS = lw.example_lengths("long-tailed", count=101)


def test_under_a_loader_every_pass_is_the_same():
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(20_000))
    loader = DataLoader(range(101), batch_sampler=sampler, collate_fn=list)
    first, second = list(loader), list(loader)
    assert first == second
    assert len(loader) == len(first)
    assert sampler.restore_order([number for batch in first for number in batch]) == list(range(101))
    assert sampler.weights(LENGTHS).sum() == pytest.approx(1.0)


def test_ranks_that_are_given_share_out_and_gather_elsewhere():
    samplers = [lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(8), rank=rank, world_size=3) for rank in range(3)]
    outputs = [[number for batch in sampler for number in batch] for sampler in samplers]
    assert lw.restore_order(samplers[0].plan, outputs) == list(range(101))
    assert sum(sampler.weights().sum() for sampler in samplers) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"torch\.distributed's own, to gather outputs, but is 1"):
        samplers[1].restore_order(outputs[1])


def test_processes_that_were_started_as_ranks_but_do_not_talk_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(8))
    with pytest.raises(ValueError, match=r"`torch.distributed` must be started, .* but is 'WORLD_SIZE=2'\. Call"):
        next(iter(sampler))
    assert len(list(lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(8), rank=1, world_size=2))) == 7


def made(*, longest=9, size=2):
    return lw.torch.EvaluationSampler([5, longest, 2, 4, 7], lw.FixedSize(size))


def everything(sampler):
    return sampler.restore_order([number for batch in sampler for number in batch])


def complaint(act):
    try:
        act()
    except lw.PlanMismatchError as error:
        return str(error)


def on_a_rank(rank, folder):
    early, other = made(), made(longest=9 + rank)
    alone = early.rank, early.world_size, len(early)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    found = {"gathered": everything(made()), "alone": alone, "late": everything(early)}
    found["places"] = early.rank, early.world_size, len(early), early.plan.world_size
    found["late lengths"] = complaint(lambda: list(other))
    found["lengths"] = complaint(lambda: made(longest=9 + rank))
    found["cut"] = complaint(lambda: made(size=1 + rank))
    (folder / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two gloo ranks found."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks(on_a_rank, folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def test_outputs_are_gathered_from_the_ranks(ranks):
    assert [rank["gathered"] for rank in ranks] == [[0, 1, 2, 3, 4]] * 2


def test_a_late_start_gives_each_rank_its_share(ranks):
    assert [rank["alone"] for rank in ranks] == [[0, 1, 3]] * 2
    assert [rank["places"] for rank in ranks] == [[0, 2, 2, 2], [1, 2, 2, 2]]
    assert [rank["late"] for rank in ranks] == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize(("case", "fact"), [("lengths",) * 2, ("late lengths", "lengths"), ("cut", "cut.batch_size")])
def test_ranks_that_disagree_are_refused_on_every_rank(ranks, case, fact):
    first, second = (rank[case] for rank in ranks)
    assert first == second
    assert first.startswith(f"`{fact}` must be what rank 0 has, ")
    assert first.endswith(" at rank 1. Give every rank the same lengths, cut and cost.")


def test_plan_and_weights_are_those_of_the_cost_the_weights_and_the_rank():
    cost = lw.Quadratic(quadratic=0.01)
    plan = lw.evaluation_plan(LENGTHS, lw.Budget(500_000), cost=cost, world_size=3)
    expected = lw.evaluation_weights(plan, LENGTHS)
    for rank in range(3):
        sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(500_000), cost=cost, rank=rank, world_size=3)
        assert sampler.plan.fingerprint() == plan.fingerprint()
        assert sampler.weights(LENGTHS).tolist() == expected[:, :, rank].ravel().tolist()
