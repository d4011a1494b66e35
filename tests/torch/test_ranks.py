"""The sampler and torch.distributed: a late start, an early end, and ranks that disagree."""

import json
import time
from datetime import timedelta
from math import nan

import pytest
from torch import distributed

import lengthwise as lw
from ranks import run_ranks

pytestmark = pytest.mark.processes

PATIENCE = 60  # seconds after which a hang is a failure
LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3, 8, 6]
MISMATCH = "PlanMismatchError"
BATCHING = lw.Batching(cut=lw.FixedSize(1))


def made(**changed):
    return lw.torch.BatchSampler(**({"lengths": LENGTHS, "batching": BATCHING, "seed": 1} | changed))


def complaint(act):
    """What `act` is refused with; it must not take the time that a hang takes."""
    try:
        act()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def state_after(taken, epoch=0):
    """Of a run on two ranks."""
    sampler = made(rank=0, world_size=2)
    sampler.set_epoch(epoch)
    return sampler.state_after(taken)


def late(rank, begin):
    """Samplers that are made before torch.distributed runs, one of them with a position."""
    sampler, resumed, other = made(), made(), made(seed=rank)
    resumed.resume(state_after(2))
    alone = len(sampler), len(resumed), resumed.start
    begin()
    found = {"alone": alone, "places": (sampler.rank, sampler.world_size, len(sampler))}
    found["resumed"] = (resumed.start, len(resumed), list(resumed))
    return found | {"share": list(sampler), "another seed": complaint(lambda: list(other))}


def disagreements(rank):
    """Each refused on both ranks, or else the next collective would hang."""
    longer = [*LENGTHS[:-1], 6 + rank]
    cases = {
        "seed": lambda: made(seed=rank),
        "lengths": lambda: made(lengths=longer),
        "times": lambda: made(times=None if rank else 2.5),
        "batching": lambda: made(batching=lw.Batching(cut=lw.FixedSize(1 + rank))),
        "micro_batches": lambda: made(micro_batches=1 + rank),
        "runs": lambda: made().resume(state_after(1 + rank)),
        "epoch": lambda: made().resume(state_after(1, epoch=rank)),
        "nothing": lambda: made().resume(state_after(3)),
    }
    return {name: complaint(act) for name, act in cases.items()}


def failures(rank):
    """Rank 1 fails before there is anything to compare; rank 0 would wait for it."""
    zero = [*LENGTHS[:-1], 6 * (1 - rank)]
    other = made(seed=1 + rank, rank=0, world_size=1).state_after(0)
    broken = lw.Batching(cut=lw.FixedSize(1), cost=lambda counts, _: counts * (nan if rank else 1.0))
    cases = {
        "zero length": lambda: made(lengths=zero),
        "no batching": lambda: made(batching=BATCHING if rank == 0 else "random"),
        "broken cost": lambda: made(batching=broken),
        "another's state": lambda: made().resume(other),
        "no state": lambda: made().resume(other if rank == 0 else {}),
        "windows": lambda: lw.torch.WindowSampler(zero, BATCHING, window=4, block=2),
        "evaluation": lambda: lw.torch.EvaluationSampler(zero, lw.FixedSize(2)),
    }
    return {name: complaint(act) for name, act in cases.items()}


def ended():
    """A run of two ranks whose torch.distributed ends in mid-epoch: each goes on alone, as if the other were lost."""
    sampler = made()
    loader = lw.torch.DataLoader(range(10), sampler, collate_fn=list)
    got = [batch for _, batch in zip(range(3), loader, strict=False)]
    distributed.destroy_process_group()
    state = loader.state_dict()
    sampler.resume(state)
    return {"runs": state["runs"], "got": got, "rest": list(sampler)}


def scenarios(rank, begin):
    began = time.monotonic()
    found = late(rank, begin) | disagreements(rank) | {"failures": failures(rank)}
    return found | {"ended": ended(), "seconds": time.monotonic() - began}


def run_rank(rank, folder):
    def begin():
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=2,
            timeout=timedelta(seconds=PATIENCE),
        )

    (folder / f"rank{rank}.json").write_text(json.dumps(scenarios(rank, begin)))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of two gloo ranks found."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks(run_rank, folder)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def shares(after=()):
    plan = lw.make_plan(LENGTHS, BATCHING, seed=1, world_size=2, after=after)
    return [[batch.tolist() for batch in plan.batches(rank)] for rank in range(2)]


def test_a_late_start_gives_each_rank_its_share(ranks):
    assert [rank["alone"] for rank in ranks] == [[10, 8, 2]] * 2  # of two ranks' 4 of 10 sequences, 6 are left
    assert [rank["places"] for rank in ranks] == [[0, 2, 5], [1, 2, 5]]
    assert [rank["share"] for rank in ranks] == shares()


def test_a_position_survives_a_late_start(ranks):
    assert [rank["resumed"] for rank in ranks] == [[2, 5, share[2:]] for share in shares()]


def test_what_was_not_compared_before_is_with_the_first_batch(ranks):
    for rank in ranks:
        assert rank["another seed"].startswith(f"{MISMATCH}: `seed` must be what rank 0 has, 0, but is 1 at rank 1. ")


@pytest.mark.parametrize(
    "fact", ["seed", "lengths", "times", "batching.cut.batch_size", "micro_batches", "runs", "epoch"]
)
def test_ranks_that_disagree_are_refused_on_every_rank(ranks, fact):
    first, second = (rank[fact.split(".")[0]] for rank in ranks)
    assert first == second
    assert first.startswith(f"{MISMATCH}: `{fact}` must be what rank 0 has, ")
    assert first.endswith(
        " at rank 1. Give every rank the same lengths, batching, seed, micro_batches, times and checkpoint."
    )


@pytest.mark.parametrize(
    "case", ["zero length", "no batching", "broken cost", "another's state", "no state", "windows", "evaluation"]
)
def test_a_rank_that_fails_alone_fails_on_every_rank(ranks, case):
    waiting, failing = (rank["failures"][case] for rank in ranks)
    assert failing.split(":")[0] in ("TypeError", "ValueError", MISMATCH)
    assert waiting == f"{MISMATCH}: `plan` must be made on every rank, but is 'refused' at rank 1. {failing}"


def test_ranks_that_agree_are_not(ranks):
    assert [rank["nothing"] for rank in ranks] == ["none"] * 2
    assert max(rank["seconds"] for rank in ranks) < PATIENCE / 2


def test_a_state_is_of_the_ranks_that_took_the_batches(ranks):
    for rank, share in zip(ranks, shares(), strict=True):
        assert rank["ended"]["runs"] == [[2, 1, 3]]
        assert rank["ended"]["got"] == share[:3]
    got = [batch for rank in ranks for batch in rank["ended"]["got"]]
    for rank in ranks:
        assert sorted(number for batch in got + rank["ended"]["rest"] for number in batch) == list(range(10))


def test_one_rank_that_starts_late_is_compared_with_itself(tmp_path):
    sampler = made()
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert sorted(sampler) == [[number] for number in range(10)]
    finally:
        distributed.destroy_process_group()


def test_processes_that_were_started_as_ranks_but_do_not_talk_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    sampler = made()
    with pytest.raises(ValueError, match=r"`torch.distributed` must be started, .* but is 'WORLD_SIZE=2'\. Call"):
        next(iter(sampler))
    assert len(list(made(rank=1, world_size=2))) == 5
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(list(sampler)) == 10
