"""The trade-off: mixing against padding, or against seconds, every strategy a point, and the limit of all batching."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.measures.limit import mixing_limit
from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, spread
from lengthwise.report.labels import LETTER, LINE, Box, Place, place_labels
from lengthwise.report.marks import Chart, Mark, Point, Scale, Table, Tick

_HEIGHT = 300
# Pixels of a plot for which labels are placed: names where it fills a screen or a page, and letters on a phone.
_VAST, _WIDE, _NARROW = 870, 560, 290
_MOST_BINS = 1_024  # of the limit; the same as of the mixing that is held against it
_POINTS = 25  # on the limit
_ENOUGH = 65_536  # lengths that tell the limit as well as any number


Curve = Sequence[tuple[float, float]]  # places in percent and in pixels
_LIMIT = "the limit"
_ABOVE, _SHIFT = 5.0, -8.0  # pixels from the curve to its name, up and to the right
_UPON = 3.0  # pixels between points that cannot be told apart
_LEFT = 15.0  # percent of the width, which its name takes


class Spot(NamedTuple):
    """A strategy on the plane: what it costs, how it mixes, what is told of it, and whether its name is written."""

    label: str
    cost: float
    mixing: float
    told: str
    named: bool = True


def draw_front(
    lengths: NDArray[np.int64], epochs: Sequence[Epoch], rows: Mapping[str, Mapping[str, Any]], *, best: str
) -> list[Chart]:
    """Mixing against padding with the limit; of steps of several batches, that of steps. Nothing of packed rows.

    Args:
        lengths: Of all sequences.
        epochs: All that are compared.
        rows: Their measures, by label.
        best: The label that is put forward.
    """
    if len(epochs) < 2 or not len(lengths) or any(each.plan.row_offsets is not None for each in epochs):
        return []
    slots = epochs[-1].slots
    name = "step_mixing" if slots > 1 else "mixing"
    mixing = name.replace("_", " ")
    spots = [
        Spot(
            label,
            row["padding_share"],
            row[name],
            f"{words.percent(row['padding_share'])} padding, {mixing} {row[name]:.3f}",
        )
        for label, row in rows.items()
    ]
    spots.sort(key=lambda spot: spot.label == best)  # the last is the one that is put forward
    end = min(1.0, 1.06 * max(spot.cost for spot in spots)) or 0.1
    limit = _limit(lengths, min(end, 0.999), epochs[-1], bins=next(iter(rows.values()))["mixing_bins"])
    what = f"steps of {slots} batches" if slots > 1 else "batches"
    return [
        _draw(
            spots,
            limit,
            marks.across(0.0, end),
            title=f"How random {what} are, for what they pad",
            x_label="padding, as a share of what is computed",
            x_ticks=_percents(end),
            cost="padding",
            mixing=mixing,
            write=words.percent,
            caption=_caption(slots, drawn=bool(limit)),
        )
    ]


def _caption(slots: int, *, drawn: bool) -> str:
    """What mixing is, of batches or of whole steps, and what the dashed line is where one is drawn."""
    told = "Up and left is better. "
    if slots == 1:
        told += "Mixing is 1 where a batch tells nothing of the lengths in it, and near 0 where it tells all."
        return f"{told} Dashed: the limit, which no batching passes."
    told += (
        f"A step is the {slots:,} batches of one update of the weights. Step mixing is 1 where every step holds "
        "short and long sequences alike, and near 0 where a step holds one length. It is taken from the mean padded "
        "length of a step."
    )
    if not drawn:
        return f"{told} No limit is drawn: that of steps of so many batches takes too long to compute."
    return f"{told} Dashed: the limit for all lengths of a step. A mean tells less, so a point may lie above it."


def draw_seconds(seconds: Mapping[str, float], rows: Mapping[str, Mapping[str, Any]], *, best: str) -> list[Chart]:
    """Mixing against the seconds of an epoch that were measured, by label; `best` is put forward."""
    told = {label: f"{value:.3g} s an epoch, mixing {rows[label]['mixing']:.3f}" for label, value in seconds.items()}
    spots = [Spot(label, value, rows[label]["mixing"], told[label]) for label, value in seconds.items()]
    if len(spots) < 2 or not any(seconds.values()):
        return []
    spots.sort(key=lambda spot: spot.label == best)
    title = "How random batches are, for the seconds of an epoch"
    return [draw_spots(spots, title=title, cost="seconds of an epoch", caption="Up and left is better.")]


def draw_spots(
    spots: Sequence[Spot],
    *,
    title: str,
    cost: str,
    caption: str,
    mixing: str = "mixing",
) -> Chart:
    """Mixing against a cost in any unit, without a limit; the last spot is the one that is put forward."""
    least, most = min(spot.cost for spot in spots), max(spot.cost for spot in spots)
    room = 0.06 * (most - least) or 0.06 * most or 1.0
    x = marks.across(max(0.0, least - room), most + room)
    ticks = [Tick(x(value), words.short(value)) for value in marks.nice_steps(x.high, 8) if 3 < x(value) < 97]
    return _draw(
        spots,
        [],
        x,
        title=title,
        x_label=cost,
        x_ticks=ticks,
        cost=cost,
        mixing=mixing,
        write=lambda value: f"{value:,.4g}",
        caption=caption,
    )


def _limit(lengths: NDArray[np.int64], end: float, epoch: Epoch, *, bins: int) -> list[tuple[float, float]]:
    """The limit at some padding shares."""
    whole = lengths if lengths.ndim == 1 else lengths.sum(axis=1)
    sizes = whole if epoch.plan.spans is None else epoch.taken
    if epoch.slots > 1:  # of steps of several batches, it is not the limit
        return []
    if len(sizes) > _ENOUGH:  # quantiles of the lengths have the same limit, and are sorted once
        sizes = np.sort(sizes)[spread(len(sizes), _ENOUGH)]
    shares = (end * np.linspace(0.0, 1.0, _POINTS) ** 2).tolist()  # closer together where little is padded
    bins = max(2, min(bins, _MOST_BINS))
    found: list[tuple[float, float]] = []
    for share in shares:
        # Once it is 1 it stays so.
        full = bool(found) and found[-1][1] >= 1.0
        found.append((share, 1.0 if full else mixing_limit(sizes, share, bins=bins)))
    return found


def _draw(
    spots: Sequence[Spot],
    limit: Sequence[tuple[float, float]],
    x: Scale,
    *,
    cost: str,
    write: Any,
    mixing: str = "mixing",
    **labels: Any,
) -> Chart:
    y = marks.upward(1.0, _HEIGHT)
    curve = " ".join(f"{10 * x(share):.1f},{1000 - 1000 * height:.1f}" for share, height in limit)
    named = [spot.label for spot in spots if spot.named]
    letters = dict(zip(named, _letters(len(named)), strict=True))
    best = max(spots, key=lambda spot: spot.mixing)
    return Chart(
        text=f"{words.count(len(spots), 'strategy', 'strategies')} by {cost} and {mixing}. "
        f"{best.label} mixes most: {best.told}.",
        table=Table(
            ("strategy", cost, mixing), [(spot.label, write(spot.cost), f"{spot.mixing:.3f}") for spot in spots]
        ),
        y_label=mixing,
        y_ticks=[Tick(y(value), f"{value:g}") for value in (0.0, 0.25, 0.5, 0.75, 1.0)],
        marks=_marks(spots, [(x(share), y(height)) for share, height in limit], letters, x, y),
        paths=[("limit-area", f"M{curve} L1000,0 L0,0 Z"), ("limit", f"M{curve}")] if curve else [],
        points=[
            Point(x(spot.cost), y(spot.mixing), spot.label, spot.told, "chosen" if spot is spots[-1] else "")
            for spot in spots
        ],
        keys=[(letter, label) for label, letter in letters.items()],
        height=_HEIGHT,
        **labels,
    )


def _marks(spots: Sequence[Spot], curve: Curve, letters: Mapping[str, str], x: Scale, y: Scale) -> list[Mark]:
    """The points, with names where there is room for them, and letters where the plot is narrow."""
    at = [(x(spot.cost) / 100 * _WIDE, y(spot.mixing)) for spot in spots]
    named = _join([_shorten(spot.label) if spot.named else "" for spot in spots], at, ", ")
    lettered = _join([letters.get(spot.label, "") for spot in spots], at, " ")
    name = _middle(curve)
    drawn = (
        [marks.text(name[0], name[1] - _ABOVE, _LIMIT, kind="label soft", anchor="end", shift=_SHIFT)] if name else []
    )
    drawn += _names(spots, named, curve, x, y, width=_VAST, kind="vast")
    drawn += _names(spots, named, curve, x, y, width=_WIDE, kind="wide")
    drawn += _names(spots, lettered, curve, x, y, width=_NARROW, kind="narrow")
    for spot in spots:
        circle = {"cx": f"{x(spot.cost):.2f}%", "cy": f"{y(spot.mixing):.1f}", "r": "5"}
        kind = "dot chosen" if spot is spots[-1] else "dot" if spot.named else "dot other"
        drawn.append(Mark("circle", {"class": kind, **circle}))
    return drawn


def _names(
    spots: Sequence[Spot], texts: Sequence[str], curve: Curve, x: Scale, y: Scale, *, width: float, kind: str
) -> list[Mark]:
    """What is written beside the points in a plot of `width` pixels, and clear of the limit."""
    lines = [[(place / 100 * width, height) for place, height in curve]]
    at = [(x(spot.cost) / 100 * width, y(spot.mixing)) for spot in spots]
    upon = [number for number, place in enumerate(at) if texts[number] and math.dist(place, at[-1]) < _UPON]
    first = upon[-1] if upon else None  # the name of what is put forward, alone or with others
    places = place_labels(
        at, texts, width=width, height=_HEIGHT, lines=lines, taken=_name_box(curve, width), first=first
    )
    drawn: list[Mark] = []
    for spot, own, text, place in zip(spots, at, texts, places, strict=True):
        if text and place is not None:
            drawn += _label(own, place, text, width, f"{kind} chosen" if spot is spots[-1] else kind)
    return drawn


def _join(texts: Sequence[str], at: Sequence[tuple[float, float]], between: str) -> list[str]:
    """One text for all points that lie upon each other, at the first of them; of more than two, how many more.

    The last point of all is the one that is put forward: among others it is named first.

    >>> _join(["a", "b", "c", "d"], [(0, 0), (0, 1), (50, 9), (1, 0)], ", ")
    ['d, a, 1 more', '', 'c', '']
    """
    found = [""] * len(texts)
    done: set[int] = set()
    for first, place in enumerate(at):
        own = [
            other
            for other, text in enumerate(texts)
            if text and other not in done and math.dist(place, at[other]) < _UPON
        ]
        if not texts[first] or first in done:
            continue
        done.update(own)
        if len(own) > 2 and between == ", ":
            shown = [texts[other] for other in sorted(own, key=lambda other: other != len(texts) - 1)[:2]]
            found[first] = between.join([*shown, f"{len(own) - 2:,} more"])
        else:
            found[first] = between.join(texts[other] for other in own)
    return found


def _shorten(label: str) -> str:
    """A label of at most 30 letters."""
    return label if len(label) <= 30 else f"{label[:29]}…"


def _middle(curve: Curve) -> tuple[float, float] | None:
    """Where the name of the limit ends: beside the curve, where half of the mixing or of the width is reached."""
    halfway = [place for place in curve if place[0] >= _LEFT and (place[0] >= 50 or place[1] <= _HEIGHT / 2)]
    return halfway[0] if halfway else None


def _name_box(curve: Curve, width: float) -> list[Box]:
    """Where the name of the limit stands, in a plot of `width` pixels; none where it has no name."""
    name = _middle(curve)
    if name is None:
        return []
    end, base = name[0] / 100 * width + _SHIFT, name[1] - _ABOVE
    return [Box(end - LETTER * len(_LIMIT), base - LINE + 3, end, base + 3)]


def _label(at: tuple[float, float], place: Place, own: str, width: float, kind: str) -> list[Mark]:
    """The words, and a leader to them from a point that is not beside."""
    x = 100 * at[0] / width
    words_at = marks.text(x, place.y, own, kind=f"label {kind}", anchor=place.anchor, shift=place.x - at[0])
    if not place.far:
        return [words_at]
    # A line in pixels beside a place in percent: a path that is moved there.
    end = place.x - at[0] + (-2 if place.anchor == "start" else 2)
    leader = Mark("path", {"class": f"leader {kind}", "d": f"M0,0 L{end:.1f},{place.y - 4 - at[1]:.1f}"})
    return [Mark("svg", {"x": f"{x:.2f}%", "y": f"{at[1]:.1f}", "overflow": "visible"}, inner=(leader,)), words_at]


def _letters(count: int) -> list[str]:
    """A, B, ... Z, A2, B2, ..."""
    return [string.ascii_uppercase[at % 26] + (str(at // 26 + 1) if at >= 26 else "") for at in range(count)]


def _percents(end: float) -> list[Tick]:
    x = marks.across(0.0, end)
    ticks = [Tick(x(value), f"{100 * value:g} %") for value in marks.nice_steps(end, 6) if 3 < x(value) < 97]
    return [Tick(0.0, "0 %", "start"), *ticks]
