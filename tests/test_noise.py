"""The noise of an order is found by few trials."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise._random import Key
from lengthwise.planning.draft import Fitted
from lengthwise.planning.items import Items
from lengthwise.planning.trial import Data, Trial, _seek, count_frames, share_of_padding


@settings(max_examples=200, derandomize=True, deadline=None)
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


def pairs_of(count, name):
    lengths = lw.example_lengths(name, count=count)
    return np.stack([lengths, np.maximum(1, lengths * (3 + np.arange(count) * 7_919 % 5) // 5)], axis=1)


@pytest.mark.parametrize("padding", [0.1, 0.15, 0.2])
@pytest.mark.parametrize("name", ["speech", "long-tailed"])
def test_a_padding_of_two_lengths_takes_few_trials(name, padding, monkeypatch):
    trials, found = [], Trial.padding_of
    monkeypatch.setattr(
        Trial, "padding_of", lambda self, order, **how: trials.append(order) or found(self, order, **how)
    )
    pairs = pairs_of(5_000, name)
    batching = lw.Batching(cut=lw.FixedSize(16), padding=padding, deal=lw.Stratified())
    plans = [lw.make_plan(pairs, batching, epoch=epoch) for epoch in range(4)]
    assert len(trials) <= 20
    assert lw.measure(plans, pairs).padding_share == pytest.approx(padding, abs=0.006)


@pytest.mark.parametrize("cut", [lw.Budget(900), lw.FixedSize(7), lw.DynamicSize(3, rule="paper")])
@pytest.mark.parametrize("places", [0, 4])
@pytest.mark.parametrize(("drafted", "dims", "asked"), [(1, 1, 1), (2, 1, 4), (1, 2, 4)])
def test_sorted_sequences_are_drafted_once_where_each_draft_pads_the_same(
    cut, places, drafted, dims, asked, monkeypatch
):
    items = np.random.default_rng(0).integers(1, 40, (300, dims))  # many of a length, in another order by every key
    batching = lw.Batching(cut=cut, deal=lw.Balanced())
    fitted = Fitted(batching, lw.Sorted())
    trial = Trial(Data(items, ""), fitted, portions=drafted, slots=1, drafted=drafted, places=places)
    trial.trials = 4
    keys, draft = [], trial._draft
    monkeypatch.setattr(trial, "_draft", lambda *given: keys.append(given) or draft(*given))
    found = trial.padding_of(lw.Sorted())
    assert len(keys) == asked
    drafts = [draft(lw.Sorted(), Items(items), Key(epoch=epoch)) for epoch in range(3)]
    every = [share_of_padding(*count_frames(each, items, cut)) for each in drafts]
    assert (set(every) == {found}) == (asked == 1)


@pytest.mark.parametrize("padding", [0.1, 0.2])
def test_rows_that_are_filled_up_count_as_padding(padding):
    """Fitted to the sequences alone, plans padded up to 3 points more than was asked, without a word."""
    lengths = lw.example_lengths("speech", count=20_000)
    cut = lw.Budget(24 * float(lengths.mean()), count_multiple_of=8)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, padding=padding, deal=lw.Stratified()))
    assert lw.measure(plan, lengths).padding_share == pytest.approx(padding, abs=0.005)
