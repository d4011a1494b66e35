"""Padding before and after: each batch a bar, what of it is data and what is padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, both_ends, spread
from lengthwise.report.marks import Chart, Mark, Table

_BATCHES = 60  # drawn at most
_STEPS = 12  # from which they are drawn, at least
_GOLDEN = 0.618034  # its multiples fill 0..1 evenly


def draw_padding(epochs: Sequence[Epoch], shares: dict[str, float], *, unit: str) -> list[Chart]:
    """Batches of the first and of the last epoch, on one scale.

    Args:
        epochs: All that are compared.
        shares: The padding share of each, by its label.
        unit: Of the lengths.
    """
    ends = [(each, sample_batches(each)) for each in both_ends(list(epochs))]
    top = max((int(each.computed[numbers].max()) for each, numbers in ends), default=0)
    return [_draw(each, numbers, top, shares[each.label], unit) for each, numbers in ends]


def sample_batches(epoch: Epoch) -> NDArray[np.int64]:
    """The numbers of some batches, in the order in which they are taken, from steps all along the epoch.

    Steps are drawn whole where they are small. Of 12 steps of 32 batches, 5 are drawn of each.
    """
    grid = epoch.plan.grid.reshape(epoch.plan.steps, -1)
    slots = grid.shape[1]
    steps = spread(len(grid), max(_STEPS, _BATCHES // slots))
    each = min(slots, max(1, _BATCHES // len(steps)))
    # Batches of a step may stand by cost. Each step begins elsewhere, so that no rank is drawn alone.
    begins = np.arange(len(steps))[:, None] * _GOLDEN % 1
    return grid[steps[:, None], ((np.arange(each) + begins) * slots / each).astype(np.int64)].reshape(-1)


def _draw(epoch: Epoch, numbers: NDArray[np.int64], top: int, share: float, unit: str) -> Chart:
    used, computed = epoch.used[numbers].tolist(), epoch.computed[numbers].tolist()
    x, y = marks.across(0, max(1, len(numbers))), marks.upward(top)
    sizes = epoch.plan.batch_sizes[numbers].tolist()
    drawn: list[Mark] = []
    for place, (data, whole, size) in enumerate(zip(used, computed, sizes, strict=True)):
        wide = 0.84 * (x(1) - x(0))
        title = f"batch of {size:,}: {data:,} {unit} of data, {whole - data:,} of padding"
        drawn.append(marks.bar(x(place), wide, y(whole), y(data) - y(whole), "pad", title))
        drawn.append(marks.bar(x(place), wide, y(data), marks.HEIGHT - y(data), "data", title))
    some = len(numbers) < epoch.plan.grid.size
    told = (
        f"{len(numbers):,} of its {epoch.plan.grid.size:,} batches, evenly from the epoch"
        if some
        else f"All its {epoch.plan.grid.size:,} batches"
        if epoch.plan.grid.size > 1
        else "Its only batch"
    )
    return Chart(
        title=f"{epoch.label}: {words.percent(share)} padding",
        text=f"Bars of {words.count(len(numbers), 'batch', 'batches')} of {epoch.label}. "
        f"{words.percent(share)} of all that the epoch computes is padding.",
        table=_table(used, computed, sizes, unit),
        x_label="batches, as they are taken",
        y_label=f"{unit} computed in a batch",
        x_ticks=marks.ends(len(numbers)),
        y_ticks=marks.y_ticks(y),
        marks=drawn,
        caption=f"{told}.",
    )


def _table(used: list[int], computed: list[int], sizes: list[int], unit: str) -> Table:
    rows = [
        (f"{size:,}", f"{data:,}", f"{whole - data:,}", words.percent(1 - data / (whole or 1)))
        for data, whole, size in zip(used, computed, sizes, strict=True)
    ]
    return Table(("sequences", f"{unit} of data", f"{unit} of padding", "padding"), rows, words=0)
