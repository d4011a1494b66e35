"""Reads folders of speech: Kaldi data folders, and wav files with texts of the same name.

Bad data is reported before any computation. It is left out, or raises an error with `strict`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from lengthwise import files
from lengthwise.checks import check_flag, value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus, Utterance
from lengthwise_recipes.speech.kaldi import Piece, read_pieces
from lengthwise_recipes.speech.wav import Wav, read_header, read_samples

OVERSHOOT_SECONDS = 0.5  # a segment may end this much after its wav: it is cut at the end of the wav


def read_folder(folder: str | Path, *, strict: bool = False) -> Corpus:
    """Reads a Kaldi data folder if it has a wav.scp, else wav files and texts of the same name.

    Args:
        folder: See `kaldi.read_pieces` for the files of a Kaldi folder. Otherwise `a/b.txt` has the words of
            `a/b.wav`, and the folder `a` is the speaker.
        strict: Raise for the first unusable utterance: no words, no readable wav, several channels, a sampling rate
            unlike most, or a segment beyond the end.

    Raises:
        ValueError: Nothing can be used, wav.scp has commands, or see `strict`.
    """
    folder = Path(folder)
    skipped = Skipped(strict=check_flag("strict", strict))
    pieces = read_pieces(folder, skipped) if (folder / "wav.scp").exists() else list(_wavs_with_texts(folder, skipped))
    rate, utterances = usable_utterances(pieces, skipped)
    if not utterances:
        reasons = skipped.sentences
        remedy = f"The first of {len(reasons)} complaints: {reasons[0]}" if reasons else "Put wav files and texts in."
        raise value_error("folder", "a folder with speech that can be used", str(folder), remedy)
    return Corpus(name=f"speech of {folder.name}", rate=rate, utterances=utterances, skipped=skipped.sentences)


def usable_utterances(pieces: Sequence[Piece], skipped: Skipped) -> tuple[int, tuple[Utterance, ...]]:
    """Reads the headers of wavs; returns their most frequent rate and the utterances of that rate. Skips the others."""
    headers: dict[Path, Wav] = {}
    for path in dict.fromkeys(piece.path for piece in pieces):
        try:
            headers[path] = read_header(path)
        except ValueError as error:
            skipped.add(error)
    if not headers:
        return 0, ()
    rate = Counter(header.rate for header in headers.values()).most_common(1)[0][0]
    utterances = [_utterance(piece, headers[piece.path], rate, skipped) for piece in pieces if piece.path in headers]
    return rate, tuple(utterance for utterance in utterances if utterance)


def _wavs_with_texts(folder: Path, skipped: Skipped) -> Iterator[Piece]:
    wavs = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".wav")
    for path in wavs:
        name = path.relative_to(folder).with_suffix("").as_posix()
        try:
            files.check_regular(path.with_suffix(".txt"))
            words = tuple(path.with_suffix(".txt").read_text(encoding="utf-8-sig").split())
        except (OSError, UnicodeDecodeError):
            words = ()
        if words:
            yield Piece(name=name, speaker=path.parent.name, words=words, path=path)
        else:
            remedy = f"Write its words to {path.with_suffix('.txt').name} beside it, in UTF-8."
            skipped.add(value_error("text", "the words of every wav", "missing", remedy, at=name))


def _utterance(piece: Piece, header: Wav, rate: int, skipped: Skipped) -> Utterance | None:
    try:
        start, stop = _borders(piece, header, rate)
    except ValueError as error:
        skipped.add(error)
        return None
    return Utterance(
        name=piece.name,
        speaker=piece.speaker,
        words=piece.words,
        count=stop - start,
        load=functools.partial(read_samples, piece.path, start, stop),
    )


def _borders(piece: Piece, header: Wav, rate: int) -> tuple[int, int]:
    """Returns the first sample of an utterance and the one after its last."""
    if header.rate != rate:
        remedy = "Bring all to one rate."
        raise value_error("rate", f"{rate} samples a second, as most", header.rate, remedy, at=piece.name)
    start = round(piece.start_seconds * rate)
    stop = header.count if piece.stop_seconds is None else round(piece.stop_seconds * rate)
    if stop > header.count + OVERSHOOT_SECONDS * rate or start >= min(stop, header.count):
        rule = f"within the {header.count / rate:g} seconds of its wav"
        shown = [piece.start_seconds, piece.stop_seconds]
        raise value_error("segment", rule, shown, "Correct its start and end.", at=piece.name)
    return start, min(stop, header.count)
