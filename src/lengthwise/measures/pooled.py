"""Pooled: several epochs measured together, as many as mixing needs to be compared between batchings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from lengthwise.measures.metrics import Measures, measure
from lengthwise.measures.mixing import fine_bins
from lengthwise.planning.plan import Plan

_FILLING = 163_840  # sequences that fill 256 bins of mixing; short data need several epochs for them
MOST_EPOCHS = 32
# What is measured over several epochs; counts and padding stay those of the first.
_OVER_EPOCHS = ("mixing", "pair_mixing", "step_mixing", "step_length_variance", "straggler_waste", "mixing_bins")


def epochs_to_pool(count: int) -> int:
    """How many epochs of `count` sequences fill 256 bins, at most 32.

    >>> epochs_to_pool(10_480)
    16
    """
    return min(-(-_FILLING // max(count, 1)), MOST_EPOCHS)


def measure_pooled(plans: Sequence[Plan], lengths: ArrayLike) -> Measures:
    """The measures of all epochs as of one, in as many bins as their sequences fill together."""
    return measure(plans, lengths, bins=fine_bins(sum(plan.count for plan in plans)))


def join_measures(first: Measures, together: Measures) -> dict[str, Any]:
    """The measures of the first epoch by name, with those that need several epochs from all of them `together`."""
    of_all = together.as_dict()
    return first.as_dict() | {name: of_all[name] for name in _OVER_EPOCHS} | {"mixing_epochs": together.epochs}
