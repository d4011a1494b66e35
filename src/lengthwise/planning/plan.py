"""Plan: the sequences of each batch, and the rank and the step that take it. A plan is data alone."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks, files
from lengthwise._html import write_table
from lengthwise.choices.arithmetic import raise_counts
from lengthwise.choices.batching import Batching, spell_out, write_batching
from lengthwise.planning.times import copies_of

_WHOLE = ("sequences", "offsets", "padded_lengths", "grid", "row_offsets", "spans", "delivered", "times")
_PRICED = ("costs", "balances")  # arrays of floats; all others hold whole numbers
_ARRAYS = (*_WHOLE, *_PRICED)
_FACTS = ("count", "batching", "seed", "epoch", "lengths_fingerprint", "max_cost")


class PlanMismatchError(ValueError):
    """A checkpoint or another rank has a different plan: lengths, batching, seed, micro-batches or a cost differ.

    >>> isinstance(PlanMismatchError("another seed"), ValueError)
    True
    """


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Plan:
    """The plan of one epoch, or of the rest of one: read-only arrays, and the facts that they were made from.

    `print` shows its sizes, and the batching as Python.

    Attributes:
        sequences: [m], sequence numbers, batch by batch; with chunks, places in `spans`; with times, places in
            `copies`. `numbers` has the numbers in the data set.
        offsets: [batches + 1]; batch b is `sequences[offsets[b]:offsets[b + 1]]`.
        padded_lengths: [batches, dims], the length that each batch is padded to.
        costs: [batches], the cost of each batch, in the unit of the budget.
        balances: [batches], the cost of each batch that ranks share evenly; None if these are the `costs`.
        grid: [steps, micro_batches, ranks], batch numbers: which batch each rank takes in each step.
        row_offsets: [rows + 1], where each packed row begins in `sequences`, and the end; None if rows are not packed.
        spans: [chunks, 3], sequence, start and stop of each chunk; None without chunks.
        delivered: [k], sequence numbers (or places in `spans` or `copies`) that were taken before this plan begins,
            rising; None if there were no earlier runs.
        times: [n], how often the epoch takes each sequence of the data set; None if `times` were not given.
        copies: [count], the sequence of each copy, rising: times of [2, 0, 1] give [0, 0, 2]. None without `times`.
            None with chunks, too: `spans` hold the sequences.
        count: The number of sequences (copies, chunks) to plan, dropped ones included.
        batching: The batching, as JSON: what differs from the defaults.
        seed: The seed of the run.
        epoch: The number of the epoch, from 0.
        lengths_fingerprint: The fingerprint of the lengths.
        max_cost: The most that a batch may cost; infinite if the cut sets no bound.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> plan = lw.make_plan([5, 9, 2, 4], batching)
    >>> plan.steps, len(plan), plan.padded_lengths[:, 0].tolist(), plan.costs.tolist()
    (2, 2, [4, 9], [8.0, 18.0])
    >>> plan.batch(1).tolist(), [batch.tolist() for batch in plan.batches(rank=0)], plan.costliest(1).tolist()
    ([0, 1], [[2, 3], [0, 1]], [1])
    >>> plan.dropped().tolist(), plan.repeated().tolist(), plan.over_max_cost().tolist()
    ([], [], [])
    """

    sequences: NDArray[np.int64]
    offsets: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    grid: NDArray[np.int64]
    row_offsets: NDArray[np.int64] | None = None
    spans: NDArray[np.int64] | None
    delivered: NDArray[np.int64] | None = None
    times: NDArray[np.int64] | None = None
    balances: NDArray[np.float64] | None = None
    copies: NDArray[np.int64] | None = field(init=False)
    count: int
    batching: str
    seed: int
    epoch: int
    lengths_fingerprint: str
    max_cost: float

    def __post_init__(self) -> None:
        # Copies follow from the times, so a plan file holds only the times.
        copies = None if self.times is None or self.spans is not None else copies_of(self.times)
        object.__setattr__(self, "copies", copies)
        for name in (*_ARRAYS, "copies"):
            if (array := getattr(self, name)) is not None:
                # Freeze the array itself, so that its maker cannot change the plan either.
                array.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling calls __init__, so that the arrays are read-only there too.
        return partial(Plan, **{name: getattr(self, name) for name in (*_ARRAYS, *_FACTS)}), ()

    @property
    def steps(self) -> int:
        """The number of optimiser steps in the epoch, the same on every rank."""
        return self.grid.shape[0]

    @property
    def micro_batches(self) -> int:
        """The number of batches that each rank takes in one step."""
        return self.grid.shape[1]

    @property
    def world_size(self) -> int:
        return self.grid.shape[2]

    @property
    def batch_sizes(self) -> NDArray[np.int64]:
        """The number of sequences in each batch: [batches]."""
        return np.diff(self.offsets)

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """The number of rows of each batch: sequences, filled up to the cut's multiple, or packed rows. [batches]."""
        if self.row_offsets is not None:
            return np.diff(np.searchsorted(self.row_offsets, self.offsets))
        cut = (json.loads(self.batching) or {}).get("cut", {})
        return raise_counts(self.batch_sizes, cut.get("count_multiple_of", 1))

    def __len__(self) -> int:
        """The number of batches that one rank takes in the epoch: steps x micro-batches."""
        return self.steps * self.micro_batches

    def __repr__(self) -> str:
        # Leave out the fingerprint: a debugger shows a plan at every step, and hashing millions of numbers is slow.
        return f"Plan({', '.join(f'{name}={value}' for name, value in self._sizes().items())})"

    def __str__(self) -> str:
        return f"{self!r}\nbatching: {self._write_batching()}"

    def _repr_html_(self) -> str:
        """Returns a table of the sizes and the batching, for notebooks."""
        rows = [(name, f"{value:,}") for name, value in self._sizes().items()]
        return write_table([*rows, ("batching", self._write_batching())])

    def _sizes(self) -> dict[str, int]:
        sizes = {name: getattr(self, name) for name in ("steps", "micro_batches", "world_size")}
        sizes |= {"batches": len(self.costs), "sequences": len(self.sequences)}
        return sizes | {"seed": self.seed, "epoch": self.epoch}

    def _write_batching(self) -> str:
        try:
            return write_batching(Batching.from_json(self.batching))
        except ValueError:  # JSON has only the names of choices of the user
            return self.batching

    def batch(self, number: int) -> NDArray[np.int64]:
        """Returns the sequences of one batch, [k], or with chunks their spans, [k, 3]: a fresh array every time."""
        remedy = "Give the number of a batch, as in the grid."
        checks.check_whole("number", number, minimum=0, maximum=len(self.costs) - 1, remedy=remedy)
        members = self.sequences[self.offsets[number] : self.offsets[number + 1]]
        if self.copies is not None:
            return self.copies[members]
        return members.copy() if self.spans is None else self.spans[members]

    def rows(self, number: int) -> list[NDArray[np.int64]]:
        """Returns the rows of one batch, each as `batch` does: one sequence, or several if rows are packed.

        A packed row holds its sequences one after another, in this order.
        """
        members, start = self.batch(number), int(self.offsets[number])
        if self.row_offsets is None:
            return np.split(members, len(members))
        first, last = np.searchsorted(self.row_offsets, self.offsets[number : number + 2])
        return np.split(members, self.row_offsets[first + 1 : last] - start)

    def batches(self, rank: int = 0, start: int = 0) -> Iterator[NDArray[np.int64]]:
        """Iterates over the batches of `rank`, from its batch number `start` on: each as `batch` returns it.

        Raises:
            ValueError: `rank` is not one of the plan's ranks, or `start` lies beyond the epoch.
        """
        remedy = "Plan with the world_size of the run."
        checks.check_whole("rank", rank, minimum=0, maximum=self.world_size - 1, remedy=remedy)
        remedy = "Start the next epoch instead."
        checks.check_whole("start", start, minimum=0, maximum=len(self), remedy=remedy)
        return (self.batch(number) for number in self.grid[:, :, rank].reshape(-1)[start:])

    def costliest(self, count: int) -> NDArray[np.int64]:
        """Returns the numbers of the `count` costliest batches, costliest first: try these before a long run."""
        checks.check_whole("count", count, minimum=0, remedy="Give how many batches to list.")
        # Stable: batches of equal cost keep their order on every platform.
        return np.argsort(-self.costs, kind="stable")[:count]

    def dropped(self) -> NDArray[np.int64]:
        """Returns the sequences that no batch holds, rising, except those that were delivered before the plan begins.

        Every copy is listed: [3, 3] are two copies of sequence 3.
        """
        missing = self._times_planned() == 0
        if self.delivered is not None:
            missing[self.delivered] = False
        return self._name(np.flatnonzero(missing))

    def repeated(self) -> NDArray[np.int64]:
        """Returns the sequences that the ranks take more than once, rising; `loss_scales` scales the second time by 0.

        With `times`, these are the sequences with a copy that is taken more than once.
        """
        return self._name(np.flatnonzero(self._times_planned() > 1))

    def over_max_cost(self) -> NDArray[np.int64]:
        """Returns the numbers of the batches that cost more than `max_cost`, rising."""
        return np.flatnonzero(self.costs > self.max_cost)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number in the data set of each entry of `sequences`: [m]. With chunks, the number of the span."""
        return self._name(self.sequences)

    @property
    def population(self) -> int:
        """The number of sequences in the data set, or with chunks the number of chunks."""
        return self.count if self.times is None or self.spans is not None else len(self.times)

    @property
    def batch_numbers(self) -> NDArray[np.int64]:
        """The batch of each entry of `sequences`: [m]."""
        return np.repeat(np.arange(len(self.costs)), self.batch_sizes)

    @property
    def first_taken(self) -> NDArray[np.bool_]:
        """Marks the places where the grid holds a batch for the first time: [steps, micro_batches, ranks].

        At other places a batch only keeps the ranks in step: the grid holds it at an earlier place, or it was delivered
        before the plan begins. `loss_scales` scales it by 0.
        """
        flat = self.grid.reshape(-1)  # the grid [0, 1, 2, 1] holds batch 1 a second time: [1, 1, 1, 0]
        first = np.zeros(len(flat), bool)
        first[np.unique(flat, return_index=True)[1]] = True
        if self.delivered is not None:  # batches are taken whole: if the first sequence was delivered, all were
            first &= ~np.isin(self.sequences[self.offsets[:-1]], self.delivered)[flat]
        return first.reshape(self.grid.shape)

    def _name(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the numbers that planned items have in the data set."""
        return items if self.copies is None else self.copies[items]

    def _times_planned(self) -> NDArray[np.int64]:
        """Counts how often the grid takes each sequence: [count]."""
        uses = np.bincount(self.grid.reshape(-1), minlength=len(self.costs))
        sequences = self.sequences if (uses == 1).all() else np.repeat(self.sequences, uses[self.batch_numbers])
        return np.bincount(sequences, minlength=self.count)

    def fingerprint(self) -> str:
        """Returns 16 hex digits that name the plan: the batches of every rank, and the facts they were made from.

        The digits are the same on every platform: arrays are hashed as whole numbers, in little-endian order.
        """
        digest = hashlib.blake2b(digest_size=8)
        # Costs are left out: a user's cost may be rounded differently on another platform.
        for name in _WHOLE:
            if (array := getattr(self, name)) is not None:
                digest.update(f"{name}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array, "<i8").data)
        batching = json.dumps(spell_out(json.loads(self.batching)))
        facts = [self.count, batching, self.seed, self.epoch, self.lengths_fingerprint]
        digest.update(json.dumps(facts).encode())
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to `path`, a NumPy `.npz` file, whole or not at all.

        Raises:
            FileNotFoundError: The folder of `path` does not exist.
            OSError: The system refuses, as on a full disk. The old file is unchanged.
        """
        arrays: dict[str, Any] = {
            name: _shrink(array) for name in _ARRAYS if (array := getattr(self, name)) is not None
        }
        facts = {name: getattr(self, name) for name in _FACTS} | {"fingerprint": self.fingerprint()}
        content = io.BytesIO()
        # Not compressed: for 5,000,000 sequences, zlib would save a fifth of the file, in 40 times the time.
        np.savez(content, facts=np.array(json.dumps(facts)), **arrays)
        files.write(path, content.getbuffer())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan that `save` wrote, and compares its fingerprint.

        Raises:
            OSError: The file cannot be read; a FileNotFoundError if there is none.
            ValueError: The file is cut short, damaged, or no plan.
        """
        with files.refusals(path, "read"):
            files.check_regular(path)
            content = Path(path).read_bytes()
        try:
            plan, fingerprint = _parse(content)
            # The fingerprint leaves out the costs.
            priced: list[Any] = [plan.costs, plan.balances] if "balance" in json.loads(plan.batching) else [plan.costs]
            if plan.fingerprint() == fingerprint and {*map(len, priced)} == {len(plan.offsets) - 1}:
                return plan
            cause = None
        except MemoryError:
            raise
        except Exception as error:  # zipfile, zlib, NumPy and json raise all classes for damaged bytes
            cause = error
        remedy = "The file is cut short, damaged, or no plan: make the plan anew."
        raise checks.value_error("path", "a plan that Plan.save wrote", os.fspath(path), remedy) from cause


def _shrink(array: NDArray[Any]) -> NDArray[Any]:
    """Returns non-negative whole numbers in the smallest type that holds them, and floats unchanged."""
    return array if array.dtype == np.float64 else array.astype(np.min_scalar_type(array.max(initial=0)))


def _parse(content: bytes) -> tuple[Plan, str]:
    """Returns the plan that a file holds, and the fingerprint that was stored with it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if archive.testzip() is not None:  # before NumPy allocates what a damaged header says
            raise ValueError("checksum")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        facts = json.loads(str(stored["facts"]))
        # Convert to this machine's byte order: the file may have another.
        arrays: dict[str, Any] = {
            name: stored[name].astype(np.float64 if name in _PRICED else np.int64) if name in stored else None
            for name in _ARRAYS
        }
    return Plan(**arrays, **{name: facts[name] for name in _FACTS}), facts["fingerprint"]
