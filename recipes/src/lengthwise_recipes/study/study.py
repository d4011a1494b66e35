"""Trains one task under many batchings, with the same first weights and equally many epochs.

task = HandwritingTask.of(read_corpus(None, count=1200))
orders = {"random": lw.Shuffled(), "ours": lw.MaxEntropy(padding=0.05)}
batchings = {name: lw.Batching(cut=lw.FixedSize(16), order=order) for name, order in orders.items()}
study = run_study(task, batchings, Settings(epochs=8, processes=(1, 2)))
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise_recipes.record import now, processor_name
from lengthwise_recipes.study.checkpoints import Checkpoints
from lengthwise_recipes.study.parallel import on_ranks
from lengthwise_recipes.study.results import EpochRow, Finding, Peak, RunRow, Study, Timed, summarise
from lengthwise_recipes.study.runs import run_name
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup, setups
from lengthwise_recipes.study.task import Task
from lengthwise_recipes.study.training import train


def run_study(
    task: Task,
    batchings: Mapping[str, lw.Batching | Setup],
    settings: Settings,
    *,
    progress: bool = False,
    command: str = "",
    checkpoints: Path | None = None,
) -> Study:
    """Trains the network of a task under every batching; returns times, losses and metrics.

    With more than one process it starts a process for each rank, and rank 0 does the runs of one process. A script must
    then call it under `if __name__ == "__main__":`.

    Args:
        task: The data and the network.
        batchings: Label to batching; times are compared with those of the first. A batching is trained on each of
            `settings.processes`, a `Setup` on its own number of processes.
        settings: Settings of all runs.
        progress: Show a bar on standard error.
        command: The command line, for the record.
        checkpoints: A folder for the state of every run after each epoch. An interrupted study continues from there.
            Seeds, `memory`, `timed` and `length_share` may change, and epochs may grow; all else must be the same.

    Returns:
        The study. On one CPU with the same number of threads, the same arguments give the same losses, bit by bit. For
        that it sets the global seed and the number of threads of torch.

    Raises:
        ValueError: There is no batching, one does not suit the lengths, or one cuts chunks and the task needs whole
            sequences. Or `checkpoints` has another study, or more epochs.
        ChildProcessError: One of several processes ended early.
    """
    all_setups = setups(batchings, settings)
    for setup in all_setups:  # errors of planning appear here, not in another process
        lw.make_plan(task.lengths, setup.batching, world_size=setup.processes)
        if settings.length_share and setup.batching.chunks is not None:
            remedy = "Leave one of the two out: the gradients are those of whole sequences."
            raise value_error("length_share", "left out with chunks", settings.length_share, remedy)
    checkpoint_folder = None if checkpoints is None else _claim(checkpoints, all_setups, settings, task)
    results: list[Finding] = []
    epochs = settings.seeds * settings.epochs * len(all_setups)
    # No bar without a terminal, for example in the log of a job.
    with (
        tqdm(total=epochs, unit="epoch", disable=None if progress else True) as bar,
        closing(_findings(task, all_setups, settings, checkpoint_folder)) as findings,
    ):
        for finding in findings:
            results.append(finding)
            if isinstance(finding, EpochRow):
                bar.set_postfix_str(f"{finding.strategy} epoch {finding.epoch}: loss {finding.validation_loss:.3f}")
                bar.update()
    return _study(task, all_setups, settings, results, command)


def _study(
    task: Task, all_setups: Sequence[Setup], settings: Settings, findings: Sequence[Finding], command: str
) -> Study:
    places = {setup.label: place for place, setup in enumerate(all_setups)}
    in_order = sorted(findings, key=lambda finding: places[finding.strategy])  # each round has another order
    rows = sorted((row for row in in_order if isinstance(row, EpochRow)), key=lambda row: (row.seed, row.epoch))
    tests = sorted((row for row in in_order if isinstance(row, RunRow)), key=lambda row: row.seed)
    peaks = {finding.strategy: finding.bytes for finding in findings if isinstance(finding, Peak)}
    data = dict(task.describe())
    network: Any = data.get("network", {})
    return Study(
        rows=tuple(rows),
        summaries=summarise(rows, tests, peaks),
        settings=dict(network) | dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        strategies={setup.label: setup.as_dict() for setup in all_setups},
        data=data,
        machine=describe_machine(settings),
        date=now(),
        command=command,
        tests=tuple(tests),
        peak_bytes=peaks,
        timed=tuple(finding.row for finding in in_order if isinstance(finding, Timed)),
    )


def describe_machine(settings: Settings) -> dict[str, object]:
    """Returns system, processor, versions and device; `device_name` is empty on a CPU."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": processor_name(),
        "torch": torch.__version__,
        "threads": settings.threads,
        "device": settings.device,
        "device_name": torch.cuda.get_device_name() if settings.device == "cuda" else "",
    }


def _claim(folder: Path, all_setups: Sequence[Setup], settings: Settings, task: Task) -> Checkpoints:
    """Returns the checkpoints in a folder, after a check that they are of this study."""
    changeable = ("epochs", "seeds", "memory", "timed", "length_share")
    fixed = {name: value for name, value in dataclasses.asdict(settings).items() if name not in changeable}
    checkpoints = Checkpoints(folder)
    strategies = {setup.label: setup.as_dict() for setup in all_setups}
    checkpoints.claim({"data": dict(task.describe()), "settings": fixed, "strategies": strategies})
    names = [run_name(setup, seed) for setup in all_setups for seed in range(settings.seeds)]
    trained_epochs = max(max(checkpoints.epochs(name, 0), default=0) for name in names)
    if settings.epochs < trained_epochs:
        remedy = "Give at least this number, or name another folder."
        raise value_error("epochs", f"at least {trained_epochs}, which the checkpoints hold", settings.epochs, remedy)
    return checkpoints


def _findings(
    task: Task, all_setups: Sequence[Setup], settings: Settings, checkpoints: Checkpoints | None
) -> Generator[Finding]:
    work = partial(train, task, all_setups, settings, checkpoints)
    sizes = sorted({setup.processes for setup in all_setups})
    return work() if sizes == [1] else on_ranks(work, sizes, device=settings.device)
