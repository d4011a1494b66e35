"""Memory by step: what the costliest batch of each step costs, beside the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, both_ends
from lengthwise.report.marks import Chart, Mark, Table, Tick

_COLUMNS, _STEPS = 100, 200  # of more steps than 200, each column is some steps in a row
_HEIGHT = 150


def draw_costs(epochs: Sequence[Epoch]) -> list[Chart]:
    """The first epoch and the last, on one scale."""
    ends = both_ends(list(epochs))
    budgets = [each.plan.max_cost for each in ends if math.isfinite(each.plan.max_cost)]
    top = 1.04 * max([each.largest_cost for each in ends] + budgets, default=0.0)
    return [_draw(each, top) for each in ends]


def _draw(epoch: Epoch, top: float) -> Chart:
    plan = epoch.plan
    most = plan.costs[plan.grid].max(axis=(1, 2))
    starts = np.arange(plan.steps) if plan.steps <= _STEPS else _starts(plan.steps)
    least, greatest = np.minimum.reduceat(most, starts), np.maximum.reduceat(most, starts)
    ends = np.append(starts[1:], plan.steps)
    y = marks.upward(top, _HEIGHT)
    x = marks.across(0, plan.steps)
    drawn: list[Mark] = []
    rows: list[tuple[str, ...]] = []
    for start, end, low, high in zip(starts.tolist(), ends.tolist(), least.tolist(), greatest.tolist(), strict=True):
        steps = f"{start:,}" if end == start + 1 else f"{start:,} to {end - 1:,}"
        wide = 0.9 * (x(end) - x(start))
        drawn.append(marks.bar(x(start), wide, y(low), _HEIGHT - y(low), "data", f"step {steps}: {words.number(high)}"))
        if high > low:
            drawn.append(
                marks.bar(
                    x(start), wide, y(high), y(low) - y(high), "data faint", f"steps {steps}: {words.number(high)}"
                )
            )
        rows.append((steps, words.number(low), words.number(high)))
    budget = plan.max_cost
    said = f", {words.percent(epoch.largest_cost / budget)} of the budget" if _told(budget) else ""
    joined = (
        " Here a bar is several steps: dark to the cheapest of them, pale to the costliest."
        if plan.steps > _STEPS
        else ""
    )
    return Chart(
        title=f"{epoch.label}: at most {words.number(epoch.largest_cost)}{said}",
        text=f"The costliest batch of each step of {epoch.label}. The costliest of all costs "
        f"{words.number(epoch.largest_cost)}{said}.",
        table=Table(("step", "costliest batch, least", "greatest"), rows),
        x_label="steps",
        y_label="cost of the costliest batch of a step",
        x_ticks=[Tick(0, "first", "start"), Tick(100, "last", "end")],
        y_ticks=marks.y_ticks(y, 3),
        marks=drawn + (_budget(y(budget), budget) if _told(budget) else []),
        caption=f"{words.count(plan.steps, 'step')}.{joined}",
        height=_HEIGHT,
    )


def _told(budget: float) -> bool:
    return math.isfinite(budget) and budget > 0


def _starts(steps: int) -> NDArray[np.int64]:
    """Where each of the columns begins: as many steps in each, or one more."""
    return np.arange(_COLUMNS) * steps // _COLUMNS


def _budget(y: float, budget: float) -> list[Mark]:
    return [
        marks.line((0, 100), (y, y), "budget"),
        marks.text(100, y - 5, f"budget {words.number(budget)}", kind="label", anchor="end"),
    ]
