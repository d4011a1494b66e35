"""What a report tells: plain data, gathered by whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.planning.plan import Plan
from lengthwise.report.marks import Chart, Table


class Section(NamedTuple):
    """One part of the page.

    Attributes:
        name: For links to it; letters and hyphens alone.
        title: Its heading.
        charts: Side by side where the page is wide.
        table: Below them.
        meanings: Of words in the table, each with what it means.
        note: Below all.
        lead: What is seen here, above all.
        narrow: Whether the charts are small ones, three in a row.
        item: What a dot is: a "sequence", or a "chunk" of one.
    """

    name: str
    title: str
    charts: Sequence[Chart] = ()
    table: Table | None = None
    meanings: Sequence[tuple[str, str]] = ()
    note: str = ""
    lead: str = ""
    narrow: bool = False
    item: str = "sequence"


class Code(NamedTuple):
    """The settings of the plan of this label, as lines of Python."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What a report tells. Charts and tables are drawn of it, each where its data are there.

    Attributes:
        lengths: [n] or [n, dims], checked.
        plans: By label; the first is what the others are compared with, the best is put forward.
        rows: The measures of each plan, as `Measures.as_dict` has them; also "seconds" of planning, "mixing_epochs".
        title: What the lengths are: a file, for example.
        unit: Of the lengths.
        command: The command that wrote the report.
        loading: Lines of Python that read the lengths.
        seconds: Of an epoch, measured, by label.
        answer: A sentence in place of the headline.
        best: The label of the plan to put forward, the last by default; of the first, that nothing is to be gained.
        outcomes: More charts and tables: of training runs, for example.
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
    best: str = ""
    outcomes: Sequence[Section] = ()
