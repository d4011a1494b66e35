"""Learning curves for pages: a panel for each strategy, with the curves of the first strategy in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from lengthwise.report.style import alt, colour, furnish, table

Run = Sequence[tuple[float, float]]  # places and values of one run
_WIDTH, _HEIGHT = 178, 84  # pixels of a panel


def loss_curves(runs: Mapping[str, Sequence[Run]], *, x_label: str, y_label: str) -> Any:
    """Draws the runs of each strategy on one scale.

    Args:
        runs: By label, the places and values of each run, in order. Values that are not finite are left out.
        x_label: The label of the places, such as "seconds of training".
        y_label: The label of the values, such as "validation loss".
    """
    first = next(iter(runs))
    scale = {"x": alt.Scale(domain=_domain(runs, 0), nice=False), "y": alt.Scale(domain=_domain(runs, 1), nice=False)}
    x = alt.X(f"{x_label}:Q", scale=scale["x"], title=None, axis=alt.Axis(tickCount=3, grid=False))
    y = alt.Y(f"{y_label}:Q", scale=scale["y"], title=None, axis=alt.Axis(tickCount=3))
    panels = []
    for label, strategy_runs in runs.items():
        layers = [_lines(strategy_runs, label, "data", x_label, y_label)]
        if label != first:
            layers.insert(0, _lines(runs[first], first, "waiting", x_label, y_label))
        heading = alt.TitleParams(label, fontSize=13, fontWeight="normal", offset=4)
        panels.append(
            alt.layer(*layers).encode(x, y, detail="run:N").properties(title=heading, width=_WIDTH, height=_HEIGHT)
        )
    ends = "; ".join(f"{label} {_end(strategy_runs)}" for label, strategy_runs in runs.items())
    text = f"{y_label} against {x_label}. At the end: {ends}."
    notes = [f"{y_label} against {x_label}.{f' Grey: {first}.' if len(runs) > 1 else ''}"]
    return furnish(alt.concat(*panels, columns=2, spacing=14), "What was learned", text, notes=notes, view=False)


def _lines(runs: Sequence[Run], label: str, kind: str, x_label: str, y_label: str) -> Any:
    rows = [
        {"strategy": label, "run": number, x_label: place, y_label: value}
        for number, run in enumerate(runs)
        for place, value in run
        if isfinite(value)
    ]
    return alt.Chart(table(rows)).mark_line(
        color=colour(kind), strokeWidth=1.6, point={"size": 8, "color": colour(kind)}
    )


def _domain(runs: Mapping[str, Sequence[Run]], axis: int) -> list[float]:
    points = (point for strategy_runs in runs.values() for run in strategy_runs for point in run)
    return [0.0, 1.05 * max((point[axis] for point in points if isfinite(point[1])), default=1.0)]


def _end(runs: Sequence[Run]) -> str:
    ends = [run[-1][1] for run in runs if run]
    if not ends or not all(map(isfinite, ends)):
        return "without a finite value"
    least, most = min(ends), max(ends)
    return f"{least:.3f}" if len(ends) == 1 else f"{least:.3f} to {most:.3f}, of {len(ends)} runs"
