"""StepCost: what a training step costs in seconds and bytes, fitted to measured steps; a plan priced by it.

counts             [points]        sequences of each measured batch
padded_lengths     [points, dims]  what each was padded to
measured_seconds   [points]        what the step took on it
measured_bytes     [points]        the most memory that was held meanwhile; or None
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks, files
from lengthwise.advice.fit import fit_quadratic
from lengthwise.advice.show import show_fit, show_table
from lengthwise.choices.cost import Quadratic
from lengthwise.measures.epochs import check_plan
from lengthwise.planning.plan import Plan

_FORMAT = "lengthwise.StepCost 1"
_ARRAYS = ("counts", "padded_lengths", "measured_seconds", "measured_bytes")
_LARGEST = 2**40  # sequences in a batch, as in a cut


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepCost:
    """What a training step costs: a `Quadratic` in seconds, one in bytes, and the measured steps they were fitted to.

    `lengthwise.measure_step` measures it. Where steps were timed elsewhere, `of` takes the numbers. Both fits are
    costs: `Batching(cost=step_cost.seconds, budget=0.2)` makes batches that take at most 0.2 seconds each, and
    `Batching(cost=step_cost.bytes, budget=20e9)` batches that need at most 20 GB. `print` shows the fit and its errors.

    Attributes:
        seconds: Seconds of a step, by the sequences of its batch and the length that they are padded to.
        bytes: The most bytes that such a step holds; None where memory was not measured.
        seconds_error: The mean error of the fit, as a share of what was measured. Each point is predicted by a fit to
            the others.
        bytes_error: The same of the bytes; None where memory was not measured.
        device: Where it was measured, in words.
        counts: [points], sequences of each measured batch.
        padded_lengths: [points, dims], what each batch was padded to.
        measured_seconds: [points], what the step took: the median of its repeats.
        measured_bytes: [points], the most bytes that were held meanwhile, or None.
    """

    seconds: Quadratic
    bytes: Quadratic | None
    seconds_error: float
    bytes_error: float | None
    device: str
    counts: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    measured_seconds: NDArray[np.float64]
    measured_bytes: NDArray[np.float64] | None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            if (array := getattr(self, name)) is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        points = f"{len(self.counts)} shapes on {self.device}" if self.device else f"{len(self.counts)} shapes"
        return f"StepCost({self.seconds!r} seconds, error {self.seconds_error:.1%}, measured with {points})"

    def __str__(self) -> str:
        """The fit in a line, and a table of the points: what was measured, and by how much the fit misses it."""
        points = self.counts, self.padded_lengths
        heads, columns = ["sequences", "padded to", "seconds", "fit"], [*points, self.measured_seconds]
        columns.append(self.seconds(*points) / self.measured_seconds - 1)
        lines = [f"seconds = {show_fit(self.seconds)}, error {self.seconds_error:.1%}"]
        if self.bytes is not None and self.measured_bytes is not None:
            lines.append(f"bytes = {show_fit(self.bytes)}, error {self.bytes_error:.1%}")
            heads += ["bytes", "fit"]
            columns += [self.measured_bytes, self.bytes(*points) / self.measured_bytes - 1]
        device = [f"measured on: {self.device}"] if self.device else []
        return "\n".join([*lines, *device, *show_table(heads, columns)])

    @classmethod
    def of(
        cls,
        counts: ArrayLike,
        padded_lengths: ArrayLike,
        seconds: ArrayLike,
        *,
        bytes: ArrayLike | None = None,
        device: str = "",
    ) -> StepCost:
        """Fits it to steps that somebody else measured: those of a log, for example.

        Args:
            counts: [points], sequences of each batch; two different counts at least.
            padded_lengths: [points] or [points, dims], what each batch was padded to; three different lengths at
                least, and 2 + 3 dims points.
            seconds: [points], what a step took on it, above 0.
            bytes: [points], the most bytes that were held meanwhile, above 0.
            device: Where it was measured, in words.

        Raises:
            ValueError: Shapes that do not go together, numbers that are not above 0, or too few points to fit.
            ImportError: SciPy is not installed.

        >>> counts, padded_lengths = [1, 1, 1, 4, 4, 4], [100, 200, 400, 100, 200, 400]
        >>> cost = StepCost.of(counts, padded_lengths, [0.012, 0.014, 0.018, 0.018, 0.026, 0.042])
        >>> float(cost.seconds([8], [[100]])[0].round(3))  # 10 ms for the batch, and 20 us for each frame
        0.026
        """
        points = _check_points(counts, padded_lengths)
        times = _check_measured("seconds", seconds, len(points[0]))
        memory = None if bytes is None else _check_measured("bytes", bytes, len(points[0]))
        fitted, error = fit_quadratic(*points, times)
        held, held_error = (None, None) if memory is None else fit_quadratic(*points, memory)
        return cls(
            seconds=fitted,
            bytes=held,
            seconds_error=error,
            bytes_error=held_error,
            device=device,
            counts=points[0],
            padded_lengths=points[1],
            measured_seconds=times,
            measured_bytes=memory,
        )

    def seconds_of(self, plan: Plan) -> float:
        """The predicted seconds of the plan's epoch.

        A rank takes the micro-batches of a step one after the other, and the step ends with the slowest rank. Packed
        rows count as so many sequences of the capacity.

        What goes wrong in use: nothing but the step is counted. Time that the model waits for data comes on top, and
        so does the time that ranks talk to each other, unless `step` did so when it was measured.

        Raises:
            ValueError: The plan has more or fewer lengths for each sequence than were measured.
        """
        check_plan("plan", plan)
        if plan.padded_lengths.shape[1] != self.padded_lengths.shape[1]:
            dims = self.padded_lengths.shape[1]
            rule = f"of {dims} length{'s' * (dims > 1)} a sequence, as measured"
            raise checks.value_error("plan", rule, plan.padded_lengths.shape[1], "Measure the step with these lengths.")
        taken = self.seconds(plan.row_counts, plan.padded_lengths)[plan.grid]
        return float(taken.sum(axis=1).max(axis=1).sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to `path` as JSON, whole or not at all.

        Raises:
            FileNotFoundError: There is no folder to write it in.
            OSError: The system refuses, as on a full disk; what stood at `path` is still there.
        """
        arrays = {name: None if (own := getattr(self, name)) is None else own.tolist() for name in _ARRAYS}
        facts = {name: getattr(self, name) for name in ("seconds_error", "bytes_error", "device")}
        costs = {"seconds": asdict(self.seconds), "bytes": None if self.bytes is None else asdict(self.bytes)}
        files.write(path, json.dumps({"format": _FORMAT, **costs, **facts, **arrays}, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StepCost:
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is no step cost, or of another version.
        """
        files.check_regular(path)
        with files.refusals(path, "read"), open(path, "rb") as file:
            stored = file.read()
        try:
            return cls._parse(json.loads(stored))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            remedy = "Measure the step anew, by lengthwise.measure_step."
            rule = "a step cost that StepCost.save wrote"
            raise checks.value_error("path", rule, os.fspath(path), remedy) from error

    @classmethod
    def _parse(cls, stored: dict[str, Any]) -> StepCost:
        if stored.pop("format") != _FORMAT or set(stored) != {field.name for field in fields(cls)}:
            raise ValueError
        points = _check_points(stored["counts"], stored["padded_lengths"])
        held = stored["measured_bytes"]
        errors = [stored["seconds_error"], *[stored["bytes_error"]] * (held is not None)]
        if not all(0 <= float(error) < np.inf for error in errors) or (held is None) != (stored["bytes"] is None):
            raise ValueError
        costs = [Quadratic(**each) for each in (stored["seconds"], stored["bytes"]) if each is not None]
        for cost in costs:
            cost(*points)  # refuses coefficients of more lengths than were measured
        return cls(
            seconds=costs[0],
            bytes=None if stored["bytes"] is None else costs[1],
            seconds_error=float(stored["seconds_error"]),
            bytes_error=None if stored["bytes_error"] is None else float(stored["bytes_error"]),
            device=str(stored["device"]),
            counts=points[0],
            padded_lengths=points[1],
            measured_seconds=_check_measured("seconds", stored["measured_seconds"], len(points[0])),
            measured_bytes=None if held is None else _check_measured("bytes", held, len(points[0])),
        )


def _check_points(counts: ArrayLike, padded_lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.asarray(counts)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not len(sizes):
        rule = "whole numbers of shape [points]"
        raise checks.value_error("counts", rule, counts, "Give how many sequences each batch holds.")
    longest = np.asarray(padded_lengths)
    if longest.ndim not in (1, 2) or longest.dtype.kind not in "iu" or len(longest) != len(sizes):
        rule = f"whole numbers of shape [{len(sizes)}] or [{len(sizes)}, dims]"
        raise checks.value_error("padded_lengths", rule, padded_lengths, "Give one row for each of `counts`.")
    for name, array in (("counts", sizes), ("padded_lengths", longest)):
        if array.min() < 1 or array.max() > _LARGEST:
            wrong = int(array.min()) if array.min() < 1 else int(array.max())
            raise checks.value_error(name, "from 1 to 2**40", wrong, "Leave the point out.")
    return sizes.astype(np.int64), longest.reshape(len(sizes), -1).astype(np.int64)


def _check_measured(name: str, measured: ArrayLike, points: int) -> NDArray[np.float64]:
    try:
        numbers = np.array(measured, np.float64)
    except (TypeError, ValueError) as error:
        raise checks.type_error(name, "numbers", measured, "Give one number for each point.") from error
    if numbers.shape != (points,):
        raise checks.value_error(name, f"of shape ({points},)", numbers.shape, "Give one number for each point.")
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        wrong = float(numbers[~(np.isfinite(numbers) & (numbers > 0))][0])
        raise checks.value_error(name, "finite and above 0", wrong, "Leave the point out.")
    return numbers
