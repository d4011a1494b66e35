"""The rank of this process, and whether all ranks plan alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import distributed

from lengthwise import checks
from lengthwise.choices.deal import check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.torch.position import check_alike

Value = TypeVar("Value")
Facts = Callable[[], Mapping[str, object]]


class OwnRank:
    """The rank of a sampler or a stream: the one that was given, else the one of torch.distributed now.

    Args:
        rank: Given together with `world_size`, or neither.
        world_size: How many ranks there are.
        group: The ranks that share out the batches, in place of `rank` and `world_size`.
        remedy: What an error advises where the ranks' plans differ.
    """

    def __init__(
        self,
        rank: int | None,
        world_size: int | None,
        group: distributed.ProcessGroup | None,
        *,
        remedy: str,
    ) -> None:
        _check_given(rank, world_size)
        if group is not None:
            rank, world_size = _place_within(group, rank)
        self._given = None if rank is None or world_size is None else (rank, world_size)
        self._group = group
        self._remedy = remedy
        self._compared = False

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the group out of pickles and deep copies: it belongs to this process. They communicate with nobody."""
        return self.__dict__ | {"_group": None}

    @property
    def is_alone(self) -> bool:
        """Whether it communicates with nobody: its rank was given without a group, and may be the only process."""
        return self._given is not None and self._group is None

    @property
    def rank(self) -> int:
        return self._now()[0]

    @property
    def world_size(self) -> int:
        return self._now()[1]

    def gather(self, value: Value) -> list[Value]:
        """Returns the `value` of every rank, on every rank: a collective, over the group alone if one was given."""
        if self.is_alone or not _is_running():
            return [value]
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, value, group=self._group)
        return values

    def share(self, make: Callable[[], Value]) -> list[Value]:
        """Returns what `make` gives on every rank; a collective. If it fails on one, all raise, so that none waits.

        Raises:
            PlanMismatchError: It failed on another rank.
        """
        with self._telling_failure():
            value = make()
        values: list[Any] = self.gather(value)
        for rank, each in enumerate(values):
            if isinstance(each, _Failure):
                rule = "made on every rank"
                raise PlanMismatchError(checks.sentence("plan", rule, "refused", each.reason, at=f"rank {rank}"))
        return values

    @contextmanager
    def alike(self, facts: Facts) -> Iterator[None]:
        """Wraps what makes a plan; then the ranks compare `facts`, a collective where torch.distributed runs.

        Raises:
            PlanMismatchError: The facts differ, or another rank could not make its plan.
        """
        with self._telling_failure():
            yield
        self._compare(facts)

    @contextmanager
    def _telling_failure(self) -> Iterator[None]:
        """Tells the other ranks of an error: they are at `gather` by now, or will be, and would wait for ever."""
        try:
            yield
        except Exception as error:
            self.gather(_Failure(describe_error(error)))
            raise

    def _compare(self, facts: Facts) -> None:
        # Before init_process_group there is nobody to compare with: `check_started` makes up for it.
        self._compared = _is_running()
        if not self._compared or self.is_alone:
            return
        rank_facts = self.share(lambda: dict(facts()))  # windows are planned when they are asked for, as here
        for rank, each in enumerate(rank_facts):
            check_alike(rank_facts[0], each, whose="what rank 0 has", remedy=self._remedy, at=f"rank {rank}")

    def check_started(self, facts: Facts) -> None:
        """Compares, with the first batch, what could not be compared before; refuses ranks without a process group."""
        if self.is_alone:
            return
        if _is_running():
            if not self._compared:
                self._compare(facts)
        # torchrun and its kin set WORLD_SIZE; without a process group each process would be rank 0 of 1.
        elif int(os.environ.get("WORLD_SIZE", "1")) > 1:
            rule = "started, or rank and world_size given, before the first batch"
            remedy = "Call torch.distributed.init_process_group, or every process takes all sequences."
            raise checks.value_error("torch.distributed", rule, f"WORLD_SIZE={os.environ['WORLD_SIZE']}", remedy)

    def _now(self) -> tuple[int, int]:
        if self._given is not None:
            return self._given
        return (distributed.get_rank(), distributed.get_world_size()) if _is_running() else (0, 1)


@dataclass(frozen=True)
class _Failure:
    """Why a rank has nothing to share."""

    reason: str


def describe_error(error: Exception) -> str:
    """Returns an error in the words that other ranks raise, with its notes."""
    return "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def _is_running() -> bool:
    """Tells if torch.distributed has been started in this process."""
    return distributed.is_available() and distributed.is_initialized()


def _check_given(rank: int | None, world_size: int | None) -> None:
    """Refuses a rank without a world size, and a rank beyond it."""
    if (rank is None) != (world_size is None):
        given = f"rank={rank}, world_size={world_size}"
        remedy = "Give both, or neither for torch.distributed's own."
        raise checks.value_error("rank", "given together with world_size", given, remedy)
    if world_size is not None:
        check_world(world_size)
        remedy = "Ranks count from 0 to world_size - 1."
        checks.check_whole("rank", rank, minimum=0, maximum=world_size - 1, remedy=remedy)


def _place_within(group: distributed.ProcessGroup, rank: int | None) -> tuple[int, int]:
    """Returns the rank of this process within a group, and how many ranks the group has."""
    if rank is not None:
        remedy = "Leave rank and world_size out: the group knows them."
        raise checks.value_error("group", "given in place of rank and world_size", f"beside rank={rank}", remedy)
    remedy = "Give that of data parallelism, such as mesh['dp'].get_group()."
    rule = "a process group of torch.distributed that this process is in"
    if not isinstance(group, distributed.ProcessGroup):  # of ranks that are no members, new_group gives a number
        raise checks.type_error("group", rule, group, remedy)
    return distributed.get_rank(group), distributed.get_world_size(group)
