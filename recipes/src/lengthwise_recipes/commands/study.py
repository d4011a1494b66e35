"""`lengthwise study`: trains under several batching strategies and compares time and loss."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lengthwise as lw
from lengthwise.cli import show
from lengthwise.cli.parser import Input, add_batches, choose_cut, command
from lengthwise.cli.strategies import parse_strategies
from lengthwise_recipes.commands import order, quality
from lengthwise_recipes.commands.options import add_machine, explain_missing, wholes

if TYPE_CHECKING:
    from lengthwise_recipes.handwriting.data import Corpus
    from lengthwise_recipes.study.results import EpochRow, Study, Summary

STRATEGIES = "random,sorted,arrange=in-order,semi-sorted:0.1,alternated:12,optimal:8,max-entropy:0.05,max-entropy:0.1"
HEADS = ("strategy", "useful\nframes/s", "padding", "s per\nepoch", "of the\nfirst", "valid.\nloss", "CER")
PARALLEL_HEADS = ("strategy", "s per\nepoch", "of the\nfirst", "steps", "waiting", "padding", *HEADS[-2:])
PARALLEL_NOTE = (
    "Several processes average their gradients in every step, or their parameters after every epoch. Waiting is the "
    "share of their time that they wait for each other, computed from the plan."
)


def add(subparsers: Any) -> None:
    """Adds `study` and the studies under it."""
    text = "train under several batching strategies and compare time and loss"
    studies = subparsers.add_parser("study", help=text, description=f"{text.capitalize()}.").add_subparsers(
        dest="subcommand", required=True, metavar="STUDY"
    )
    parser = studies.add_parser(
        "handwriting",
        help="A bidirectional LSTM with CTC on online handwriting.",
        description="Trains a bidirectional LSTM with CTC on online handwriting under every strategy, from the same "
        "weights, and prints time, padding, validation loss and character error rate.",
    )
    add_data(parser, count="1200; 4860 for an .npz")
    add_batches(parser, default="16 sequences")
    parser.add_argument(
        "--strategies", default=STRATEGIES, metavar="A,B:VALUE,...", help="as in lengthwise compare (%(default)s)"
    )
    _add_network(parser)
    _add_processes(parser)
    show.add(
        parser,
        plot="validation loss against time; with few strategies also against epochs",
        html="what was learned, and how much each strategy pads",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run, file_option="--data")
    quality.add(studies)
    order.add(studies)


def run(arguments: argparse.Namespace) -> int:
    """Runs the study that `arguments` describe, prints its table and writes the requested files."""
    with explain_missing("a study"):
        from lengthwise_recipes.handwriting.task import HandwritingTask, Network
        from lengthwise_recipes.study.settings import Settings
        from lengthwise_recipes.study.study import run_study
    show.check(arguments)
    settings = Settings(**_read_fields(arguments, Settings))
    network = Network(**_read_fields(arguments, Network))
    batchings = parse_strategies(arguments.strategies, cut=choose_cut(arguments) or lw.FixedSize(16))
    task = HandwritingTask.of(corpus(arguments, count=arguments.count), network, strict=arguments.strict)
    study = run_study(task, batchings, settings, progress=not arguments.quiet, command=command())
    print_table(study, to_stderr=show.fills_output(arguments))
    document = study.as_dict()
    show.write_json(document, arguments.json)
    if arguments.plot is not None:
        from lengthwise_recipes.study.figure import write_figure

        write_figure(document, Path(arguments.plot))
    if arguments.html is not None:
        from lengthwise_recipes.study.report import first_plans, outcomes
        from lengthwise_recipes.study.setups import setups

        tables = outcomes(study, heads(study.summaries), table_rows(study.summaries))
        plans = first_plans(setups(batchings, settings), task.lengths)
        rows = {label: lw.measure(plan, task.lengths).as_dict() for label, plan in plans.items()}
        show.write_html(arguments.html, task.lengths, plans, rows, unit="points", **tables)
    return 0


def _read_fields(arguments: argparse.Namespace, kind: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass that are options of the command."""
    return {field.name: getattr(arguments, field.name) for field in fields(kind) if hasattr(arguments, field.name)}


def corpus(arguments: argparse.Namespace, *, count: int | None) -> Corpus:
    """Reads the samples that `arguments` of `add_data` name."""
    from lengthwise_recipes.handwriting.data import read_corpus

    return read_corpus(
        arguments.data,
        count=count,
        validation_share=arguments.validation_share,
        scripts=arguments.scripts.split(",") if arguments.scripts else (),
        seed=arguments.data_seed,
        strict=arguments.strict,
    )


def heads(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Returns the heads of the table, with steps and waiting if there are several processes."""
    return PARALLEL_HEADS if any(summary.processes > 1 for summary in summaries) else HEADS


def table_rows(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    """Returns the cells under `heads`, one row per strategy."""
    return [tuple(_cells(summary)[head] for head in heads(summaries)) for summary in summaries]


def _cells(summary: Summary) -> dict[str, str]:
    loss = summary.validation_loss
    return {
        "strategy": summary.strategy.replace(f", {summary.processes} ", f"\n  {summary.processes} "),
        "useful\nframes/s": f"{summary.useful_frames_per_second:,.0f}",
        "padding": show.percent(summary.padding_share),
        "s per\nepoch": f"{summary.seconds_per_epoch:.2f}",
        "of the\nfirst": show.percent(summary.share_of_first_seconds, 0),
        "steps": f"{summary.steps:,.0f}",
        "waiting": show.percent(summary.straggler_waste) if summary.processes > 1 else "",
        "valid.\nloss": _with_spread(loss.mean, loss.least, loss.greatest),
        "CER": show.percent(summary.metrics["character_error_rate"].mean),
    }


def print_table(study: Study, *, to_stderr: bool) -> None:
    """Prints the summaries and the notes below them."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, head in enumerate(heads(study.summaries)):
        table.add_column(head, justify="right" if place else "left", no_wrap=True)
    for cells in table_rows(study.summaries):
        table.add_row(*cells)
    console = Console(stderr=to_stderr)
    console.print(table)
    for line in _notes(study):
        console.print(line, highlight=False, markup=False)


def _notes(study: Study) -> Iterator[str]:
    """Yields the paragraphs below the table."""
    from lengthwise_recipes.study.report import doubt_losses

    skipped: Any = study.data["skipped"]
    advice: Any = study.data["advice"]
    if any(summary.processes > 1 for summary in study.summaries):
        yield PARALLEL_NOTE
    yield (
        f"{study.data['train_samples']} samples to learn from, {study.data['validation_samples']} to judge by: "
        f"{study.data['name']}; {study.data['split']}; {len(skipped)} skipped."
    )
    yield (
        "Frames are points of the pen; CER is the character error rate; validation loss is in nats per symbol, after "
        "the last epoch: the mean over seeds, below it the least and the greatest where there are several."
    )
    seeds: Any = study.settings["seeds"]
    if doubt := doubt_losses(seeds):
        yield f"{doubt} --seeds 5 shows how far losses spread."
    if study.peak_bytes:
        peaks = ", ".join(f"{label} {size / 1e6:.1f}" for label, size in study.peak_bytes.items())
        yield f"The most memory that a step takes, in MB: {peaks}."
    yield from (_write_noise(row) for row in study.rows if "length_share" in row.metrics)
    yield from (f"skipped: {line}" for line in skipped[:5])
    yield from advice


def _write_noise(row: EpochRow) -> str:
    noise = row.metrics
    return (
        f"{row.strategy}, seed {row.seed}, after epoch {row.epoch}: length explains "
        f"{show.percent(noise['length_share'])} (± {show.percent(noise['length_share_error'])}) of the variance of a "
        f"gradient; a step varies {noise['variance_ratio']:.2f} (± {noise['variance_ratio_error']:.2f}) times as much "
        "as a random one."
    )


def add_data(parser: argparse.ArgumentParser, *, count: str) -> None:
    """Adds the options that `corpus` reads; `count` is the default number of samples, in words."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--data",
        type=Input,
        metavar="PATH",
        help="an .npz of pen-drawn characters, a UNIPEN file, or a folder of InkML or UNIPEN; by default "
        "generated lines",
    )
    group.add_argument("--count", type=int, help=f"lines or words, train and validation together ({count})")
    group.add_argument("--validation-share", type=float, default=0.05, help="share kept for validation (%(default)s)")
    group.add_argument("--scripts", metavar="A,B", help="of an .npz: use these scripts alone")
    group.add_argument("--data-seed", type=int, default=0, help="seed of the lines, words or files (%(default)s)")
    group.add_argument(
        "--strict", action="store_true", help="refuse unusable files and samples in place of skipping them"
    )


def _add_network(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network and training")
    group.add_argument("--epochs", type=int, default=8, help="epochs of each run (%(default)s)")
    group.add_argument("--seeds", type=int, default=1, help="runs of each strategy (%(default)s)")
    group.add_argument("--hidden", type=int, default=64, help="LSTM cells of each direction (%(default)s)")
    group.add_argument("--layers", type=int, default=2, help="bidirectional layers (%(default)s)")
    group.add_argument("--stack", type=int, default=4, help="points joined to one frame (%(default)s)")
    group.add_argument("--dropout", type=float, default=0.0, help="share of outputs dropped in training (%(default)s)")
    group.add_argument("--packed", action="store_true", help="skip the padding with PackedSequence, for comparison")
    group.add_argument("--optimizer", choices=("adam", "adadelta"), default="adam", help="(%(default)s)")
    group.add_argument("--learning-rate", type=float, help="(0.01 for adam, 1.0 for adadelta)")
    add_machine(group)
    group.add_argument("--memory", action="store_true", help="measure the most memory that a step takes")
    group.add_argument(
        "--length-share",
        type=wholes,
        default=(),
        metavar="EPOCH,...",
        help="after these epochs measure how much of the gradient's noise goes with length",
    )


def _add_processes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several processes")
    group.add_argument(
        "--processes", type=wholes, default=(1,), metavar="N,M,...", help="numbers of processes, one run for each (1)"
    )
    group.add_argument(
        "--averaging",
        type=lambda text: tuple(text.split(",")),
        default=("parameter", "gradient"),
        metavar="WAY,...",
        help="parameter: after each epoch; gradient: in each step (parameter,gradient)",
    )
    group.add_argument(
        "--alpha", type=float, default=1.0, help="parameter averaging: how far to the mean (%(default)s)"
    )
    group.add_argument("--beta", type=float, default=1e-6, help="parameter averaging: decay of an epoch (%(default)s)")


def _with_spread(mean: float, least: float, greatest: float) -> str:
    return f"{mean:.3f}" if least == greatest else f"{mean:.3f}\n{least:.2f}–{greatest:.2f}"
