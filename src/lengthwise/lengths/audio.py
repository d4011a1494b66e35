"""Folders of audio files. Threads read only the headers of the files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise.checks import load_package, source_error, value_error, warn
from lengthwise.lengths.columns import Column

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif")
READERS = 16  # threads, more than cores: they wait for the disk

Header = tuple[int, int]  # of a file: its samples and sampling rate


def read_audio_folder(folder: Path, *, seconds: bool, progress: bool) -> Iterator[list[Column]]:
    """Measures all audio files below a folder, sorted by their path within it.

    Paths with `/` are compared as texts, so capitals come first: A/b.wav, B.wav, a.wav. Hidden files and folders are
    skipped. Links to folders are skipped with a warning. `audio_files` lists the files.

    Args:
        folder: The folder with .wav, .flac, .ogg, .opus, .mp3, .aiff and .aif files.
        seconds: If True, returns durations instead of samples.
        progress: If True, shows a progress bar.

    Raises:
        ValueError: There are no audio files, or a folder or a file cannot be read. Or `seconds` is False, and the
            sampling rates differ.
    """
    names = audio_files(folder)
    results = _measure(folder, names, progress)
    headers = [header for header in results if isinstance(header, tuple)]
    for name, reason in zip(names, results, strict=True):
        if isinstance(reason, str):
            remedy = f"Repair or remove it ({reason}). Files that cannot be read: {len(names) - len(headers)}."
            raise source_error("audio that can be read", folder / name, remedy)
    yield [_column(folder, headers, names, seconds)]


def audio_files(folder: str | Path) -> list[str]:
    """Returns the paths of audio files within a folder, in the order of `read_lengths`: length k is that of path k.

    Raises:
        ValueError: There are no audio files, or a folder cannot be read.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.wav", "a.flac", "notes.txt"):
    ...     (folder / name).touch()
    >>> audio_files(folder)
    ['a.flac', 'b.wav']
    """
    names = warn_links(folder)
    if not names:
        remedy = (
            f"It has no tables and no {', '.join(AUDIO_SUFFIXES)}. Read other files one by one; for a Kaldi folder,"
        )
        raise source_error("a folder with audio files", folder, f"{remedy} give the file utt2num_frames or utt2dur.")
    return names


def warn_links(folder: str | Path) -> list[str]:
    """Returns the sorted paths of audio files within a folder, perhaps none; warns of links to folders."""
    links: list[str] = []
    # Sort, because systems list folders in different orders.
    names = sorted(audio_names(Path(folder), links))
    if links:
        remedy = f"Left out: {len(links)} such links. Read each linked folder by itself, or link to its files instead."
        warn(str(source_error("without links to folders", min(links), remedy)))
    return names


def audio_names(folder: Path, links: list[str]) -> Iterator[str]:
    """Yields the audio files, and appends to `links` each link to a folder, which os.walk does not follow."""
    for path, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if not name.startswith(".")]  # os.walk then skips hidden ones
        links += filter(os.path.islink, (os.path.join(path, name) for name in folders))
        for file in names:
            if file.lower().endswith(AUDIO_SUFFIXES) and not file.startswith("."):
                yield (Path(path) / file).relative_to(folder).as_posix()


def _refuse_folder(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # a folder that has just vanished has no files
        remedy = f"Make it readable, or move it away ({error.strerror})."
        raise source_error("a folder that can be read", error.filename, remedy) from error


def _measure(folder: Path, names: Sequence[str], progress: bool) -> list[Header | str]:
    from concurrent.futures import ThreadPoolExecutor  # imports `logging`

    from tqdm import tqdm

    soundfile = load_package("soundfile", "read audio")
    with ThreadPoolExecutor(READERS) as pool:
        results = pool.map(lambda name: _header(soundfile, folder / name), names)
        return list(tqdm(results, total=len(names), unit="file", disable=not progress))


def _header(soundfile: Any, path: Path) -> Header | str:
    """Returns the header, or the text of an error."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "it is a pipe or a device"
        info = soundfile.info(path if os.name == "nt" else os.fsencode(path))  # bytes: a name may not be UTF-8
    except (soundfile.SoundFileError, OSError) as error:
        return str(error).strip().rstrip(".")
    # libsndfile returns 2**63 - 1 if it does not know the number of samples.
    if not (0 < info.frames < 2**62 and 0 < info.samplerate < 2**31):
        return f"{info.frames} samples at {info.samplerate} Hz"
    return info.frames, info.samplerate


def _column(folder: Path, headers: Sequence[Header], names: Sequence[str], seconds: bool) -> Column:
    samples, rates = np.array(headers, dtype=np.int64).T
    # The first file whose rate differs from that of file 0; 0 if there is none.
    if not seconds and (file := int(np.argmax(rates != rates[0]))):
        rule = f"given, because the sampling rates differ, {rates[0]} and {rates[file]} Hz"
        remedy = "Give the seconds from one frame to the next, as 0.01 (on the command line: --frame-shift 0.01)."
        raise value_error("frame_shift", rule, None, remedy, at=str(folder / names[file]))
    # Samples are divided by the rate of their own file, so the rates may differ.
    name, values, unit = ("duration", samples / rates, "seconds") if seconds else ("samples", samples, "counts")
    return Column(name=name, values=values, place=lambda row: str(folder / names[row]), unit=unit)
