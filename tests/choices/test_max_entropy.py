"""The padding that max-entropy sorting is fitted to, and its noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw

pytestmark = pytest.mark.slow


def of_few_lengths(tallies, count=20_000):
    """`count` lengths, each as often as it is tallied."""
    return np.repeat(np.array(list(tallies)), np.array(list(tallies.values())) * count // sum(tallies.values()))


def padding_had(lengths, order, cut, epochs=3):
    """Pooled over epochs: where few batches are padded, chance decides how many."""
    plans = [lw.make_plan(lengths, lw.Batching(order=order, cut=cut), epoch=epoch) for epoch in range(epochs)]
    return 1.0 - epochs * lengths.sum() / sum(plan.padded_lengths[:, 0] @ plan.batch_sizes for plan in plans)


@pytest.mark.parametrize("cut", [lw.FixedSize(16), lw.Budget(128_000, max_sequences=16), lw.DynamicSize(16)], ids=repr)
def test_the_padding_asked_for_is_had(cut):
    lengths = lw.example_lengths("long-tailed", count=30_000)  # a hundred batches and more, of 128,000 frames too
    least = lw.measure(lw.make_plan(lengths, lw.Batching(order=lw.Sorted(), cut=cut)), lengths).padding_share
    for padding in (0.02, 0.1, 0.2):
        batching = lw.Batching(order=lw.MaxEntropy(padding=padding), cut=cut)
        measured = lw.measure(lw.make_plan(lengths, batching), lengths).padding_share
        assert measured == pytest.approx(max(padding, least), abs=0.005)


@settings(max_examples=12, derandomize=True, deadline=None)
@given(
    # From 20 on: of two or three batches none has a padding that was asked for.
    st.dictionaries(st.integers(20, 1_000), st.integers(1, 20), min_size=2, max_size=6),
    st.sampled_from([lw.FixedSize(16), lw.Budget(16_000), lw.Budget(16_000, max_sequences=40)]),
    st.floats(0.0, 1.0),
)
def test_any_few_lengths_are_padded_as_asked_between_sorted_and_random(tallies, cut, share):
    lengths = of_few_lengths(tallies)
    least, most = (padding_had(lengths, order, cut) for order in (lw.Sorted(), lw.Shuffled()))
    padding = least + share * (most - least)
    assert padding_had(lengths, lw.MaxEntropy(padding=padding), cut) == pytest.approx(padding, abs=0.02)


def test_noise_of_a_scale_is_exponential_and_hardly_any_sorts():
    lengths, choices = lw.example_lengths(count=5_000), {"cut": lw.FixedSize(1), "deal": lw.InTurn()}
    plan = lw.make_plan(lengths, lw.Batching(order=lw.MaxEntropy(scale=50.0), **choices))
    assert abs(np.corrcoef(np.arange(5_000), lengths[plan.sequences])[0, 1]) > 0.8
    # The longest of 5,000 noises is about 50 log(5,000) = 426, and hardly ever above 800.
    ahead = np.maximum.accumulate(lengths[plan.sequences])
    assert 200 < (ahead - lengths[plan.sequences]).max() < 800
    tiny = lw.Batching(order=lw.MaxEntropy(scale=5e-324), arrange=lw.InOrder(), **choices)
    assert lw.make_plan([9, 4, 7, 1], tiny).sequences.tolist() == [3, 1, 2, 0]
