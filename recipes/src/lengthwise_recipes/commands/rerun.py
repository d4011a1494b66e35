"""The shared parts of all reruns: sizes, the output folder, and the printed claims."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lengthwise import files
from lengthwise.cli import show
from lengthwise_recipes import record
from lengthwise_recipes.commands.options import check_folder

if TYPE_CHECKING:
    from lengthwise_recipes.claims import Claim

Size = TypeVar("Size")  # a frozen dataclass, another one for each paper


def add(
    papers: Any,
    name: str,
    *,
    run: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    add_data: Callable[[argparse.ArgumentParser], None],
    small: str,
    full: str,
    epochs: str,
    seeds: str,
) -> Any:
    """Adds the parser of a paper: its data, the sizes that `size_of` reads, and the folder that `folder_of` checks.

    Args:
        papers: Parsers of all papers.
        name, run: Name and command of the paper.
        help, description: See argparse.
        add_data: Adds the options of the data.
        small, full: Descriptions of the sizes, in a few words.
        epochs, seeds: Defaults, in words.

    Returns:
        The group of sizes, to which the paper may add options. An option has the name of its field in `Size`.
    """
    promise = "If a rerun is interrupted, call it again: it goes on where it was."
    parser: argparse.ArgumentParser = papers.add_parser(name, help=help, description=f"{description} {promise}")
    parser.set_defaults(run=run, file_option="--data")
    add_data(parser)
    group = parser.add_argument_group("size")
    kinds = group.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true", help=f"{small} (by default)")
    kinds.add_argument("--full", action="store_true", help=full)
    group.add_argument("--epochs", type=int, help=f"epochs of each run ({epochs})")
    group.add_argument("--seeds", type=int, help=f"runs of each kind ({seeds})")
    group.add_argument("--timed", type=int, metavar="REPEATS", help="of an epoch, to time it after training (none)")
    group.add_argument("--device", choices=("cpu", "cuda"), help="(cpu; full cuda)")
    output = parser.add_argument_group("output")
    text = "for all files that the command writes (%(default)s)"
    output.add_argument("--output", default=f"out/{name}", metavar="FOLDER", help=text)
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    return group


def size_of(arguments: argparse.Namespace, small: Size, full: Size) -> Size:
    """Returns the chosen size, with the values of the given options in place of its own."""
    size: Any = full if arguments.full else small
    values = {field.name: getattr(arguments, field.name, None) for field in dataclasses.fields(size)}
    return dataclasses.replace(size, **{name: value for name, value in values.items() if value is not None})


def folder_of(arguments: argparse.Namespace) -> Path:
    """Returns the output folder, which need not exist yet."""
    return check_folder("output", arguments.output)


def write(
    document: Mapping[str, Any],
    folder: Path,
    *,
    name: str,
    page: Callable[..., str],
    write_figures: Callable[[Mapping[str, Any], Path], None],
) -> dict[str, Any]:
    """Writes JSON, figures and page of a paper, and returns the document as read from the JSON."""
    target = folder / f"{name}-{document['size']['name']}.json"
    folder.mkdir(parents=True, exist_ok=True)
    record.write_study(target, document)
    show.name_file(str(target))
    read = record.read(target)
    write_figures(read, folder)
    files.write(folder / f"{name}.md", page(read, json_link=target.name))
    return read


def print_claims(
    document: Mapping[str, Any], claims: Sequence[Claim], folder: Path, *, notes: Sequence[str] = ()
) -> None:
    """Prints the verdicts, each claim with its reason, `notes`, the skipped samples and the folder."""
    from lengthwise_recipes.pages import ours
    from lengthwise_recipes.skipped import tell

    rows = [(claim.where, claim.paper, ours(claim), claim.could_tell, claim.sized_verdict) for claim in claims]
    reasons = [f"{claim.where}: {claim.claim}. {claim.reason}" for claim in claims]
    left_out = tell(document["study"]["data"])
    below = [*reasons, *notes, *left_out, f"JSON, figures and page are in {folder}."]
    heads = ("where", "paper", "ours", "could tell apart", "verdict")
    show.table(heads, rows, title=document["study"]["data"]["name"], notes=below)
