"""Units of columns: what a name says of them, and which columns a frame shift divides.

The name of a column may say its unit: duration_ms is in milliseconds. Where an option means another one, that is
refused, and never guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from lengthwise.checks import value_error

Unit = Literal["hours", "minutes", "seconds", "milliseconds", "microseconds", "samples", "counts", "unknown"]

SECONDS_NAMES = ("duration", "seconds", "dur")  # of columns that are most likely in seconds
_WORDS: dict[Unit, str] = {
    "hours": "hours hour hrs hr h stunden heures",
    "minutes": "minutes minute mins min minuten",
    "seconds": "seconds secs sec s sekunden sek secondes",
    "milliseconds": "milliseconds millisecond millisecs millisec millis msecs msec ms millisekunden millisecondes",
    "microseconds": "microseconds microsecond microsecs microsec micros usecs usec us \u03bcs mikrosekunden",
    "samples": "samples",
    "counts": "frames tokens words characters chars",
}
_WORD = "[A-Z\u03bc]?[a-z]+|[A-Z]+|\\d+|[^\\W\\d_A-Za-z\u03bc]+"
_UNITS: dict[str, Unit] = {word: unit for unit, words in _WORDS.items() for word in words.split()}
_SHORT = ("h", "min", "s")  # which stand for anything, unless one of these words is before them
_TIMES = ("duration", "dur", "time", "audio", "clip", "dauer", "zeit", "duree", "temps")
_PER_SECOND: dict[Unit, int] = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}


def unit_of(name: str) -> Unit:
    """Tells the unit of a column from the last word of its name, if that is one.

    >>> unit_of("duration[ms]"), unit_of("features.num_frames"), unit_of("duration"), unit_of("len_s")
    ('milliseconds', 'counts', 'unknown', 'unknown')
    """
    # "durationMs" and "Duration (ms)" are both the words "duration" and "ms"; frames_10ms are no milliseconds.
    # Without accents, and with the micro sign as the Greek letter. Letters of other scripts are words too.
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", name))
    *before, last = [word.lower() for word in re.findall(_WORD, plain)] or [""]
    if before and before[-1] in ("milli", "micro", "nano"):  # durationMilliSeconds
        last = before.pop() + last
    if (before[-1].isdigit() if before else len(last) < 4) or (last in _SHORT and before[-1] not in _TIMES):
        return "unknown"
    return _UNITS.get(last, "unknown")


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def takes_shift(name: str, unit: Unit, *, alone: bool, fractions: bool) -> bool:
    """Says whether a frame shift divides a column: where there is one alone, it is meant for that."""
    if unit == "counts" or alone:
        return unit != "counts"
    return unit not in ("unknown", "samples") or last_part(name) in SECONDS_NAMES or fractions


def refuse_times(name: str, unit: Unit) -> None:
    """Refuses a column in a unit of time, where no frame shift is given."""
    if unit in _PER_SECOND:
        shift = f"{0.01 * _PER_SECOND[unit]:g}"
        remedy = f"Give the {unit} from one frame to the next, as {shift} (on the command line: --frame-shift {shift})."
        raise value_error("frame_shift", f"given, because {name} is in {unit}", None, remedy)


def shifts_in_seconds(names: Sequence[str], timed: Sequence[bool], frame_shift: float) -> list[float | None]:
    """Returns the shift of each column that is `timed`, in its own unit.

    Raises:
        ValueError: None is; or the name of one says another unit than the shift has, which is in seconds below 1.
    """
    if not any(timed):
        remedy = f"It does not apply to counts ({', '.join(names)}): leave it out, or name a column of seconds."
        raise value_error("frame_shift", "given for seconds only", frame_shift, remedy)
    for name, is_timed in zip(names, timed, strict=True):
        if is_timed:
            _check_unit(name, unit_of(name), frame_shift)
    return [frame_shift if is_timed else None for is_timed in timed]


def _check_unit(name: str, unit: Unit, frame_shift: float) -> None:
    # The unit of a shift is that of its column; but one below 1 is in seconds.
    if unit in ("unknown", "seconds") or (frame_shift >= 1 and unit not in ("hours", "minutes")):
        return
    remedy = "Write a column in seconds, and name that."
    if unit == "samples":
        remedy = "Give 160 for 0.01 s at 16 kHz, or `sample_rate` too (on the command line: --sample-rate 16000)."
    elif unit in _PER_SECOND:
        remedy = f"Give {frame_shift * _PER_SECOND[unit]:g} for {frame_shift:g} s."
    raise value_error("frame_shift", f"in {unit}, as {name} is", frame_shift, remedy)


def shifts_in_samples(
    names: Sequence[str], units: Sequence[Unit], frame_shift: float | None, sample_rate: float
) -> list[float | None]:
    """Returns the shift in samples of each column that counts them: the one there is, or those that are named so.

    At 16,000 Hz, a shift of 0.01 s is one of 160 samples.

    Raises:
        ValueError: None does, or one that should is known to be of another unit.
    """
    frame_shift = check_sample_shift(frame_shift)
    sampled = [len(names) == 1 or unit_of(name) == "samples" for name in names]
    for name, unit, is_sampled in zip(names, units, sampled, strict=True):
        if is_sampled and unit not in ("unknown", "samples"):
            cells = "counts of frames or items" if unit == "counts" else unit
            remedy = f"It turns samples into frames, but {name} holds {cells}."
            raise value_error("sample_rate", "left out here", sample_rate, remedy)
    if not any(sampled):
        remedy = "Of several columns it applies to those that are named samples, as num_samples."
        raise value_error("sample_rate", "left out here", sample_rate, remedy)
    # Six decimals, as of frames: 0.0001 * 22050 is 2.205 and not 2.2050000000000005.
    shift = round(frame_shift * sample_rate, 6)
    return [shift if is_sampled else None for is_sampled in sampled]


def check_sample_shift(frame_shift: float | None) -> float:
    """Returns the shift, in seconds, that goes with a sample rate."""
    if frame_shift is None or frame_shift >= 1:
        remedy = "Give the seconds from one frame to the next, as 0.01 (on the command line: --frame-shift 0.01)."
        raise value_error("frame_shift", "given in seconds, below 1, with `sample_rate`", frame_shift, remedy)
    return frame_shift
