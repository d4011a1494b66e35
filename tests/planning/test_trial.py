"""Trials: few of them find the noise by which plans pad what was asked."""

import math

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
