"""Charts that compare strategies: padding, and mixing against padding or price."""

from __future__ import annotations

import json
import string
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.checks import value_error
from lengthwise.lengths import as_lengths
from lengthwise.measures.limit import mixing_limit
from lengthwise.report import words
from lengthwise.report.style import HEIGHT, Chart, alt, colour, furnish, parts, table

_POINTS = 16  # on the limit
_MOST_BINS = 1_024  # of the limit; the same as of the mixing that is held against it
_ENOUGH = 65_536  # lengths that tell the limit as well as more
_WIDE, _HIGH = 0.045, 0.07  # of a letter, as shares of the width and of the height
_NAMED = 6  # rows of advice with a letter, beside the best and what trainers ship
_KEY = 62  # letters of a line below the title
_PRICES = {
    "frames": "frames computed for each frame of data",
    "seconds": "seconds of an epoch, as predicted",
    "cost": "cost of an epoch",
}


class Advised(Protocol):
    """The part of an answer of `lw.advise` that charts read."""

    @property
    def candidates(self) -> Sequence[Any]: ...
    @property
    def best(self) -> Any: ...
    @property
    def unit(self) -> str: ...
    @property
    def world_size(self) -> int: ...
    @property
    def micro_batches(self) -> int: ...


class _Spot(NamedTuple):
    """A strategy on the plane."""

    label: str
    x: float
    mixing: float
    named: bool = True


def padding(measures: Mapping[str, Any], *, best: str = "", unit: str = "frames") -> Chart:
    """Draws what each strategy computes for each frame of data, and how much of it is padding.

    Args:
        measures: `lw.Measures` by the label of the strategy.
        best: The label to put forward.
        unit: Of the lengths.
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


def trade_off(measures: Mapping[str, Any], *, lengths: ArrayLike | None = None, best: str = "") -> Chart:
    """Draws mixing against padding: every strategy a letter, the recommended one by its colour.

    Where a step has several batches, mixing is that of steps.

    Args:
        measures: `lw.Measures` by the label of the strategy.
        lengths: [n] or [n, dims], for the limit of all batching; several lengths a sequence count by their sum. Only
            where each step has one batch.
        best: The label to put forward.
    """
    rows = _as_rows(measures)
    steps = any(row["steps"] < row["batches"] for row in rows.values())
    name = "step_mixing" if steps else "mixing"
    spots = [_Spot(label, row["padding_share"], row[name]) for label, row in rows.items()]
    limit = (
        []
        if lengths is None or steps
        else _limit(lengths, max(spot.x for spot in spots), next(iter(rows.values()))["mixing_bins"])
    )
    what = "steps" if steps else "batches"
    axis = alt.X("padding:Q", title="padding, as a share of what is computed").axis(format=".0%", tickCount=5)
    return _scatter(spots, axis, name.replace("_", " "), f"How random {what} are, for what they pad", best, limit)


def advice(advice: Advised) -> Chart:
    """Draws mixing against the price of everything that `lw.advise` tried, the recommended row by its colour.

    Args:
        advice: What `lw.advise` returned.
    """
    named = {id(row) for row in named_rows(advice)}
    slots = advice.world_size * advice.micro_batches
    spots = [_Spot(row.label, row.price, row.mixing, id(row) in named) for row in advice.candidates]
    title = _PRICES.get(advice.unit, advice.unit) + (", of the slowest rank" if advice.world_size > 1 else "")
    axis = alt.X("price:Q", title=title).scale(zero=False).axis(tickCount=5)
    mixing = "step mixing" if slots > 1 else "mixing"
    return _scatter(spots, axis, mixing, "What was tried", advice.best.label, [])


def named_rows(advice: Advised) -> list[Any]:
    """The best of what was tried, what trainers ship, and some that nothing beats, in their order."""
    front = [row for row in advice.candidates if row.on_front]
    some = front[:: max(1, -(-len(front) // _NAMED))]
    named = {id(row) for row in [advice.best, *some, *(row for row in advice.candidates if row.ships_in)]}
    return [row for row in advice.candidates if id(row) in named]


def _scatter(
    spots: Sequence[_Spot], x: Any, mixing: str, title: str, best: str, limit: Sequence[dict[str, float]]
) -> Any:
    field = str(x.to_dict()["field"])
    letters = dict(zip([spot.label for spot in spots if spot.named], _letters(), strict=False))
    rows = [
        {
            "letter": letters.get(spot.label, ""),
            "strategy": spot.label,
            field: spot.x,
            mixing: spot.mixing,
            "kind": "recommended" if spot.label == best else "named" if spot.named else "tried",
        }
        for spot in spots
    ]
    low, high = (edge(spot.x for spot in spots) for edge in (min, max))
    room = 0.06 * (high - low) or 0.06 * high or 0.05
    x = x.scale(domain=[max(0.0, low - room), high + room], nice=False, zero=False)
    y = alt.Y(
        f"{mixing}:Q", scale=alt.Scale(domain=[0.0, 1.06]), axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f")
    )
    kinds = ["tried", "named", "recommended"]
    colours = alt.Scale(domain=kinds, range=[colour("waiting"), colour("soft"), colour("recommended")])
    color = alt.Color("kind:N", scale=colours, legend=None)
    size = alt.Size("kind:N", scale=alt.Scale(domain=kinds, range=[22, 60, 150]), legend=None)
    dots = alt.Chart(table(rows)).mark_circle(opacity=1).encode(x=x, y=y, color=color, size=size)
    names = alt.Chart(table(_labels(rows, field, mixing, high - low + 2 * room))).mark_text(
        align="left", dx=8, dy=-7, fontWeight="bold"
    )
    layers = [dots, names.encode(x=x, y=y, text="letter:N", color=color)]
    if limit:
        line = alt.Chart(table([{field: point["padding"], mixing: point["mixing"]} for point in limit]))
        layers.insert(
            0, line.mark_line(strokeDash=[6, 4], strokeWidth=1.5, color=colour("ink"), clip=True).encode(x, y)
        )
    # A name is not broken: "A random · B max-entropy:0.1".
    key = "\xa0· ".join(f"{letter}\xa0{words.shorten(label)}" for label, letter in letters.items())
    marks = ["Up and left is better.", *(["Green: recommended."] if best else [])]
    marks += ["Dashed: the limit of all batching."] if limit else []
    notes = [line for text in (key, " ".join(marks)) for line in textwrap.wrap(text, _KEY, break_on_hyphens=False)]
    top = max(spots, key=lambda spot: spot.mixing)
    text = f"{words.count(len(spots), 'strategy', 'strategies')} by {field} and {mixing}. "
    text += f"{top.label} mixes most, {top.mixing:.2f}."
    text += f" Recommended: {best}." if best else ""
    return furnish(alt.layer(*layers).properties(height=HEIGHT - 40), title, text, notes=notes)


def _labels(rows: Sequence[dict[str, Any]], field: str, mixing: str, width: float) -> list[dict[str, Any]]:
    """One label for named points that are too close for two, the recommended one first: "E A B"."""
    labels: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: row["kind"] != "recommended"):
        if not row["letter"]:
            continue
        for label in labels:
            if abs(label[field] - row[field]) < _WIDE * width and abs(label[mixing] - row[mixing]) < _HIGH:
                label["letter"] += f" {row['letter']}"
                break
        else:
            labels.append({name: row[name] for name in (field, mixing, "kind", "letter")})
    return labels


def _letters() -> list[str]:
    """A, B, ... Z, A2, B2, ..."""
    return [f"{letter}{number or ''}" for number in (0, *range(2, 9)) for letter in string.ascii_uppercase]


def _limit(lengths: ArrayLike, end: float, bins: int) -> list[dict[str, float]]:
    """The most mixing at some padding shares."""
    array = as_lengths(lengths)
    sizes = np.sort(array if array.ndim == 1 else array.sum(axis=1))
    if len(sizes) > _ENOUGH:  # quantiles of the lengths have the same limit
        sizes = sizes[np.linspace(0, len(sizes) - 1, _ENOUGH).astype(np.int64)]
    # Closer together where little is padded.
    shares = (min(1.06 * end, 0.999) * np.linspace(0.0, 1.0, _POINTS) ** 2).tolist()
    return (
        [
            {"padding": share, "mixing": mixing_limit(sizes, share, bins=max(2, min(bins, _MOST_BINS)))}
            for share in shares
        ]
        if end
        else []
    )


def _bold(best: str) -> Any:
    """An axis of names, the recommended one in its colour."""
    is_best = f"datum.value === {json.dumps(best)}"
    return alt.Axis(
        ticks=False,
        domain=False,
        labelColor=alt.condition(is_best, alt.value(colour("recommended")), alt.value(colour("ink"))),
        labelFontWeight=alt.condition(is_best, alt.value("bold"), alt.value("normal")),
    )


def _as_rows(measures: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Each strategy's measures as a mapping."""
    if not isinstance(measures, Mapping) or not measures:
        remedy = 'Give {"random": lw.measure(plan, lengths)}, for example.'
        raise value_error("measures", "measures by the label of the strategy", measures, remedy)
    return {str(label): row if isinstance(row, Mapping) else row.as_dict() for label, row in measures.items()}
