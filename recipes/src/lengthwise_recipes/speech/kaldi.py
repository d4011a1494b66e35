"""The text files of Kaldi: wav.scp, text, utt2spk and segments of a data folder, and lexicons.

Nothing is executed: a wav.scp with commands raises an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes.skipped import Skipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """One utterance of a folder: a wav, or its seconds from `start_seconds` to `stop_seconds`."""

    name: str
    speaker: str
    words: tuple[str, ...]
    path: Path
    start_seconds: float = 0.0
    stop_seconds: float | None = None


Segment = tuple[str, float, float | None]  # recording, and the seconds of its start and its end


def read_pieces(folder: Path, skipped: Skipped) -> list[Piece]:
    """Reads the utterances of a Kaldi data folder, sorted by name.

    The files have a line for each entry, in UTF-8:

    - wav.scp, `recording path`: a path in the folder, else relative to the working directory.
    - text, `utterance word word ...`.
    - segments, `utterance recording start end`: in seconds; an end of -1 is that of the recording. Without this file
      every recording is an utterance.
    - utt2spk, `utterance speaker`. Without this file the speaker has the name of the utterance.

    Args:
        folder: A folder with at least wav.scp and text.
        skipped: Collects the complaints about utterances without words or with a bad segment, and about words
            without sound.

    Raises:
        ValueError: A file is not UTF-8 or has an entry twice, or wav.scp has a command, which ends in |.
    """
    wavs = {name: _wav_path(folder, name, entry) for name, entry in read_table(folder / "wav.scp").items()}
    texts = read_table(folder / "text")
    speakers = _optional(folder / "utt2spk")
    lines = _optional(folder / "segments")
    segments = _segments(lines, skipped) if lines else {name: (name, 0.0, None) for name in wavs}
    pieces = []
    for name, (recording, start, stop) in sorted(segments.items()):
        words = tuple(texts.get(name, "").split())
        if _is_usable(name, words, recording in wavs, skipped):
            speaker, path = speakers.get(name, name), wavs[recording]
            pieces.append(
                Piece(name=name, speaker=speaker, words=words, path=path, start_seconds=start, stop_seconds=stop)
            )
    skipped.extend(_soundless(name) for name in sorted(texts.keys() - (lines or segments).keys()))
    return pieces


def read_table(path: Path) -> dict[str, str]:
    """Returns the rest of each line, by its first word.

    Raises:
        ValueError: The file is missing, is not UTF-8, or has two lines of one name.
    """
    table: dict[str, str] = {}
    for number, line in enumerate(_lines(path, path.name, "Write one line for each entry."), start=1):
        name, _, entry = line.strip().partition(" ")
        if name in table:
            remedy = "Remove one of the two."
            raise value_error(path.name, "of one line for each name", name, remedy, at=f"line {number} of {path}")
        if name:
            table[name] = entry.strip()
    return table


def read_lexicon(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Reads a lexicon.txt: a word and its phonemes on every line, separated by blanks or tabs, in UTF-8.

    If a word has several lines, the first counts. In lexiconp.txt the probability after each word is skipped.

    Raises:
        ValueError: The file cannot be read or is not UTF-8, or a word has no phonemes.

    References:
        Doetsch et al. 2017, section 5: states of phonemes in context.
    """
    path = Path(path)
    units: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(_lines(path, "lexicon", "Name a lexicon.txt."), start=1):
        word, *phonemes = line.split() or [""]
        if path.name.startswith("lexiconp"):
            phonemes = phonemes[1:]
        if word and not phonemes:
            remedy = "Write them after the word, such as: two T UW."
            raise value_error("lexicon", "of phonemes for every word", word, remedy, at=f"line {number} of {path}")
        if word:
            units.setdefault(word, tuple(phonemes))
    if not units:
        raise value_error("lexicon", "of at least one word", str(path), "Write a word and its phonemes on every line.")
    return units


def _lines(path: Path, name: str, remedy: str) -> list[str]:
    try:
        files.check_regular(path)
        return path.read_text(encoding="utf-8-sig").replace("\t", " ").split("\n")
    except UnicodeDecodeError as error:
        shown, place = error.object[error.start : error.end], f"byte {error.start} of {path}"
        raise value_error(name, "UTF-8", shown, "Convert the file.", at=place) from error
    except OSError as error:
        raise value_error(name, "a file that can be read", str(path), remedy) from error


def _optional(path: Path) -> dict[str, str]:
    return read_table(path) if path.exists() else {}


def _wav_path(folder: Path, name: str, entry: str) -> Path:
    if entry.endswith("|"):
        remedy = "Commands are not run: write the output of this one to a wav file."
        raise value_error("wav.scp", "a path in every line", entry, remedy, at=name)
    inside = folder / entry
    return inside if inside.exists() else Path(entry)


def _segments(lines: dict[str, str], skipped: Skipped) -> dict[str, Segment]:
    segments: dict[str, Segment] = {}
    for name, text in lines.items():
        try:
            segments[name] = _segment(name, text)
        except ValueError as error:
            skipped.add(error)
    return segments


def _segment(name: str, text: str) -> Segment:
    """Parses `recording start end`.

    >>> _segment("u1", "r1 0.5 2")
    ('r1', 0.5, 2.0)
    """
    rule, remedy = "a recording, a start and an end in seconds", "Correct the line, such as: u1 r1 0.5 2.25."
    fields = text.split()
    try:
        recording, start, stop = fields[0], float(fields[1]), float(fields[2])
    except (IndexError, ValueError) as error:
        raise value_error("segments", rule, text, remedy, at=name) from error
    ends = stop == -1 or stop > start
    if len(fields) != 3 or not (math.isfinite(start) and math.isfinite(stop) and start >= 0 and ends):
        raise value_error("segments", rule, text, remedy, at=name)
    return recording, start, None if stop == -1 else stop


def _is_usable(name: str, words: tuple[str, ...], has_wav: bool, skipped: Skipped) -> bool:
    if not words:
        skipped.add(value_error("text", "the words of every utterance", "missing", "Add its line.", at=name))
    elif not has_wav:
        skipped.add(_soundless(name))
    return bool(words) and has_wav


def _soundless(name: str) -> ValueError:
    return value_error("wav.scp", "a wav for every utterance", "missing", "Add it, or remove the text.", at=name)
