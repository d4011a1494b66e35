"""What a chart is made of: marks in a plot that is as wide as the page and some pixels high.

x      percent of the width of the plot, so that text keeps its size on every screen
y      pixels from the top of the plot
path   in a box of 1000 x 1000 that is stretched over the plot
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lengthwise.report import words

HEIGHT = 190  # of a plot, in pixels


class Mark(NamedTuple):
    """One element of SVG; `title` is shown when the pointer rests on it, `inner` stands within it."""

    tag: str
    attributes: dict[str, str]
    title: str = ""
    text: str = ""
    inner: tuple[Mark, ...] = ()


class Tick(NamedTuple):
    """A place on an axis, and what is written there."""

    place: float
    text: str
    anchor: str = "middle"


class Point(NamedTuple):
    """A place that the keyboard can reach, with what it says."""

    x: float
    y: float
    name: str
    text: str
    kind: str = ""


class Table(NamedTuple):
    """Rows of text below heads; the first `words` columns are words, the others numbers."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    words: int = 1


class Chart(NamedTuple):
    """One chart, as the template draws it.

    Attributes:
        title: Its heading.
        text: What it shows, for those who do not see it.
        table: What it draws, in numbers.
        x_label, y_label: What the axes are.
        x_ticks, y_ticks: Places in percent and in pixels.
        marks: In percent and pixels.
        paths: Classes and paths in the stretched box.
        points: That the keyboard can reach.
        keys: Names of the marks, by their letter; written below where the plot is narrow.
        caption: Said below.
        height: Of the plot, in pixels.
    """

    title: str
    text: str
    table: Table
    x_label: str = ""
    y_label: str = ""
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    marks: Sequence[Mark] = ()
    paths: Sequence[tuple[str, str]] = ()
    points: Sequence[Point] = ()
    keys: Sequence[tuple[str, str]] = ()
    caption: str = ""
    height: int = HEIGHT


class Scale(NamedTuple):
    """From numbers to places: `low` is at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.0
        return round(self.start + share * (self.end - self.start), 2)


def across(low: float, high: float) -> Scale:
    """The scale of an axis from left to right, in percent."""
    return Scale(low, high, 0.0, 100.0)


def upward(high: float, height: int = HEIGHT) -> Scale:
    """The scale of an axis from zero at the bottom to `high` at the top, in pixels."""
    return Scale(0.0, high or 1.0, float(height), 0.0)


def nice_steps(high: float, most: int = 5) -> list[float]:
    """Round numbers from 0 to `high`, at most `most` above 0.

    >>> nice_steps(23), nice_steps(0.61, 4)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [0.0, 0.2, 0.4, 0.6])
    """
    if high <= 0:
        return [0.0]
    raw = high / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= raw * (1 - 1e-9))
    return [float(f"{place * step:.12g}") for place in range(math.floor(high / step * (1 + 1e-9)) + 1)]


def ends(count: int) -> list[Tick]:
    """The first and the last of `count` bars; one alone is neither."""
    return [Tick(0, "first", "start"), Tick(100, "last", "end")] if count > 1 else []


def y_ticks(scale: Scale, most: int = 4, *, whole: bool = False) -> list[Tick]:
    """The ticks of an upward axis, from 0; of what is counted, at `whole` numbers alone."""
    steps = [value for value in nice_steps(scale.high, most) if not whole or value.is_integer()]
    return [Tick(scale(value), words.short(value)) for value in steps]


def bar(x: float, width: float, y: float, height: float, kind: str, title: str = "") -> Mark:
    """A rectangle of a class, from the left and from the top."""
    sizes = {"x": f"{x:.3f}%", "y": f"{y:.1f}", "width": f"{max(width, 0):.3f}%", "height": f"{max(height, 0):.1f}"}
    return Mark("rect", {"class": kind, **sizes}, title)


def line(x: tuple[float, float], y: tuple[float, float], kind: str) -> Mark:
    """A straight line of a class."""
    ends = {"x1": f"{x[0]:.2f}%", "x2": f"{x[1]:.2f}%", "y1": f"{y[0]:.1f}", "y2": f"{y[1]:.1f}"}
    return Mark("line", {"class": kind, **ends})


def text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start", shift: float = 0.0) -> Mark:
    """Words at a place; `shift` is in pixels to the right of it."""
    return Mark(
        "text",
        {"class": kind, "x": f"{x:.2f}%", "y": f"{y:.1f}", "dx": f"{shift:.1f}", "text-anchor": anchor},
        "",
        words,
    )
