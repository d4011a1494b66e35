"""Charts that compare strategies: padding, and randomness against padding."""

from __future__ import annotations

import json
import string
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise.checks import value_error
from lengthwise.report import words
from lengthwise.report.style import HEIGHT, Chart, alt, colour, furnish, parts, table

_WIDE, _HIGH = 0.045, 0.07  # the size of a letter, as shares of the width and of the height
_KEY = 62  # letters in a line below the title


def padding(measures: Mapping[str, Any], *, best: str = "", unit: str = "frames") -> Chart:
    """Draws the frames that each strategy computes for each frame of data: data and padding.

    Args:
        measures: `lw.Measures` by the label of the strategy.
        best: The label of the recommended strategy.
        unit: The unit of the lengths.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> orders = {"random": lw.Shuffled(), "sorted": lw.Sorted()}
    >>> plans = {name: lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(2), order=orders[name])) for name in orders}
    >>> measures = {name: lw.measure(plan, lengths) for name, plan in plans.items()}
    >>> lw.report.padding(measures, best="sorted").to_dict()["description"]
    'Padding, as a share of what is computed: random 28.6 %; sorted 11.8 %.'
    """
    rows, ends = [], []
    for label, row in _as_rows(measures).items():
        computed = 1.0 / (1.0 - row["padding_share"])
        name, share = words.shorten(label), words.percent(row["padding_share"])
        rows += [
            {"strategy": name, "part": part, "frames": frames}
            for part, frames in (("data", 1.0), ("padding", computed - 1.0))
        ]
        ends.append({"strategy": name, "computed": computed, "share": share})
    y = alt.Y("strategy:N", sort=None, title=None, axis=_bold(words.shorten(best)))
    one = unit.removesuffix("s")
    most = max(end["computed"] for end in ends)
    x = alt.X(
        "frames:Q",
        title=f"{unit} computed for each {one} of data",
        scale=alt.Scale(domain=[0, 1.22 * most], nice=False),
    )
    x = x.axis(tickCount=5)
    bars = (
        alt.Chart(table(rows))
        .mark_bar(height=alt.RelativeBandSize(0.72))
        .encode(x=x, y=y, color=parts("data", "padding"))
    )
    labels = alt.Chart(table(ends)).mark_text(align="left", dx=6).encode(x="computed:Q", y=y, text="share:N")
    chart = (bars + labels).properties(height=max(90, 26 * len(ends)))
    text = "; ".join(f"{end['strategy']} {end['share']}" for end in ends)
    return furnish(
        chart, "Padding, as a share of what is computed", f"Padding, as a share of what is computed: {text}."
    )


def trade_off(measures: Mapping[str, Any], *, best: str = "") -> Chart:
    """Draws randomness against padding, a letter for each strategy. A colour marks the recommended one.

    Args:
        measures: `lw.Measures` by the label of the strategy.
        best: The label of the recommended strategy.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> orders = {"random": lw.Shuffled(), "sorted": lw.Sorted()}
    >>> plans = {name: lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(2), order=orders[name])) for name in orders}
    >>> measures = {name: lw.measure(plan, lengths) for name, plan in plans.items()}
    >>> lw.report.trade_off(measures, best="sorted").to_dict()["title"]["text"]
    'How random steps are, and what they pad'
    """
    measured = _as_rows(measures)
    rows = [
        {
            "letter": letter,
            "strategy": label,
            "padding": row["padding_share"],
            "randomness": row["randomness"],
            "kind": "recommended" if label == best else "other",
        }
        for letter, (label, row) in zip(_letters(), measured.items(), strict=False)
    ]
    low, high = (edge(row["padding"] for row in rows) for edge in (min, max))
    room = 0.06 * (high - low) or 0.06 * high or 0.05
    x = alt.X("padding:Q", title="padding, as a share of what is computed").axis(format=".0%", tickCount=5)
    x = x.scale(domain=[max(0.0, low - room), high + room], nice=False, zero=False)
    y = alt.Y("randomness:Q", scale=alt.Scale(domain=[0.0, 1.06]))
    y = y.axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f")
    kinds = ["other", "recommended"]
    color = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[colour("soft"), colour("recommended")]))
    size = alt.Size("kind:N", scale=alt.Scale(domain=kinds, range=[60, 150]), legend=None)
    dots = alt.Chart(table(rows)).mark_circle(opacity=1).encode(x=x, y=y, color=color.legend(None), size=size)
    names = alt.Chart(table(_labels(rows, high - low + 2 * room)))
    names = names.mark_text(align="left", dx=8, dy=-7, fontWeight="bold")
    layers = [dots, names.encode(x=x, y=y, text="letter:N", color=color.legend(None))]
    # No-break spaces keep each name beside its letter: "A random · B max-entropy:0.1".
    key = "\xa0· ".join(f"{row['letter']}\xa0{words.shorten(row['strategy'])}" for row in rows)
    marks = ["Up and left is better.", *(["Green: recommended."] if best else [])]
    notes = [line for text in (key, " ".join(marks)) for line in textwrap.wrap(text, _KEY, break_on_hyphens=False)]
    text = f"{words.count(len(rows), 'strategy', 'strategies')} by padding and randomness: "
    text += ", ".join(f"{row['strategy']} {words.percent(row['padding'])} and {row['randomness']:.2f}" for row in rows)
    text += "."
    text += f" Recommended: {best}." if best else ""
    title = "How random steps are, and what they pad"
    return furnish(alt.layer(*layers).properties(height=HEIGHT - 40), title, text, notes=notes)


def _labels(rows: Sequence[dict[str, Any]], width: float) -> list[dict[str, Any]]:
    """Returns the labels of the points. Points that are too close share a label: "E A B", the recommended one first."""
    labels: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: row["kind"] != "recommended"):
        for label in labels:
            if (
                abs(label["padding"] - row["padding"]) < _WIDE * width
                and abs(label["randomness"] - row["randomness"]) < _HIGH
            ):
                label["letter"] += f" {row['letter']}"
                break
        else:
            labels.append({name: row[name] for name in ("padding", "randomness", "kind", "letter")})
    return labels


def _letters() -> list[str]:
    """Returns A, B, ... Z, A2, B2, ..."""
    return [f"{letter}{number or ''}" for number in (0, *range(2, 9)) for letter in string.ascii_uppercase]


def _bold(best: str) -> Any:
    """Returns an axis of names, with the recommended one in bold and in colour."""
    is_best = f"datum.value === {json.dumps(best)}"
    return alt.Axis(
        ticks=False,
        domain=False,
        labelColor=alt.condition(is_best, alt.value(colour("recommended")), alt.value(colour("ink"))),
        labelFontWeight=alt.condition(is_best, alt.value("bold"), alt.value("normal")),
    )


def _as_rows(measures: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the measures of each strategy as a mapping."""
    if not isinstance(measures, Mapping) or not measures:
        remedy = 'Give {"random": lw.measure(plan, lengths)}, for example.'
        raise value_error("measures", "measures by the label of the strategy", measures, remedy)
    return {str(label): row if isinstance(row, Mapping) else row.as_dict() for label, row in measures.items()}
