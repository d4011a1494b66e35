"""Streams on ranks that talk: as many batches on each, each sequence once, on other ranks too, and failures on all."""

import itertools
import os
import threading
from collections import Counter

import pytest
from streams import BUDGET, length, names, samples, shards_of, stream_after, stream_of
from torch import distributed

import lengthwise as lw
from ranks import ask_ranks, begin, complaint

pytestmark = pytest.mark.processes

COUNTS = ([60, 60], [90, 3], [40, 0, 7], [0, 50])
LONG = lw.Batching(budget=4_000)


def read_all(stream):
    """The names and the scale of each batch, and the states after them."""
    taken = [(([name for name, _ in batch], stream.loss_scale), stream.state_dict()) for batch in stream]
    return zip(*taken, strict=True)


def keep_company():
    """Only rank 1 has nothing within the budget in some window: it takes a sequence of the other that is within it."""
    drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
    shards = [[(0, 5_000), *samples(30, first=1)], [(100, 5_000), (101, 9)], [(200, 5_000)], [(300, 5_000)]]
    return list(stream_of(shards, drop, buffer=200))


class Broken:
    def __iter__(self):
        yield from samples(10)
        raise OSError("the disk is gone")


def weigh(sample):
    if sample[0] == "bad":
        raise KeyError("no such")
    return next(iter([])) if sample[0] == "stop" else 1.0


def elsewhere(epoch):
    stream = stream_of(shards_of([20, 20]), LONG)
    stream.set_epoch(epoch)
    return list(stream)


def failures(rank, alone):
    """Returns the errors of ranks that disagree, or fail alone.

    Args:
        rank: The rank of this process.
        alone: The state of a run on one rank, over samples that only this rank has.
    """
    start = stream_of(shards_of([20, 20]), LONG).state_dict()
    cases = {
        "broken": lambda: list(stream_of([samples(50), Broken()], LONG)),
        "epoch": lambda: elsewhere(1 + rank),
        "runs": lambda: list(stream_after(start | {"runs": [[2, 1, 1]] * rank}, shards_of([20, 20]), LONG)),
        "micro_batches": lambda: list(stream_of(shards_of([20, 20]), LONG, micro_batches=1 + rank)),
        "no pickle": lambda: list(stream_of([[(threading.Lock(), 5) for _ in range(30)], []])),
        "bad weight": lambda: list(stream_of([samples(30), [("bad", 3)]], weight=weigh)),
        "stop": lambda: list(stream_of([samples(30), [("stop", 3)]], weight=weigh)),
        "lengths": lambda: list(stream_after(alone, [samples(30, seed=rank), samples(30, seed=9)])),
        "two lengths": lambda: list(stream_of([samples(30), [(1, (2, 3))]])),
    }
    said = {}
    for name, act in cases.items():
        try:
            act()
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def pop_all(batch):
    return [batch.pop() for _ in range(len(batch))]


def leave_within_a_pass(late):
    batches = iter(late)
    next(batches)
    distributed.destroy_process_group()
    os.environ["WORLD_SIZE"] = "1"
    return complaint(lambda: list(batches))


def on_two_ranks():
    rank = int(os.environ["RANK"])
    os.environ["WORLD_SIZE"] = "1"
    begun, late = stream_of([samples(30, seed=rank), samples(30, seed=9)]), stream_of(shards_of([90, 90]))
    next(iter(begun))
    alone = begun.state_dict()
    os.environ["WORLD_SIZE"] = "2"
    begin()
    answers = {"whole": [read_all(stream_of(shards_of(counts), micro_batches=2)) for counts in COUNTS]}
    answers["company"] = keep_company()
    # Rank 1 takes the same sample in every step: what is done to a list of it changes no later one.
    popped = lw.torch.StreamBatches([samples(30), []], BUDGET, length=length, collate_fn=pop_all, buffer=40)
    answers["popped"] = all(popped)
    answers["failures"] = failures(rank, alone)
    if rank == 0:  # a stream whose rank is given communicates with nobody
        answers["given"] = names(stream_of(shards_of([40, 9]), rank=0, world_size=1))
    answers["left"] = leave_within_a_pass(late)
    return answers


@pytest.fixture(scope="module")
def two():
    return ask_ranks(on_two_ranks, start=False)


@pytest.mark.parametrize("case", range(len(COUNTS)))
def test_two_ranks_take_as_many_batches_and_every_sequence_once(two, case):
    ranks, states = zip(*(answers["whole"][case] for answers in two), strict=True)
    assert len(ranks[0]) == len(ranks[1])
    assert len(ranks[0]) % 2 == 0
    assert states[0] == states[1]
    taken = Counter(name for batches in ranks for batch, scale in batches if scale for name in batch)
    assert taken == {name: 1 for shard in shards_of(COUNTS[case]) for name, _ in shard}
    for step in range(0, len(ranks[0]), 2):  # the scales of a step are shares of it, times the ranks
        assert sum(scale for batches in ranks for _, scale in batches[step : step + 2]) == pytest.approx(2)


def test_a_rank_keeps_company_with_a_sequence_within_the_budget(two):
    for answers in two:
        assert len(answers["company"]) > 1
        assert all(len(batch) * max(length for _, length in batch) <= 400 for batch in answers["company"])
        assert answers["popped"]


FAILURES = {  # what is said on rank 0, and on rank 1
    "broken": ("PlanMismatchError: Rank 1 could not make its plan. OSError: the disk is gone", "OSError: the disk is"),
    "epoch": ("PlanMismatchError: `epoch` must be what rank 0 has, 1, but is 2 at rank 1. Give every rank all",) * 2,
    "runs": ("PlanMismatchError: `runs` must be what rank 0 has, ",) * 2,
    "micro_batches": ("PlanMismatchError: `micro_batches` must be what rank 0 has, 1, but is 2 at rank 1. ",) * 2,
    "no pickle": (
        "TypeError: A sample for the ranks without one in a window cannot be pickled (",
        "PlanMismatchError: Rank 0 could not make its plan. TypeError: ",
    ),
    "bad weight": (
        "PlanMismatchError: Rank 1 could not make its plan. KeyError: 'no such'; "
        "`weight` raised this at sequence 0 of shard 1, ('bad', 3).",
        "KeyError: 'no such'",
    ),
    "stop": ("PlanMismatchError: ", "RuntimeError: generator raised StopIteration"),
    "lengths": ("PlanMismatchError: `lengths` must be what rank 0 has, ",) * 2,
    "two lengths": ("ValueError: `lengths` must be a list of numbers, or of rows",) * 2,
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_one_rank_alone_has_or_lacks_fails_on_all(two, case):
    for answers, said in zip(two, FAILURES[case], strict=True):
        assert answers["failures"][case].startswith(said)


def test_a_stream_whose_rank_is_given_communicates_with_nobody(two):
    assert sorted(itertools.chain(*two[0]["given"])) == [*range(40), *range(1_000, 1_009)]


def test_torch_distributed_may_not_end_within_a_pass(two):
    said = "ValueError: The ranks have exchanged the lengths of "
    assert all(answers["left"].startswith(said) for answers in two)


TAKEN = (1, 5, 11)  # batches that each of three ranks has when the run is killed
LEFT = [40, 31, 25, 12, 30, 6]


def first_run():
    answers = []
    for batches in TAKEN:
        stream = stream_of(shards_of(LEFT))
        taken = [name for batch in itertools.islice(stream, batches) if stream.loss_scale for name, _ in batch]
        answers.append((taken, stream.state_dict()))
    return answers


def second_run(states):
    answers = []
    for state in states:
        stream = stream_after(state, shards_of(LEFT))
        answers.append([name for batch in stream if stream.loss_scale for name, _ in batch])
    return answers


def test_a_killed_run_of_three_ranks_goes_on_with_two():
    first = ask_ranks(first_run, world_size=3)
    states = [state for _, state in first[0]]
    assert all([state for _, state in rank] == states for rank in first)
    second = ask_ranks(second_run, states)
    for case in range(len(TAKEN)):
        taken = [name for rank in first for name in rank[case][0]] + [name for rank in second for name in rank[case]]
        assert sorted(taken) == sorted(name for shard in shards_of(LEFT) for name, _ in shard)
