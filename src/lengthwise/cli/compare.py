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
from lengthwise.advice.answer import choose, epoch_price
from lengthwise.choices.cut import Cut
from lengthwise.choices.deal import check_world
from lengthwise.cli import cuts, show, source
from lengthwise.cli.strategies import ARRANGEMENTS, DEFAULT_STRATEGY, PACKINGS, STRATEGIES, Strategy, parse_strategies
from lengthwise.measures.metrics import epochs_to_pool, join_measures, measure_pooled
from lengthwise.report.tables import choose_columns

DEFAULT = f"random,sorted,semi-sorted:0.02,bucketed:1024,alternated:58,optimal:8,max-entropy:0.05,{DEFAULT_STRATEGY}"
DEFAULT_OF_ROWS = "best-fit,pool:1,pool:16,pool:128,pool:1024,pool:8192"
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)  # what rows cost: it differs, where their frames do not
# Columns that a narrow terminal leaves out, in this order.
_SPARE = ("planned\nin ms", "computed\n/ useful", "batches", "batch\nsize", "largest\ncost")


def add(subparsers: Any) -> None:
    """Adds `compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="compare batching strategies on lengths",
        description="Plan one epoch by every strategy, and show padding, mixing and cost.",
        epilog=_names(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source.add(parser)
    cuts.add(parser)
    group = parser.add_argument_group("plans")
    text = "what to compare; the names and the default stand below"
    group.add_argument("--strategies", metavar="A,B:VALUE,...", help=text)
    group.add_argument("--epoch", type=int, default=0, metavar="E", help="the epoch to plan (%(default)s)")
    group.add_argument("--world-size", type=int, default=1, metavar="R", help="ranks (%(default)s)")
    text = (
        "batches that each rank takes in one step (%(default)s); with several a step, steps have columns of their own"
    )
    group.add_argument("--micro-batches", type=int, default=1, metavar="M", help=text)
    show.add(
        parser,
        plot="mixing against padding for every strategy, or the padding of packed rows",
        html="all, and the best beside the first",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints one row for every strategy."""
    show.check(arguments)
    cut = cuts.choose_cut(arguments)
    world = check_world(arguments.world_size, arguments.micro_batches)
    packed = isinstance(cut, lw.Rows)
    # Random steps say something only where a step has several batches, and not every cut can make them.
    steps = ",random-steps" if world.slots > 1 and _forms_steps(cut) else ""
    default = DEFAULT.replace("random,", f"random{steps},")
    lengths, name = source.read(arguments)
    if lengths.ndim == 2:  # edges of several lengths are given by hand
        default = default.replace("optimal:8,", "")
    if packed:
        default = DEFAULT_OF_ROWS + steps
    named = default if arguments.strategies is None else arguments.strategies
    batchings = parse_strategies(named, cut=cut, cost=ATTENTION if packed else None)
    plans, rows = {}, []
    with warnings.catch_warnings():
        if arguments.strategies is None:  # nobody asked for these paddings, and the table says what they come to
            warnings.filterwarnings("ignore", message="`padding` must be within")
        for label, batching in show.progress(batchings.items()):
            plans[label], row = _plan_one(lengths, batching, world, seed=arguments.seed, epoch=arguments.epoch)
            rows.append({"strategy": label, **row})
    show.write_json({"lengths": show.summary(lengths), "rows": rows}, arguments.json)
    made = f"{cuts.describe_cut(cut)}{cuts.describe_world(world)}"
    measured = {row["strategy"]: row for row in rows}
    best = _best(plans, rows, packed)
    if arguments.plot is not None:
        chart = (
            lw.report.padding(measured, best=best)
            if packed
            else lw.report.trade_off(measured, lengths=lengths, best=best)
        )
        lw.report.save_chart(chart, arguments.plot)
    told = {"title": f"{name}: {made}", "loading": source.write_code(arguments), "best": best}
    show.write_html(arguments.html, lengths, plans, measured, **told)
    if not show.fills_output(arguments):
        title = f"{show.sentence_of(lengths, name)}\n{made}"
        _print(rows, title, steps=world.slots > 1, packed=packed)
    return 0


def _forms_steps(cut: Cut) -> bool:
    with suppress(ValueError):
        lw.RandomSteps().check_cut(cut)
        return True
    return False


def _best(plans: dict[str, lw.Plan], rows: list[dict[str, Any]], packed: bool) -> str:
    """The strategy that the page puts forward: by the rule of `advise`; of packed rows by their fill."""
    labels = list(plans)
    if packed:
        # All pools mix nearly alike, 0.9996 and 0.9999 say: there the fill decides.
        prices, mixing = [1 / (row["fill"] or 1) for row in rows], [round(row["pair_mixing"], 2) for row in rows]
    else:
        prices = [epoch_price(plan, lw.Padded()) for plan in plans.values()]
        mixing = [row["step_mixing"] for row in rows]
    random = labels.index("random") if "random" in labels and not packed else None
    return labels[choose(prices, mixing, random=random)]


def _plan_one(
    lengths: NDArray[np.int64], batching: lw.Batching, world: lw.World, *, seed: int, epoch: int
) -> tuple[lw.Plan, dict[str, Any]]:
    """Makes a plan, and its row: the measures, and the seconds it took without the compilation of the kernels.

    What steps are worth, and both mixings, are measured over as many epochs as fill 256 bins, and 32 at most.
    """
    ranks = world._asdict()
    with suppress(ValueError), warnings.catch_warnings():  # an error of these few lengths comes again below, for all
        warnings.simplefilter("ignore")
        # A few lengths compile the kernels. Back to front: they are not the user's, whose warning comes only once.
        lw.make_plan(lengths[63::-1], batching, **ranks)
    start = time.perf_counter()
    plan = lw.make_plan(lengths, batching, seed=seed, epoch=epoch, **ranks)
    seconds = time.perf_counter() - start
    # 10,480 sequences fill 256 bins in 16 epochs: this one and 15 more.
    epochs = range(epoch + 1, epoch + epochs_to_pool(len(lengths)))
    plans = [plan, *(lw.make_plan(lengths, batching, seed=seed, epoch=later, **ranks) for later in epochs)]
    # Counts and padding stay those of the one epoch that was planned; mixing needs more sequences than it has.
    row = join_measures(lw.measure(plan, lengths), measure_pooled(plans, lengths))
    return plan, {**row, "seconds": seconds}


_SAID_BELOW = ("dropped", "over the budget")
_LEGEND = {
    "padding": "padding: the share of computed frames that are padding",
    "computed\n/ useful": "computed / useful: frames computed for each frame of data",
    "largest\ncost": "largest cost: padded frames of the costliest batch",
}


_STEPS_VARY = "steps vary: how much the mean length of steps varies, 1 as that of random samples does."


def _print(rows: list[dict[str, Any]], title: str, *, steps: bool, packed: bool) -> None:
    # "batch size" in two lines. What is dropped, or over the maximum, is said below the table.
    measured = choose_columns(steps=steps, packed=packed)
    columns = {head.replace(" ", "\n", 1): write for head, write in measured.items() if head not in _SAID_BELOW}
    cells = [(row["strategy"], *(write(row) for write in columns.values())) for row in rows]
    spare = [head for head in _SPARE if head in columns]
    show.table(
        ("strategy", *columns),
        cells,
        title=title,
        notes=_notes_of_rows(rows[0], steps=steps) if packed else _notes(rows[0], steps=steps),
        legend=_LEGEND,
        spare=spare,
    )
    for row in rows:
        for fact, text in (("dropped", "sequences dropped"), ("over_max_cost", "batches over the cut's maximum")):
            if row[fact]:
                show.say(f"{row['strategy']}: {row[fact]:,} {text}")


def _notes(row: dict[str, Any], *, steps: bool) -> tuple[str, ...]:
    """What the heads mean."""
    mixing = (
        "mixing: 1 where the padded length of a batch tells nothing about its lengths, near 0 where it tells all; "
        + _pooling_note(row["mixing_epochs"], row["mixing_bins"])
    )
    if not steps:
        return (mixing,)
    return (
        mixing,
        "step mixing: the same for all that one optimiser step takes.",
        _STEPS_VARY,
        "waiting: the share of time that ranks wait for the slowest.",
    )


def _notes_of_rows(row: dict[str, Any], *, steps: bool) -> tuple[str, ...]:
    """What the heads mean where rows are packed."""
    epochs = row["mixing_epochs"]
    pooled = f" (over {epochs} epochs, where `lengthwise plan` has one epoch and fewer bins)" if epochs > 1 else ""
    rows = (
        "fill: the share of computed frames that hold data.",
        "pair mixing: 1 where a sequence tells nothing about the length of another in its row, near 0 where it tells "
        f"all{pooled}.",
        "cost spread: how much batches differ in what attention costs, the squares of the lengths. It is the standard "
        "deviation as a share of the mean.",
    )
    waiting = "waiting: the share of time that ranks wait for the slowest, if attention alone cost time."
    return (*rows, _STEPS_VARY, waiting) if steps else rows


def _pooling_note(epochs: int, bins: int) -> str:
    """Says why `lengthwise plan` prints another mixing."""
    if epochs == 1:
        return f"estimated in {bins} bins."
    return f"estimated in {bins} bins over {epochs} epochs, where `lengthwise plan` has one epoch and fewer bins."


def _names() -> str:
    """The strategies, one line each, and those that are compared by default: within 80 columns."""
    lines = [_indent(f"  {_write(name, kind):21s}", kind.help) for name, kind in STRATEGIES.items()]
    arrangements = f"arrange={'|'.join(ARRANGEMENTS)}".replace("|", " | ")
    keys = _indent("  every one also takes ", arrangements)
    packings = [_indent(f"  {_write(name, kind):21s}", kind.help) for name, kind in PACKINGS.items()]
    # Broken at blanks, which are put in for that and taken out again, so that the list can be copied.
    default, of_rows = (
        _indent("  ", each.replace(",", ", ")).replace(", ", ",") for each in (DEFAULT, DEFAULT_OF_ROWS)
    )
    return "\n".join(
        [
            *("strategies, each with [,key=value...]:", *lines, keys, ""),
            *("with --pack also:", *packings, ""),
            *("without --strategies:", default, "and with --pack:", of_rows),
        ]
    )


def _write(name: str, kind: Strategy) -> str:
    return f"{name}:{kind.value}" if kind.value else name


def _indent(head: str, text: str) -> str:
    """`head` and `text`; further lines are indented to the start of `text`."""
    return textwrap.fill(text, 79, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
