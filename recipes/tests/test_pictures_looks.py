"""Colours and dashes that can be told apart on light and dark pages, and the files of a picture."""

import re

import pytest

pytest.importorskip("altair")

import numpy as np

import lengthwise as lw
from lengthwise.report import style
from lengthwise_recipes.pictures import looks


def luminance(colour):
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", sorted({*looks.COLOURS.values(), *looks.RISING}))
def test_every_colour_can_be_seen_on_a_light_and_on_a_dark_page(colour):
    by_page = dict(style.COLOURS.values()).get(colour, colour)
    for shown, paper in zip((colour, by_page), style.COLOURS["paper"], strict=True):
        assert contrast(shown, paper) >= 3.0  # of lines, at least (WCAG 2.1)


def test_unknown_strategies_are_told_apart_by_their_number():
    names = looks.strategy_looks(f"mine{number}" for number in range(24))
    assert len(set(names.values())) == 24
    assert len({look.colour for look in looks.rising_looks("abcdef").values()}) == 6


def test_a_picture_is_written_for_light_and_dark_pages(tmp_path):
    chart = lw.report.histogram([1, 2, 2])
    for name in ("a.svg", "b.png"):
        looks.save(chart, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-dark.svg", "a.svg", "b.png"]
    light, dark = (re.findall("#[0-9a-f]{6}", (tmp_path / name).read_text()) for name in ("a.svg", "a-dark.svg"))
    assert dark == [dict(style.COLOURS.values())[colour] for colour in light]
