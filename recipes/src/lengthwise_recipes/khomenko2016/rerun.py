"""A rerun of Khomenko et al. 2016: LSTM and CTC on online handwriting, by buckets and by processes.

    lengthwise reproduce khomenko2016 --small

One study with ADADELTA; all runs start from the same weights, and 5 % of the samples are for validation.
- It trains with Q buckets for each Q of `BUCKETS`, on one process and on several. Several processes average their
  parameters after each epoch by equation 3 (figure 4).
- Figure 3 has one process, figure 5 has `BUCKETS_OF_PROCESSES` buckets.
- Every batch is padded to the edge of its bucket: the paper compiles one model for each bucket. Shorter buckets come
  first.

Deviations:
- The paper does not say its network, batch size or epochs, and its data are not public. The sizes below are ours.
- Four points of the pen are joined to a frame, and gradients are clipped to a norm of 1.
- The paper validates on a random 5 % of the samples. Ours are of every length, and words of joined characters are by
  other drawers than those trained on.
- "random" is not in the paper: one process, no buckets, and each batch padded to its longest sequence, as is usual
  today. "Q = 6 shuffled" is not in the paper either: one process, the batches of Q = 6 in random order. It shows what
  the order, shorter buckets first, does to the loss.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise_recipes.compiled.data import training_words
from lengthwise_recipes.compiled.learning import time_buckets
from lengthwise_recipes.handwriting.data import Corpus
from lengthwise_recipes.handwriting.task import HandwritingTask, Network
from lengthwise_recipes.khomenko2016.bounds import SEQUENCES, bound_of, families, sigma_that_allows
from lengthwise_recipes.khomenko2016.claims import BUCKETS, BUCKETS_OF_PROCESSES, PAPER_SPEED_UP, SHUFFLED, label
from lengthwise_recipes.study.results import Study
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup
from lengthwise_recipes.study.study import run_study

SCHEMA = "lengthwise-khomenko2016-3"


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a rerun. `count` is train and validation samples together; the first of `processes` is 1.

    `timed`: see `Settings`. `compiled` are the epochs to time with one model of JAX for each bucket, compiled and kept,
    as the paper's were.
    """

    name: str
    count: int
    epochs: int
    seeds: int
    hidden: int
    layers: int
    batch_size: int
    processes: tuple[int, ...] = (1, 2, 4)
    timed: int = 0
    compiled: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.processes[:1] != (1,):
            remedy = "Give 1,2,4, for example: all are compared with 1."
            raise value_error("processes", "1 and then others", self.processes, remedy)


# Each of two processes takes half the steps in an epoch, and has learnt little after 30 epochs.
SMALL = Size(name="small", count=400, epochs=80, seeds=3, hidden=64, layers=1, batch_size=16, processes=(1, 2))
# About 1 GB of strokes, as in the paper.
FULL = Size(name="full", count=300_000, epochs=30, seeds=3, hidden=256, layers=2, batch_size=64, device="cuda")


def reproduce(
    corpus: Corpus, size: Size, *, folder: Path | None = None, progress: bool = False, command: str = ""
) -> dict[str, Any]:
    """Trains every run.

    Args:
        corpus: Train and validation samples.
        size: `SMALL`, `FULL` or your own.
        folder: Stores the checkpoints, from which an interrupted rerun continues.
        progress, command: See `run_study`.

    Returns:
        The document, ready for JSON: bounds, histogram of the train lengths, and the study. `claims.claims_of`
        judges it.

    Raises:
        ValueError: As `run_study` does.
    """
    task = HandwritingTask.of(corpus, Network(hidden=size.hidden, layers=size.layers))
    bucketed = batchings(size)
    shuffled = dataclasses.replace(bucketed[label(BUCKETS_OF_PROCESSES)], arrange=lw.ShuffledSteps())
    unbucketed = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(size.batch_size))
    setups = {**bucketed, SHUFFLED: Setup(batching=shuffled), "random": Setup(batching=unbucketed)}
    study = run_study(task, setups, settings(size), progress=progress, command=command, checkpoints=folder)
    document = _document(task.lengths, size, study)
    if size.compiled:
        document["compiled"] = _time_compiled(corpus, size, folder)
    return document


def _time_compiled(corpus: Corpus, size: Size, folder: Path | None) -> dict[str, Any]:
    from lengthwise_recipes.compiled.jax_lstm import JaxLearner, keep_executables

    if folder is not None:
        keep_executables(folder / "compiled")
    words = training_words(corpus)
    make = partial(JaxLearner, words, hidden=size.hidden, layers=size.layers)
    return time_buckets(make, words.lengths, BUCKETS, batch_size=size.batch_size, epochs=size.compiled)


def settings(size: Size) -> Settings:
    """Returns the settings that all runs share; raises a ValueError as `Settings` does."""
    alone = Settings(optimizer="adadelta", epochs=size.epochs, seeds=size.seeds, timed=size.timed, device=size.device)
    if size.processes == (1,):
        return alone
    return dataclasses.replace(alone, processes=size.processes, averaging=("parameter",))


def batchings(size: Size) -> dict[str, lw.Batching]:
    """Returns the paper's batching for each number of buckets."""
    return {
        label(buckets): lw.Batching(
            order=lw.Bucketed(buckets=buckets, pad_to_edge=True),
            cut=lw.FixedSize(size.batch_size),
            arrange=lw.ShortestFirst(),
        )
        for buckets in BUCKETS
    }


def _document(lengths: NDArray[np.int64], size: Size, study: Study) -> dict[str, Any]:
    values, counts = np.unique(lengths, return_counts=True)
    return {
        "schema": SCHEMA,
        **study.origin,
        "machine": {**study.machine, "cores": os.cpu_count()},
        "size": dataclasses.asdict(size),
        "edges": {str(buckets): lw.optimal_edges(lengths, buckets).tolist() for buckets in BUCKETS},
        "bounds": _bounds(lengths, str(study.data["name"])),
        "sigma_that_allows_4": round(sigma_that_allows(PAPER_SPEED_UP, buckets=3), 3),
        "sequences_of_families": SEQUENCES,
        "lengths": {"values": values.tolist(), "counts": counts.tolist()},
        "study": study.as_dict(),
    }


def _bounds(lengths: NDArray[np.int64], name: str) -> list[dict[str, Any]]:
    """Returns the bounds of the train lengths, of the examples and of the families, as JSON."""
    samples = {
        f"trained on: {name}": lengths,
        **{f"example {example}": lw.example_lengths(example) for example in ("long-tailed", "speech")},
        **families(),
    }
    return [bound_of(name, sample, BUCKETS) for name, sample in samples.items()]
