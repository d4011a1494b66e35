"""Groups of ranks: four processes in two tensor-parallel pairs, of which each pair takes the same batches."""

import copy
import itertools
import pickle

import pytest
import torch
from streams import names, shards_of, stream_of
from torch import distributed

import lengthwise as lw
from ranks import run_ranks

BUDGET = lw.Batching(budget=400)
LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3, 8, 6]
COUNTS = ([40, 31, 25, 12], [60, 0, 7])
REPLICAS = {0: 0, 1: 0, 2: 1, 3: 1}  # the processes 0 and 1 are the pair that is rank 0 of data parallelism
TAKEN = 3


def data_parallel(rank):
    """The group of this process among [0, 2] and [1, 3], as `mesh["dp"].get_group()` gives it."""
    groups = [distributed.new_group([0, 2]), distributed.new_group([1, 3])]  # each process makes both
    return groups[rank % 2], groups[1 - rank % 2]


def on_four_ranks(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=4)
    try:
        group, other = data_parallel(rank)
        found = {
            "streams": [read(group, counts) for counts in COUNTS],
            "samplers": [
                list(lw.torch.BatchSampler(LENGTHS, BUDGET, group=group)),
                list(lw.torch.WindowSampler(LENGTHS, BUDGET, window=4, block=2, group=group)),
            ],
            "order": restore(group),
            "refusals": refusals(rank, group, other),
            "copies": copies(group),
        }
    finally:
        distributed.destroy_process_group()
    with pytest.raises(ValueError, match="process group"):
        stream_of(shards_of([9, 9]), BUDGET, group=group)
    torch.save(found, folder / f"{rank}.pt")


def read(group, counts):
    """What each batch of a stream holds, its scale, and the state after some of them."""
    stream = stream_of(shards_of(counts), BUDGET, group=group)
    found = []
    for batch in stream:
        found.append((names([batch])[0], stream.loss_scale))
        if len(found) == TAKEN:
            state = stream.state_dict()
    return found, state


def restore(group):
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2), group=group)
    return sampler.restore_order([number for batch in sampler for number in batch])


def refusals(rank, group, other):
    """What is refused; where one group fails, the other goes on."""
    replica = REPLICAS[rank]
    cases = {
        "two ways": lambda: stream_of(shards_of([9]), BUDGET, rank=replica, world_size=2, group=group),
        "no group": lambda: stream_of(shards_of([9]), BUDGET, rank=replica, world_size=2),
        "not a member": lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, group=other),
        "one group": lambda: list(
            stream_of(shards_of([9, 9]), BUDGET, weight=lambda _: 1 if rank != 3 else -1, group=group)
        ),
        "one seed": lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, seed=int(rank == 3), group=group),
        "one evaluation": lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(1 + (rank == 3)), group=group),
        "one plan": lambda: lw.torch.BatchSampler(LENGTHS, BUDGET if rank != 3 else None, group=group),
        "few shards": lambda: list(stream_of(shards_of([9]), BUDGET, group=group)),
    }
    return {name: complaint(act) for name, act in cases.items()}


def complaint(act):
    try:
        act()
    except (TypeError, ValueError) as error:
        return str(error)
    return "none"


def copies(group):
    """Samplers that were copied or pickled keep their rank, and communicate with nobody."""
    sampler = lw.torch.BatchSampler(LENGTHS, BUDGET, group=group)
    alike = [copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))]
    if distributed.get_rank() == 0:  # a collective would wait for the others
        alike[0].resume(sampler.state_after(0))
    batches = list(sampler)
    stream = pickle.loads(pickle.dumps(stream_of(shards_of([9, 9]), BUDGET, group=group)))
    return [list(other) == batches for other in alike], complaint(lambda: list(stream))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of four gloo ranks found."""
    folder = tmp_path_factory.mktemp("pairs")
    run_ranks(on_four_ranks, folder, world_size=4)
    return [torch.load(folder / f"{rank}.pt") for rank in range(4)]


@pytest.mark.processes
@pytest.mark.parametrize("case", range(len(COUNTS)))
def test_a_pair_takes_the_same_batches_and_two_pairs_share_the_stream(ranks, case):
    found = [rank["streams"][case] for rank in ranks]
    assert found[0] == found[1]
    assert found[2] == found[3]
    pairs = [found[0][0], found[2][0]]
    assert len(pairs[0]) == len(pairs[1])
    taken = sorted(name for pair in pairs for batch, scale in pair if scale for name in batch)
    assert taken == sorted(name for shard in shards_of(COUNTS[case]) for name, _ in shard)
    assert all(
        sum(scales) == pytest.approx(2) for scales in zip(*([s for _, s in pair] for pair in pairs), strict=True)
    )


@pytest.mark.processes
def test_the_state_of_two_pairs_is_that_of_two_ranks(ranks):
    """One process goes on with what both pairs left."""
    assert ranks[0]["streams"][0][1] == ranks[2]["streams"][0][1]
    taken = [
        name for rank in (0, 2) for batch, scale in ranks[rank]["streams"][0][0][:TAKEN] if scale for name in batch
    ]
    stream = stream_of(shards_of(COUNTS[0]), BUDGET)
    stream.load_state_dict(ranks[0]["streams"][0][1])
    taken += [name for batch in names(stream) for name in batch]
    assert sorted(taken) == sorted(name for shard in shards_of(COUNTS[0]) for name, _ in shard)


@pytest.mark.processes
def test_samplers_take_the_share_of_their_rank_within_the_group(ranks):
    for rank, found in enumerate(ranks):
        replica = {"rank": REPLICAS[rank], "world_size": 2}
        assert found["samplers"] == [
            list(lw.torch.BatchSampler(LENGTHS, BUDGET, **replica)),
            list(lw.torch.WindowSampler(LENGTHS, BUDGET, window=4, block=2, **replica)),
        ]
        assert found["order"] == list(range(len(LENGTHS)))
        assert found["copies"][0] == [True] * 2


@pytest.mark.processes
def test_a_group_that_fails_does_not_stop_the_other(ranks):
    for case in ("one group", "one seed", "one evaluation", "one plan"):
        said = [rank["refusals"][case] for rank in ranks]
        assert said[0] == said[2] == "none", case
        assert said[1] != "none", case
        assert said[3] != "none", case


@pytest.mark.processes
@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("two ways", "`group` must be given in place of rank and world_size, but is 'beside rank={}'. Leave rank and"),
        ("no group", "`group` must be given in place of rank and world_size by 2 ranks, which tell each other the"),
        ("not a member", "`group` must be a process group of torch.distributed that this process is in, but is -100."),
        ("few shards", "`shards` must be at least one for each of the 2 ranks, but is 1."),
    ],
)
def test_what_is_no_group_of_this_rank_is_refused(ranks, case, told):
    for rank, found in enumerate(ranks):
        assert found["refusals"][case].startswith(told.format(REPLICAS[rank]))


@pytest.mark.processes
def test_a_pickled_stream_of_several_ranks_has_nobody_to_talk_to(ranks):
    for rank in ranks:
        refusal = rank["copies"][1]
        assert refusal.startswith("`world_size` must be that of the ranks that meet, in all of a pass, but is 2. ")


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ({"rank": 0}, "`rank` must be given together with world_size, but is 'rank=0, world_size=None'. Give both"),
        ({"world_size": 2}, "`rank` must be given together with world_size, but is 'rank=None, world_size=2'."),
        ({"rank": 2, "world_size": 2}, "`rank` must be at most 1, but is 2. Ranks count from 0 to world_size - 1."),
        ({"rank": -1, "world_size": 2}, "`rank` must be at least 0, but is -1."),
        ({"rank": 1.0, "world_size": 2}, "`rank` must be a whole number, but is 1.0."),
        ({"rank": 0, "world_size": 0}, "`world_size` must be at least 1, but is 0."),
        ({"group": [0, 2]}, "`group` must be a process group of torch.distributed that this process is in, but is [0"),
    ],
    ids=str,
)
def test_samplers_and_streams_check_their_ranks_alike(places, told):
    for make in (
        lambda: lw.torch.BatchSampler(LENGTHS, BUDGET, **places),
        lambda: lw.torch.WindowSampler(LENGTHS, BUDGET, **places),
        lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2), **places),
        lambda: stream_of(shards_of([9, 9]), BUDGET, **places),
    ):
        assert complaint(make).startswith(told)


def alone_on_two_ranks(rank, folder):
    """Each process reads the whole stream alone; one that waits for none may be the only one that reads."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    try:
        if rank == 0:
            alone = names(stream_of(shards_of([40, 9]), BUDGET, rank=0, world_size=1))
            assert sorted(itertools.chain(*alone)) == sorted(name for shard in shards_of([40, 9]) for name, _ in shard)
    finally:
        distributed.destroy_process_group()


@pytest.mark.processes
def test_a_stream_whose_rank_is_given_communicates_with_nobody(tmp_path):
    run_ranks(alone_on_two_ranks, tmp_path)


def leave_within_a_pass(rank, folder):
    stream = stream_of(shards_of([90, 90]), BUDGET)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    batches = iter(stream)
    next(batches)
    distributed.destroy_process_group()
    with pytest.raises(
        ValueError, match=r"^`world_size` must be that of the ranks that meet, in all of a pass, but is 1\. Let the"
    ):
        list(batches)


@pytest.mark.processes
def test_torch_distributed_may_not_end_within_a_pass(tmp_path):
    run_ranks(leave_within_a_pass, tmp_path)
