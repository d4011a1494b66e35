"""The description of a set of lengths, the bars of its histogram, and examples.

Examples are drawn at random, because the package holds no data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _exact
from lengthwise._random import Key
from lengthwise.checks import check_choice, check_whole
from lengthwise.lengths.arrays import as_lengths, fingerprint
from lengthwise.lengths.rules import freeze

_PERCENTS = (1, 5, 25, 50, 75, 95, 99)
_LONG = 10  # times the median: beside a longer length, nearly all others would fall into one bar of equal width


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A description of a set of lengths. Each tuple has one entry for each dimension.

    Attributes:
        count: The number of sequences.
        dims: The number of lengths of each sequence.
        min: The shortest. Without sequences it is an empty tuple, as are `quantiles`, `mean` and `max`.
        quantiles: [dims][7]: the smallest lengths that at least 1, 5, 25, 50, 75, 95 and 99 % of the sequences do not
            exceed.
        mean: The mean.
        max: The longest.
        total: The sum, always exact.
        fingerprint: 16 hex digits; see `fingerprint`.
    """

    count: int
    dims: int
    min: tuple[int, ...]
    quantiles: tuple[tuple[int, ...], ...]
    mean: tuple[float, ...]
    max: tuple[int, ...]
    total: tuple[int, ...]
    fingerprint: str

    def as_dict(self) -> dict[str, Any]:
        """Returns the description for JSON: lists in place of tuples, and the quantiles of a dimension by percentage.

        >>> describe([2, 4, 9]).as_dict()["quantiles"]
        [{'1': 2, '5': 2, '25': 2, '50': 4, '75': 9, '95': 9, '99': 9}]
        """
        fields = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return fields | {"quantiles": [dict(zip(map(str, _PERCENTS), row, strict=True)) for row in self.quantiles]}


def describe(lengths: ArrayLike) -> Description:
    """Describes lengths: count, range, quantiles, mean, total and fingerprint.

    Args:
        lengths: [n] or [n, dims], as for `as_lengths`; n may be 0.

    Raises:
        ValueError: As `as_lengths`.
        TypeError: As `as_lengths`.

    >>> describe([[3, 10], [5, 30]]).mean
    (4.0, 20.0)
    """
    checked = as_lengths(lengths)
    count, dims = len(checked), 1 if checked.ndim == 1 else checked.shape[1]
    # Each dimension is sorted: shortest, quantiles and longest are then rows of the table.
    table = np.sort(checked.reshape(count, dims), axis=0)
    # Adds the upper and the lower 32 bits separately: both sums are exact.
    upper, lower = (table >> 32).sum(axis=0).tolist(), (table & (2**32 - 1)).sum(axis=0).tolist()
    total = tuple((high << 32) + low for high, low in zip(upper, lower, strict=True))
    # In whole numbers, so that 95 % of 20 is 19 and never 19.000000000000004: ceil(percent * count / 100) - 1.
    rows = [-(-percent * count // 100) - 1 for percent in _PERCENTS]
    return Description(
        count=count,
        dims=dims,
        min=tuple(table[0].tolist()) if count else (),
        quantiles=tuple(map(tuple, table[rows].T.tolist())) if count else (),
        mean=tuple(dim_total / count for dim_total in total) if count else (),
        max=tuple(table[-1].tolist()) if count else (),
        total=total,
        fingerprint=fingerprint(checked),
    )


def has_long_tail(lengths: NDArray[np.int64]) -> bool:
    """Tells if the longest of lengths [n] is over 10 times the median, and no length is 0.

    >>> has_long_tail(np.array([1, 2, 3])), has_long_tail(np.array([1, 2, 3, 90]))
    (False, True)
    """
    return bool(lengths.min() > 0 and lengths.max() > _LONG * float(np.median(lengths)))


def bar_starts(lengths: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
    """Returns the starts of at most `most` bars, and the end of the last: [bars + 1].

    >>> bar_starts(np.array([2, 3, 7]), most=2)
    array([2, 5, 8])
    >>> bar_starts(np.array([1, 1, 1, 1, 99]), most=2)  # of equal width on a logarithmic axis
    array([  1,  10, 100])

    Args:
        lengths: [n], at least one.
        most: The most bars.
    """
    low, high = int(lengths.min()), int(lengths.max())
    if has_long_tail(lengths):
        growth = _exact.log((high + 1) / low) / most
        starts = np.rint(low * _exact.exps(growth * np.arange(most))).astype(np.int64)
        return np.unique(np.append(starts, high + 1))
    width = -(-(high - low + 1) // most)
    return np.arange(low, high + width + 1, width)


_LJSPEECH_TRAIN = 10_480  # clips in the training set of Ge et al. 2021: 80 % of 13,100

# The measured quantiles of the 13,100 LJSpeech clips at 0, 1, 5, 10, ... 95 and 100 %, in frames of 12.5 ms.
_SPEECH_SHARES = (0.0, 0.01, *(step / 20 for step in range(1, 21)))
_SPEECH_FRAMES = (
    *(89, 132, 214, 274, 321, 362, 399, 430, 460, 489, 514),
    *(541, 569, 594, 620, 645, 671, 696, 722, 751, 778, 808),
)

SHORTEST, LONGEST = 16, 8_000  # the range of the long-tailed lengths


def example_lengths(name: str = "long-tailed", *, count: int | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Draws example lengths, the same on every platform. A smaller `count` returns the first lengths of a larger one.

    Args:
        name: "long-tailed": log-normal, exp(6 + 0.7 z), rounded and clipped to 16..8000, similar to texts in tokens.
            "speech": similar to the LJSpeech clips in frames of 12.5 ms, from 89 to 808 with mean 525, linear between
            22 measured quantiles.
        count: The number of lengths; None is 10,480.
        seed: A number from 0 to 2**64 - 1.

    Returns:
        [count] int64, read-only.

    Raises:
        ValueError: The name is unknown, or a number is out of range.
        TypeError: A number is not whole.

    >>> example_lengths("speech", count=4)
    array([676, 507, 661, 766])
    """
    check_choice("name", name, tuple(EXAMPLES))
    number = _LJSPEECH_TRAIN if count is None else count
    check_whole("count", number, minimum=0, remedy="Give the number of lengths.")
    return freeze(EXAMPLES[name](Key(seed=seed, stage="examples"), number))


def _speech(key: Key, count: int) -> NDArray[np.int64]:
    # Avoid `np.interp`: some builds of NumPy fuse its product and sum, and round differently.
    chances, shares, frames = key.uniform(count), np.array(_SPEECH_SHARES), np.array(_SPEECH_FRAMES, np.float64)
    cell = np.searchsorted(shares, chances, side="right") - 1
    slopes = np.diff(frames) / np.diff(shares)
    return np.rint(slopes[cell] * (chances - shares[cell]) + frames[cell]).astype(np.int64)


def _long_tailed(key: Key, count: int) -> NDArray[np.int64]:
    # Two uniform numbers make two normal ones (Box and Muller 1958). Only one is used, so that a smaller count returns
    # the first lengths.
    pairs = key.uniform(2 * count).reshape(count, 2)
    normal = np.sqrt(-2.0 * _exact.logs(1.0 - pairs[:, 0])) * _exact.cosines(pairs[:, 1])
    return np.clip(np.rint(_exact.exps(6.0 + 0.7 * normal)), SHORTEST, LONGEST).astype(np.int64)


EXAMPLES: dict[str, Callable[[Key, int], NDArray[np.int64]]] = {"long-tailed": _long_tailed, "speech": _speech}
