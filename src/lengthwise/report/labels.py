"""Labels beside points, so that none covers another: the first free place of each, from near to far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

LETTER = 6.6  # pixels of a letter of 12 pixels, and a little more: the fonts of readers differ
LINE = 14.0  # pixels of a line of text
_NEAR = 9.0  # from the middle of a point to its label
_CLEAR = 13.0  # from the middle of another point: a label that is nearer to it would be read as its name


class Box(NamedTuple):
    """Left, top, right, bottom, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


class Place(NamedTuple):
    """Where a label stands: its anchor, and where its text begins, ends or has its middle; `far` asks for a leader."""

    x: float
    y: float
    anchor: str
    far: bool


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    width: float,
    height: float,
    lines: Sequence[Sequence[tuple[float, float]]] = (),
    taken: Sequence[Box] = (),
    first: int | None = None,
) -> list[Place | None]:
    """A place for the label of each point; None where there is no room, or no text.

    The label of point `first` finds its place before all others. No label stands on what is `taken`. No label crosses
    one of the `lines`, or stands beside another point, where another place is free.

    >>> place_labels([(10.0, 10.0)], ["a"], width=100, height=50)
    [Place(x=19.0, y=14.0, anchor='start', far=False)]
    """
    dots = [_around(*point, 5.0) for point in points]
    rooms = [_around(*point, _CLEAR) for point in points]
    written: list[Box] = list(taken)
    drawn: list[Box] = [Box(x - 1, y - 1, x + 1, y + 1) for line in lines for x, y in _along(line)]
    found: list[Place | None] = [None] * len(points)
    # From the right, but for `first`: labels stand to the right of their points, and those farther left go above them.
    for at in sorted((at for at in range(len(points)) if texts[at]), key=lambda at: (at != first, -points[at][0])):
        others = dots[:at] + dots[at + 1 :]
        apart = [own for own, point in zip(rooms, points, strict=True) if math.dist(point, points[at]) > _CLEAR]
        room = Box(0.0, -LINE, width, height)
        fits: list[tuple[Place, list[Box]]] = []
        for place in _candidates(*points[at]):
            box, leader = _box(place, LETTER * max(2, len(texts[at]))), _leader(points[at], place)
            if room.holds(box) and not _meet([box], written + others) and not _meet(leader, written):
                fits.append((place, [box, *leader]))
        # Best is what crosses no line, no leader and no point, and is beside no other; else what is nearest.
        clear = [(place, boxes) for place, boxes in fits if not _meet(boxes, drawn + others)]
        best = [(place, boxes) for place, boxes in clear if not _meet(boxes[:1], apart)]
        for place, boxes in (best or clear or fits)[:1]:
            found[at] = place
            written.append(boxes[0])
            drawn += boxes[1:]
    return found


def _candidates(x: float, y: float) -> list[Place]:
    """Right of the point, left, above, below; then the same farther away, with a leader."""
    near = [
        Place(x + _NEAR, y + 4, "start", far=False),
        Place(x - _NEAR, y + 4, "end", far=False),
        Place(x, y - _NEAR, "middle", far=False),
        Place(x, y + _NEAR + LINE - 4, "middle", far=False),
    ]
    far = [
        Place(x + side * (_NEAR + aside), y + 4 + lines * LINE, "start" if side > 0 else "end", far=True)
        for asides in ((2, 14), (60, 120))
        for lines in (-1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6, -8, 8)
        for aside in asides
        for side in (1, -1)
    ]
    return near + far


def _meet(some: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(each.meets(other) for each in some for other in others)


def _box(place: Place, width: float) -> Box:
    left = {"start": place.x, "end": place.x - width, "middle": place.x - width / 2}[place.anchor]
    return Box(left, place.y - LINE + 3, left + width, place.y + 3)


def _along(line: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Places on a line, ten pixels apart or less."""
    found: list[tuple[float, float]] = []
    for (left, high), (right, low) in itertools.pairwise(line):
        parts = 1 + int(math.hypot(right - left, low - high) / 10)
        found += [(left + (right - left) * at / parts, high + (low - high) * at / parts) for at in range(parts)]
    return found


def _leader(point: tuple[float, float], place: Place) -> list[Box]:
    """The leader from a point to its label, in small pieces; empty where it needs none."""
    if not place.far:
        return []
    return [Box(x - 1, y - 1, x + 1, y + 1) for x, y in _along([point, (place.x, place.y - 4)])[1:]]


def _around(x: float, y: float, reach: float) -> Box:
    return Box(x - reach, y - reach, x + reach, y + reach)
