"""Lengthwise plans the batches for training on sequences of different lengths.

    lengths -> order -> cut -> deal -> arrange -> Plan

    order     the order of the sequences                      MaxEntropy, Shuffled, Sorted, ...
    cut       the end of one batch and the start of the next  Budget, FixedSize, Rows, ...
    deal      the step and the rank of each batch             RandomSteps, Balanced, ...
    arrange   the order of the steps                          ShuffledSteps, CostliestFirst, ...

A `Batching` holds these choices, `make_plan` makes the plan, and `measure` returns its padding and other measures.
Under PyTorch, `lengthwise.torch.BatchSampler(lengths, Batching(budget=20_000))` is the `batch_sampler` of a DataLoader.
`advise` recommends a batching, and computes its savings.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lengthwise._random import Key
from lengthwise.advice.search import advise
from lengthwise.advice.step_cost import StepCost
from lengthwise.advice.step_timing import measure_step
from lengthwise.choices.arrange import Arrangement, CostliestFirst, InOrder, ShortestFirst, ShuffledSteps
from lengthwise.choices.batching import Batching
from lengthwise.choices.buckets import optimal_edges
from lengthwise.choices.chunk import Chunks
from lengthwise.choices.cost import Cost, Padded, Quadratic
from lengthwise.choices.cut import Budget, Cut, Cuts, DynamicSize, FixedSize, OversizeError
from lengthwise.choices.deal import Balanced, Deal, InTurn, Mixed, Portions, RandomSteps, Stratified, World
from lengthwise.choices.order import (
    AlternatedSort,
    Bucketed,
    MaxEntropy,
    Order,
    Ordered,
    SemiSorted,
    Shuffled,
    Sorted,
    Windowed,
)
from lengthwise.choices.rows import Rows
from lengthwise.engines import write_lengths
from lengthwise.lengths import as_lengths, audio_files, describe, example_lengths, fingerprint, read_lengths
from lengthwise.measures.metrics import Measures, measure
from lengthwise.planning import make_plan
from lengthwise.planning.evaluation import evaluation_plan, evaluation_weights, restore_order
from lengthwise.planning.few_shapes import optimal_shapes
from lengthwise.planning.given_step import plan_step
from lengthwise.planning.loss import loss_scales
from lengthwise.planning.plan import Plan, PlanMismatchError
from lengthwise.planning.shapes import batch_shapes
from lengthwise.planning.window_epoch import WindowEpoch
from lengthwise.planning.windows import Windows

if TYPE_CHECKING:
    from lengthwise import jax as jax
    from lengthwise import report as report
    from lengthwise import torch as torch

__version__ = "0.1.0"

_DOORS = ("jax", "report", "torch")

__all__ = [
    "AlternatedSort",
    "Arrangement",
    "Balanced",
    "Batching",
    "Bucketed",
    "Budget",
    "Chunks",
    "Cost",
    "CostliestFirst",
    "Cut",
    "Cuts",
    "Deal",
    "DynamicSize",
    "FixedSize",
    "InOrder",
    "InTurn",
    "Key",
    "MaxEntropy",
    "Measures",
    "Mixed",
    "Order",
    "Ordered",
    "OversizeError",
    "Padded",
    "Plan",
    "PlanMismatchError",
    "Portions",
    "Quadratic",
    "RandomSteps",
    "Rows",
    "SemiSorted",
    "ShortestFirst",
    "Shuffled",
    "ShuffledSteps",
    "Sorted",
    "StepCost",
    "Stratified",
    "WindowEpoch",
    "Windowed",
    "Windows",
    "World",
    "advise",
    "as_lengths",
    "audio_files",
    "batch_shapes",
    "describe",
    "evaluation_plan",
    "evaluation_weights",
    "example_lengths",
    "fingerprint",
    "loss_scales",
    "make_plan",
    "measure",
    "measure_step",
    "optimal_edges",
    "optimal_shapes",
    "plan_step",
    "read_lengths",
    "restore_order",
    "write_lengths",
]


def __getattr__(name: str) -> Any:
    """Imports `lw.torch`, `lw.jax` and `lw.report` on first use.

    Raises:
        AttributeError: The name is unknown, or its framework is not installed; `hasattr` is then False.
    """
    if name not in _DOORS:
        raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")
    try:
        return importlib.import_module(f"lengthwise.{name}")
    except ImportError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return sorted([*__all__, *_DOORS, *(name for name in globals() if name.startswith("__"))])
