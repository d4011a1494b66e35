"""What a command shows: tables by rich on a terminal, JSON for programs, figures for reports."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

import lengthwise as lw
from lengthwise import files
from lengthwise.checks import make_visible, value_error
from lengthwise.cli.parser import command

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")
_TEXTS = ("json", "html")  # which standard output may hold
_GAP = 2  # blanks between the columns of a table
_UNBOUNDED = 140  # columns where standard output is no terminal and COLUMNS does not say
_NARROWEST = 40  # columns that a table is drawn in, though the terminal has fewer


def add(parser: argparse.ArgumentParser, *, plot: str = "", html: str = "") -> None:
    """Adds --json, and --plot and --html where these say what they show."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", metavar="PATH", help="write JSON; - for standard output, which then holds nothing else"
    )
    if plot:
        group.add_argument("--plot", metavar="PATH", help=f"draw {plot} ({', '.join(PICTURES)})")
    if html:
        text = f"write a page that shows {html}; - for standard output, which then holds nothing else"
        group.add_argument("--html", metavar="PATH", help=text)


def check(arguments: argparse.Namespace) -> None:
    """Refuses outputs that cannot be written, before the work and not after it."""
    # A plan may take minutes, and a folder that is missing is known at once.
    for name in ("json", "html", "plot", "output"):
        path = getattr(arguments, name, None)
        if path is not None and not (name in _TEXTS and path == "-"):
            _check_path(name, path)
    if all(getattr(arguments, name, None) == "-" for name in _TEXTS):
        raise value_error("html", "a file beside --json -", "-", "Standard output holds one of the two.")
    if getattr(arguments, "html", None) is not None:
        from lengthwise.report import save_page  # which says so if what it needs is not installed

        del save_page
    path = getattr(arguments, "plot", None)
    if path is None:
        return
    if Path(path).suffix.lower() not in PICTURES:
        raise value_error(
            "plot", f"a file of one of the kinds {', '.join(PICTURES)}", path, "Name it plot.png, for example."
        )
    from lengthwise.report import save_chart  # which says so if Altair is not installed

    del save_chart


def _check_path(name: str, path: str) -> None:
    # Figures and plans are bytes, which standard output has no use for.
    if path in ("", "-") or Path(path).is_dir():
        raise value_error(name, "a file to write", path, "Name the file.")
    files.check_folder(name, path)


def fills_output(arguments: argparse.Namespace) -> bool:
    """Whether standard output holds a document, and so nothing else."""
    return any(getattr(arguments, name, None) == "-" for name in _TEXTS)


def write_html(
    path: str | None,
    lengths: NDArray[Any],
    plans: Mapping[str, lw.Plan],
    rows: Mapping[str, Mapping[str, Any]],
    **more: Any,
) -> None:
    """Writes a report to `path`, or to standard output if that is "-"; does nothing if it is None.

    `more` is said at `lengthwise.report.page.Contents`.
    """
    if path is None:
        return
    from lengthwise.report.page import Contents, write_page

    text = write_page(Contents(lengths=lengths, plans=plans, rows=rows, command=command(), **more))
    if path == "-":
        sys.stdout.write(text)
    else:
        files.write(path, text)


def write_json(document: Any, path: str | None) -> None:
    """Writes `document` to `path`, or to standard output if that is "-"; does nothing if it is None."""
    if path is None:
        return
    # Strict JSON: NaN and Infinity are words that only Python reads.
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        files.write(path, text)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    legend: Mapping[str, str] | None = None,
    words: int = 1,
    spare: Sequence[str] = (),
) -> None:
    """Prints a table no wider than the terminal.

    Args:
        heads: The heads of the columns; a line break begins a new line.
        title: The text above the table.
        notes: The texts below the table.
        legend: What heads mean; those that stand in the table are explained above the notes, each in a line.
        words: The first so many columns hold words, the others numbers.
        spare: Heads of columns to leave out, in this order, if the table is too wide. A note names them.
    """
    console = _console()
    cells = [list(row) for row in rows]
    if _width(heads, cells, range(len(heads))) > console.width:
        cells = [[row[0].replace(",", ",\n  "), *row[1:]] for row in cells]  # sorted,arrange=in-order in two lines
    kept = _fit_columns(heads, cells, spare, console.width)
    if title:
        console.print(make_visible(title, lines=True), style="bold")
    console.print()
    console.print(
        _draw_table([heads[place] for place in kept], [[row[place] for place in kept] for row in cells], words)
    )
    below = _write_notes(heads, kept, notes, legend or {})
    if below:
        console.print()
    for note in below:
        console.print(note, style="dim")


def _write_notes(
    heads: Sequence[str], kept: Sequence[int], notes: Sequence[str], legend: Mapping[str, str]
) -> list[str]:
    """What stands below a table of the columns `kept`: what their heads mean, the notes, and which were left out."""
    shown = [heads[place] for place in kept]
    left_out = ", ".join(" ".join(head.split()) for place, head in enumerate(heads) if place not in kept)
    return [
        *(f"{text}." for head, text in legend.items() if head in shown),
        *notes,
        *([f"Left out for want of room: {left_out}. --json has them."] if left_out else []),
    ]


def say(text: str) -> None:
    """Prints a sentence, broken between words."""
    _console().print(make_visible(text, lines=True))


def program(lines: str) -> None:
    """Prints lines of code as they are, so that they can be copied, also where the terminal is narrower."""
    _console().print(make_visible(lines, lines=True), soft_wrap=True)


def progress(items: Any) -> Any:
    """The items, with a bar of how many are planned while a terminal shows it."""
    from tqdm import tqdm

    return tqdm(items, desc="planning", leave=False, disable=None)


def _console() -> Console:
    from rich.console import Console

    columns = shutil.get_terminal_size((_UNBOUNDED, 24)).columns  # COLUMNS=0 says nothing, as if it were not set
    return Console(markup=False, highlight=False, emoji=False, width=max(columns, _NARROWEST))


def _draw_table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> Any:
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for place, head in enumerate(heads):
        # Words that are several may be broken between them, numbers and bars never.
        whole = place > 0 and not (place < words and any(" " in row[place] for row in rows))
        drawn.add_column(
            head, justify="left" if place < words else "right", no_wrap=whole, overflow="fold", vertical="bottom"
        )
    for row in rows:
        drawn.add_row(*row)
    return drawn


def _fit_columns(heads: Sequence[str], rows: list[list[str]], spare: Sequence[str], width: int) -> list[int]:
    """The numbers of the columns that fit into `width`."""
    kept = list(range(len(heads)))
    for head in spare:
        if _width(heads, rows, kept) <= width:
            break
        # One at a time, so that no more are left out than must be.
        kept.remove(list(heads).index(head))
    return kept


def _width(heads: Sequence[str], rows: list[list[str]], kept: Sequence[int]) -> int:
    # As rich counts: a column is as wide as the longest line in it, and two blanks stand between columns.
    columns = [[heads[place], *(row[place] for row in rows)] for place in kept]
    widest = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    return sum(widest) + _GAP * (len(kept) - 1)


def summary(lengths: NDArray[Any]) -> dict[str, Any]:
    """The lengths in a few numbers, JSON-ready: plain numbers for one length a sequence, lists for several."""
    whole = lw.describe(lengths).as_dict()
    kept = {name: whole[name] for name in ("count", "min", "mean", "max", "fingerprint")}
    return {
        # One length a sequence: "mean": 525.1 and not "mean": [525.1].
        name: value[0] if isinstance(value, list) and whole["dims"] == 1 and value else value
        for name, value in kept.items()
    }


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def sentence_of(lengths: NDArray[Any], name: str) -> str:
    """Two lines that say what the lengths are."""
    facts = lw.describe(lengths)
    spans = [
        f"{low:,} to {high:,} (mean {mean:,.1f})"
        for low, high, mean in zip(facts.min, facts.max, facts.mean, strict=True)
    ]
    sequences = "1 sequence" if facts.count == 1 else f"{facts.count:,} sequences"
    return f"{name}\n{sequences} of {' x '.join(spans)}, fingerprint {facts.fingerprint}"
