"""Numbers as text, and the headline of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def percent(share: float) -> str:
    """Returns a share in percent, with at least two significant digits.

    >>> percent(0.3207), percent(0.053), percent(0.0016), percent(0.0), percent(-1e-17)
    ('32.1 %', '5.3 %', '0.16 %', '0 %', '0 %')
    """
    value = 100.0 * max(share, 0.0)
    return f"{value:.1f} %" if value >= 1.0 else f"{float(f'{value:.2g}'):g} %"


def count(number: int, one: str, several: str = "") -> str:
    """Returns a number with its noun.

    >>> count(1, "batch", "batches"), count(1_200, "step")
    ('1 batch', '1,200 steps')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def number(value: float) -> str:
    """Returns a number as text.

    >>> number(12_345.0), number(1_234.56), number(0.1234)
    ('12,345', '1,234.6', '0.123')
    """
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:,.3g}"


def computed(padding_share: float) -> str:
    """Returns the computed frames for each frame of data; "endless" if there are no data.

    >>> computed(0.655), computed(0.0)
    ('2.90', '1.00')
    """
    return f"{1 / (1 - padding_share):.2f}" if padding_share < 1 else "endless"


def shorten(label: str, most: int = 30) -> str:
    """Cuts a label to at most `most` letters.

    >>> shorten("max-entropy:0.1"), len(shorten("a" * 40))
    ('max-entropy:0.1', 30)
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"


def write_headline(rows: Mapping[str, Row], best: str, *, packed: bool, unit: str = "frames") -> str:
    """Returns the first sentence of the page.

    >>> rows = {"random": {"padding_share": 0.655}, "max-entropy:0.1": {"padding_share": 0.099}}
    >>> write_headline(rows, "max-entropy:0.1", packed=False)
    'Random batches compute 2.90 frames for each frame of data; max-entropy:0.1 computes 1.11.'
    >>> write_headline(rows, "random", packed=False)
    'Random batches compute 2.90 frames for each frame of data; no strategy computes clearly less.'
    >>> write_headline({"random of 16": rows["random"]}, "random of 16", packed=False)
    'Random batches of 16 compute 2.90 frames for each frame of data.'
    """
    if not rows:
        return "The lengths, without a plan."
    first = next(iter(rows))
    if packed:
        fills = [f"{100 * rows[label]['fill']:.2f} %" for label in (first, best)]
        start = f"Rows of {first} are {fills[0]} data"
        if first == best:
            return f"{start}."
        return (
            f"{start}, as those of {best} are." if fills[0] == fills[1] else f"{start}; those of {best} are {fills[1]}."
        )
    is_random = first.partition(" ")[0] == "random"
    subject = f"Random batches{first.removeprefix('random')} compute" if is_random else f"{first} computes"
    frames = [computed(rows[label]["padding_share"]) for label in (first, best)]
    start = f"{subject} {frames[0]} {unit} for each {unit.removesuffix('s')} of data"
    if first == best:
        return f"{start}." if len(rows) == 1 else f"{start}; no strategy computes clearly less."
    return f"{start}, as {best} does." if frames[0] == frames[1] else f"{start}; {best} computes {frames[1]}."
