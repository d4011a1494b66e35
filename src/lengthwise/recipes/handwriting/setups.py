"""Setups: which batching is trained on how many processes, and how these share what they learn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import lengthwise as lw
from lengthwise._checks import value_error
from lengthwise.recipes.handwriting.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """A batching on a number of processes; `averaging` is "none" where there is one."""

    label: str
    batching: lw.Batching
    processes: int = 1
    averaging: str = "none"


def setups(batchings: Mapping[str, lw.Batching], settings: Settings) -> list[Setup]:
    """Every batching on every number of processes, and there under every way of averaging.

    Gradients are averaged over the batches of a step as the batching deals them; parameters over ranks that train on
    portions of their own, dealt anew each epoch.

    Raises:
        ValueError: Where there is no batching, or one that cuts sequences into chunks.

    >>> made = setups({"random": lw.Batching(budget=100)}, Settings(processes=(1, 2)))
    >>> [setup.label for setup in made]
    ['random', 'random, 2 processes, parameter', 'random, 2 processes, gradient']
    """
    _check_batchings(batchings)
    return [
        setup
        for label, batching in batchings.items()
        for processes in settings.processes
        for setup in _on(processes, label, batching, settings)
    ]


def waiting_share(setup: Setup, plan: lw.Plan) -> float:
    """The share of rank time that the plan leaves to waiting, 0..1, where time goes as the cost of the batches.

    Ranks that average gradients wait in every step for the costliest, ranks that average parameters at the end of the
    epoch alone.
    """
    if setup.averaging != "parameter":
        return lw.straggler_waste(plan)
    ranks = plan.costs[plan.grid].sum(axis=(0, 1))
    return float(1.0 - ranks.mean() / ranks.max())


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


def _check_batchings(batchings: Mapping[str, lw.Batching]) -> None:
    if not batchings:
        raise value_error("batchings", "at least one strategy", {}, "Give random, for example.")
    for label, batching in batchings.items():
        if batching.chunks is not None:
            raise value_error(
                "batchings", "of whole sequences", label, "Leave the chunks out: CTC needs the whole text."
            )
