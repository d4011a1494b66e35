"""One self-contained page of HTML about plans: the recommended plan and its code, charts, and tables.

The page loads nothing and runs one script, the copy button: it can be mailed, printed, and read without a network.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lengthwise as lw
from lengthwise import checks, files
from lengthwise.advice.code import write_plan
from lengthwise.lengths import as_lengths
from lengthwise.measures.epochs import check_plan
from lengthwise.measures.metrics import measure_epochs
from lengthwise.planning.plan import Plan
from lengthwise.report import charts, tables, words
from lengthwise.report.style import COLOURS, inline_svg, jinja2
from lengthwise.report.tables import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """The contents of a page. A chart or a table without data is left out.

    Attributes:
        lengths: [n] or [n, dims], checked.
        plans: The plans by label. All are compared with the first.
        rows: The measures of each plan by name, as in `Measures.as_dict`.
        title: The name of the lengths, such as a file.
        unit: The unit of the lengths.
        command: The command that wrote the page.
        loading: Lines of Python that read the lengths.
        seconds: Measured seconds of an epoch by label.
        answer: A sentence in place of the headline.
        lead: A sentence below the headline.
        best: The label of the recommended plan, by default the last. Give the first if no other is better.
        charts: More charts, before the others: of training runs, for example.
        tables: More tables, before the others.
        measured: The table of `rows`; by default all measures.
    """

    lengths: NDArray[np.int64]
    plans: Mapping[str, Plan]
    rows: Mapping[str, Mapping[str, Any]]
    title: str = ""
    unit: str = "frames"
    command: str = ""
    loading: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    answer: str = ""
    lead: str = ""
    best: str = ""
    charts: Sequence[Any] = ()
    tables: Sequence[Table] = ()
    measured: Table | None = None


def save_page(
    plans: Mapping[str, Plan | Sequence[Plan]],
    lengths: ArrayLike,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    unit: str = "frames",
) -> None:
    """Writes one page of HTML about plans: charts, measures, and the code of the last plan.

    All plans are compared with the first, such as random batches. The last one is recommended. Charts of batches show a
    sample of the epoch. The numbers are those of `measure`, over whole epochs.

    Args:
        plans: The plans by label: {"random": plan, "max-entropy:0.1": plan}. Or a list of plans for each label, one for
            each epoch. Randomness and waiting are then measured over all epochs. The charts show the first.
        lengths: [n] or [n, dims], the lengths of the plans.
        path: The file to write, such as "report.html".
        title: The name of the lengths, such as that of the data set.
        unit: The unit of the lengths.

    Raises:
        ImportError: Altair, vl-convert or jinja2 is not installed.
        FileNotFoundError: The folder does not exist.
        ValueError: There is no plan, a plan has other lengths, or two labels give the same text, as 1 and "1" do.
        TypeError: A value is not a plan, or the title or the unit is not a text.

    >>> import tempfile, pathlib
    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths(count=200)
    >>> orders = {"random": lw.Shuffled(), "sorted": lw.Sorted()}
    >>> plans = {name: lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(8), order=orders[name])) for name in orders}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> lw.report.save_page(plans, lengths, path, title="speech")
    >>> path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    files.check_path("path", path)
    checks.check_text("title", title, remedy='Give "train.csv", for example.')
    checks.check_text("unit", unit, remedy='Give "frames", for example.')
    array = as_lengths(lengths)
    values = charts.check_labels("plans", plans, "at least one plan by its label", '{"random": plan}')
    plans_by_label = {checks.make_visible(label): _list_epochs(value) for label, value in values.items()}
    if len(plans_by_label) < len(plans):
        raise checks.value_error("plans", "under labels whose texts differ", list(plans), "Rename one.")
    rows = {label: measure_epochs(epochs, array).as_dict() for label, epochs in plans_by_label.items()}
    firsts = {label: epochs[0] for label, epochs in plans_by_label.items()}
    files.write(path, write_page(Contents(lengths=array, plans=firsts, rows=rows, title=title, unit=unit)))


def _list_epochs(value: Any) -> list[Plan]:
    """Returns one plan or several as a list."""
    if isinstance(value, Plan):
        return [value]
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        remedy = 'Give {"random": plan}, for example.'
        raise checks.type_error("plans", "a Plan for each label, or several", value, remedy)
    for plan in value:
        check_plan("plans", plan)
    return list(value)


def write_page(contents: Contents) -> str:
    """Returns the page as HTML."""
    best = contents.best or next(reversed(list(contents.plans)), "")
    contents = replace(contents, best=best)
    plans = list(contents.plans.values())
    packed = any(plan.row_offsets is not None for plan in plans)
    slots = max((plan.world_size * plan.micro_batches for plan in plans), default=1)
    measured = contents.measured
    if measured is None and contents.rows:
        measured = tables.measures(contents.rows, steps=slots > 1, packed=packed, best=best)
    script = _read("page.js").strip()
    text = _template().render(
        contents=contents,
        answer=contents.answer or words.write_headline(contents.rows, best, packed=packed, unit=contents.unit),
        first=next(iter(contents.rows), ""),
        tiles=tables.choose_tiles(contents.rows, best, slots=slots, seconds=contents.seconds),
        code=write_plan(contents.plans[best], loading=contents.loading) if plans else "",
        figures=[inline_svg(chart, name) for name, chart in _charts(contents).items()],
        tables=[*contents.tables, *filter(None, [measured])],
        lengths=tables.facts(contents.lengths),
        style=_read("page.css"),
        themes=[{name: pair[dark] for name, pair in COLOURS.items()} for dark in (0, 1)],
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        versions=f"Lengthwise {lw.__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    )
    # The name of a file may have bytes that are not UTF-8. Each becomes a question mark.
    return text.encode("utf-8", "replace").decode()


def _charts(contents: Contents) -> dict[str, Any]:
    """Returns all charts that have data by name, the most important first."""
    lengths, unit, rows, best = contents.lengths, contents.unit, contents.rows, contents.best
    gallery = {f"chart{number}": chart for number, chart in enumerate(contents.charts)}
    labels = dict.fromkeys([*list(contents.plans)[:1], best])
    ends = {label: contents.plans[label] for label in labels if label and contents.plans[label].steps}
    if ends:
        if len(rows) > 1:
            gallery["padding"] = charts.padding(rows, best=best, unit=unit)
        shares = {label: rows[label]["padding_share"] for label in ends}
        gallery["batches"] = charts.batches(ends, lengths, unit=unit, shares=shares)
    if len(lengths):
        gallery["histogram"] = charts.histogram(lengths, unit=unit)
    return gallery


@cache
def _template() -> jinja2.Template:
    # All texts are escaped: a file may be named "<script>".
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html")


def _read(name: str) -> str:
    return (resources.files("lengthwise.report") / "template" / name).read_text(encoding="utf-8")
