"""The picture of an advice: all that was tried, the limit above it, and names of what counts."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.plot import front

SPEECH = lw.example_lengths("speech", count=1_500)


def named(figure):
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("world", [{}, {"world_size": 4}], ids=["one", "four"])
def test_what_ships_and_what_is_recommended_have_names(world):
    advice = lw.advise(SPEECH, lw.FixedSize(16), **world)
    figure = front(advice, lengths=SPEECH)
    names = named(figure)
    assert ("limit" in names) == (not world)
    assert "random (Lightning, Trainer)" in names
    assert sum(name.startswith("recommended: ") for name in names) == 1
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    assert all(low <= row.price <= high for row in advice.candidates)


def test_batches_lie_below_the_limit():
    advice = lw.advise(SPEECH, lw.FixedSize(16))
    (limit,) = [line for line in front(advice, lengths=SPEECH).axes[0].lines if line.get_linestyle() == "--"]
    across, height = limit.get_data()
    for row in advice.candidates:
        # Both are estimated in bins: those of little mixing show a little more.
        assert row.mixing <= np.interp(row.price, across, height) + 0.02


@pytest.mark.usefixtures("few_epochs")
def test_seconds_and_pairs_have_no_limit():
    pairs = np.stack([SPEECH, SPEECH[::-1]], axis=1)
    assert "limit" not in named(front(lw.advise(pairs, lw.FixedSize(16)), lengths=pairs))
    advice = lw.advise(SPEECH, lw.FixedSize(16), cost=lw.Quadratic(quadratic=0.01))
    figure = front(advice, lengths=SPEECH, title="speech")
    assert "limit" not in named(figure)
    assert figure.axes[0].get_xlabel().startswith("cost of an epoch\n")


def test_equal_lengths_can_be_drawn():
    assert "recommended: random (Lightning, Trainer)" in named(
        front(lw.advise([7] * 40, lw.FixedSize(4)), lengths=[7] * 40)
    )


def test_the_line_and_the_small_dots_are_explained_and_one_price_has_no_neighbours():
    figure = front(lw.advise([7] * 40, lw.FixedSize(4)))
    (axes,) = figure.axes
    assert axes.get_xticks().tolist() == [1.0]  # 0.9 computed frames for a useful one cannot be
    assert axes.get_xlabel().splitlines() == [
        "computed frames for each useful one",
        "line: nothing tried costs less and mixes as much; small dots: all that was tried",
    ]
