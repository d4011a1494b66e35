"""StepCost: what a training step costs in seconds and bytes, fitted to measured steps; a plan priced by it.

counts             [points]        sequences of each measured batch
padded_lengths     [points, dims]  what each was padded to
measured_seconds   [points]        what the step took on it
measured_bytes     [points]        the most memory that was held meanwhile; or None
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
_LARGEST = 2**40  # sequences in a batch, as in a cut


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepCost:
    """The cost of a training step: a `Quadratic` in seconds, one in bytes, and the measured steps they were fitted to.

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


def fit_quadratic(
    counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], measured: NDArray[np.float64]
) -> tuple[Quadratic, float]:
    """The quadratic that predicts `measured` [points] best, and its mean relative error on points it was not fitted to.

    Least squares of predicted / measured - 1, so that a step of a millisecond counts as much as one of a second.
    Coefficients are at least 0, so that no step gets cheaper as it grows.
    """
    check_shapes(counts, padded_lengths)
    # On a busy machine, weights of 1 / sqrt(measured), absolute errors, their L1 norm and Huber's predicted epochs
    # better in some runs of benchmarks/step_cost.py and worse in others.
    shares = columns(counts, padded_lengths) / measured[:, None]
    fitted = _solve(shares)
    # Each point is predicted by the fit to all others.
    others = [_solve(np.delete(shares, point, axis=0)) for point in range(len(shares))]
    errors = [abs(float(row @ other) - 1.0) for row, other in zip(shares, others, strict=True)]
    return _as_quadratic(fitted, padded_lengths.shape[1]), float(np.mean(errors))


def check_shapes(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> None:
    """Refuses shapes that leave a coefficient open: to tell L from L^2 takes three lengths, for one."""
    shapes = np.unique(np.column_stack([counts, padded_lengths]), axis=0)
    least = [2] + [3] * padded_lengths.shape[1]
    ample = all(len(np.unique(column)) >= few for column, few in zip(shapes.T, least, strict=True))
    rank = np.linalg.matrix_rank(_scale(columns(counts, padded_lengths))[0])
    if not ample or rank < 2 + 3 * padded_lengths.shape[1]:
        rule = "of two counts and three lengths at least, in all pairs"
        raise checks.value_error("shapes", rule, shapes.tolist(), "Measure more shapes.")


def columns(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """The factor of each coefficient, in the order of `Quadratic.prices`: [points, 2 + 3 dims]."""
    sizes, longest = counts.astype(np.float64)[:, None], padded_lengths.astype(np.float64)
    return np.hstack([np.ones_like(sizes), sizes, sizes * longest, sizes * longest**2, longest])


def _solve(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of at least 0 for which `shares @ coefficients` comes nearest to 1."""
    nnls = import_solver()
    scaled, sizes = _scale(shares)
    solution = nnls(scaled, np.ones(len(shares)))[0]
    # What adds a part in 10^9 at most is what rounding left of 0.
    return np.where(solution * scaled.max(axis=0) > 1e-9, solution, 0.0) / sizes


def import_solver() -> Any:
    """Least squares of coefficients that are at least 0, by SciPy.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        from scipy.optimize import nnls
    except ModuleNotFoundError as error:
        raise ImportError('a fit needs SciPy: pip install "lengthwise[advice]"') from error
    return nnls


def _scale(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All columns of one size, and what they were divided by: L^2 and 1 differ by many powers of ten."""
    sizes = np.linalg.norm(table, axis=0)
    return table / sizes, sizes


def _as_quadratic(coefficients: NDArray[np.float64], dims: int) -> Quadratic:
    per_batch, per_sequence = coefficients[:2].tolist()
    linear, quadratic, per_length = (tuple(each.tolist()) for each in coefficients[2:].reshape(3, dims))
    if dims == 1:
        linear, quadratic, per_length = linear[0], quadratic[0], per_length[0]
    return Quadratic(
        per_batch=per_batch, per_sequence=per_sequence, linear=linear, quadratic=quadratic, per_length=per_length
    )


def show_fit(cost: Quadratic) -> str:
    """The cost as a formula of n sequences padded to L, without the parts that are 0.

    >>> show_fit(Quadratic(per_batch=0.01, linear=2e-5, quadratic=0.0))
    '0.01 + 2e-05 n L'
    >>> show_fit(Quadratic(linear=(1.0, 8.0), per_length=0.5))
    '0.5 L1 + 0.5 L2 + 1 n L1 + 8 n L2'
    """
    dims = max(len(each) if isinstance(each, tuple) else 1 for each in (cost.linear, cost.quadratic, cost.per_length))
    per_batch, per_sequence, *each = cost.prices(dims).tolist()
    names = [f"L{dim + 1}" for dim in range(dims)] if dims > 1 else ["L"]
    linear, quadratic, per_length = np.array(each).reshape(3, dims).tolist()
    parts = [(per_batch, ""), *zip(per_length, names, strict=True), (per_sequence, "n")]
    parts += [(value, f"n {name}") for value, name in zip(linear, names, strict=True)]
    parts += [(value, f"n {name}^2") for value, name in zip(quadratic, names, strict=True)]
    return " + ".join(f"{value:.3g} {what}".strip() for value, what in parts if value) or "0"


def show_table(heads: Sequence[str], columns: Sequence[NDArray[Any]]) -> list[str]:
    r"""The lines of a table: whole numbers as they are, lengths as "812 x 90", shares in the column "fit" as percents.

    >>> print(*show_table(["sequences", "fit"], [np.array([1, 16]), np.array([0.02, -0.1])]), sep="\n")
    sequences     fit
            1   +2.0%
           16  -10.0%
    """
    cells = [[_write(head, value) for value in column] for head, column in zip(heads, columns, strict=True)]
    widths = [max(len(head), *map(len, own)) for head, own in zip(heads, cells, strict=True)]
    rows = [heads, *zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _write(head: str, value: Any) -> str:
    if head == "fit":
        return f"{value:+.1%}"
    if isinstance(value, np.ndarray):
        return " x ".join(f"{each:,}" for each in value.tolist())
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
