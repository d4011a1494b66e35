"""Reads folders in the format of LJSpeech: wavs/id.wav and metadata.csv.

A line of metadata.csv is `id|text` or `id|text|normalised text`.

Bad data is reported before any computation. It is left out, or raises an error with `strict`.

References:
    Ito and Johnson 2017, The LJ Speech Dataset.
"""

from __future__ import annotations

from pathlib import Path

from lengthwise import files
from lengthwise.checks import check_flag, check_whole, value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.folders import usable_utterances
from lengthwise_recipes.speech.kaldi import Piece

METADATA = "metadata.csv"
WAVS = "wavs"


def read_folder(folder: str | Path, *, count: int | None = None, strict: bool = False) -> Corpus:
    """Reads the texts and the headers of the wavs; the sounds are read when they are needed.

    Args:
        folder: Folder with metadata.csv and wavs/. If a line has a normalised text, that text is used.
        count: The most usable recordings, from the first; all by default.
        strict: Raise for the first unusable recording: a line without text, an id twice, a text without wav, a wav
            without text, or a wav that is unreadable, empty, of several channels or of a rate unlike most.

    Raises:
        ValueError: There is no metadata.csv, nothing can be used, or see `strict`.
    """
    folder, skipped = Path(folder), Skipped(strict=check_flag("strict", strict))
    if count is not None:
        check_whole("count", count, minimum=1, remedy="Give the number of recordings to read.")
    texts = read_texts(folder / METADATA, skipped)
    _report_wavs_without_text(folder / WAVS, texts, skipped)
    paths = {name: folder / WAVS / f"{name}.wav" for name in texts}
    pieces = [Piece(name=name, speaker=name, words=tuple(texts[name].split()), path=paths[name]) for name in texts]
    rate, recordings = usable_utterances(pieces, skipped)
    if not recordings:
        reason = (*skipped.sentences, "It has no line.")[0]
        raise value_error("folder", "a folder with speech that can be used", str(folder), f"First complaint: {reason}")
    recordings, name = recordings[:count], f"speech of {folder.name}"
    return Corpus(name=name, rate=rate, utterances=recordings, skipped=skipped.sentences)


def read_texts(path: Path, skipped: Skipped) -> dict[str, str]:
    """Reads the lines `id|text` of a file, by id; an id is a file name without suffix.

    Raises:
        ValueError: The file cannot be read as UTF-8, or `skipped` is strict and a line is bad.
    """
    try:
        files.check_regular(path)
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        remedy = "Write it: one line `id|text` for each recording."
        raise value_error("metadata", "a file of UTF-8 that can be read", str(path), remedy) from error
    texts: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                name, text = _row(line, number)
                if name in texts:
                    rule, remedy = "of one line for each id", "Remove the other."
                    raise value_error("metadata", rule, name, remedy, at=f"line {number}")
                texts[name] = text
            except ValueError as error:
                skipped.add(error)
    return texts


def _row(line: str, number: int) -> tuple[str, str]:
    """Returns id and text of a line; of two texts the last one, unless it is empty."""
    name, *texts = (part.strip() for part in line.split("|"))
    text = " ".join(next(filter(None, reversed(texts)), "").split())
    if not name or not text or Path(name).name != name:
        rule = "`id|text` or `id|text|normalised text`, with an id that names a file"
        raise value_error("metadata", rule, line, "Correct the line.", at=f"line {number}")
    return name, text


def _report_wavs_without_text(wavs: Path, texts: dict[str, str], skipped: Skipped) -> None:
    for path in sorted(wavs.glob("*.wav")):
        if path.stem not in texts:
            remedy = f"Write its text to {METADATA}."
            skipped.add(value_error("text", "there for every wav", "missing", remedy, at=path.name))
