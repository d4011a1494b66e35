"""Trials: few of them find the noise by which plans pad what was asked."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning.trial import _seek


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.floats(1e-3, 0.98), st.floats(-2.0, 2.0), st.floats(0.5, 3.0), st.floats(1e-3, 0.4), st.floats(0.5, 1.0))
def test_a_scale_is_found_by_few_trials(asked, shift, slope, least, most):
    """Whatever the first guess is, and however padding rises with the noise between sorted and random batches."""

    def measure(order):
        if not isinstance(order, lw.MaxEntropy):
            return most if isinstance(order, lw.Shuffled) else least
        odds = math.exp(shift) * order.scale**slope
        return least + (most - least) * odds / (1.0 + odds)

    tried = _seek(asked, 1e-3, lambda scale: lw.MaxEntropy(scale=scale), asked / (1.0 - asked), measure)
    nearest = min(max(asked, least), most)
    assert min(abs(achieved - nearest) for _, achieved in tried) < 0.004
    assert len(tried) <= 20


def test_rows_that_are_filled_up_count_as_padding():
    """Fitted to the sequences alone, plans padded up to 3 points more than was asked, without a word."""
    lengths = lw.example_lengths("speech", count=10_000)
    cut = lw.Budget(24 * float(lengths.mean()), count_multiple_of=8)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, padding=0.1, deal=lw.Stratified()))
    assert lw.measure(plan, lengths).padding_share == pytest.approx(0.1, abs=0.005)


def test_the_longest_of_very_many_lengths_is_in_every_trial():
    """It sets the capacity of `DynamicSize`. In trials without it, batches would have 10 sequences, and not 350."""
    lengths = np.random.default_rng(0).lognormal(4.5, 0.5, 220_000).astype(np.int64).clip(20, 500)
    lengths[41_320] = 20_000  # not in the random sample of 200,000
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.DynamicSize(2), padding=0.1, deal=lw.Mixed()))
    assert lw.measure(plan, lengths).padding_share == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize(
    ("deal", "options"), [(lw.Portions(), {"world_size": 10}), (lw.Mixed(), {"groups": np.arange(400) % 10})]
)
def test_sequences_of_small_portions_or_groups_pad_what_was_asked(deal, options):
    """40 of them are further apart than all 400, which need more noise to pad as much."""
    lengths = np.random.default_rng(0).lognormal(4.5, 0.5, 400).astype(int) + 10
    batching = lw.Batching(cut=lw.FixedSize(8), padding=0.2, deal=deal)
    plans = [lw.make_plan(lengths, batching, epoch=epoch, **options) for epoch in range(20)]
    assert lw.measure(plans, lengths).padding_share == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("choices", [{}, {"padding": 0.1, "deal": lw.Mixed()}], ids=["open", "given"])
def test_a_giant_among_very_many_lengths_is_named_by_its_number_among_all(choices):
    """Trials take a sample, in which it has another number."""
    lengths = np.full(210_000, 50)
    lengths[77_777] = 5_000
    with pytest.raises(lw.OversizeError, match=r"at sequence 77777\. "):
        lw.make_plan(lengths, lw.Batching(budget=4_000, **choices), world_size=8)
