"""What a sampler plans its epochs from: lengths, a batching, a seed, and how often epochs take each sequence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.world import World
from lengthwise.lengths import as_lengths
from lengthwise.planning import make_plan
from lengthwise.planning.plan import Plan
from lengthwise.planning.times import name_times, read_times


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
        return cls(array, batching, seed, None if times is None else read_times(times, len(array)))

    def plan(self, epoch: int, world: World, after: Sequence[tuple[int, int, int]], *, rank: int) -> Plan:
        """Plans what earlier runs left of an epoch, for all ranks of `world`: `rank` says which of them asks."""
        del rank  # for planners that plan a part at a time
        options = {"seed": self.seed, "epoch": epoch, **world._asdict()}
        return make_plan(self.lengths, self.batching, **options, after=after, times=self.times)

    def facts(self, plan: Plan) -> dict[str, Any]:
        """What checkpoints and ranks must share, of any plan that was made."""
        times = None if self.times is None else name_times(self.times)
        named = {"seed": plan.seed, "lengths": plan.lengths_fingerprint, "times": times}
        return named | {"batching": json.loads(plan.batching)}


def check_batching(batching: object) -> None:
    """Refuses what is no batching."""
    if not isinstance(batching, Batching):
        remedy = "Make one, such as lw.Batching(cut=lw.FixedSize(16))."
        raise checks.type_error("batching", "a lengthwise.Batching", batching, remedy)
