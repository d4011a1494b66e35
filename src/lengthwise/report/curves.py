"""Curves of what was learned: one chart for each strategy, with the first strategy's pale behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lengthwise.report import marks, words
from lengthwise.report.marks import Chart, Scale, Table, Tick

Run = Sequence[tuple[float, float]]  # places and values of one run
_HEIGHT = 140


def draw_curves(runs: Mapping[str, Sequence[Run]], *, x_label: str, y_label: str, text: str = "against") -> list[Chart]:
    """One chart for each label, on one scale.

    Args:
        runs: By label: each run's places and values, in order. Values that are not finite end a curve.
        x_label: What the places are: "seconds of training", for example.
        y_label: What the values are: "validation loss", for example.
        text: Between both, in the text for those who do not see the chart.
    """
    points = [point for label in runs for run in runs[label] for point in run if _is_finite(point[1])]
    if not points:
        return []
    x = marks.across(0.0, max(place for place, _ in points))
    y = marks.upward(1.05 * max(value for _, value in points), _HEIGHT)
    first = next(iter(runs))
    return [
        Chart(
            title=label,
            text=f"{y_label} of {label} {text} {x_label}. {_end(own)}",
            table=Table((x_label, y_label), [(f"{place:.4g}", f"{value:.4g}") for run in own for place, value in run]),
            x_label=x_label,
            y_label=y_label,
            x_ticks=[Tick(0.0, "0", "start"), Tick(100.0, words.short(float(f"{x.high:.3g}")), "end")],
            y_ticks=marks.y_ticks(y, 3),
            paths=_paths(runs[first], "line pale", x, y) * (label != first) + _paths(own, "line own", x, y),
            caption=_end(own),
            height=_HEIGHT,
        )
        for label, own in runs.items()
    ]


def _paths(runs: Sequence[Run], kind: str, x: Scale, y: Scale) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for run in runs:
        places = [(10 * x(place), 1000 * y(value) / _HEIGHT) for place, value in run if _is_finite(value)]
        path = "M" + " ".join(f"{place:.0f},{height:.0f}" for place, height in places)
        if len(places) == 1:  # of no length, but with round ends: a dot
            found.append((f"{kind} single", f"{path}h0"))
        elif places:
            found.append((kind, path))
    return found


def _end(runs: Sequence[Run]) -> str:
    ends = [run[-1][1] for run in runs if run]
    if not ends or not all(map(_is_finite, ends)):
        return "It did not end in a finite value."
    least, most = min(ends), max(ends)
    return (
        f"At the end {least:.3f}." if len(ends) == 1 else f"At the end {least:.3f} to {most:.3f}, of {len(ends)} runs."
    )


def _is_finite(value: float) -> bool:
    return value - value == 0.0
