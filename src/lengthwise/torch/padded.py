"""Compares the first batches of a loader with the lengths that the sampler was given.

A data set that was shuffled or filtered after its lengths were measured trains as if nothing were wrong, on batches
that pad like random ones and know no budget. So does one whose tokenizer has padded all texts to one length. And what
was planned as packed rows is many times as large where the collate function pads it.

    longest, total  [dims]         of a batch, by the lengths that the sampler was given
    planned         [dims]         to which the plan pads it: the longest, or a multiple or an edge above it
    sizes           {place: size}  of every tensor in a batch, axis by axis: {("input_ids", 1): 212, ...}
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.cut import Cut
from lengthwise.choices.rows import Rows
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch
from lengthwise.torch.collate import PaddedSequences
from lengthwise.torch.rows import PackedRows

_BATCHES = 24  # to look at: few, so that a user hears of it before an epoch is lost
_MOST = 240  # if the first batches are too much alike to tell
_LEAST = 0.4  # agreement: augmentation, truncation, or lengths in words leave more than this; chance leaves less
_VARIED = 1.25  # from quartile to quartile: batches that are planned more alike can tell nothing
_PARTS = 16  # of a list in a batch: of 1,000 sequences the first few tell enough
_LEAST_TOLD = 0.1  # of the pairs of batches must differ to show that batches are as planned,
_TOLD = 0.25  # and so many to say that they are not

Place = tuple[Any, ...]


class _Batch(NamedTuple):
    """What was planned of a batch, and what came."""

    longest: NDArray[np.int64]
    total: NDArray[np.int64]
    planned: NDArray[np.int64]
    sizes: dict[Place, int]
    rows: frozenset[Place]  # those of `sizes` that are the number of sequences
    padded: frozenset[Place]  # those that padding decides


class PaddedAsPlanned:
    """Looks at the first batches of a run, and warns once if they are not as long as planned.

    Attributes:
        has_seen_enough: Whether it looks at no more batches.
    """

    def __init__(self, cut: Cut, lengths: NDArray[Any]) -> None:
        self._cut, self._lengths = cut, lengths
        self._seen: list[_Batch] = []
        self.has_seen_enough: bool = False

    def look(self, batch: Any, plan: EpochPlan, rank: int, place: int) -> None:
        """Notes the sizes of a batch, which the plan has at a `place` of the batches of a rank."""
        lengths, planned = _planned_lengths(plan, self._lengths, rank, place)
        sizes = dict(_sizes_in(batch))
        rows = frozenset(where for where, size in sizes.items() if size == len(lengths))
        # [B, T, 80] or, time first, [T, B, 80]: of a tensor with a row for each sequence, the other axes.
        padded = frozenset(
            (*part, axis) for *part, axis in sizes if any((*part, other) in rows for other in {0, 1} - {axis})
        )
        self._seen.append(_Batch(lengths.max(axis=0), lengths.sum(axis=0), planned, sizes, rows, padded))
        if isinstance(self._cut, Rows) and isinstance(batch, PackedRows):
            enough = _tell_of_other_rows(batch, self._cut) or len(self._seen) >= _BATCHES
        else:
            enough = len(self._seen) % _BATCHES == 0 and (_tell(self._seen, self._cut) or len(self._seen) >= _MOST)
        if enough:
            self.has_seen_enough = True
            self._seen.clear()


def _planned_lengths(
    plan: EpochPlan, lengths: NDArray[Any], rank: int, place: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the lengths [k, dims] in a batch, and the length [dims] to which the plan pads it."""
    if isinstance(plan, WindowEpoch):
        number, place = plan.find(place)
        window = plan.window(number)
        plan, lengths = window.plan, np.asarray(lengths)[window.numbers]
    step, micro_batch = divmod(place, plan.micro_batches)
    number = int(plan.grid[step, micro_batch, rank])
    batch = plan.batch(number)
    in_batch = batch[:, 2] - batch[:, 1] if batch.ndim == 2 else np.asarray(lengths[batch])
    return in_batch.reshape(len(batch), -1).astype(np.int64), plan.padded_lengths[number].reshape(-1)


def _tell(seen: Sequence[_Batch], cut: Cut) -> bool:
    """Warns if the batches are not as planned; returns False if they do not tell yet."""
    if isinstance(cut, Rows):
        return _tell_of_rows(seen, cut.capacity)
    longest, total = (np.array([getattr(each, name) for each in seen]) for name in ("longest", "total"))
    low, high = np.quantile(longest, (0.25, 0.75), axis=0)
    if (high < _VARIED * low).all():
        return False
    sizes = _sizes_of_all(seen)
    padded = {place: size for place, size in sizes.items() if all(place in each.padded for each in seen)}
    others = [size for place, size in sizes.items() if place not in padded]
    # A batch may hold frames beside labels, or all frames end to end. One that goes with the plan is enough.
    if _go_together(longest, sizes.values()) or _go_together(total, others) or _tell_of_order(longest, padded):
        return True
    # Tokens [B, T] alone: of features [B, T, 80], one axis never varies.
    deep = {place[:-1] for each in seen for place in each.sizes if place[-1] == 2}
    flat = [size for (*part, axis), size in padded.items() if axis < 2 and tuple(part) not in deep]
    return _tell_of_one_size(np.array([each.planned[0] for each in seen]), flat)


def _sizes_of_all(seen: Sequence[_Batch]) -> dict[Place, NDArray[np.int64]]:
    """Returns the sizes that every batch has: {place: [looked at]}; without those that are the number of sequences."""
    places = set.intersection(*(set(each.sizes) for each in seen))
    # Short sequences make large batches, so the number of sequences goes with the plan whatever the batch holds.
    places -= frozenset.intersection(*(each.rows for each in seen))
    return {place: np.array([each.sizes[place] for each in seen]) for place in places}


def _go_together(planned: NDArray[np.int64], sizes: Iterable[NDArray[np.int64]]) -> bool:
    """Tells if one of the sizes rises with one column of what was planned, [looked at, dims]."""
    found = [_agreement(dim, size) for size in sizes for dim in planned.T]
    return any(agreement >= _LEAST and told >= _LEAST_TOLD for agreement, told in found)


def _tell_of_other_rows(batch: PackedRows, cut: Rows) -> bool:
    """Warns of rows of another capacity, or of more sequences, than were planned and measured; else returns False."""
    capacity, most = batch.segments.shape[1], int(batch.segments.max())
    if capacity == cut.capacity and most <= (cut.max_in_row or most):
        return False
    limit = "" if cut.max_in_row is None else f", max_in_row={cut.max_in_row}"
    rule = f"rows of {cut.capacity}" + (f" with at most {cut.max_in_row} sequences" if limit else "") + ", as planned"
    remedy = f"Collate with lw.torch.RowCollate({cut.capacity}{limit}), or plan with the capacity of your rows."
    checks.warn(checks.sentence("batches", rule, f"rows of {capacity} with up to {most} sequences", remedy))
    return True


def _tell_of_rows(seen: Sequence[_Batch], capacity: int) -> bool:
    """Warns of batches that are padded to their longest sequence, where packed rows were planned."""
    places = set.intersection(*(set(each.sizes) for each in seen))
    sizes = {place: np.array([each.sizes[place] for each in seen]) for place in places}
    total = np.array([each.total[0] for each in seen])
    # Rows of the capacity, or all sequences end to end, beside whatever else.
    if any((size == capacity).all() or (size == total).all() for size in sizes.values()):
        return True
    longest = np.array([each.longest[0] for each in seen])
    padded = [sizes[place] for place in places & frozenset.intersection(*(each.padded for each in seen))]
    found = [size for size in padded if size.min() < size.max() and (size >= longest).all()]
    if found:
        most = max(found, key=lambda size: size.sum())
        remedy = f"Collate with lw.torch.RowCollate({capacity}), or cut by a Budget: batches are far too large."
        given = f"padded to their longest sequence, {most.min()} to {most.max()}"
        checks.warn(checks.sentence("batches", f"rows of {capacity}, as planned", given, remedy))
    return bool(found)


def _tell_of_order(longest: NDArray[np.int64], padded: dict[Place, NDArray[np.int64]]) -> bool:
    """Warns of batches that are padded to other lengths than planned; returns False if too few differ to tell."""
    told = {place: max(_agreement(dim, size)[1] for dim in longest.T) for place, size in padded.items()}
    # The tensor that varies most often shows best what is padded.
    place = max(told, key=lambda place: (told[place], str(place)), default=())
    if told.get(place, 0.0) < _TOLD:
        return False
    shortest, longest_at = int(longest[:, 0].argmin()), int(longest[:, 0].argmax())
    low, high = longest[shortest, 0], longest[longest_at, 0]
    short, long = padded[place][shortest], padded[place][longest_at]
    given = f"{low} and {high} for batches that are padded to {short} and {long}"
    remedy = "Measure them once the dataset is shuffled, filtered and tokenized, in its order."
    checks.warn(checks.sentence("lengths", "those of the dataset, in its order", given, remedy))
    return True


def _tell_of_one_size(planned: NDArray[np.int64], padded: list[NDArray[np.int64]]) -> bool:
    """Warns of batches that are all padded to one length, more than most need; returns False if none are."""
    # Sequences that are cut to one length are shorter than most were: nothing is padded. A plan of few lengths, such as
    # multiples of 64, may itself pad all batches to one.
    most = np.quantile(planned, 0.75)
    alike = [int(size[0]) for size in padded if (size == size[0]).all() and planned.min() < size[0] >= most]
    if not alike:
        return False
    rule = f"padded to what is planned, {planned.min()} to {planned.max()}"
    remedy = "Let the collate function alone pad, to the longest sequence of the batch: no tokenizer before it."
    checks.warn(checks.sentence("batches", rule, f"{min(alike)} for all", remedy))
    return True


def _agreement(planned: NDArray[np.int64], size: NDArray[np.int64]) -> tuple[float, float]:
    """Returns how far two sizes of each batch rise together, -1 to 1, and the share of pairs of batches that tell so.

    Goodman and Kruskal's gamma: of the pairs that differ in both, those in the same order less the others. So a unit
    changes nothing, and what truncation made alike does not count.

    >>> _agreement(np.array([1, 2, 3, 9]), np.array([10, 20, 20, 20]))
    (1.0, 0.5)
    """
    signs = np.sign(planned[:, None] - planned) * np.sign(size[:, None] - size)
    told = int(np.count_nonzero(signs))
    return float(signs.sum() / max(told, 1)), told / (len(planned) * (len(planned) - 1))


def _sizes_in(part: Any, place: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yields the size of every axis of every tensor and array in a batch."""
    if isinstance(part, np.ndarray) or (isinstance(part, torch.Tensor) and not part.is_nested):
        yield from (((*place, axis), int(size)) for axis, size in enumerate(part.shape))
    elif isinstance(part, dict | UserDict):  # the batches of a tokenizer are a UserDict
        for name, each in part.items():
            yield from _sizes_in(each, (*place, name))
    elif isinstance(part, PaddedSequences):  # as its mask [B, T], which tells which axis is padded
        yield from (((*place, axis), size) for axis, size in enumerate(part.values.shape[:2]))
    elif isinstance(part, list | tuple):
        for number, each in enumerate(part[:_PARTS]):
            yield from _sizes_in(each, (*place, number))
