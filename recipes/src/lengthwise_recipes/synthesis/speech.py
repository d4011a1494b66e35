"""Where recordings come from: a folder of them, or sentences that eSpeak NG speaks to one."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from lengthwise.checks import check_flag, check_whole, value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.synthesis.corpus import SpeechCorpus
from lengthwise_recipes.synthesis.ljspeech import read_folder, read_texts
from lengthwise_recipes.synthesis.sentences import own_sentences
from lengthwise_recipes.synthesis.voice import speak_sentences

OWN_COUNT = 300


def read_speech(
    path: str | Path | None,
    *,
    folder: str | Path | None = None,
    count: int | None = None,
    max_words: int = 25,
    seed: int = 0,
    strict: bool = False,
    progress: bool = False,
) -> SpeechCorpus:
    """Reads a folder as LJSpeech's, or speaks sentences to one and reads that.

    Args:
        path: A folder with metadata.csv and wavs/ in it; or a file with lines `id|text`, which are spoken; or None for
            sentences of the project's own, which are spoken too.
        folder: Where what is spoken is written, and found again the next time; given where something is spoken.
        count: Only the first so many; by default all of a folder or a file, and 300 sentences of our own.
        max_words: Words of the longest of the project's own sentences.
        seed: Of the project's own sentences.
        strict: Whether to raise for the first line or recording that cannot be used.
        progress: Show a bar on standard error while sentences are spoken.

    Raises:
        ValueError: Where nothing can be used, eSpeak NG is needed and not installed, or as `strict` says.
    """
    if count is not None:
        check_whole("count", count, minimum=1, remedy="Give how many recordings to read.")
    if path is not None and Path(path).is_dir():
        if folder is not None:
            remedy = "Leave it out: recordings are read where they are."
            raise value_error("folder", "given where sentences are spoken", str(folder), remedy)
        return read_folder(path, count=count, strict=strict)
    if folder is None:
        raise value_error("folder", "given where sentences are spoken", None, "Give a folder to speak them to.")
    skipped = Skipped(strict=check_flag("strict", strict))
    texts = (
        own_sentences(OWN_COUNT if count is None else count, max_words=max_words, seed=seed)
        if path is None
        else _texts(Path(path), count, skipped)
    )
    speak_sentences(texts, folder, progress=progress)
    corpus = read_folder(folder, count=len(texts), strict=strict)
    name = "sentences of the project's own" if path is None else f"sentences of {Path(path).name}"
    return replace(corpus, name=f"{name}, spoken by eSpeak NG", skipped=(*skipped.sentences, *corpus.skipped))


def _texts(path: Path, count: int | None, skipped: Skipped) -> dict[str, str]:
    """The first so many lines of a file that can be used, by id."""
    texts = dict(islice(read_texts(path, skipped).items(), count))
    if not texts:
        raise value_error("path", "a folder of recordings or a file with lines `id|text`", str(path), "Give one.")
    return texts
