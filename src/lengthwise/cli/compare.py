"""`lengthwise compare`: what every strategy pads, mixes and costs on the same lengths."""

from __future__ import annotations

import argparse
import textwrap
import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.choices.named import ARRANGEMENTS, DEFAULT_STRATEGY, STRATEGIES
from lengthwise.cli import cuts, show, source
from lengthwise.measures.mixing import mixing_bins

DEFAULT = f"random,sorted,semi-sorted:0.02,bucketed:1024,alternated:58,optimal:8,max-entropy:0.05,{DEFAULT_STRATEGY}"
POOLED = 161_290  # sequences that fill 128 bins of mixing; short data need several epochs for them
MOST_EPOCHS = 32
_SPARE = (9, 5, 1, 2, 8, 3)  # columns that a narrow terminal leaves out, in this order


def add(subparsers: Any) -> None:
    """Adds `compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="compare batching strategies on lengths",
        description="Plans one epoch by every strategy, and shows padding, mixing and cost.",
        epilog=_names(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source.add(parser)
    cuts.add(parser)
    group = parser.add_argument_group("plans")
    text = "what to compare; the names and the default stand below"
    group.add_argument("--strategies", metavar="A,B:VALUE,...", help=text)
    group.add_argument("--epoch", type=int, default=0, metavar="E", help="the epoch to plan (%(default)s)")
    show.add(parser, plot="length along the epoch for every strategy")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints one row for every strategy."""
    show.check(arguments)
    cut = cuts.choose_cut(arguments)
    named = DEFAULT if arguments.strategies is None else arguments.strategies
    batchings = lw.strategies(named, cut=cut)
    lengths, name = source.read(arguments)
    plans, rows = {}, []
    with warnings.catch_warnings():
        if arguments.strategies is None:  # nobody asked for these paddings, and the table says what they come to
            warnings.filterwarnings("ignore", message="`padding` must be within")
        for label, batching in _show_progress(batchings.items()):
            plans[label], row = _plan_one(lengths, batching, seed=arguments.seed, epoch=arguments.epoch)
            rows.append({"strategy": label, **row})
    show.write_json({"lengths": show.summary(lengths), "rows": rows}, arguments.json)
    if arguments.plot is not None:
        from lengthwise import plot

        plot.save(plot.epoch_lengths(lengths, plans), arguments.plot)
    if arguments.json != "-":
        _print(rows, f"{show.sentence_of(lengths, name)}\n{cuts.describe_cut(cut)}")
    return 0


def _show_progress(items: Any) -> Any:
    from tqdm import tqdm

    return tqdm(items, desc="planning", leave=False, disable=None)


def _plan_one(
    lengths: NDArray[np.int64], batching: lw.Batching, *, seed: int, epoch: int
) -> tuple[lw.Plan, dict[str, Any]]:
    """Makes a plan, and its row: the measures, and the seconds it took without the compilation of the kernels.

    Both mixings are measured over as many epochs as fill 128 bins.
    """
    with suppress(ValueError), warnings.catch_warnings():  # an error of these few lengths comes again below, for all
        warnings.simplefilter("ignore")
        # A few lengths compile the kernels. Back to front: they are not the user's, whose warning comes only once.
        lw.make_plan(lengths[63::-1], batching)
    start = time.perf_counter()
    plan = lw.make_plan(lengths, batching, seed=seed, epoch=epoch)
    seconds = time.perf_counter() - start
    more = min(-(-POOLED // len(lengths)), MOST_EPOCHS)
    plans = [plan, *(lw.make_plan(lengths, batching, seed=seed, epoch=epoch + later) for later in range(1, more))]
    row = lw.measure(plan, lengths).as_dict()
    bins = mixing_bins(more * len(lengths))
    together = lw.measure(plans, lengths, bins=bins)
    pooled = {
        "mixing": together.mixing,
        "step_mixing": together.step_mixing,
        "mixing_bins": bins,
        "mixing_epochs": more,
    }
    return plan, {**row, **pooled, "seconds": seconds}


def _print(rows: list[dict[str, Any]], title: str) -> None:
    heads = (
        "strategy",
        "batches",
        "batch\nsize",
        "ZPR",
        "padding",
        "computed\n/ useful",
        "ABL",
        "mixing",
        "largest\ncost",
        "planned\nin ms",
    )
    cells = [
        (
            row["strategy"],
            f"{row['batches']:,}",
            _sizes(row),
            show.percent(row["zero_padding_rate"], 2),
            show.percent(row["padding_share"]),
            f"{1 / (1 - row['padding_share']):.2f}",
            f"{row['average_batch_length']:,.1f}",
            f"{row['mixing']:.3f}",
            f"{row['largest_cost']:,.0f}",
            f"{1000 * row['seconds']:.0f}",
        )
        for row in rows
    ]
    notes = (
        "padding: the share of computed frames that are padding; ZPR: its plain mean over batches (Ge 2021, eq. 1); "
        "ABL: the mean length that batches are padded to; cost: padded frames of a batch.",
        "mixing: 1 where the padded length of a batch tells nothing about its lengths, near 0 where it tells all; "
        + _pooling_note(rows[0]["mixing_epochs"], rows[0]["mixing_bins"]),
    )
    show.table(heads, cells, title=title, notes=notes, spare=[heads[place] for place in _SPARE])
    for row in rows:
        for fact, text in (("dropped", "sequences dropped"), ("over_max_cost", "batches over the cut's maximum")):
            if row[fact]:
                show.say(f"{row['strategy']}: {row[fact]:,} {text}")


def _pooling_note(epochs: int, bins: int) -> str:
    """Says why `lengthwise plan` prints another mixing."""
    if epochs == 1:
        return f"estimated in {bins} bins."
    return f"estimated in {bins} bins over {epochs} epochs, where `lengthwise plan` has one epoch and fewer bins."


def _sizes(row: dict[str, Any]) -> str:
    low, high = row["smallest_batch"], row["largest_batch"]
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _names() -> str:
    """The strategies, one line each, and those that are compared by default: within 80 columns."""
    written = {name: f"{name}:{kind.value}" if kind.value else name for name, kind in STRATEGIES.items()}
    lines = [_indent(f"  {written[name]:21s}", kind.help) for name, kind in STRATEGIES.items()]
    keys = _indent("  every one also takes ", f"arrange={'|'.join(ARRANGEMENTS)}".replace("|", " | "))
    default = _indent("  ", DEFAULT.replace(",", ", ")).replace(", ", ",")
    return "\n".join(["strategies, each with [,key=value...]:", *lines, keys, "", "without --strategies:", default])


def _indent(head: str, text: str) -> str:
    """`head` and `text`; further lines are indented to the start of `text`."""
    return textwrap.fill(text, 79, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
