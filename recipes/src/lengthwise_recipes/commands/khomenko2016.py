"""`lengthwise reproduce khomenko2016`: buckets and processes on online handwriting, trained again."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from lengthwise.cli.parser import command
from lengthwise_recipes.commands import rerun, study
from lengthwise_recipes.commands.options import explain_missing, wholes

NAME = "khomenko2016"


def add(papers: Any) -> None:
    """Adds the paper and its options."""
    size = rerun.add(
        papers,
        NAME,
        run=run,
        help="Epoch time and loss by buckets and processes, of Khomenko et al. 2016.",
        description="Trains an LSTM with CTC on online handwriting with 1 to 8 buckets, on one process and "
        "on several, and writes JSON, figures and a page that sets the claims of Khomenko et al. 2016 beside what came "
        "out.",
        add_data=partial(study.add_data, count="400; full 300,000"),
        small="half an hour on two cores",
        full="300,000 samples, one GPU for each process",
        epochs="80; full 30",
        seeds="3",
    )
    text = "numbers of processes: 1 and others (1,2; full 1,2,4)"
    size.add_argument("--processes", type=wholes, metavar="1,N,...", help=text)
    text = "epochs to time with one model of JAX compiled for each bucket (none)"
    size.add_argument("--compiled", type=int, metavar="EPOCHS", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Trains the missing runs, writes JSON, figures and page, and prints the claims."""
    with explain_missing("a rerun"):
        from lengthwise_recipes.khomenko2016.claims import claims_of
        from lengthwise_recipes.khomenko2016.page import headline, page, write_figures
        from lengthwise_recipes.khomenko2016.rerun import FULL, SMALL, reproduce, settings
    folder = rerun.folder_of(arguments)
    size = rerun.size_of(arguments, SMALL, FULL)
    settings(size)  # raises for bad settings before the data are read
    corpus, checkpoints = study.corpus(arguments, count=size.count), folder / "checkpoints"
    document = reproduce(corpus, size, folder=checkpoints, progress=not arguments.quiet, command=command())
    read = rerun.write(document, folder, name=NAME, page=page, write_figures=write_figures)
    rerun.print_claims(read, claims_of(read), folder, notes=[headline(read)])
    return 0
