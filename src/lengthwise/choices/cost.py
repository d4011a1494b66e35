"""Costs of batches, from the number of sequences and the padded length of each dimension.

    counts          [batches]         sequences in each batch
    padded_lengths  [batches, dims]   the length that each dimension is padded to
    costs           [batches]         float64, in the unit of the budget

A cost is at least 0, and must not fall when a count or a length rises. Any callable of this form is a cost. The cutter
runs `Padded()` and `Quadratic` compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks

_RETURN = "Return an array, from counts [batches] and padded_lengths [batches, dims]."
_REMEDY = "Give the coefficients of count x (per_sequence + linear L + quadratic L^2)."


class Cost(Protocol):
    """The form of every cost: a function of counts [batches] and padded lengths [batches, dims].

    A cost is at least 0, and must not fall when a count or a length rises. Fitting an order also asks for the costs of
    batches that are in no plan, with counts up to 2**40.

    >>> import lengthwise as lw
    >>> def seconds(counts, padded_lengths):
    ...     return 0.5 + 0.1 * counts * padded_lengths.sum(axis=1)
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), cost=seconds)
    >>> lw.make_plan([5, 9], batching).costs  # 0.5 + 0.1 x 2 x 9
    array([2.3])
    """

    def __call__(self, counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], /) -> NDArray[np.float64]:
        """Prices batches.

        Args:
            counts: [batches] int64, the sequences in each batch.
            padded_lengths: [batches, dims] int64, the padded length of each dimension of each batch.

        Returns:
            [batches], finite, in the unit of the budget.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Padded:
    """The padded frames: count x the longest.

    Args:
        dims: For sequences with several lengths. "sum" counts the padded frames of all lengths. "largest" counts the
            longest only, such as the longer of source and target: fairseq's `--max-tokens`.

    >>> Padded()(np.array([3]), np.array([[10, 4]]))
    array([42.])
    >>> Padded(dims="largest")(np.array([3]), np.array([[10, 4]]))
    array([30.])
    """

    dims: str = "sum"

    def __post_init__(self) -> None:
        checks.check_choice("dims", self.dims, ("sum", "largest"))

    def __call__(self, counts: ArrayLike, padded_lengths: ArrayLike) -> NDArray[np.float64]:
        if self.dims == "sum":
            return _PADDED_FRAMES(counts, padded_lengths)
        return np.asarray(counts) * _as_rows(padded_lengths).max(axis=1, initial=0.0)

    def coefficients(self, dims: int) -> NDArray[np.float64] | None:
        # A maximum over several dimensions is no sum, so it has no coefficients: the cut calls the cost.
        return _PADDED_FRAMES.coefficients(dims) if self.dims == "sum" or dims == 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Quadratic:
    """The cost of most networks: a part for the batch, and a part for each of its sequences, such as attention.

        per_batch + per_length L + count x (per_sequence + linear L + quadratic L^2)

    L is the padded length. The terms with L are summed over the dimensions. Give `linear`, `quadratic` and `per_length`
    as one number for all dimensions, or a number for each. `lengthwise.measure_step` measures all but
    `per_sequence` on your own training step.

    Args:
        linear: Cost of one padded frame.
        quadratic: Cost of one padded frame that attends to one frame.
        per_sequence: Cost of one more sequence, whatever its length.
        per_batch: Cost of one more batch, whatever it holds.
        per_length: Cost of one more frame of padded length, however many sequences the batch holds. An LSTM on a GPU
            computes its frames one after the other, and all sequences at once.

    >>> Quadratic(quadratic=0.01)(np.array([2]), np.array([[100]]))
    array([400.])
    >>> Quadratic(linear=(1.0, 8.0))(np.array([2]), np.array([[100, 10]]))
    array([360.])
    """

    linear: float | tuple[float, ...] = 1.0
    quadratic: float | tuple[float, ...] = 0.0
    per_sequence: float = 0.0
    per_batch: float = 0.0
    per_length: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        for name in ("per_sequence", "per_batch"):
            checks.keep(self, **{name: checks.check_number(name, getattr(self, name), remedy=_REMEDY)})
        for name in ("linear", "quadratic", "per_length"):
            checks.keep(self, **{name: _check_coefficients(name, getattr(self, name))})

    def __call__(self, counts: ArrayLike, padded_lengths: ArrayLike) -> NDArray[np.float64]:
        longest = _as_rows(padded_lengths)
        coefficients = self.coefficients(longest.shape[1])
        once, each = np.full(len(longest), coefficients[0]), np.zeros(len(longest))
        # Dimension after dimension, as the compiled cutter adds them. NumPy adds 8 numbers or more in another order:
        # the last bit would differ from the cost that the cutter compared with the budget.
        terms = zip(longest.T, coefficients[2:].reshape(3, -1).T, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):  # `costs_of` refuses costs that are not finite
            for length, (linear, quadratic, per_length) in terms:
                each += linear * length + quadratic * (length * length)
                once += per_length * length
            return once + np.asarray(counts) * (coefficients[1] + each)

    def coefficients(self, dims: int) -> NDArray[np.float64]:
        """Returns the coefficients as the compiled cutter reads them: [2 + 3 dims].

        Raises:
            ValueError: A coefficient has a number for each dimension, and the lengths have more or fewer dimensions.
        """
        spread = (_spread(name, getattr(self, name), dims) for name in ("linear", "quadratic", "per_length"))
        return np.array([self.per_batch, self.per_sequence, *chain.from_iterable(spread)])


def _as_rows(padded_lengths: ArrayLike) -> NDArray[np.float64]:
    longest = np.asarray(padded_lengths, np.float64)
    if longest.ndim != 2:
        remedy = "Give one row for each batch."
        raise checks.value_error("padded_lengths", "of shape [batches, dims]", longest.shape, remedy)
    return longest


def _check_coefficients(name: str, value: Any) -> float | tuple[float, ...]:
    """Returns one number for all dimensions, or a tuple with a number for each."""
    if isinstance(value, tuple | list | np.ndarray) and np.ndim(value) == 1 and len(value):
        return tuple(checks.check_number(name, coefficient, remedy=_REMEDY) for coefficient in value)
    return checks.check_number(name, value, remedy=_REMEDY)


def _spread(name: str, coefficient: float | tuple[float, ...], dims: int) -> tuple[float, ...]:
    if not isinstance(coefficient, tuple):
        return (coefficient,) * dims
    if len(coefficient) != dims:
        rule = f"one number, or {dims}, one for each length of a sequence"
        raise checks.value_error(name, rule, coefficient, "Give a number for each length.")
    return coefficient


_PADDED_FRAMES = Quadratic()


def has_coefficients(cost: Cost) -> bool:
    """Returns True if kernels know the cost by its coefficients, however many lengths a sequence has."""
    return type(cost) is Quadratic or (type(cost) is Padded and cost.dims == "sum")


def coefficients_of(cost: Cost, dims: int) -> NDArray[np.float64] | None:
    """Returns the coefficients of a cost of this package, as kernels read them: [2 + 3 dims]; else None.

    A subclass has no coefficients: it may cost anything.
    """
    if isinstance(cost, Padded | Quadratic) and type(cost) in (Padded, Quadratic):
        return cost.coefficients(dims)
    return None


def costs_of(
    cost: Cost, counts: NDArray[np.int64], padded_lengths: NDArray[np.int64], *, name: str = "cost"
) -> NDArray[np.float64]:
    """Returns the checked costs of batches, [batches]: a cost may be any callable of the user. Errors have its `name`.

    The callable gets copies, and its result is copied. So it may write into all of them, and the plan does not change.

    Raises:
        TypeError: The cost does not return an array of real numbers.
        ValueError: The cost does not return one finite number of at least 0 for each batch.
    """
    returned = cost(counts.copy(), padded_lengths.astype(np.int64))
    try:
        array = np.asarray(returned)
    except (TypeError, ValueError, RuntimeError) as error:  # lists of different lengths, a tensor on a GPU
        raise checks.type_error(name, "an array of numbers", returned, _RETURN) from error
    if array.dtype.kind not in "iuf":  # a bool is no cost, nor is the real part of a complex number
        raise checks.type_error(name, "an array of real numbers", array.dtype.name, _RETURN)
    costs = array.astype(np.float64)
    if costs.shape != counts.shape:
        raise checks.value_error(name, f"of shape {counts.shape}, one for each batch", costs.shape, _RETURN)
    check_finite(costs, name)
    if (costs < 0.0).any():
        raise checks.value_error(name, "at least 0", float(costs.min()), "Add a constant, or clip it at 0.")
    return costs


def cost_of_one(cost: Cost, count: int, longest: NDArray[np.int64]) -> float:
    """Prices one batch of `count` sequences, padded to `longest` [dims]."""
    return float(costs_of(cost, np.array([count]), longest[None, :])[0])


def costs_of_rows(
    cost: Cost, lengths: NDArray[np.int64], offsets: NDArray[np.int64], capacity: int, *, name: str = "cost"
) -> NDArray[np.float64]:
    """Prices batches of packed rows: the cost of each sequence by itself, summed, plus the cost per batch.

    So attention costs the squares of the lengths, because no sequence attends to another. `per_batch` counts once, and
    `per_length` for a row of `capacity` frames. A user's cost does not tell its part per batch, so all of it counts
    for every sequence.

    Args:
        lengths: [m, dims], batch by batch.
        offsets: [batches + 1].
        capacity: Frames of a row.
        name: The name of the cost in errors.
    """
    once = 0.0
    if type(cost) is Quadratic:
        dims = lengths.shape[1]
        coefficients = cost.coefficients(dims)
        once = float(coefficients[0] + coefficients[2 + 2 * dims :].sum() * capacity)
        cost = replace(cost, per_batch=0.0, per_length=0.0)
    # `bincount` adds one number after the other, so it rounds the same way on every platform.
    batch_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    alone = costs_of(cost, np.ones(len(lengths), np.int64), lengths, name=name)
    sums = np.bincount(batch_of, alone, minlength=len(offsets) - 1).astype(np.float64, copy=False)
    check_finite(sums + once, name)
    return sums + once


def check_finite(costs: NDArray[np.float64], name: str = "cost") -> None:
    """Refuses costs that are infinite or no number."""
    if not np.isfinite(costs).all():
        remedy = "Give smaller coefficients or a smaller batch size, or repair the function."
        raise checks.value_error(name, "finite", float(costs[~np.isfinite(costs)][0]), remedy)


def costs_alone(cost: Cost, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Prices each of `lengths` [n, dims] in a batch of its own: [n]."""
    return costs_of(cost, np.ones(len(lengths), np.int64), lengths)
