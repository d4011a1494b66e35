"""The fit: coefficients of 0 or more that make the least relative error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.cost import Quadratic


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
    told = all(len(np.unique(column)) >= few for column, few in zip(shapes.T, least, strict=True))
    if not told or np.linalg.matrix_rank(_scale(columns(counts, padded_lengths))[0]) < 2 + 3 * padded_lengths.shape[1]:
        rule = "of two counts and three lengths at least, in all pairs"
        raise checks.value_error("shapes", rule, shapes.tolist(), "Measure more shapes.")


def columns(counts: NDArray[np.int64], padded_lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each coefficient is multiplied with, in the order of `Quadratic.prices`: [points, 2 + 3 dims]."""
    sizes, longest = counts.astype(np.float64)[:, None], padded_lengths.astype(np.float64)
    return np.hstack([np.ones_like(sizes), sizes, sizes * longest, sizes * longest**2, longest])


def _solve(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of at least 0 for which `shares @ coefficients` comes nearest to 1."""
    nnls = import_solver()
    scaled, sizes = _scale(shares)
    found = nnls(scaled, np.ones(len(shares)))[0]
    # What adds a part in 10^9 at most is what rounding left of 0.
    return np.where(found * scaled.max(axis=0) > 1e-9, found, 0.0) / sizes


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
