"""The rank of this process, and the check that all ranks have the same plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import distributed
from torch.utils.data import Sampler

from lengthwise import checks
from lengthwise.choices.deal import check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.torch.guard import refuse_second_sharing
from lengthwise.torch.position import check_alike

Value = TypeVar("Value")
Facts = Callable[[], Mapping[str, object]]


class OwnRank:
    """The rank of a sampler or a stream: from its arguments, else the current rank of torch.distributed.

    Args:
        rank: The rank of this process; give both this and `world_size`, or neither.
        world_size: The number of ranks.
        group: The ranks that share out the batches, in place of `rank` and `world_size`.
        remedy: The advice of the error if the ranks' plans differ.
    """

    def __init__(
        self, rank: int | None, world_size: int | None, group: distributed.ProcessGroup | None, *, remedy: str
    ) -> None:
        _check_given(rank, world_size)
        if group is not None:
            rank, world_size = _place_within(group, rank)
        self._given = None if rank is None or world_size is None else (rank, world_size)
        self._group = group
        self._remedy = remedy
        self._compared = False

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the group out of pickles and deep copies, because it belongs to this process."""
        return self.__dict__ | {"_group": None}

    @property
    def is_alone(self) -> bool:
        """Tells if it never communicates: its rank was given without a group."""
        return self._given is not None and self._group is None

    @property
    def rank(self) -> int:
        return self._now()[0]

    @property
    def world_size(self) -> int:
        return self._now()[1]

    def gather(self, value: Value) -> list[Value]:
        """Returns the values of all ranks; a collective of the group, or of all ranks."""
        if self.is_alone or not _is_running():
            return [value]
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, value, group=self._group)
        return values

    def share(self, make: Callable[[], Value]) -> list[Value]:
        """Returns the results of `make` on all ranks; a collective. If it fails on one rank, all ranks raise.

        Raises:
            PlanMismatchError: `make` failed on another rank.
        """
        with self._telling_failure():
            value = make()
        values: list[Any] = self.gather(value)
        for rank, entry in enumerate(values):
            if isinstance(entry, _Failure):
                raise checks.state_error(f"Rank {rank} could not make its plan", entry.reason, PlanMismatchError)
        return values

    @contextmanager
    def alike(self, facts: Facts) -> Iterator[None]:
        """Wraps the making of a plan, after which the ranks compare `facts`; a collective of torch.distributed.

        Raises:
            PlanMismatchError: The facts differ, or another rank could not make its plan.
        """
        with self._telling_failure():
            yield
        self._compare(facts)

    @contextmanager
    def _telling_failure(self) -> Iterator[None]:
        """Reports an error to the other ranks, which would else wait in `gather` for ever."""
        try:
            yield
        except Exception as error:
            self.gather(_Failure(describe_error(error)))
            raise

    def _compare(self, facts: Facts) -> None:
        # Before init_process_group there is no other rank: `check_started` compares later.
        self._compared = _is_running()
        if not self._compared or self.is_alone:
            return
        rank_facts = self.share(lambda: dict(facts()))  # reading the facts may plan a window
        for rank, facts_of_rank in enumerate(rank_facts):
            check_alike(rank_facts[0], facts_of_rank, whose="what rank 0 has", remedy=self._remedy, at=f"rank {rank}")

    def check_started(self, facts: Facts) -> None:
        """Compares the facts of the ranks, unless they were compared before; refuses ranks without a process group."""
        if _is_running() and not self.is_alone and not self._compared:
            self._compare(facts)
        self.check_group()

    def check_group(self) -> None:
        """Refuses ranks without a process group."""
        # torchrun and similar tools set WORLD_SIZE; without a process group each process would be rank 0 of 1.
        if not self.is_alone and not _is_running() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            remedy = "Call torch.distributed.init_process_group first, or give a sampler its rank and world_size."
            state = f"torch.distributed is not started in one of {os.environ['WORLD_SIZE']} processes (WORLD_SIZE)"
            raise checks.state_error(state, remedy)

    def _now(self) -> tuple[int, int]:
        if self._given is not None:
            return self._given
        return (distributed.get_rank(), distributed.get_world_size()) if _is_running() else (0, 1)


def gather_numbers(
    values: ArrayLike, *, group: distributed.ProcessGroup | None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Gathers numbers that each rank has of its own sequences, such as lengths; one collective of torch.distributed.

    Args:
        values: [k] or [k, columns], such as lengths and supervised tokens; another k on each rank, also 0.
        group: The ranks that share the step; by default all.

    Returns:
        The numbers of all ranks, rank after rank: [n] or [n, columns]; and the rank of each: [n].

    Raises:
        ValueError: The values are no numbers of this shape, or ranks have other numbers of columns.
        PlanMismatchError: The values of another rank are wrong. No rank hangs.

    >>> gather_numbers([5, 9])
    (array([5, 9]), array([0, 0]))
    """
    remedy = "Give numbers of the same shape on every rank."

    def read() -> NDArray[Any]:
        array = np.asarray(values)
        if array.ndim not in (1, 2) or (array.size and array.dtype.kind not in "biuf"):
            raise checks.value_error("values", "numbers of shape [k] or [k, columns]", values, remedy)
        return array

    own_rank = OwnRank(None, None, group, remedy=remedy)
    own_rank.check_group()
    arrays = own_rank.share(read)
    ranks = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    filled = [array for array in arrays if len(array)] or arrays[:1]
    if len({array.shape[1:] for array in filled}) > 1:
        raise checks.value_error("values", "of one shape on all ranks", [array.shape for array in filled], remedy)
    return np.concatenate(filled), ranks


class RankSampler(Sampler[list[Any]]):
    """A batch sampler that shares its batches out to ranks."""

    # No attribute `batch_size`: trainers would take it for the size of every batch, and drop the others. No
    # `state_dict`: a loader or trainer would call it, but only `lw.torch.DataLoader` knows the count.

    _own_rank: OwnRank

    @property
    def rank(self) -> int:
        return self._own_rank.rank

    @property
    def world_size(self) -> int:
        return self._own_rank.world_size

    @property
    def drop_last(self) -> bool:
        """False on one rank; raises on several. Accelerate reads it to share the batches out once more."""
        return refuse_second_sharing(self.world_size)


@dataclass(frozen=True)
class _Failure:
    """The error of a rank, which it shares in place of a value."""

    reason: str


def describe_error(error: Exception) -> str:
    """Returns an error as text for the other ranks, with its notes."""
    return "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def _is_running() -> bool:
    """Tells if torch.distributed has been started in this process."""
    return distributed.is_available() and distributed.is_initialized()


def _check_given(rank: int | None, world_size: int | None) -> None:
    """Refuses a rank or a world size alone, and a rank that is not below the world size."""
    if (rank is None) != (world_size is None):
        state = f"`rank` and `world_size` belong together, but are {rank} and {world_size}"
        raise checks.state_error(state, "Give both, or neither for torch.distributed's own.")
    if world_size is not None:
        check_world(world_size)
        remedy = "Ranks count from 0 to world_size - 1."
        checks.check_whole("rank", rank, minimum=0, maximum=world_size - 1, remedy=remedy)


def _place_within(group: distributed.ProcessGroup, rank: int | None) -> tuple[int, int]:
    """Returns the rank of this process within a group, and the group's number of ranks."""
    if rank is not None:
        remedy = "Leave rank and world_size out: the group knows them."
        raise checks.state_error("`group` and `rank` are both given", remedy)
    remedy = "Give the group of data parallelism, such as mesh['dp'].get_group()."
    rule = "a process group of torch.distributed that this process is in"
    if not isinstance(group, distributed.ProcessGroup):  # new_group returns a number on ranks that are not members
        raise checks.type_error("group", rule, group, remedy)
    return distributed.get_rank(group), distributed.get_world_size(group)
