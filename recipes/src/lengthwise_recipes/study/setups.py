"""Setups: which batching is trained on how many processes, how these share what they learn, and at what rate."""

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
    """A batching, and how it is trained.

    Attributes:
        batching: Where parameters are averaged, its `deal` should be `lengthwise.Portions`.
        label: What it is called; in a mapping of setups its key, and may be left out.
        processes: How many train it together.
        averaging: What they average, "parameter" or "gradient"; "none" where there is one.
        learning_rate_scaling: How the rate follows the size of a step: "none", "linear" or "root".
        base_batch: The size of a step for which the learning rate was chosen, in what the task counts.
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
                raise value_error(
                    "base_batch", "left out without scaling", self.base_batch, "Choose linear, for example."
                )
            return
        check_number("base_batch", self.base_batch, above=True, remedy="Give the size of a step, such as 16.")
        if self.averaging == "parameter":
            remedy = "Average gradients: then there are steps of all processes."
            raise value_error("learning_rate_scaling", "none for parameters", self.learning_rate_scaling, remedy)

    def rates(self, plan: lw.Plan, weights: NDArray[np.float64], rate: float) -> list[float]:
        """Scales `rate` for each step by its size, `weights` [n] being what each sequence counts for.

        By "linear" (Goyal et al. 2017) the rate follows the size, by "root" (Krizhevsky 2014) its square root.
        """
        if self.base_batch is None:
            return [rate] * plan.steps
        sums = np.bincount(plan.batch_numbers, weights[plan.numbers], minlength=len(plan.costs))
        sizes = np.where(plan.first_taken, sums[plan.grid], 0.0).sum(axis=(1, 2))
        ratios = sizes / self.base_batch
        return (rate * (ratios if self.learning_rate_scaling == "linear" else np.sqrt(ratios))).tolist()

    def as_dict(self) -> dict[str, object]:
        """For JSON: the choices of the batching, and how the learning rate is scaled where it is."""
        choices = json.loads(self.batching.to_json())
        if self.base_batch is None:
            return choices
        return choices | {"learning_rate_scaling": self.learning_rate_scaling, "base_batch": self.base_batch}


def setups(batchings: Mapping[str, lw.Batching | Setup], settings: Settings) -> list[Setup]:
    """Every batching on every number of processes, and there under every way of averaging; setups as they are.

    Gradients are averaged over the batches of a step as the batching deals them; parameters over ranks that train on
    portions of their own, dealt anew each epoch.

    Raises:
        ValueError: Where there is no batching, a setup is called otherwise than its key, or it has more processes than
            there are GPUs, if these are to be used.

    >>> made = setups({"random": lw.Batching(order=lw.Shuffled(), budget=100)}, Settings(processes=(1, 2)))
    >>> [setup.label for setup in made]
    ['random', 'random, 2 processes, parameter', 'random, 2 processes, gradient']
    """
    if not batchings:
        raise value_error("batchings", "at least one strategy", {}, "Give random, for example.")
    made = [setup for label, chosen in batchings.items() for setup in _setups_of(label, chosen, settings)]
    settings.check_gpus(max(setup.processes for setup in made))
    return made


def costliest_batch(
    setup: Setup, lengths: NDArray[np.int64], *, seed: int, epochs: Iterable[int] = (0,)
) -> tuple[NDArray[np.int64], int]:
    """The costliest batch of some epochs, and what it is padded to; by default of 0, on which nothing is trained."""
    plans = [
        lw.make_plan(lengths, setup.batching, seed=seed, epoch=epoch, world_size=setup.processes) for epoch in epochs
    ]
    plan = max(plans, key=lambda plan: plan.costs.max())
    (costliest,) = plan.costliest(1).tolist()
    return plan.batch(costliest), int(plan.padded_lengths[costliest, 0])


def waiting_share(setup: Setup, plan: lw.Plan) -> float:
    """The share of rank time that the plan leaves to waiting, 0..1, where time goes as the cost of the batches.

    Ranks that average gradients wait in every step for the costliest, ranks that average parameters at the end of the
    epoch alone.
    """
    ranks = plan.costs[plan.grid].sum(axis=1)  # [steps, ranks]
    if setup.averaging == "parameter":
        ranks = ranks.sum(axis=0, keepdims=True)
    return float(1.0 - ranks.mean(axis=1).sum() / ranks.max(axis=1).sum())


def _setups_of(label: str, chosen: lw.Batching | Setup, settings: Settings) -> list[Setup]:
    if isinstance(chosen, Setup):
        if chosen.label not in ("", label):
            raise value_error("label", f"the setup's key, {label!r}", chosen.label, "Leave it out.")
        return [dataclasses.replace(chosen, label=label)]
    return [setup for processes in settings.processes for setup in _on(processes, label, chosen, settings)]


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
