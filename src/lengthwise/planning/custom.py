"""Custom: checks the answers of an order, a cut, a deal or an arrangement that the user wrote.

The package's own choices are tested, so only choices written by the user are checked here. A plan that silently loses
a sequence, or takes it twice, is worse than none. Checks return int64 arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.cut import Cuts
from lengthwise.choices.deal import World
from lengthwise.choices.order import Ordered

_ORDER_REMEDY = "Return Ordered(sequences), or Ordered(sequences, boundaries, edges)."
_CUT_REMEDY = "Return Cuts(kept, offsets): batch b is kept[offsets[b]:offsets[b + 1]]."
_PORTIONS_REMEDY = "Return a list with one array of all numbers 0..count-1, or with one array for each rank."
_GRID_REMEDY = "Return an array of shape [steps, micro_batches, ranks] that holds all entries of `numbers`."
_ARRANGE_REMEDY = "Return a permutation of 0..steps-1."


def check_ordered(answer: Ordered, count: int, dims: int) -> Ordered:
    """Checks the answer of an order for `count` sequences of `dims` lengths each."""
    if not isinstance(answer, Ordered):
        raise checks.type_error("order", "a choice that returns an Ordered", answer, _ORDER_REMEDY)
    sequences = _whole("sequences", answer.sequences, _ORDER_REMEDY)
    _check_distinct("sequences", sequences, count, _ORDER_REMEDY)
    boundaries = _whole("boundaries", answer.boundaries, _ORDER_REMEDY)
    _check_rising("boundaries", boundaries, 1, len(sequences) - 1, _ORDER_REMEDY)
    edges = None if answer.edges is None else _whole("edges", answer.edges, _ORDER_REMEDY, dims=1 if dims == 1 else 2)
    if edges is not None and edges.shape != (len(sequences), dims)[: edges.ndim]:
        rule = f"of {len(sequences)} sequences" + (f" and {dims} lengths" if dims > 1 else "")
        raise checks.value_error("edges", rule, edges.shape if dims > 1 else len(edges), _ORDER_REMEDY)
    return Ordered(sequences, boundaries, edges)


def check_cuts(answer: Cuts, count: int, boundaries: NDArray[np.int64]) -> Cuts:
    """Checks the answer of a cut for `count` sequences in order."""
    if not isinstance(answer, Cuts):
        raise checks.type_error("cut", "a choice that returns Cuts", answer, _CUT_REMEDY)
    positions = _whole("kept", np.arange(count) if answer.kept is None else answer.kept, _CUT_REMEDY)
    _check_distinct("kept", positions, count, _CUT_REMEDY)
    offsets = _whole("offsets", answer.offsets, _CUT_REMEDY)
    _check_rising("offsets", offsets, 0, len(positions), _CUT_REMEDY)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(positions):
        raise checks.value_error("offsets", f"from 0 to {len(positions)}", offsets.tolist(), _CUT_REMEDY)
    if len(boundaries):
        # A cut may reorder sequences between two boundaries. Across a boundary, a sequence would change its bucket.
        # Positions 0..4 with boundaries at 2 and 3 are in the segments [0, 0, 1, 2, 2].
        segments = np.searchsorted(boundaries, positions, side="right")
        if (np.diff(segments) < 0).any():
            rule = "reordered only between boundaries"
            raise checks.value_error("kept", rule, positions.tolist(), "Keep each sequence between its boundaries.")
        # Boundaries count in the order, and offsets in `kept`. With kept [1, 4, 3] and the boundary 2, a batch must
        # begin at offset 1.
        crossed = np.setdiff1d(np.searchsorted(segments, np.arange(1, len(boundaries) + 1)), offsets)
        if len(crossed):
            rule = f"such that {crossed[0]}, where a boundary lies, is among them"
            raise checks.value_error("offsets", rule, offsets.tolist(), "Begin a batch at every boundary.")
    return Cuts(positions, offsets)


def check_batch_sizes(answer: object, count: int) -> NDArray[np.float64]:
    """Checks the `batch_sizes` of a cut for `count` lengths."""
    remedy = "Return, for each length, an estimate of the sequences of this length in a batch, at least 1."
    sizes = np.asarray(answer)
    if sizes.dtype.kind not in "iuf" or sizes.shape != (count,) or not (sizes >= 1).all():
        raise checks.value_error("batch_sizes", f"{count} numbers of at least 1", answer, remedy)
    return sizes.astype(np.float64)


def check_portions(answer: Any, count: int, world: World) -> list[NDArray[np.int64]]:
    """Checks the `portions` of a deal for `count` sequences."""
    if not isinstance(answer, list | tuple) or len(answer) not in (1, world.world_size):
        raise checks.value_error("portions", f"a list of 1 or {world.world_size} arrays", answer, _PORTIONS_REMEDY)
    portions = [_whole("portions", portion, _PORTIONS_REMEDY) for portion in answer]
    together = np.concatenate(portions)
    _check_distinct("portions", together, count, _PORTIONS_REMEDY, all_of="sequences")
    return portions


def check_grid(answer: object, numbers: NDArray[np.int64], world: World) -> NDArray[np.int64]:
    """Checks the `grid` of a deal for the batches `numbers`."""
    grid = _whole("grid", answer, _GRID_REMEDY, dims=3)
    shape = (numbers.size // world.slots, world.micro_batches, world.world_size)
    if grid.shape != shape:
        raise checks.value_error("grid", f"of shape {shape}", grid.shape, _GRID_REMEDY)
    # Once sorted, grid and `numbers` are equal only if both hold each batch equally often.
    if not np.array_equal(np.sort(grid, axis=None), np.sort(numbers, axis=None)):
        wrong = np.setxor1d(grid, numbers)  # empty if only the repeats differ
        rule = "an array that holds each batch as often as `numbers` does"
        raise checks.value_error("grid", rule, wrong.tolist() or grid.tolist(), _GRID_REMEDY)
    return grid


def check_arrangement(answer: object, steps: int) -> NDArray[np.int64]:
    """Checks the answer of an arrangement for `steps` steps."""
    order = _whole("arrange", answer, _ARRANGE_REMEDY)
    _check_distinct("arrange", order, steps, _ARRANGE_REMEDY, all_of="steps")
    return order


def _whole(name: str, answer: object, remedy: str, *, dims: int = 1) -> NDArray[np.int64]:
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError) as error:  # lists of different lengths, a tensor on a GPU
        raise checks.type_error(name, "an array of whole numbers", answer, remedy) from error
    if array.dtype.kind not in "iu" and array.size:  # NumPy turns an empty list into floats
        raise checks.type_error(name, "an array of whole numbers", array.dtype.name, remedy)
    if array.ndim != dims:
        raise checks.value_error(name, f"an array of {dims} dimension(s)", array.shape, remedy)
    # A copy, even of int64: the plan keeps the array, and the user may write to theirs later.
    return array.astype(np.int64)


def _check_distinct(name: str, numbers: NDArray[np.int64], count: int, remedy: str, *, all_of: str = "") -> None:
    """Refuses numbers that are not below `count`, or stand twice; with `all_of`, a word for them, also missing ones."""
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        raise checks.value_error(name, f"numbers from 0 to {count - 1}", int(numbers[outside][0]), remedy)
    times = np.bincount(numbers, minlength=1)
    if times.max() > 1:
        rule = "different from each other"
        raise checks.value_error(name, rule, f"{int(times.argmax())} in {times.max()} places", remedy)
    if all_of and len(numbers) != count:
        raise checks.value_error(name, f"of all {count} {all_of}", f"{len(numbers)} of them", remedy)


def _check_rising(name: str, numbers: NDArray[np.int64], low: int, high: int, remedy: str) -> None:
    inside = not len(numbers) or (numbers.min() >= low and numbers.max() <= high)
    if not inside or (np.diff(numbers) <= 0).any():
        rule = f"strictly rising within {low} to {high}"
        raise checks.value_error(name, rule, numbers.tolist(), remedy)
