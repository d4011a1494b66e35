"""Pronunciation lexicons of Kaldi: the phonemes of each word."""

from __future__ import annotations

from pathlib import Path

from lengthwise import files
from lengthwise.checks import value_error


def read_lexicon(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Reads a lexicon.txt: a word and its phonemes on every line, separated by blanks or tabs, in UTF-8.

    If a word has several lines, the first counts. In lexiconp.txt the probability after each word is skipped.

    Args:
        path: A lexicon.txt or lexiconp.txt.

    Raises:
        ValueError: The file cannot be read or is not UTF-8, or a word has no phonemes.

    References:
        Doetsch et al. 2017, section 5: states of phonemes in context.
    """
    path = Path(path)
    units: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(_lines(path), start=1):
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


def _lines(path: Path) -> list[str]:
    try:
        files.check_regular(path)
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        shown, place = error.object[error.start : error.end], f"byte {error.start} of {path}"
        raise value_error("lexicon", "UTF-8", shown, "Convert the file.", at=place) from error
    except OSError as error:
        raise value_error("lexicon", "a file that can be read", str(path), "Name a lexicon.txt.") from error
