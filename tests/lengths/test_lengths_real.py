"""Real lengths, where the shared data are at hand: LENGTHWISE_DATA or ../shared/data."""

import os
from pathlib import Path

import pytest

from lengthwise.lengths import describe, read_lengths

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def real(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {DATA / name}: set LENGTHWISE_DATA to the folder with the real lengths")
    return DATA / name


def test_ljspeech():
    path = real("ljspeech/ljspeech_lengths.csv")
    found = describe(read_lengths(path, column="frames_12p5ms"))
    assert (found.count, found.min, found.max) == (13_100, (89,), (808,))
    assert found.mean[0] == pytest.approx(525.80, abs=0.005)
    hours = read_lengths(path, column="seconds_est", frame_shift=0.0125).sum() * 0.0125 / 3600
    assert hours == pytest.approx(23.9, abs=0.05)


def test_pairs_of_token_counts():
    lengths = read_lengths(real("lengths/multi30k_train_en_de_tokens.npy"))
    assert lengths.shape == (29_000, 2)
