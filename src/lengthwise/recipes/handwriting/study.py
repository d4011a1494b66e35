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

import torch
from tqdm import tqdm

import lengthwise as lw
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

    Returns:
        The study. On one CPU with one number of threads the same arguments give the same losses again, bit by bit; to
        that end torch's global seed and number of threads are set.

    Raises:
        ValueError: Where there is no batching, one that cuts sequences into chunks or one that does not suit the
            lengths, or, if `settings.strict`, where a sequence is too short for its text.
        ChildProcessError: Where one of several processes ends before its work does.
    """
    kept, skipped = learnable(corpus, stack=settings.stack, strict=settings.strict)
    planned = setups(batchings, settings)
    for setup in planned:  # what cannot be planned is refused here, not in another process
        lw.make_plan(kept.train.lengths, setup.batching, world_size=setup.processes)
    rows: list[EpochRow] = []
    epochs = settings.seeds * settings.epochs * len(planned)
    with (
        tqdm(total=epochs, unit="epoch", disable=not progress) as bar,
        closing(_rows(planned, settings, kept)) as found,
    ):
        for row in found:
            rows.append(row)
            bar.set_postfix_str(f"{row.strategy} epoch {row.epoch}: validation loss {row.validation_loss:.3f}")
            bar.update()
    return Study(
        rows=tuple(rows),
        summaries=summarise(rows),
        settings=dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        strategies={setup.label: json.loads(setup.batching.to_json()) for setup in planned},
        data=dataclasses.replace(kept, skipped=(*kept.skipped, *skipped)).as_dict(),
        machine=_machine(settings),
        date=now(),
        command=command,
    )


def _rows(planned: Sequence[Setup], settings: Settings, corpus: Corpus) -> Generator[EpochRow]:
    work = partial(_work, planned, settings, corpus)
    if max(settings.processes) == 1:
        return work(ALONE)
    return on_ranks(work, settings.processes, device=settings.device)


def _work(planned: Sequence[Setup], settings: Settings, corpus: Corpus, place: Place) -> Generator[EpochRow]:
    # Each rank makes its own tensors: arrays are what can be sent to it.
    return train(planned, settings, prepare_corpus(corpus, settings.stack), place)


def _machine(settings: Settings) -> dict[str, object]:
    name = torch.cuda.get_device_name() if settings.device == "cuda" else ""
    return describe_machine(
        torch_version=torch.__version__, threads=settings.threads, device=settings.device, device_name=name
    )
