"""Windows: an epoch of windows keeps the promises of a plan, reads only what it needs, and is counted once."""

import copy
import hashlib
import itertools
import mmap
import pickle
import re
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.planning import fit

BATCHING = lw.Batching(cut=lw.FixedSize(3), order=lw.SemiSorted())
LENGTHS = lw.example_lengths("long-tailed", count=700)


@settings(max_examples=50, derandomize=True)
@given(st.integers(0, 400), st.integers(0, 2**64 - 1), st.data())
def test_places_are_a_permutation_whose_parts_fit_together(count, seed, data):
    key = lw.Key(seed=seed, epoch=3)
    whole = key.places(0, count, count)
    assert sorted(whole.tolist()) == list(range(count))
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=3)))
    parts = [key.places(first, last, count) for first, last in itertools.pairwise([0, *cuts, count])]
    assert np.concatenate(parts).tolist() == whole.tolist()


@pytest.mark.parametrize("count", [2**16 - 1, 2**16, 2**16 + 1, 488_282])
def test_places_of_many_are_a_permutation(count):
    assert np.bincount(lw.Key(seed=1).places(0, count, count), minlength=count).tolist() == [1] * count


@pytest.mark.parametrize("count", [2, 3, 4, 5, 17])
def test_every_number_comes_to_every_place_equally_often(count):
    seeds = 1_000
    found = np.zeros((count, count))
    for seed in range(seeds):
        found[np.arange(count), lw.Key(seed=seed).places(0, count, count)] += 1
    expected = seeds / count
    chi_squared = ((found - expected) ** 2 / expected).sum()
    # (count - 1)**2 degrees of freedom: the mean, and five standard deviations above it.
    assert chi_squared < (count - 1) ** 2 + 5 * np.sqrt(2) * (count - 1)


def test_neighbours_do_not_stay_together():
    places = lw.Key(seed=5).places(0, 10_000, 10_000)
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.05
    assert (np.diff(places) == 1).sum() < 10  # 1 in 10,000 steps expected


def place_by_whole_numbers(key, number, count):
    """Where `number` stands: the network worked out in Python's whole numbers, which have no width."""
    half = ((max(count, 2) - 1).bit_length() + 1) // 2
    left, right = divmod(number, 2**half)
    for word in key.words(10).tolist():
        mixed = right ^ word
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ mixed >> shift) * factor % 2**64
        left, right = right, left ^ (mixed ^ mixed >> 31) >> (64 - half)
    found = left * 2**half + right
    return found if found < count else place_by_whole_numbers(key, found, count)


@pytest.mark.parametrize("count", [1, 2, 5, 1_000, 10**9 // 2048, 10**15])
def test_places_are_those_of_exact_arithmetic(count):
    key = lw.Key(seed=3, epoch=1)
    last = min(count, 50)
    expected = [place_by_whole_numbers(key, number, count) for number in range(last)]
    assert key.places(0, last, count).tolist() == expected


@settings(max_examples=75, derandomize=True, deadline=None)
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
    assert len(windows) * windows.steps == epoch.steps
    assert len(epoch) == epoch.steps * micro_batches

    taken = [list(epoch.batches(rank)) for rank in range(world_size)]
    assert {len(batches) for batches in taken} == {len(epoch)}
    seen = [number for batches in taken for batch in batches for number in batch.tolist()]
    assert sorted(set(seen)) == list(range(len(lengths)))
    repeated = sum(len(windows.plan(2, number).plan.repeated()) for number in range(len(windows)))
    assert repeated or len(seen) == len(lengths)
    rows = lengths if lengths.ndim == 2 else lengths[:, None]
    assert all(len(batch) * rows[batch].max(axis=0).sum() <= 15_000 for batches in taken for batch in batches)


@pytest.mark.parametrize("order", menu.ORDERS)
def test_every_order_makes_windows(order):
    batching = lw.Batching(cut=lw.Budget(20_000), order=menu.ORDERS[order])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`padding` must be within")
        windows = lw.Windows(np.minimum(LENGTHS, 5_000), batching, window=240, block=8, world_size=2)
        seen = [batch for rank in range(2) for batch in lw.WindowEpoch(windows, 0).batches(rank)]
    dropped = sum(len(windows.plan(0, number).plan.dropped()) for number in range(len(windows)))
    assert len(np.unique(np.concatenate(seen))) + dropped == len(LENGTHS)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.integers(0, 200), st.integers(1, 3), st.integers(1, 2))
def test_any_batch_is_found_without_those_before(start, world_size, micro_batches):
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=8, world_size=world_size, micro_batches=micro_batches)
    epoch = lw.WindowEpoch(windows, 0)
    start = min(start, len(epoch) - 1)
    whole = list(epoch.batches(world_size - 1))
    number, within = epoch.find(start)
    assert next(windows.plan(0, number).batches(world_size - 1, within)).tolist() == whole[start].tolist()
    rest = epoch.batches(world_size - 1, start)
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in whole[start:]]


def test_one_window_is_an_ordinary_plan():
    windows = lw.Windows(LENGTHS, BATCHING, seed=7)
    assert len(windows) == 1
    ordinary = lw.make_plan(LENGTHS, BATCHING, seed=7)
    assert windows.plan(0, 0).plan.fingerprint() == ordinary.fingerprint()
    assert [b.tolist() for b in windows.plan(0, 0).batches()] == [b.tolist() for b in ordinary.batches()]


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("world_size", [1, 4])
@pytest.mark.parametrize("chosen", [{"padding": 0.1}, {"mixing": 0.4}])
def test_windows_have_on_average_what_was_asked(chosen, world_size, dims):
    lengths = lw.example_lengths("speech", count=30_000)
    if dims == 2:
        lengths = np.stack([lengths, np.maximum(1, lengths * (3 + np.arange(30_000) * 7_919 % 5) // 5)], axis=1)
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(**chosen), deal=lw.Stratified())
    windows = lw.Windows(lengths, batching, window=1024, block=16, world_size=world_size)
    found = [
        lw.measure(each.plan, lengths[each.numbers])
        for each in (windows.plan(3, number) for number in range(len(windows)))
    ]
    had = np.mean([each.padding_share if "padding" in chosen else each.mixing for each in found])
    assert had == pytest.approx(next(iter(chosen.values())), abs=0.01)


@pytest.mark.parametrize("deal", menu.DEALS)
@pytest.mark.parametrize("dims", [1, 2])
def test_a_window_that_is_planned_alone_is_that_of_the_epoch(dims, deal):
    lengths = LENGTHS if dims == 1 else np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    order, cut = lw.MaxEntropy(0.2), lw.FixedSize(4)
    batching = lw.Batching(cut=cut, order=order, deal=menu.suit(menu.DEALS[deal], cut, order=order))
    named = {"window": 128, "block": 4, "world_size": 2}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`padding` must be within")
        windows = lw.Windows(lengths, batching, **named)
        names = [windows.plan(1, number).plan.fingerprint() for number in range(len(windows))]
        alone = lw.Windows(lengths, batching, **named | {"world_size": 3}).share_out(2)
        assert alone.plan(1, 4).plan.fingerprint() == names[4]


@pytest.mark.parametrize("lengths", [LENGTHS, np.stack([LENGTHS, LENGTHS[::-1]], axis=1)], ids=["one", "two"])
def test_one_fit_serves_all_windows_and_epochs(lengths, monkeypatch):
    tried = []
    trial = fit.Trial
    monkeypatch.setattr(fit, "Trial", lambda *given, **named: tried.append(1) or trial(*given, **named))
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.MaxEntropy(0.23))
    windows = lw.Windows(lengths, batching, window=128, block=4)
    windows.plan(2, 3)
    first = len(tried)
    for epoch in (0, 1):
        for number in range(len(windows)):
            windows.plan(epoch, number)
    assert len(tried) == first > 0


def test_windows_epochs_and_seeds_share_no_key():
    keys = set()
    for seed, epoch, number in itertools.product((0, 1), (0, 1, 2), (0, 1, 2)):
        plan = lw.Windows(LENGTHS, BATCHING, window=256, block=8, seed=seed).plan(epoch, number).plan
        keys.add((plan.seed, plan.epoch))
    assert len(keys) == 2 * 3 * 3
    assert (1, 2 * 2**32 + 1) in keys


def test_an_epoch_has_other_windows_than_the_one_before():
    windows = lw.Windows(LENGTHS, BATCHING, window=256, block=8)
    assert windows.numbers(0, 0).tolist() != windows.numbers(1, 0).tolist()
    again = lw.Windows(LENGTHS.tolist(), BATCHING, window=256, block=8)
    assert windows.plan(1, 2).plan.fingerprint() == again.plan(1, 2).plan.fingerprint()


def test_no_window_is_a_small_rest():
    windows = lw.Windows(np.ones(7 * 10, np.int64), BATCHING, window=30, block=10)
    assert [len(windows.numbers(0, number)) for number in range(3)] == [20, 20, 30]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64, ">u2"])
def test_a_file_is_planned_as_its_numbers_are(tmp_path, dtype):
    np.save(tmp_path / "lengths.npy", LENGTHS.astype(dtype))
    named = {"window": 128, "block": 16, "seed": 3}
    of_file = lw.Windows(tmp_path / "lengths.npy", BATCHING, **named)
    of_array = lw.Windows(LENGTHS, BATCHING, **named)
    assert of_file.lengths_fingerprint == of_array.lengths_fingerprint
    assert of_file.plan(4, 2).plan.fingerprint() == of_array.plan(4, 2).plan.fingerprint()


@pytest.mark.parametrize("count", [3, 64 * 1_024, 64 * 1_024 + 1, 200_000])
def test_windows_name_lengths_by_their_number_and_64_samples(count):
    """A checkpoint holds the name: it must not change."""
    lengths = np.arange(1, count + 1)
    digest = hashlib.blake2b(count.to_bytes(8, "little"), digest_size=8)
    for number in range(64 if count > 64 * 1_024 else 1):
        start = number * (count - 1_024) // 63 if count > 64 * 1_024 else 0
        sampled = lengths[start : start + 1_024] if count > 64 * 1_024 else lengths
        digest.update(b"".join(int(length).to_bytes(8, "little") for length in sampled))
    assert lw.Windows(lengths, BATCHING).lengths_fingerprint == digest.hexdigest()


def test_a_mapped_file_is_not_read_whole(tmp_path):
    count = 50_000_000
    file = np.lib.format.open_memmap(tmp_path / "lengths.npy", "w+", np.uint16, (count,))
    # A file of holes is full of zeros, which are no lengths: whoever reads beyond the window and the sample is refused.
    windows = lw.Windows(tmp_path / "lengths.npy", BATCHING, window=2**14)
    for epoch, number in ((5, 100), *((0, number) for number in range(16))):  # the batches of 16 windows are counted
        file[windows.numbers(epoch, number)] = 7
    tracemalloc.start()
    window = lw.Windows(tmp_path / "lengths.npy", BATCHING, window=2**14).plan(5, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 24,414 blocks in 3,052 windows of up to 8.
    assert 7 * 2**11 <= len(window.numbers) <= 2**14
    assert peak < 16 * 2**20  # the file has 100 MB; as int64 it would have 400


@pytest.mark.parametrize("deal", [None, lw.Balanced(), lw.Mixed(), lw.Portions()])
@pytest.mark.parametrize("asked", [{"padding": 0.1}, {"mixing": 0.5}])
def test_windows_that_share_a_fit_are_pickled_as_their_path(tmp_path, asked, deal):
    np.save(tmp_path / "lengths.npy", LENGTHS)
    batching = lw.Batching(cut=lw.Budget(20_000), order=lw.MaxEntropy(**asked), deal=deal)
    windows = lw.Windows(tmp_path / "lengths.npy", batching, window=128, block=4, world_size=2)
    planned = windows.plan(0, 3).plan
    sent = pickle.dumps(windows)
    assert len(sent) < 5_000
    assert pickle.loads(sent).plan(0, 3).plan.fingerprint() == planned.fingerprint()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_mapped_file_is_pickled_as_its_path(tmp_path, protocol):
    lengths = np.tile(LENGTHS, 100)
    np.save(tmp_path / "läng ths.npy", lengths)
    mapped = np.load(tmp_path / "läng ths.npy", mmap_mode="r")
    for source in (tmp_path / "läng ths.npy", mapped):
        windows = lw.Windows(source, BATCHING, window=64, block=4)
        windows.plan(0, 3)
        sent = pickle.dumps(windows, protocol)
        assert len(sent) < 5_000
        found = pickle.loads(sent)
        assert found.plan(0, 3).plan.fingerprint() == windows.plan(0, 3).plan.fingerprint()
        assert len(pickle.dumps(found, protocol)) < 5_000
    part = lw.Windows(mapped[70:700], BATCHING, window=64, block=4)  # no whole file: its lengths travel
    assert pickle.loads(pickle.dumps(part, protocol)).lengths.tolist() == lengths[70:700].tolist()
    pairs = np.memmap(tmp_path / "pairs", np.uint16, "w+", 6, (300, 2), "F")
    pairs[:] = lengths[:600].reshape(2, 300).T
    again = pickle.loads(pickle.dumps(lw.Windows(pairs, BATCHING), protocol))
    assert np.array_equal(again.lengths, pairs)


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: np.save(path, LENGTHS[::-1])])
def test_a_file_that_changed_on_the_way_is_refused(tmp_path, change):
    np.save(tmp_path / "lengths.npy", LENGTHS)
    sent = pickle.dumps(lw.Windows(tmp_path / "lengths.npy", BATCHING))
    change(tmp_path / "lengths.npy")
    with pytest.raises(ValueError, match=r"^`lengths` must be .*lengths\.npy'\. Let every process see the same file"):
        pickle.loads(sent)


def test_chunks_keep_the_numbers_of_their_sequences():
    batching = lw.Batching(cut=lw.Budget(3_000), order=lw.Shuffled(), chunks=lw.Chunks(200))
    windows = lw.Windows(LENGTHS, batching, window=128, block=8)
    frames = np.zeros(len(LENGTHS), np.int64)
    for sequence, start, stop in np.concatenate(list(lw.WindowEpoch(windows, 0).batches())).tolist():
        frames[sequence] += stop - start
    assert frames.tolist() == LENGTHS.tolist()


@settings(max_examples=30, derandomize=True, deadline=None)
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


def test_the_same_steps_follow_on_as_many_slots():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    eight = lw.WindowEpoch(windows.share_out(8, 1), 0)
    four = lw.WindowEpoch(windows.share_out(4, 2), 0, after=[(8, 1, 5)])
    steps = [
        [sorted(n for _ in range(micro) for each in ranks for n in next(each).tolist()) for _ in range(count)]
        for micro, count, ranks in (
            (1, eight.steps - 5, [eight.batches(rank, 5) for rank in range(8)]),
            (2, four.steps, [four.batches(rank) for rank in range(4)]),
        )
    ]
    assert steps[0] == steps[1]
    assert eight.steps == four.steps + 5


def test_a_window_that_was_taken_to_its_end_is_left_behind():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4, world_size=2, micro_batches=3)
    ends = np.cumsum([windows.steps] * len(windows)) * 3
    for window, left in ((0, ends[0] - 1), (1, 0), (1, 2), (2, 0)):
        taken = int(left + (ends[window - 1] if window else 0))
        epoch = lw.WindowEpoch(windows, 0, after=[(2, 3, taken)])
        assert (epoch.first, epoch.after) == (window, [(2, 3, left)] if left else [])


def test_a_window_that_was_just_planned_is_not_planned_again():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    for number in range(4):
        assert windows.plan(0, number) is windows.plan(0, number)
    # What other ranks are dealt, and what is left of a window, is another plan.
    others = windows.plan(0, 1), windows.share_out(2).plan(0, 1), windows.plan(0, 1, after=[(1, 1, 1)])
    assert len({window.plan.fingerprint() for window in others}) == 3


def test_nothing_follows_an_epoch_that_was_taken():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    whole = len(lw.WindowEpoch(windows, 0))
    assert len(lw.WindowEpoch(windows, 0, after=[(1, 1, whole)])) == 0
    assert list(lw.WindowEpoch(windows, 0, after=[(1, 1, whole)]).batches()) == []
    with pytest.raises(ValueError, match=r"^`after` must be of batches that the epoch has, but is 999\. Give what"):
        lw.WindowEpoch(windows, 0, after=[(1, 1, 999)])


@pytest.mark.parametrize("number", [0, 7, len(LENGTHS) - 1])
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
    found = list(epoch.loss_scales(LENGTHS, rank=1, start=3))
    expected = []
    for number in range(len(windows)):
        window = windows.plan(0, number)
        expected += lw.loss_scales(window.plan, LENGTHS[window.numbers])[:, :, 1].reshape(-1).tolist()
    assert found == expected[3:]


def test_a_window_may_weigh_nothing_and_an_epoch_may_not():
    epoch = lw.WindowEpoch(lw.Windows(LENGTHS, BATCHING, window=64, block=4), 0)
    first = epoch.windows.plan(0, 0)
    weights = np.ones(len(LENGTHS))
    weights[first.numbers] = 0
    scales = list(epoch.loss_scales(weights))
    assert scales == [0.0] * len(first) + [1.0] * (len(epoch) - len(first))
    with pytest.raises(ValueError, match=r"^`weights` must be above 0 for some sequence, but is 0\.0\. Leave them out"):
        list(epoch.loss_scales(0 * weights))


@pytest.mark.parametrize("whole", [int, np.int64, np.int32, np.uint8])
def test_epochs_windows_and_ranks_may_be_numbers_of_numpy(whole):
    named = {"window": whole(64), "block": whole(4), "seed": whole(2), "world_size": whole(2)}
    windows = lw.Windows(LENGTHS, BATCHING, **named)
    expected = lw.Windows(LENGTHS, BATCHING, window=64, block=4, seed=2, world_size=2)
    assert windows.steps == expected.steps
    for epoch in (3, 200):
        own = windows.plan(whole(epoch), whole(1))
        assert own.plan.fingerprint() == expected.plan(epoch, 1).plan.fingerprint()
        assert own.plan.epoch == epoch * 2**32 + 1
        assert lw.WindowEpoch(windows, whole(epoch)).fingerprint() == lw.WindowEpoch(expected, epoch).fingerprint()


def test_a_copy_of_windows_keeps_its_file_mapped(tmp_path):
    np.save(tmp_path / "a.npy", LENGTHS.astype(np.uint16))
    windows = lw.Windows(tmp_path / "a.npy", BATCHING, window=64, block=4)
    copied = copy.deepcopy(windows)
    assert copied.lengths is windows.lengths
    assert copied.steps == windows.steps
    part = copy.deepcopy(windows.lengths[:9])  # a part is copied as any array is
    assert part.base is None or not isinstance(part.base, mmap.mmap)
    assert part.tolist() == LENGTHS[:9].tolist()


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


def test_all_windows_of_all_epochs_have_as_many_steps():
    for order in (lw.Shuffled(), lw.Sorted(), lw.Bucketed(buckets=4)):
        windows = lw.Windows(LENGTHS, lw.Batching(cut=lw.Budget(6_000), order=order), window=128, block=4, world_size=2)
        for epoch in range(4):
            assert {windows.plan(epoch, number).plan.steps for number in range(len(windows))} == {windows.steps}


def test_windows_without_a_step_are_refused():
    cut = lw.FixedSize(2, drop_incomplete=True)
    dropping = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.Balanced(tail="drop"))
    windows = lw.Windows(np.arange(1, 61), dropping, window=10, block=2, world_size=5)
    assert [len(lw.WindowEpoch(windows, epoch)) for epoch in range(3)] == [6, 6, 6]
    taken = [number for rank in range(5) for batch in lw.WindowEpoch(windows, 0).batches(rank) for number in batch]
    assert sorted(taken) == list(range(60))
    with pytest.raises(ValueError, match=r"^`steps` must be at least 1, but is 0\. No window has the batches"):
        len(lw.WindowEpoch(windows.share_out(6), 0))


def test_windows_of_very_different_lengths_are_refused_with_a_remedy():
    """Sorted on disk, in windows of one block: the one of the longest needs far more batches than the others."""
    lengths = np.array([1] * 4_000 + [900] * 40)
    windows = lw.Windows(lengths, lw.Batching(budget=900, order=lw.Shuffled()), window=40, block=40)
    with pytest.raises(ValueError, match=r"^`window` must be large enough that each fills no more .* a smaller block"):
        list(lw.WindowEpoch(windows, 0).batches())


def test_a_cut_that_alone_says_which_batches_there_are_is_refused():
    batching = lw.Batching(cut=lw.DynamicSize(4, rule="paper"))
    with pytest.raises(ValueError, match=r"^`cut` must be one by which all windows have"):
        lw.Windows(LENGTHS, batching)


def test_a_missed_padding_is_said_once():
    batching = lw.Batching(cut=lw.FixedSize(16), padding=0.6)
    windows = lw.Windows(np.arange(100, 800), batching, window=64, block=4)
    with pytest.warns(UserWarning, match="`padding` must be within 0.02") as found:
        list(lw.WindowEpoch(windows, 0).batches())
    assert [each.filename for each in found] == [__file__]


def test_an_error_names_the_sequence_among_all_lengths():
    lengths = np.full(200, 9, np.uint16)
    lengths[137] = 900
    windows = lw.Windows(lengths, lw.Batching(cut=lw.Budget(100)), window=40, block=4)
    with pytest.raises(lw.OversizeError, match="at sequence 137"):
        list(lw.WindowEpoch(windows, 0).batches())
    lengths[137] = 0
    message = "`lengths` must be at least 1, but is 0 at sequence 137. Drop the sequence or repair its length."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        print(windows.share_out(2).steps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: lw.Windows(LENGTHS, BATCHING, window=100, block=8),
            "`window` must be a multiple of the block of 8, but is 100. Give how many sequences to plan at once,",
        ),
        (
            lambda: lw.Windows(LENGTHS, BATCHING, block=0),
            "`block` must be at least 1, but is 0. Give how many neighbours",
        ),
        (lambda: lw.Windows(LENGTHS, 3), "`batching` must be a Batching, but is 3. Make one"),
        (lambda: lw.Windows([[1, 2, 3]], BATCHING), "`lengths` must be a list of numbers or of pairs, but is"),
        (lambda: lw.Windows(LENGTHS, BATCHING).plan(-1, 0), "`epoch` must be at least 0, but is -1. Give a whole"),
        (
            lambda: lw.Windows(LENGTHS, BATCHING).numbers(2**32, 0),
            "`epoch` must be at most 4294967295, but is 4294967296. Give a whole number from 0 to 2**32 - 1.",
        ),
        (
            lambda: lw.Windows(np.broadcast_to(np.array(5), 2**32 + 1), BATCHING, window=1, block=1),
            "`window` must be one of at most 4294967296 in an epoch, but is 1. Give larger windows.",
        ),
        (lambda: lw.Windows(LENGTHS, BATCHING).plan(0, 1), "`number` must be at most 0, but is 1. Windows count"),
        (
            lambda: lw.WindowEpoch(lw.Windows([3], BATCHING), 0).find(1),
            "`number` must be at most 0, but is 1. Give the",
        ),
        (
            lambda: list(lw.WindowEpoch(lw.Windows([3], BATCHING), 0).loss_scales([1, 2])),
            "`weights` must be of shape [1], but is (2,). Give one weight",
        ),
        (
            lambda: list(lw.WindowEpoch(lw.Windows([3], BATCHING), 0).loss_scales(rank=-1)),
            "`rank` must be at least 0, but is -1. Give windows for the world_size of the run.",
        ),
        (
            lambda: list(lw.WindowEpoch(lw.Windows([3], BATCHING), 0).loss_scales(start=2)),
            "`start` must be at most 1, but is 2. Start the next epoch instead.",
        ),
        (lambda: lw.WindowEpoch(lw.Windows([3], BATCHING), "3"), "`epoch` must be a whole number, but is '3'. Give"),
        (lambda: lw.WindowEpoch([3], 0), "`windows` must be a lengthwise.Windows, but is [3]. Make them of"),
        (lambda: lw.Windows([3], BATCHING).numbers(0, None), "`number` must be a whole number, but is None. Windows"),
        (lambda: lw.Windows([3], BATCHING).plan(0, 1), "`number` must be at most 0, but is 1. Windows count"),
        (lambda: lw.Windows([3], BATCHING).plan(0, -1), "`number` must be at least 0, but is -1. Windows count"),
        (lambda: lw.Windows([3], BATCHING).plan(0, 0.5), "`number` must be a whole number, but is 0.5. Windows"),
        (
            lambda: lw.Windows(np.ones((2, 0), int), BATCHING),
            "`lengths` must be an array of shape [n] or [n, dims], but is (2, 0). Give one number",
        ),
        (lambda: lw.Windows("/nowhere/a.npy", BATCHING), "`path` must be a file that can be read, but is"),
    ],
)
def test_bad_values_are_told(make, message):
    with pytest.raises((ValueError, TypeError, OSError), match=f"^{re.escape(message)}"):
        make()


def test_a_file_of_floats_is_refused(tmp_path):
    np.save(tmp_path / "lengths.npy", LENGTHS.astype(float))
    with pytest.raises(
        TypeError, match=r"^`lengths` must be a file of whole numbers, but is 'float64'\. Write them as"
    ):
        lw.Windows(tmp_path / "lengths.npy", BATCHING)


def test_a_file_that_is_no_array_is_refused(tmp_path):
    (tmp_path / "a.npy").write_text("3 4 5")
    np.savez(tmp_path / "b.npz", a=LENGTHS)
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match=r"^`lengths` must be the path of a \.npy file, but is "):
            lw.Windows(tmp_path / name, BATCHING)


@pytest.mark.parametrize("choice", [lw.ShortestFirst, partial(lw.ShortestFirst, reverse=True)])
def test_the_first_epochs_are_sorted_in_every_window(choice):
    def batches_of(arrange, epoch):
        windows = lw.Windows(LENGTHS, lw.Batching(cut=lw.FixedSize(3), arrange=arrange), window=200, block=20)
        return [batch.tolist() for number in range(len(windows)) for batch in windows.plan(epoch, number).batches()]

    for epoch, sorts in enumerate([True, True, False]):
        same = choice() if sorts else lw.ShuffledSteps()
        assert batches_of(choice(epochs=2), epoch) == batches_of(same, epoch)
