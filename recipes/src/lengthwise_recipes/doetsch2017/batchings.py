"""The batchings of Doetsch et al. 2017, tables 1 and 2, and the default order of this package.

The paper's batches hold 5,000 frames, "such that the overall number of updates is constant in all experiments". So
padding is not counted: otherwise chunks, with little padding, would make fewer updates than whole utterances.

Table 2 gives no batch size. But its random row repeats the last row of table 1, and memory grows with padding. So
padding is not counted there either, and our batches have 5,000 frames for both tables. MXNet's batches have a fixed
number of sequences, here the mean of the other batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise import Cost, Cuts
from lengthwise.checks import check_whole
from lengthwise.cli.strategies import parse_strategy

PAPER_FRAMES = 5000  # section 6
PAPER_CHUNKS = (10, 50, 100, 500)  # table 1
PAPER_BINS = (8, 64, 256)  # table 2
BUCKET_SPAN = 250  # figure 1: "a bucket size of 250", lengths from 1 to 250, 251 to 500 and so on
FIGURE_BINS = 12  # figure 1
FIGURE_UTTERANCES = 1000  # figure 1
RANDOM = "random"
SORTED = "sorted"
MXNET = "mxnet"
OURS = "max-entropy:0.05"


@dataclass(frozen=True, slots=True)
class TrueFrames:
    """A cut into batches of at most `frames` frames, padding not counted: padding does not change the number of steps.

    A sequence of more than `frames` frames is a batch alone. The cost of a batch has no bound: to bound memory, use
    `lengthwise.Budget`.

    References:
        Doetsch et al. 2017, section 6.
    """

    frames: int

    def __post_init__(self) -> None:
        check_whole("frames", self.frames, minimum=1, remedy="Give the frames of a batch, such as 5000.")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        """Fills each batch in order until the next sequence would exceed `frames`.

        >>> none = np.empty(0, np.int64)
        >>> lengths = np.array([[3], [2], [4], [9], [1]])
        >>> TrueFrames(6)(lengths, none, cost=lw.Padded(), longest=lengths.max(axis=0)).offsets
        array([0, 2, 3, 4, 5])
        """
        del cost, longest
        ends = np.cumsum(lengths.sum(axis=1))
        borders = np.append(boundaries, len(lengths))
        offsets = [0]
        while offsets[-1] < len(lengths):
            start = offsets[-1]
            previous_frames = ends[start - 1] if start else 0
            full = int(np.searchsorted(ends, previous_frames + self.frames, side="right"))
            boundary = int(borders[np.searchsorted(borders, start, side="right")])
            offsets.append(min(max(full, start + 1), boundary))
        return Cuts(np.arange(len(lengths)), np.array(offsets))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        del cost, longest
        return np.inf

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        del cost, longest
        return np.maximum(1.0, self.frames / lengths.sum(axis=1))


def batchings(lengths: NDArray[np.int64], *, frames: int, bins: tuple[int, ...]) -> dict[str, lw.Batching]:
    """Returns the batchings of both tables, random first, and that of this package last.

    Args:
        lengths: Frames of the training utterances, [n].
        frames: Frames of a batch.
        bins: Numbers of bins of alternated sorting.

    Returns:
        Batchings by label. "random" is the last row of table 1 and the first of table 2.
    """
    cut = TrueFrames(frames)
    size = max(1, round(frames / float(lengths.mean())))
    chunked = {
        chunk_label(size): lw.Batching(order=lw.Shuffled(), cut=cut, chunks=lw.Chunks(size)) for size in PAPER_CHUNKS
    }
    in_order = ",arrange=in-order"
    named = {
        SORTED: f"sorted{in_order}",
        **{bins_label(count): f"alternated:{count}{in_order}" for count in bins},
        OURS: OURS,
    }
    return {
        RANDOM: lw.Batching(order=lw.Shuffled(), cut=cut),
        **chunked,
        # MXNet's own iterator also drops incomplete batches. The paper does not mention it.
        MXNET: lw.Batching(order=lw.Bucketed(edges=span_edges(lengths), pad_to_edge=True), cut=lw.FixedSize(size)),
        **{label: parse_strategy(text, cut=cut) for label, text in named.items()},
    }


def figure_batchings(lengths: NDArray[np.int64]) -> dict[str, lw.Batching]:
    """Returns the orders of figure 1, unshuffled. The paper does not say the size of its batches; we take 16."""
    bucketed = lw.Bucketed(edges=span_edges(lengths))
    orders = {
        RANDOM: lw.Shuffled(),
        SORTED: lw.Sorted(),
        f"{MXNET}, spans of {BUCKET_SPAN}": bucketed,
        bins_label(FIGURE_BINS): lw.AlternatedSort(bins=FIGURE_BINS),
    }
    return {
        label: lw.Batching(order=order, cut=lw.FixedSize(16), arrange=lw.InOrder()) for label, order in orders.items()
    }


def span_edges(lengths: NDArray[np.int64]) -> tuple[int, ...]:
    """Returns the greatest length of each bucket of 250 lengths.

    >>> span_edges(np.array([20, 510]))
    (250, 500, 750)
    """
    return tuple(range(BUCKET_SPAN, int(lengths.max()) + BUCKET_SPAN, BUCKET_SPAN))


def chunk_label(size: int) -> str:
    return f"chunks of {size}"


def bins_label(bins: int) -> str:
    return f"alternated:{bins}"
