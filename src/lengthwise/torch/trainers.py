"""What the modules for trainers share: the settings that a trainer needs, and the loss scales of its passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.planning.window_epoch import EpochPlan
from lengthwise.torch.sampler import BatchSampler


def check_sampler(name: str, sampler: object) -> None:
    """Refuses what a trainer was given in place of a sampler."""
    if not isinstance(sampler, BatchSampler):
        remedy = "Make one of the lengths and a batching."
        raise checks.type_error(name, "a lengthwise.torch.BatchSampler", sampler, remedy)


def check_settings(
    sampler: BatchSampler, settings: object, needed: Mapping[str, Any], *, ranks: int, remedy: str
) -> None:
    """Refuses a trainer that contradicts the sampler.

    Args:
        sampler: As given.
        settings: What has the settings as attributes; one that this version does not have is not asked for.
        needed: The value that each setting must have.
        ranks: Over how many ranks the trainer shares out the data.
        remedy: Where the user sets them, and why.
    """
    if sampler.world_size != ranks:
        other = "Make the sampler without rank and world_size, or with those of data parallelism."
        raise checks.value_error("world_size", f"the Trainer's, {ranks}", sampler.world_size, other)
    for name, value in needed.items():
        if (given := getattr(settings, name, value)) != value:
            raise checks.value_error(name, repr(value), given, remedy)


class PassScales:
    """The loss scales of a sampler's passes, computed once for each plan: the sampler makes another for each epoch."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._plan: EpochPlan | None = None
        self._scales = np.empty(0)

    def now(self, weights: ArrayLike | None, **choices: Any) -> NDArray[np.float64]:
        """`sampler.loss_scales` of these arguments, which stay the same until the epoch is set."""
        plan = self._sampler.plan
        if plan is not self._plan:
            self._plan, self._scales = plan, self._sampler.loss_scales(weights, **choices)
        return self._scales
