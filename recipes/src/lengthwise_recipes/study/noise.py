"""Measures the length share of a task at the weights of a model after an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise_recipes.length_share.gradients import length_share
from lengthwise_recipes.length_share.share import LengthShare
from lengthwise_recipes.study.task import Task, weights


def measure_noise(task: Task, model: nn.Module, plan: lw.Plan) -> dict[str, float]:
    """Returns the length share of a model and the noise of a plan, as metrics of a row.

    Leaves the model in training mode.
    """
    share = measure_share(task, model)
    steps = share.measure(plan)
    return {
        "length_share": share.share,
        "length_share_error": share.standard_error,
        "noise_scale": share.noise_scale,
        "variance_ratio": steps.variance_ratio,
        "variance_ratio_error": steps.standard_error,
    }


def measure_share(task: Task, model: nn.Module, *, sample: int = 512) -> LengthShare:
    """Returns the length share of a task, from the gradients of `sample` sequences."""
    model.train()
    widths = task.lengths.reshape(len(task.lengths), -1)[:, 0]

    def loss(model: nn.Module, batch: NDArray[np.int64]) -> Tensor:
        return task.loss(model, batch, int(widths[batch[0]]))

    collate: Any = np.array  # the task makes tensors from sequence numbers
    numbers = range(len(widths))
    counted = weights(task, None)
    return length_share(model, loss, numbers, task.lengths, collate_fn=collate, sample=sample, weights=counted)
