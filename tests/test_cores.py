"""Plans on several cores: the same to the last bit, and as many cores as the process may use."""

import threading

import numba
import numpy as np
import pytest

import lengthwise as lw
from lengthwise import _kernels, _random
from lengthwise._compile import compile_kernel, cores
from lengthwise._random import Key
from lengthwise.choices.columns import look_up
from lengthwise.choices.parts import sort_parts

NO_NUMBERS = np.empty(0, np.int64)


@pytest.fixture
def on_cores(monkeypatch):
    """Runs something on each of 1 to 4 cores, in parts of a few hundred numbers."""
    monkeypatch.setattr(cores, "LEAST", 256)

    def run(work):
        found = []
        for count in (1, 2, 3, 4):
            monkeypatch.setattr(cores, "count_cores", lambda count=count: count)
            found.append(work())
        return found

    return run


def test_parts_are_even_and_leave_out_none(on_cores):
    for count in (0, 1, 255, 511, 512, 1023, 1025, 4099):
        for parts in on_cores(lambda count=count: cores.split(count)):
            assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
            assert (parts[0].start, parts[-1].stop) == (0, count)
            assert all(part.start % 2 == 0 for part in parts)
            assert len(parts) == 1 or min(part.stop - part.start for part in parts) >= 254
    assert [len(parts) for parts in on_cores(lambda: cores.split(1024))] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["words", "few", "equal", "floats", "one is apart"])
def test_numbers_are_sorted_the_same_on_any_number_of_cores(on_cores, kind):
    chance, count = np.random.default_rng(1), 4099
    keys = {
        "words": lambda: Key(seed=3).words(count),
        "few": lambda: chance.integers(0, 50, count),
        "equal": lambda: np.zeros(count),
        "floats": lambda: chance.random(count),
        "one is apart": lambda: np.append(np.zeros(count - 1), 1.0),
    }[kind]()
    for numbers in (NO_NUMBERS, chance.permutation(count), chance.permutation(count)[:1500]):
        every = numbers if len(numbers) else np.arange(count)
        expected = every[np.argsort(keys[every], kind="stable")]
        for found in on_cores(lambda numbers=numbers: _random._sort(keys, numbers)):
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("window", [1, 7, 300, 5000])
def test_parts_are_sorted_the_same_on_any_number_of_cores(on_cores, window):
    chance = np.random.default_rng(2)
    sizes, sequences = chance.integers(1, 900, 4099), chance.permutation(4099)
    first, *others = on_cores(lambda: sort_parts(sequences.copy(), sizes, np.arange(0, 4099, window), turned=True))
    assert sorted(first[0]) == list(range(4099))
    for found in others:
        assert [each.tolist() for each in found] == [each.tolist() for each in first]


@pytest.mark.parametrize(
    "order",
    [
        *(lw.Shuffled(), lw.Sorted(), lw.SemiSorted(0.1), lw.Windowed(320), lw.AlternatedSort(7)),
        *(lw.Bucketed(size=300), lw.Bucketed(buckets=4), lw.MaxEntropy(0.1), lw.MaxEntropy(0.1, noise="exponential")),
    ],
    ids=repr,
)
def test_plans_are_the_same_on_any_number_of_cores(on_cores, order):
    lengths = lw.example_lengths("long-tailed", count=5_000)
    batching = lw.Batching(order=order, budget=20_000)
    prints = on_cores(lambda: lw.make_plan(lengths, batching, world_size=2).fingerprint())
    assert len(set(prints)) == 1


@pytest.mark.parametrize(
    "batching",
    [
        *(lw.Batching(budget=2_000, order=order) for order in (lw.Sorted(), lw.Shuffled(), lw.MaxEntropy(0.1))),
        lw.Batching(budget=2_000, order=lw.Shuffled(), deal=lw.RandomSteps()),
    ],
    ids=repr,
)
def test_plans_of_pairs_are_the_same_on_any_number_of_cores(on_cores, monkeypatch, batching):
    monkeypatch.setattr("lengthwise.choices.columns._MANY", 100)
    pairs = np.random.default_rng(4).integers(1, 90, (5_000, 2))
    prints = on_cores(lambda: lw.make_plan(pairs, batching, world_size=2).fingerprint())
    assert len(set(prints)) == 1


def test_a_number_out_of_range_is_found_on_the_last_core(on_cores, monkeypatch):
    monkeypatch.setattr("lengthwise.choices.columns._MANY", 100)
    index = np.arange(1500)
    index[-1] = 1500
    values = np.arange(1500)

    def look():
        with pytest.raises(IndexError, match="from 0 to 1499"):
            look_up(values, index)

    on_cores(look)


def test_torchrun_limits_the_cores_by_a_variable(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    for asked, expected in (("1", 1), ("3", 3), ("64", 4), ("0", 1), ("2,1", 4), ("", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert cores.count_cores() == expected
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert cores.count_cores() == 1


def test_where_numba_is_turned_off_parts_do_not_undo_each_other(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    threads = []

    @compile_kernel(linear=True, lists=("places",))
    def fill(first, places):
        threads.append(threading.get_ident())
        for place in range(first, first + 2):
            places[place] = place

    places = np.full(8, -1)
    cores.call(fill, [(first, places) for first in (0, 2, 4, 6)])
    assert places.tolist() == list(range(8))
    assert set(threads) == {threading.get_ident()}


@pytest.mark.parametrize("started", [0, 1, 2])
def test_where_the_system_starts_no_more_threads_all_parts_are_done_here(monkeypatch, started):
    start, left = threading.Thread.start, iter(range(started))

    def start_some(thread):
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    expected = Key(seed=3).words(1_000)
    monkeypatch.setattr(cores, "LEAST", 100)
    monkeypatch.setattr(cores, "count_cores", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert Key(seed=3).words(1_000).tolist() == expected.tolist()


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_what_a_part_raises_is_raised_once_all_parts_have_ended(wrong):
    before, words = threading.active_count(), np.zeros((4, 10_000), np.uint64)
    counter = [np.uint64(0)] * 4
    parts = [(*counter, "no array" if part == wrong else words[part]) for part in range(4)]
    with pytest.raises(numba.TypingError):
        cores.call(_kernels.threefry, parts)
    assert threading.active_count() == before
    assert [bool(part.any()) for part in words] == [part != wrong for part in range(4)]
