"""What a sampler plans its epochs from: lengths, a batching, a seed, and how often epochs take each sequence."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.order import Shuffled, finds_noise
from lengthwise.choices.world import World
from lengthwise.lengths import as_lengths
from lengthwise.planning import make_plan
from lengthwise.planning.make import make_fitted
from lengthwise.planning.plan import Plan
from lengthwise.planning.times import Draw, draw_times, name_times, read_times


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans the epochs of a sampler.

    Attributes:
        lengths: [n] or [n, dims], checked.
        batching: How batches are made.
        seed: Names the run.
        times: [n], checked: how often epochs take each sequence; None for once.
    """

    lengths: NDArray[Any]
    batching: Batching
    seed: int
    times: NDArray[np.float64] | None

    @classmethod
    def read(cls, lengths: ArrayLike, batching: Batching, *, seed: int, times: ArrayLike | None) -> Planner:
        """Checks what a sampler was given; the seed is checked with the first plan."""
        check_batching(batching)
        array = as_lengths(lengths)
        if times is None:
            return cls(array, batching, seed, None)
        read = read_times(times, len(array))
        _try_all(array, batching, read)
        return cls(array, batching, seed, read)

    def plan(self, epoch: int, world: World, after: Sequence[tuple[int, int, int]], *, rank: int) -> Plan:
        """Plans what earlier runs left of an epoch, for all ranks of `world`: `rank` says which of them asks."""
        del rank  # for planners that plan a part at a time
        options = {"seed": self.seed, "epoch": epoch, **world._asdict()}
        return make_fitted(self.lengths, self.batching, None, **options, after=after, times=self._drawn)

    @cached_property
    def _drawn(self) -> Draw | None:
        """Of all epochs. To draw takes as long as to plan: 24 bytes a sequence are kept in place of it."""
        return None if self.times is None else draw_times(self.times, self.seed)

    def facts(self, plan: Plan) -> dict[str, Any]:
        """What checkpoints and ranks must share, of any plan that was made."""
        times = None if self.times is None else name_times(self.times)
        named = {"seed": plan.seed, "lengths": plan.lengths_fingerprint, "times": times}
        return named | {"batching": json.loads(plan.batching)}


def _try_all(lengths: NDArray[np.int64], batching: Batching, times: NDArray[np.float64]) -> None:
    """Raises now what the epoch that first takes some sequence would raise days later, such as one over the budget."""
    if ((times == 0) | (times >= 1)).all():  # every epoch takes all of them, also the first
        return
    order = Shuffled() if finds_noise(batching.order) else batching.order  # what is fitted refuses no sequence
    with warnings.catch_warnings():  # the epochs warn by themselves
        warnings.simplefilter("ignore")
        make_plan(lengths, replace(batching, order=order), times=np.ceil(times))


def check_batching(batching: object) -> None:
    """Refuses what is no batching."""
    if not isinstance(batching, Batching):
        remedy = "Make one, such as lw.Batching(cut=lw.FixedSize(16))."
        raise checks.type_error("batching", "a lengthwise.Batching", batching, remedy)
