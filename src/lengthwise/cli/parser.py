"""The parser of all commands, with errors of one sentence, and the options that commands share."""

from __future__ import annotations

import argparse
import glob
import os
import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.advice.candidates import BATCH_SIZE, first_budget
from lengthwise.advice.search import draw_sample
from lengthwise.checks import check_number, check_whole, make_visible, source_error, value_error
from lengthwise.choices.cut import BUDGET_REMEDY, Cut
from lengthwise.cli.strategies import did_you_mean, parse_cut
from lengthwise.lengths import split_source
from lengthwise.lengths.cells import COUNTS

# Errors of argparse, and the sentences that replace them: they read as all other errors. {0} is the option.
_SENTENCES = {
    r"argument (\S+): not allowed with argument (\S+)": "`{0}` must be left out if {1} is given",
    r"argument (\S+): expected one argument": "`{0}` must be followed by a value",
    r"argument (\S+): invalid choice: (.+) \(choose from (.+)\)": "`{0}` must be one of {2}, but is {1}",
    r"argument (\S+): (must .+)": "`{0}` {1}",
}

EXAMPLES = ("long-tailed", "speech")
_OF_FILES = ("frame_shift", "count", "tokenizer")  # options of reading a file
_OF_BATCHES = ("batch_size", "budget", "cut")


class Input(str):
    """The type of an option that names what a command reads: no output may replace it."""

    __slots__ = ()


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` without abbreviations, whose errors are one sentence without the usage."""

    def __init__(self, **choices: Any) -> None:
        # With abbreviations, new options would break commands: --sub is --subset until --subject is added.
        super().__init__(allow_abbrev=False, **choices)
        # For better errors than argparse's "invalid int value: '1e3'".
        self.register("type", int, partial(_convert, int, "a whole number"))
        self.register("type", float, partial(_convert, float, "a number"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyrefly: ignore[bad-override]
        """Refuses unknown words; the error suggests the most similar option."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # An unknown word without dashes is most likely a file that lacks its option.
            option = self.get_default("file_option")
            if option is not None and not unknown[0].startswith("-"):
                self.error(f"a file must follow its option, as {option} {unknown[0]}")
            self.error(f"there is no {' '.join(unknown)} here", word=unknown[0], choices=self._option_string_actions)
        return parsed, unknown

    def error(self, message: str, *, word: str = "", choices: Any = ()) -> NoReturn:
        """Ends the process with the message as one sentence, and advice.

        Args:
            message: The message of argparse.
            word: The unknown word.
            choices: The words that the user may have meant.
        """
        message = _reword(message)
        if choice := re.fullmatch(r".* must be one of (.+), but is '(.+)'", message):
            word, choices = choice[2], choice[1].split(", ")
        remedy = did_you_mean(word, choices) or f"`{self.prog} --help` lists all choices."
        if message.startswith("`--budget` ") and "left out" not in message:
            remedy = f"{BUDGET_REMEDY} `lengthwise inspect FILE` names a first budget."
        self.exit(2, make_visible(f"{self.prog}: {message}. {remedy}\n", lines=True))


def _reword(message: str) -> str:
    """Returns the message of argparse in the grammar of all other errors.

    >>> _reword("argument --tail: invalid choice: 'x' (choose from 'split', 'drop')")
    "`--tail` must be one of split, drop, but is 'x'"
    """
    start, choices, end = message.partition(" (choose from ")
    message = start + choices + end.replace("'", "")  # some versions of Python write quotes
    for pattern, sentence in _SENTENCES.items():
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return sentence.format(*match.groups())
    return message


def command() -> str:
    """Returns the command line of this process, to be typed again."""
    # `python -m lengthwise` is written as `lengthwise`.
    name = Path(sys.argv[0]).name
    return shlex.join(["lengthwise" if name == "__main__.py" else name, *sys.argv[1:]])


def _convert(kind: type, name: str, word: str) -> Any:
    try:
        return kind(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {name}, but is {word!r}") from error


def add_lengths(parser: argparse.ArgumentParser, *, option: str = "source", example: str = EXAMPLES[0]) -> None:
    """Adds the options of the lengths; `option` is "source", or the option that takes the file."""
    group = parser.add_argument_group("lengths")
    text = f"file, folder or pattern, with the column if there are several; without a file, the {example} example"
    # Commands of the recipes have other positional arguments, so that their file needs an option.
    place: dict[str, Any] = {"nargs": "?"} if option == "source" else {"dest": "source"}
    group.add_argument(option, type=Input, metavar="FILE[:COLUMN]", help=text, **place)
    if option != "source":
        parser.set_defaults(file_option=option)
    group.add_argument("--example", choices=EXAMPLES, help=f"generated lengths in place of a file ({example})")
    add_reading(group)
    text = "longer sequences count as N, because your samples are cut to N"
    group.add_argument("--max-length", type=int, metavar="N", help=text)
    group.add_argument("--subset", type=int, metavar="N", help="take N random sequences, drawn by --seed")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="for the plans and the subset (%(default)s)")


def add_reading(group: Any) -> None:
    """Adds the options of reading a file."""
    text = "the shift between frames, in the unit of the column: 0.01 for seconds, 160 for samples"
    group.add_argument("--frame-shift", type=float, metavar="SHIFT", help=text)
    text = "the unit in which texts are counted; tokens need --tokenizer"
    group.add_argument("--count", choices=COUNTS, help=text)
    group.add_argument("--tokenizer", type=Input, metavar="PATH", help="for tokens: tokenizer.json, or its folder")


def add_batches(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Adds the options of the cut; `default` describes the batches if none is given."""
    group = parser.add_argument_group(f"batches (default: {default})").add_mutually_exclusive_group()
    group.add_argument("--batch-size", type=int, metavar="B", help="sequences in a batch")
    group.add_argument("--budget", type=float, metavar="FRAMES", help="largest batch in padded frames")
    group.add_argument(
        "--cut",
        metavar="KIND:VALUE",
        help="another kind of batches, or one with options: fixed:B[,drop-incomplete=true]; "
        "budget:FRAMES[,oversize=alone|drop][,max-sequences=N]; "
        "dynamic:B[,rule=paper], with more sequences in batches of shorter ones (Ge 2021); "
        "rows:CAPACITY[,rows=R][,by=best-fit][,pool=N][,oversize=drop], which packs sequences into rows. "
        "fixed, budget and dynamic take multiple-of=M, to which the padded length is rounded up; budget and dynamic "
        "without rule=paper take count-multiple-of=M, for the number of sequences",
    )


def add_ranks(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a run on several ranks."""
    group = parser.add_argument_group("run")
    group.add_argument("--world-size", type=int, default=1, metavar="R", help="ranks (%(default)s)")
    text = "batches that each rank takes in one step (%(default)s)"
    group.add_argument("--micro-batches", type=int, default=1, metavar="M", help=text)
    text = "ranks share count x L (1 + Q L) evenly, as attention costs it, such as 0.001; the budget still holds"
    group.add_argument("--balance", type=float, metavar="Q", help=text)


def choose_balance(arguments: argparse.Namespace) -> lw.Quadratic | None:
    """Returns the cost that ranks share evenly, or None."""
    if arguments.balance is None:
        return None
    return lw.Quadratic(quadratic=check_number("balance", arguments.balance, remedy="Give the Q of L (1 + Q L)."))


def read_lengths(
    arguments: argparse.Namespace, *, example: str = EXAMPLES[0], count: int | None = None
) -> tuple[NDArray[np.int64], str]:
    """Returns the lengths that `arguments` name, and a name for them. An example has `count` lengths."""
    options = reading_options(arguments)
    if arguments.source is None:
        for option, value in options.items():
            remedy = "The examples are in frames already."
            raise value_error(option.replace("_", "-"), "given with a file", value, remedy)
        name = arguments.example or example
        lengths, title = lw.example_lengths(name, count=count), f"{name} example, generated"
    elif arguments.example is not None:
        raise value_error("example", "left out where a file is given", arguments.example, "Give one of the two.")
    else:
        lengths, title = read_file(arguments.source, **options, progress=True), make_visible(arguments.source)
    if arguments.max_length is not None:
        remedy = "Give the length that your samples are cut to."
        lengths = lengths.clip(max=check_whole("max-length", arguments.max_length, minimum=1, remedy=remedy))
    if arguments.subset is not None:
        lengths, title = draw_subset(lengths, arguments.subset, seed=arguments.seed), f"{title}, a random subset"
    _check_budget(arguments, lengths)
    return lengths, title


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of `read_lengths` that `arguments` give."""
    return {name: getattr(arguments, name) for name in _OF_FILES if getattr(arguments, name) is not None}


def read_file(source: str, *, read: Callable[..., Any] = lw.read_lengths, **options: Any) -> NDArray[np.int64]:
    """Returns the lengths that FILE[:COLUMN] names, by `read_lengths` or another function with its options."""
    path, column = split_source(source)
    folder, name = os.path.split(path)
    if not (os.path.exists(path) or glob.has_magic(path)) and os.path.isdir(folder or "."):
        remedy = did_you_mean(name, os.listdir(folder or ".")) or "Check the path; leave it out to see an example."
        raise source_error("a file or folder that exists", path, remedy)
    try:
        return read(path, column=column, **options)
    except ValueError as error:
        # An error of the library may say "(on the command line: FILE:COLUMN)".
        raise ValueError(str(error).replace("FILE:", make_visible(f"{path}:"))) from error


def draw_subset(lengths: NDArray[np.int64], count: int, *, seed: int) -> NDArray[np.int64]:
    """Returns the lengths of `count` random sequences, in the order of the data."""
    remedy = f"There {'is 1 sequence' if len(lengths) == 1 else f'are {len(lengths):,} sequences'}."
    check_whole("subset", count, minimum=1, maximum=len(lengths), remedy=remedy)
    return draw_sample(lengths, count, seed)


def choose_cut(arguments: argparse.Namespace) -> Cut | None:
    """Returns the cut of the `arguments`, or None."""
    if arguments.cut is not None:
        return parse_cut(arguments.cut)
    if arguments.budget is not None:
        return lw.Budget(arguments.budget)
    return None if arguments.batch_size is None else lw.FixedSize(arguments.batch_size)


def choose_budget(arguments: argparse.Namespace, lengths: NDArray[np.int64]) -> Cut:
    """Returns the cut of the `arguments`, or the first budget."""
    return choose_cut(arguments) or lw.Budget(first_budget(lengths) if len(lengths) else BATCH_SIZE)


def _check_budget(arguments: argparse.Namespace, lengths: NDArray[np.int64]) -> None:
    """Refuses a budget below the longest sequence, except for chunks; suggests a budget that is large enough."""
    budget = getattr(arguments, "budget", None)
    longest = int(lengths.reshape(len(lengths), -1).sum(axis=1).max(initial=0))
    if budget is not None and 0 < budget < longest and getattr(arguments, "chunk", None) is None:
        remedy = f"Try --budget {first_budget(lengths)}, or --cut budget:{budget:g},oversize=alone."
        raise value_error("budget", f"at least the longest sequence, {longest:,}", budget, remedy)


def write_words(arguments: argparse.Namespace) -> str:
    """Returns the command-line arguments for the same lengths and the same cut."""
    named = {name: getattr(arguments, name) for name in ("example", *_OF_FILES, "max_length", "subset", *_OF_BATCHES)}
    named["seed"] = arguments.seed or None  # the subset depends on the seed
    words = [] if arguments.source is None else [arguments.source]
    for name, value in named.items():
        if value is not None:
            # 20000.0 is written 20000.
            words += [f"--{name.replace('_', '-')}", f"{value:.16g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def write_code(arguments: argparse.Namespace) -> str:
    """Returns Python code that reads the same lengths as `read_lengths`."""
    if arguments.source is None:
        lines = [f"lengths = lw.example_lengths({arguments.example or EXAMPLES[0]!r})"]
    else:
        path, column = split_source(arguments.source)
        options = {"column": column, **{name: getattr(arguments, name) for name in _OF_FILES}}
        words = [repr(str(path)), *(f"{name}={value!r}" for name, value in options.items() if value is not None)]
        lines = [f"lengths = lw.read_lengths({', '.join(words)})"]
    if arguments.max_length is not None:
        lines.append(f"lengths = lengths.clip(max={arguments.max_length})  # cut the samples, too")
    if arguments.subset is not None:
        key = f'lw.Key(seed={arguments.seed}, stage="subset")'
        lines += [f"chosen = {key}.permutation(len(lengths))[:{arguments.subset}]", "lengths = lengths[sorted(chosen)]"]
    return "\n".join(lines)
