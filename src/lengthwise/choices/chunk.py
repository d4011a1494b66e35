"""Chunks: cuts long sequences into pieces before they are planned, for losses of single frames.

spans   [chunks, 3]   sequence, start, stop: frames start..stop-1 of that sequence
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks

_MOST_CHUNKS = 2**30  # their spans take 24 GiB


@dataclass(frozen=True, slots=True)
class Chunks:
    """Cuts every sequence into chunks of `size` frames that begin every `step` frames.

    Chunks overlap if `step` is below `size`. The last chunk of a sequence ends with it and may be shorter. No chunk
    lies wholly inside another, and no frame is lost.

    Args:
        size: The number of frames in a chunk.
        step: The number of frames from one start to the next, at most `size`; by default `size`.

    Raises:
        ValueError: A call would make more than 2**30 chunks in all.

    References:
        Doetsch, Golik, Ney 2017, section 6, table 1 (chunk sizes 10, 50, 100, 500, max).

    >>> Chunks(4)(np.array([3, 6])).tolist()
    [[0, 0, 3], [1, 0, 4], [1, 4, 6]]
    """

    size: int
    step: int | None = None

    def __post_init__(self) -> None:
        checks.keep_whole(self, "size", remedy="Give the frames in a chunk, such as 50.")
        remedy = f"Give at most the chunk size, {self.size}; a larger step would lose frames."
        checks.keep_whole(self, "step", maximum=self.size, remedy=remedy, optional=True)

    def __call__(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the spans of `lengths` [n], sequence by sequence: [chunks, 3].

        >>> Chunks(4, step=2)(np.array([3, 7]))
        array([[0, 0, 3],
               [1, 0, 4],
               [1, 2, 6],
               [1, 4, 7]])
        """
        step = self.step or self.size
        chunks = 1 + -(-np.maximum(lengths - self.size, 0) // step)
        count = chunks.sum(dtype=np.float64)  # in int64 the sum could overflow
        if count > _MOST_CHUNKS:
            remedy = "Check the unit of the lengths, or give a larger size, and a larger step if you gave one."
            raise checks.value_error("chunks", f"at most {_MOST_CHUNKS} in all", int(count), remedy)
        # For lengths [3, 7] with size 4 and step 2: chunks [1, 3], sequences [0, 1, 1, 1], starts [0, 0, 2, 4].
        sequences = np.repeat(np.arange(len(lengths)), chunks)
        first = np.cumsum(chunks) - chunks
        starts = (np.arange(len(sequences)) - first[sequences]) * step
        stops = starts + np.minimum(self.size, lengths[sequences] - starts)  # no sum on the way exceeds 2**63 - 1
        return np.stack([sequences, starts, stops], axis=1)
