"""StepCost: the cost of a training step in seconds, fitted to measured steps.

counts             [points]        the number of sequences in each measured batch
padded_lengths     [points, dims]  the padded length of each batch
measured_seconds   [points]        the seconds of each step
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks, files
from lengthwise.choices.cost import Quadratic
from lengthwise.measures.epochs import check_plan
from lengthwise.planning.plan import Plan

_FORMAT = "lengthwise.StepCost 1"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepCost:
    """The cost of a training step: a `Quadratic` in seconds, and the measured steps behind it.

    `lengthwise.measure_step` measures it; `of` fits it to your own measurements. The fit is a cost:
    `Batching(cost=step_cost.seconds, budget=0.2)` makes batches that take at most 0.2 seconds each. `print` shows the
    fit and its errors.

    Attributes:
        seconds: The seconds of a step, from the number of sequences in its batch and their padded length.
        seconds_error: The mean relative error of the fit. Each point is predicted by a fit to all other points.
        device: The measured device, in words.
        counts: [points], the number of sequences in each measured batch.
        padded_lengths: [points, dims], the padded length of each batch.
        measured_seconds: [points], the seconds of each step: the median of its repeats.

    >>> counts, padded_lengths = [1, 1, 1, 4, 4, 4], [100, 200, 400, 100, 200, 400]
    >>> cost = StepCost.of(counts, padded_lengths, [0.012, 0.014, 0.018, 0.018, 0.026, 0.042])
    >>> float(cost.seconds([8], [[100]])[0].round(3))  # 10 ms for the batch, and 20 us for each frame
    0.026
    """

    seconds: Quadratic
    seconds_error: float
    device: str
    counts: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    measured_seconds: NDArray[np.float64]

    def __repr__(self) -> str:
        """Returns the fit, and a table of the points with their errors."""
        dims = self.padded_lengths.shape[1]
        lines = [f"seconds = {show_fit(self.seconds, dims)}, error {self.seconds_error:.1%}"]
        lines += [f"measured on: {self.device}"] * bool(self.device)
        errors = self.seconds(self.counts, self.padded_lengths) / self.measured_seconds - 1
        seconds = [f"{one:.3g}" for one in self.measured_seconds.tolist()]
        fit = [f"{error:+.1%}" for error in errors.tolist()]
        return "\n".join([*lines, *show_shapes(self.counts, self.padded_lengths, seconds=seconds, fit=fit)])

    @classmethod
    def of(cls, counts: ArrayLike, padded_lengths: ArrayLike, seconds: ArrayLike, *, device: str = "") -> StepCost:
        """Fits a cost to your own measurements, such as those of a log.

        Args:
            counts: [points], the number of sequences in each batch.
            padded_lengths: [points] or [points, dims], the padded length of each batch; three different lengths at
                least.
            seconds: [points], the seconds of a step, above 0.
            device: The measured device, in words.

        Raises:
            ValueError: The shapes do not match, a number is not above 0, or there are too few points to fit.
        """
        points = np.size(counts)
        sizes = _as_points("counts", counts, points).astype(np.int64)
        longest = _as_points("padded_lengths", padded_lengths, points).astype(np.int64).reshape(points, -1)
        times = _as_points("seconds", seconds, points)
        fitted, error = fit_quadratic(sizes, longest, times)
        return cls(
            seconds=fitted,
            seconds_error=error,
            device=device,
            counts=sizes,
            padded_lengths=longest,
            measured_seconds=times,
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
        if plan.padded_lengths.shape[1] != (dims := self.padded_lengths.shape[1]):
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
        content = json.dumps({"format": _FORMAT, **asdict(self)}, indent=1, default=np.ndarray.tolist)
        files.write(path, content + "\n")

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
            stored = json.loads(content)
            if stored.pop("format") != _FORMAT:
                raise ValueError
            stored["seconds"] = Quadratic(**stored["seconds"])
            for name in ("counts", "padded_lengths", "measured_seconds"):
                stored[name] = np.array(stored[name])
            return cls(**{name: stored[name] for name in stored if "bytes" not in name})  # some files have a second fit
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            remedy = "Measure the step again, by lengthwise.measure_step."
            rule = "a step cost that StepCost.save wrote"
            raise checks.value_error("path", rule, os.fspath(path), remedy) from error


def shape_of(cost: Quadratic) -> Quadratic | None:
    """Returns the share of the cost that each sequence has, in two digits: 1 for a frame; None if no term is squared.

    >>> shape_of(Quadratic(per_batch=0.01, linear=2e-5, quadratic=9.09e-8))
    Quadratic(linear=1.0, quadratic=0.0045, per_sequence=0.0, per_batch=0.0, per_length=0.0)
    """
    if not np.any(cost.quadratic):
        return None
    unit = float(np.max(cost.linear) or np.max(cost.quadratic))
    return Quadratic(linear=_divide(cost.linear, unit), quadratic=_divide(cost.quadratic, unit))


def _divide(coefficient: float | tuple[float, ...], unit: float) -> float | tuple[float, ...]:
    if isinstance(coefficient, tuple):
        return tuple(float(f"{part / unit:.2g}") for part in coefficient)
    return float(f"{coefficient / unit:.2g}")


def _as_points(name: str, values: ArrayLike, points: int) -> NDArray[np.float64]:
    """Returns a new array of numbers above 0: [points], or [points, dims]."""
    numbers = np.array(values, np.float64, ndmin=1)
    if len(numbers) != points or not ((numbers > 0) & (numbers < np.inf)).all():
        rule = f"{points} finite numbers above 0, one for each batch"
        raise checks.value_error(name, rule, values, "Leave other batches out.")
    return numbers


def fit_quadratic(
    counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], measured: NDArray[np.float64]
) -> tuple[Quadratic, float]:
    """Returns the quadratic that predicts `measured` [points] best, and its mean relative error in cross-validation.

    The fit minimises the sum of the squares of predicted / measured - 1. So a step of a millisecond counts as much as
    one of a second. Coefficients are at least 0: no step gets cheaper as it grows.
    """
    # Also tried: weights of 1 / sqrt(measured), absolute errors, the L1 norm, and Huber's loss. On a busy machine, each
    # was better in some runs of benchmarks/step_cost.py and worse in others.
    factors, dims = _factors(counts, padded_lengths), padded_lengths.shape[1]
    if np.linalg.matrix_rank(factors / np.linalg.norm(factors, axis=0)) < factors.shape[1]:
        shapes = np.column_stack([counts, padded_lengths]).tolist()
        raise checks.value_error("shapes", "of two counts and three lengths at least", shapes, "Measure more shapes.")
    shares = factors / measured[:, None]
    coefficients = _solve(shares)
    coefficients[coefficients * shares.max(axis=0) < 1e-9] = 0.0  # a term that adds so little is a rounding error
    rows = coefficients[1:].reshape(-1, dims).tolist()
    linear, quadratic, per_length = (row[0] if dims == 1 else tuple(row) for row in rows)
    fitted = Quadratic(per_batch=coefficients[0], linear=linear, quadratic=quadratic, per_length=per_length)
    # Each point is predicted by the fit to all other points.
    errors = [abs(row @ _solve(np.delete(shares, point, axis=0)) - 1) for point, row in enumerate(shares)]
    return fitted, float(np.mean(errors))


def _factors(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the factors of `per_batch`, `linear`, `quadratic` and `per_length`: [points, 1 + 3 dims]."""
    sizes, longest = counts.astype(np.float64)[:, None], padded_lengths.astype(np.float64)
    return np.hstack([np.ones_like(sizes), sizes * longest, sizes * longest**2, longest])


def _solve(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the coefficients of at least 0 for which `shares @ coefficients` is nearest to 1.

    References:
        Portugal, Judice and Vicente (1994), section 2: Murty's pivots, one at a time.
    """
    norms = np.linalg.norm(shares, axis=0)
    table, solution = shares / norms, np.zeros(len(norms))  # L^2 and 1 differ by many powers of ten
    free = np.ones(len(norms), np.bool_)
    for _ in range(1_000):  # far more than the pivots of 8 lengths; rounding could repeat them for ever
        solution[:] = 0.0
        solution[free] = np.linalg.lstsq(table[:, free], np.ones(len(table)), rcond=None)[0]
        # A free coefficient must not be negative, and a larger one must not help where it is held at 0.
        wrong = np.flatnonzero(np.where(free, solution < -1e-9, table.T @ (1.0 - table @ solution) > 1e-9))
        if not len(wrong):
            break
        free[wrong[-1]] = not free[wrong[-1]]
    return solution.clip(0.0) / norms


def show_fit(cost: Quadratic, dims: int) -> str:
    """Returns the cost as a formula of n sequences padded to L, without the parts that are 0.

    >>> show_fit(Quadratic(per_batch=0.01, linear=2e-5, quadratic=0.0), 1)
    '0.01 + 2e-05 n L'
    >>> show_fit(Quadratic(linear=(1.0, 8.0), per_length=0.5), 2)
    '1 n L1 + 8 n L2 + 0.5 L1 + 0.5 L2'
    """
    names = [f"L{dim + 1}" for dim in range(dims)] if dims > 1 else ["L"]
    factors = ["", "n", *(f"n {name}" for name in names), *(f"n {name}^2" for name in names), *names]
    parts = zip(cost.coefficients(dims).tolist(), factors, strict=True)
    return " + ".join(f"{value:.3g} {factor}".strip() for value, factor in parts if value) or "0"


def show_shapes(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], **more: list[str]) -> list[str]:
    r"""Returns the lines of a table of shapes, with more columns by their heads.

    >>> print(*show_shapes(np.array([1, 16]), np.array([[8, 9], [812, 90]]), fit=["+2.0%", "-1.0%"]), sep="\n")
      sequences    padded to          fit
              1        8 x 9        +2.0%
             16     812 x 90        -1.0%
    """
    longest = [" x ".join(f"{length:,}" for length in lengths) for lengths in padded_lengths.tolist()]
    columns = {"sequences": [f"{count:,}" for count in counts.tolist()], "padded to": longest, **more}
    return ["".join(f"{cell:>13}" for cell in row) for row in ([*columns], *zip(*columns.values(), strict=True))]
