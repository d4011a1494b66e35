"""Windows: each is a plan of its own, reads only what it needs, and shares one fit with the others."""

import copy
import hashlib
import itertools
import mmap
import pickle
import re
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.planning import settle

pytestmark = pytest.mark.slow

BATCHING = lw.Batching(cut=lw.FixedSize(3), order=lw.SemiSorted())
LENGTHS = lw.example_lengths("long-tailed", count=700)


@pytest.mark.filterwarnings("ignore:`padding` must be within")
@pytest.mark.parametrize("order", menu.ORDERS)
def test_every_order_makes_windows(order):
    batching = lw.Batching(cut=lw.Budget(20_000), order=menu.ORDERS[order])
    windows = lw.Windows(np.minimum(LENGTHS, 5_000), batching, window=240, block=8, world_size=2)
    seen = [batch for rank in range(2) for batch in lw.WindowEpoch(windows, 0).batches(rank)]
    dropped = sum(len(windows.plan(0, number).plan.dropped()) for number in range(len(windows)))
    assert len(np.unique(np.concatenate(seen))) + dropped == len(LENGTHS)


@pytest.mark.parametrize(("padding", "world_size", "dims"), [(0.1, 4, 1), (0.15, 1, 1), (0.1, 1, 2)])
def test_windows_have_on_average_what_was_asked(padding, world_size, dims):
    lengths = lw.example_lengths("speech", count=16_000)
    if dims == 2:
        lengths = np.stack([lengths, np.maximum(1, lengths * (3 + np.arange(16_000) * 7_919 % 5) // 5)], axis=1)
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(padding=padding), deal=lw.Stratified())
    windows = lw.Windows(lengths, batching, window=1024, block=16, world_size=world_size)
    plans = [windows.plan(3, number) for number in range(len(windows))]
    measures = [lw.measure(window.plan, lengths[window.numbers]) for window in plans]
    assert np.mean([each.padding_share for each in measures]) == pytest.approx(padding, abs=0.01)


@pytest.mark.filterwarnings("ignore:`padding` must be within")
@pytest.mark.parametrize(("dims", "deal"), [(1, "portions"), (1, "Balanced_drop"), (2, "RandomSteps_split")])
def test_a_window_that_is_planned_alone_is_that_of_the_epoch(dims, deal):
    lengths = LENGTHS if dims == 1 else np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    order, cut = lw.MaxEntropy(0.2), lw.FixedSize(4)
    batching = lw.Batching(cut=cut, order=order, deal=menu.suit(menu.DEALS[deal], cut, order=order))
    named = {"window": 128, "block": 4, "world_size": 2}
    windows = lw.Windows(lengths, batching, **named)
    names = [windows.plan(1, number).plan.fingerprint() for number in range(len(windows))]
    alone = lw.Windows(lengths, batching, **named | {"world_size": 3}).share_out(2)
    assert alone.plan(1, 4).plan.fingerprint() == names[4]


def test_one_fit_serves_all_windows_and_epochs(monkeypatch):
    tried = []
    trial = settle.Trials
    monkeypatch.setattr(settle, "Trials", lambda *given, **named: tried.append(1) or trial(*given, **named))
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.MaxEntropy(0.23))
    windows = lw.Windows(LENGTHS, batching, window=128, block=4)
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


@pytest.mark.parametrize("count", [3, 64 * 1_024, 64 * 1_024 + 1])
def test_windows_name_lengths_by_their_number_and_64_samples(count):
    """A checkpoint holds the name: it must not change."""
    lengths = np.arange(1, count + 1)
    digest = hashlib.blake2b(count.to_bytes(8, "little"), digest_size=8)
    for number in range(64 if count > 64 * 1_024 else 1):
        start = number * (count - 1_024) // 63 if count > 64 * 1_024 else 0
        sampled = lengths[start : start + 1_024] if count > 64 * 1_024 else lengths
        digest.update(b"".join(int(length).to_bytes(8, "little") for length in sampled))
    assert lw.Windows(lengths, BATCHING).lengths_fingerprint == digest.hexdigest()


def test_a_mapped_file_is_read_piece_by_piece(tmp_path):
    np.lib.format.open_memmap(tmp_path / "lengths.npy", "w+", np.uint16, (20_000_000,))[:] = 7
    tracemalloc.start()
    window = lw.Windows(tmp_path / "lengths.npy", BATCHING, window=2**14).plan(5, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 7 * 2**11 <= len(window.numbers) <= 2**14  # up to 8 blocks of 2,048
    assert peak < 16 * 2**20  # the file has 40 MB; as int64 it would have 160


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_a_mapped_file_is_pickled_as_its_path(tmp_path, protocol):
    lengths = np.tile(LENGTHS, 20)
    np.save(tmp_path / "läng ths.npy", lengths)
    mapped = np.load(tmp_path / "läng ths.npy", mmap_mode="r")
    fitted = lw.Batching(cut=lw.Budget(20_000), order=lw.MaxEntropy(padding=0.2))
    for source, batching in ((tmp_path / "läng ths.npy", BATCHING), (mapped, fitted)):
        windows = lw.Windows(source, batching, window=64, block=4)
        windows.plan(0, 3)
        sent = pickle.dumps(windows, protocol)
        assert len(sent) < 5_000
        received = pickle.loads(sent)
        assert received.plan(0, 3).plan.fingerprint() == windows.plan(0, 3).plan.fingerprint()
        assert len(pickle.dumps(received, protocol)) < 5_000
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
    with pytest.raises(ValueError, match=r"^`lengths` must be .*lengths\.npy'\. Give every process the same file"):
        pickle.loads(sent)


def test_a_window_that_was_just_planned_is_not_planned_again():
    windows = lw.Windows(LENGTHS, BATCHING, window=64, block=4)
    for number in range(4):
        assert windows.plan(0, number) is windows.plan(0, number)
    # What other ranks are dealt, and what is left of a window, is another plan.
    others = windows.plan(0, 1), windows.share_out(2).plan(0, 1), windows.plan(0, 1, after=[(1, 1, 1)])
    assert len({window.plan.fingerprint() for window in others}) == 3


def test_a_copy_of_windows_keeps_its_file_mapped(tmp_path):
    np.save(tmp_path / "a.npy", LENGTHS.astype(np.uint16))
    windows = lw.Windows(tmp_path / "a.npy", BATCHING, window=64, block=4)
    copied = copy.deepcopy(windows)
    assert copied.lengths is windows.lengths
    assert copied.steps == windows.steps
    part = copy.deepcopy(windows.lengths[:9])  # a part is copied as any array is
    assert part.base is None or not isinstance(part.base, mmap.mmap)
    assert part.tolist() == LENGTHS[:9].tolist()


@pytest.mark.parametrize("choice", [lw.ShortestFirst, partial(lw.ShortestFirst, reverse=True)])
def test_the_first_epochs_are_sorted_in_every_window(choice):
    def batches_of(arrange, epoch):
        windows = lw.Windows(LENGTHS, lw.Batching(cut=lw.FixedSize(3), arrange=arrange), window=200, block=20)
        return [batch.tolist() for number in range(len(windows)) for batch in windows.plan(epoch, number).batches()]

    for epoch, sorts in enumerate([True, True, False]):
        same = choice() if sorts else lw.ShuffledSteps()
        assert batches_of(choice(epochs=2), epoch) == batches_of(same, epoch)


def test_a_bad_sequence_of_any_window_is_named_before_the_first_is_planned():
    def windows_of(lengths, oversize="error"):
        batching = lw.Batching(cut=lw.Budget(1_000, oversize=oversize), order=lw.Shuffled())
        return lw.Windows(lengths, batching, window=16, block=8)

    lengths = np.full((700, 2), 50, np.uint16)
    sequence = windows_of(lengths).numbers(0, 40)[5]
    lengths[sequence, 1] = 5_000
    with pytest.raises(lw.OversizeError, match=rf"at sequence {sequence}\. "):
        windows_of(lengths).plan(0, 0)
    alone, dropping = (windows_of(lengths, oversize).plan(0, 40).plan for oversize in ("alone", "drop"))
    assert (len(alone.over_max_cost()), len(dropping.dropped())) == (1, 1)
    lengths[sequence, 1] = 0
    with pytest.raises(ValueError, match=rf"^`lengths` must be at least 1, but is 0 at sequence {sequence}\. "):
        print(windows_of(lengths).share_out(2).steps)


ONE = lw.Windows([3], BATCHING)
FAULTS = {
    "lw.Windows(LENGTHS, BATCHING, window=100, block=8)": "`window` must be a multiple of the block of 8, but is 100.",
    "lw.Windows(LENGTHS, BATCHING, block=0)": "`block` must be at least 1, but is 0. Give how many neighbours",
    "lw.Windows(LENGTHS, 3)": "`batching` must be a Batching, but is 3. Make one",
    "lw.Windows([[1, 2, 3]], BATCHING)": "`lengths` must be a list of numbers or of pairs, but is",
    "lw.Windows(np.ones((2, 0), int), BATCHING)": "`lengths` must be an array of shape [n] or [n, dims], but is (2, 0)",
    "lw.Windows('/nowhere/a.npy', BATCHING)": "`path` must be a file that can be read, but is",
    "lw.Windows('text.npy', BATCHING)": "`lengths` must be the path of a .npy file, but is ",
    "lw.Windows('several.npz', BATCHING)": "`lengths` must be the path of a .npy file, but is ",
    "lw.Windows('floats.npy', BATCHING)": "`lengths` must be a file of whole numbers, but is 'float64'. Write them as",
    "ONE.plan(-1, 0)": "`epoch` must be at least 0, but is -1. Give a whole",
    "ONE.numbers(2**32, 0)": "`epoch` must be at most 4294967295, but is 4294967296.",
    "ONE.numbers(0, None)": "`number` must be a whole number, but is None. Windows",
    "ONE.plan(0, 1)": "`number` must be at most 0, but is 1. Windows count",
    "ONE.plan(0, -1)": "`number` must be at least 0, but is -1. Windows count",
    "lw.Windows([3], lw.Batching(cut=lw.DynamicSize(4)))": "`cut` must be Budget, FixedSize or Rows, but is",
    "lw.WindowEpoch(ONE, 0, after=[(1, 1, 9)])": "`after` must be within the batches of the epoch, but is 9. Give what",
    "lw.WindowEpoch([3], 0)": "`windows` must be a lengthwise.Windows, but is [3]. Make one of",
    "lw.WindowEpoch(ONE, '3')": "`epoch` must be a whole number, but is '3'. Give",
    "lw.WindowEpoch(ONE, 0).find(1)": "`number` must be at most 0, but is 1. Give the",
    "list(lw.WindowEpoch(ONE, 0).loss_scales([1, 2]))": "`weights` must be of shape [1], but is (2,). Give one weight",
    "list(lw.WindowEpoch(ONE, 0).loss_scales(rank=-1))": "`rank` must be at least 0, but is -1. Give windows for the",
    "list(lw.WindowEpoch(ONE, 0).loss_scales(start=2))": "`start` must be at most 1, but is 2. Start the next epoch",
}


@pytest.mark.parametrize(("code", "sentence"), FAULTS.items(), ids=FAULTS)
def test_bad_values_are_refused(code, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.npy").write_text("3 4 5")
    np.savez("several.npz", a=LENGTHS)
    np.save("floats.npy", LENGTHS.astype(float))
    with pytest.raises((ValueError, TypeError, OSError), match=f"^{re.escape(sentence)}"):
        eval(code)
