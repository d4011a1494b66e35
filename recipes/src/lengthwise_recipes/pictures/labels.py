"""Labels at the ends of curves, in place of legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.style import Axes, Figure, Line2D, Text

SIZE = 8.5  # points
_LINE = 1.25  # distance of two labels, in heights of a label
_AWAY = 1.03  # left edge of the labels, in widths of the panel


class EndLabel(NamedTuple):
    """A label to the right of a panel: its text, the place in the panel that it names, and its colour."""

    text: str
    place: tuple[float, float]
    colour: str = style.INK


def spread_out(wanted: ArrayLike, gap: float, *, low: float = -np.inf, high: float = np.inf) -> NDArray[np.float64]:
    """Returns places in the same order, at least `gap` apart and within [low, high], nearest to the wanted ones.

    Nearest is by the sum of squares: crowded labels form a block around the mean of their wanted places. If there is
    not enough room, the gaps shrink.

    Args:
        wanted: [n], in any order; of equal places the first becomes the lowest.
        gap: The least distance of neighbours.
        low, high: The bounds of the places.

    >>> spread_out([5.0, 5.0, 9.0], 2.0).tolist()
    [4.0, 6.0, 9.0]
    >>> spread_out([5.0, 5.0, 9.0], 2.0, high=8.0).tolist()
    [4.0, 6.0, 8.0]
    """
    wanted = np.asarray(wanted, float)
    count = len(wanted)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(count)
    # Places minus steps must not fall: isotonic regression, whose solution is made of means of neighbours.
    blocks: list[tuple[float, int]] = []
    for value in wanted[order] - steps:
        mean, size = float(value), 1
        # Wanted 5, 5, 9 with a gap of 2: minus the steps 5, 3, 5. The first two become one block of mean 4.
        while blocks and blocks[-1][0] >= mean:
            block_mean, block_size = blocks.pop()
            mean, size = (mean * size + block_mean * block_size) / (size + block_size), size + block_size
        blocks.append((mean, size))
    nearest = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    places = np.empty(count)
    places[order] = np.clip(nearest, low, high - steps[-1] if count else high) + steps
    return places


def end_labels(lines: Iterable[Line2D], *, end: float = np.inf) -> list[EndLabel]:
    """Returns a label for each curve, at its last place up to `end`, between two of its points if needed.

    A curve without a finite value has no label.

    >>> line = Line2D([0.0, 0.2, 0.4], [0.0, 0.5, 0.7], label="mixing", color="#000000")
    >>> end_labels([line], end=0.3)
    [EndLabel(text='mixing', place=(0.3, 0.6), colour='#000000')]
    """
    labels = []
    for line in lines:
        across, height = points(line)
        if len(across):
            # A curve that leaves the panel has its label where it leaves.
            last = min(end, float(across[-1]))
            place = last, round(float(np.interp(last, across, height)), 12)
            labels.append(EndLabel(str(line.get_label()), place, str(line.get_color())))
    return labels


def points(line: Line2D) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the finite points of a curve: across and up, each [points]."""
    across, height = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    finite = np.isfinite(height)
    return across[finite], height[finite]


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Writes the labels to the right of a panel without overlap, each with a thin line to its place.

    Call it last: it needs the final limits of the panel, and fixes the layout of the figure.
    """
    figure = cast(Figure, axes.figure)
    texts = [_write(axes, label) for label in labels]
    figure.draw_without_rendering()  # before this, sizes are not known
    height = axes.get_window_extent().height
    gap = _LINE * max((Text.get_window_extent(text).height for text in texts), default=0.0) / height  # 0 without labels
    wanted = [_across(axes, label.place) for label in labels]
    for text, place in zip(texts, spread_out(wanted, gap, low=0.0, high=1.0), strict=True):
        text.set_position((_AWAY, place))


def _write(axes: Axes, label: EndLabel) -> Any:
    line = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 1, "relpos": (0, 0.5)}
    return axes.annotate(
        label.text,
        label.place,
        (_AWAY, 0.5),
        textcoords="axes fraction",
        va="center",
        fontsize=SIZE,
        color=style.readable(label.colour),
        arrowprops=line,
        annotation_clip=False,
    )


def _across(axes: Axes, place: tuple[float, float]) -> float:
    """Returns the height of a place in the panel, in heights of the panel."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform(place))[1])
