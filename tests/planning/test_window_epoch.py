"""An epoch of windows keeps the promises of a plan: each sequence once, equal steps, any batch by its number."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw

pytestmark = pytest.mark.slow

BATCHING = lw.Batching(cut=lw.FixedSize(3), order=lw.SemiSorted())
LENGTHS = lw.example_lengths("long-tailed", count=700)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.one_of(length_sets.flat, length_sets.pairs),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from(["split", "repeat"]),
)
def test_windows_keep_the_promises(lengths, block, blocks, world_size, micro_batches, tail):
    batching = lw.Batching(cut=lw.Budget(15_000), order=lw.Shuffled(), deal=lw.Balanced(tail=tail))
    windows = lw.Windows(
        lengths, batching, window=block * blocks, block=block, world_size=world_size, micro_batches=micro_batches
    )
    epoch = lw.WindowEpoch(windows, 2)
    parts = [windows.numbers(2, number) for number in range(len(windows))]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    assert max(map(len, parts)) <= block * blocks
    assert windows.steps == epoch.steps
    assert len(epoch) == epoch.steps * micro_batches

    taken = [list(epoch.batches(rank)) for rank in range(world_size)]
    assert {len(batches) for batches in taken} == {len(epoch)}
    seen = [number for batches in taken for batch in batches for number in batch.tolist()]
    assert sorted(set(seen)) == list(range(len(lengths)))
    repeated = sum(len(windows.plan(2, number).plan.repeated()) for number in range(len(windows)))
    assert repeated or len(seen) == len(lengths)
    rows = lengths if lengths.ndim == 2 else lengths[:, None]
    assert all(len(batch) * rows[batch].max(axis=0).sum() <= 15_000 for batches in taken for batch in batches)


@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 1), (3, 2)])
def test_any_batch_is_found_without_those_before(world_size, micro_batches):
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=8, world_size=world_size, micro_batches=micro_batches)
    epoch = lw.WindowEpoch(windows, 0)
    whole = [batch.tolist() for batch in epoch.batches(world_size - 1)]
    second = windows.window_steps(0)[0] * micro_batches  # where the second window begins
    for start in (0, second - 1, second, len(epoch) - 1):
        number, within = epoch.find(start)
        assert next(windows.plan(0, number).batches(world_size - 1, within)).tolist() == whole[start]
        assert [batch.tolist() for batch in epoch.batches(world_size - 1, start)] == whole[start:]


def test_chunks_keep_the_numbers_of_their_sequences():
    batching = lw.Batching(cut=lw.Budget(3_000), order=lw.Shuffled(), chunks=lw.Chunks(200))
    windows = lw.Windows(LENGTHS, batching, window=128, block=8)
    frames = np.zeros(len(LENGTHS), np.int64)
    for sequence, start, stop in np.concatenate(list(lw.WindowEpoch(windows, 0).batches())).tolist():
        frames[sequence] += stop - start
    assert frames.tolist() == LENGTHS.tolist()


@settings(max_examples=8, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 40)), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_what_runs_leave_is_taken_once(runs, world_size):
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    seen, after = [], []
    for ranks, micro_batches, taken in [*runs, (world_size, 1, None)]:
        rest = lw.WindowEpoch(windows.share_out(ranks, micro_batches), 1, after=after)
        most = len(rest) if taken is None else min(taken, len(rest))
        for rank in range(ranks):
            seen += [batch.tolist() for batch in itertools.islice(rest.batches(rank), most)]
        after.append((ranks, micro_batches, most))
    numbers = [number for batch in seen for number in batch]
    assert sorted(set(numbers)) == list(range(len(LENGTHS)))
    # 700 sequences in windows of 64, batches of 3: nothing needs to be taken twice while single sequences are left.
    assert len(numbers) - len(LENGTHS) <= 3 * len(runs) * 12


@pytest.mark.parametrize("number", [0, len(LENGTHS) - 1])
def test_a_bad_weight_is_named_by_the_number_of_its_sequence(number):
    epoch = lw.WindowEpoch(lw.Windows(LENGTHS, BATCHING, window=128, block=4), 1)
    weights = np.ones(len(LENGTHS))
    weights[number] = -2.0
    with pytest.raises(
        ValueError, match=rf"^`weights` must be finite and at least 0, but is -2\.0 at sequence {number}\."
    ):
        list(epoch.loss_scales(weights))


def test_loss_scales_are_those_of_the_windows():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4, world_size=2, micro_batches=2)
    epoch = lw.WindowEpoch(windows, 0)
    scales = list(epoch.loss_scales(LENGTHS, rank=1, start=3))
    expected = []
    for number in range(len(windows)):
        window = windows.plan(0, number)
        expected += lw.loss_scales(window.plan, LENGTHS[window.numbers])[:, :, 1].reshape(-1).tolist()
    assert scales == expected[3:]


def test_a_window_may_weigh_nothing_and_an_epoch_may_not():
    epoch = lw.WindowEpoch(lw.Windows(LENGTHS, BATCHING, window=64, block=4), 0)
    first = epoch.windows.plan(0, 0)
    weights = np.ones(len(LENGTHS))
    weights[first.numbers] = 0
    scales = list(epoch.loss_scales(weights))
    assert scales == [0.0] * len(first) + [1.0] * (len(epoch) - len(first))
    with pytest.raises(ValueError, match=r"^`weights` must be above 0 for some sequence, but is 0\.0\. Leave them out"):
        list(epoch.loss_scales(0 * weights))


@pytest.mark.parametrize("cut", [lw.Budget(8), lw.Rows(8)])
@pytest.mark.parametrize("place", [0, 39])
def test_an_error_names_the_chunk_of_the_sequence_among_all_lengths(cut, place):
    lengths = [5] * 40
    lengths[place] = 20
    windows = lw.Windows(lengths, lw.Batching(cut=cut, chunks=lw.Chunks(18)), window=20, block=1)
    message = rf"but is 8(\.0)? at sequence {place}, frames 0 to 18\. Raise it, .*give (shorter )?chunks"
    with pytest.raises(lw.OversizeError, match=message) as raised:
        list(lw.WindowEpoch(windows, 0).batches())
    assert (raised.value.sequence, raised.value.span) == (place, (0, 18))
    for times in (None, 2):
        with pytest.raises(lw.OversizeError, match=message):
            lw.make_plan(lengths, windows.batching, times=times)


def test_windows_without_a_step_are_refused():
    cut = lw.FixedSize(2, drop_incomplete=True)
    dropping = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.Balanced(tail="drop"))
    windows = lw.Windows(np.arange(1, 61), dropping, window=10, block=2, world_size=5)
    assert [len(lw.WindowEpoch(windows, epoch)) for epoch in range(3)] == [6, 6, 6]
    taken = [number for rank in range(5) for batch in lw.WindowEpoch(windows, 0).batches(rank) for number in batch]
    assert sorted(taken) == list(range(60))
    dropped = lw.Windows([9] * 8 + [99] * 4, lw.Batching(cut=lw.Budget(20, oversize="drop")), window=4, block=4)
    for none in (windows.share_out(6), dropped):
        with pytest.raises(ValueError, match=r"^`steps` must be at least 1 in every window, but is 0\. Give larger"):
            print(none.steps)


@pytest.mark.parametrize("choices", [{}, {"deal": lw.RandomSteps()}, {"order": lw.Sorted()}], ids=repr)
@pytest.mark.parametrize("rare", [1, 4])
def test_rare_blocks_of_long_sequences_add_steps_to_their_windows_alone(rare, choices):
    lengths = np.maximum(1, np.random.default_rng(0).lognormal(4, 0.5, 200_000)).astype(int)
    lengths[50_000 : 50_000 + 256 * rare] *= 20
    batching = lw.Batching(budget=float(max(lengths.max(), 64 * lengths.mean())), **choices)
    windows = lw.Windows(lengths, batching, window=2**13, block=256, world_size=4)
    assert windows.steps < 1.1 * lw.make_plan(lengths, batching, world_size=4).steps
    for epoch in (0, 50):
        steps = [windows.plan(epoch, number).plan.steps for number in range(len(windows))]
        assert steps == windows.window_steps(epoch).tolist()
        assert sum(steps) == windows.steps


def test_a_window_of_long_sequences_has_the_steps_that_they_need():
    windows = lw.Windows([1] * 4_000 + [900] * 40, lw.Batching(budget=900, order=lw.Shuffled()), window=40, block=40)
    assert sorted(windows.window_steps(3)) == [1] * 100 + [40]
    assert sorted(np.concatenate(list(lw.WindowEpoch(windows, 3).batches()))) == list(range(4_040))


def test_a_window_that_pads_more_than_any_of_the_trials_is_sorted():
    """Two long blocks share a window in epoch 0. Apart, each mixes with short sequences, in 33 batches and not 22."""
    named = {"window": 40, "block": 20, "seed": 41}
    windows = lw.Windows([1_000] * 40 + [10] * 760, lw.Batching(budget=1_000, order=lw.Shuffled()), **named)
    assert [windows.window_steps(epoch).max() for epoch in (0, 1)] == [41, 22]
    taken = list(itertools.islice(lw.WindowEpoch(windows, 1).batches(), 15))  # 9 of the 22 batches
    rest = lw.WindowEpoch(windows.share_out(2), 1, after=[(1, 1, 15)])
    taken += [batch for rank in range(2) for batch in rest.batches(rank)]
    assert sorted(set(np.concatenate(taken).tolist())) == list(range(800))
    of_user = lw.Batching(budget=1_000, order=lambda sizes, key: lw.Ordered(key.permutation(len(sizes))))
    with pytest.raises(ValueError, match=r"^`window` must be so large that no window fills more .* a smaller block\.$"):
        list(lw.WindowEpoch(lw.Windows(windows.lengths, of_user, **named), 1).batches())


def test_a_missed_padding_is_said_once():
    batching = lw.Batching(cut=lw.FixedSize(16), padding=0.6)
    windows = lw.Windows(np.arange(100, 800), batching, window=64, block=4)
    with pytest.warns(UserWarning, match="`padding` must be within 0.02") as caught:
        list(lw.WindowEpoch(windows, 0).batches())
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(UserWarning, match="`padding` must be within 0.02"):
        windows.share_out(8).plan(0, 0)


def test_the_same_steps_follow_on_as_many_slots():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    eight = lw.WindowEpoch(windows.share_out(8, 1), 0)
    four = lw.WindowEpoch(windows.share_out(4, 2), 0, after=[(8, 1, 5)])
    assert eight.steps == four.steps + 5
    for step in (0, 3, four.steps - 1):
        batches = [next(eight.batches(rank, step + 5)) for rank in range(8)]
        same = [batch for rank in range(4) for batch in itertools.islice(four.batches(rank, 2 * step), 2)]
        assert sorted(np.concatenate(batches).tolist()) == sorted(np.concatenate(same).tolist())
