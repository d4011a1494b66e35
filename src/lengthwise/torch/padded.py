"""A check of the first batches of a loader against the lengths of the sampler.

Some mistakes raise no error. A data set may be shuffled after its lengths were measured. A tokenizer may pad all texts
to one length. A collate function may pad samples that the plan packs into rows. A trainer may lengthen sequences after
their lengths were read: by an end token, a template, an augmentation. Batches are then over the budget.

    longest, total  [dims]         the longest and the total length in a batch, by the sampler's lengths
    planned         [dims]         the padded length in the plan: the longest, or a multiple or an edge above it
    sizes           {place: size}  the size of every axis of every tensor in a batch: {("input_ids", 1): 212, ...}
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import costs_of
from lengthwise.choices.cut import Cut, is_hard
from lengthwise.choices.rows import Rows
from lengthwise.planning.plan import Plan
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch
from lengthwise.torch.collate import PaddedSequences
from lengthwise.torch.rows import PackedRows

_BATCHES = 24  # batches to check: few, so that the warning comes early in the first epoch
_MOST = 240  # batches to check if the first ones are too similar, as in a curriculum that begins with short sequences
_LEAST = 0.4  # agreement: augmentation, truncation, or lengths in words leave more than this; chance leaves less
_VARIED = 1.25  # the ratio of quartiles of the lengths: below it, the batches are too similar to check
_UNIT = 3.0  # times the planned lengths: sizes further off have another unit, such as samples for frames
_FAR_LESS = 0.8  # of the planned cost: batches that hold less waste the budget
_PARTS = 16  # items of a list in a batch to check: batches of objects may hold hundreds
# The share of the 276 pairs of 24 batches that must differ: the first to accept the order, the second to warn.
_LEAST_TOLD, _TOLD = 0.1, 0.25

Place = tuple[Any, ...]
Sizes = dict[Place, NDArray[np.int64]]


class _Batch(NamedTuple):
    """The planned lengths of a batch, and its sizes."""

    plan: Plan
    number: int
    sequences: int
    longest: NDArray[np.int64]
    total: NDArray[np.int64]
    planned: NDArray[np.int64]
    sizes: dict[Place, int]


class PaddedAsPlanned:
    """A check of the batches of a run, which warns once if the first are not as long as planned, or one is over budget.

    Attributes:
        has_seen_enough: True once it checks no more batches.
    """

    def __init__(self, batching: Batching, lengths: NDArray[Any]) -> None:
        self._batching, self._lengths = batching, lengths
        self._seen: list[_Batch] = []
        self._checks_order = True
        self._places: list[Place] = []  # of the planned lengths, one for each dimension, once they are found
        self._watched = 0
        self.has_seen_enough: bool = False

    def look(self, batch: Any, plan: EpochPlan, rank: int, batch_number: int) -> None:
        """Records the sizes of a batch: number `batch_number` of a rank."""
        seen = _read(batch, plan, self._lengths, rank, batch_number)
        if self._places:
            self._watch([seen])
        if not self._checks_order:
            return
        self._seen.append(seen)
        cut, is_round = self._batching.cut, len(self._seen) % _BATCHES == 0
        if isinstance(cut, Rows) and isinstance(batch, PackedRows):
            is_enough = _tell_of_other_rows(batch, cut) or len(self._seen) >= _BATCHES
        else:
            is_enough = is_round and (_tell(self._seen, cut) or len(self._seen) >= _MOST)
        if is_round and is_hard(cut) and not self._watched:
            self._places = _find_places(self._seen, any_order=not is_enough)
            if self._places:
                self._watch(self._seen)
        if is_enough:
            self._checks_order = False
            self._seen.clear()
            self.has_seen_enough = not self._places

    def _watch(self, batches: Sequence[_Batch]) -> None:
        """Warns of batches over the budget, or far below it, and then checks no more."""
        self._watched += len(batches)
        costs = np.array([float(batch.plan.costs[batch.number]) for batch in batches])
        most = np.array([batch.plan.max_cost for batch in batches])
        counts, sizes = (np.array(each, np.int64) for each in zip(*map(self._held, batches), strict=True))
        held = costs_of(self._batching.cost, counts, sizes)
        # A planned batch is over the budget if its sequence alone is.
        over, ratio = (held > most) & (costs <= most), float(held.sum() / costs.sum())
        if over.any():
            how_many = f"{np.count_nonzero(over):,} of {self._watched:,} are over the budget of {most[over][0]:,.16g}"
            remedy = (
                "If you cut the lengths, cut the samples too. Are the lengths in the order of the data set? "
                "Read them from ready samples: lengths = [len(ids) for ids, label in dataset]. Under a trainer, "
                "PlannedTrainer(batching=...) does, or [len(ids) for ids in trainer.train_dataset['input_ids']]."
            )
            checks.warn(f"Batches hold {ratio:.2f} x the frames of the plan: {how_many}. {remedy}")
        elif len(batches) > 1 and ratio < _FAR_LESS and np.ptp(held / costs) > 1.0 - _FAR_LESS:
            remedy = (
                f"Crop the lengths as the samples are, such as np.minimum(lengths, {sizes.max()}), or raise the budget."
            )
            checks.warn(f"Batches hold {100 * ratio:.0f} % of the frames of the plan. {remedy}")
        else:
            return
        self._places, self.has_seen_enough = [], not self._checks_order

    def _held(self, batch: _Batch) -> tuple[int, list[int]]:
        """Returns the rows of a batch, and the length that its sequences are padded to, for each dimension."""
        *part, axis = self._places[0]
        rows = batch.sizes.get((*part, 1 - axis), batch.sequences)
        return rows, [
            batch.sizes.get(place, int(size)) for place, size in zip(self._places, batch.planned, strict=True)
        ]


def _read(batch: Any, plan: EpochPlan, lengths: NDArray[Any], rank: int, batch_number: int) -> _Batch:
    """Returns the planned lengths and the sizes of a batch of a rank."""
    if isinstance(plan, WindowEpoch):
        window_number, batch_number = plan.find(batch_number)
        window = plan.window(window_number)
        plan, lengths = window.plan, np.asarray(lengths)[window.numbers]
    step, micro_batch = divmod(batch_number, plan.micro_batches)
    number = int(plan.grid[step, micro_batch, rank])
    members = plan.batch(number)
    in_batch = members[:, 2] - members[:, 1] if members.ndim == 2 else np.asarray(lengths[members])
    in_batch = in_batch.reshape(len(members), -1).astype(np.int64)
    padded, sizes = plan.padded_lengths[number].reshape(-1), dict(_sizes_in(batch))
    return _Batch(plan, number, len(in_batch), in_batch.max(axis=0), in_batch.sum(axis=0), padded, sizes)


def _find_places(batches: Sequence[_Batch], *, any_order: bool) -> list[Place]:
    """Returns the padded axis of each dimension of the lengths: the nearest in size that rises with them; or none.

    With `any_order`, the data set may have another order than the lengths: then one size need not rise with them.
    """
    padded, planned = _sizes_of_all(batches)[0], np.array([batch.planned for batch in batches])
    places: list[Place] = []
    for dim in planned.T:
        distances = {place: _distance(dim, size) for place, size in padded.items() if size.min()}
        near = [place for place, distance in distances.items() if distance < np.log(_UNIT)]
        alike = _agreement(dim, dim)[1] < _LEAST_TOLD
        rising = [place for place in near if alike or _agreement(dim, padded[place])[0] >= _LEAST]
        if not rising and any_order:  # one size that varies all the same
            varied = [place for place in near if np.ptp(padded[place])]
            rising = varied if len({padded[place].tobytes() for place in varied}) == 1 else []
        if not rising:
            return []
        places.append(min(rising, key=lambda place: (distances[place], str(place))))
    return places


def _distance(planned: NDArray[np.int64], size: NDArray[np.int64]) -> float:
    """Returns how far sizes are from the planned ones: the logarithm of their ratio, or of that of their rise.

    A template of 30 tokens makes 40 of 10, and 130 of 100: four times as long, but the rise is the same.
    """
    low, high = int(planned.argmin()), int(planned.argmax())
    rise = (size[high] - size[low]) / max(1, int(planned[high] - planned[low]))
    factors = [float(np.median(size / planned)), *([float(rise)] if rise > 0.0 else [])]
    return min(abs(float(np.log(factor))) for factor in factors)


def _tell(batches: Sequence[_Batch], cut: Cut) -> bool:
    """Warns if the batches are not as planned; returns False if more batches are needed."""
    longest, total, planned = (
        np.array([getattr(batch, name) for batch in batches]) for name in ("longest", "total", "planned")
    )
    padded, others = _sizes_of_all(batches)
    sizes = [*padded.values(), *others.values()]
    if isinstance(cut, Rows):
        return _tell_of_rows(longest[:, 0], total[:, 0], padded, sizes, cut.capacity)
    low, high = np.quantile(longest, (0.25, 0.75), axis=0)
    if (high < _VARIED * low).all():
        return False
    # A batch may hold frames and labels, or all frames end to end. One size that rises with the plan is enough.
    if _go_together(longest, sizes) or _go_together(total, others.values()) or _tell_of_order(longest, padded):
        return True
    # Only tokens [B, T]: features [B, T, 80] have an axis that never varies.
    deep = {place[:-1] for place in (*padded, *others) if place[-1] == 2}
    return _tell_of_one_size(planned[:, 0], [size for place, size in padded.items() if place[:-1] not in deep])


def _sizes_of_all(batches: Sequence[_Batch]) -> tuple[Sizes, Sizes]:
    """Returns the sizes [batches] of padded axes, and of others; axes of B, the number of sequences, are left out."""
    places = set.intersection(*(set(batch.sizes) for batch in batches))
    # Under a budget, B is larger for shorter sequences, so it varies whatever the padding is.
    rows = {place for place in places if all(batch.sizes[place] == batch.sequences for batch in batches)}
    sizes = {place: np.array([batch.sizes[place] for batch in batches]) for place in places - rows}
    # In [B, T, 80] or [T, B, 80], the other axis of the first two is T.
    padded = {(*part, axis) for *part, axis in sizes if any((*part, row_axis) in rows for row_axis in {0, 1} - {axis})}
    return {place: sizes[place] for place in padded}, {place: sizes[place] for place in sizes.keys() - padded}


def _go_together(planned: NDArray[np.int64], sizes: Iterable[NDArray[np.int64]]) -> bool:
    """Tells if one of the sizes rises with one dimension of the planned lengths, [batches, dims]."""
    agreements = [_agreement(dim, size) for size in sizes for dim in planned.T]
    return any(agreement >= _LEAST and share >= _LEAST_TOLD for agreement, share in agreements)


def _tell_of_other_rows(batch: PackedRows, cut: Rows) -> bool:
    """Warns of rows with another capacity or more sequences than planned; else returns False."""
    capacity, most = batch.segments.shape[1], int(batch.segments.max())
    if capacity == cut.capacity and most <= (cut.max_in_row or most):
        return False
    limit = "" if cut.max_in_row is None else f", max_in_row={cut.max_in_row}"
    rule = f"rows of {cut.capacity}" + (f" with at most {cut.max_in_row} sequences" if limit else "") + ", as planned"
    remedy = f"Collate with lw.torch.RowCollate({cut.capacity}{limit}), or plan with the capacity of your rows."
    checks.warn(checks.sentence("batches", rule, f"rows of {capacity} with up to {most} sequences", remedy))
    return True


def _tell_of_rows(
    longest: NDArray[np.int64],
    total: NDArray[np.int64],
    padded: Sizes,
    sizes: Sequence[NDArray[np.int64]],
    capacity: int,
) -> bool:
    """Warns of batches that are padded to their longest sequence, where packed rows were planned."""
    # One tensor is enough: with rows of the capacity, or with all sequences end to end.
    if any((size == capacity).all() or (size == total).all() for size in sizes):
        return True
    too_long = [size for size in padded.values() if size.min() < size.max() and (size >= longest).all()]
    if too_long:
        most = max(too_long, key=lambda size: size.sum())
        remedy = f"Collate with lw.torch.RowCollate({capacity}), or cut by a Budget: batches are far too large."
        value = f"padded to their longest sequence, {most.min()} to {most.max()}"
        checks.warn(checks.sentence("batches", f"rows of {capacity}, as planned", value, remedy))
    return bool(too_long)


def _tell_of_order(longest: NDArray[np.int64], padded: Sizes) -> bool:
    """Warns of batches that are padded to other lengths than planned; returns False if too few differ to tell."""
    shares = {place: max(_agreement(dim, size)[1] for dim in longest.T) for place, size in padded.items()}
    # The tensor that varies most often shows the padding best.
    place = max(shares, key=lambda place: (shares[place], str(place)), default=())
    if shares.get(place, 0.0) < _TOLD:
        return False
    ends = [int(longest[:, 0].argmin()), int(longest[:, 0].argmax())]
    (low, high), (short, long) = longest[ends, 0], padded[place][ends]
    state = f"Batches planned for lengths of up to {low} and {high} are padded to {short} and {long}"
    remedy = "`lengths` must be those of the dataset, in its order, after it is shuffled, filtered and tokenized."
    checks.warn(f"{state}. {remedy}")
    return True


def _tell_of_one_size(planned: NDArray[np.int64], padded: list[NDArray[np.int64]]) -> bool:
    """Warns if all batches are padded to one length that most do not need; else returns False."""
    # Sequences that were truncated to one length need no padding: this length is below most planned ones. A plan with
    # multiples of 64 may itself pad all batches to one length.
    most = np.quantile(planned, 0.75)
    alike = [int(size[0]) for size in padded if (size == size[0]).all() and planned.min() < size[0] >= most]
    if not alike:
        return False
    rule = f"padded to the planned lengths, {planned.min()} to {planned.max()}"
    remedy = (
        "Pad in the collate function alone, to the longest sequence of the batch, and not before, as in a tokenizer. "
        "If nothing pads before: are the lengths in the order of the data set?"
    )
    checks.warn(checks.sentence("batches", rule, f"{min(alike)} for all", remedy))
    return True


def _agreement(planned: NDArray[np.int64], size: NDArray[np.int64]) -> tuple[float, float]:
    """Returns the rank correlation of two sizes, -1 to 1, and the share of pairs of batches that it counts.

    Goodman and Kruskal's gamma: among the pairs that differ in both sizes, the share in the same order less the share
    in the opposite order. So the unit does not matter, and lengths that truncation made equal do not count.

    >>> _agreement(np.array([1, 2, 3, 9]), np.array([10, 20, 20, 20]))
    (1.0, 0.5)
    """
    signs = np.sign(planned[:, None] - planned) * np.sign(size[:, None] - size)
    count = int(np.count_nonzero(signs))
    return float(signs.sum() / max(count, 1)), count / (len(planned) * (len(planned) - 1))


def _sizes_in(part: Any, place: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yields the size of every axis of every tensor and array in a batch."""
    if isinstance(part, np.ndarray) or (isinstance(part, torch.Tensor) and not part.is_nested):
        yield from (((*place, axis), int(size)) for axis, size in enumerate(part.shape))
    elif isinstance(part, dict | UserDict):  # the batches of a tokenizer are a UserDict
        for name, item in part.items():
            yield from _sizes_in(item, (*place, name))
    elif isinstance(part, PaddedSequences):  # the shape [B, T] of its mask
        yield from (((*place, axis), size) for axis, size in enumerate(part.values.shape[:2]))
    elif isinstance(part, list | tuple):
        for number, item in enumerate(part[:_PARTS]):
            yield from _sizes_in(item, (*place, number))
