"""`lengthwise reproduce doetsch2017`: chunks and orders for an acoustic model, trained again."""

from __future__ import annotations

import argparse
from typing import Any

from lengthwise.checks import value_error
from lengthwise.cli.parser import Input, command
from lengthwise_recipes.commands import rerun
from lengthwise_recipes.commands.options import explain_missing, wholes

NAME = "doetsch2017"
SPEECH = (
    "an .npz or a folder of single digits, such as the Free Spoken Digit Dataset (Zohar Jackson and others, on GitHub, "
    "CC BY-SA 4.0); a Kaldi data folder; or a folder of wav files and texts"
)


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    size = rerun.add(
        papers,
        NAME,
        run=run,
        help="Speed, memory and word error rate by batches, of Doetsch et al. 2017.",
        description="Trains a bidirectional LSTM acoustic model on chunks and on whole utterances in every order of "
        "Doetsch et al. 2017 and in the default one, decodes, and writes JSON, figures and a page that sets the claims "
        "of the paper beside what came out.",
        add_data=_add_data,
        small="half an hour on one core",
        full="512 cells, 10 ms a frame, the paper's bins, on a GPU",
        epochs="8; full 20",
        seeds="3",
    )
    size.add_argument("--count", type=int, help="utterances to train on (400; full 8738)")
    size.add_argument("--testing", type=int, help="strings of digits to decode (200; full 1000)")
    size.add_argument("--bins", type=wholes, metavar="A,B,C", help="of alternated sorting (2,6,18; full 8,64,256)")


def run(arguments: argparse.Namespace) -> int:
    """Trains the missing runs, writes JSON, figures and page, and prints the claims."""
    with explain_missing("a rerun"):
        from lengthwise_recipes.doetsch2017.claims import claims_of
        from lengthwise_recipes.doetsch2017.page import page, write_figures
        from lengthwise_recipes.doetsch2017.rerun import FULL, SMALL, prepare_for, reproduce, settings
        from lengthwise_recipes.speech.kaldi import read_lexicon
        from lengthwise_recipes.speech.parts import read_parts
    folder = rerun.folder_of(arguments)
    size = rerun.size_of(arguments, SMALL, FULL)
    settings(size)  # raises for bad settings before the data are read
    if arguments.data is None:
        raise value_error("data", "the path of speech", None, f"Give {SPEECH}.")
    parts = read_parts(
        arguments.data,
        tested=arguments.test_data,
        count=size.count,
        validating=size.validating,
        testing=size.testing,
        seed=arguments.data_seed,
        strict=arguments.strict,
    )
    units = None if arguments.lexicon is None else read_lexicon(arguments.lexicon)
    checkpoints = folder / "checkpoints"
    prepared = prepare_for(parts, size, units=units, folder=checkpoints, strict=arguments.strict)
    document = reproduce(prepared, size, folder=checkpoints, progress=not arguments.quiet, command=command())
    read = rerun.write(document, folder, name=NAME, page=page, write_figures=write_figures)
    rerun.print_claims(read, claims_of(read), folder)
    return 0


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("--data", type=Input, metavar="PATH", help=f"required: {SPEECH}")
    group.add_argument(
        "--test-data",
        type=Input,
        metavar="FOLDER",
        help="speech to decode (a tenth of --data; for digits leave it out)",
    )
    group.add_argument(
        "--lexicon", type=Input, metavar="FILE", help="a word and its phonemes on each line (by default letters)"
    )
    group.add_argument("--data-seed", type=int, default=0, help="seed of strings of digits or of parts (%(default)s)")
    group.add_argument("--strict", action="store_true", help="refuse unusable speech in place of skipping it")
