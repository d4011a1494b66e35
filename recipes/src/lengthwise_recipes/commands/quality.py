"""`lengthwise study quality`: compares strategies at equal padding and in equal training time, on one task."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lengthwise.checks import value_error
from lengthwise.cli import show
from lengthwise.cli.parser import Input, command
from lengthwise_recipes.commands.options import add_machine, check_folder, explain_missing, numbers

TASKS = ("handwriting", "acoustic", "synthesis")
DATA = (
    "handwriting: an .npz of pen-drawn characters, UNIPEN or InkML, by default lines written here; acoustic: single "
    "digits (.npz or a folder), a Kaldi data folder, or wav files with texts; synthesis: a folder as LJSpeech's, or "
    "lines `id|text` that eSpeak NG speaks, by default sentences of the project's own"
)


def add(studies: Any) -> None:
    """Adds the study and its options."""
    parser = studies.add_parser(
        "quality",
        help="Whether more mixing gives a better model, at equal padding and in equal time.",
        description="Trains one task under every strategy at equal padding, from the same weights under several seeds, "
        "and says with 95 % intervals which strategies can be told apart. If a study is interrupted, call it again "
        "with the same --checkpoints: it goes on where it was.",
    )
    parser.add_argument("--task", choices=TASKS, required=True)
    _add_data(parser)
    group = parser.add_argument_group("training")
    text = "padding shares to compare at, rising (by task, about 0.05,0.1)"
    shares = numbers(float, "numbers such as 0.05,0.1")
    group.add_argument("--padding", type=shares, metavar="SHARE,...", help=text)
    group.add_argument("--seeds", type=int, default=5, help="runs of each strategy (%(default)s)")
    group.add_argument("--epochs", type=int, help="epochs of each run (by task)")
    add_machine(group)
    group.add_argument("--checkpoints", metavar="FOLDER", help="where an interrupted study continues")
    show.add(parser, plot="each order's test loss minus that of random batches, after equally many epochs")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run, file_option="--data")


def run(arguments: argparse.Namespace) -> int:
    """Trains the missing runs, prints the comparisons and writes the requested files."""
    with explain_missing("a study"):
        from lengthwise_recipes.quality.strategies import check_paddings
        from lengthwise_recipes.quality.study import study_quality
        from lengthwise_recipes.quality.tasks import KINDS, Source
        from lengthwise_recipes.study.settings import Settings
    show.check(arguments)
    if arguments.scripts is not None and arguments.task != "handwriting":
        remedy = "Leave it out: only pen-drawn characters have scripts."
        raise value_error("scripts", f"left out with --task {arguments.task}", arguments.scripts, remedy)
    kind = KINDS[arguments.task]
    folder = None if arguments.checkpoints is None else check_folder("checkpoints", arguments.checkpoints)
    settings = Settings(
        epochs=kind.epochs if arguments.epochs is None else arguments.epochs,
        seeds=arguments.seeds,
        learning_rate=kind.learning_rate,
        threads=arguments.threads,
        device=arguments.device,
    )
    paddings = kind.paddings if arguments.padding is None else arguments.padding
    check_paddings(paddings)  # raises before the data are read
    source = Source(
        data=None if arguments.data is None else Path(arguments.data),
        count=kind.count if arguments.count is None else arguments.count,
        scripts=tuple(arguments.scripts.split(",")) if arguments.scripts else (),
        folder=None if folder is None else folder / "data",
        strict=arguments.strict,
    )
    task = kind.make(source)
    runs, progress = None if folder is None else folder / "runs", not arguments.quiet
    document = study_quality(task, kind, settings, paddings=paddings, folder=runs, progress=progress, command=command())
    _show(document, arguments)
    return 0


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("--data", type=Input, metavar="PATH", help=DATA)
    group.add_argument("--count", type=int, help="sequences (by task)")
    group.add_argument("--scripts", metavar="A,B", help="of an .npz of characters: use these scripts alone")
    group.add_argument("--strict", action="store_true", help="refuse unusable data in place of skipping it")


def _show(document: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    """Writes JSON and figure, and prints the page's answers on this task."""
    from lengthwise_recipes.quality import page
    from lengthwise_recipes.skipped import tell

    show.write_json(document, arguments.json)
    read = json.loads(json.dumps(document))
    if arguments.plot is not None:
        page.write_figure([read], Path(arguments.plot))
    if not show.fills_output(arguments):
        title = f"{document['sequences']:,} sequences of {document['data']['name']}"
        notes = [
            *page.lead([read]),
            page.orders_sentence([read]),
            *(f"Left out: {sentence}" for sentence in document["left_out"]),
            *tell(document["data"]),
        ]
        heads, cells = (*page.HEADS, *read["metrics"].values()), page.strategy_cells(read)
        show.table(heads, cells, title=title, notes=notes, words=2, spare=page.SPARE)
