"""Lengthwise plans the batches for training on sequences of different lengths.

    lengths -> order -> cut -> deal -> arrange -> Plan

`make_plan` makes the plan, `measure` says what it is worth, `lengthwise.torch` feeds it to a DataLoader.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lengthwise.arrange import CostliestFirst as CostliestFirst
from lengthwise.arrange import InOrder as InOrder
from lengthwise.arrange import LongestFirst as LongestFirst
from lengthwise.arrange import ShortestFirst as ShortestFirst
from lengthwise.arrange import ShuffledSteps as ShuffledSteps
from lengthwise.batching import Batching as Batching
from lengthwise.buckets import exponential_edges as exponential_edges
from lengthwise.buckets import optimal_edges as optimal_edges
from lengthwise.buckets import padded_frames as padded_frames
from lengthwise.buckets import quantile_edges as quantile_edges
from lengthwise.buckets import uniform_edges as uniform_edges
from lengthwise.chunk import Chunks as Chunks
from lengthwise.cost import Padded as Padded
from lengthwise.cost import Quadratic as Quadratic
from lengthwise.cut import Budget as Budget
from lengthwise.cut import DynamicSize as DynamicSize
from lengthwise.cut import FixedSize as FixedSize
from lengthwise.deal import Balanced as Balanced
from lengthwise.deal import InTurn as InTurn
from lengthwise.deal import Mixed as Mixed
from lengthwise.deal import Portions as Portions
from lengthwise.evaluation import evaluation_plan as evaluation_plan
from lengthwise.evaluation import evaluation_weights as evaluation_weights
from lengthwise.evaluation import restore_order as restore_order
from lengthwise.lengths import Description as Description
from lengthwise.lengths import as_lengths as as_lengths
from lengthwise.lengths import audio_files as audio_files
from lengthwise.lengths import describe as describe
from lengthwise.lengths import example_lengths as example_lengths
from lengthwise.lengths import fingerprint as fingerprint
from lengthwise.lengths import read_lengths as read_lengths
from lengthwise.limit import mixing_limit as mixing_limit
from lengthwise.loss import learning_rate_scales as learning_rate_scales
from lengthwise.loss import loss_scales as loss_scales
from lengthwise.metrics import Measures as Measures
from lengthwise.metrics import measure as measure
from lengthwise.metrics import mixing as mixing
from lengthwise.metrics import step_mixing as step_mixing
from lengthwise.metrics import straggler_waste as straggler_waste
from lengthwise.named import cut_named as cut_named
from lengthwise.named import mxnet_bucketing as mxnet_bucketing
from lengthwise.named import strategies as strategies
from lengthwise.named import strategy as strategy
from lengthwise.order import AlternatedSort as AlternatedSort
from lengthwise.order import Bucketed as Bucketed
from lengthwise.order import MaxEntropy as MaxEntropy
from lengthwise.order import SemiSorted as SemiSorted
from lengthwise.order import Shuffled as Shuffled
from lengthwise.order import Sorted as Sorted
from lengthwise.order import Windowed as Windowed
from lengthwise.plan import Plan as Plan
from lengthwise.plan import PlanMismatchError as PlanMismatchError
from lengthwise.planning import make_plan as make_plan
from lengthwise.shapes import batch_shapes as batch_shapes

if TYPE_CHECKING:
    from lengthwise import jax as jax
    from lengthwise import plot as plot
    from lengthwise import torch as torch

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # `lw.torch`, `lw.jax` and `lw.plot`, without importing what they stand on for those who do not ask for them.
    if name in ("torch", "jax", "plot"):
        return importlib.import_module(f"lengthwise.{name}")
    raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")
