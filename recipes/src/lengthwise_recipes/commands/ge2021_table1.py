"""`lengthwise reproduce ge2021-table1`: padding and batch counts of Ge et al. 2021, with the spread over seeds."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_whole, value_error
from lengthwise.cli import show
from lengthwise.cli.parser import add_lengths, draw_subset, read_lengths
from lengthwise_recipes.ge2021 import table1
from lengthwise_recipes.ge2021.batchings import PAPER_KNOBS

NAME = "ge2021-table1"
SEEDS = 20
_DIGITS = {"batches": 0, "zpr": 2, "abl": 1}


def add(papers: Any) -> None:
    """Adds the table and its options."""
    text = "Ge et al. 2021, table 1, and what table 2 and section 4 say of padding and batch counts."
    parser = papers.add_parser(NAME, help="Padding and batch counts of Ge et al. 2021.", description=text)
    add_lengths(parser, option="--lengths", example="speech")
    text = "number of random training sets, one epoch each; --seed is that of the first (%(default)s)"
    parser.add_argument_group("repetition").add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=text)
    show.add(parser, plot="the paper's figure 2, knob against ZPR and ABL")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the paper's numbers and ours; only ours if the lengths are not the paper's."""
    show.check(arguments)
    check_whole("seeds", arguments.seeds, minimum=1, remedy="Give how many training sets to draw, such as 20.")
    lengths, name = read_lengths(arguments, example="speech", count=table1.CLIPS)
    if lengths.ndim != 1:
        raise value_error("lengths", "of shape [n]", lengths.shape, "Give one length a sequence, as FILE:COLUMN.")
    samples = training_sets(lengths, range(arguments.seed, arguments.seed + arguments.seeds))
    rows = table1.table1(samples)
    generated = arguments.source is None
    comparable = not generated and table1.can_be_ljspeech(lengths)
    document = {
        "lengths": show.summary(lengths),
        "generated": generated,
        "comparable": comparable,
        "seeds": list(samples),
        "rows": [asdict(row) for row in rows],
    }
    show.write_json(document, arguments.json)
    if arguments.plot is not None:
        from lengthwise_recipes.pictures import knob_curves, save

        cut = lw.FixedSize(table1.BATCH_SIZE)
        save(knob_curves(next(iter(samples.values())), cut, selected=PAPER_KNOBS), Path(arguments.plot))
    if arguments.json != "-":
        note = table1.tally(rows) if comparable else f"{_GENERATED if generated else _OTHERS} {_WANTED}"
        notes = [note, _describe_draw(samples, len(lengths))]
        heads = [head for head in _HEADS if comparable or head not in _COMPARED]
        cells = [[row[_HEADS.index(head)] for head in heads] for row in _cells(rows)]
        show.table(heads, cells, title=show.sentence_of(lengths, name), notes=notes, words=3)
    return 0


_HEADS = ("strategy", "sizes", "quantity", "paper", "ours", "over seeds", "verdict")
_COMPARED = ("paper", "verdict")  # left out if the lengths are not the paper's
_GENERATED = "These lengths are generated, so nothing here can be compared with the paper."
_OTHERS = "These are not the lengths of the paper, so nothing here can be compared with it."
_WANTED = (
    f"To compare, give lengths of LJSpeech with --lengths FILE:COLUMN: at least {table1.TRAINING_CLIPS:,} of its "
    f"{table1.CLIPS:,} clips, in frames of 12.5 ms."
)


def training_sets(lengths: NDArray[np.int64], seeds: range) -> dict[int, NDArray[np.int64]]:
    """Draws a random training set of the paper's size for each seed, or takes all lengths if there are fewer."""
    count = min(len(lengths), table1.TRAINING_CLIPS)
    return {seed: draw_subset(lengths, count, seed=seed) for seed in seeds}


def _cells(rows: list[table1.Row]) -> list[tuple[str, ...]]:
    """Returns the cells of the table; strategy and sizes are blank if they repeat those of the row above."""
    cells, above = [], ("", "")
    for row in rows:
        names = (row.strategy, row.sizes)
        digits = _DIGITS[row.quantity]
        numbers = [f"{value:.{digits}f}" for value in (row.paper, row.mean, row.least, row.greatest)]
        spread = numbers[2] if numbers[2] == numbers[3] else " to ".join(numbers[2:])
        unit, verdict = table1.UNITS[row.quantity], table1.IN_RANGE[row.in_range]
        cells.append((*(names if names != above else ("", "")), unit, *numbers[:2], spread, verdict))
        above = names
    return cells


def _describe_draw(samples: dict[int, NDArray[np.int64]], count: int) -> str:
    size = len(next(iter(samples.values())))
    under = f"under {len(samples)} {'seed' if len(samples) == 1 else 'seeds'}"
    if size == count:
        return f"One epoch of all {count:,} lengths, {under}."
    return f"One epoch of a random {size:,} of the {count:,} lengths, {under}."
