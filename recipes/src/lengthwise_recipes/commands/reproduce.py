"""`lengthwise reproduce`: runs a paper again, and sets its numbers beside ours with the spread of ours over seeds."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.commands import doetsch2017, ge2021, ge2021_table1, khomenko2016


def add(subparsers: Any) -> None:
    """Adds `reproduce` and the papers under it."""
    text = "rerun a paper: its numbers beside ours"
    papers = subparsers.add_parser("reproduce", help=text, description=f"{text.capitalize()}.").add_subparsers(
        dest="subcommand", required=True, metavar="PAPER"
    )
    khomenko2016.add(papers)
    doetsch2017.add(papers)
    ge2021.add(papers)
    ge2021_table1.add(papers)
