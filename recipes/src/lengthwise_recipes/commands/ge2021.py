"""`lengthwise reproduce ge2021`: Tacotron 2 under every batching of Ge et al. 2021, trained again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise.cli.parser import command, read_file
from lengthwise_recipes.commands import rerun
from lengthwise_recipes.commands.ge2021_table1 import SEEDS, training_sets
from lengthwise_recipes.commands.options import explain_missing
from lengthwise_recipes.ge2021.table1 import can_be_ljspeech

if TYPE_CHECKING:
    from lengthwise_recipes.ge2021.rerun import Size
    from lengthwise_recipes.speech.corpus import Corpus

NAME = "ge2021"


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    size = rerun.add(
        papers,
        NAME,
        run=run,
        help="Epoch time and loss of Tacotron 2 by batching, of Ge et al. 2021.",
        description="Trains Tacotron 2 under every batching of Ge et al. 2021 and two of ours, and writes JSON, "
        "figures and a page that sets the paper's claims beside what came out.",
        add_data=_add_data,
        small="half an hour on one core",
        full="the paper's sizes, on a GPU",
        epochs="12; full 220",
        seeds="3; full 1",
    )
    size.add_argument("--batch-size", type=int, help="sequences in a batch, if dynamic of the longest (8; full 16)")
    size.add_argument("--learning-rate", type=float, help="of Adam (0.003; full 0.001)")
    size.add_argument("--width", type=float, help="of the network, times that of Shen et al. 2018 (0.0625; full 1)")
    size.add_argument("--bands", type=int, help="mel bands (20; full 80)")
    size.add_argument("--reduction", type=int, help="frames of a decoder step (6; full 1)")


def run(arguments: argparse.Namespace) -> int:
    """Trains the missing runs, writes JSON, figures and page, and prints the claims."""
    with explain_missing("a rerun"):
        from lengthwise_recipes.ge2021.claims import claims_of
        from lengthwise_recipes.ge2021.figures import write_figures
        from lengthwise_recipes.ge2021.page import page
        from lengthwise_recipes.ge2021.rerun import FULL, SMALL, network, reproduce, settings
    folder = rerun.folder_of(arguments)
    if arguments.max_words is not None and (arguments.data is not None or arguments.sentences is not None):
        remedy = "Leave it out: it bounds the project's own sentences alone."
        raise value_error("max-words", "left out with --data or --sentences", arguments.max_words, remedy)
    if arguments.frame_shift is not None and arguments.lengths is None:
        raise value_error("frame-shift", "left out without --lengths", arguments.frame_shift, "Give both, or neither.")
    size = rerun.size_of(arguments, SMALL, FULL)
    settings(size)  # these raise for bad sizes before the data are read and before anything is spoken
    network(size)
    lw.FixedSize(size.batch_size)
    paper_sets = _read_paper_sets(arguments.lengths, arguments.frame_shift)
    document = reproduce(
        _corpus(arguments, size, folder),
        size,
        paper_sets=paper_sets,
        strict=arguments.strict,
        folder=folder / "checkpoints",
        progress=not arguments.quiet,
        command=command(),
    )
    read = rerun.write(document, folder, name=NAME, page=page, write_figures=write_figures)
    rerun.print_claims(read, claims_of(read), folder)
    return 0


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    kinds = group.add_mutually_exclusive_group()
    kinds.add_argument("--data", metavar="FOLDER", help="recordings as LJSpeech's: metadata.csv and wavs/")
    kinds.add_argument(
        "--sentences",
        metavar="FILE",
        help="lines `id|text` that eSpeak NG speaks; without it and --data, sentences of the project's own",
    )
    group.add_argument("--count", type=int, help="recordings, train and validation together (250; full 13,100)")
    group.add_argument("--max-words", type=int, help="of the longest of the project's own sentences (10; full 25)")
    group.add_argument(
        "--lengths",
        metavar="FILE[:COLUMN]",
        help="lengths of the paper's clips; the page then also has table 1 and the knobs on these lengths",
    )
    group.add_argument("--frame-shift", type=float, metavar="SHIFT", help="turns durations in --lengths into frames")
    group.add_argument("--strict", action="store_true", help="refuse unusable recordings in place of skipping them")


def _corpus(arguments: argparse.Namespace, size: Size, folder: Path) -> Corpus:
    """Reads the recordings that `arguments` name, or speaks sentences into a folder of the results."""
    from lengthwise_recipes.synthesis.ljspeech import read_folder
    from lengthwise_recipes.synthesis.speech import read_speech

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


def _read_paper_sets(source: str | None, frame_shift: float | None) -> dict[int, NDArray[np.int64]]:
    """Draws random training sets from the lengths that `source` names, by seed; empty without a source."""
    if source is None:
        return {}
    lengths = read_file(source, frame_shift=frame_shift)
    if lengths.ndim != 1:
        raise value_error("lengths", "of shape [n]", lengths.shape, "Give one length a sequence, as FILE:COLUMN.")
    if not can_be_ljspeech(lengths):
        rule = "those of the paper: of LJSpeech, in frames of 12.5 ms"
        shown = f"{len(lengths):,} lengths of mean {lengths.mean():.1f}"
        raise value_error("lengths", rule, shown, "Leave it out: the recordings have lengths of their own.")
    return training_sets(lengths, range(SEEDS))
