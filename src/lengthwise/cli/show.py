"""Output of commands: tables by rich on a terminal, JSON for programs, charts and pages."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

import lengthwise as lw
from lengthwise import files
from lengthwise.checks import make_visible, value_error
from lengthwise.cli.parser import Input, command
from lengthwise.lengths.read import input_files
from lengthwise.report.tables import Table

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")
_GAP = 2  # blanks between the columns of a table
_UNBOUNDED = 140  # columns if standard output is not a terminal and COLUMNS is not set
_LONG_HEAD = 8  # letters; longer heads of numbers are broken into two lines


def add(parser: argparse.ArgumentParser, *, plot: str = "", html: str = "") -> None:
    """Adds --json, and --plot and --html if their descriptions are given."""
    group = parser.add_argument_group("output")
    text = "write JSON; - for standard output, without any other output"
    group.add_argument("--json", metavar="PATH", help=text)
    if plot:
        group.add_argument("--plot", metavar="PATH", help=f"draw {plot} ({', '.join(PICTURES)})")
    if html:
        group.add_argument("--html", metavar="PATH", help=f"write a page that shows {html}")


def check(arguments: argparse.Namespace) -> None:
    """Refuses outputs that cannot be written or that would replace a file of the command, before the work begins."""
    paths = {name: getattr(arguments, name, None) for name in ("json", "html", "plot", "output")}
    inputs = [name for value in vars(arguments).values() if isinstance(value, Input) for name in input_files(value)]
    used = set[Path]()
    for name, path in paths.items():
        if path is None or (name == "json" and path == "-"):
            continue
        # Charts, pages and plans cannot be written to standard output.
        if path in ("", "-") or Path(path).is_dir():
            raise value_error(name, "a file to write", path, "Name the file.")
        files.check_folder(name, path)
        file = Path(path)
        if file.resolve() in used or (file.exists() and any(file.samefile(name) for name in inputs)):
            rule = "a file that the command neither reads nor writes already"
            raise value_error(name, rule, path, "Name another file.")
        used.add(file.resolve())
    if paths["plot"] is not None and Path(paths["plot"]).suffix.lower() not in PICTURES:
        rule = f"a file of one of the kinds {', '.join(PICTURES)}"
        raise value_error("plot", rule, paths["plot"], "Name it plot.png, for example.")
    if paths["plot"] is not None or paths["html"] is not None:
        import_module("lengthwise.report.style")  # raises if Altair is not installed


def fills_output(arguments: argparse.Namespace) -> bool:
    """Tells if standard output is for JSON only."""
    return arguments.json == "-"


def write_html(
    path: str | None,
    lengths: NDArray[Any],
    plans: Mapping[str, lw.Plan],
    rows: Mapping[str, Mapping[str, Any]],
    **parts: Any,
) -> None:
    """Writes a page to `path`; does nothing if it is None. `parts` are fields of `report.page.Contents`."""
    if path is not None:
        from lengthwise.report.page import Contents, write_page

        files.write(path, write_page(Contents(lengths=lengths, plans=plans, rows=rows, command=command(), **parts)))
        name_file(path)


def write_chart(path: str | None, draw: Callable[[], Any]) -> None:
    """Draws a chart into `path`; does nothing if it is None."""
    if path is not None:
        lw.report.save_chart(draw(), path)
        name_file(path)


def write_json(document: Any, path: str | None) -> None:
    """Writes `document` to `path`, or to standard output if that is "-"; does nothing if it is None."""
    # Strict JSON: only Python reads NaN and Infinity.
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    elif path is not None:
        files.write(path, text)
        name_file(path)


def name_file(path: str) -> None:
    """Prints the name of a written file if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"wrote {make_visible(path)}", file=sys.stderr)


def print_table(shown: Table, *, title: str = "", spare: Sequence[str] = ()) -> None:
    """Prints a table of a report, with the same rows and numbers as on a page."""
    heads = {
        head: head.replace(" ", "\n", 1) if place >= shown.words and len(head) > _LONG_HEAD else head
        for place, head in enumerate(shown.heads)
    }
    notes = [*(f"{name}: {meaning}." for name, meaning in shown.meanings), *filter(None, [shown.note])]
    labels = [row[0] for row in shown.rows]
    bold = labels.index(shown.best) if shown.best else None
    if bold is not None:
        labels[bold] += " *"
        notes.append("*: recommended.")
    cells = [(label, *row[1:]) for label, row in zip(labels, shown.rows, strict=True)]
    narrow = [heads[head] for head in spare if head in heads]
    table(list(heads.values()), cells, title=title, notes=notes, words=shown.words, spare=narrow, bold=bold)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    words: int = 1,
    spare: Sequence[str] = (),
    bold: int | None = None,
) -> None:
    """Prints a table no wider than the terminal.

    Args:
        heads: The heads of the columns, which may have line breaks.
        rows: The cells of each row.
        title: The text above the table.
        notes: The texts below the table. A note such as "randomness: ..." is left out together with its column.
        words: The number of columns of words; the columns after them hold numbers.
        spare: The columns that may be left out, in this order, if the table is too wide. A note names them.
        bold: The number of the row in bold.
    """
    from rich import box
    from rich.table import Table as Drawn

    console, cells = _console(), [list(row) for row in rows]
    if _width(heads, cells, range(len(heads))) > console.width:
        cells = [[row[0].replace(",", ",\n  "), *row[1:]] for row in cells]  # sorted,arrange=in-order in two lines
    places = list(range(len(heads)))
    for head in spare:
        if _width(heads, cells, places) > console.width:
            places.remove(list(heads).index(head))
    grid = Drawn(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for place in places:
        # Texts of several words may be broken; labels, numbers and bars never.
        no_wrap = not (0 < place < words and any(" " in row[place] for row in cells))
        justify = "left" if place < words else "right"
        grid.add_column(heads[place], justify=justify, no_wrap=no_wrap, overflow="fold", vertical="bottom")
    for number, row in enumerate(cells):
        grid.add_row(*(row[place] for place in places), style="bold" if number == bold else "")
    lost = [" ".join(head.split()) for place, head in enumerate(heads) if place not in places]
    below = [note for note in notes if not note.startswith(tuple(f"{head}: " for head in lost))]
    if lost:
        below.append(f"Left out of a narrow terminal: {', '.join(lost)}. --json has them.")
    if title:
        console.print(make_visible(title, lines=True), style="bold")
    console.print()
    console.print(grid)
    if below:
        console.print()
    for note in below:
        console.print(note, style="dim")


def say(text: str) -> None:
    """Prints a sentence, wrapped between words."""
    _console().print(make_visible(text, lines=True))


def program(lines: str) -> None:
    """Prints lines of code without wrapping, so that they can be copied."""
    _console().print(make_visible(lines, lines=True), soft_wrap=True)


def progress(items: Any) -> Any:
    """Returns the items, with a progress bar on a terminal."""
    from tqdm import tqdm

    return tqdm(items, desc="planning", leave=False, disable=None)


def _console() -> Console:
    from rich.console import Console

    columns = shutil.get_terminal_size((_UNBOUNDED, 24)).columns  # COLUMNS=0 counts as not set
    return Console(markup=False, highlight=False, emoji=False, width=max(columns, 40))  # narrower tables are unreadable


def _width(heads: Sequence[str], rows: list[list[str]], places: Sequence[int]) -> int:
    # As in rich: a column is as wide as its longest line, with two blanks between columns.
    columns = [[heads[place], *(row[place] for row in rows)] for place in places]
    widest = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    return sum(widest) + _GAP * (len(places) - 1)


def summary(lengths: NDArray[Any]) -> dict[str, Any]:
    """Returns a few facts of the lengths, for JSON: plain numbers for one dimension, lists for several."""
    facts = lw.describe(lengths).as_dict()
    return {
        # One length a sequence: "mean": 525.1 and not "mean": [525.1].
        name: facts[name][0] if isinstance(facts[name], list) and facts["dims"] == 1 and facts[name] else facts[name]
        for name in ("count", "min", "mean", "max", "fingerprint")
    }


def percent(share: float, digits: int = 1) -> str:
    """Returns a share in percent."""
    return f"{100 * share:.{digits}f} %"


def sentence_of(lengths: NDArray[Any], name: str) -> str:
    """Returns two lines that describe the lengths."""
    facts = lw.describe(lengths)
    spans = [
        f"{low:,} to {high:,} (mean {mean:,.1f})"
        for low, high, mean in zip(facts.min, facts.max, facts.mean, strict=True)
    ]
    sequences = "1 sequence" if facts.count == 1 else f"{facts.count:,} sequences"
    return f"{name}\n{sequences} of {' x '.join(spans)}, fingerprint {facts.fingerprint}"
