"""The Free Spoken Digit Dataset as it is published: a folder of wav files named digit_speaker_number.wav."""

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
    """Whether there are wav files in a folder, each of them named as a digit."""
    names = [path.name for path in folder.iterdir() if path.suffix.lower() == ".wav"]
    return bool(names) and all(NAMED.fullmatch(name) for name in names)


def read_digit_folder(folder: Path, *, strict: bool = False) -> tuple[Recordings, tuple[str, ...]]:
    """Reads single digits, such as `7_jackson_32.wav`: seven, said by Jackson, his recording number 32.

    Args:
        folder: Wav files of one channel and 8,000 samples a second.
        strict: Whether to raise for the first that cannot be used; else it is left out.

    Returns:
        The recordings, and what was left out, one sentence each.

    Raises:
        ValueError: Where none can be used, or as `strict` says.
    """
    skipped = Skipped(strict=strict)
    found: list[tuple[Samples, int, str, int]] = []
    for path in sorted(folder.iterdir()):
        if named := NAMED.fullmatch(path.name):
            try:
                found.append((_samples(path), int(named[1]), named[2], int(named[3])))
            except ValueError as error:
                skipped.add(error)
    if not found:
        remedy = f"The first complaint: {skipped.sentences[0]}" if skipped.sentences else "Name them 7_jackson_32.wav."
        raise value_error("folder", "of single digits that can be used", str(folder), remedy)
    samples, digits, speakers, numbers = zip(*found, strict=True)
    made = Recordings(samples=samples, digits=np.array(digits), speakers=np.array(speakers), numbers=np.array(numbers))
    return made, skipped.sentences


def _samples(path: Path) -> Samples:
    header = read_header(path)
    if header.rate != RATE:
        raise value_error("wav", f"of {RATE} samples a second", header.rate, "Bring it to that rate.", at=str(path))
    return check_samples(read_samples(path, 0, header.count), header.count)
