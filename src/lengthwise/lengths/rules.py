"""The rules of a length, and the conversion of seconds to lengths.

A length is a whole number from 1 to 2**63 - 1. All readers check their numbers here, so that their errors have the same
words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error

Place = Callable[[int], str]  # 6 -> "line 8 of train.csv"

LONGEST = 2**63 - 1
MOST_DIMS = 8  # lengths of one sequence; a wider table is most likely padded token ids
_REPAIR = "Drop the sequence or repair its length."
_EMPTY = "Drop it, or count it as 1: max(1, length), or the same file by `lengthwise lengths` -o lengths.npy --bad one."
_SECONDS = "If these are seconds, give `frame_shift` (on the command line: --frame-shift) to get frames."


def whole_lengths(
    values: NDArray[Any], frame_shift: float | None = None, *, name: str, place: Place, remedy: str = _SECONDS
) -> NDArray[np.int64]:
    """Checks that numbers are lengths, or, with `frame_shift`, durations, and returns the lengths as int64, a copy.

    A float must be below 2**53 in float64, 2**24 in float32, and 2048 in float16. Larger whole numbers may have been
    rounded: 9007199254740993.0 is stored as 9007199254740992.0.

    Args:
        values: [n], of any integer or floating dtype.
        frame_shift: As in `convert`.
        name: The name of the values in an error.
        place: Names the place of a value.
        remedy: The advice for fractions, which are most often seconds.

    Raises:
        ValueError: A value is not finite, not whole, below 1, above 2**63 - 1, or a float that may have been rounded.

    >>> whole_lengths(np.array([3.0, 5.0]), name="frames", place=str)
    array([3, 5])
    >>> whole_lengths(np.array([3, -1]), name="frames", place="line {} of a.txt".format)
    Traceback (most recent call last):
    ValueError: `frames` must be at least 1, but is -1 at line 1 of a.txt. Drop the sequence or repair its length.
    """
    # All values at once: millions of lengths take milliseconds.
    lengths, good = convert(values, frame_shift)
    if not good.all():
        at, more = int(np.argmin(good)), int(np.count_nonzero(~good)) - 1
        where = f"{place(at)} and at {more:,} more" if more else place(at)
        raise bad_value(values, at, frame_shift, name=name, place=lambda _: where, remedy=remedy)
    return lengths


def convert(values: NDArray[Any], frame_shift: float | None = None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Turns numbers into lengths, or, with `frame_shift`, durations into frames.

    A duration has max(1, round(duration / frame_shift)) frames, with halves rounded up. The quotient is first rounded
    to six decimals, because 0.145 / 0.01 is 14.499999999999998 in float64, but should be 14.5.

    Args:
        values: [n], of any integer or floating dtype.
        frame_shift: The shift from one frame to the next, in the unit of the durations.

    Returns:
        The lengths [n], with 1 for each bad number; and a mask [n] of the good numbers.

    >>> convert(np.array([0.145, 0.001, -2]), 0.01)
    (array([15,  1,  1]), array([ True,  True, False]))
    """
    durations = np.ones(len(values), dtype=np.bool_)
    numbers = values
    if frame_shift is not None:
        durations = np.isfinite(values) & (values > 0)
        with np.errstate(over="ignore"):
            # Round halves up, by + 0.5 and floor: np.rint would round 14.5 and 15.5 to 14 and 16.
            quotients = np.where(durations, values, 1).astype(np.float64) / frame_shift
            numbers = np.maximum(np.floor(np.round(quotients, 6) + 0.5), 1)
    good = durations & is_length(numbers)
    return (numbers if good.all() else np.where(good, numbers, numbers.dtype.type(1))).astype(np.int64), good


def is_length(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns a mask of the numbers that are lengths.

    >>> is_length(np.array([3.0, 0.5, 0.0, np.nan]))
    array([ True, False, False, False])
    """
    if values.dtype.kind in "iu":
        # Only uint64 has values above LONGEST.
        return (values >= 1) & (values <= LONGEST)
    numbers = values.astype(np.float64)
    return (numbers >= 1) & (numbers < 2.0 ** _exact_bits(values)) & (np.floor(numbers) == numbers)  # no NaN


def bad_value(
    values: NDArray[Any], at: int, frame_shift: float | None = None, *, name: str, place: Place, remedy: str = _SECONDS
) -> ValueError:
    """Returns the error for the bad number at index `at`; `remedy` is the advice for fractions."""
    # Integers are not turned into floats: a large one would be shown as another number.
    value = int(values[at]) if values.dtype.kind in "iuO" else float(values[at])
    rule, advice = _broken_rule(value, frame_shift, _exact_bits(values), remedy)
    return value_error(name, rule, value, advice, at=place(at))


def _broken_rule(value: float, frame_shift: float | None, bits: int, remedy: str) -> tuple[str, str]:
    """Returns the rule that a bad number breaks, and advice. A float holds whole numbers of `bits` bits.

    >>> _broken_rule(0.5, None, 53, "Round it.")
    ('a whole number', 'Round it.')
    """
    if frame_shift is not None:
        if not (math.isfinite(value) and value > 0):
            return "finite and above 0", "Drop the sequence or repair its duration."
        return "of fewer than 2**53 frames", _REPAIR
    if isinstance(value, float) and not math.isfinite(value):
        return "finite", _REPAIR
    if value != math.floor(value):
        return "a whole number", remedy
    if value < 1 or value > LONGEST:
        return ("at least 1" if value < 1 else "at most 2**63 - 1"), _REPAIR if value else _EMPTY
    # The number breaks no other rule: it is whole, but the float may have rounded it.
    exact = "Floats round larger whole numbers: give integers, which in a file have digits only."
    return f"below 2**{bits} as a float", exact


def _exact_bits(values: NDArray[Any]) -> int:
    """Returns the bits of whole numbers that the dtype holds: 53 for float64 and wider floats, 63 for integers."""
    # float16 has 10 stored bits and one implied bit: 11.
    return min(int(np.finfo(values.dtype).nmant) + 1, 53) if values.dtype.kind == "f" else 63


def check_dims(dims: int) -> None:
    """Refuses a table [n, dims] that is too wide to be lengths."""
    if dims > MOST_DIMS:
        remedy = "If these are token ids, give the number of tokens of each sequence."
        raise value_error("lengths", f"at most {MOST_DIMS} for each sequence", dims, remedy)


def has_fractions(values: NDArray[Any]) -> bool:
    """Tells if any of the numbers [n] is finite and not whole."""
    return values.dtype.kind == "f" and bool((np.isfinite(values) & (np.floor(values) != values)).any())


def freeze(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the same array, made read-only."""
    lengths.flags.writeable = False
    return lengths
