"""Colours and dashes of curves, the titles of panels, and the writing of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import lengthwise as lw
from lengthwise.report.style import Chart, alt, colour

# Colours of `lengthwise.report` have a dark version. All others contrast at least 3 to 1 with a light and a dark page.
COLOURS = {
    "random": colour("soft"),
    "sorted": colour("ink"),
    "semi-sorted": colour("data"),
    "alternated": colour("padding"),
    "bucketed": "#c2569b",
    "max-entropy": colour("recommended"),
}
RISING = ("#bf8400", "#d0603a", "#c2569b", "#8668cf", "#3f7fd0", "#2a8f7a")  # for labels that differ in a number
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3))
WIDTH = 540  # pixels, axes included: letters of 13 pixels can be read where a phone shows it 400 pixels wide
_LETTER, _SYMBOL = 7, 50  # pixels of a letter, and of what stands beside a name in a legend


class Look(NamedTuple):
    """The colour and the dash of a curve."""

    colour: str
    dash: tuple[int, ...] = DASHES[0]


def strategy_name(label: str) -> str:
    """Returns the strategy of a label, without the value of its knob or its options.

    >>> strategy_name("semi-sorted:0.1,arrange=in-order")
    'semi-sorted'
    """
    return label.partition(",")[0].partition(":")[0].strip()


def strategy_looks(labels: Iterable[str]) -> dict[str, Look]:
    """Returns the look of each label. Labels of one colour take the next dash each.

    >>> [look.dash for look in strategy_looks(["max-entropy:0.05", "random", "max-entropy:0.1"]).values()]
    [(1, 0), (1, 0), (6, 3)]
    """
    looks: dict[str, Look] = {}
    for number, label in enumerate(labels):
        shade = COLOURS.get(strategy_name(label), RISING[number % len(RISING)])
        relatives = sum(look.colour == shade for look in looks.values())
        looks[label] = Look(shade, DASHES[relatives % len(DASHES)])
    return looks


def rising_looks(labels: Iterable[str]) -> dict[str, Look]:
    """Returns the looks of labels that differ in one rising number: colours from yellow through red and blue to green.

    >>> [look.colour for look in rising_looks(["Q = 1", "Q = 8"]).values()]
    ['#bf8400', '#2a8f7a']
    """
    listed = list(labels)
    last = max(1, len(listed) - 1)
    return {label: Look(RISING[place * (len(RISING) - 1) // last]) for place, label in enumerate(listed)}


def look_channels(looks: Mapping[str, Look]) -> tuple[alt.Color, alt.StrokeDash]:
    """Returns the colours and the dashes of the field "name", with one legend of as many columns as have room."""
    columns = max(1, WIDTH // (_SYMBOL + _LETTER * max(map(len, looks))))
    legend = alt.Legend(
        title=None, columns=columns, labelLimit=0, symbolType="stroke", symbolStrokeWidth=2, symbolOpacity=1
    )
    ranges = [look.colour for look in looks.values()], [list(look.dash) for look in looks.values()]
    colours, dashes = (alt.Scale(domain=list(looks), range=values) for values in ranges)
    return alt.Color("name:N", scale=colours, legend=legend), alt.StrokeDash("name:N", scale=dashes, legend=legend)


def panel_facet(titles: Iterable[str], width: int) -> alt.Facet:
    """Returns the facet by the field "panel" in the order of the titles, whose lines stand above the panels."""
    header = alt.Header(
        title=None,
        labelAnchor="start",
        labelFontSize=13,
        labelColor=colour("ink"),
        labelLimit=width + 20,
        labelPadding=4,
        labelExpr="split(datum.label, '\\n')",
    )
    return alt.Facet("panel:N", sort=list(titles), header=header)


def save(chart: Chart, path: Path) -> None:
    """Writes a picture; beside a.svg also a-dark.svg, in the colours of a dark page."""
    lw.report.save_chart(chart, path)
    if path.suffix.lower() == ".svg":
        lw.report.save_chart(chart, path.with_stem(f"{path.stem}-dark"), dark=True)
