"""The random stream: uniform, independent over seeds, epochs and stages, and the same everywhere."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import _random
from lengthwise._random import Key

COUNT = 40_000
# Chi-square with k - 1 degrees of freedom lies below k + 5 sqrt(2 k) but for one time in a million or so.
KEYS = [Key(), Key(seed=1), Key(epoch=1), Key(stage="ties"), Key(lane=1), Key(seed=2**64 - 1, epoch=2**64 - 1)]


def chi_square(counts, expected):
    return float(((np.asarray(counts) - expected) ** 2 / expected).sum())


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(KEYS, 2)))
def test_streams_of_different_keys_are_independent(one, other):
    first, second = one.uniform(COUNT), other.uniform(COUNT)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(COUNT)
    cells = np.bincount((first * 10).astype(int) * 10 + (second * 10).astype(int), minlength=100)
    assert chi_square(cells, COUNT / 100) < 100 + 5 * np.sqrt(200)


def test_no_two_streams_share_a_word():
    far = 0, 1, 2**32, 2**53 + 1, 2**63  # no bit of a seed, an epoch or a lane is lost on the way
    streams = itertools.product(far, far, _random.STAGES, (0, 1, 2**16, 2**55))
    keys = [Key(seed=seed, epoch=epoch, stage=stage, lane=lane) for seed, epoch, stage, lane in streams]
    words = np.concatenate([key.words(20) for key in keys])
    assert len(np.unique(words)) == len(words)


def test_golden_words():
    assert Key().words(3).tolist() == [4925249918008276254, 10265621268231006908, 3797989197207778043]
    assert Key(seed=7, epoch=3, stage="ties", lane=2).words(3).tolist() == [
        13083244685417701013,
        8080330311569806230,
        11849236434731730359,
    ]


@pytest.mark.parametrize("groups", [[0], [2, 0, 2, 1, 0, 0], [65_535, 0] * 40, [7] * 50, [2**24 - 1, 9] * 40])
def test_a_permutation_within_groups_is_the_permutation_sorted_by_group(groups):
    groups = np.array(groups)
    for epoch in range(5):
        key = Key(seed=3, epoch=epoch)
        shuffled = key.permutation(len(groups))
        expected = shuffled[np.argsort(groups[shuffled], kind="stable")]
        assert key.permutation_within(groups).tolist() == expected.tolist()


@settings(max_examples=50, derandomize=True)
@given(st.integers(0, 400), st.integers(0, 2**64 - 1), st.data())
def test_places_are_a_permutation_whose_parts_fit_together(count, seed, data):
    key = Key(seed=seed, epoch=3)
    whole = key.places(0, count, count)
    assert sorted(whole.tolist()) == list(range(count))
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=3)))
    parts = [key.places(first, last, count) for first, last in itertools.pairwise([0, *cuts, count])]
    assert np.concatenate(parts).tolist() == whole.tolist()


@pytest.mark.parametrize("count", [2, 3, 17])
def test_every_number_comes_to_every_place_equally_often(count):
    seeds = 500
    counts = np.zeros((count, count))
    for seed in range(seeds):
        counts[np.arange(count), Key(seed=seed).places(0, count, count)] += 1
    # (count - 1)**2 degrees of freedom: the mean, and five standard deviations above it.
    assert chi_square(counts, seeds / count) < (count - 1) ** 2 + 5 * np.sqrt(2) * (count - 1)


def place_by_whole_numbers(key, number, count):
    """Where `number` stands: the network worked out in Python's whole numbers, which have no width."""
    half = ((max(count, 2) - 1).bit_length() + 1) // 2
    left, right = divmod(number, 2**half)
    for word in key.words(10).tolist():
        mixed = right ^ word
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ mixed >> shift) * factor % 2**64
        left, right = right, left ^ (mixed ^ mixed >> 31) >> (64 - half)
    place = left * 2**half + right
    return place if place < count else place_by_whole_numbers(key, place, count)


@pytest.mark.parametrize("count", [1, 2, 5, 1_000, 10**9 // 2048, 10**15])
def test_places_are_those_of_exact_arithmetic(count):
    key = Key(seed=3, epoch=1)
    last = min(count, 50)
    expected = [place_by_whole_numbers(key, number, count) for number in range(last)]
    assert key.places(0, last, count).tolist() == expected
