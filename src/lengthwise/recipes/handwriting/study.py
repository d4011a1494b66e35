"""The study: one network, one data set, many batchings; the same first weights and the same epochs for each.

corpus = read_corpus(None, count=1200)
batchings = lw.strategies("random,max-entropy:0.05", cut=lw.FixedSize(16))
study = run_study(corpus, batchings, Settings(epochs=8, processes=(1, 2)))
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

import lengthwise as lw
from lengthwise.recipes.handwriting.checkpoints import Checkpoints
from lengthwise.recipes.handwriting.data import Corpus
from lengthwise.recipes.handwriting.parallel import ALONE, Place, on_ranks
from lengthwise.recipes.handwriting.prepared import learnable, prepare_corpus
from lengthwise.recipes.handwriting.results import EpochRow, Study, describe_machine, now, summarise
from lengthwise.recipes.handwriting.settings import Settings
from lengthwise.recipes.handwriting.setups import Setup, setups
from lengthwise.recipes.handwriting.training import train


def run_study(
    corpus: Corpus,
    batchings: Mapping[str, lw.Batching],
    settings: Settings,
    *,
    progress: bool = False,
    command: str = "",
    checkpoints: Path | None = None,
) -> Study:
    """Trains the network under every batching and returns what it cost and what came of it.

    Where `settings.processes` names more than one, processes are started for all ranks, and runs of one process are
    rank 0's: a script that calls this must then do so under `if __name__ == "__main__":`.

    Args:
        corpus: Train and validation samples.
        batchings: Label to batching; the first is the one that others' time is compared with.
        settings: What all runs share.
        progress: Show a bar on standard error.
        command: How the study was called, for the record.
        checkpoints: A folder where every run keeps its state after each epoch. A study that was interrupted goes on
            from there; more epochs or seeds may be asked for, all else must be the same.

    Returns:
        The study. On one CPU with one number of threads the same arguments give the same losses again, bit by bit; to
        that end torch's global seed and number of threads are set.

    Raises:
        ValueError: Where there is no batching, one that cuts sequences into chunks or one that does not suit the
            lengths, or, if `settings.strict`, where a sequence is too short for its text; and where `checkpoints` are
            those of another study.
        ChildProcessError: Where one of several processes ends before its work does.
    """
    kept, skipped = learnable(corpus, stack=settings.stack, strict=settings.strict)
    planned = setups(batchings, settings)
    for setup in planned:  # what cannot be planned is refused here, not in another process
        lw.make_plan(kept.train.lengths, setup.batching, world_size=setup.processes)
    held = None if checkpoints is None else _claimed(checkpoints, planned, settings, kept)
    rows: list[EpochRow] = []
    epochs = settings.seeds * settings.epochs * len(planned)
    with (
        tqdm(total=epochs, unit="epoch", disable=not progress) as bar,
        closing(_rows(planned, settings, kept, held)) as found,
    ):
        for row in found:
            rows.append(row)
            bar.set_postfix_str(f"{row.strategy} epoch {row.epoch}: validation loss {row.validation_loss:.3f}")
            bar.update()
    return Study(
        rows=tuple(rows),
        summaries=summarise(rows),
        settings=dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        strategies=_strategies(planned),
        data=dataclasses.replace(kept, skipped=(*kept.skipped, *skipped)).as_dict(),
        machine=_machine(settings),
        date=now(),
        command=command,
    )


def _strategies(planned: Sequence[Setup]) -> dict[str, object]:
    return {setup.label: json.loads(setup.batching.to_json()) for setup in planned}


def _claimed(folder: Path, planned: Sequence[Setup], settings: Settings, corpus: Corpus) -> Checkpoints:
    """The checkpoints in a folder, which is this study's: epochs and seeds aside, a run is what these say."""
    fixed = {name: value for name, value in dataclasses.asdict(settings).items() if name not in ("epochs", "seeds")}
    checkpoints = Checkpoints(folder)
    checkpoints.claim({"data": corpus.as_dict(), "settings": fixed, "strategies": _strategies(planned)})
    return checkpoints


def _rows(
    planned: Sequence[Setup], settings: Settings, corpus: Corpus, checkpoints: Checkpoints | None
) -> Generator[EpochRow]:
    work = partial(_work, planned, settings, corpus, checkpoints)
    if max(settings.processes) == 1:
        return work(ALONE)
    return on_ranks(work, settings.processes, device=settings.device)


def _work(
    planned: Sequence[Setup], settings: Settings, corpus: Corpus, checkpoints: Checkpoints | None, place: Place
) -> Generator[EpochRow]:
    # Each rank makes its own tensors: arrays are what can be sent to it.
    return train(planned, settings, prepare_corpus(corpus, settings.stack), place, checkpoints)


def _machine(settings: Settings) -> dict[str, object]:
    name = torch.cuda.get_device_name() if settings.device == "cuda" else ""
    return describe_machine(
        torch_version=torch.__version__, threads=settings.threads, device=settings.device, device_name=name
    )
