"""Samplers and torch.distributed: a late start, an early end, and ranks that disagree or fail alone."""

import os
import time
from math import nan

import pytest
from torch import distributed

import lengthwise as lw
from ranks import ask_ranks, begin, complaint

pytestmark = pytest.mark.processes

LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3, 8, 6]
BATCHING = lw.Batching(cut=lw.FixedSize(1))
MISMATCH = "PlanMismatchError"


def made(**changed):
    return lw.torch.BatchSampler(**({"lengths": LENGTHS, "batching": BATCHING, "seed": 1} | changed))


def evaluation(*, longest=9, size=2, **places):
    return lw.torch.EvaluationSampler([5, longest, 2, 4, 7], lw.FixedSize(size), **places)


def evaluate(sampler):
    return sampler.restore_order([number for batch in sampler for number in batch])


def state_after(taken, epoch=0):
    """The state of a run on two ranks."""
    sampler = made(rank=0, world_size=2)
    sampler.set_epoch(epoch)
    return sampler.state_after(taken)


def places_of(sampler):
    return sampler.rank, sampler.world_size, len(sampler)


def start_late(rank):
    """Samplers that are made before torch.distributed runs, one of them with a position."""
    sampler, resumed, other, early, unlike = made(), made(), made(seed=rank), evaluation(), evaluation(longest=9 + rank)
    astray = made()
    resumed.resume(state_after(2))
    astray.resume(state_after(1 + rank))
    answers = {"alone": [places_of(each) for each in (sampler, resumed, early)]}
    begin()
    answers["places"] = [places_of(each) for each in (sampler, early)]
    answers["resumed"] = resumed.start, len(resumed), list(resumed)
    answers["share"], answers["late evaluation"] = list(sampler), evaluate(early)
    answers["another seed"] = complaint(lambda: list(other))
    answers["other lengths"] = complaint(lambda: list(unlike))
    answers["other runs"] = complaint(lambda: next(iter(astray)))
    return answers


DISAGREEMENTS = {  # each is refused on both ranks, or else the next collective would hang
    "seed": lambda rank: made(seed=rank),
    "lengths": lambda rank: made(lengths=[*LENGTHS[:-1], 6 + rank]),
    "times": lambda rank: made(times=None if rank else 2.5),
    "batching.cut.batch_size": lambda rank: made(batching=lw.Batching(cut=lw.FixedSize(1 + rank))),
    "micro_batches": lambda rank: made(micro_batches=1 + rank),
    "runs": lambda rank: made().resume(state_after(1 + rank)),
    "epoch": lambda rank: made().resume(state_after(1, epoch=rank)),
    "cut.batch_size": lambda rank: evaluation(size=1 + rank),
}


def another_state(rank):
    return made(seed=1 + rank, rank=0, world_size=1).state_after(0)


def broken_cost(rank):
    return lw.Batching(cut=lw.FixedSize(1), cost=lambda counts, _: counts * (nan if rank else 1.0))


FAILURES = {  # rank 1 fails before there is anything to compare, and rank 0 would wait for it
    "zero length": lambda rank: made(lengths=[*LENGTHS[:-1], 6 - 6 * rank]),
    "no batching": lambda rank: made(batching="random" if rank else BATCHING),
    "broken cost": lambda rank: made(batching=broken_cost(rank)),
    "another's state": lambda rank: made().resume(another_state(rank)),
    "no state": lambda rank: made().resume({} if rank else another_state(0)),
    "windows": lambda rank: lw.torch.WindowSampler([6, 6 - 6 * rank], BATCHING, window=4, block=2),
    "evaluation": lambda rank: evaluation(longest=9 - 9 * rank),
}


def end_early():
    """A run of two ranks whose torch.distributed ends in mid-epoch: each goes on alone, as if the other were lost."""
    sampler = made()
    loader = lw.torch.DataLoader(range(10), sampler, collate_fn=list)
    taken = [batch for _, batch in zip(range(3), loader, strict=False)]
    distributed.destroy_process_group()
    os.environ["WORLD_SIZE"] = "1"
    state = loader.state_dict()
    sampler.resume(state)
    return {"runs": state["runs"], "taken": taken, "rest": list(sampler)}


def scenarios():
    began, rank = time.monotonic(), int(os.environ["RANK"])
    answers = start_late(rank)
    answers["disagreements"] = {name: complaint(lambda: act(rank)) for name, act in DISAGREEMENTS.items()}  # noqa: B023
    answers["failures"] = {name: complaint(lambda: act(rank)) for name, act in FAILURES.items()}  # noqa: B023
    answers["agreement"] = complaint(lambda: made().resume(state_after(3)))
    answers["gathered"] = evaluate(evaluation())
    return answers | {"ended": end_early(), "seconds": time.monotonic() - began}


@pytest.fixture(scope="module")
def ranks():
    return ask_ranks(scenarios, start=False)


def shares(after=()):
    plan = lw.make_plan(LENGTHS, BATCHING, seed=1, world_size=2, after=after)
    return [[batch.tolist() for batch in plan.batches(rank)] for rank in range(2)]


def test_a_late_start_gives_each_rank_its_share_and_keeps_a_position(ranks):
    # Of two ranks' 4 of 10 sequences, 6 are left.
    assert [rank["alone"] for rank in ranks] == [[(0, 1, 10), (0, 1, 8), (0, 1, 3)]] * 2
    assert [rank["places"] for rank in ranks] == [[(number, 2, 5), (number, 2, 2)] for number in range(2)]
    assert [rank["share"] for rank in ranks] == shares()
    assert [rank["resumed"] for rank in ranks] == [(2, 5, share[2:]) for share in shares()]


def test_outputs_of_an_evaluation_are_gathered_from_the_ranks(ranks):
    for rank in ranks:
        assert rank["gathered"] == rank["late evaluation"] == [0, 1, 2, 3, 4]


def test_what_was_not_compared_before_is_with_the_first_batch(ranks):
    for rank in ranks:
        assert rank["another seed"].startswith(f"{MISMATCH}: `seed` must be what rank 0 has, 0, but is 1 at rank 1. ")
        assert rank["other lengths"].startswith(f"{MISMATCH}: `lengths` must be what rank 0 has, ")
        assert rank["other runs"].startswith(f"{MISMATCH}: `runs` must be what rank 0 has, [(2, 1, 1)], but")


@pytest.mark.parametrize("fact", DISAGREEMENTS)
def test_ranks_that_disagree_are_refused_on_every_rank(ranks, fact):
    first, second = (rank["disagreements"][fact] for rank in ranks)
    assert first == second
    assert first.startswith(f"{MISMATCH}: `{fact}` must be what rank 0 has, ")
    of_a_plan = "lengths, batching, seed, micro_batches, times and"
    given = "lengths, cut, cost and balance" if fact.startswith("cut") else of_a_plan
    assert f" at rank 1. Give every rank the same {given}" in first


@pytest.mark.parametrize("case", FAILURES)
def test_a_rank_that_fails_alone_fails_on_every_rank(ranks, case):
    waiting, failing = (rank["failures"][case] for rank in ranks)
    assert failing.split(":")[0] in ("TypeError", "ValueError", MISMATCH)
    assert waiting == f"{MISMATCH}: Rank 1 could not make its plan. {failing}"


def test_ranks_that_agree_are_not_refused_and_nobody_waits(ranks):
    assert [rank["agreement"] for rank in ranks] == ["none"] * 2
    assert max(rank["seconds"] for rank in ranks) < 60


def test_a_state_is_of_the_ranks_that_took_the_batches(ranks):
    for rank, share in zip(ranks, shares(), strict=True):
        assert rank["ended"]["runs"] == [[2, 1, 3]]
        assert rank["ended"]["taken"] == share[:3]
    taken = [batch for rank in ranks for batch in rank["ended"]["taken"]]
    for rank in ranks:
        assert sorted(number for batch in taken + rank["ended"]["rest"] for number in batch) == list(range(10))


def test_one_rank_that_starts_late_is_compared_with_itself(tmp_path):
    sampler = made()
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert sorted(sampler) == [[number] for number in range(10)]
    finally:
        distributed.destroy_process_group()


@pytest.mark.parametrize(("make", "share"), [(made, 5), (evaluation, 2)], ids=["training", "evaluation"])
def test_processes_that_were_started_as_ranks_but_do_not_talk_are_refused(monkeypatch, make, share):
    monkeypatch.setenv("WORLD_SIZE", "2")
    sampler = make()
    with pytest.raises(ValueError, match=r"^torch\.distributed is not started in one of 2 processes \(WORLD_SIZE\)\."):
        next(iter(sampler))
    assert len(list(make(rank=1, world_size=2))) == share
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(list(sampler)) > share
