"""Which of the ranks this process is, and whether all of them plan alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import distributed

from lengthwise import checks
from lengthwise.choices.deal import check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.torch.position import check_alike

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

    def gather(self, value: Any) -> list[Any]:
        """The `value` of every rank, on every rank: a collective, over the group alone if one was given."""
        if self.is_alone or (self._group is None and not _is_running()):
            return [value]
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, value, group=self._group)
        return values

    @contextmanager
    def alike(self, facts: Facts) -> Iterator[None]:
        """Wraps what makes a plan; then the ranks compare `facts`, a collective where torch.distributed runs.

        If one rank fails, all fail, so that no rank waits for another.

        Raises:
            PlanMismatchError: The ranks' facts differ, or another rank could not make its plan.
        """
        with self._told_of_failure():
            yield
        self._compare(facts)

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

    def _compare(self, facts: Facts) -> None:
        """Compares with the other ranks: a collective, once torch.distributed runs."""
        # Before init_process_group there is nobody to compare with: `check_started` makes up for it.
        self._compared = _is_running()
        if self._compared and not self.is_alone:
            with self._told_of_failure():  # windows are planned when they are asked for, as here
                rank_facts = dict(facts())
            _check_said(self.gather(_Said(facts=rank_facts)), self._remedy)

    @contextmanager
    def _told_of_failure(self) -> Iterator[None]:
        """Wraps what comes before the ranks compare. If it fails, the other ranks are told, and fail too."""
        try:
            yield
        except Exception as error:
            # The other ranks are at `gather` by now, or will be: this one must come there too, or they wait for ever.
            if _is_running():
                self.gather(_Said(refusal=f"{type(error).__name__}: {error}"))
            raise

    def _now(self) -> tuple[int, int]:
        if self._given is not None:
            return self._given
        return (distributed.get_rank(), distributed.get_world_size()) if _is_running() else (0, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """The facts of a rank's plan, or why it has none."""

    facts: Mapping[str, object] = field(default_factory=dict)
    refusal: str = ""


def _is_running() -> bool:
    """Whether torch.distributed has been started in this process."""
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
    """The rank of this process within a group, and how many ranks the group has."""
    if rank is not None:
        remedy = "Leave rank and world_size out: the group knows them."
        raise checks.value_error("group", "given in place of rank and world_size", f"beside rank={rank}", remedy)
    remedy = "Give that of data parallelism, such as mesh['dp'].get_group()."
    rule = "a process group of torch.distributed that this process is in"
    if not isinstance(group, distributed.ProcessGroup):  # of ranks that are no members, new_group gives a number
        raise checks.type_error("group", rule, group, remedy)
    return distributed.get_rank(group), distributed.get_world_size(group)


def _check_said(said: list[_Said], remedy: str) -> None:
    """Refuses ranks whose facts differ; every rank raises the same error.

    Raises:
        PlanMismatchError: The sentence names the first rank that has no plan, and why; or the first fact that differs,
            the rank, and what it and rank 0 say.
    """
    # A rank without a plan comes first: its own error says more than that its facts are missing.
    for rank, each in enumerate(said):
        if each.refusal:
            rule = "made on every rank"
            raise PlanMismatchError(checks.sentence("plan", rule, "refused", each.refusal, at=f"rank {rank}"))
    for rank, each in enumerate(said):
        check_alike(said[0].facts, each.facts, whose="what rank 0 has", remedy=remedy, at=f"rank {rank}")
