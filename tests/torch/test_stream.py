"""Batches of streams: every promise in every window, resumed in the middle; `test_stream_ranks.py` has ranks."""

import collections
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import BUDGET, check_goes_on, length, names, samples, shards_of, stream_after, stream_of, take

import lengthwise as lw
from lengthwise.choices.deal import World
from lengthwise.planning.resume import EarlierRun
from lengthwise.torch.stream_window import StreamWindow, deliver

pytestmark = pytest.mark.slow

BATCHINGS = {
    "budget": BUDGET,
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


class Noting:
    """A source that notes what was read of it."""

    def __init__(self, own):
        self.own, self.read = own, []

    def __iter__(self):
        for sample in self.own:
            self.read.append(sample)
            yield sample


def test_a_sequence_waits_for_two_windows_at_most_and_the_next_is_read_meanwhile():
    source, counts = Noting(samples(200)), []
    for batch in stream_of([source], BATCHINGS["sorted"], buffer=30):
        counts.append(len(source.read))
        assert all(counts[-1] - name <= 60 for name, _ in batch)
    assert np.diff(counts).max() <= 4  # 3 samples a batch


def test_epochs_differ_and_come_again():
    stream = stream_of(shards_of([60, 60]))
    epochs = []
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        epochs.append(names(stream))
    assert epochs[0] == epochs[2] != epochs[1]
    assert names(stream_of(shards_of([60, 60]), seed=1)) != epochs[0]


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_it_goes_on_after_every_batch(batching, micro_batches):
    check_goes_on(lambda: stream_of(shards_of([50, 33]), batching, micro_batches=micro_batches), every=1)


SECOND_PASS = "^Epoch 0 is taken a second time. Call set_epoch"
LEFT_EARLY = "^Epoch [12] of the stream was left before its end, so sequences are lost. Let the"


def test_an_epoch_that_is_taken_again_warns_once():
    stream = stream_of(shards_of([60]))
    for _ in range(3):
        take(stream, 1)  # a look
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        list(stream)
    stream = stream_of(shards_of([60]))
    take(stream, 3)  # as of a stream without end
    with pytest.warns(match=SECOND_PASS):
        list(stream)
    list(stream)
    resumed = stream_after(stream.state_dict(), shards_of([60]))
    assert list(resumed) == []
    with pytest.warns(match=SECOND_PASS):
        list(resumed)


def test_an_epoch_that_is_left_early_warns_once():
    stream = stream_of(shards_of([60]))
    for count in (1, 2, 1):  # a look is none
        stream.set_epoch(1)
        take(stream, count)
    with pytest.warns(match=LEFT_EARLY):
        stream.set_epoch(2)
    take(stream, 2)
    resumed = stream_after(stream.state_dict(), shards_of([60]))
    stream.set_epoch(3)  # said already
    take(resumed, 2)
    with pytest.warns(match=LEFT_EARLY):
        resumed.set_epoch(3)
    list(resumed)
    resumed.set_epoch(4)
    stream = stream_of(shards_of([60]))
    start = stream.state_dict()
    take(stream, 2)
    stream.load_state_dict(start)  # another run begins
    for epoch in (0, 1):
        stream.set_epoch(epoch)


@pytest.mark.filterwarnings("ignore:Epoch [0-9] of the stream was left")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda stream: stream.set_epoch(1), "^Epoch 1 was set within a pass over epoch 0. Set"),
        (lambda stream: stream.load_state_dict(stream.state_dict()), "^A position was loaded or restarted within"),
    ],
)
def test_an_epoch_or_a_state_that_is_set_within_a_loop_is_refused(change, said):
    stream = stream_of(shards_of([60]))
    batches = iter(stream)
    next(batches)
    stream.set_epoch(0)  # the same changes nothing
    next(batches)
    change(stream)
    with pytest.raises(ValueError, match=said):
        next(batches)


def test_a_look_within_a_loop_does_not_move_its_position():
    shards = shards_of([60, 50])
    whole, stream = names(stream_of(shards)), stream_of(shards)
    for taken, _ in enumerate(stream, 1):
        state = stream.state_dict()
        take(stream, 1)
        if taken == 6:
            break
    assert names(stream_after(state, shards)) == whole[6:]


@pytest.mark.parametrize("batches", [3, None])
def test_a_loop_that_begins_at_another_epoch_than_the_state_warns(batches):
    stream = stream_of(shards_of([60]))
    stream.set_epoch(2)
    take(stream, batches)
    for epoch in (0, 2, 3):
        resumed = stream_after(stream.state_dict(), shards_of([60]))
        if epoch == 2 or (epoch == 3 and batches is None):
            resumed.set_epoch(epoch)  # goes on, or the loaded epoch had ended
            assert sum(map(len, resumed)) < 60 or epoch == 3
        else:
            with pytest.warns(match=f"^Epoch {epoch} is set, so the loaded position in epoch 2 is lost. Begin"):
                resumed.set_epoch(epoch)


def test_it_is_no_data_set_and_has_no_len():
    stream = stream_of(shards_of([20]))
    message = "^The number of batches of a stream is unknown. The stream is a loader"
    for ask in (len, lambda stream: next(iter(torch.utils.data.DataLoader(stream, batch_size=None)))):
        with pytest.raises(TypeError, match=message):
            ask(stream)
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


@settings(deadline=None, max_examples=25)
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
    window = StreamWindow(np.array(lengths), weights, of_shards)
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


@pytest.mark.parametrize("tasks", [["talk", "read", "sing"], [7, 8, 9]])
def test_a_batch_has_sequences_of_one_group_and_a_state_those_groups(tasks):
    shards = shards_of([90, 70])

    begun = stream_of(shards, group_of=lambda sample: tasks[sample[0] % 3])
    batches = names(begun)
    assert sum(map(len, batches)) == 160
    assert all(len({name % 3 for name in batch}) == 1 for batch in batches)
    begun.set_epoch(1)
    next(iter(begun))
    for group_of in (lambda sample: sample[0] % 2, None):
        other = stream_after(begun.state_dict(), shards, group_of=group_of)
        with pytest.raises(lw.PlanMismatchError, match="in the same order and groups"):
            next(iter(other))


def test_other_samples_than_those_of_the_checkpoint_are_refused():
    stream = stream_of(shards_of([60]))
    take(stream, 1)
    said = r"^`window` must be the checkpoint's, '.*', but is '.*'\. Resume with"
    with pytest.raises(lw.PlanMismatchError, match=said):
        next(iter(stream_after(stream.state_dict(), [samples(60, seed=9)])))


class ReadOnce:
    """A usual mistake: what it gives can be read once."""

    def __init__(self, own):
        self.own = iter(own)

    def __iter__(self):
        return self.own


def test_an_empty_epoch_is_refused():
    stream = stream_of([ReadOnce(samples(50)), []], lw.Batching(budget=4_000))
    assert len(list(stream)) > 1
    stream.set_epoch(1)
    with pytest.raises(ValueError, match=r"^`steps` must be at least 1, but is 0 at epoch 1\. Give .* shards that"):
        list(stream)


def test_a_window_without_a_step_is_refused_unless_it_is_the_last():
    drop = lw.Batching(cut=lw.Budget(400, oversize="drop"))
    shards = [[(0, 9), (1, 900), (2, 7), (3, 900), (4, 900), (5, 900)]]
    stream, states = stream_of(shards, drop, buffer=4), []
    found = [(name, states.append(stream.state_dict()))[0] for batch in stream for name, _ in batch]
    assert sorted(found) == [0, 2]
    assert list(stream_after(states[-1], shards, drop, buffer=4, micro_batches=2)) == []
    tail = lw.Batching(cut=lw.FixedSize(4), deal=lw.Balanced(tail="drop"))
    assert len(list(stream_of([samples(43)], tail, micro_batches=2))) == 10
    message = r"^`buffer` must be large enough for one step in .* but is 40 at window 0 of epoch 0\. All sequences of"
    with pytest.raises(ValueError, match=message):
        list(stream_of([samples(43)], tail, micro_batches=20))


def test_the_first_epochs_are_sorted_in_every_window():
    def names_of(arrange, epoch):
        stream = stream_of(shards_of([150]), lw.Batching(cut=lw.FixedSize(3), arrange=arrange))
        stream.set_epoch(epoch)
        return names(stream)

    for epoch, sorts in enumerate([True, True, False]):
        expected = lw.ShortestFirst() if sorts else lw.ShuffledSteps()
        assert names_of(lw.ShortestFirst(epochs=2), epoch) == names_of(expected, epoch)
