"""How often epochs take each sequence: the law of the draw, and every promise of plans of copies."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.planning.times import draw_times, name_times, read_times

EPOCHS = [0, 1, 2, 7, 999_999, 10**6, 2**40, 2**64 - 2]

some_times = st.lists(
    st.one_of(
        st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 1.0, 1 / 3, 2.5, 7.0]),
        st.floats(0, 4, allow_nan=False),
    ),
    min_size=1,
    max_size=40,
).filter(any)
"""[n]: many of them equal, as those of a source are."""


def exact(draw, number):
    """The times of a sequence as the draw has them, and its phase: fractions without rounding."""
    unit = 2**64
    times = Fraction(int(draw.whole[number])) + Fraction(int(draw.fraction[number]), unit)
    return times, Fraction(int(draw.phases[number]), unit)


@settings(max_examples=150, derandomize=True)
@given(some_times, st.integers(0, 2**64 - 1))
def test_the_draw_is_its_formula_without_rounding_in_every_epoch(times, seed):
    draw = draw_times(np.array(times), seed)
    for number, asked in enumerate(times):
        own, phase = exact(draw, number)
        assert abs(own - Fraction(asked)) < Fraction(1, 2**64)
        for epoch in EPOCHS:
            expected = floor((epoch + 1) * own + phase) - floor(epoch * own + phase)
            assert draw.take(epoch)[number] == expected
            assert floor(own) <= expected <= ceil(own)


@settings(max_examples=150, derandomize=True)
@given(some_times, st.integers(0, 2**32), st.sampled_from(EPOCHS[:-1]), st.integers(1, 30))
def test_over_epochs_in_a_row_sequences_and_sources_are_exact(times, seed, first, epochs):
    """Each sequence, and all that have the same times together, are taken as often as asked, rounded up or down."""
    draw = draw_times(np.array(times), seed)
    taken = sum(draw.take(epoch) for epoch in range(first, first + epochs))
    for value in set(times):
        of_value = np.flatnonzero(np.array(times) == value)
        own, _ = exact(draw, of_value[0])
        assert set(taken[of_value].tolist()) <= {floor(epochs * own), ceil(epochs * own)}
        together = len(of_value) * epochs * own
        assert floor(together) <= taken[of_value].sum() <= ceil(together)


@pytest.mark.parametrize(
    ("times", "sizes"), [((0.4, 2.5), (1_000, 160)), ((0.1, 1.0, 3.3), (77, 5, 1)), ((1 / 3,), (7,))]
)
def test_each_source_is_exact_in_every_epoch_far_out_too(times, sizes):
    draw = draw_times(np.repeat(times, sizes), seed=5)
    source = np.repeat(np.arange(len(times)), sizes)
    for epoch in [*range(50), *range(10**6 - 50, 10**6)]:
        totals = np.bincount(source, draw.take(epoch))
        assert (np.abs(totals - np.multiply(times, sizes)) < 1 + 1e-9).all()


def test_whole_times_are_taken_in_every_epoch():
    draw = draw_times(np.array([0.0, 1.0, 3.0]), seed=1)
    assert all(draw.take(epoch).tolist() == [0, 1, 3] for epoch in EPOCHS)


def test_seeds_draw_other_phases_and_every_phase_is_as_likely():
    times = np.full(16, 0.5)
    first = np.array([draw_times(times, seed).take(0) for seed in range(400)])
    assert (first.sum(axis=1) == 8).all()
    assert len({row.tobytes() for row in first}) > 390
    # Each is taken in half of the seeds: 200, with a standard deviation of 10.
    assert (np.abs(first.sum(axis=0) - 200) < 50).all()
    # So are sequences whose times all differ, each of which is a group of its own.
    apart = np.array([draw_times(0.5 + np.arange(16) / 1_000, seed).take(0) for seed in range(400)])
    assert (np.abs(apart.sum(axis=0) - 200) < 55).all()


def test_the_order_of_the_sequences_is_no_order_of_phases():
    phases = draw_times(np.full(10_000, 0.5), seed=0).phases.astype(float)
    assert abs(np.corrcoef(np.arange(10_000), phases)[0, 1]) < 0.05


def test_the_most_holds_every_epoch():
    times = np.array([0.0, 0.3, 1.0, 2.5])
    draw = draw_times(times, seed=3)
    assert draw.most().tolist() == [0, 1, 1, 3]
    assert np.max([draw.take(epoch) for epoch in range(20)], axis=0).tolist() == [0, 1, 1, 3]


def test_the_draw_is_the_same_on_every_platform():
    draw = draw_times(np.array([0.4] * 7 + [2.5] * 3 + [1 / 3]), seed=11)
    assert [draw.take(epoch).tolist() for epoch in (0, 1, 10**6)] == [
        [0, 0, 0, 1, 1, 0, 1, 2, 2, 3, 1],
        [1, 1, 1, 0, 0, 0, 0, 3, 3, 2, 0],
        [0, 0, 0, 1, 1, 0, 1, 2, 2, 3, 0],
    ]
    assert name_times(np.array([0.4, 2.5])) == "075083f2771e5828"


def test_one_number_and_every_kind_of_numbers_are_read():
    assert read_times(2, 3).tolist() == [2.0, 2.0, 2.0]
    for kind in (np.float16, np.float32, np.uint8, np.int64, list):
        given_times = [0, 1, 2] if kind is list else np.array([0, 1, 2], kind)
        assert read_times(given_times, 3).tolist() == [0.0, 1.0, 2.0]
    assert name_times(read_times([-0.0, 1], 2)) == name_times(read_times([0, 1], 2))
    assert read_times([], 0).tolist() == []
    own = np.array([1.0, 2.0])
    assert not np.shares_memory(read_times(own, 2), own)
