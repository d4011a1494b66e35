"""The noise of an order is found by few trials."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise._random import Key
from lengthwise.choices.warp import find_root
from lengthwise.planning import noise
from lengthwise.planning.draft import count_frames, share_of_padding
from lengthwise.planning.trial import Data, Trial

FAST = settings(max_examples=50, derandomize=True, deadline=None)


def falling(root, bend, steepness):
    """A falling function that is 0 at `root`, of a slope that grows or falls a hundredfold within ten."""
    return lambda place: steepness * (math.exp(bend * root) - math.exp(bend * place)) / (bend * math.exp(bend * root))


@FAST
@given(st.floats(-4.9, 7.9), st.floats(0.01, 0.45) | st.floats(-0.45, -0.01), st.floats(0.2, 5.0))
def test_a_root_between_known_ends_is_found_by_few_calls(root, bend, steepness):
    function, called = falling(root, bend, steepness), []

    def counted(place):
        called.append(place)
        return function(place)

    found = find_root(counted, -5.0, 8.0, near=1e-3, ends=(function(-5.0), function(8.0)))
    assert abs(function(found)) < 1e-3 or abs(found - root) < 1e-3
    assert len(called) <= 16
    assert all(-5.0 <= place <= 8.0 for place in called)


@pytest.mark.parametrize("crosses_at", [-30.0, 30.0])
def test_a_function_that_does_not_cross_is_followed_to_its_bound_by_few_calls(crosses_at):
    called = []
    found = find_root(lambda place: called.append(place) or crosses_at - place, -10.0, 15.0)
    assert found == (-10.0 if crosses_at < 0 else 15.0)
    assert len(called) <= 5


@FAST
@given(st.floats(-9.99, 14.99), st.floats(0.01, 0.45) | st.floats(-0.45, -0.01), st.floats(0.2, 5.0))
def test_a_root_near_a_bound_that_nobody_looked_at_is_found(root, bend, steepness):
    function = falling(root, bend, steepness)
    found = find_root(function, -10.0, 15.0)
    assert abs(function(found)) < 1e-5 or abs(found - root) < 2e-5


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_calls_are_made_than_asked(most):
    called = []
    find_root(lambda place: called.append(place) or 1.0, 0.0, 1.0, ends=(1.0, -1.0), most=most)
    assert len(called) == most


@FAST
@given(st.floats(-4.9, 7.9), st.floats(-4.9, 7.9), st.floats(0.01, 0.45), st.floats(0.2, 2.0))
def test_what_is_sought_is_found_from_anywhere(start, root, bend, steepness):
    function, called = falling(root, bend, steepness), []

    def excess(place):
        value = function(place)
        called.append(place)
        return 0.0 if abs(value) < 0.01 else value

    assume(function(start))
    noise._seek_root(excess, start, function(start))
    assert min(min(abs(function(place)), abs(place - root)) for place in called) < 0.02
    assert len(called) <= 12
    assert all(-5.0 <= place <= 8.0 for place in called)


@pytest.mark.parametrize("value", [0.7, -0.7])
def test_what_never_changes_is_soon_given_up(value):
    called = []
    noise._seek_root(lambda place: called.append(place) or value, 2.0, value)
    assert len(called) <= 3
    assert called[-1] == (8.0 if value > 0 else -5.0)


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
    assert len(trials) <= 15
    assert lw.measure(plans, pairs).padding_share == pytest.approx(padding, abs=0.006)


@pytest.mark.parametrize("noise", ["optimal", "exponential"])
def test_a_padding_of_hundreds_of_bands_is_had(noise):
    """Along a line of 512 bands even noise that pads 0.03 % of it reaches other bands, and pads 8 %."""
    pairs = pairs_of(600_000, "long-tailed")
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(0.05, noise=noise), deal=lw.Stratified())
    plan = lw.make_plan(pairs, batching)
    assert lw.measure(plan, pairs).padding_share == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("cut", [lw.Budget(900), lw.FixedSize(7), lw.DynamicSize(3, rule="paper")])
@pytest.mark.parametrize("places", [0, 4])
@pytest.mark.parametrize(("drafted", "dims", "asked"), [(1, 1, 1), (2, 1, 4), (1, 2, 4)])
def test_sorted_sequences_are_drafted_once_where_each_draft_pads_the_same(
    cut, places, drafted, dims, asked, monkeypatch
):
    items = np.random.default_rng(0).integers(1, 40, (300, dims))  # many of a length, in another order by every key
    trial = Trial(
        Data(items, ""), lw.Batching(cut=cut), portions=drafted, slots=1, bands=(), drafted=drafted, places=places
    )
    trial.trials = 4
    keys, draft = [], trial._draft
    monkeypatch.setattr(trial, "_draft", lambda order, items, key: keys.append(key) or draft(order, items, key))
    found = trial.padding_of(lw.Sorted())
    assert len(keys) == asked
    every = [share_of_padding(*count_frames(draft(lw.Sorted(), items, Key(epoch=epoch)), items)) for epoch in range(3)]
    assert (set(every) == {found}) == (asked == 1)
