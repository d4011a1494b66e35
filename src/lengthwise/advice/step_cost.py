"""StepCost: the cost of a training step in seconds and bytes, fitted to measured steps.

counts             [points]        the number of sequences in each measured batch
padded_lengths     [points, dims]  the padded length of each batch
measured_seconds   [points]        the seconds of each step
measured_bytes     [points]        the peak memory of each step, or None
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks, files
from lengthwise.choices.cost import Quadratic
from lengthwise.measures.epochs import check_plan
from lengthwise.planning.plan import Plan

_FORMAT = "lengthwise.StepCost 1"
_ARRAYS = ("counts", "padded_lengths", "measured_seconds", "measured_bytes")
_LARGEST = 2**40  # the most sequences in a batch, as in a cut, and the longest padded length


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepCost:
    """The cost of a training step: a `Quadratic` in seconds, one in bytes, and the measured steps behind them.

    `lengthwise.measure_step` measures it; `of` fits it to your own measurements. Both fits are costs:
    `Batching(cost=step_cost.seconds, budget=0.2)` makes batches that take at most 0.2 seconds each, and
    `Batching(cost=step_cost.bytes, budget=20e9)` makes batches that need at most 20 GB each. `print` shows the fits and
    their errors.

    Attributes:
        seconds: The seconds of a step, from the number of sequences in its batch and their padded length.
        bytes: The peak bytes of a step; None if memory was not measured.
        seconds_error: The mean relative error of the fit. Each point is predicted by a fit to all other points.
        bytes_error: The mean relative error of the fit in bytes; None if memory was not measured.
        device: The measured device, in words.
        counts: [points], the number of sequences in each measured batch.
        padded_lengths: [points, dims], the padded length of each batch.
        measured_seconds: [points], the seconds of each step: the median of its repeats.
        measured_bytes: [points], the peak bytes of each step, or None.

    >>> counts, padded_lengths = [1, 1, 1, 4, 4, 4], [100, 200, 400, 100, 200, 400]
    >>> cost = StepCost.of(counts, padded_lengths, [0.012, 0.014, 0.018, 0.018, 0.026, 0.042])
    >>> float(cost.seconds([8], [[100]])[0].round(3))  # 10 ms for the batch, and 20 us for each frame
    0.026
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
        """Returns the fit in one line, and a table of the points with their errors."""
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
        """Fits a cost to your own measurements, such as those of a log.

        Args:
            counts: [points], the number of sequences in each batch; two different counts at least.
            padded_lengths: [points] or [points, dims], the padded length of each batch; three different lengths at
                least. The fit needs at least 2 + 3 * dims points.
            seconds: [points], the seconds of a step, above 0.
            bytes: [points], the peak bytes of a step, above 0.
            device: The measured device, in words.

        Raises:
            ValueError: The shapes do not match, a number is not above 0, or there are too few points to fit.
            ImportError: SciPy is not installed.
        """
        points = _check_points(counts, padded_lengths)
        times = _check_measured("seconds", seconds, len(points[0]))
        memory = None if bytes is None else _check_measured("bytes", bytes, len(points[0]))
        fitted, error = fit_quadratic(*points, times)
        memory_fit, memory_error = (None, None) if memory is None else fit_quadratic(*points, memory)
        return cls(
            seconds=fitted,
            bytes=memory_fit,
            seconds_error=error,
            bytes_error=memory_error,
            device=device,
            counts=points[0],
            padded_lengths=points[1],
            measured_seconds=times,
            measured_bytes=memory,
        )

    def seconds_of(self, plan: Plan) -> float:
        """Predicts the seconds of the plan's epoch.

        A rank takes the micro-batches of a step one after the other, and the step ends with the slowest rank. A packed
        row counts as one sequence of the capacity.

        Waiting for data is not counted. Communication between ranks is counted only if the measured `step` had it.

        Raises:
            ValueError: The plan has another number of lengths for each sequence than the measured batches.
        """
        check_plan("plan", plan)
        if plan.padded_lengths.shape[1] != self.padded_lengths.shape[1]:
            dims = self.padded_lengths.shape[1]
            rule = f"of {dims} length{'s' * (dims > 1)} a sequence, as measured"
            raise checks.value_error("plan", rule, plan.padded_lengths.shape[1], "Measure the step with these lengths.")
        seconds = self.seconds(plan.row_counts, plan.padded_lengths)[plan.grid]
        return float(seconds.sum(axis=1).max(axis=1).sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the cost to `path` as JSON, whole or not at all.

        Raises:
            FileNotFoundError: The folder of `path` does not exist.
            OSError: The system refuses, as on a full disk; an old file is unchanged.
        """
        arrays = {name: None if (array := getattr(self, name)) is None else array.tolist() for name in _ARRAYS}
        facts = {name: getattr(self, name) for name in ("seconds_error", "bytes_error", "device")}
        costs = {"seconds": asdict(self.seconds), "bytes": None if self.bytes is None else asdict(self.bytes)}
        files.write(path, json.dumps({"format": _FORMAT, **costs, **facts, **arrays}, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StepCost:
        """Reads a file of `save`.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is not a step cost, or its format has another version.
        """
        files.check_regular(path)
        with files.refusals(path, "read"), open(path, "rb") as file:
            content = file.read()
        try:
            return cls._parse(json.loads(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            remedy = "Measure the step again, by lengthwise.measure_step."
            rule = "a step cost that StepCost.save wrote"
            raise checks.value_error("path", rule, os.fspath(path), remedy) from error

    @classmethod
    def _parse(cls, stored: dict[str, Any]) -> StepCost:
        if stored.pop("format") != _FORMAT or set(stored) != {field.name for field in fields(cls)}:
            raise ValueError
        points = _check_points(stored["counts"], stored["padded_lengths"])
        memory = stored["measured_bytes"]
        errors = [stored["seconds_error"], *[stored["bytes_error"]] * (memory is not None)]
        if not all(0 <= float(error) < np.inf for error in errors) or (memory is None) != (stored["bytes"] is None):
            raise ValueError
        costs = [Quadratic(**fit) for fit in (stored["seconds"], stored["bytes"]) if fit is not None]
        for cost in costs:
            cost(*points)  # raises if the coefficients are for another number of lengths than the points have
        return cls(
            seconds=costs[0],
            bytes=None if stored["bytes"] is None else costs[1],
            seconds_error=float(stored["seconds_error"]),
            bytes_error=None if stored["bytes_error"] is None else float(stored["bytes_error"]),
            device=str(stored["device"]),
            counts=points[0],
            padded_lengths=points[1],
            measured_seconds=_check_measured("seconds", stored["measured_seconds"], len(points[0])),
            measured_bytes=None if memory is None else _check_measured("bytes", memory, len(points[0])),
        )


def _check_points(counts: ArrayLike, padded_lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.asarray(counts)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not len(sizes):
        rule = "whole numbers of shape [points]"
        raise checks.value_error("counts", rule, counts, "Give the number of sequences in each batch.")
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


def fit_quadratic(
    counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], measured: NDArray[np.float64]
) -> tuple[Quadratic, float]:
    """Returns the quadratic that predicts `measured` [points] best, and its mean relative error in cross-validation.

    The fit minimises the sum of the squares of predicted / measured - 1. So a step of a millisecond counts as much as
    one of a second. Coefficients are at least 0: no step gets cheaper as it grows.
    """
    check_shapes(counts, padded_lengths)
    # Also tried: weights of 1 / sqrt(measured), absolute errors, the L1 norm, and Huber's loss. On a busy machine, each
    # was better in some runs of benchmarks/step_cost.py and worse in others.
    shares = columns(counts, padded_lengths) / measured[:, None]
    fitted = _solve(shares)
    # Each point is predicted by the fit to all other points.
    partial_fits = [_solve(np.delete(shares, point, axis=0)) for point in range(len(shares))]
    errors = [abs(float(row @ partial_fit) - 1.0) for row, partial_fit in zip(shares, partial_fits, strict=True)]
    return _as_quadratic(fitted, padded_lengths.shape[1]), float(np.mean(errors))


def check_shapes(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> None:
    """Refuses shapes that cannot determine all coefficients: L and L^2 need three lengths, for example."""
    shapes = np.unique(np.column_stack([counts, padded_lengths]), axis=0)
    least = [2] + [3] * padded_lengths.shape[1]
    ample = all(len(np.unique(column)) >= fewest for column, fewest in zip(shapes.T, least, strict=True))
    rank = np.linalg.matrix_rank(_scale(columns(counts, padded_lengths))[0])
    if not ample or rank < 2 + 3 * padded_lengths.shape[1]:
        rule = "of two counts and three lengths at least, best each count with each length"
        raise checks.value_error("shapes", rule, shapes.tolist(), "Measure more shapes.")


def columns(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the factor of each coefficient, in the order of `Quadratic.prices`: [points, 2 + 3 dims]."""
    sizes, longest = counts.astype(np.float64)[:, None], padded_lengths.astype(np.float64)
    return np.hstack([np.ones_like(sizes), sizes, sizes * longest, sizes * longest**2, longest])


def _solve(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the coefficients of at least 0 for which `shares @ coefficients` is nearest to 1."""
    nnls = import_solver()
    scaled, sizes = _scale(shares)
    solution = nnls(scaled, np.ones(len(shares)))[0]
    # A term that adds at most 1e-9 is a rounding error.
    return np.where(solution * scaled.max(axis=0) > 1e-9, solution, 0.0) / sizes


def import_solver() -> Any:
    """Imports SciPy's least squares with coefficients of at least 0.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        from scipy.optimize import nnls
    except ModuleNotFoundError as error:
        raise ImportError('a fit needs SciPy: pip install "lengthwise[advice]"') from error
    return nnls


def _scale(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the columns scaled to norm 1, and their norms, because L^2 and 1 differ by many powers of ten."""
    sizes = np.linalg.norm(table, axis=0)
    return table / sizes, sizes


def _as_quadratic(coefficients: NDArray[np.float64], dims: int) -> Quadratic:
    per_batch, per_sequence = coefficients[:2].tolist()
    linear, quadratic, per_length = (tuple(row.tolist()) for row in coefficients[2:].reshape(3, dims))
    if dims == 1:
        linear, quadratic, per_length = linear[0], quadratic[0], per_length[0]
    return Quadratic(
        per_batch=per_batch, per_sequence=per_sequence, linear=linear, quadratic=quadratic, per_length=per_length
    )


def show_fit(cost: Quadratic) -> str:
    """Returns the cost as a formula of n sequences padded to L, without the parts that are 0.

    >>> show_fit(Quadratic(per_batch=0.01, linear=2e-5, quadratic=0.0))
    '0.01 + 2e-05 n L'
    >>> show_fit(Quadratic(linear=(1.0, 8.0), per_length=0.5))
    '0.5 L1 + 0.5 L2 + 1 n L1 + 8 n L2'
    """
    dims = max(map(np.size, (cost.linear, cost.quadratic, cost.per_length)))
    per_batch, per_sequence, *prices = cost.prices(dims).tolist()
    names = [f"L{dim + 1}" for dim in range(dims)] if dims > 1 else ["L"]
    linear, quadratic, per_length = np.array(prices).reshape(3, dims).tolist()
    parts = [(per_batch, ""), *zip(per_length, names, strict=True), (per_sequence, "n")]
    parts += [(value, f"n {name}") for value, name in zip(linear, names, strict=True)]
    parts += [(value, f"n {name}^2") for value, name in zip(quadratic, names, strict=True)]
    return " + ".join(f"{value:.3g} {name}".strip() for value, name in parts if value) or "0"


def show_table(heads: Sequence[str], columns: Sequence[NDArray[Any]]) -> list[str]:
    r"""Returns the lines of a table: lengths as "812 x 90", the column "fit" in percent.

    >>> print(*show_table(["sequences", "fit"], [np.array([1, 16]), np.array([0.02, -0.1])]), sep="\n")
    sequences     fit
            1   +2.0%
           16  -10.0%
    """
    cells = [[_write(head, value) for value in column] for head, column in zip(heads, columns, strict=True)]
    widths = [max(len(head), *map(len, column)) for head, column in zip(heads, cells, strict=True)]
    rows = [heads, *zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _write(head: str, value: Any) -> str:
    if head == "fit":
        return f"{value:+.1%}"
    if isinstance(value, np.ndarray):
        return " x ".join(f"{length:,}" for length in value.tolist())
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
