"""What a length may be, and how seconds become lengths.

A length is a whole number from 1 to 2**63 - 1. All readers bring their numbers here, with a `place` that says
where each stands, so that a bad value is refused in the same words wherever it came from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error

_FINITE, _WHOLE, _LEAST, _MOST = "finite", "a whole number", "at least 1", "at most 2**63 - 1"

Place = Callable[[int], str]  # 6 -> "line 8 of train.csv"

LONGEST = 2**63 - 1
MOST_DIMS = 8  # lengths of one sequence; a wider table holds the sequences themselves, as token ids padded to 512
_SECONDS_REMEDY = "If these are seconds, give `frame_shift` (on the command line: --frame-shift) to get frames."


def whole_lengths(values: NDArray[Any], *, name: str, place: Place, remedy: str = _SECONDS_REMEDY) -> NDArray[np.int64]:
    """Returns a fresh int64 copy of numbers that are lengths already.

    A float is a length only where its dtype holds every whole number up to it: below 2**53 in float64, 2**24 in
    float32, 2048 in float16. Beyond, 9007199254740993.0 has silently become 9007199254740992.0.

    Args:
        values: [n], of any integer or floating dtype.
        name: What an error calls the values.
        place: Says where a value stands.
        remedy: What to do about fractions, which are most often seconds.

    Raises:
        ValueError: At the first value that is not finite, not whole, below 1, above 2**63 - 1, or a float that may
            have been rounded.

    >>> whole_lengths(np.array([3.0, 5.0]), name="frames", place=str)
    array([3, 5])
    >>> whole_lengths(np.array([3, 0]), name="frames", place="line {} of a.txt".format)
    Traceback (most recent call last):
    ValueError: `frames` must be at least 1, but is 0 at line 1 of a.txt. Drop the sequence or repair its length.
    """
    # All at once, and only a bad value is looked at by itself: millions of lengths take milliseconds.
    if not (good := is_length(values)).all():
        at = int(np.argmin(good))
        value = int(values[at]) if values.dtype.kind in "iu" else float(values[at])
        raise not_a_length(value, name=name, at=place(at), bits=exact_bits(values), remedy=remedy)
    return values.astype(np.int64)


def not_a_length(value: float, *, name: str, at: str, bits: int = 53, remedy: str = _SECONDS_REMEDY) -> ValueError:
    """Writes the error for a number that is no length: `bits` of it a float holds, `remedy` is that for fractions."""
    rule = broken_rule(value, bits=bits)
    if rule == _WHOLE:
        return value_error(name, rule, value, remedy, at=at)
    if rule in (_FINITE, _LEAST, _MOST):
        return value_error(name, rule, value, "Drop the sequence or repair its length.", at=at)
    exact = "Floats round whole numbers beyond that: give integers, in a file as digits alone."
    return value_error(name, rule, value, exact, at=at)


def broken_rule(value: float, *, bits: int = 53) -> str:
    """Says which rule a number breaks that is no length; `bits` of it a float holds.

    >>> broken_rule(0.5), broken_rule(-3)
    ('a whole number', 'at least 1')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return _FINITE
    if value != math.floor(value):
        return _WHOLE
    if value < 1 or value > LONGEST:
        return _LEAST if value < 1 else _MOST
    # All else was asked above: what is left is a whole number that its float may not hold.
    return f"below 2**{bits} as a float"


def check_dims(dims: int) -> None:
    """Refuses a table that is too wide to be lengths, [n, dims]."""
    if dims > MOST_DIMS:
        remedy = "If these are the sequences themselves, as token ids, give the count of each."
        raise value_error("lengths", f"at most {MOST_DIMS} for each sequence", dims, remedy)


def frames_from_seconds(values: NDArray[Any], frame_shift: float, *, name: str, place: Place) -> NDArray[np.int64]:
    """Counts the frames of each duration: max(1, duration / frame_shift, rounded half away from zero).

    The quotient is first rounded to six decimals, because 0.145 / 0.01 is 14.499999999999998 in float64
    where the reader of the file sees 14.5.

    Args:
        values: [n] durations in seconds.
        frame_shift: Seconds from one frame to the next.
        name: What an error calls the values.
        place: Says where a value stands.

    Raises:
        ValueError: At the first duration that is not finite and above 0, or has more than 2**63 - 1 frames.

    >>> frames_from_seconds(np.array([0.145, 0.001, 2]), 0.01, name="duration", place=str)
    array([ 15,   1, 200])
    """
    good = np.isfinite(values) & (values > 0)
    if not good.all():
        at = int(np.argmin(good))
        remedy = "Drop the sequence or repair its duration."
        raise value_error(name, "finite and above 0 seconds", values[at].item(), remedy, at=place(at))
    return whole_lengths(round_frames(values, frame_shift), name=f"{name} / frame_shift", place=place)


def round_frames(values: NDArray[Any], frame_shift: float) -> NDArray[np.float64]:
    """The frames of durations above 0, as `frames_from_seconds` rounds them, not checked.

    >>> round_frames(np.array([0.145, 0.001, 2]), 0.01)
    array([ 15.,   1., 200.])
    """
    with np.errstate(over="ignore"):
        # Half away from zero by + 0.5 and floor: np.rint would round 14.5 and 15.5 to 14 and 16.
        return np.maximum(np.floor(np.round(values.astype(np.float64) / frame_shift, 6) + 0.5), 1)


def has_fractions(values: NDArray[Any]) -> bool:
    """Says whether any of the numbers, [n], is finite and not whole."""
    return values.dtype.kind == "f" and bool((np.isfinite(values) & (np.floor(values) != values)).any())


def freeze(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the same array, made read-only."""
    lengths.flags.writeable = False
    return lengths


def is_length(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Says of each number whether `whole_lengths` takes it.

    >>> is_length(np.array([3.0, 0.5, 0.0, np.nan]))
    array([ True, False, False, False])
    """
    if values.dtype.kind in "iu":
        # Of uint64 alone some values are above.
        return (values >= 1) & (values <= LONGEST)
    numbers = values.astype(np.float64)
    most = 2.0 ** exact_bits(values)
    return (numbers >= 1) & (numbers < most) & (np.floor(numbers) == numbers)  # NaN compares as False


def exact_bits(values: NDArray[Any]) -> int:
    """The bits of a whole number that the dtype holds: 53 for float64, and for what is compared as float64."""
    # Of float16: 10 bits that are stored and one that is implied, so 11.
    return min(int(np.finfo(values.dtype).nmant) + 1, 53) if values.dtype.kind == "f" else 63
