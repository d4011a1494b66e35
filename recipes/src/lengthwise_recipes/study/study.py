"""The study: one task, many batchings; the same first weights and the same epochs for each.

task = HandwritingTask.of(read_corpus(None, count=1200))
orders = {"random": lw.Shuffled(), "ours": lw.MaxEntropy(padding=0.05)}
batchings = {name: lw.Batching(cut=lw.FixedSize(16), order=order) for name, order in orders.items()}
study = run_study(task, batchings, Settings(epochs=8, processes=(1, 2)))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise_recipes.study.checkpoints import Checkpoints
from lengthwise_recipes.study.machine import describe_machine, now
from lengthwise_recipes.study.parallel import on_ranks
from lengthwise_recipes.study.results import EpochRow, Finding, Peak, RunRow, Study, summarise
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
    """Trains the task's network under every batching and returns what it cost and what came of it.

    Where more than one process is asked for, processes are started for all ranks, and runs of one process are rank
    0's: a script that calls this must then do so under `if __name__ == "__main__":`.

    Args:
        task: The data and the network.
        batchings: Label to batching; the first is the one that others' time is compared with. A batching is trained on
            each of `settings.processes`, a `Setup` as it says itself.
        settings: What all runs share.
        progress: Show a bar on standard error.
        command: How the study was called, for the record.
        checkpoints: A folder where every run keeps its state after each epoch. A study that was interrupted goes on
            from there; more epochs or seeds may be asked for, all else must be the same.

    Returns:
        The study. On one CPU with one number of threads the same arguments give the same losses again, bit by bit; to
        that end torch's global seed and number of threads are set.

    Raises:
        ValueError: Where there is no batching, one that does not suit the lengths, or one of chunks for a task that
            needs whole sequences; and where `checkpoints` are those of another study, or of more epochs.
        ChildProcessError: Where one of several processes ends before its work does.
    """
    planned = setups(batchings, settings)
    for setup in planned:  # what cannot be planned is refused here, not in another process
        lw.make_plan(task.lengths, setup.batching, world_size=setup.processes)
        if settings.length_share and setup.batching.chunks is not None:
            remedy = "Leave one of the two out: the gradients are those of whole sequences."
            raise value_error("length_share", "left out with chunks", settings.length_share, remedy)
    held = None if checkpoints is None else _claim(checkpoints, planned, settings, task)
    found: list[Finding] = []
    epochs = settings.seeds * settings.epochs * len(planned)
    # Without a terminal, in the log of a job say, there is no bar.
    with (
        tqdm(total=epochs, unit="epoch", disable=None if progress else True) as bar,
        closing(_findings(task, planned, settings, held)) as findings,
    ):
        for finding in findings:
            found.append(finding)
            if isinstance(finding, EpochRow):
                bar.set_postfix_str(f"{finding.strategy} epoch {finding.epoch}: loss {finding.validation_loss:.3f}")
                bar.update()
    return _study(task, planned, settings, found, command)


def _study(task: Task, planned: Sequence[Setup], settings: Settings, found: Sequence[Finding], command: str) -> Study:
    places = {setup.label: place for place, setup in enumerate(planned)}
    planned_first = sorted(found, key=lambda finding: places[finding.strategy])  # rounds have orders of their own
    rows = sorted((each for each in planned_first if isinstance(each, EpochRow)), key=lambda row: (row.seed, row.epoch))
    tests = sorted((each for each in planned_first if isinstance(each, RunRow)), key=lambda row: row.seed)
    peaks = {finding.strategy: finding.bytes for finding in found if isinstance(finding, Peak)}
    data = dict(task.describe())
    network: Any = data.get("network", {})
    return Study(
        rows=tuple(rows),
        summaries=summarise(rows, tests, peaks),
        settings=dict(network) | dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        strategies={setup.label: setup.as_dict() for setup in planned},
        data=data,
        machine=describe_machine(settings),
        date=now(),
        command=command,
        tests=tuple(tests),
        peak_bytes=peaks,
    )


def _claim(folder: Path, planned: Sequence[Setup], settings: Settings, task: Task) -> Checkpoints:
    """The checkpoints in a folder, which is this study's: epochs, seeds and memory aside, a run is what these say."""
    free = ("epochs", "seeds", "memory", "length_share")
    fixed = {name: value for name, value in dataclasses.asdict(settings).items() if name not in free}
    checkpoints = Checkpoints(folder)
    strategies = {setup.label: setup.as_dict() for setup in planned}
    checkpoints.claim({"data": dict(task.describe()), "settings": fixed, "strategies": strategies})
    names = [run_name(setup, seed) for setup in planned for seed in range(settings.seeds)]
    done = max(max(checkpoints.epochs(name, 0), default=0) for name in names)
    if settings.epochs < done:
        remedy = "Give as many, or name another folder."
        raise value_error("epochs", f"at least {done}, which the checkpoints hold", settings.epochs, remedy)
    return checkpoints


def _findings(
    task: Task, planned: Sequence[Setup], settings: Settings, checkpoints: Checkpoints | None
) -> Generator[Finding]:
    work = partial(train, task, planned, settings, checkpoints)
    sizes = sorted({setup.processes for setup in planned})
    return work() if sizes == [1] else on_ranks(work, sizes, device=settings.device)
