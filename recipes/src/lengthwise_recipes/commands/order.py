"""`lengthwise study order`: what the order of sequences costs a model, by a plan that was written first."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lengthwise.cli import show
from lengthwise.cli.parser import command
from lengthwise_recipes.commands.options import check_folder, explain_missing


def add(studies: Any) -> None:
    """Adds the study and its options."""
    text = (
        "Trains small models on steps of random and of similar sequences, by the plan in recipes/docs/order.md. Each "
    )
    text += "run is written before the next begins. Call an interrupted study again: it goes on with what --json lacks."
    parser = studies.add_parser("order", help="What grouping sequences by length costs a model.", description=text)
    parser.add_argument("--data", required=True, metavar="FOLDER", help="holds the files that the plan names")
    parser.add_argument("--json", required=True, metavar="PATH", help="the result, which may be an earlier one")
    parser.set_defaults(run=run, file_option="--data")


def run(arguments: argparse.Namespace) -> int:
    """Trains the missing runs, and prints before and after how many are left."""
    with explain_missing("a study"):
        from lengthwise_recipes.order.data import read_pool
        from lengthwise_recipes.order.study import progress, study
    folder, path = check_folder("data", arguments.data), Path(arguments.json)
    show.say("\n".join(progress(path)))
    for planned in study(lambda name: read_pool(name, folder), path, command=command()):
        show.say(f"{planned.group}, seed {planned.seed}, {planned.rate or 'chosen'} rate")
    show.say("\n".join(progress(path)))
    return 0
