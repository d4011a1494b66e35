"""Runs epochs with a `Learner`, in JAX or PyTorch: plans, compiles for new shapes, trains, and takes the times.

shapes   [k, 2]   rows and padded length
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw


class Learner(Protocol):
    """A model with its weights and one compilation per shape."""

    @property
    def compilations(self) -> int: ...

    def compile(self, shapes: NDArray[np.int64]) -> None:
        """Compiles a training step for every new shape in `shapes`; the weights do not change."""
        ...

    def train(self, plan: lw.Plan, shapes: NDArray[np.int64]) -> float:
        """Takes the steps of a plan without compiling; returns the mean loss of its sequences, nats per symbol."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow:
    """One epoch.

    Attributes:
        epoch: From 0 on.
        loss: Mean training loss, nats per symbol.
        seconds: Time of the steps.
        compile_seconds: Time of compiling before the steps.
        compilations: Number of compilations of the run so far.
        computed_frames: Sum of rows x padded length over all batches, with empty rows.
        padding_share: Share of the computed frames that are padding.
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
    """Trains epoch by epoch, each on its own plan; `clock` returns seconds."""
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


def time_buckets(
    make: Callable[[], Learner], lengths: NDArray[np.int64], buckets: Sequence[int], *, batch_size: int, epochs: int
) -> dict[str, dict[str, Any]]:
    """Trains a new learner with each number of buckets, an epoch of each in turn; returns their times as JSON.

    "load_seconds" are those of another learner that compiles the same shapes.
    """
    batchings = [
        lw.Batching(order=lw.Bucketed(buckets=count, pad_to_edge=True), cut=lw.FixedSize(batch_size))
        for count in buckets
    ]
    runs = (run_epochs(make(), lengths, batching, epochs=epochs) for batching in batchings)
    times = {}
    for count, batching, rows in zip(buckets, batchings, zip(*zip(*runs, strict=True), strict=True), strict=True):
        start = time.perf_counter()
        make().compile(lw.batch_shapes(lengths, batching))
        times[str(count)] = {
            "compile_seconds": round(sum(row.compile_seconds for row in rows), 3),
            "load_seconds": round(time.perf_counter() - start, 3),
            "seconds": [round(row.seconds, 3) for row in rows],
        }
    return times


def find_shapes(lengths: NDArray[np.int64], batching: lw.Batching, plan: lw.Plan) -> NDArray[np.int64]:
    """Returns the shapes to compile for a plan.

    If batches are padded to edges, these shapes serve every plan. Otherwise there is one shape for each padded length
    of this plan, with as many rows as the largest batch of the plan.
    """
    if getattr(batching.order, "pad_to_edge", False):
        return lw.batch_shapes(lengths, batching)
    padded_lengths = np.unique(plan.padded_lengths[:, 0])
    return np.stack([np.full(len(padded_lengths), plan.batch_sizes.max()), padded_lengths], axis=1)


def computed_frames(plan: lw.Plan, shapes: NDArray[np.int64]) -> int:
    """Returns the sum of rows x padded length over the batches of a plan.

    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Bucketed(edges=(3, 9), pad_to_edge=True))
    >>> computed_frames(lw.make_plan([2, 3, 1, 8], batching), np.array([[2, 3], [1, 9]]))  # 2 x 3, 2 x 3, 1 x 9
    21
    """
    batch_shapes = shapes[np.searchsorted(shapes[:, 1], plan.padded_lengths[plan.grid.reshape(-1), 0])]
    return int(batch_shapes.prod(axis=1).sum())
