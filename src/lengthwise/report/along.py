"""Lengths along the epoch: sequences as dots where they are taken, and what they are padded to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, both_ends
from lengthwise.report.marks import Chart, Table, Tick

_DOTS = 480  # sequences of an epoch that are drawn at most
_STRETCHES = 90  # over which the padded length is averaged at most
_TOLD = 10  # stretches of the table
_USUAL = 0.99  # the share of the dots that the axis has room for at least
_HEIGHT = 150
_GOLDEN = (5**0.5 - 1) / 2


def draw_along(epochs: Sequence[Epoch], *, unit: str) -> list[Chart]:
    """The first epoch and the last, on one scale."""
    found = [(each, *_sample(each)) for each in both_ends(list(epochs))]
    if not found:
        return []
    longest = max(float(lengths.max()) for _, _, lengths, _ in found)
    usual = max(float(np.quantile(lengths, _USUAL)) for _, _, lengths, _ in found)
    top = min(longest, 1.25 * usual)  # one sequence of 8,000 among others of 500 would make all the others flat
    return [_draw(each, places, lengths, padded, top, unit) for each, places, lengths, padded in found]


def _sample(epoch: Epoch) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Places in the epoch, from 0 to 1, of some sequences, their lengths, and what their batches are padded to."""
    plan, batches = epoch.plan, epoch.plan.grid.reshape(-1)
    ends = np.cumsum(plan.batch_sizes[batches])
    count = int(ends[-1])
    # Steps of the golden section fall into no rhythm of the epoch, as even steps would.
    few = np.arange(min(count, _DOTS))
    taken = few if count <= _DOTS else np.unique((count * ((few + 1) * _GOLDEN % 1.0)).astype(np.int64))
    # Of batches that end at 2 and 5, the sequence taken as number 3 is the second of the second.
    at = np.searchsorted(ends, taken, side="right")
    number = batches[at]
    member = plan.offsets[number] + taken - (ends[at] - plan.batch_sizes[number])
    padded = plan.padded_lengths.sum(axis=1)[number]
    return (taken + 0.5) / count, epoch.taken[member], padded


def _draw(
    epoch: Epoch,
    places: NDArray[np.float64],
    lengths: NDArray[np.int64],
    padded: NDArray[np.int64],
    top: float,
    unit: str,
) -> Chart:
    y = marks.upward(top, _HEIGHT)
    inside = lengths <= top
    # A line of no length with round ends is a dot, whatever the box is stretched to.
    dots = "".join(
        f"M{1000 * place:.0f},{1000 - 1000 * length / top:.0f}h0"
        for place, length in zip(places[inside].tolist(), lengths[inside].tolist(), strict=True)
    )
    beyond = len(lengths) - int(inside.sum())
    count = int(epoch.plan.batch_sizes[epoch.plan.grid].sum())
    some = f"{len(places):,} of {words.count(count, epoch.item)}" if len(places) < count else f"All {epoch.item}s"
    over = f"; {beyond:,} of them longer than the axis" if beyond else ""
    packed = epoch.plan.row_offsets is not None
    return Chart(
        title=epoch.label,
        text=f"Lengths along the epoch of {epoch.label}, and what they are padded to.",
        table=_table(places, lengths, padded, unit),
        x_label="the epoch, from its first step to its last",
        y_label=f"length ({unit})",
        x_ticks=[Tick(0, "first step", "start"), Tick(100, "last step", "end")],
        y_ticks=marks.y_ticks(y, 3),
        paths=[("dots", dots)] if packed else [("dots", dots), ("padded", _line(places, padded, top))],
        caption=f"{some}{over}.",
        height=_HEIGHT,
    )


def _line(places: NDArray[np.float64], padded: NDArray[np.int64], top: float) -> str:
    """The mean padded length of each stretch of the epoch."""
    stretches = min(_STRETCHES, len(places))
    held = (places * stretches).astype(np.int64)
    counts = np.bincount(held, minlength=stretches)
    means = np.bincount(held, padded, minlength=stretches) / np.maximum(counts, 1)
    wide = 1000 / stretches
    parts = [
        f"M{at * wide:.1f},{1000 - 1000 * min(mean, top) / top:.0f}h{wide:.1f}"
        for at, (mean, there) in enumerate(zip(means.tolist(), counts.tolist(), strict=True))
        if there
    ]
    return "".join(parts)


def _table(places: NDArray[np.float64], lengths: NDArray[np.int64], padded: NDArray[np.int64], unit: str) -> Table:
    held = (places * _TOLD).astype(np.int64)
    rows = []
    for tenth in range(_TOLD):
        own = held == tenth
        if own.any():
            least, most = int(lengths[own].min()), int(lengths[own].max())
            means = f"{lengths[own].mean():,.1f}", f"{padded[own].mean():,.1f}"
            rows.append((f"{10 * tenth} to {10 * tenth + 10} %", f"{least:,}", means[0], f"{most:,}", means[1]))
    return Table(("of the epoch", "shortest", f"mean length ({unit})", "longest", "mean padded length"), rows)
