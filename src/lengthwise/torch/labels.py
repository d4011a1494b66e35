"""The labels of a batch: how many there are, and whether the loss of a model is the mean over them.

    labels  [rows, ...]   -100 where a loss leaves an entry out, as cross_entropy of PyTorch does

No attribute of a model says what its loss is a mean of. So it is tried on labels of which some are set to -100.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lengthwise._samples import IGNORED

TOLERANCE = 0.05  # relative: losses in bfloat16 are exact to 0.01, and what is no mean over labels misses by a factor
LABELS, NEXT_LABELS, OTHER = MEANS = ("labels", "next labels", "other")

Loss = Callable[[dict[str, Any]], float]


def count_labels(batch: Any, *, shifted: bool = False) -> int | None:
    """How many labels of a batch are not -100; None where it has no tensor of `labels`.

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


def mean_of(loss: Loss, batch: Any, *, shifted: bool = False) -> str | None:
    """What the loss is a mean over: the "labels", the "next labels", or "other"; None if the batch cannot tell.

    A batch can tell if several rows have labels, with -100 among them. Without -100 it is not tried: a loss that does
    not know -100 may fail.

    Args:
        loss: The loss of a batch, without dropout. Terms that take no labels, such as the auxiliary loss of a mixture
            of experts, change nothing.
        batch: What a collate function gave.
        shifted: Whether next labels are meant, where no row has a first label, which would tell.

    >>> def mean(batch):
    ...     return float(batch["labels"][batch["labels"] != -100].float().mean())
    >>> batch = {"labels": torch.tensor([[5, 2, 7], [3, 1, -100]])}
    >>> mean_of(mean, batch), mean_of(lambda batch: 9.0, {"labels": torch.tensor([2, 7])})
    ('labels', None)
    >>> mean_of(lambda batch: mean({"labels": batch["labels"][:, 1:]}), batch)
    'next labels'
    >>> mean_of(lambda batch: float(batch["labels"].clamp(min=0).sum()), batch)
    'other'
    """
    if not _can_tell(batch):
        return None
    if batch["labels"][..., 0].ne(IGNORED).any():
        shifted = _is_shifted(loss, batch)
    is_mean = _is_mean(loss, batch, shifted)
    if is_mean is None:  # the loss is not finite: another batch is tried then
        return None
    if not is_mean:
        return OTHER
    return NEXT_LABELS if shifted else LABELS


def _can_tell(batch: Any) -> bool:
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    if not torch.is_tensor(labels) or labels.dim() < 2 or not labels.eq(IGNORED).any() or "shift_labels" in batch:
        return False
    # A half without labels has a loss of 0/0, which tells nothing.
    return all(count_labels(half, shifted=True) for half in _halves(batch))


def _halves(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The batch twice, with the labels of every second row, and of the other rows."""
    halves = []
    for first in (0, 1):  # rows 0, 2, 4 lose their labels in the one half, and rows 1, 3, 5 in the other
        kept = batch["labels"].clone()
        kept[first::2] = IGNORED
        halves.append({**batch, "labels": kept})
    return halves


def _is_shifted(loss: Loss, batch: Mapping[str, Any]) -> bool:
    """Whether the first label of each row changes nothing, when it is the only one."""
    # Without any label the mean is 0/0: two NaN count as equal.
    # A model that predicts the next label never reads the first of a row, so that its loss stays the same.
    none = torch.full_like(batch["labels"], IGNORED)
    first = none.clone()
    first[..., 0] = batch["labels"][..., 0]
    with_first, without = loss({**batch, "labels": first}), loss({**batch, "labels": none})
    return with_first == without or (math.isnan(with_first) and math.isnan(without))


def _is_mean(loss: Loss, batch: Mapping[str, Any], shifted: bool) -> bool | None:
    """Whether the means over the labels of each half of the rows make up the loss of the whole; None if not finite.

    With 6 labels in one half and 2 in the other, a mean over labels is 6/8 of the first half's loss and 2/8 of the
    second's. A mean over rows is not: each half also counts the rows that have no labels left.
    """
    halves = _halves(batch)
    counts = [count_labels(half, shifted=shifted) or 0 for half in halves]
    whole = loss({**batch})
    made = sum(count * loss(half) for half, count in zip(halves, counts, strict=True)) / sum(counts)
    return abs(made - whole) <= TOLERANCE * abs(whole) if math.isfinite(whole) else None
