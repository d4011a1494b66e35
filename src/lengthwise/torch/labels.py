"""The labels of a batch: how many there are, and what the loss of a model is a mean over.

    labels  [rows, ...]   -100 where a loss leaves an entry out, as cross_entropy of PyTorch does

No attribute of a model says what its loss is a mean over. So it is tried on labels of which some are set to -100.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lengthwise import checks
from lengthwise._samples import IGNORED

_TOLERANCE = 0.05  # relative: losses in bfloat16 are exact to 0.01, and what is no mean over labels misses by a factor

Loss = Callable[[dict[str, Any]], float]


def count_labels(batch: Any, *, shifted: bool = False) -> int | None:
    """Counts the labels of a batch that are not -100; None if it has no tensor of `labels`.

    Args:
        batch: What a collate function gave.
        shifted: Whether the model compares its outputs with the next labels: the first label of a row does not count.

    >>> batch = {"labels": torch.tensor([[5, 2, 7], [3, 1, -100]])}
    >>> count_labels(batch), count_labels(batch, shifted=True), count_labels({})
    (5, 3, None)
    """
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    if not torch.is_tensor(labels):
        return None
    if torch.is_tensor(batch.get("shift_labels")):
        labels = batch["shift_labels"]
    elif shifted:
        labels = labels[..., 1:]
    return int(labels.ne(IGNORED).sum())


def check_mean_loss(loss: Loss, batch: Any, *, shifted: bool, name: str) -> None:
    """Checks that a loss is the mean over the labels of its batch, or over the next labels.

    Args:
        loss: The loss of a batch, without dropout. Terms that take no labels, such as the auxiliary loss of a mixture
            of experts, change nothing.
        batch: What a collate function gave.
        shifted: Whether it is said to be the mean over the next labels.
        name: Of the model, for the error.

    Raises:
        ValueError: The loss is a mean over something else; or the batch cannot tell. It needs rows with several labels,
            of which every second row has some, and -100 among them.

    >>> def mean(batch):
    ...     return float(batch["labels"][batch["labels"] != -100].float().mean())
    >>> batch = {"labels": torch.tensor([[5, 2, 7], [3, 1, -100]])}
    >>> check_mean_loss(mean, batch, shifted=False, name="Mean")
    >>> check_mean_loss(lambda batch: mean({"labels": batch["labels"][:, 1:]}), batch, shifted=True, name="Next")
    """
    # Without -100 it is not tried: a loss that does not know -100 may fail.
    if not _can_tell(batch):
        remedy = "Give what data_collator makes of two samples of different lengths, labels [rows, places]."
        raise checks.value_error("batch", "of rows with several labels each, and -100 among them", "another", remedy)
    if batch["labels"][..., 0].ne(IGNORED).any() and (found := _is_shifted(loss, batch)) != shifted:
        rule = f"{found}, as {name} compares its outputs with {'the next labels' if found else 'labels in place'}"
        raise checks.value_error("next_token", rule, shifted, f"Give PlannedTrainer next_token={found}.")
    if not _is_mean(loss, batch, shifted):
        remedy = "Give 1 for each sequence if it is the mean over sequences, or reduction='sum' if it is the sum."
        raise checks.value_error(
            "weights", f"given, as the loss of {name} is not the mean over its labels", None, remedy
        )


def _can_tell(batch: Any) -> bool:
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    if not torch.is_tensor(labels) or labels.dim() < 2 or not labels.eq(IGNORED).any() or "shift_labels" in batch:
        return False
    # A half without labels has a loss of 0/0, which tells nothing.
    return all(count_labels(half, shifted=True) for half in _halves(batch))


def _halves(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the batch twice, with the labels of every second row, and of the other rows."""
    halves = []
    for first in (0, 1):  # rows 0, 2, 4 lose their labels in the one half, and rows 1, 3, 5 in the other
        labels = batch["labels"].clone()
        labels[first::2] = IGNORED
        halves.append({**batch, "labels": labels})
    return halves


def _is_shifted(loss: Loss, batch: Mapping[str, Any]) -> bool:
    """Tells if the first label of each row changes nothing, when it is the only one."""
    # Without any label the mean is 0/0: two NaN count as equal.
    # A model that predicts the next label never reads the first of a row, so that its loss stays the same.
    none = torch.full_like(batch["labels"], IGNORED)
    first = none.clone()
    first[..., 0] = batch["labels"][..., 0]
    with_first, without = loss({**batch, "labels": first}), loss({**batch, "labels": none})
    return with_first == without or (math.isnan(with_first) and math.isnan(without))


def _is_mean(loss: Loss, batch: Mapping[str, Any], shifted: bool) -> bool:
    """Tells if the means over the labels of each half of the rows make up the loss of the whole.

    With 6 labels in one half and 2 in the other, a mean over labels is 6/8 of the first half's loss and 2/8 of the
    second's. A mean over rows is not: each half also counts the rows that have no labels left.
    """
    halves = _halves(batch)
    counts = [count_labels(half, shifted=shifted) or 0 for half in halves]
    whole = loss({**batch})
    sums = [count * loss(half) for half, count in zip(halves, counts, strict=True)]
    return abs(sum(sums) / sum(counts) - whole) <= _TOLERANCE * abs(whole)
