"""The random stream: uniform, independent over seeds, epochs and stages, and the same everywhere."""

import itertools
from collections import Counter

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import _exact, _random
from lengthwise._random import Key

COUNT = 100_000
# Chi-square with k - 1 degrees of freedom lies below k + 5 sqrt(2 k) but for one time in a million or so.
KEYS = [Key(), Key(seed=1), Key(epoch=1), Key(stage="ties"), Key(lane=1), Key(seed=2**64 - 1, epoch=2**64 - 1)]


def chi_square(counts, expected):
    return float(((np.asarray(counts) - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_numbers_are_uniform(key):
    numbers = key.uniform(COUNT)
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    bins = 200
    counts = np.bincount((numbers * bins).astype(int), minlength=bins)
    assert chi_square(counts, COUNT / bins) < bins + 5 * np.sqrt(2 * bins)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_every_bit_is_as_often_one_as_zero(key):
    words = key.words(20_000)
    ones = [int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)]
    assert max(abs(count - 10_000) for count in ones) < 5 * np.sqrt(20_000 / 4)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(KEYS, 2)))
def test_streams_of_different_keys_are_independent(one, other):
    first, second = one.uniform(COUNT), other.uniform(COUNT)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(COUNT)
    cells = np.bincount((first * 10).astype(int) * 10 + (second * 10).astype(int), minlength=100)
    assert chi_square(cells, COUNT / 100) < 100 + 5 * np.sqrt(200)


def test_successive_numbers_are_independent():
    numbers = Key().uniform(COUNT)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 5 / np.sqrt(COUNT)


def test_no_two_streams_share_a_word():
    far = 0, 1, 2**32, 2**53 + 1, 2**63  # no bit of a seed, an epoch or a lane is lost on the way
    streams = itertools.product(far, far, _random.STAGES, (0, 1, 2**16, 2**55))
    keys = [Key(seed=seed, epoch=epoch, stage=stage, lane=lane) for seed, epoch, stage, lane in streams]
    words = np.concatenate([key.words(20) for key in keys])
    assert len(np.unique(words)) == len(words)


def test_every_portion_draws_by_keys_of_its_own(monkeypatch):
    """One that drops, too: of equal portions it would leave out the batches at the same places."""

    class Dropping(lw.Portions):
        tail = "drop"

    drawn, words = [], Key.words
    monkeypatch.setattr(Key, "words", lambda key, count: drawn.append((key.stage, key.lane)) or words(key, count))
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.SemiSorted(), deal=Dropping())
    lw.make_plan(np.arange(1, 61), batching, world_size=3, micro_batches=2)
    for stage in ("order", "tail"):  # the lanes of trial epochs begin at 2**40
        assert sorted(lane for each, lane in drawn if each == stage and lane < 2**40) == [0, 1, 2]


def test_seed_and_epoch_are_not_added():
    assert Key(seed=0, epoch=1).words(4).tolist() != Key(seed=1, epoch=0).words(4).tolist()


def test_fewer_words_are_the_first_of_more():
    assert Key(seed=3).words(7).tolist() == Key(seed=3).words(100)[:7].tolist()


def test_stages_have_numbers_of_their_own():
    assert len(set(_random.STAGES.values())) == len(_random.STAGES)
    assert max(_random.STAGES.values()) < 256, "a lane begins at bit 8 of the counter"


def test_golden_words():
    assert Key().words(3).tolist() == [4925249918008276254, 10265621268231006908, 3797989197207778043]
    assert Key(seed=7, epoch=3, stage="ties", lane=2).words(3).tolist() == [
        13083244685417701013,
        8080330311569806230,
        11849236434731730359,
    ]


def test_shuffles_of_four_are_equally_likely():
    shuffles = [tuple(Key(seed=seed).permutation(4).tolist()) for seed in range(12_000)]
    counts = Counter(shuffles)
    assert set(counts) == set(itertools.permutations(range(4)))
    assert chi_square(list(counts.values()), 12_000 / 24) < 24 + 5 * np.sqrt(48)


def test_a_long_shuffle_puts_every_number_anywhere():
    places = np.array([np.argsort(Key(epoch=epoch).permutation(10)) for epoch in range(4_000)])
    for number in range(10):
        counts = np.bincount(places[:, number], minlength=10)
        assert chi_square(counts, 400) < 10 + 5 * np.sqrt(20)


def test_exponential_numbers_have_mean_and_variance_one():
    numbers = Key(seed=5).exponential(1_000_000)
    assert (numbers >= 0).all()
    assert numbers.mean() == pytest.approx(1.0, abs=5 / 1_000)
    assert numbers.var() == pytest.approx(1.0, abs=5 * np.sqrt(8) / 1_000)
    assert (numbers > 3).mean() == pytest.approx(np.exp(-3), abs=0.002)


def test_argsort_reads_numbers_of_every_kind():
    for numbers in ([0.0, 2.5, 1e-300, 1e300, 0.0], [3, 0, 2**62, 3], []):
        array = np.array(numbers)
        assert _random.argsort(array).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("groups", [[0], [2, 0, 2, 1, 0, 0], [65_535, 0] * 40, [7] * 50, [2**24 - 1, 9] * 40])
def test_a_permutation_within_groups_is_the_permutation_sorted_by_group(groups):
    groups = np.array(groups)
    for epoch in range(20):
        key = Key(seed=3, epoch=epoch)
        shuffled = key.permutation(len(groups))
        expected = shuffled[np.argsort(groups[shuffled], kind="stable")]
        assert key.permutation_within(groups).tolist() == expected.tolist()


def test_exponential_numbers_are_the_same_however_many_are_drawn():
    key = Key(seed=5, epoch=1)
    many = key.exponential(40_000)
    assert many[:100].tolist() == key.exponential(100).tolist()
    assert many.tolist() == (-_exact.logs(1.0 - key.uniform(40_000))).tolist()
