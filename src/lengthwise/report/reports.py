"""A report: what it tells, gathered and written as one page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks, files
from lengthwise.lengths import as_lengths
from lengthwise.measures.epochs import check_plan
from lengthwise.measures.metrics import measure
from lengthwise.measures.pooled import join_measures
from lengthwise.planning.plan import Plan
from lengthwise.plot.deliveries import unit_of  # which needs no matplotlib
from lengthwise.report import headline, settings, tables
from lengthwise.report.along import draw_along
from lengthwise.report.contents import Code, Contents, Section
from lengthwise.report.costs import draw_costs
from lengthwise.report.epochs import read
from lengthwise.report.front import draw_front, draw_seconds
from lengthwise.report.histogram import draw_lengths, edges_of
from lengthwise.report.marks import Chart
from lengthwise.report.padding import draw_padding
from lengthwise.report.pages import Page, render
from lengthwise.report.sequences import draw_sequences
from lengthwise.report.steps import draw_steps

# The heading of each section, and what a stranger must know to read it.
_HEADINGS = {
    "padding": (
        "What is computed, and what of it is padding",
        "All sequences of a batch are padded to its longest. A bar is a batch.",
    ),
    "trade-off": (
        "Padding against randomness",
        "Random batches pad much. Sorted batches pad little, but each then holds sequences of nearly one length.",
    ),
    "ranks": (
        "Ranks that wait for each other",
        "A step ends when its costliest rank has ended. A bar is a rank in one step.",
    ),
    "batches": (
        "Batches, sequence by sequence",
        "Some batches from the middle of the epoch. A thin bar is a sequence, with its padding above it.",
    ),
    "epoch": ("Lengths along the epoch", "What a network sees, from the first step of the epoch to the last."),
    "memory": (
        "Memory: what batches cost, step by step",
        "The costliest batch decides how much memory a run needs. A bar is the costliest batch of a step.",
    ),
}
# The same where sequences are taken apart.
_HEADINGS_OF_CHUNKS = {
    "padding": (
        "What is computed, and what of it is padding",
        "All chunks of a batch are padded to its longest. A bar is a batch.",
    ),
    "batches": (
        "Batches, chunk by chunk",
        "Some batches from the middle of the epoch. A thin bar is a chunk of a sequence, with its padding above it.",
    ),
}
# The same where whole sequences share rows.
_HEADINGS_OF_ROWS = {
    "padding": (
        "What is computed, and what of it is padding",
        "All rows are padded to the capacity. A bar is a batch of rows.",
    ),
    "batches": (
        "Batches, row by row",
        "Some batches from the middle of the epoch. A thin bar is a row, with its padding above it.",
    ),
    "memory": (
        "What batches cost, step by step",
        "All rows hold as many frames, but their cost may differ. A bar is the costliest batch of a step.",
    ),
}


def save(
    path: str | os.PathLike[str],
    lengths: ArrayLike,
    plans: Mapping[str, Plan | Sequence[Plan]],
    *,
    title: str = "",
    unit: str = "frames",
) -> None:
    """Writes one page of HTML that shows what plans are worth: charts, measures, and the settings as code.

    The page holds all that it shows, and loads nothing: it can be mailed, printed, and read without a network. The
    first plan is what the others are compared with, such as random batches; the last is the one that is put forward. Of
    long epochs the charts draw a sample, and say so. The numbers are those of `measure`, of all that there is.

    Args:
        path: Where to write it, whole or not at all: "report.html", for example.
        lengths: What the plans were made for, [n] or [n, dims].
        plans: By the label to write: {"random": plan, "max-entropy:0.1": plan}. The first of several epochs is drawn,
            and mixing and waiting are measured over all: pool some, for one shows less mixing than there is.
        title: What the lengths are: the name of the data set, for example.
        unit: Of the lengths.

    Raises:
        ImportError: jinja2 is not installed.
        FileNotFoundError: There is no folder to write it in.
        OSError: The system refuses, as on a full disk; what stood at `path` is still there.
        ValueError: No plan, one that was made for other lengths, or two labels that are written alike.
        TypeError: Something else than plans, or a title or a unit that is no text.
    """
    if not isinstance(plans, Mapping) or not plans:
        raise checks.value_error(
            "plans", "at least one plan by its label", plans, 'Give {"random": plan}, for example.'
        )
    for name, text in (("title", title), ("unit", unit)):
        if not isinstance(text, str):
            raise checks.type_error(name, "text", text, 'Give "train.csv" or "frames", for example.')
    array = as_lengths(lengths)
    epochs = {str(label): _list(each) for label, each in plans.items()}
    if len(epochs) < len(plans):
        raise checks.value_error("plans", "under labels that differ as text", list(plans), "Rename one.")
    rows = {label: _measure(each, array) for label, each in epochs.items()}
    firsts = {label: each[0] for label, each in epochs.items()}
    files.write(path, write_page(Contents(lengths=array, plans=firsts, rows=rows, title=title, unit=unit)))


def _list(given: Any) -> list[Plan]:
    """One plan or several as a list of at least one."""
    if isinstance(given, Plan):
        return [given]
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise checks.type_error(
            "plans", "a Plan for each label, or several", given, 'Give {"random": plan}, for example.'
        )
    for each in given:
        check_plan("plans", each)
    return list(given)


def _measure(epochs: Sequence[Plan], lengths: NDArray[np.int64]) -> dict[str, Any]:
    first = measure(epochs[:1], lengths)
    return join_measures(first, measure(epochs, lengths) if len(epochs) > 1 else first)


def write_page(contents: Contents) -> str:
    """The report as HTML."""
    table = contents.rows  # in the order that was given; all else has the best last
    contents = _put_last(contents)
    plans = list(contents.plans.values())
    packed = any(plan.row_offsets is not None for plan in plans)
    ranks = max((plan.world_size for plan in plans), default=1)
    slots = max((plan.world_size * plan.micro_batches for plan in plans), default=1)
    rows = _headline_rows(contents)
    answer = headline.write_headline(rows, packed=packed, unit=contents.unit)
    tiles = headline.tiles(rows, slots=slots, ranks=ranks, packed=packed, seconds=contents.seconds)
    return render(
        Page(
            title=contents.title,
            answer=contents.answer or answer,
            labels=(next(iter(rows), ""), _best_label(contents)),
            tiles=tiles,
            sections=_sections(contents, table, slots=slots, packed=packed),
            code=_code(contents),
            command=contents.command,
        )
    )


def _put_last(contents: Contents) -> Contents:
    """The best plan behind the others; the first stays, and the headline says that nothing is to be gained."""
    best = contents.best
    if not best or best == list(contents.plans)[-1]:
        return contents
    if best == next(iter(contents.plans)):
        if contents.answer or any(plan.row_offsets is not None for plan in contents.plans.values()):
            return contents
        told = headline.write_headline({best: contents.rows[best]}, packed=False, unit=contents.unit)
        return replace(contents, answer=f"{told.removesuffix('.')}; no strategy computes clearly less.")
    order = [*(label for label in contents.plans if label != best), best]
    return replace(
        contents,
        plans={label: contents.plans[label] for label in order},
        rows={label: contents.rows[label] for label in order},
    )


def _best_label(contents: Contents) -> str:
    """The label that is put forward."""
    return contents.best or (list(contents.plans)[-1] if contents.plans else "")


def _headline_rows(contents: Contents) -> Mapping[str, Mapping[str, Any]]:
    """The rows of which the headline tells: all, or the first alone where it is the one that is put forward."""
    first = next(iter(contents.rows), "")
    return {first: contents.rows[first]} if first and first == contents.best else contents.rows


def _sections(
    contents: Contents, measured: Mapping[str, Mapping[str, Any]], *, slots: int, packed: bool
) -> list[Section]:
    """All sections that have something to show, in their order."""
    lengths, unit, plans = contents.lengths, contents.unit, dict(contents.plans)
    epochs = [each for each in read(plans, lengths) if each.plan.steps]
    shares = {label: row["padding_share"] for label, row in contents.rows.items()}
    waits = {label: row["straggler_waste"] for label, row in contents.rows.items()}
    best = _best_label(contents)
    front = [
        *draw_seconds(contents.seconds, contents.rows, best=best),
        *draw_front(lengths, epochs, contents.rows, best=best),
    ]
    edges, summed = edges_of(plans, lengths), unit_of(lengths, unit)
    item = "chunk" if any(plan.spans is not None for plan in plans.values()) else "sequence"
    headings = _HEADINGS | (_HEADINGS_OF_CHUNKS if item == "chunk" else {}) | (_HEADINGS_OF_ROWS if packed else {})

    def section(name: str, charts: list[Chart], *, narrow: bool = False) -> Section:
        title, lead = headings[name]
        return Section(name, title, charts, lead=lead, narrow=narrow, item=item)

    found = [
        *contents.outcomes,
        Section("lengths", "The lengths", draw_lengths(lengths, unit=unit, edges=edges), tables.facts(lengths)),
        section("padding", draw_padding(epochs, shares, unit=unit)),
        section("trade-off", front),
        section("ranks", draw_steps(epochs, waits)),
        section("batches", draw_sequences(epochs, lengths, unit=summed), narrow=True),
        section("epoch", draw_along(epochs, unit=summed)),
        section("memory", draw_costs(epochs)),
    ]
    if contents.rows:
        table = tables.measures(measured, steps=slots > 1, packed=packed)
        note = "" if packed else tables.bins_note(contents.rows)
        found.append(Section("measures", "All measures", (), table, tables.meanings(table.heads), note))
    return [each for each in found if each.charts or each.table]


def _code(contents: Contents) -> Code | None:
    """The settings of the plan that is put forward."""
    if not contents.plans:
        return None
    label = _best_label(contents)
    return Code(label, settings.write_code(contents.plans[label], loading=contents.loading))
