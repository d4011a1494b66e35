"""Knobs that are fitted to a padding share."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.knobs import EPOCHS, ORDERS, fit_knob, knob_values, padding_share

LENGTHS = lw.example_lengths("speech")[:1024]
CUT = lw.FixedSize(16)


@pytest.mark.parametrize("order", ORDERS)
def test_a_knob_pads_what_was_wanted(order):
    fitted = fit_knob(LENGTHS, order, 0.1, cut=CUT)
    assert fitted.padding_share == pytest.approx(0.1, abs=0.005)
    assert fitted.padding_share == padding_share(LENGTHS, parse_strategy(fitted.strategy, cut=CUT))
    assert fitted.strategy == f"{order}:{fitted.knob:g}"


@pytest.mark.parametrize("order", ["alternated", "windowed", "bucketed"])
def test_no_value_of_a_whole_knob_comes_nearer(order):
    lengths = LENGTHS[:512]
    values = knob_values(lengths, order, 16, 0.1)
    shares = [padding_share(lengths, parse_strategy(f"{order}:{value}", cut=CUT)) for value in values]
    nearest = min(abs(share - 0.1) for share in shares)
    assert abs(fit_knob(lengths, order, 0.1, cut=CUT).padding_share - 0.1) == pytest.approx(nearest)


def test_a_knob_is_fitted_to_dynamic_batch_sizes_too():
    dynamic = lw.DynamicSize(16)
    fitted = fit_knob(LENGTHS, "semi-sorted", 0.1, cut=dynamic)
    assert fitted.padding_share == pytest.approx(0.1, abs=0.002)
    assert fitted.padding_share == padding_share(LENGTHS, parse_strategy(fitted.strategy, cut=dynamic))


def test_a_padding_share_by_hand():
    lengths = np.array([1, 2, 3, 6])
    assert padding_share(lengths, parse_strategy("sorted", cut=lw.FixedSize(2))) == pytest.approx(1 - 12 / 16)
    assert EPOCHS > 1


@pytest.mark.parametrize("order", ORDERS)
def test_the_fewest_sequences_have_a_value_to_try(order):
    assert len(knob_values(LENGTHS[:32], order, 16, 0.1)) > 0


@pytest.mark.parametrize(("order", "padding"), [("random", 0.1), ("semi-sorted", 0.0), ("semi-sorted", 1.0)])
def test_what_cannot_be_fitted_is_refused(order, padding):
    with pytest.raises(ValueError, match="must be"):
        fit_knob(LENGTHS, order, padding, cut=CUT)
