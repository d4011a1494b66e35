"""`lengthwise advise`: which batches to train with, what they save, and the code."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import lengthwise as lw
from lengthwise.advice.answer import AdviceRow
from lengthwise.advice.contenders import OTHER_CUT
from lengthwise.advice.question import Question, read_question
from lengthwise.advice.search import answer
from lengthwise.cli import cuts, show, source
from lengthwise.cli.strategies import parse_share
from lengthwise.measures.metrics import join_measures
from lengthwise.report import words
from lengthwise.report.tables import Table

_SHOWN = 6  # rows of the front, and what the sentence names; --json has all
# Columns that a narrow terminal leaves out, in this order.
_SPARE = ("batch\nsize", "steps\nvary", "of\nrandom", "waiting")


def add(subparsers: Any) -> None:
    """Adds `advise`."""
    text = "recommend batches for these lengths, with the reason and the code"
    description = (
        "Try dozens of ways to make batches, and recommend one: of all that compute at most 5 % more than the "
        "cheapest, the one that mixes most; or, of all that compute at most 15 % more, if that mixes far more. Mixing "
        "says how random batches are in length, from 0 to 1."
    )
    parser = subparsers.add_parser("advise", help=text, description=description)
    source.add(parser)
    cuts.add(parser, packing=False)
    group = parser.add_argument_group("run")
    group.add_argument("--world-size", type=int, default=1, metavar="R", help="ranks (%(default)s)")
    text = "batches that each rank takes in one step (%(default)s)"
    group.add_argument("--micro-batches", type=int, default=1, metavar="M", help=text)
    group = parser.add_argument_group("what counts")
    text = "the seconds of a step, as lengthwise.StepCost.save wrote them; without it a frame costs the same everywhere"
    group.add_argument("--cost", metavar="PATH", help=text)
    text = "how much more than the cheapest may be spent for mixing (5%%; 15%% for far more mixing)"
    group.add_argument("--within", metavar="SHARE", help=text)
    show.add(parser, plot="the rows between price and mixing", html="what is recommended, and why")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the rows that count, the recommendation, and the code."""
    show.check(arguments)
    cut = cuts.choose_cut(arguments)
    lengths, name = source.read(arguments)
    question = read_question(
        lengths,
        cut,
        world_size=arguments.world_size,
        micro_batches=arguments.micro_batches,
        cost=None if arguments.cost is None else lw.StepCost.load(arguments.cost),
        within=None if arguments.within is None else parse_share(arguments.within, name="within"),
        seed=arguments.seed,
    )
    advice = answer(question, watch=show.progress)
    program = "\n".join(["import lengthwise as lw", "from torch.utils.data import DataLoader", ""])
    program += f"\n{source.write_code(arguments)}\n{advice.code}"
    document = {"lengths": show.summary(lengths), **advice.as_dict(), "code": program}
    show.write_json(document, arguments.json)
    if arguments.plot is not None:
        lw.report.save_chart(lw.report.advice(advice), arguments.plot)
    _write_page(arguments, advice, question, title=f"{name}: {_made(question)}")
    if not show.fills_output(arguments):
        _print(advice, question, show.sentence_of(lengths, name))
        show.program(program)
    return 0


def _write_page(arguments: argparse.Namespace, advice: lw.Advice, question: Question, *, title: str) -> None:
    """Writes the report: random batches beside the recommended ones, and all that was tried."""
    if arguments.html is None:
        return
    from lengthwise.report.headline import write_headline

    random = next(row for row in advice.candidates if row.label == "random")
    shown = {row.label: row for row in (random, advice.best)}
    world = question.world._asdict()
    plans = {
        label: lw.make_plan(question.lengths, row.batching, seed=question.seed, **world) for label, row in shown.items()
    }
    rows = {label: _measure(plan, question, shown[label].measures) for label, plan in plans.items()}
    told: dict[str, Any] = {"title": title, "loading": source.write_code(arguments), "lead": advice.sentence}
    told |= {"charts": [lw.report.advice(advice)], "tables": [_table(advice, question)]}
    if advice.best is random:
        told["answer"] = f"{write_headline(rows, 'random', packed=False).removesuffix('.')}: keep them."
    show.write_html(arguments.html, question.lengths, plans, rows, **told)


def _table(advice: lw.Advice, question: Question) -> Table:
    """The rows of the terminal's table, for the page."""
    columns = _columns(advice, question)
    # As the page's other tables write them.
    for head, field in (("padding", "padding_share"), ("waiting", "straggler_waste")):
        if head in columns:
            columns[head] = lambda row, field=field: words.percent(getattr(row.measures, field))
    rows = [
        (f"{row.label}{' (recommended)' * (row is advice.best)}", *(write(row) for write in list(columns.values())[1:]))
        for row in _shown(advice)
    ]
    heads = tuple(head.replace("\n", " ") for head in columns)
    parts = [text.partition(": ") for head, text in _legend(question).items() if head in columns]
    return Table(heads, rows, "What was tried", words=2, meanings=[(name, meaning) for name, _, meaning in parts])


def _measure(plan: lw.Plan, question: Question, pooled: lw.Measures) -> dict[str, Any]:
    """The measures of one epoch, with padding and mixing of all that were tried: the page says one number for each."""
    row = join_measures(lw.measure(plan, question.lengths), pooled)
    return row | {"padding_share": pooled.padding_share, "fill": pooled.fill}


def _made(question: Question) -> str:
    return f"{cuts.describe_cut(question.cut)}{cuts.describe_world(question.world)}"


def _print(advice: lw.Advice, question: Question, title: str) -> None:
    columns = _columns(advice, question)
    rows = _shown(advice)
    show.table(
        tuple(columns),
        [tuple(write(row) for write in columns.values()) for row in rows],
        title=f"{title}\n{_made(question)}",
        notes=(_ROWS,),
        legend=_legend(question),
        words=2,
        spare=[head for head in _SPARE if head in columns],
    )
    show.say(f"\n{advice.sentence}\n")


def _shown(advice: lw.Advice) -> list[AdviceRow]:
    """What the sentence names, what trainers ship, and some of the front, by rising price."""
    front, named = advice.front, [row for row in (advice.best, advice.more_mixed) if row is not None]
    # Of 21 rows on the front: 0, 5, 10, 15 and 20.
    places = np.unique(np.rint(np.linspace(0, len(front) - 1, min(_SHOWN - len(named), len(front)))).astype(int))
    kept = {id(row) for row in [*named, *advice.shipped, *(front[place] for place in places)]}
    return [row for row in advice.candidates if id(row) in kept]


def _columns(advice: lw.Advice, question: Question) -> dict[str, Callable[[AdviceRow], str]]:
    """Each column by its head, as a row is written in it."""
    price = {"frames": "computed\n/ useful", "seconds": "seconds\nan epoch", "cost": "cost of\nan epoch"}[advice.unit]
    columns: dict[str, Callable[[AdviceRow], str]] = {
        "strategy": lambda row: f"{'*' if row is advice.best else ' '} {row.label.removesuffix(OTHER_CUT)}",
        "ships in": lambda row: row.ships_in,
    }
    if _cuts_differ(advice):
        columns["cut"] = _row_cut
    columns["padding"] = lambda row: show.percent(row.measures.padding_share)
    if advice.world_size > 1:
        columns["waiting"] = lambda row: show.percent(row.measures.straggler_waste)
    columns["mixing" if question.world.slots == 1 else "step\nmixing"] = lambda row: f"{row.mixing:.3f}"
    columns["steps\nvary"] = lambda row: f"{row.measures.step_length_variance:.3g}"
    columns[price] = lambda row: f"{row.price:,.2f}" if row.price < 1000 else f"{row.price:,.0f}"
    columns["of\nrandom"] = lambda row: f"{row.of_random:.2f}"
    return columns


def _cuts_differ(advice: lw.Advice) -> bool:
    return len({row.batching.cut for row in advice.candidates}) > 1


def _row_cut(row: AdviceRow) -> str:
    cut: Any = row.batching.cut
    return f"{cut.budget:,.0f} frames" if isinstance(cut, lw.Budget) else f"{cut.batch_size:,}"


def _legend(question: Question) -> dict[str, str]:
    """What the heads of some columns mean."""
    several = question.world.slots > 1
    unit, slowest = ("step", " of the slowest rank") if several else ("batch", "")
    mixing = f"mixing: 1 where a {unit} tells nothing about the lengths in it, near 0 where it tells all"
    return {
        # `random` waits 41 % of the time as PyTorch deals, and 2 % as `compare` does, by the cost of batches.
        "waiting": "waiting: the share of time that ranks wait, dealt as trainers do (`compare` deals by cost)",
        "mixing": mixing,
        "step\nmixing": mixing,
        "steps\nvary": "steps vary: in mean length, 1 as random samples do",
        "computed\n/ useful": f"computed / useful: frames{slowest} for each useful one",
        "seconds\nan epoch": "seconds an epoch: as --cost predicts them",
        "cost of\nan epoch": "cost of an epoch: in its unit",
    }


_ROWS = "*: the one to take. The others: what trainers ship, and some that no row beats in price and mixing."
