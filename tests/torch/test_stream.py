"""Batches of streams: every promise in every window, on ranks, resumed in the middle, also on other ranks."""

import collections
import itertools
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import length, names, samples, shards_of, stream_of
from torch import distributed

import lengthwise as lw
from lengthwise.choices.deal import World
from lengthwise.planning.resume import EarlierRun
from lengthwise.torch.window import Window, deliver
from ranks import run_ranks

BATCHINGS = {
    "budget": lw.Batching(budget=400),
    "fixed": lw.Batching(cut=lw.FixedSize(4), padding=0.1),
    "sorted": lw.Batching(cut=lw.FixedSize(3), order=lw.Sorted()),
    "buckets": lw.Batching(cut=lw.Budget(500), order=lw.Bucketed(edges=(50, 200), pad_to_edge=True)),
    "rows": lw.Batching(cut=lw.Rows(400, rows=2)),
    "rows of two": lw.Batching(cut=lw.Rows(400, rows=3, max_in_row=2)),
}


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_every_sequence_comes_once_within_the_budget(batching, micro_batches):
    shards = shards_of([37, 90, 5])
    stream = stream_of(shards, batching, micro_batches=micro_batches)
    found = list(stream)
    once = collections.Counter(name for batch in found for name, _ in batch)
    # With micro-batches a window may be too short for a step: some stand twice then, scaled by 0 the second time.
    assert set(once) == {name for shard in shards for name, _ in shard}
    if micro_batches == 1:
        assert set(once.values()) == {1}
    if getattr(batching.cut, "max_in_row", None) == 2:
        assert all(len(batch) <= 3 * 2 for batch in found)
    if (budget := batching.budget) is not None:
        assert all(len(batch) * max(length for _, length in batch) <= budget for batch in found)
    assert len(found) % micro_batches == 0


def test_a_sequence_waits_for_two_windows_at_most():
    shard = samples(200)
    read = itertools.count()

    class Watched:
        def __iter__(self):
            for sample in shard:
                next(read)
                yield sample

    stream = stream_of([Watched()], BATCHINGS["budget"], buffer=50)
    for batch in stream:
        now = int(repr(read)[6:-1])
        assert all(now - name <= 100 for name, _ in batch)


def test_the_next_window_is_read_while_this_one_is_delivered():
    taken = []

    class Noting:
        def __iter__(self):
            for sample in samples(120):
                taken.append(sample)
                yield sample

    counts = []
    for _ in stream_of([Noting()], BATCHINGS["sorted"], buffer=30):
        counts.append(len(taken))
    steps = np.diff(counts)
    assert steps.max() <= 4  # 3 samples a batch


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
def test_epochs_differ_and_come_again(batching):
    stream = stream_of(shards_of([60, 60]), batching)
    epochs = []
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        epochs.append(names(stream))
    assert epochs[0] == epochs[2] != epochs[1]
    other = names(stream_of(shards_of([60, 60]), batching, seed=1))
    assert other != epochs[0]


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_it_goes_on_after_every_batch(batching, micro_batches):
    shards = shards_of([50, 33])
    whole = names(stream_of(shards, batching, micro_batches=micro_batches))
    running = stream_of(shards, batching, micro_batches=micro_batches)
    for taken, _ in enumerate(running, 1):
        resumed = stream_of(shards, batching, micro_batches=micro_batches)
        resumed.load_state_dict(running.state_dict())
        resumed.set_epoch(0)
        assert names(resumed) == whole[taken:]
    done = stream_of(shards, batching, micro_batches=micro_batches)
    done.load_state_dict(running.state_dict())
    assert list(done) == []


def test_an_epoch_that_is_taken_again_warns_once():
    stream = stream_of(shards_of([60]), BATCHINGS["budget"])
    for _ in range(3):
        next(iter(stream))  # a look
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        list(stream)
    stream = stream_of(shards_of([60]), BATCHINGS["budget"])
    for _ in itertools.islice(stream, 3):  # as of a stream without end
        pass
    with pytest.warns(match="^`epoch` must be another for every epoch, but is 0 at the second pass"):
        list(stream)
    list(stream)
    resumed = stream_of(shards_of([60]), BATCHINGS["budget"])
    resumed.load_state_dict(stream.state_dict())
    assert list(resumed) == []
    with pytest.warns(match="^`epoch` must be another for every epoch, but is 0 at the second pass"):
        list(resumed)


def test_an_epoch_that_is_left_early_warns_once():
    stream = stream_of(shards_of([60]), BATCHINGS["budget"])
    next(iter(stream))  # a look
    stream.set_epoch(1)
    for _ in itertools.islice(stream, 2):
        pass
    stream.set_epoch(1)
    next(iter(stream))
    with pytest.warns(match="^`stream` must be read to its end before the next epoch, or sequences are lost"):
        stream.set_epoch(2)
    for _ in itertools.islice(stream, 2):
        pass
    state = stream.state_dict()
    stream.set_epoch(3)  # said already
    resumed = stream_of(shards_of([60]), BATCHINGS["budget"])
    resumed.load_state_dict(state)
    next(iter(resumed))
    with pytest.warns(match="^`stream` must be read to its end before the next epoch"):
        resumed.set_epoch(3)
    list(resumed)
    resumed.set_epoch(4)


@pytest.mark.filterwarnings("ignore:`stream` must be read to its end")
def test_an_epoch_or_a_state_that_is_set_within_a_loop_is_refused():
    changes = {
        "^`epoch` must be 0 until its pass has ended, but is 1. Set": lambda stream: stream.set_epoch(1),
        "^`position` must be kept until the pass has ended, but is": lambda stream: stream.load_state_dict(
            stream.state_dict()
        ),
    }
    for message, change in changes.items():
        stream = stream_of(shards_of([60]), BATCHINGS["budget"])
        batches = iter(stream)
        next(batches)
        stream.set_epoch(0)  # the same changes nothing
        next(batches)
        change(stream)
        with pytest.raises(ValueError, match=message):
            next(batches)


def test_a_look_within_a_loop_does_not_move_its_position():
    shards = shards_of([60, 50])
    stream, taken = stream_of(shards, BATCHINGS["budget"]), []
    for place, batch in enumerate(stream):
        taken += names([batch])[0]
        state = stream.state_dict()
        next(iter(stream))
        if place == 5:
            break
    resumed = stream_of(shards, BATCHINGS["budget"])
    resumed.load_state_dict(state)
    taken += [name for batch in names(resumed) for name in batch]
    assert sorted(taken) == sorted(name for shard in shards for name, _ in shard)


@pytest.mark.parametrize("batches", [3, None])
@pytest.mark.parametrize("loaded", [1, 2])
def test_a_loop_that_begins_at_another_epoch_than_the_state_warns(loaded, batches):
    stream = stream_of(shards_of([60]), BATCHINGS["budget"])
    stream.set_epoch(loaded)
    for _ in itertools.islice(stream, batches):
        pass
    state = stream.state_dict()
    for epoch in (0, loaded + 1):
        resumed = stream_of(shards_of([60]), BATCHINGS["budget"])
        resumed.load_state_dict(state)
        if epoch and batches is None:
            resumed.set_epoch(epoch)  # the loaded epoch had ended
        else:
            sentence = f"`first epoch` must be {loaded}, that of the loaded state, but is {epoch}. Begin there, or"
            with pytest.warns(match=f"^{sentence} its position is lost: `for epoch in range"):
                resumed.set_epoch(epoch)


def test_windows_that_miss_their_padding_warn_once():
    stream = stream_of(shards_of([200]), lw.Batching(cut=lw.FixedSize(8), padding=0.01))
    with pytest.warns(match="^`padding` must be within 0.02 of what was asked") as told:
        list(stream)
    assert len(told) == 1
    stream.set_epoch(1)
    list(stream)


@pytest.mark.parametrize("order", [lw.MaxEntropy(padding=0.01), lw.MaxEntropy(mixing=0.01)], ids=repr)
def test_a_window_of_few_sequences_may_miss_what_was_asked(order):
    stream = stream_of(shards_of([30, 20]), lw.Batching(cut=lw.FixedSize(8), order=order), buffer=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(stream)


def test_it_is_no_data_set_and_has_no_len():
    stream = stream_of(shards_of([20]), BATCHINGS["budget"])
    message = "^`len` must be asked of lengths that are known ahead, but is 'asked of a stream'. Loop over the stream"
    with pytest.raises(TypeError, match=message):
        len(stream)
    with pytest.raises(TypeError, match=message):
        next(iter(torch.utils.data.DataLoader(stream, batch_size=None)))
    assert stream


def test_the_loss_scales_are_those_of_the_window():
    shards = shards_of([64])
    stream = stream_of(shards, BATCHINGS["fixed"], weight=length, micro_batches=2, buffer=64)
    scaled = []
    for place, batch in enumerate(stream):
        assert stream.last_of_step == bool(place % 2)
        scaled.append((stream.loss_scale, batch))
    wanted = lw.loss_scales(stream.plan, weights=[length for _, length in shards[0]])
    assert [scale for scale, _ in scaled] == pytest.approx(wanted.reshape(-1).tolist())
    steps = [scaled[at : at + 2] for at in range(0, len(scaled), 2)]
    assert all(sum(scale for scale, _ in step) == pytest.approx(1) for step in steps)


def test_every_window_draws_anew():
    """Two windows of the same lengths, in which the batches hold others."""
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.Shuffled())
    batches = names(stream_of([[(number, 5) for number in range(80)]], batching, buffer=40))
    windows = [[[number % 40 for number in batch] for batch in batches[at : at + 10]] for at in (0, 10)]
    assert all(sorted(itertools.chain.from_iterable(window)) == list(range(40)) for window in windows)
    assert windows[0] != windows[1]


def test_sequences_that_weigh_nothing_are_scaled_by_nothing():
    shard = [(number, 5) for number in range(80)]
    stream = stream_of([shard], BATCHINGS["fixed"], weight=lambda sample: sample[0] < 40)
    assert [stream.loss_scale for _ in stream] == [1.0] * 10 + [0.0] * 10


def test_two_lengths_and_tensors():
    pairs = [(torch.zeros(first), torch.zeros(second)) for first, second in itertools.product(range(1, 7), repeat=2)]
    batching = lw.Batching(budget=40, padding=0.1)
    stream = lw.torch.StreamBatches(
        [pairs], batching, length=lambda pair: (len(pair[0]), len(pair[1])), collate_fn=lw.torch.PadCollate(), buffer=36
    )
    found = [tuple(tuple(each.values.shape) for each in batch) for batch in stream]
    assert sum(first[0] for first, _ in found) == 36
    assert all(first[0] * (first[1] + second[1]) <= 40 for first, second in found)


WINDOWS = st.lists(st.integers(1, 60), min_size=1, max_size=60)
WORLDS = st.builds(World, st.integers(1, 4), st.integers(1, 3))


@settings(deadline=None, max_examples=40)
@given(
    lengths=WINDOWS,
    shards=st.integers(4, 7),
    first=WORLDS,
    second=WORLDS,
    share=st.floats(0, 1),
    name=st.sampled_from(sorted(BATCHINGS)),
    seed=st.integers(0, 99),
)
def test_ranks_take_their_own_once_and_resume_as_others(lengths, shards, first, second, share, name, seed):
    chance = np.random.default_rng(seed)
    of_shards = np.sort(chance.integers(0, shards, len(lengths)))
    weights = chance.integers(0, 3, len(lengths)).astype(float)
    window = Window(np.array(lengths), weights, of_shards)
    how = {"seed": seed, "epoch": 3, "number": 5}

    def take(runs, world, count=None):
        found = deliver(window, BATCHINGS[name], runs, world, **how)
        rows = found.plan.grid.reshape(-1, world.world_size)[:count]
        own = found.owners[rows] == np.arange(world.world_size)
        for batch, rank in zip(rows[own], np.nonzero(own)[1], strict=True):
            assert (of_shards[found.batch(int(batch))] % world.world_size == rank).all()
        batches = np.unique(rows[own])
        return found, [found.batch(int(batch)) for batch in batches]

    found, all_batches = take([], first)
    assert sorted(np.concatenate(all_batches).tolist()) == list(range(len(lengths)))
    # Every weight counts in one step once: the scales of a step are shares of it, times the ranks.
    for step in range(found.plan.steps):
        total = found.scales[step].sum()
        assert total == pytest.approx(first.world_size) or total == 0
    count = int(share * len(found.plan))
    _, taken = take([], first, count)
    _, rest = take([EarlierRun(first, count)], second) if len(taken) < len(all_batches) else (None, [])
    together = [member for batch in [*taken, *rest] for member in batch.tolist()]
    assert sorted(together) == list(range(len(lengths)))


COUNTS = ([60, 60], [90, 3], [40, 0, 7], [0, 50])


def on_two_ranks(rank, folder):
    """Writes what each batch of each stream holds, and its scale; and the states after them."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    try:
        for number, counts in enumerate(COUNTS):
            stream = stream_of(shards_of(counts), BATCHINGS["budget"], micro_batches=2)
            found, states = [], []
            for batch in stream:
                found.append(([name for name, _ in batch], stream.loss_scale))
                states.append(stream.state_dict())
            torch.save((found, states), folder / f"{number}-{rank}.pt")
    finally:
        distributed.destroy_process_group()


@pytest.fixture(scope="module")
def of_two_ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    run_ranks(on_two_ranks, folder)
    return folder


@pytest.mark.processes
@pytest.mark.parametrize("counts", COUNTS)
def test_two_ranks_take_as_many_batches_and_every_sequence_once(of_two_ranks, counts):
    saved = [torch.load(of_two_ranks / f"{COUNTS.index(counts)}-{rank}.pt") for rank in (0, 1)]
    ranks, states = zip(*saved, strict=True)
    assert len(ranks[0]) == len(ranks[1])
    assert len(ranks[0]) % 2 == 0
    assert states[0] == states[1]
    taken = collections.Counter(name for own in ranks for batch, scale in own if scale for name in batch)
    assert taken == {name: 1 for shard in shards_of(counts) for name, _ in shard}
    for at in range(0, len(ranks[0]), 2):  # the scales of a step are shares of it, times the ranks
        assert sum(scale for own in ranks for _, scale in own[at : at + 2]) == pytest.approx(2)


TAKEN = (1, 5, 11)  # batches that each of three ranks has when the run is killed


def first_run(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=3)
    try:
        for batches in TAKEN:
            stream = stream_of(shards_of([40, 31, 25, 12, 30, 6]), BATCHINGS["budget"])
            running = itertools.islice(iter(stream), batches)
            found = [[name for name, _ in batch] for batch in running if stream.loss_scale]
            states = [None] * 3
            distributed.all_gather_object(states, stream.state_dict())
            assert states[0] == states[1] == states[2]
            torch.save((found, stream.state_dict()), folder / f"first{rank}-{batches}.pt")
    finally:
        distributed.destroy_process_group()


def second_run(rank, folder, world_size):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/again", rank=rank, world_size=world_size)
    try:
        for batches in TAKEN:
            stream = stream_of(shards_of([40, 31, 25, 12, 30, 6]), BATCHINGS["budget"])
            stream.load_state_dict(torch.load(folder / f"first0-{batches}.pt")[1])
            found = [[name for name, _ in batch] for batch in stream if stream.loss_scale]
            torch.save(found, folder / f"second{rank}-{batches}.pt")
    finally:
        distributed.destroy_process_group()


def spare_on_two_ranks(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    try:
        drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
        shards = [[(0, 5_000), *samples(30, first=1)], [(100, 5_000), (101, 9)], [(200, 5_000)], [(300, 5_000)]]
        batches = list(stream_of(shards, drop, buffer=200))
    finally:
        distributed.destroy_process_group()
    assert len(batches) > 1
    assert all(len(batch) * max(length for _, length in batch) <= 400 for batch in batches)


@pytest.mark.processes
def test_a_rank_keeps_company_with_a_sequence_within_the_budget(tmp_path):
    run_ranks(spare_on_two_ranks, tmp_path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Where three ranks have left what they took, and two ranks the rest."""
    folder = tmp_path_factory.mktemp("killed")
    run_ranks(first_run, folder, world_size=3)
    run_ranks(second_run, folder, 2, world_size=2)
    return folder


@pytest.mark.processes
@pytest.mark.parametrize("batches", TAKEN)
def test_a_killed_run_of_three_ranks_goes_on_with_two(killed, batches):
    found = [torch.load(killed / f"first{rank}-{batches}.pt")[0] for rank in range(3)]
    found += [torch.load(killed / f"second{rank}-{batches}.pt") for rank in range(2)]
    taken = sorted(name for own in found for batch in own for name in batch)
    assert taken == sorted(name for shard in shards_of([40, 31, 25, 12, 30, 6]) for name, _ in shard)


class Broken:
    def __iter__(self):
        yield from samples(10)
        raise OSError("the disk is gone")


def broken_on_one(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    try:
        stream = stream_of([samples(50), Broken()], LONG)
        with pytest.raises(OSError if rank == 1 else lw.PlanMismatchError, match="the disk is gone"):
            list(stream)
        check_places(rank)
    finally:
        distributed.destroy_process_group()


def check_places(rank):
    """Ranks that stand at other places are refused with the first window, on both of them."""
    shards = shards_of([20, 20])
    other, resumed, unlike = (stream_of(shards, LONG, micro_batches=many) for many in (1, 1, 1 + rank))
    other.set_epoch(1 + rank)
    state = resumed.state_dict() | {"runs": [[2, 1, 1]] * rank}
    resumed.load_state_dict(state)
    for stream, fact in ((other, "epoch"), (resumed, "runs"), (unlike, "micro_batches")):
        message = f"^`{fact}` must be what rank 0 has, .* at rank 1. Give every rank all shards"
        with pytest.raises(lw.PlanMismatchError, match=message):
            list(stream)


LONG = lw.Batching(budget=4_000)


@pytest.mark.processes
def test_what_one_rank_alone_has_or_lacks_fails_on_all(tmp_path):
    run_ranks(broken_on_one, tmp_path)


def test_other_samples_than_those_of_the_checkpoint_are_refused():
    stream = stream_of(shards_of([60]), BATCHINGS["budget"])
    next(iter(stream))
    resumed = stream_of([samples(60, seed=9)], BATCHINGS["budget"])
    resumed.load_state_dict(stream.state_dict())
    with pytest.raises(
        lw.PlanMismatchError, match=r"^`window` must be the checkpoint's, '.*', but is '.*'\. Resume with"
    ):
        next(iter(resumed))


class ReadOnce:
    """A usual mistake: what it gives can be read once."""

    def __init__(self, own):
        self.own = iter(own)

    def __iter__(self):
        return self.own


def test_an_empty_epoch_is_refused():
    stream = stream_of([ReadOnce(samples(50)), []], LONG)
    assert len(list(stream)) > 1
    stream.set_epoch(1)
    with pytest.raises(
        ValueError, match=r"^`steps` must be at least 1, but is 0 at epoch 1\. Give .* shards that can be"
    ):
        list(stream)


def test_a_window_without_a_step_is_refused_unless_it_is_the_last():
    drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
    shards = [[(0, 9), (1, 900), (2, 7), (3, 900), (4, 900), (5, 900)]]
    stream, states = stream_of(shards, drop, buffer=4), []
    found = [(name, states.append(stream.state_dict()))[0] for batch in stream for name, _ in batch]
    assert sorted(found) == [0, 2]
    resumed = stream_of(shards, drop, buffer=4, micro_batches=2)
    resumed.load_state_dict(states[-1])
    assert list(resumed) == []
    tail = lw.Batching(cut=lw.FixedSize(4), deal=lw.Balanced(tail="drop"))
    assert len(list(stream_of([samples(43)], tail, micro_batches=2))) == 10
    message = r"^`buffer` must be large enough for one step in .* but is 40 at window 0 of epoch 0\. All of its"
    with pytest.raises(ValueError, match=message):
        list(stream_of([samples(43)], tail, micro_batches=20))


@pytest.mark.parametrize("choice", [lw.ShortestFirst, partial(lw.ShortestFirst, reverse=True)])
def test_the_first_epochs_are_sorted_in_every_window(choice):
    def names_of(arrange, epoch):
        stream = stream_of(shards_of([150]), lw.Batching(cut=lw.FixedSize(3), arrange=arrange))
        stream.set_epoch(epoch)
        return names(stream)

    for epoch, sorts in enumerate([True, True, False]):
        assert names_of(choice(epochs=2), epoch) == names_of(choice() if sorts else lw.ShuffledSteps(), epoch)


@pytest.mark.parametrize(("buffer", "least", "most"), [(4_096, 0.13, 0.2), (512 * 16, 0.08, 0.11)])
def test_sixteen_ranks_need_the_buffer_that_the_page_says(buffer, least, most):
    lengths, used, computed = lw.example_lengths("long-tailed", count=4 * buffer), 0, 0
    for number in range(4):
        part = lengths[number * buffer :][:buffer]
        window = Window(part[:, None], np.ones(buffer), np.arange(buffer) % 32)
        plan = deliver(window, lw.Batching(budget=20_000), [], World(16, 1), seed=0, epoch=0, number=number).plan
        used, computed = used + part.sum(), computed + (plan.batch_sizes * plan.padded_lengths[:, 0]).sum()
    assert least < 1.0 - used / computed < most
