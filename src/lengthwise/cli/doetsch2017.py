"""`lengthwise reproduce doetsch2017`: chunks and orders for an acoustic model, trained again."""

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
    from lengthwise.recipes.acoustic.parts import Parts
    from lengthwise.recipes.acoustic.units import Units
    from lengthwise.recipes.doetsch2017 import Size

NAME = "doetsch2017"
SPEECH = (
    "an .npz or a folder of single digits, such as the Free Spoken Digit Dataset (Zohar Jackson and others, on GitHub, "
    "CC BY-SA 4.0); a Kaldi data folder; or a folder of wav files and texts"
)


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    parser = papers.add_parser(
        NAME,
        help="Speed, memory and word error rate by batches, of Doetsch et al. 2017.",
        description="Trains a bidirectional LSTM acoustic model on chunks and on whole utterances in every order of "
        "Doetsch et al. 2017 and of this package, decodes, and writes JSON, figures and a page that sets the claims "
        "of the paper beside what came out. A rerun that was interrupted goes on where it was when it is called again.",
    )
    _add_data(parser)
    size = parser.add_argument_group("size")
    kinds = size.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true", help="minutes on one core (as without either)")
    kinds.add_argument("--full", action="store_true", help="512 cells, 10 ms a frame, the paper's bins, on a GPU")
    size.add_argument("--count", type=int, help="utterances to train on (400; full 8738)")
    size.add_argument("--epochs", type=int, help="epochs of each run (8; full 20)")
    size.add_argument("--seeds", type=int, help="runs of each kind (3)")
    size.add_argument("--device", choices=("cpu", "cuda"), help="(cpu; full cuda)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", default=f"out/{NAME}", metavar="FOLDER", help="for all that is written (%(default)s)"
    )
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains what is not trained yet, writes JSON, figures and page, and prints the claims."""
    try:
        from lengthwise.recipes.doetsch2017 import reproduce, settings
        from lengthwise.recipes.doetsch2017_page import page, write_figures
    except ModuleNotFoundError as error:
        remedy = 'Install it: pip install "lengthwise[recipes]".'
        raise ModuleNotFoundError(sentence(str(error.name), "installed for a rerun", None, remedy)) from error
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise value_error("output", "a folder", arguments.output, "Name another.")
    size = _size(arguments)
    settings(size)  # what is wrong with them is told before the data are read
    document = reproduce(
        _parts(arguments, size),
        size,
        units=_units(arguments),
        strict=arguments.strict,
        folder=folder / "checkpoints",
        progress=not arguments.quiet,
        command=study.command(),
    )
    target = folder / f"{NAME}-{size.name}.json"
    show.write_json(document, str(target))
    read = json.loads(target.read_text(encoding="utf-8"))
    write_figures(read, folder)
    (folder / f"{NAME}.md").write_text(page(read, json_link=target.name), encoding="utf-8")
    _print(read, folder)
    return 0


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("--data", metavar="PATH", help=SPEECH)
    group.add_argument("--test-data", metavar="FOLDER", help="to decode (a tenth of --data; of digits other speakers)")
    group.add_argument("--lexicon", metavar="FILE", help="lines of a word and its phonemes (words are spelled)")
    group.add_argument("--data-seed", type=int, default=0, help="of strings of digits and of divisions (%(default)s)")
    group.add_argument("--strict", action="store_true", help="refuse speech that cannot be used, not skip it")


def _parts(arguments: argparse.Namespace, size: Size) -> Parts:
    from lengthwise.recipes.acoustic.parts import read_parts

    if arguments.data is None:
        raise value_error("data", "the path of speech", None, f"Give {SPEECH}.")
    return read_parts(
        arguments.data,
        tested=arguments.test_data,
        count=size.count,
        held_out=size.held_out,
        seed=arguments.data_seed,
        strict=arguments.strict,
    )


def _units(arguments: argparse.Namespace) -> Units | None:
    from lengthwise.recipes.acoustic.lexicon import read_lexicon

    return None if arguments.lexicon is None else read_lexicon(arguments.lexicon)


def _size(arguments: argparse.Namespace) -> Size:
    """The size asked for, and what was asked for besides."""
    from lengthwise.recipes.doetsch2017 import FULL, SMALL

    given = {name: getattr(arguments, name) for name in ("count", "epochs", "seeds", "device")}
    size = FULL if arguments.full else SMALL
    return dataclasses.replace(size, **{name: value for name, value in given.items() if value is not None})


def _print(document: Mapping[str, Any], folder: Path) -> None:
    from lengthwise.recipes.pages import ours

    rows = [(claim["where"], claim["paper"], ours(claim), claim["verdict"]) for claim in document["claims"]]
    claims = [f"{claim['where']}: {claim['claim']}. {claim['why']}" for claim in document["claims"]]
    skipped = document["study"]["data"]["skipped"]
    left = [f"{len(skipped)} utterances left out, the first: {skipped[0]}"] if skipped else []
    notes = [*claims, *left, f"JSON, figures and page are in {folder}."]
    show.table(("where", "paper", "ours", "verdict"), rows, title=document["study"]["data"]["name"], notes=notes)
