"""Example lengths, drawn from a description of a data set: the package holds no data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact
from lengthwise._random import Key
from lengthwise.checks import check_choice, check_whole
from lengthwise.lengths.rules import freeze

_LJSPEECH_TRAIN = 10_480  # clips in the training set of Ge et al. 2021: 80 % of 13,100

# Lengths that 0, 1, 5, 10, ... 95 and 100 % of the 13,100 LJSpeech clips do not exceed, in frames of 12.5 ms: measured.
_SPEECH_SHARES = (0.0, 0.01, *(step / 20 for step in range(1, 21)))
_SPEECH_FRAMES = (
    *(89, 132, 214, 274, 321, 362, 399, 430, 460, 489, 514),
    *(541, 569, 594, 620, 645, 671, 696, 722, 751, 778, 808),
)

SHORTEST, LONGEST = 16, 8_000  # of the long-tailed lengths


def example_lengths(name: str = "long-tailed", *, count: int | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Draws lengths to try things on, the same on every platform. A smaller `count` gives the first of a larger one.

    Args:
        name: "long-tailed": log-normal, exp(6 + 0.7 z), rounded and clipped to 16..8000, as of texts in tokens.
            "speech": as of the LJSpeech clips in frames of 12.5 ms, from 89 to 808 with mean 525, linear between
            22 measured quantiles; the lengths are not those of the clips.
        count: Number of lengths; None is 10,480.
        seed: From 0 to 2**64 - 1.

    Returns:
        [count] int64, read-only.

    Raises:
        ValueError: Another name, or a number out of range.
        TypeError: A number that is not whole.

    >>> example_lengths("speech", count=4)
    array([676, 507, 661, 766])
    """
    check_choice("name", name, tuple(EXAMPLES))
    wanted = _LJSPEECH_TRAIN if count is None else count
    check_whole("count", wanted, minimum=0, remedy="Give the number of lengths.")
    return freeze(EXAMPLES[name](Key(seed=seed, stage="examples"), wanted))


def _speech(key: Key, count: int) -> NDArray[np.int64]:
    # As `np.interp`, whose product and sum some builds of NumPy fuse: those round otherwise.
    drawn, shares, frames = key.uniform(count), np.array(_SPEECH_SHARES), np.array(_SPEECH_FRAMES, np.float64)
    cell = np.searchsorted(shares, drawn, side="right") - 1
    slopes = np.diff(frames) / np.diff(shares)
    return np.rint(slopes[cell] * (drawn - shares[cell]) + frames[cell]).astype(np.int64)


def _long_tailed(key: Key, count: int) -> NDArray[np.int64]:
    lengths = np.rint(_exact.exps(6.0 + 0.7 * _normal(key, count)))
    return np.clip(lengths, SHORTEST, LONGEST).astype(np.int64)


def _normal(key: Key, count: int) -> NDArray[np.float64]:
    """Draws standard normal numbers, each from two uniform ones (Box and Muller 1958)."""
    # Two for each, though Box and Muller give two: so a smaller count gives the first of a larger one.
    pairs = key.uniform(2 * count).reshape(count, 2)
    return np.sqrt(-2.0 * _exact.logs(1.0 - pairs[:, 0])) * _exact.cosines(pairs[:, 1])


EXAMPLES: dict[str, Callable[[Key, int], NDArray[np.int64]]] = {"long-tailed": _long_tailed, "speech": _speech}
