"""`lengthwise reproduce ge2021`: Tacotron 2 under every batching of Ge et al. 2021, trained again."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lengthwise as lw
from lengthwise._checks import sentence, value_error
from lengthwise.cli import show, study
from lengthwise.cli.ge2021_table1 import SEEDS, training_sets
from lengthwise.lengths import split_source
from lengthwise.recipes import ge2021_table1

if TYPE_CHECKING:
    from lengthwise.recipes.ge2021 import Size
    from lengthwise.recipes.synthesis.corpus import SpeechCorpus

NAME = "ge2021"


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    parser = papers.add_parser(
        NAME,
        help="Epoch time and loss of Tacotron 2 by batching, of Ge et al. 2021.",
        description="Trains Tacotron 2 under every batching of Ge et al. 2021 and two of ours, and writes JSON, "
        "figures and a page that sets the paper's claims beside what came out. A rerun that was interrupted goes on "
        "where it was when it is called again.",
    )
    _add_data(parser)
    _add_size(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", default=f"out/{NAME}", metavar="FOLDER", help="for all that is written (%(default)s)"
    )
    output.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains what is not trained yet, writes JSON, figures and page, and prints the claims."""
    try:
        from lengthwise.recipes.ge2021 import network, reproduce, settings
        from lengthwise.recipes.ge2021_figures import write_figures
        from lengthwise.recipes.ge2021_page import page
    except ModuleNotFoundError as error:
        remedy = 'Install it: pip install "lengthwise[recipes]".'
        raise ModuleNotFoundError(sentence(str(error.name), "installed for a rerun", None, remedy)) from error
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise value_error("output", "a folder", arguments.output, "Name another.")
    size = _size(arguments)
    settings(size)  # what is wrong with these is told before the data are read
    network(size)
    document = reproduce(
        _corpus(arguments, size, folder),
        size,
        table1=_table1(arguments.lengths),
        strict=arguments.strict,
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


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    kinds = group.add_mutually_exclusive_group()
    kinds.add_argument("--data", metavar="FOLDER", help="recordings as LJSpeech's: metadata.csv and wavs/")
    kinds.add_argument(
        "--sentences",
        metavar="FILE",
        help="lines `id|text` that eSpeak NG speaks; without either, sentences of the project's own",
    )
    group.add_argument("--count", type=int, help="recordings, train and validation together (250; full 13,100)")
    group.add_argument("--max-words", type=int, help="of the longest of the project's own sentences (10; full 25)")
    group.add_argument(
        "--lengths", metavar="FILE[:COLUMN]", help="lengths of the paper's clips: table 1 on them goes to the page too"
    )
    group.add_argument("--strict", action="store_true", help="refuse recordings that cannot be used, not skip them")


def _add_size(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("size")
    kinds = group.add_mutually_exclusive_group()
    kinds.add_argument("--small", action="store_true", help="minutes on one core (as without either)")
    kinds.add_argument("--full", action="store_true", help="the paper's sizes, on a GPU")
    group.add_argument("--epochs", type=int, help="epochs of each run (12; full 220)")
    group.add_argument("--seeds", type=int, help="runs of each strategy (3; full 1)")
    group.add_argument("--batch-size", type=int, help="sequences in a batch, before it is dynamic (8; full 16)")
    group.add_argument("--learning-rate", type=float, help="of Adam (0.003; full 0.001)")
    group.add_argument("--width", type=float, help="of the network, times the paper's (0.0625; full 1)")
    group.add_argument("--bands", type=int, help="mel bands (20; full 80)")
    group.add_argument("--reduction", type=int, help="frames of a decoder step (6; full 1)")
    group.add_argument("--device", choices=("cpu", "cuda"), help="(cpu; full cuda)")


def _size(arguments: argparse.Namespace) -> Size:
    """The size asked for, and what was asked for besides."""
    from lengthwise.recipes.ge2021 import FULL, SMALL

    size = FULL if arguments.full else SMALL
    given = {field.name: getattr(arguments, field.name, None) for field in dataclasses.fields(size)}
    return dataclasses.replace(size, **{name: value for name, value in given.items() if value is not None})


def _corpus(arguments: argparse.Namespace, size: Size, folder: Path) -> SpeechCorpus:
    """The recordings that `arguments` name; what is spoken is kept beside the results."""
    from lengthwise.recipes.synthesis.ljspeech import read_folder
    from lengthwise.recipes.synthesis.speech import read_speech

    if arguments.data is not None:
        return read_folder(arguments.data, count=size.count, strict=arguments.strict)
    return read_speech(
        arguments.sentences,
        folder=folder / "speech",
        count=size.count,
        max_words=size.max_words,
        strict=arguments.strict,
        progress=not arguments.quiet,
    )


def _table1(source: str | None) -> list[ge2021_table1.Row]:
    """Table 1 on random training sets of the lengths that `source` names; nothing where it names none."""
    if source is None:
        return []
    path, column = split_source(source)
    lengths = lw.read_lengths(path, column=column)
    if lengths.ndim != 1:
        raise value_error("lengths", "of shape [n]", lengths.shape, "Give one length a sequence, as FILE:COLUMN.")
    return ge2021_table1.table1(training_sets(lengths, range(SEEDS)))


def _print(document: Mapping[str, Any], folder: Path) -> None:
    from lengthwise.recipes.pages import ours

    rows = [(claim["where"], claim["paper"], ours(claim), claim["verdict"]) for claim in document["claims"]]
    claims = [f"{claim['where']}: {claim['claim']}. {claim['why']}" for claim in document["claims"]]
    notes = [*claims, f"JSON, figures and page are in {folder}."]
    show.table(("where", "paper", "ours", "verdict"), rows, title=document["study"]["data"]["name"], notes=notes)
