"""Memory by step: what the costliest batch of each step costs, beside the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lengthwise.planning.plan import Plan
from lengthwise.report import marks, words
from lengthwise.report.epochs import Epoch, both_ends
from lengthwise.report.marks import Chart, Mark, Table

_COLUMNS, _STEPS = 100, 200  # of more steps than 200, each column is some steps in a row
_HEIGHT = 150


class _Column(NamedTuple):
    """Steps from `start` to before `end`: the least and the greatest of what their costliest batches cost."""

    start: int
    end: int
    least: float
    greatest: float

    @property
    def name(self) -> str:
        return f"{self.start:,}" if self.end == self.start + 1 else f"{self.start:,} to {self.end - 1:,}"


def draw_costs(epochs: Sequence[Epoch]) -> list[Chart]:
    """The first epoch and the last, on one scale."""
    ends = both_ends(list(epochs))
    budgets = [each.plan.max_cost for each in ends if math.isfinite(each.plan.max_cost)]
    top = 1.04 * max([each.largest_cost for each in ends] + budgets, default=0.0)
    return [_draw(each, top) for each in ends]


def _draw(epoch: Epoch, top: float) -> Chart:
    plan, budget = epoch.plan, epoch.plan.max_cost
    has_budget = math.isfinite(budget) and budget > 0
    columns = _columns(plan)
    x, y = marks.across(0, plan.steps), marks.upward(top, _HEIGHT)
    drawn = [mark for column in columns for mark in _bars(column, x, y)]
    said = f", {words.percent(epoch.largest_cost / budget)} of the budget" if has_budget else ""
    joined = " Here a bar is several steps: dark to the cheapest of them, pale to the costliest."
    return Chart(
        title=f"{epoch.label}: at most {words.number(epoch.largest_cost)}{said}",
        text=f"The costliest batch of each step of {epoch.label}. The costliest of all costs "
        f"{words.number(epoch.largest_cost)}{said}.",
        table=Table(
            ("step", "costliest batch, least", "greatest"),
            [(column.name, words.number(column.least), words.number(column.greatest)) for column in columns],
        ),
        x_label="steps",
        y_label="cost of the costliest batch of a step",
        x_ticks=marks.ends(plan.steps),
        y_ticks=marks.y_ticks(y, 3),
        marks=drawn + (_budget(y(budget), budget) if has_budget else []),
        caption=f"{words.count(plan.steps, 'step')}.{joined if plan.steps > _STEPS else ''}",
        height=_HEIGHT,
    )


def _columns(plan: Plan) -> list[_Column]:
    """A column for each step; of more than 200 steps, 100 columns of as many steps, or one more."""
    most = plan.costs[plan.grid].max(axis=(1, 2))
    starts = np.arange(plan.steps) if plan.steps <= _STEPS else np.arange(_COLUMNS) * plan.steps // _COLUMNS
    least, greatest = np.minimum.reduceat(most, starts), np.maximum.reduceat(most, starts)
    ends = np.append(starts[1:], plan.steps)
    parts = starts.tolist(), ends.tolist(), least.tolist(), greatest.tolist()
    return [_Column(*each) for each in zip(*parts, strict=True)]


def _bars(column: _Column, x: marks.Scale, y: marks.Scale) -> list[Mark]:
    """Dark to the least, and pale from there to the greatest."""
    left, wide = x(column.start), 0.9 * (x(column.end) - x(column.start))
    low, high = y(column.least), y(column.greatest)
    dark = marks.bar(left, wide, low, _HEIGHT - low, "data", f"step {column.name}: {words.number(column.greatest)}")
    if column.greatest <= column.least:
        return [dark]
    pale = f"steps {column.name}: {words.number(column.greatest)}"
    return [dark, marks.bar(left, wide, high, low - high, "data faint", pale)]


def _budget(y: float, budget: float) -> list[Mark]:
    return [
        marks.line((0, 100), (y, y), "budget"),
        marks.text(100, y - 5, f"budget {words.number(budget)}", kind="label", anchor="end"),
    ]
