"""How the benchmark of other systems calls Lengthwise: by its defaults, and by the settings of docs/switch.md."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

with suppress(ImportError):  # the environments of other systems are without it
    import lengthwise as lw


def _planned(run: Any, epoch: int, **choices: Any) -> list[Any]:
    world = {"world_size": run.ranks, "micro_batches": run.micro_batches}
    plan = lw.make_plan(run.sides, lw.Batching(**choices), epoch=epoch, **world)
    return [list(plan.batches(rank)) for rank in range(run.ranks)]


def _packed(run: Any, epoch: int, **options: Any) -> list[Any]:
    return _planned(run, epoch, cut=lw.Rows(run.cap, **options), cost=lw.Quadratic(quadratic=0.001))


def lengthwise(run: Any, epoch: int) -> list[Any]:
    """The default."""
    return _planned(run, epoch, budget=run.cap)


def lengthwise_attention(run: Any, epoch: int) -> list[Any]:
    """The default, which balances attention."""
    return _planned(run, epoch, budget=run.cap, balance=lw.Quadratic(quadratic=0.001))


def lengthwise_rows(run: Any, epoch: int) -> list[Any]:
    """Packed rows, filled from a pool of 1,024 sequences, or of as many as there are `buckets`."""
    return _packed(run, epoch, pool=run.buckets or 1_024)


def lengthwise_best_fit(run: Any, epoch: int) -> list[Any]:
    """Packed rows, filled by best fit."""
    return _packed(run, epoch, by="best-fit")


def _like(peer: str, run: Any, epoch: int) -> list[Any]:
    """The nearest settings to those of a system."""
    count, steps = {"cut": lw.FixedSize(run.size)}, {"order": lw.Shuffled(), "deal": lw.RandomSteps()}
    windows = {"order": lw.Windowed(50 * run.size * run.micro_batches), "deal": lw.InTurn(), "arrange": lw.InOrder()}
    choices: dict[str, dict[str, Any]] = {
        "fairseq": {"order": lw.Sorted()},
        "lhotse": {"order": lw.Bucketed(buckets=30)},
        "speechbrain": {"order": lw.Bucketed(buckets=100)},
        "tf_data": {"order": lw.Bucketed(edges=tuple(run.quantiles.tolist()))},
        "group_by_length": count | windows,
        "batch_rebalance": count | steps | {"cost": lw.Quadratic(quadratic=0.001)},
    }
    return _planned(run, epoch, **{"cut": lw.Budget(run.cap)} | choices[peer])


CALLS: dict[str, Callable[[Any, int], Any]] = {
    call.__name__: call for call in (lengthwise, lengthwise_attention, lengthwise_rows, lengthwise_best_fit)
}
LIKE = ("fairseq", "lhotse", "speechbrain", "tf_data", "group_by_length", "batch_rebalance")
CALLS |= {f"like_{peer}": partial(_like, peer) for peer in LIKE}
