"""Labels beside points, so that none covers another: the first free place of each, from near to far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

LETTER = 6.6  # pixels of a letter of 12 pixels, and a little more: the fonts of readers differ
LINE = 14.0  # pixels of a line of text
_NEAR = 9.0  # from the middle of a point to its label


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
    curve: Sequence[tuple[float, float]] = (),
) -> list[Place | None]:
    """A place for the label of each point; None where there is no room. No label crosses the `curve`.

    >>> place_labels([(10.0, 10.0)], ["a"], width=100, height=50)
    [Place(x=19.0, y=14.0, anchor='start', far=False)]
    """
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in [*points, *_along(curve)]]
    # From the right, where most of the room is to the right of the point.
    order = sorted(range(len(points)), key=lambda at: -points[at][0])
    found: list[Place | None] = [None] * len(points)
    for at in order:
        x, y = points[at]
        for place in _candidates(x, y):
            box = _box(place, LETTER * len(texts[at]))
            inside = box.left >= 0 and box.right <= width and box.top >= -LINE and box.bottom <= height
            if inside and not any(box.meets(other) for other in taken):
                taken.append(box)
                found[at] = place
                break
    return found


def _along(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Places on the curve, ten pixels apart or less."""
    found: list[tuple[float, float]] = []
    for (left, high), (right, low) in itertools.pairwise(curve):
        parts = 1 + int(math.hypot(right - left, low - high) / 10)
        found += [(left + (right - left) * at / parts, high + (low - high) * at / parts) for at in range(parts)]
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
        Place(x + side * (_NEAR + 14), y + 4 + lines * LINE, "start" if side > 0 else "end", far=True)
        for lines in (-1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6)
        for side in (1, -1)
    ]
    return near + far


def _box(place: Place, width: float) -> Box:
    left = {"start": place.x, "end": place.x - width, "middle": place.x - width / 2}[place.anchor]
    return Box(left, place.y - LINE + 3, left + width, place.y + 3)
