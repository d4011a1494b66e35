"""The lengths that a command works on: FILE[:COLUMN] or embedded examples, and a random subset of them."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_whole, make_visible, value_error
from lengthwise.lengths import split_source
from lengthwise.lengths.cells import COUNTS

EXAMPLES = ("long-tailed", "speech")


class Source(NamedTuple):
    lengths: NDArray[np.int64]
    name: str


def add(parser: argparse.ArgumentParser, *, option: str = "source", example: str = EXAMPLES[0]) -> None:
    """Adds the arguments that name the lengths; `option` is "source", or an option in its place."""
    group = parser.add_argument_group("lengths")
    text = f"file or folder of lengths, and its column where it has several; without it, the {example} example"
    # Commands of the recipes take words of their own first, so that a file has an option there.
    place: dict[str, Any] = {"nargs": "?"} if option == "source" else {"dest": "source"}
    group.add_argument(option, metavar="FILE[:COLUMN]", help=text, **place)
    if option != "source":
        parser.set_defaults(file_option=option)
    group.add_argument("--example", choices=EXAMPLES, help=f"generated lengths in place of a file ({example})")
    text = "turns a column into frames: 0.01 where it holds seconds, 160 where it holds counts of samples"
    group.add_argument("--frame-shift", type=float, metavar="SHIFT", help=text)
    text = "what is counted in a column of texts: characters, words, or tokens by --tokenizer"
    group.add_argument("--count", choices=COUNTS, help=text)
    group.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json, for --count tokens")
    group.add_argument("--subset", type=int, metavar="N", help="take N of the sequences, drawn at random by --seed")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="for the plans and the subset (%(default)s)")


def read(arguments: argparse.Namespace, *, example: str = EXAMPLES[0], count: int | None = None) -> Source:
    """Reads the lengths that `arguments` name, or `count` of the example."""
    source = _whole(arguments, example, count)
    if arguments.subset is None:
        return source
    lengths = subset(source.lengths, arguments.subset, seed=arguments.seed)
    return Source(lengths, f"{source.name}, a random subset")


def write_code(arguments: argparse.Namespace) -> str:
    """Lines of Python that read the same lengths as `read`."""
    if arguments.source is None:
        lines = [f"lengths = lw.example_lengths({arguments.example or EXAMPLES[0]!r})"]
    else:
        path, column = split_source(arguments.source)
        given = {"column": column, **_options(arguments)}
        words = [repr(str(path)), *(f"{name}={value!r}" for name, value in given.items() if value is not None)]
        lines = [f"lengths = lw.read_lengths({', '.join(words)})"]
    if arguments.subset is not None:
        key = f'lw.Key(seed={arguments.seed}, stage="subset")'
        lines += [f"chosen = {key}.permutation(len(lengths))[:{arguments.subset}]", "lengths = lengths[sorted(chosen)]"]
    return "\n".join(lines)


def read_file(source: str, **options: Any) -> NDArray[np.int64]:
    """Reads the lengths that FILE[:COLUMN] names, with options of `read_lengths`."""
    path, column = split_source(source)
    return lw.read_lengths(path, column=column, **options)


def write_words(arguments: argparse.Namespace) -> list[str]:
    """The words of the command line that name the same lengths."""
    named = {"example": arguments.example, **_options(arguments), "subset": arguments.subset}
    # The subset of another seed holds other sequences.
    named["seed"] = arguments.seed or None
    given = {name.replace("_", "-"): str(value) for name, value in named.items() if value is not None}
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    return [*([] if arguments.source is None else [arguments.source]), *options]


def subset(lengths: NDArray[np.int64], count: int, *, seed: int) -> NDArray[np.int64]:
    """A random `count` of the lengths, in the order they stand in."""
    remedy = f"There {'is 1 sequence' if len(lengths) == 1 else f'are {len(lengths):,} sequences'}."
    check_whole("subset", count, minimum=1, maximum=len(lengths), remedy=remedy)
    # By a stage of its own: the plans of this seed draw the same whether there is a subset or not.
    chosen = lw.Key(seed=seed, stage="subset").permutation(len(lengths))[:count]
    # In the order of the file, in which neighbours may be alike.
    return lengths[np.sort(chosen)]


def _whole(arguments: argparse.Namespace, example: str, count: int | None) -> Source:
    if arguments.source is None:
        for option, value in _options(arguments).items():
            if value is not None:
                remedy = "The examples are in frames already."
                raise value_error(option.replace("_", "-"), "given with a file", value, remedy)
        name = arguments.example or example
        return Source(lw.example_lengths(name, count=count), f"{name} example, generated")
    if arguments.example is not None:
        raise value_error("example", "left out where a file is given", arguments.example, "Give one of the two.")
    lengths = read_file(arguments.source, **_options(arguments), progress=True)
    return Source(lengths, make_visible(arguments.source))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What says how a file becomes lengths."""
    return {name: getattr(arguments, name) for name in ("frame_shift", "count", "tokenizer")}
