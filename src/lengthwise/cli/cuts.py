"""The cut of a command: one of --batch-size, --budget and --cut."""

from __future__ import annotations

import argparse
from dataclasses import replace

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise.choices.cut import Cut
from lengthwise.cli.strategies import parse_cut

BATCH_SIZE = 16


def add(parser: argparse.ArgumentParser, *, default: bool = True, packing: bool = True) -> None:
    """Adds the options.

    Args:
        parser: Of the command.
        default: Whether there is a cut where none of them is given.
        packing: Whether rows may be packed.
    """
    batches = parser.add_argument_group("batches")
    # One of three: argparse itself refuses two of them. A fourth would make its line of usage too long.
    group = batches.add_mutually_exclusive_group()
    group.add_argument(
        "--batch-size", type=int, metavar="B", help="sequences in a batch" + f" ({BATCH_SIZE})" * default
    )
    text = f"most padded frames in a batch; {BATCH_SIZE} times the mean length (`lengthwise inspect`) to begin with"
    group.add_argument("--budget", type=float, metavar="FRAMES", help=text)
    group.add_argument(
        "--cut",
        metavar="KIND:VALUE",
        help="the same in one word, with options: fixed:B[,drop-incomplete=true]; "
        "budget:FRAMES[,oversize=alone|drop][,max-sequences=N][,count-multiple-of=M]; "
        "dynamic:B[,rule=paper], whose batches hold more sequences the shorter these are (Ge 2021)"
        + ("; rows:CAPACITY[,rows=R][,by=best-fit][,pool=N][,oversize=drop][,max-in-row=N]" if packing else ""),
    )
    if packing:
        text = "pack several sequences into each row of CAPACITY frames; in place of the three above"
        batches.add_argument("--pack", type=int, metavar="CAPACITY", help=text)
    text = "pad each batch to a multiple of M frames; the budget counts them (1)"
    batches.add_argument("--multiple-of", type=int, metavar="M", help=text)
    if not packing:
        parser.set_defaults(pack=None, rows=None)
        return
    batches.add_argument("--rows", type=int, metavar="R", help="with --pack: rows in a batch (1)")


def choose_cut(arguments: argparse.Namespace) -> Cut:
    """The cut that `arguments` ask for."""
    cut = _choose_kind(arguments)
    if arguments.multiple_of is None:
        return cut
    if not isinstance(cut, lw.FixedSize | lw.Budget | lw.DynamicSize):
        rule, remedy = "left out for rows", "Give a capacity that is a multiple."
        raise value_error("multiple-of", rule, arguments.multiple_of, remedy)
    if cut.multiple_of > 1:
        raise value_error("multiple-of", "given once", arguments.multiple_of, "Leave it out: --cut says it already.")
    return replace(cut, multiple_of=arguments.multiple_of)


def is_given(arguments: argparse.Namespace) -> bool:
    """Whether any of the options is."""
    options = ("batch_size", "budget", "cut", "pack", "rows", "multiple_of")
    return any(getattr(arguments, name) is not None for name in options)


def _choose_kind(arguments: argparse.Namespace) -> Cut:
    if arguments.rows is not None and arguments.pack is None:
        raise value_error(
            "rows", "given with --pack", arguments.rows, "Give the frames in a row: --pack 4096, for example."
        )
    if arguments.pack is not None:
        for name in ("batch_size", "budget", "cut"):
            if getattr(arguments, name) is not None:
                rule = f"left out beside --{name.replace('_', '-')}"
                raise value_error("pack", rule, arguments.pack, "Choose one of the two.")
        return lw.Rows(arguments.pack, rows=1 if arguments.rows is None else arguments.rows)
    if arguments.cut is not None:
        return parse_cut(arguments.cut)
    if arguments.budget is not None:
        return lw.Budget(arguments.budget)
    return lw.FixedSize(BATCH_SIZE if arguments.batch_size is None else arguments.batch_size)


def write_words(arguments: argparse.Namespace) -> list[str]:
    """The words of the command line that make the same cut."""
    kinds = {name: getattr(arguments, name) for name in ("batch_size", "budget", "cut", "pack", "rows")}
    given = {name: value for name, value in kinds.items() if value is not None} or {"batch_size": BATCH_SIZE}
    if arguments.multiple_of is not None:
        given["multiple_of"] = arguments.multiple_of
    # 20000.0 is written 20000.
    texts = {name: f"{value:.16g}" if isinstance(value, float) else str(value) for name, value in given.items()}
    return [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]


def describe_cut(cut: Cut) -> str:
    """What a cut makes, in words.

    >>> describe_cut(lw.Budget(20_000))
    'batches of at most 20,000 padded frames'
    """
    multiple = getattr(cut, "multiple_of", 1)
    return _describe_kind(cut) + (f", padded to multiples of {multiple:,}" if multiple > 1 else "")


def describe_world(world: lw.World) -> str:
    """What a step is shared out to, in words after a cut; nothing of one batch.

    >>> describe_world(lw.World(8, 1)), describe_world(lw.World(8, 4)), describe_world(lw.World(1, 1))
    ('; 8 ranks', '; 8 ranks x 4 micro-batches a step', '')
    """
    ranks = [f"{world.world_size:,} ranks"] if world.world_size > 1 else []
    batches = [f"{world.micro_batches:,} micro-batches a step"] if world.micro_batches > 1 else []
    return f"; {' x '.join(ranks + batches)}" if ranks or batches else ""


def _describe_kind(cut: Cut) -> str:
    if isinstance(cut, lw.FixedSize):
        return f"batches of {cut.batch_size:,} sequence{'' if cut.batch_size == 1 else 's'}"
    if isinstance(cut, lw.Budget):
        most = "" if cut.max_sequences is None else f" and {cut.max_sequences:,} sequences"
        return f"batches of at most {cut.budget:,.16g} padded frames{most}"
    if isinstance(cut, lw.DynamicSize):
        reach = "of at most" if cut.rule == "hard" else "filled until they reach"
        return f"batches {reach} the padded frames of {cut.batch_size:,} longest sequences"
    if isinstance(cut, lw.Rows):
        batches = "" if cut.rows == 1 else f"batches of {cut.rows:,} "
        most = "" if cut.max_in_row is None else f" and {cut.max_in_row:,} sequences"
        return f"{batches}rows of at most {cut.capacity:,} frames{most}"
    # A cut that another package brought: its own words.
    return f"batches by {cut}"
