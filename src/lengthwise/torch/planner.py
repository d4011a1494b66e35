"""The inputs of a sampler's plans: lengths, a batching, a seed, times and groups."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.deal import World
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.planning.items import Source, read_groups, read_source
from lengthwise.planning.make import settle_and_plan
from lengthwise.planning.resume import read_runs
from lengthwise.planning.times import Copies, name_times, read_times
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans the epochs of a sampler.

    Attributes:
        lengths: [n] or [n, dims], checked.
        batching: The choices.
        seed: The seed of the run.
        times: [n], checked: the times that epochs take each sequence; None for once.
        groups: [n], the group number of each sequence: no batch mixes groups; None for one group.
    """

    lengths: NDArray[Any]
    batching: Batching
    seed: int
    times: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    _steps: dict[World, int] = field(default_factory=dict, init=False)

    @classmethod
    def read(
        cls, lengths: ArrayLike, batching: Batching, *, seed: int, times: ArrayLike | None, groups: ArrayLike | None
    ) -> Planner:
        """Checks the arguments of a sampler; the seed is checked with the first plan."""
        check_batching(batching)
        array = as_lengths(lengths)
        if not len(array):
            raise checks.value_error("lengths", "at least one", 0, "Look for the path or the filter that leaves none.")
        numbered = None if groups is None else read_groups(groups, len(array))
        checked_times = None if times is None else read_times(times, len(array))
        # By rounding, the sum of ten numbers 0.1 is a little less than 1.
        if checked_times is not None and (total := float(checked_times.sum())) < 1.0 - 1e-9:
            raise checks.value_error("times", "at least 1 in sum, for each epoch to take some sequence", total, _MORE)
        return cls(array, batching, seed, checked_times, numbered)

    def plan(self, epoch: int, world: World, after: Sequence[tuple[int, int, int]]) -> EpochPlan:
        """Plans the rest of an epoch after earlier runs, for all ranks of `world`."""
        if self._source.copies is not None:
            _check_not_empty(self._source.copies, epoch)
        return settle_and_plan(self._source, self.batching, Key(seed=self.seed, epoch=epoch), world, read_runs(after))

    def steps(self, world: World) -> int:
        """Returns the steps of a whole epoch, planned once for each world."""
        if world not in self._steps:
            self._steps[world] = self.plan(0, world, ()).steps
        return self._steps[world]

    @cached_property
    def _source(self) -> Source:
        """The data set, with the copies of all epochs: 24 bytes a sequence, as drawing them takes as long as a plan."""
        return read_source(self.lengths, groups=self.groups, times=self.times, seed=self.seed)

    def identity(self, plan: EpochPlan) -> dict[str, Any]:
        """Returns the facts that are the same at every position of a run, read from any plan."""
        times = None if self.times is None else name_times(self.times)
        groups = None if self.groups is None else fingerprint(self.groups + 1)
        identity = {"seed": plan.seed, "lengths": plan.lengths_fingerprint, "times": times, "groups": groups}
        # The batching as the user gave it: on another number of ranks, its defaults may be other choices.
        choices = plan.batching if isinstance(plan, WindowEpoch) else self.batching.to_json()
        return identity | {"batching": json.loads(choices)}


_MORE = "Give larger times, and train fewer epochs: twice the times for half the epochs."


def _check_not_empty(copies: Copies, epoch: int) -> None:
    """Refuses an epoch without sequences: trainers divide by its number of batches."""
    if len(copies.whole) and not copies.take(epoch).any():
        total = round(float(copies.whole.sum()) + float(copies.fraction.astype(np.float64).sum()) / 2.0**64, 6)
        rule = "enough in sum for each epoch to take some sequence"
        raise checks.value_error("times", rule, total, _MORE, at=f"epoch {epoch}")
