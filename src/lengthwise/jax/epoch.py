"""The batches of an epoch in fixed shapes: whole batches, or the rows of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.jax.collate import PadCollate
from lengthwise.jax.rows import RowCollate
from lengthwise.planning.plan import Plan


class Dataset(Protocol):
    """A data set that returns a sample by its sequence number or, for chunks, by (sequence, start, stop)."""

    def __getitem__(self, item: Any, /) -> Any: ...


def batches(
    dataset: Dataset,
    plan: Plan,
    collate: PadCollate | RowCollate,
    *,
    rank: int = 0,
    start: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> Iterator[Any]:
    """Returns the batches of one epoch, in few shapes; batches of packed rows have one shape.

    The ranks of a plan may have different shapes in one step. If several processes or devices run ONE program, they
    need the same shape: plan for one rank, and share out the rows of each batch by `shard`.

    Args:
        dataset: The samples by number.
        plan: The plan of the epoch.
        collate: A `PadCollate`, or a `RowCollate` if the plan packs rows.
        rank: The rank whose batches are returned.
        start: The number of the first batch, to resume within an epoch.
        shard: (index, count): this process takes part `index` of `count` equal parts of each batch's rows. Give
            `(jax.process_index(), jax.process_count())`.

    Returns:
        An iterator of new batches, see `PadCollate` and `RowCollate`. Samples are loaded batch by batch.

    Raises:
        ValueError: A batch fits no shape, or the data set has another size than the plan. Or the rows do not divide by
            the shards, or only one of `plan` and `collate` packs rows. The call raises these, before the first batch.

    >>> import lengthwise as lw
    >>> samples = [np.arange(length) for length in (3, 9, 8, 40)]
    >>> order = lw.Bucketed(edges=(10, 40), pad_to_edge=True)
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=order, arrange=lw.InOrder())
    >>> collate = PadCollate(lw.batch_shapes([3, 9, 8, 40], batching))
    >>> plan = lw.make_plan([3, 9, 8, 40], batching)
    >>> [batch.values.shape for batch in batches(samples, plan, collate)]
    [(2, 10), (2, 10), (1, 40)]
    >>> plan = lw.make_plan([3, 9, 8, 40], lw.Batching(cut=lw.Rows(40, rows=2)))
    >>> [batch.fields.shape for batch in batches(samples, plan, RowCollate(40, rows=2))]
    [(2, 40)]
    """
    if not isinstance(plan, Plan):
        raise checks.type_error("plan", "a lengthwise.Plan", plan, "Make one with lw.make_plan(lengths, batching).")
    if not isinstance(collate, PadCollate | RowCollate):
        remedy = "Make one of lw.batch_shapes(lengths, batching), or of the capacity and the rows of lw.Rows."
        raise checks.type_error("collate", "a PadCollate or a RowCollate of lengthwise.jax", collate, remedy)
    index, parts = _check_shard(shard)
    plan.batches(rank, start)  # refuses a rank and a start that the plan does not have
    numbers = plan.grid[:, :, rank].reshape(-1)[start:]
    # The shapes are checked for the whole plan, so that a run does not stop hours later.
    if isinstance(collate, RowCollate):
        layouts = [(_rows_of_shard(plan, collate, parts), collate.lay)] * len(numbers)
    else:
        shapes = _shapes_of(plan, collate, parts)[numbers].tolist()
        layouts = [(rows // parts, partial(collate.pad, padded_length=padded)) for rows, *padded in shapes]
    _check_size(dataset, plan)
    return (
        _part(dataset, plan.rows(number), index, rows, lay)
        for number, (rows, lay) in zip(numbers.tolist(), layouts, strict=True)
    )


def _shapes_of(plan: Plan, collate: PadCollate, parts: int) -> NDArray[np.int64]:
    """Returns the shape of each batch of the plan: [batches, 1 + dims]."""
    if plan.row_offsets is not None:
        remedy = "Take RowCollate(capacity, rows=...), of the capacity and the rows of the plan."
        raise checks.state_error("The plan packs rows, but a PadCollate pads one sequence a row", remedy)
    dims = collate.shapes.shape[1] - 1
    if plan.padded_lengths.shape[1] != dims:
        remedy = "Take the shapes of the same lengths and batching."
        rule = "of one length a sequence" if dims == 1 else f"of {dims} lengths a sequence"
        raise checks.value_error("plan", f"{rule}, as the shapes are", plan.padded_lengths.shape[1], remedy)
    if (uneven := collate.shapes[:, 0] % parts != 0).any():
        remedy = f"Round them up: shapes[:, 0] = -(-shapes[:, 0] // {parts}) * {parts}."
        rule = f"of rows that divide by the {parts} shards"
        raise checks.value_error("shapes", rule, collate.shapes[uneven][0].tolist(), remedy)
    return collate.shapes_of(plan.batch_sizes, plan.padded_lengths)


def _rows_of_shard(plan: Plan, collate: RowCollate, parts: int) -> int:
    """Returns the number of rows of a shard, after checking the plan against `collate`."""
    if plan.row_offsets is None:
        remedy = "Plan with cut=lw.Rows(capacity, rows=...), or take a PadCollate."
        raise checks.state_error("The plan pads one sequence a row, but a RowCollate packs rows", remedy)
    most = int(plan.row_counts.max(initial=0))
    capacity = int(plan.padded_lengths[0, 0]) if most else collate.capacity
    if capacity != collate.capacity or most > collate.rows:
        rule = f"of at least {most} rows of {capacity} frames, as the plan is"
        value = f"{collate.rows} rows of {collate.capacity}"
        raise checks.value_error("collate", rule, value, "Give it the capacity and the rows of lw.Rows.")
    cut = json.loads(plan.batching)["cut"]
    # The user's own cut has no `max_in_row` to compare.
    if cut["choice"] == "cut.Rows" and cut.get("max_in_row") != collate.max_in_row:
        rule = f"{cut.get('max_in_row')}, as in the plan"
        raise checks.value_error("max_in_row", rule, collate.max_in_row, "Give lw.Rows and RowCollate the same number.")
    if collate.rows % parts:
        rule, remedy = f"a multiple of the {parts} shards", "Give more rows: the rows that are left over are padding."
        raise checks.value_error("rows", rule, collate.rows, remedy)
    return collate.rows // parts


def _part(dataset: Dataset, batch: list[NDArray[np.int64]], index: int, rows: int, lay: Callable[..., Any]) -> Any:
    """Returns part `index` of the rows of a batch, laid out by `lay`: `rows` rows, filled up with padding."""
    # 5 members in shards of 4 rows: the first takes members 0 to 3, the second member 4 and three filled rows.
    members = [member for row in batch[index * rows : (index + 1) * rows] for member in row.tolist()]
    # A shard without members gets arrays of padding, in the structure of the first sample.
    loaded = members or batch[0][:1].tolist()
    samples = [dataset[tuple(member) if isinstance(member, list) else member] for member in loaded]
    return lay(samples if members else [], rows=rows, like=samples[0])


def _check_size(dataset: Dataset, plan: Plan) -> None:
    """Refuses a data set of another size than planned: the lengths would belong to other sequences."""
    # A plan of chunks counts chunks, and some data sets have no size.
    if plan.spans is not None or not isinstance(dataset, Sized) or len(dataset) == plan.population:
        return
    rule, remedy = f"of the {plan.population} sequences of the plan", "Plan the lengths of this data set, in its order."
    raise checks.value_error("dataset", rule, len(dataset), remedy)


def _check_shard(shard: tuple[int, int]) -> tuple[int, int]:
    remedy = "Give (jax.process_index(), jax.process_count())."
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise checks.type_error("shard", "a pair (index, count)", shard, remedy)
    count = checks.check_whole("shard", shard[1], minimum=1, remedy=remedy)
    return checks.check_whole("shard", shard[0], minimum=0, maximum=count - 1, remedy=remedy), count
