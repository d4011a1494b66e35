"""Reads the header and the samples of wav files of one channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes.speech.corpus import Samples


@dataclass(frozen=True, slots=True)
class Wav:
    """The header of a wav file of one channel: samples, and samples per second."""

    count: int
    rate: int


def read_header(path: Path) -> Wav:
    """Reads only the header.

    Raises:
        ValueError: The file cannot be read, or has several channels or no sample.
    """
    try:
        files.check_regular(path)
        info = soundfile.info(str(path))
    except (soundfile.SoundFileError, OSError) as error:
        raise value_error("wav", "audio that can be read", "broken", "Repair or remove it.", at=str(path)) from error
    if info.channels != 1:
        remedy = "Write each channel to a file of its own."
        raise value_error("wav", "of one channel", info.channels, remedy, at=str(path))
    if info.frames < 1:
        raise value_error("wav", "of at least one sample", info.frames, "Remove it.", at=str(path))
    return Wav(info.frames, info.samplerate)


def read_samples(path: Path, start: int, stop: int) -> Samples:
    """Reads the samples from `start` up to `stop`, from -1 to 1; fewer if the file ends earlier.

    Raises:
        ValueError: The file cannot be read.
    """
    try:
        files.check_regular(path)
        samples, _ = soundfile.read(str(path), start=start, stop=stop, dtype="float32")
    except (soundfile.SoundFileError, OSError) as error:
        raise value_error("wav", "audio that can be read", "broken", "Repair or remove it.", at=str(path)) from error
    return np.asarray(samples, np.float32)


def check_samples(samples: Samples, count: int) -> Samples:
    """Returns the samples if there are `count` and all are finite.

    Raises:
        ValueError: Otherwise.
    """
    if len(samples) != count:
        raise value_error("samples", f"{count}, as in its header", len(samples), "Write the file again.")
    if not np.isfinite(samples).all():
        wrong = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise value_error("samples", "finite", float(samples[wrong]), "Write the file again.", at=f"sample {wrong}")
    return samples
