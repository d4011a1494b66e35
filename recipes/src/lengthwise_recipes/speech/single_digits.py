"""Reads the Free Spoken Digit Dataset as published: a folder of wav files named digit_speaker_number.wav."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from lengthwise.checks import value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Samples
from lengthwise_recipes.speech.digits import RATE, Recordings
from lengthwise_recipes.speech.wav import check_samples, read_header, read_samples

NAMED = re.compile(r"([0-9])_(.+)_([0-9]+)\.wav", re.IGNORECASE)


def is_digit_folder(folder: Path) -> bool:
    """Returns True if a folder has wav files, all with names like 7_jackson_32.wav."""
    names = [path.name for path in folder.iterdir() if path.suffix.lower() == ".wav"]
    return bool(names) and all(NAMED.fullmatch(name) for name in names)


def read_digit_folder(folder: Path, *, strict: bool = False) -> tuple[Recordings, tuple[str, ...]]:
    """Reads single digits, such as `7_jackson_32.wav`: a seven by Jackson, recording number 32.

    Args:
        folder: Wav files of one channel and 8,000 samples per second.
        strict: Raise for the first unusable recording; else it is left out.

    Returns:
        The recordings, and for each file that was left out a sentence that says why.

    Raises:
        ValueError: No recording can be used, or see `strict`.
    """
    skipped = Skipped(strict=strict)
    rows: list[tuple[Samples, int, str, int]] = []
    for path in sorted(folder.iterdir()):
        if match := NAMED.fullmatch(path.name):
            try:
                rows.append((_samples(path), int(match[1]), match[2], int(match[3])))
            except ValueError as error:
                skipped.add(error)
    if not rows:
        remedy = f"The first complaint: {skipped.sentences[0]}" if skipped.sentences else "Name them 7_jackson_32.wav."
        raise value_error("folder", "of single digits that can be used", str(folder), remedy)
    samples, digits, speakers, numbers = zip(*rows, strict=True)
    recordings = Recordings(
        samples=samples, digits=np.array(digits), speakers=np.array(speakers), numbers=np.array(numbers)
    )
    return recordings, skipped.sentences


def _samples(path: Path) -> Samples:
    header = read_header(path)
    if header.rate != RATE:
        raise value_error("wav", f"of {RATE} samples a second", header.rate, "Bring it to that rate.", at=str(path))
    return check_samples(read_samples(path, 0, header.count), header.count)
