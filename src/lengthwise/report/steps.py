"""Steps over ranks: what each rank computes in a step, and how long it waits for the costliest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, both_ends
from lengthwise.report.marks import Chart, Mark, Table, Tick

_STEPS, _RANKS = 4, 16  # drawn at most
_PARTS = 12  # batches of a rank that are drawn apart at most
_GAP = 0.6  # between steps, in widths of a bar


def draw_steps(epochs: Sequence[Epoch], waits: Mapping[str, float]) -> list[Chart]:
    """Steps of the first and of the last epoch, on one scale; nothing where there is one rank.

    Args:
        epochs: All that are compared.
        waits: The share of waiting of each, by its label.
    """
    ends = both_ends(list(epochs))
    if not ends or ends[-1].plan.world_size == 1:
        return []
    shown = [_sample(each) for each in ends]
    top = max(float(costs.sum(axis=1).max()) for costs, _ in shown)
    return [_draw(each, costs, first, top, waits[each.label]) for each, (costs, first) in zip(ends, shown, strict=True)]


def _sample(epoch: Epoch) -> tuple[NDArray[np.float64], int]:
    """The costs of some steps in a row at the middle, [steps, micro_batches, ranks], and the number of the first."""
    first = max(0, (epoch.plan.steps - _STEPS) // 2)
    return epoch.plan.costs[epoch.plan.grid[first : first + _STEPS]], first


def _draw(epoch: Epoch, costs: NDArray[np.float64], first: int, top: float, waste: float) -> Chart:
    steps, micro_batches, ranks = costs.shape
    y = marks.upward(top)
    drawn: list[Mark] = []
    ticks: list[Tick] = []
    columns = min(ranks, _RANKS)
    width = 100 / (steps * columns + (steps - 1) * _GAP)
    rows: list[tuple[str, ...]] = []
    for step, of_ranks in enumerate(costs):
        start = step * (columns + _GAP) * width
        totals = of_ranks.sum(axis=0)
        for column, rank in enumerate(_ranks(totals).tolist()):
            place = start + column * width, 0.86 * width
            drawn += _rank(
                place, of_ranks[:, rank].tolist(), float(totals.max()), y, f"step {first + step}, rank {rank}"
            )
        idle = 1 - float(totals.mean()) / float(totals.max()) if totals.max() else 0.0
        ticks.append(Tick(start + columns * width / 2, f"step {first + step:,}"))
        costliest = words.number(float(totals.max()))
        rows.append((f"{first + step:,}", words.number(float(totals.mean())), costliest, words.percent(idle)))
    some = f", {_RANKS} of {ranks:,} ranks" if ranks > _RANKS else ""
    apart = ", one above the other" if micro_batches <= _PARTS else ""
    within = "" if micro_batches == 1 else f" A rank takes {micro_batches:,} batches in a step{apart}."
    return Chart(
        title=f"{epoch.label}: ranks wait {words.percent(waste)} of the time",
        text=f"{words.count(steps, 'step')} of {epoch.label} on {words.count(ranks, 'rank')}. "
        f"Over the epoch, ranks wait {words.percent(waste)} of the time for the costliest.",
        table=Table(("step", "mean cost of a rank", "costliest rank", "waiting"), rows, words=0),
        x_label="ranks, step by step",
        y_label="cost of a rank in a step",
        x_ticks=ticks,
        y_ticks=marks.y_ticks(y),
        marks=drawn,
        caption=f"{words.capitalise(words.count(steps, 'step'))} of {epoch.plan.steps:,}, from the middle{some}. "
        f"Hatched: waiting for the costliest rank.{within}",
    )


def _ranks(totals: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranks that are drawn: all, or some of them, the costliest and the cheapest among these."""
    if len(totals) <= _RANKS:
        return np.arange(len(totals))
    return np.sort(np.argsort(totals, kind="stable")[np.linspace(0, len(totals) - 1, _RANKS).round().astype(np.int64)])


def _rank(place: tuple[float, float], batches: list[float], most: float, y: marks.Scale, name: str) -> list[Mark]:
    """The batches of one rank, one above the other, and its waiting above them."""
    drawn: list[Mark] = []
    total = sum(batches)
    title = f"{name}: cost {words.number(total)}, waiting {words.percent(1 - total / most if most else 0.0)}"
    below = 0.0
    for cost in batches if len(batches) <= _PARTS else [total]:
        drawn.append(marks.bar(*place, y(below + cost), y(below) - y(below + cost), "data part", title))
        below += cost
    if total < most:
        drawn.append(marks.bar(*place, y(most), y(total) - y(most), "wait", title))
    return drawn
