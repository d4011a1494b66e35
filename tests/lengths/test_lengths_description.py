"""Descriptions and fingerprints, and the example lengths: golden values, range, and independence of count."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.lengths import describe, example_lengths, fingerprint

some_lengths = st.lists(st.integers(1, 1000), max_size=50)


def test_description_of_two_dimensions():
    found = describe([[1, 30], [3, 10]])
    assert (found.count, found.dims) == (2, 2)
    assert (found.min, found.max, found.mean, found.total) == ((1, 10), (3, 30), (2.0, 20.0), (4, 40))
    assert found.quantiles == ((1, 1, 1, 1, 3, 3, 3), (10, 10, 10, 10, 30, 30, 30))


@pytest.mark.parametrize(("shape", "dims"), [((0,), 1), ((0, 3), 3)])
def test_description_of_no_sequences(shape, dims):
    found = describe(np.zeros(shape))
    assert (found.count, found.dims, found.total) == (0, dims, (0,) * dims)
    assert found.min == found.max == found.mean == found.quantiles == ()
    assert json.loads(json.dumps(found.as_dict()))["quantiles"] == []


def test_a_description_is_json_and_its_total_exact():
    found = json.loads(json.dumps(describe([2, 4]).as_dict()))
    assert found == {
        "count": 2,
        "dims": 1,
        "min": [2],
        "quantiles": [{"1": 2, "5": 2, "25": 2, "50": 2, "75": 4, "95": 4, "99": 4}],
        "mean": [3.0],
        "max": [4],
        "total": [6],
        "fingerprint": fingerprint([2, 4]),
    }
    assert describe([2**63 - 1] * 2).total == (2**64 - 2,)  # which int64 does not hold


@given(some_lengths.filter(bool))
def test_quantiles_are_the_smallest_lengths_that_hold_their_share(lengths):
    for percent, quantile in zip((1, 5, 25, 50, 75, 95, 99), describe(lengths).quantiles[0], strict=True):
        assert quantile in lengths
        assert 100 * sum(length <= quantile for length in lengths) >= percent * len(lengths)
        assert 100 * sum(length < quantile for length in lengths) < percent * len(lengths)


def test_fingerprints_hold_on_every_platform_and_for_every_dtype():
    assert fingerprint([1, 2, 3]) == "b7589102dda1c9e6"
    assert fingerprint([[1, 2], [3, 4]]) == "b06e39208242579e"
    assert fingerprint([]) == "ca08ea5bca49cc18"
    assert fingerprint(np.array([1, 2, 3], dtype=">i2")) == fingerprint([1.0, 2.0, 3.0]) == fingerprint([1, 2, 3])


def test_fingerprint_hashes_as_few_bytes_as_hold_the_longest():
    def hashed(width, *lengths):
        content = b"".join(length.to_bytes(width, "little") for length in lengths)
        return hashlib.blake2b(len(lengths).to_bytes(8, "little") + content, digest_size=8).hexdigest()

    for width, longest in ((1, 255), (2, 256), (2, 2**16 - 1), (4, 2**16), (4, 2**32 - 1), (8, 2**32), (8, 2**63 - 1)):
        assert fingerprint([1, longest, 7]) == hashed(width, 1, longest, 7)
    many = np.arange(1, 200_000)
    assert fingerprint(many) == hashed(4, *many.tolist())
    assert fingerprint([257]) != fingerprint([1, 1])


@given(some_lengths, some_lengths)
def test_other_lengths_have_another_fingerprint(first, second):
    assert (fingerprint(first) == fingerprint(second)) == (first == second)
    assert len({fingerprint(each) for each in ([1, 2], [[1], [2]], [[1, 2]])}) == 3


def test_golden_values_of_the_examples():
    assert example_lengths(count=6).tolist() == [136, 1115, 253, 500, 336, 415]
    assert example_lengths("speech", count=6).tolist() == [676, 507, 661, 766, 488, 612]
    assert fingerprint(example_lengths()) == "a63146d38a76868d"
    assert fingerprint(example_lengths("speech")) == "318e335edb3c61e1"


def test_speech_is_shaped_as_ljspeech():
    lengths = example_lengths("speech", count=100_000, seed=1)
    assert (lengths.min(), lengths.max()) == (89, 808)
    assert lengths.mean() == pytest.approx(525.4, abs=2)
    assert np.median(lengths) == pytest.approx(541, abs=3)


def test_long_tailed_is_log_normal():
    lengths = example_lengths(count=100_000, seed=1)
    assert 16 <= lengths.min() < 40
    assert 4000 < lengths.max() <= 8000
    assert np.log(lengths).mean() == pytest.approx(6.0, abs=0.01)
    assert np.log(lengths).std() == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_fewer_lengths_are_the_first_of_more(name):
    more = example_lengths(name, count=100, seed=3)
    assert example_lengths(name, count=7, seed=3).tolist() == more[:7].tolist()
    assert example_lengths(name, count=100, seed=4).tolist() != more.tolist()
    assert len(example_lengths(name)) == 10_480
    assert len(example_lengths(name, count=0)) == 0
    assert not more.flags.writeable
    assert more.dtype == np.int64
