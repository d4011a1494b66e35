"""The common look of all charts: colours, sizes, and the writing of files."""

from __future__ import annotations

import html
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lengthwise import files
from lengthwise.checks import value_error

try:
    import altair as alt
    import jinja2 as jinja2  # for pages; Altair needs it too
    import vl_convert  # noqa: F401  # Altair writes charts by it
    from altair.typing import ChartType as Chart  # one view, layers, or several views
except ImportError as _error:
    sentence = "Charts need Altair, jinja2 and vl-convert: pip install altair jinja2 vl-convert-python"
    raise ImportError(sentence, name=_error.name) from _error

# Each colour for a light page and for a dark one. Colour-blind readers can tell data, padding and the recommended
# strategy apart.
COLOURS = {
    "paper": ("#ffffff", "#14181c"),
    "card": ("#f4f6f8", "#1d2329"),
    "ink": ("#1b2127", "#eceff1"),
    "soft": ("#57616b", "#a7b1ba"),
    "line": ("#dde2e7", "#343c44"),
    "data": ("#0072b2", "#56b4e9"),
    "padding": ("#d17a00", "#f0a32a"),
    "recommended": ("#007a5a", "#3fd0a0"),
    "waiting": ("#aab3bb", "#66717b"),
}
PICTURES = (".png", ".svg", ".pdf")
WIDTH = 440  # pixels, axes included: one chart fits a phone, and three fit a screen
HEIGHT = 210  # pixels, without axes
_SMALL, _LARGE = 13, 15  # pixels of letters
_UNDRAWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # XML, and so SVG, forbids them


def colour(name: str) -> str:
    """Returns the colour of a part of a chart, for a light page."""
    return COLOURS[name][0]


def parts(*names: str) -> alt.Color:
    """Returns the colours of the parts of a chart, such as data and padding, with a legend."""
    scale = alt.Scale(domain=list(names), range=[colour(name) for name in names])
    return alt.Color("part:N", scale=scale, title=None)


def table(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Makes the data of a chart from rows."""
    return alt.InlineData(values=list(map(dict, rows)))


def furnish(chart: Any, title: str, text: str, *, notes: Sequence[str] = (), view: bool = True) -> Chart:
    """Gives a chart its title, a text for screen readers, and the common look.

    Args:
        chart: The chart.
        title: The title above the chart.
        text: A description, for screen readers.
        notes: Lines below the title.
        view: If True, fits the chart, a single view, to the usual width.
    """
    if view:
        chart = chart.properties(width=WIDTH, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    heading = alt.TitleParams(title, subtitle=list(notes))
    return chart.properties(title=heading, description=text).configure(**_look())


def _look() -> dict[str, Any]:
    ink, soft, line = colour("ink"), colour("soft"), colour("line")
    words = {"labelFontSize": _SMALL, "titleFontSize": _SMALL, "labelColor": soft, "titleColor": soft}
    return {
        "background": colour("paper"),
        "font": "Liberation Sans, Arial, Helvetica, sans-serif",
        "padding": 4,
        "view": alt.ViewConfig(stroke=None),
        "axis": alt.AxisConfig(
            **words, titleFontWeight="normal", gridColor=line, domainColor=line, tickColor=line, labelLimit=190
        ),
        "title": alt.TitleConfig(
            anchor="start",
            frame="bounds",
            color=ink,
            fontSize=_LARGE,
            fontWeight="bold",
            subtitleColor=soft,
            subtitleFontSize=_SMALL,
            offset=10,
        ),
        "legend": alt.LegendConfig(
            **words, orient="top", symbolType="square", symbolStrokeWidth=0, symbolSize=150, columnPadding=18
        ),
        "text": alt.MarkConfig(color=ink, fontSize=_SMALL),
        "rule": alt.MarkConfig(color=ink),
    }


def save_chart(chart: Chart, path: str | os.PathLike[str], *, dark: bool = False) -> None:
    """Writes a chart to a .png, .svg or .pdf file, whole or not at all.

    Args:
        chart: A chart of `lengthwise.report`, or any other chart of Altair.
        path: The file to write; its suffix decides the format.
        dark: If True, the colours of `lengthwise.report` become those for a dark page.

    Raises:
        ValueError: The suffix is unknown.
        FileNotFoundError: The folder does not exist.

    >>> import lengthwise as lw, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "lengths.svg")
    >>> lw.report.save_chart(lw.report.histogram([3, 5, 5, 9]), path)
    """
    files.check_path("path", path)
    kind = Path(path).suffix.lower()
    if kind not in PICTURES:
        remedy = "Name it chart.png, for example."
        raise value_error("path", f"a file of one of the kinds {', '.join(PICTURES)}", str(path), remedy)
    if dark:
        text = json.dumps(chart.to_dict(validate=False))
        for paper, screen in COLOURS.values():
            text = text.replace(f'"{paper}"', f'"{screen}"')
        chart = alt.Chart.from_dict(json.loads(text))
    if kind == ".svg":
        files.write(path, _write_svg(chart))
        return
    _check_letters(chart.to_dict(validate=False))
    content = io.BytesIO()
    options: dict[str, Any] = {"format": kind[1:], "scale_factor": 2 if kind == ".png" else 1}
    chart.save(content, **options)
    files.write(path, content.getvalue())


def inline_svg(chart: Chart, name: str) -> str:
    """Returns a chart as SVG for a page: as wide as its column, in the colours of the theme, with tooltips.

    Args:
        chart: The chart.
        name: A name that is unique on the page. The ids in the SVG begin with it.
    """
    svg = _write_svg(chart, f"{name}-")
    for variable, (paper, _) in COLOURS.items():
        svg = svg.replace(f'"{paper}"', f'"var(--{variable})"')
    svg = re.sub(r"(\.\d{2})\d+(?=[^<>]*>)", r"\1", svg)  # within tags: the text 0.098 % stays
    # Vega describes each mark for screen readers; a title shows the same text as a tooltip.
    svg = re.sub(r'<(path|line)([^>]* aria-label="([^"]*)"[^>]*)/>', r"<\1\2><title>\3</title></\1>", svg)
    text = html.escape(str(chart.to_dict()["description"]))
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    head = f'<svg role="img" aria-label="{text}" viewBox="0 0 {size[1]} {size[2]}">' if size else "<svg>"
    return head + svg.partition(">")[2]


def _check_letters(part: Any) -> None:
    """Refuses control characters in the texts of a chart: they make vl-convert end the whole process."""
    if isinstance(part, str) and _UNDRAWN.search(part):
        raise value_error("labels", "of letters that can be drawn", part, "Leave out control characters.")
    for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _check_letters(value)


def _write_svg(chart: Chart, start: str = "") -> str:
    _check_letters(chart.to_dict(validate=False))
    content = io.StringIO()
    chart.save(content, format="svg")
    # vl-convert numbers the parts of all charts of a process. We number them by chart: equal charts give equal files.
    names: dict[str, str] = {}
    return re.sub(
        r'( id="|url\(#)(\w+)',
        lambda match: match[1] + names.setdefault(match[2], f"{start}part{len(names)}"),
        content.getvalue(),
    )
