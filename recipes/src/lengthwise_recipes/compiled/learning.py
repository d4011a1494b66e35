"""The epochs of a run: planned, compiled for where a shape is new, trained and timed. Either framework's learner fits.

shapes   [k, 2]   rows and padded length
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw


class Learner(Protocol):
    """A model with its weights and one compilation for each shape it has met."""

    @property
    def compilations(self) -> int: ...

    def compile(self, shapes: NDArray[np.int64]) -> None:
        """Compiles a training step for those of `shapes` that are new; the weights stay as they are."""
        ...

    def train(self, plan: lw.Plan, shapes: NDArray[np.int64]) -> float:
        """Takes the steps of a plan, compiling nothing; the mean loss of its sequences, nats a symbol."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow:
    """One epoch.

    Attributes:
        epoch: From 0 on.
        loss: Mean training loss, nats a symbol.
        seconds: Of the steps.
        compile_seconds: Of what was compiled before them.
        compilations: Of the run so far.
        computed_frames: Rows x padded length over all batches, filled rows too.
        padding_share: Share of these that is no frame of a sequence.
    """

    epoch: int
    loss: float
    seconds: float
    compile_seconds: float
    compilations: int
    computed_frames: int
    padding_share: float


def run_epochs(
    learner: Learner,
    lengths: NDArray[np.int64],
    batching: lw.Batching,
    *,
    epochs: int,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[EpochRow]:
    """Trains epoch by epoch, each on a plan of its own; `clock` tells the seconds."""
    for epoch in range(epochs):
        plan = lw.make_plan(lengths, batching, seed=seed, epoch=epoch)
        shapes = find_shapes(lengths, batching, plan)
        start = clock()
        learner.compile(shapes)
        compiled = clock()
        loss = learner.train(plan, shapes)
        trained = clock()
        computed = computed_frames(plan, shapes)
        yield EpochRow(
            epoch=epoch,
            loss=loss,
            seconds=trained - compiled,
            compile_seconds=compiled - start,
            compilations=learner.compilations,
            computed_frames=computed,
            padding_share=1 - int(lengths[plan.sequences].sum()) / computed,
        )


def find_shapes(lengths: NDArray[np.int64], batching: lw.Batching, plan: lw.Plan) -> NDArray[np.int64]:
    """The shapes of every plan where batches are padded to edges; else one for each padded length of this plan."""
    if getattr(batching.order, "pad_to_edge", False):
        return lw.batch_shapes(lengths, batching)
    padded_lengths = np.unique(plan.padded_lengths[:, 0])
    return np.stack([np.full(len(padded_lengths), plan.batch_sizes.max()), padded_lengths], axis=1)


def computed_frames(plan: lw.Plan, shapes: NDArray[np.int64]) -> int:
    """Rows x padded length over the batches that are taken.

    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Bucketed(edges=(3, 9), pad_to_edge=True))
    >>> computed_frames(lw.make_plan([2, 3, 1, 8], batching), np.array([[2, 3], [1, 9]]))  # 2 x 3, 2 x 3, 1 x 9
    21
    """
    taken = shapes[np.searchsorted(shapes[:, 1], plan.padded_lengths[plan.grid.reshape(-1), 0])]
    return int(taken.prod(axis=1).sum())
