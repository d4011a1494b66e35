"""`lengthwise study order`: what the order of sequences costs a model, by a plan that was written first."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from lengthwise.cli import show
from lengthwise.cli.parser import command
from lengthwise_recipes.commands.options import check_folder, explain_missing


def add(studies: Any) -> None:
    """Adds the study and its options."""
    parser = studies.add_parser(
        "order",
        help="What it costs a model to group sequences by length.",
        description="Trains small models on steps of random and of similar sequences. The plan is in "
        "recipes/docs/order.md. Each run is written before the next begins. If the study is interrupted, call it "
        "again: it goes on with the runs that --json lacks.",
    )
    parser.add_argument("--data", required=True, metavar="FOLDER", help="holds the files that the plan names")
    parser.add_argument("--json", required=True, metavar="PATH", help="the result, which may be an earlier one")
    parser.add_argument("--quiet", action="store_true", help="no line for each run")
    parser.set_defaults(run=run, file_option="--data")


def run(arguments: argparse.Namespace) -> int:
    """Runs what is missing; says before and after what is done and what is left."""
    with explain_missing("a study"):
        from lengthwise_recipes.order.data import read_pool
        from lengthwise_recipes.order.study import progress, study
    folder, path = check_folder("data", arguments.data), Path(arguments.json)
    try:
        for number, planned in enumerate(study(partial(read_pool, folder=folder), path, command=command())):
            if number == 0:
                _tell(path, progress)
            if not arguments.quiet:
                show.say(f"{planned.group}, seed {planned.seed}, {planned.rate or 'chosen'} rate")
    finally:
        _tell(path, progress)
    return 0


def _tell(path: Path, progress: Any) -> None:
    groups = json.loads(path.read_text())["groups"] if path.exists() else {}
    for line in progress(groups):
        show.say(line)
