"""Groups of ranks: four processes in two tensor-parallel pairs. The two of a pair take the same batches."""

import copy
import pickle

import pytest
from streams import BUDGET, names, shards_of, stream_of
from torch import distributed

import lengthwise as lw
from ranks import ask_ranks, complaint

LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3, 8, 6]
COUNTS = ([40, 31, 25, 12], [60, 0, 7])
REPLICAS = {0: 0, 1: 0, 2: 1, 3: 1}  # the processes 0 and 1 are the pair that is rank 0 of data parallelism
TAKEN = 3


def read(group, counts):
    """The names and the scale of each batch of a stream, and the state after some of them."""
    stream = stream_of(shards_of(counts), group=group)
    batches, states = [], []
    for batch in stream:
        batches.append((names([batch])[0], stream.loss_scale))
        states.append(stream.state_dict())
    return batches, states[TAKEN - 1]


def restore(group):
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2), group=group)
    return sampler.restore_order([number for batch in sampler for number in batch])


def refusals(rank, group, other):
    """The errors of each case; where one group fails, the other goes on."""
    replica, is_last = REPLICAS[rank], rank == 3
    negative = {"weight": lambda _: -1 if is_last else 1}
    cases = {
        "two ways": lambda: stream_of(shards_of([9]), rank=replica, world_size=2, group=group),
        "no group": lambda: stream_of(shards_of([9]), rank=replica, world_size=2),
        "not a member": lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, group=other),
        "few shards": lambda: list(stream_of(shards_of([9]), group=group)),
        "one stream": lambda: list(stream_of(shards_of([9, 9]), group=group, **negative)),
        "one seed": lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, seed=int(is_last), group=group),
        "one evaluation": lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(1 + is_last), group=group),
        "one plan": lambda: lw.torch.BatchSampler(LENGTHS, None if is_last else BUDGET, group=group),
    }
    return {name: complaint(act) for name, act in cases.items()}


def copies(group):
    """Samplers that were copied or pickled keep their rank, and communicate with nobody."""
    sampler = lw.torch.BatchSampler(LENGTHS, BUDGET, group=group)
    alike = [copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))]
    if distributed.get_rank() == 0:  # a collective would wait for the others
        alike[0].resume(sampler.state_after(0))
    batches = list(sampler)
    stream = pickle.loads(pickle.dumps(stream_of(shards_of([9, 9]), group=group)))
    return [list(other) == batches for other in alike], complaint(lambda: list(stream))


def on_four_ranks():
    rank = distributed.get_rank()
    groups = [distributed.new_group([0, 2]), distributed.new_group([1, 3])]  # each process makes both
    group, other = groups[rank % 2], groups[1 - rank % 2]
    answers = {
        "streams": [read(group, counts) for counts in COUNTS],
        "samplers": [
            list(lw.torch.BatchSampler(LENGTHS, BUDGET, group=group)),
            list(lw.torch.WindowSampler(LENGTHS, BUDGET, window=4, block=2, group=group)),
        ],
        "order": restore(group),
        "refused": refusals(rank, group, other),
        "copies": copies(group),
    }
    distributed.destroy_process_group()
    return answers | {"ended": complaint(lambda: stream_of(shards_of([9, 9]), group=group))}


@pytest.fixture(scope="module")
def ranks():
    return ask_ranks(on_four_ranks, world_size=4)


@pytest.mark.processes
@pytest.mark.parametrize("case", range(len(COUNTS)))
def test_a_pair_takes_the_same_batches_and_two_pairs_share_the_stream(ranks, case):
    found = [rank["streams"][case] for rank in ranks]
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[0][1] == found[2][1]
    pairs = [found[0][0], found[2][0]]
    everything = sorted(name for shard in shards_of(COUNTS[case]) for name, _ in shard)
    assert sorted(name for pair in pairs for batch, scale in pair if scale for name in batch) == everything
    assert all(first[1] + second[1] == pytest.approx(2) for first, second in zip(*pairs, strict=True))
    # One process goes on with what both pairs left.
    taken = [name for pair in pairs for batch, scale in pair[:TAKEN] if scale for name in batch]
    stream = stream_of(shards_of(COUNTS[case]))
    stream.load_state_dict(found[0][1])
    assert sorted(taken + [name for batch in names(stream) for name in batch]) == everything


@pytest.mark.processes
def test_samplers_take_the_share_of_their_rank_within_the_group_and_copies_too(ranks):
    for rank, answers in enumerate(ranks):
        replica = {"rank": REPLICAS[rank], "world_size": 2}
        assert answers["samplers"] == [
            list(lw.torch.BatchSampler(LENGTHS, BUDGET, **replica)),
            list(lw.torch.WindowSampler(LENGTHS, BUDGET, window=4, block=2, **replica)),
        ]
        assert answers["order"] == list(range(len(LENGTHS)))
        alike, refusal = answers["copies"]
        assert alike == [True] * 2
        assert "The ranks have exchanged the lengths of 1 of 2 shards. " in refusal
        assert "process group" in answers["ended"]


@pytest.mark.processes
def test_a_group_that_fails_does_not_stop_the_other(ranks):
    for case in ("one stream", "one seed", "one evaluation", "one plan"):
        assert [rank["refused"][case] == "none" for rank in ranks] == [True, False, True, False], case


@pytest.mark.processes
@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("two ways", "`group` and `rank` are both given. Leave rank and"),
        ("no group", "The 2 ranks of a stream exchange lengths, for which rank and world_size are not enough. Give"),
        ("not a member", "`group` must be a process group of torch.distributed that this process is in, but is -100."),
        ("few shards", "`shards` must be at least one for each of the 2 ranks, but is 1."),
    ],
)
def test_what_is_no_group_of_this_rank_is_refused(ranks, case, said):
    for rank, answers in enumerate(ranks):
        assert said.format(REPLICAS[rank]) in answers["refused"][case]


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"rank": 0}, "`rank` and `world_size` belong together, but are 0 and None. Give both"),
        ({"world_size": 2}, "`rank` and `world_size` belong together, but are None and 2."),
        ({"rank": 2, "world_size": 2}, "`rank` must be at most 1, but is 2. Ranks count from 0 to world_size - 1."),
        ({"rank": 1.0, "world_size": 2}, "`rank` must be a whole number, but is 1.0."),
        ({"rank": 0, "world_size": 0}, "`world_size` must be at least 1, but is 0."),
        ({"rank": 0, "world_size": 2**30}, "`world_size x micro_batches` must be at most 1048576 batches in a step"),
        ({"group": [0, 2]}, "`group` must be a process group of torch.distributed that this process is in, but is [0"),
    ],
    ids=str,
)
def test_samplers_and_streams_check_their_ranks_alike(places, said):
    for make in (
        lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, **places),
        lambda: lw.torch.WindowSampler(LENGTHS, BUDGET, **places),
        lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2), **places),
        lambda: stream_of(shards_of([9, 9]), **places),
    ):
        assert f"Error: {said}" in complaint(make)
