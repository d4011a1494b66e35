"""Which of the ranks this process is, and whether all of them plan alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import distributed

from lengthwise import _checks
from lengthwise.plan import PlanMismatchError


def running() -> bool:
    """Whether torch.distributed has been started in this process."""
    return distributed.is_available() and distributed.is_initialized()


def check_place(rank: int | None, world_size: int | None) -> None:
    """Refuses a rank without a world size, and a rank beyond it."""
    if (rank is None) != (world_size is None):
        given = f"rank={rank}, world_size={world_size}"
        remedy = "Give both, or neither for torch.distributed's own."
        raise _checks.value_error("rank", "given together with world_size", given, remedy)
    if world_size is not None:
        _checks.check_whole("world_size", world_size, minimum=1, remedy="Give the number of ranks.")
        remedy = "Ranks count from 0 to world_size - 1."
        _checks.check_whole("rank", rank, minimum=0, maximum=world_size - 1, remedy=remedy)


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and world size as given, or torch.distributed's where it is running: every rank must take its own share."""
    if rank is not None and world_size is not None:
        return rank, world_size
    return (distributed.get_rank(), distributed.get_world_size()) if running() else (0, 1)


def gathered(value: Any) -> list[Any]:
    """`value` of every rank, on every rank: a collective."""
    values: list[Any] = [value]
    if running():
        values = [None] * distributed.get_world_size()
        distributed.all_gather_object(values, value)
    return values


def compare(facts: Mapping[str, object]) -> None:
    """Refuses, on every rank alike, ranks that do not say the same of their plan: a collective.

    Raises:
        PlanMismatchError: The sentence names the first fact, the rank, and what it and rank 0 say.
    """
    first, *others = gathered(dict(facts))
    for rank, other in enumerate(others, start=1):
        for name, value in first.items():
            if other[name] != value:
                remedy = "Give every rank the same lengths, batching, seed, micro_batches and checkpoint."
                text = _checks.sentence(name, f"what rank 0 has, {value!r}", other[name], remedy, at=f"rank {rank}")
                raise PlanMismatchError(text)
