"""Batches sequence by sequence: a few of them from the middle of each epoch, and the padding above each sequence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.plot.deliveries import Delivery, delivery, top_of  # which need no matplotlib
from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch
from lengthwise.report.marks import Chart, Table, Tick

_SEQUENCES = 150  # drawn at most
_MOST_EPOCHS = 12  # drawn at most
_PARTED = 40  # borders that are drawn at most
_HEIGHT = 120
_FLAT = 20  # times the tallest batch of half of the charts: beyond this the axis is logarithmic, for they show nothing


class Axis(NamedTuple):
    """From lengths to shares of the height: by the length, or by its logarithm."""

    top: float
    logarithmic: bool

    def __call__(self, length: float) -> float:
        if self.logarithmic:
            return min(1.0, math.log1p(length) / math.log1p(self.top))
        return min(1.0, length / self.top)

    def ticks(self) -> list[Tick]:
        """Round lengths, or 0 and powers of ten, at most three above 0: 0, 100 and 10,000 up to 100,000."""
        if not self.logarithmic:
            return marks.y_ticks(marks.upward(self.top, _HEIGHT), 3)
        decades = int(math.log10(self.top))
        apart = max(1, -(-decades // 3))
        lengths = [0.0, *(10.0**power for power in range(apart, decades + 1, apart))]
        return [Tick(round(_HEIGHT * (1 - self(length)), 2), words.short(length)) for length in lengths]


def draw_sequences(epochs: Sequence[Epoch], lengths: NDArray[np.int64], *, unit: str) -> list[Chart]:
    """One chart for each epoch, of the first twelve, all on one scale and with as many sequences."""
    some = epochs[:_MOST_EPOCHS]
    if not some:
        return []
    shown = {each.label: delivery(each.plan, lengths, _middle(each)) for each in some}
    window = min(_SEQUENCES, max(len(each.delivered) for each in shown.values()))
    y = _axis(shown)
    return [
        _draw(label, each, window, y, unit, what="row" if epoch.plan.row_offsets is not None else epoch.item)
        for (label, each), epoch in zip(shown.items(), some, strict=True)
    ]


def _axis(shown: Mapping[str, Delivery]) -> Axis:
    """One axis for all charts."""
    top = top_of(shown)
    tallest = np.median([float(each.padded.max(initial=0)) for each in shown.values()])
    return Axis(top, logarithmic=bool(top > _FLAT * tallest))


def _middle(epoch: Epoch) -> NDArray[np.int64]:
    """The numbers of batches in a row, from the middle of the epoch, that hold the sequences to draw."""
    batches, counts = epoch.plan.grid.reshape(-1), epoch.plan.row_counts
    half = len(batches) // 2
    # Backwards from the middle to half of the sequences, and from there on to all of them.
    back = int(np.searchsorted(np.cumsum(counts[batches[:half][::-1]]), _SEQUENCES // 2))
    first = max(0, half - back)
    return batches[first : first + 1 + int(np.searchsorted(np.cumsum(counts[batches[first:]]), _SEQUENCES))]


def _draw(label: str, each: Delivery, window: int, y: Axis, unit: str, *, what: str) -> Chart:
    tops = np.repeat(each.padded, each.sizes)[:window]
    delivered = each.delivered[:window]
    borders = [border for border in each.offsets[1:-1].tolist() if border < window]
    # Lines between many narrow batches would hide them.
    parted = borders if len(borders) <= _PARTED else []
    lines = "".join(f"M{1000 * border / window:.1f},0V1000" for border in parted)
    batches = words.count(len(borders) + 1, "batch", "batches")
    return Chart(
        title=label,
        text=f"{words.capitalise(batches)} from the middle of the epoch of {label}, {what} by {what}.",
        table=_table(each, unit),
        y_label=f"length ({unit})",
        y_ticks=y.ticks(),
        x_ticks=[Tick(50, f"{words.count(len(delivered), what)}, {batches}")],
        paths=[("pad", _area(tops, window, y)), ("data", _area(delivered, window, y)), ("border", lines)],
        caption="The axis is logarithmic: areas are not frames." if y.logarithmic else "",
        height=_HEIGHT,
    )


def _area(tops: NDArray[np.int64], window: int, y: Axis) -> str:
    """Bars side by side as one path: for the tops [5, 5, 9] two steps, the first of them twice as wide."""
    changes = np.flatnonzero(np.diff(tops, prepend=-1))
    ends = np.append(changes[1:], len(tops))
    steps = "".join(
        f"V{1000 - 1000 * y(float(tops[at])):.0f}H{1000 * end / window:.1f}"
        for at, end in zip(changes.tolist(), ends.tolist(), strict=True)
    )
    return f"M0,1000{steps}V1000Z"


def _table(each: Delivery, unit: str) -> Table:
    rows = []
    for number, (size, padded) in enumerate(zip(each.sizes.tolist(), each.padded.tolist(), strict=True)):
        own = each.delivered[each.offsets[number] : each.offsets[number + 1]]
        rows.append((f"{size:,}", f"{own.mean():,.1f}", f"{padded:,}"))
    return Table(("in the batch", f"mean length ({unit})", "padded to"), rows, words=0)
