"""The frames of batches as they arrive: a trainer may have lengthened the sequences after their lengths were read."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lengthwise.torch.collate import PaddedSequences
from lengthwise.torch.rows import PackedRows


def count_frames(batch: Any, dims: int = 1) -> NDArray[np.int64]:
    """Returns the frames of data in a batch, and with padding, by its masks: [2]; zeros for a batch without a mask.

    If several fields have a mask, such as frames and labels, the largest `dims` count.

    >>> batch = {"frames": PaddedSequences(torch.zeros(2, 9, 80), torch.tensor([9, 4])), "speaker": torch.ones(2)}
    >>> count_frames(batch).tolist()
    [13, 18]
    """
    largest = sorted(_counts_in(batch))[-dims:]
    return np.array([sum(data for _, data in largest), sum(computed for computed, _ in largest)])


def _counts_in(part: Any) -> Iterator[tuple[int, int]]:
    """Yields the frames with padding, and those of data, of each mask that is in memory: a GPU would have to wait."""
    if isinstance(part, PaddedSequences) and part.lengths.is_cpu:
        yield part.values.shape[:2].numel(), int(part.lengths.numpy().sum())
    elif isinstance(part, PackedRows):
        yield from _counts_of_mask(part.segments)
    elif isinstance(part, dict | UserDict) and "attention_mask" in part:
        yield from _counts_of_mask(part["attention_mask"])
    elif isinstance(part, dict | UserDict | list | tuple):
        for field in part if isinstance(part, list | tuple) else part.values():
            yield from _counts_in(field)


def _counts_of_mask(mask: Any) -> Iterator[tuple[int, int]]:
    if isinstance(mask, np.ndarray | torch.Tensor) and mask.ndim == 2 and getattr(mask, "is_cpu", True):
        yield mask.shape[0] * mask.shape[1], int(np.count_nonzero(mask))
