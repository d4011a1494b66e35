"""Charts of batches: their sequences and padding, the waiting of ranks, and the costliest batch of each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import type_error, value_error
from lengthwise.lengths import as_lengths
from lengthwise.measures.metrics import measure
from lengthwise.planning.plan import Plan
from lengthwise.report import words
from lengthwise.report.style import WIDTH, Chart, alt, colour, furnish, parts, table

_SEQUENCES = 120  # sequences to draw of each plan
_PARTED = 40  # the most borders of batches to draw
_USUAL = 0.95  # the share of the sequences whose padded length is always on the axis
_STEPS, _RANKS = 4, 16  # the most to draw
_COLUMNS = 100  # the most columns to draw: if there are more steps, a column joins several
_HEIGHT = 96  # pixels of the panel of a plan
_INNER = WIDTH - 66  # pixels of a panel without its axis


class Delivery(NamedTuple):
    """Batches in the order in which they are delivered.

    lengths  [m]        the length of each sequence
    sizes    [batches]  the number of sequences in each batch
    padded   [batches]  the length that each batch is padded to
    """

    lengths: NDArray[np.int64]
    sizes: NDArray[np.int64]
    padded: NDArray[np.int64]


def batches(
    plans: Plan | Mapping[str, Plan],
    lengths: ArrayLike,
    *,
    unit: str = "frames",
    title: str = "",
    shares: Mapping[str, float] | None = None,
) -> Chart:
    """Draws some batches of an epoch, sequence by sequence, and the padding above each sequence.

    If a sequence has several lengths, their sum is drawn. If few sequences are far longer than the rest, the axis ends
    below them.

    Args:
        plans: A plan, or several by label, drawn one below the other.
        lengths: [n] or [n, dims], the lengths of the plans.
        unit: The unit of the lengths.
        title: The title; by default one is written.
        shares: The padding share of each plan, such as its mean over several epochs; by default that of the plan alone.

    Raises:
        ValueError: There is no plan, or a plan has other lengths.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> lw.report.batches(lw.make_plan(lengths, batching), lengths).to_dict()["description"]
    'Sequences of some batches, with the padding above them. Padding of the epoch: 11.8 %.'
    """
    named = check_plans(plans)
    shown = {label: delivery(plan, lengths, _middle(plan)) for label, plan in named.items()}
    tops = [np.repeat(epoch.padded, epoch.sizes)[:_SEQUENCES] for epoch in shown.values()]
    # One sequence of 8,000 would make the others, of 500, too flat to see.
    usual = max((float(np.quantile(top, _USUAL)) for top in tops if len(top)), default=0.0)
    top = max(1.0, min(1.05 * max((int(top.max(initial=0)) for top in tops), default=1), 1.4 * usual))
    axis = {
        "title": f"length ({unit})",
        "scale": alt.Scale(domain=[0.0, top], nice=False),
        "axis": alt.Axis(tickCount=3),
    }
    shares = shares or {label: measure(plan, lengths).padding_share for label, plan in named.items()}
    window = max(1, max(map(len, tops)))
    panels = [
        _panel(shown[label], axis, window, _name(label, f"{words.percent(shares[label])} padding")) for label in named
    ]
    item = _item(named)
    text = "Sequences of some batches, with the padding above them. Padding of the epoch"
    note = f"From the middle of the epoch. A thin bar is a {item}."
    numbers = {label: words.percent(shares[label]) for label in named}
    return _stack(panels, title or f"Batches, {item} by {item}", text, numbers, note)


def _panel(epoch: Delivery, axis: Mapping[str, Any], window: int, title: str) -> Any:
    tops = np.repeat(epoch.padded, epoch.sizes)[:_SEQUENCES].tolist()
    numbers = np.repeat(np.arange(len(epoch.sizes)), epoch.sizes)[:_SEQUENCES].tolist()
    rows = [
        {"place": place, "batch": number + 1, "length": length, "padded to": top}
        for place, (number, length, top) in enumerate(zip(numbers, epoch.lengths.tolist(), tops, strict=False))
    ]
    # A sequence is drawn up to the next place, so the last one needs a place after it.
    rows += [rows[-1] | {"place": len(rows)}] if rows else []
    x = alt.X("place:Q", scale=alt.Scale(domain=[0, window], nice=False), axis=None)
    # The padding is drawn first, and the data over it.
    layers: list[Any] = [
        alt.Chart(table(rows))
        .transform_calculate(part=f"'{part}'")
        .mark_area(interpolate="step-after", clip=True, opacity=1, line=False)
        .encode(x, alt.Y(f"{field}:Q", **axis), color=parts("data", "padding"))
        for part, field in (("padding", "padded to"), ("data", "length"))
    ]
    borders = [{"place": place} for place in np.cumsum(epoch.sizes)[:-1].tolist() if place < _SEQUENCES]
    if len(borders) <= _PARTED:  # lines would hide many narrow batches
        layers.append(alt.Chart(table(borders)).mark_rule(color=colour("paper"), strokeWidth=1.5).encode(x))
    return _entitle(alt.layer(*layers), title)


def waiting(plans: Plan | Mapping[str, Plan], *, title: str = "", shares: Mapping[str, float] | None = None) -> Chart:
    """Draws the work of each rank in some steps of an epoch, and its waiting for the costliest rank.

    Args:
        plans: A plan for several ranks, or several plans by label, drawn one below the other.
        title: The title; by default one is written.
        shares: The waiting share of each plan, such as its mean over several epochs; by default that of the plan alone.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> plan = lw.make_plan(lengths, batching, world_size=3)  # ranks of 6, 10 and 18 frames: 34 of 54 are work
    >>> lw.report.waiting(plan).to_dict()["description"]
    'What each rank computes in some steps, and its waiting for the costliest. Waiting over the epoch: 37.0 %.'
    """
    named = check_plans(plans)
    top = max(float(plan.costs[plan.grid].sum(axis=1).max(initial=0.0)) for plan in named.values())
    y = alt.Y("cost:Q", title="cost", scale=alt.Scale(domain=[0.0, 1.04 * top or 1.0], nice=False)).axis(
        tickCount=3, format="~s"
    )
    shares = shares or {label: _waste(plan) for label, plan in named.items()}
    panels = []
    for label, plan in named.items():
        x = alt.X("place:N", sort=None, axis=None)
        bars = alt.Chart(table(_rank_rows(plan))).mark_bar(height=alt.RelativeBandSize(1.0))
        order = alt.Order("part:N", sort="ascending")
        chart = bars.encode(x, y, color=parts("computing", "waiting"), order=order)
        panels.append(_entitle(chart, _name(label, f"ranks wait {words.percent(shares[label])} of the time")))
    text = "What each rank computes in some steps, and its waiting for the costliest. Waiting over the epoch"
    numbers = {label: words.percent(shares[label]) for label in named}
    note = "A bar is a rank. A step ends when its costliest rank ends."
    return _stack(panels, title or "Ranks that wait", text, numbers, note)


def _rank_rows(plan: Plan) -> list[dict[str, Any]]:
    """Returns the computing and waiting of each rank in some steps, with an empty place between two steps."""
    first = max(0, (plan.steps - _STEPS) // 2)
    rows: list[dict[str, Any]] = []
    for step, totals in enumerate(plan.costs[plan.grid[first : first + _STEPS]].sum(axis=1), start=first):
        # Of many ranks, 16 are drawn, the costliest and the cheapest among them.
        ranks = np.argsort(totals, kind="stable")[np.linspace(0, len(totals) - 1, _RANKS).round().astype(np.int64)]
        for rank in range(len(totals)) if len(totals) <= _RANKS else sorted(ranks.tolist()):
            cost, name = float(totals[rank]), {"step": step, "rank": rank, "place": f"{step}.{rank}"}
            rows.append(name | {"part": "computing", "cost": cost})
            rows.append(name | {"part": "waiting", "cost": float(totals.max()) - cost})
        rows.append({"step": step, "rank": "", "place": f"{step}.", "part": "computing", "cost": 0.0})
    return rows[:-1]


def _waste(plan: Plan) -> float:
    """Returns the share of the time of all ranks that is spent waiting."""
    totals = plan.costs[plan.grid].sum(axis=1)
    time = float(totals.max(axis=1).sum()) * plan.world_size if totals.size else 0.0
    return 1.0 - float(totals.sum()) / time if time else 0.0


def memory(plans: Plan | Mapping[str, Plan], *, title: str = "") -> Chart:
    """Draws the budget, and the cost of the costliest batch of each step, which decides the memory of a run.

    Args:
        plans: A plan, or several by label, drawn one below the other.
        title: The title; by default one is written.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> lw.report.memory(lw.make_plan(lengths, batching)).to_dict()["description"]
    'The costliest batch of each step. At most: 18.'
    """
    named = check_plans(plans)
    budgets = [plan.max_cost for plan in named.values() if math.isfinite(plan.max_cost)]
    costs = {label: float(plan.costs.max(initial=0.0)) for label, plan in named.items()}
    scale = alt.Scale(domain=[0.0, 1.15 * max([1.0, *costs.values(), *budgets])], nice=False)
    axis = {"title": "cost", "scale": scale, "axis": alt.Axis(tickCount=3, format="~s")}
    panels = []
    for label, plan in named.items():
        x = alt.X("step:Q", title=None, scale=alt.Scale(domain=[0, plan.steps], nice=False), axis=None)
        layers: list[Any] = [
            alt.Chart(table(_step_rows(plan)))
            .mark_bar(color=colour("data"), opacity=1)
            .encode(x, alt.Y("cost:Q", **axis), x2="end:Q", y2=alt.datum(0))
        ]
        heading = _name(label, f"{words.number(costs[label])} at most")
        if math.isfinite(plan.max_cost) and plan.max_cost > 0:
            heading += f", {words.percent(costs[label] / plan.max_cost)} of the budget"
            line = alt.Chart(table([{"budget": plan.max_cost}])).encode(alt.Y("budget:Q", **axis))
            layers += [line.mark_rule(strokeWidth=1.5), line.mark_text(align="right", x=_INNER, dy=-7, text="budget")]
        panels.append(_entitle(alt.layer(*layers), heading))
    numbers = {label: words.number(cost) for label, cost in costs.items()}
    text, note = "The costliest batch of each step. At most", "A bar is the costliest batch of a step."
    return _stack(panels, title or "Memory, step by step", text, numbers, note)


def _step_rows(plan: Plan) -> list[dict[str, Any]]:
    """Returns the cost of the costliest batch of each step. More than 100 steps are joined into 100 columns."""
    step_costs = plan.costs[plan.grid].max(axis=(1, 2)) if plan.steps else np.empty(0)
    count = min(plan.steps, _COLUMNS)
    starts = np.arange(count) * plan.steps // max(count, 1)
    ends = np.append(starts[1:], plan.steps)[:count]
    costs = np.maximum.reduceat(step_costs, starts).tolist() if count else []
    columns = zip(starts.tolist(), ends.tolist(), costs, strict=True)
    return [{"step": start, "end": end, "cost": cost} for start, end, cost in columns]


def _stack(panels: Sequence[Any], title: str, text: str, numbers: Mapping[str, str], note: str) -> Chart:
    """Returns the panels of plans, one below the other; the text for screen readers ends with a number for each."""
    text = f"{text}: {'; '.join(f'{label} {number}'.strip() for label, number in numbers.items())}."
    return furnish(alt.vconcat(*panels, spacing=14), title, text, notes=[note], view=False)


def _entitle(panel: Any, title: str) -> Any:
    """Returns the panel of one plan, with its title."""
    heading = alt.TitleParams(title, fontSize=13, fontWeight="normal", offset=4)
    return panel.properties(width=_INNER, height=_HEIGHT, title=heading)


def _item(plans: Mapping[str, Plan]) -> str:
    """Returns the name of the items of a batch: sequence, chunk, or packed row."""
    if any(plan.row_offsets is not None for plan in plans.values()):
        return "row"
    return "chunk" if any(plan.spans is not None for plan in plans.values()) else "sequence"


def _name(label: str, text: str) -> str:
    """Returns the label of a plan, if it has one, and a text about the plan."""
    return f"{words.shorten(label, 53 - len(text))}: {text}" if label else text


def check_plans(plans: object) -> dict[str, Plan]:
    """Returns the plans by label, checked."""
    named = {"": plans} if isinstance(plans, Plan) else plans
    remedy = 'Give {"random": plan}, for example.'
    if not isinstance(named, Mapping) or not named:
        raise value_error("plans", "at least one plan by its label", plans, remedy)
    for plan in named.values():
        if not isinstance(plan, Plan):
            raise type_error("plans", "a Plan for each label", plan, remedy)
    return {str(label): plan for label, plan in named.items()}


def delivery(plan: Plan, lengths: ArrayLike, numbers: NDArray[np.int64] | None = None) -> Delivery:
    """Returns batches by their numbers; by default all, step by step as the ranks take them.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.ShortestFirst(reverse=True))
    >>> delivery(lw.make_plan([5, 9, 2, 4], batching), [5, 9, 2, 4])
    Delivery(lengths=array([5, 9, 2, 4]), sizes=array([2, 2]), padded=array([9, 4]))
    """
    if numbers is None:  # within a step: the first micro-batch of each rank, then the second
        numbers = plan.grid.reshape(-1)
    array = as_lengths(lengths)
    sums = array if array.ndim == 1 else array.sum(axis=1)
    items = sums if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1]
    item_lengths, first, sizes = items[plan.numbers], plan.offsets, plan.batch_sizes[numbers]
    if plan.row_offsets is not None:  # a row is drawn as one sequence, with the sum of its lengths
        item_lengths, first, sizes = (
            np.add.reduceat(item_lengths, plan.row_offsets[:-1]),
            np.searchsorted(plan.row_offsets, plan.offsets),
            plan.row_counts[numbers],
        )
    # Batches of 2 and 3 that start at 7 and 0 hold the places 7, 8, 0, 1, 2.
    places = np.arange(sizes.sum()) + np.repeat(first[numbers] - np.cumsum(sizes) + sizes, sizes)
    return Delivery(item_lengths[places], sizes, plan.padded_lengths.sum(axis=1)[numbers])


def _middle(plan: Plan) -> NDArray[np.int64]:
    """Returns the numbers of consecutive batches, from the middle of the epoch, with enough sequences to draw."""
    numbers = plan.grid.reshape(-1)
    counts = plan.row_counts[numbers]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    first = int(np.searchsorted(ends, max(0, (total - _SEQUENCES) // 2), side="right"))
    start = int(ends[first] - counts[first]) if total else 0
    return numbers[first : first + 1 + int(np.searchsorted(ends[first:], start + _SEQUENCES))]
