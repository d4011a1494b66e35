"""The example lengths: golden values, range, and independence of count."""

import numpy as np
import pytest

from lengthwise.lengths import example_lengths, fingerprint


def test_golden_values():
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
