"""`lengthwise reproduce khomenko2016`: buckets and processes on online handwriting, trained again."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthwise._checks import sentence, value_error
from lengthwise.cli import show, study

if TYPE_CHECKING:
    from lengthwise.recipes.khomenko2016 import Size

NAME = "khomenko2016"


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    parser = papers.add_parser(
        NAME,
        help="Epoch time and loss by buckets and processes, of Khomenko et al. 2016.",
        description="Trains an LSTM with CTC on online handwriting with 1 to 8 buckets, each on 1, 2 and 4 processes, "
        "and writes JSON, figures and a page that sets the claims of Khomenko et al. 2016 beside what came out. A "
        "rerun that was interrupted goes on where it was when it is called again.",
    )
    size = parser.add_argument_group("size")
    kinds = size.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true", help="minutes on two cores (as without either)")
    kinds.add_argument("--full", action="store_true", help="300,000 samples, one GPU for each process")
    size.add_argument("--epochs", type=int, help="epochs of each run (8; full 30)")
    size.add_argument("--seeds", type=int, help="runs of each kind (3)")
    size.add_argument("--processes", type=study.wholes, metavar="1,N,...", help="1 and others (1,2,4)")
    size.add_argument("--device", choices=("cpu", "cuda"), help="(cpu; full cuda)")
    study.add_data(parser, count="1200; full 300,000")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", default=f"out/{NAME}", metavar="FOLDER", help="for all that is written (%(default)s)"
    )
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains what is not trained yet, writes JSON, figures and page, and prints the claims."""
    try:
        from lengthwise.recipes.khomenko2016 import reproduce, settings
        from lengthwise.recipes.khomenko2016_page import page, write_figures
    except ModuleNotFoundError as error:
        remedy = 'Install it: pip install "lengthwise[recipes]".'
        raise ModuleNotFoundError(sentence(str(error.name), "installed for a rerun", None, remedy)) from error
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise value_error("output", "a folder", arguments.output, "Name another.")
    size = _size(arguments)
    settings(size)  # what is wrong with them is told before the data are read
    document = reproduce(
        study.corpus(arguments, count=size.count),
        size,
        folder=folder / "checkpoints",
        progress=not arguments.quiet,
        command=study.command(),
    )
    target = folder / f"{NAME}-{size.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    show.write_json(document, str(target))
    read = json.loads(target.read_text(encoding="utf-8"))
    write_figures(read, folder)
    (folder / f"{NAME}.md").write_text(page(read, json_link=target.name), encoding="utf-8")
    _print(read, folder)
    return 0


def _size(arguments: argparse.Namespace) -> Size:
    """The size asked for, and what was asked for besides."""
    from lengthwise.recipes.khomenko2016 import FULL, SMALL

    given = {name: getattr(arguments, name) for name in ("count", "epochs", "seeds", "processes", "device")}
    size = FULL if arguments.full else SMALL
    return dataclasses.replace(size, **{name: value for name, value in given.items() if value is not None})


def _print(document: Mapping[str, Any], folder: Path) -> None:
    from lengthwise.recipes.khomenko2016_page import headline
    from lengthwise.recipes.pages import ours

    rows = [(claim["where"], claim["paper"], ours(claim), claim["verdict"]) for claim in document["claims"]]
    claims = [f"{claim['where']}: {claim['claim']}. {claim['why']}" for claim in document["claims"]]
    notes = [*claims, headline(document), f"JSON, figures and page are in {folder}."]
    show.table(("where", "paper", "ours", "verdict"), rows, title=document["study"]["data"]["name"], notes=notes)
