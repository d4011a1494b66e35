"""What the reruns of all papers share: sizes, the folder that they write to, and the claims that they print."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise.cli import show

if TYPE_CHECKING:
    from lengthwise_recipes.claims import Claim

Size = TypeVar("Size")  # a frozen dataclass, each paper's own


def add(
    papers: Any, name: str, *, run: Callable[[argparse.Namespace], int], help: str, description: str
) -> argparse.ArgumentParser:
    """Adds a paper that goes on where it was, and is run by `run`."""
    goes_on = "A rerun that was interrupted goes on where it was when it is called again."
    parser: argparse.ArgumentParser = papers.add_parser(name, help=help, description=f"{description} {goes_on}")
    parser.set_defaults(run=run, file_option="--data")
    return parser


def add_sizes(parser: argparse.ArgumentParser, *, small: str, full: str, epochs: str, seeds: str) -> Any:
    """Adds the options that `size_of` reads.

    Args:
        parser: Of the paper.
        small, full: What these sizes are, in a few words.
        epochs, seeds: How many there are by default, in words.

    Returns:
        The group of options, for others of the paper's own: each is named as the field that it stands for.
    """
    group = parser.add_argument_group("size")
    kinds = group.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true", help=f"{small} (as without either)")
    kinds.add_argument("--full", action="store_true", help=full)
    group.add_argument("--epochs", type=int, help=f"epochs of each run ({epochs})")
    group.add_argument("--seeds", type=int, help=f"runs of each kind ({seeds})")
    group.add_argument("--device", choices=("cpu", "cuda"), help="(cpu; full cuda)")
    return group


def add_output(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds the folder that `folder_of` checks, and --quiet."""
    group = parser.add_argument_group("output")
    text = "for all that is written (%(default)s)"
    group.add_argument("--output", default=f"out/{name}", metavar="FOLDER", help=text)
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def size_of(arguments: argparse.Namespace, small: Size, full: Size) -> Size:
    """The size asked for, and what was asked for besides."""
    size: Any = full if arguments.full else small
    given = {field.name: getattr(arguments, field.name, None) for field in dataclasses.fields(size)}
    return dataclasses.replace(size, **{name: value for name, value in given.items() if value is not None})


def folder_of(arguments: argparse.Namespace) -> Path:
    """The folder for all that is written; it need not be there yet."""
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise value_error("output", "a folder", arguments.output, "Name another.")
    return folder


def write(
    document: Mapping[str, Any],
    folder: Path,
    *,
    name: str,
    page: Callable[..., str],
    write_figures: Callable[[Mapping[str, Any], Path], None],
) -> dict[str, Any]:
    """Writes JSON, figures and page of a paper; the document as it is read back, of which the latter two are made."""
    target = folder / f"{name}-{document['size']['name']}.json"
    folder.mkdir(parents=True, exist_ok=True)
    show.write_json(document, str(target))
    read = json.loads(target.read_text(encoding="utf-8"))
    write_figures(read, folder)
    files.write(folder / f"{name}.md", page(read, json_link=target.name))
    return read


def print_claims(
    document: Mapping[str, Any], claims: Sequence[Claim], folder: Path, *, notes: Sequence[str] = ()
) -> None:
    """Prints the verdicts, and below them each claim with its reason, `notes`, what was left out, and where all is."""
    from lengthwise_recipes.pages import ours
    from lengthwise_recipes.skipped import tell

    rows = [(claim.where, claim.paper, ours(claim), claim.could_tell, claim.verdict) for claim in claims]
    reasons = [f"{claim.where}: {claim.claim}. {claim.reason}" for claim in claims]
    left_out = tell(document["study"]["data"])
    below = [*reasons, *notes, *left_out, f"JSON, figures and page are in {folder}."]
    heads = ("where", "paper", "ours", "could tell apart", "verdict")
    show.table(heads, rows, title=document["study"]["data"]["name"], notes=below)
