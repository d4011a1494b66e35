"""Setups: a batching, the number of processes, their averaging, and the scaling of the learning rate."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_choice, check_number, check_whole, value_error
from lengthwise_recipes.study.settings import AVERAGINGS, Settings

RULES = ("linear", "root")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """A batching and the settings of its training.

    Attributes:
        batching: The batching; with parameter averaging its `deal` should be `lengthwise.Portions`.
        label: The name; in a mapping of setups it is the key, and may be left out.
        processes: Number of processes that train together.
        averaging: What they average, "parameter" or "gradient"; "none" for one process.
        learning_rate_scaling: Scaling of the rate with the size of a step: "none", "linear" or "root".
        base_batch: The size of a step for which the learning rate was chosen, in the unit of the task.
    """

    batching: lw.Batching
    label: str = ""
    processes: int = 1
    averaging: str = "none"
    learning_rate_scaling: str = "none"
    base_batch: float | None = None

    def __post_init__(self) -> None:
        check_whole("processes", self.processes, minimum=1, remedy="Give how many.")
        check_choice("averaging", self.averaging, ("none",) if self.processes == 1 else AVERAGINGS)
        check_choice("learning_rate_scaling", self.learning_rate_scaling, ("none", *RULES))
        if self.learning_rate_scaling == "none":
            if self.base_batch is not None:
                remedy = "Choose a scaling, such as linear."
                raise value_error("base_batch", "left out without scaling", self.base_batch, remedy)
            return
        check_number("base_batch", self.base_batch, above=True, remedy="Give the size of a step, such as 16.")
        if self.averaging == "parameter":
            rule, remedy = "none with parameter averaging", "Average gradients: then all processes share each step."
            raise value_error("learning_rate_scaling", rule, self.learning_rate_scaling, remedy)

    def rates(self, plan: lw.Plan, weights: NDArray[np.float64], rate: float) -> list[float]:
        """Scales `rate` for each step by its size, the sum of the `weights` [n] of its sequences.

        The rate is proportional to the size for "linear" (Goyal et al. 2017), and to its square root for "root"
        (Krizhevsky 2014).
        """
        if self.base_batch is None:
            return [rate] * plan.steps
        sums = np.bincount(plan.batch_numbers, weights[plan.numbers], minlength=len(plan.costs))
        sizes = np.where(plan.first_taken, sums[plan.grid], 0.0).sum(axis=(1, 2))
        ratios = sizes / self.base_batch
        return (rate * (ratios if self.learning_rate_scaling == "linear" else np.sqrt(ratios))).tolist()

    def as_dict(self) -> dict[str, object]:
        """Returns a dict for JSON: the choices of the batching, and the scaling of the learning rate if any."""
        choices = json.loads(self.batching.to_json())
        if self.base_batch is None:
            return choices
        return choices | {"learning_rate_scaling": self.learning_rate_scaling, "base_batch": self.base_batch}


def setups(batchings: Mapping[str, lw.Batching | Setup], settings: Settings) -> list[Setup]:
    """Returns a setup for every batching, number of processes and averaging. Setups in `batchings` stay as they are.

    Gradients are averaged over the batches of a step. For parameter averaging each rank trains on its own portion of
    each epoch.

    Raises:
        ValueError: There is no batching, the label of a setup differs from its key, or it needs more GPUs than there
            are.

    >>> listed = setups({"random": lw.Batching(order=lw.Shuffled(), budget=100)}, Settings(processes=(1, 2)))
    >>> [setup.label for setup in listed]
    ['random', 'random, 2 processes, parameter', 'random, 2 processes, gradient']
    """
    if not batchings:
        raise value_error("batchings", "at least one strategy", {}, "Give random, for example.")
    all_setups = [setup for label, choice in batchings.items() for setup in _setups_of(label, choice, settings)]
    settings.check_gpus(max(setup.processes for setup in all_setups))
    return all_setups


def costliest_batch(
    setup: Setup, lengths: NDArray[np.int64], *, seed: int, epochs: Iterable[int] = (0,)
) -> tuple[NDArray[np.int64], int]:
    """Returns the costliest batch of some epochs and its padded length; by default of epoch 0, which is not trained."""
    plans = [
        lw.make_plan(lengths, setup.batching, seed=seed, epoch=epoch, world_size=setup.processes) for epoch in epochs
    ]
    plan = max(plans, key=lambda plan: plan.costs.max())
    (costliest,) = plan.costliest(1).tolist()
    return plan.batch(costliest), int(plan.padded_lengths[costliest, 0])


def waiting_share(setup: Setup, plan: lw.Plan) -> float:
    """Returns the share of all ranks' time spent waiting, 0..1, if time is proportional to the cost of the batches.

    Ranks that average gradients wait for the costliest in every step. Ranks that average parameters wait only at the
    end of the epoch.
    """
    ranks = plan.costs[plan.grid].sum(axis=1)  # [steps, ranks]
    if setup.averaging == "parameter":
        ranks = ranks.sum(axis=0, keepdims=True)
    return float(1.0 - ranks.mean(axis=1).sum() / ranks.max(axis=1).sum())


def _setups_of(label: str, choice: lw.Batching | Setup, settings: Settings) -> list[Setup]:
    if isinstance(choice, Setup):
        if choice.label not in ("", label):
            raise value_error("label", f"the setup's key, {label!r}", choice.label, "Leave it out.")
        return [dataclasses.replace(choice, label=label)]
    return [setup for processes in settings.processes for setup in _on(processes, label, choice, settings)]


def _on(processes: int, label: str, batching: lw.Batching, settings: Settings) -> list[Setup]:
    if processes == 1:
        return [Setup(label=label, batching=batching)]
    dealt = {"parameter": dataclasses.replace(batching, deal=lw.Portions()), "gradient": batching}
    return [
        Setup(
            label=f"{label}, {processes} processes, {averaging}",
            batching=dealt[averaging],
            processes=processes,
            averaging=averaging,
        )
        for averaging in settings.averaging
    ]
