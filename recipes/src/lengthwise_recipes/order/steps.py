"""The sequences of each step of an arm: the gradient does not depend on how they are cut into batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw

RANKS = 8
SHRINKS = (1, 4, 16, 64)
RULER = tuple(f"random/{shrink}" for shrink in SHRINKS)  # random steps with a part of the sequences
PADDINGS = (0.02, 0.05, 0.1, 0.2)
_TRAINER_POOL = 50  # batches that the Trainer of transformers sorts together

Steps = list[NDArray[np.int64]]


def make_steps(arm: str, lengths: NDArray[np.int64], size: int, seed: int, epoch: int = 0) -> Steps:
    """Returns the sequences of each step of one pass; `lengths` are a multiple of `size`, the sequences of a step.

    Arms: "random/4", random steps of a quarter of `size`; "grouped", of similar lengths; "tokens", the same with
    equally many tokens in each; "half", half of each grouped, the rest random; "trainer", the order of
    `group_by_length` in transformers; "library", `lw.RandomSteps`; "noise/0.05", `lw.MaxEntropy(padding=0.05)`.
    """
    name, _, knob = arm.partition("/")
    count, rng = len(lengths) // size, np.random.default_rng([seed, epoch])
    if name == "library":
        plan = _library_plan(lengths, size, seed, epoch)
        return [np.concatenate(parts) for parts in zip(*map(plan.batches, range(RANKS)), strict=True)]
    if name == "noise":
        batching = lw.Batching(cut=lw.FixedSize(size), order=lw.MaxEntropy(padding=float(knob)))
        return list(lw.make_plan(lengths, batching, seed=seed, epoch=epoch).batches())
    order = rng.permutation(len(lengths))
    if name == "random":
        return list(order.reshape(count, size)[:, : size // int(knob)])
    if name == "trainer":  # long to short in each pool, and the steps in this order
        starts = range(0, len(order), _TRAINER_POOL * size // RANKS)
        pools = [_rising(part, lengths)[::-1] for part in np.split(order, starts[1:])]
        return list(np.concatenate(pools).reshape(count, size))
    if name == "half":
        grouped, random = np.split(order, 2)
        parts = rng.permutation(_rising(grouped, lengths).reshape(count, -1)), random.reshape(count, -1)
        return list(np.hstack(parts))
    rising = _rising(order, lengths)
    tokens = np.cumsum(lengths[rising])
    equal = np.searchsorted(tokens, tokens[-1] * np.arange(1, count) / count)
    steps = np.split(rising, equal if name == "tokens" else count)
    return [steps[place] for place in rng.permutation(count)]


def _rising(numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return numbers[np.argsort(lengths[numbers], kind="stable")]


def _library_plan(lengths: NDArray[np.int64], size: int, seed: int, epoch: int) -> lw.Plan:
    batching = lw.Batching(cut=lw.FixedSize(size // RANKS), deal=lw.RandomSteps())
    return lw.make_plan(lengths, batching, world_size=RANKS, seed=seed, epoch=epoch)


def measure_steps(arm: str, steps: Steps, lengths: NDArray[np.int64], ranks: int, seed: int) -> tuple[float, float]:
    """Returns padding and waiting, as shares.

    Random steps are cut into equal batches as they come, those of the library by its plan, all others when sorted.
    """
    if arm == "library":
        measured = lw.measure(_library_plan(lengths, len(steps[0]), seed, 0), lengths)
        return measured.padding_share, measured.straggler_waste
    computed = waited = 0.0
    for step in steps:
        rows = step if arm.startswith("random") else _rising(step, lengths)
        batches = np.array_split(rows, min(ranks, len(rows)))
        costs = [len(batch) * lengths[batch].max() for batch in batches]
        computed += sum(costs)
        waited += len(costs) * max(costs)
    return float(1 - sum(lengths[step].sum() for step in steps) / computed), float(1 - computed / waited)
