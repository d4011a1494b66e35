"""The outcomes that the plan names, from the whole seeds of a result: those under which all arms have run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.intervals import Interval, interval
from lengthwise_recipes.order.steps import RULER, SHRINKS
from lengthwise_recipes.order.study import PARTS, Part

Cell = tuple[str, str]  # data and model
Numbers = NDArray[np.float64]


def whole_seeds(groups: Any, part: Part, cell: Cell) -> int:
    """Returns the number of seeds under which every arm has run on these data with this model."""
    return min(len(groups.get(part.group(*cell, arm), {}).get("runs", {}).get("seed", ())) for arm in part.arms)


def column(groups: Any, part: Part, cell: Cell, arm: str, name: str) -> Numbers:
    """Returns one column of an arm, for the whole seeds: [seeds, ...]."""
    return np.array(groups[part.group(*cell, arm)]["runs"][name][: whole_seeds(groups, part, cell)], np.float64)


def differences(groups: Any, part: Part, cell: Cell, arm: str, name: str = "loss") -> Numbers:
    """Returns the loss of an arm over that of random steps under the same seed, minus 1: [seeds, ...].

    If the part has no random steps, they are those of another part in the same setting.
    """
    same = (peer for peer in (part, *PARTS) if cell in peer.cells and peer.setting == part.setting)
    random = next(peer for peer in same if "random/1" in peer.arms)
    losses, random_losses = column(groups, part, cell, arm, name), column(groups, random, cell, "random/1", name)
    seeds = min(len(losses), len(random_losses))
    return losses[:seeds] / random_losses[:seeds] - 1


def mean_difference(groups: Any, part: Part, arm: str, cells: Sequence[Cell]) -> Interval:
    """Returns the interval of `differences`, each seed's averaged over data and models that all have it."""
    values = [differences(groups, part, cell, arm) for cell in cells]
    return interval(np.mean([rows[: min(map(len, values))] for rows in values], axis=0))


def read_ruler(losses: Sequence[float], loss: float) -> float:
    """Returns log2 of the factor by which random steps must shrink until they have this loss.

    It is read off straight lines between the losses of `RULER`, over log2 of the factor. Its bounds are 0 and 6.
    """
    return float(np.interp(loss, np.maximum.accumulate(losses), np.log2(SHRINKS)))


def shrink(groups: Any, part: Part, cell: Cell, arm: str = "grouped") -> Interval:
    """Returns r of the plan, from the mean losses over the seeds."""
    losses = np.array([column(groups, part, cell, step, "loss") for step in (*RULER, arm)])
    return _over_seeds(losses.T, lambda rows: read_ruler(rows.mean(axis=0)[:-1], rows.mean(axis=0)[-1]))


def ratios(groups: Any, part: Part, cell: Cell, arm: str) -> Numbers:
    """Returns the variance ratios of an arm: [seeds, checkpoints]."""
    return column(groups, part, cell, "random/1", "ratios")[:, part.compare.index(arm)]


def log_ratio(groups: Any, part: Part, cell: Cell, arm: str = "grouped") -> Interval:
    """Returns log2 VR of the plan. A mean below 1/4, which noise can give, counts as 1/4."""
    rows = ratios(groups, part, cell, arm)
    return _over_seeds(rows, lambda rows: float(np.log2(np.maximum(rows.mean(axis=0), 0.25)).mean()))


def _over_seeds(rows: Numbers, estimate: Callable[[Numbers], float]) -> Interval:
    """Returns the interval of an estimate from all seeds, from its values without each (jackknife, Tukey 1958)."""
    count, whole = len(rows), estimate(rows)
    if count < 2:
        return interval([whole])
    without = np.array([estimate(np.delete(rows, seed, axis=0)) for seed in range(count)])
    pseudo = interval(count * whole - (count - 1) * without)
    reach = pseudo.high - pseudo.mean
    return Interval(mean=whole, low=whole - reach, high=whole + reach, runs=count)
