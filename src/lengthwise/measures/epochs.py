"""The epochs to measure: plans, or the batches of any sampler, with their lengths.

batches      [b] of [k] sequence numbers, one list or array for each batch
lengths      [m]        the lengths of a plan's items, in its order, summed over their dimensions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import sum_rows
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import FixedSize
from lengthwise.choices.deal import World, check_world
from lengthwise.lengths.arrays import name_checked, view_lengths
from lengthwise.planning.plan import Plan
from lengthwise.planning.portion import Portion, add_costs

Batches = Sequence[ArrayLike]  # of any sampler

_REMEDY = "Give a plan, or batches: list(sampler), for example."
_WHOLE = "Give the numbers of the sequences in each batch."
_SINGLE = "Give batches. From single numbers, make them by torch.utils.data.BatchSampler(sampler, 16, drop_last=False)."


@dataclass(frozen=True)
class Epochs:
    """Plans of the same lengths, the lengths of their items, and sums over batches and steps.

    Arrays [batches] and [steps] hold the batches and steps of all plans, plan after plan.
    """

    plans: list[Plan]
    lengths: list[NDArray[np.int64]]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The items in each batch: [batches]."""
        return join([plan.batch_sizes for plan in self.plans])

    @cached_property
    def useful(self) -> NDArray[np.int64]:
        """The sum of the lengths in each batch: [batches]."""
        parts = zip(self.plans, self.lengths, strict=True)
        return join([np.diff(np.append(0, np.cumsum(lengths))[plan.offsets]) for plan, lengths in parts])

    @cached_property
    def padded_lengths(self) -> NDArray[np.int64]:
        """The padded length of each batch, summed over the dimensions: [batches]."""
        return join([sum_rows(plan.padded_lengths) for plan in self.plans])

    @cached_property
    def step_sizes(self) -> NDArray[np.int64]:
        """The items in each step: [steps]."""
        return self.add_steps(self.sizes)

    def add_steps(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Adds up `totals` [batches] over each step: [steps]."""
        batches = np.cumsum([len(plan.costs) for plan in self.plans])
        parts = zip(self.plans, np.split(totals, batches[:-1]), strict=True)
        return join([values[plan.grid].sum(axis=(1, 2)) for plan, values in parts])

    def split_steps(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Splits `values` [steps] by plan."""
        return np.split(values, np.cumsum([plan.steps for plan in self.plans])[:-1])


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Joins all parts in one array; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_epochs(
    plans: Plan | Batches | Sequence[Plan],
    lengths: ArrayLike,
    *,
    world_size: int | None = None,
    micro_batches: int | None = None,
) -> Epochs:
    """Checks lengths and plans, and turns batches into a plan.

    Raises:
        ValueError: `lengths` do not match a plan, or a world is given with a plan. Or a batch is empty or has an
            unknown sequence number, or the batches do not fill whole steps.
        TypeError: `plans` are neither plans nor batches.
    """
    several = _list(plans)
    array = view_lengths(lengths)
    sums = array if array.ndim == 1 else sum_rows(array)
    if not any(isinstance(plan, Plan) for plan in several):
        world = check_world(1 if world_size is None else world_size, 1 if micro_batches is None else micro_batches)
        plan = plan_batches(several, array, world)
        return Epochs([plan], [sums[plan.sequences]])
    for plan in several:
        check_plan("plans", plan)
    for name, value in (("world_size", world_size), ("micro_batches", micro_batches)):
        if value is not None:
            raise checks.value_error(name, "left out with a plan", value, "A plan knows its own.")
    fingerprint = name_checked(array)
    for plan in several:
        if plan.lengths_fingerprint != fingerprint:
            rule = f"those of the plan, of fingerprint {plan.lengths_fingerprint}"
            raise checks.value_error("lengths", rule, fingerprint, "Plan again for these lengths.")
    return Epochs(several, [_find_lengths(plan, sums) for plan in several])


def check_plan(name: str, plan: object) -> None:
    """Refuses anything that is not a Plan."""
    if not isinstance(plan, Plan):
        raise checks.type_error(name, "a Plan", plan, "Make one, such as make_plan(lengths, batching).")


def plan_batches(batches: Iterable[Any], lengths: NDArray[np.int64], world: World) -> Plan:
    """Makes a plan of one epoch of a sampler's batches, each padded to its longest sequence.

    Args:
        batches: The batches in the order of training: step by step, and within a step by rank.
        lengths: [n] or [n, dims], checked.
    """
    # All measures read plans, so the batches of another library become a plan too.
    arrays = [_check_batch(batch, number) for number, batch in enumerate(batches)]
    slots = world.slots
    # 7 batches do not fill steps of 2: without the last, they do.
    if len(arrays) % slots:
        rule = f"a multiple of world_size x micro_batches, {slots}"
        remedy = f"Leave out the last {len(arrays) % slots}, or measure without a world_size."
        raise checks.value_error("batches", rule, len(arrays), remedy)
    members = np.concatenate([np.empty(0, np.int64), *arrays])
    offsets = np.cumsum([0, *map(len, arrays)])
    _check_members(members, offsets, len(lengths))
    needed = lengths.reshape(len(lengths), -1)[members]
    priced = add_costs(Portion(members, needed, offsets=offsets), FixedSize(1), Padded())
    return Plan(
        sequences=members,
        offsets=offsets,
        padded_lengths=priced.padded_lengths,
        costs=priced.costs,
        grid=np.arange(len(arrays)).reshape(-1, world.micro_batches, world.world_size),
        spans=None,
        count=len(lengths),
        batching="null",
        seed=0,
        epoch=0,
        lengths_fingerprint=name_checked(lengths),
        max_cost=np.inf,
    )


def _list(plans: Any) -> list[Any]:
    if isinstance(plans, Plan):
        return [plans]
    if not isinstance(plans, Iterable) or isinstance(plans, str | bytes):
        raise checks.type_error("plans", "a Plan or batches", plans, _REMEDY)
    several = list(plans)
    if not several:
        raise checks.value_error("plans", "one plan or more, or batches", several, _REMEDY)
    return several


def _check_batch(batch: Any, number: int) -> NDArray[np.int64]:
    try:
        array = np.asarray(batch)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, a tensor on a GPU
        array = np.array(None)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        remedy = _SINGLE if array.ndim == 0 and array.dtype.kind in "iu" else _WHOLE
        raise checks.type_error(f"batches[{number}]", "a list of whole numbers", batch, remedy)
    if not array.size:
        raise checks.value_error(
            "batches", "of at least one sequence each", batch, "Leave it out.", at=f"batch {number}"
        )
    return array.astype(np.int64, copy=False)


def _check_members(members: NDArray[np.int64], offsets: NDArray[np.int64], count: int) -> None:
    outside = np.flatnonzero((members < 0) | (members >= count))
    if len(outside):
        # Offsets [0, 2, 5] and a wrong member at 3: it stands in batch 1.
        at = int(np.searchsorted(offsets, outside[0], side="right")) - 1
        rule = f"of sequence numbers from 0 to {count - 1}"
        remedy = "Give the lengths of all sequences that the batches are drawn from."
        raise checks.value_error("batches", rule, int(members[outside[0]]), remedy, at=f"batch {at}")


def _find_lengths(plan: Plan, sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the lengths of the items of a plan, sequences or chunks, in its order."""
    return (sums if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1])[plan.numbers]
