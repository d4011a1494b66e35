"""Reads recordings from a folder, or lets eSpeak NG speak sentences into a folder."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from lengthwise.checks import check_flag, check_whole, value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
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
) -> Corpus:
    """Reads a folder in the format of LJSpeech, or speaks sentences to such a folder and reads it.

    Args:
        path: A folder with metadata.csv and wavs/. Or sentences to speak: a file with lines `id|text`, or None for
            generated sentences.
        folder: The folder for spoken sentences, which are reused the next time; only with sentences to speak.
        count: The most recordings, from the first; by default all of a folder or a file, and 300 generated sentences.
        max_words: Words of the longest generated sentence.
        seed: Seed of the generated sentences.
        strict: Raise for the first unusable line or recording.
        progress: Show a bar on standard error while eSpeak NG speaks.

    Raises:
        ValueError: Nothing can be used, eSpeak NG is needed and not installed, or see `strict`.
    """
    if count is not None:
        check_whole("count", count, minimum=1, remedy="Give the number of recordings to read.")
    if path is not None and Path(path).is_dir():
        if folder is not None:
            remedy = "Leave it out: recordings are read where they are."
            raise value_error("folder", "left out with recordings", str(folder), remedy)
        return read_folder(path, count=count, strict=strict)
    if folder is None:
        raise value_error("folder", "given where sentences are spoken", None, "Give a folder to speak them to.")
    skipped = Skipped(strict=check_flag("strict", strict))
    if path is None:
        texts = own_sentences(OWN_COUNT if count is None else count, max_words=max_words, seed=seed)
    else:
        texts = dict(islice(read_texts(Path(path), skipped).items(), count))
    if not texts:
        raise value_error("path", "a folder of recordings or a file with lines `id|text`", str(path), "Give one.")
    speak_sentences(texts, folder, progress=progress)
    corpus = read_folder(folder, count=len(texts), strict=strict)
    name = "sentences of the project's own" if path is None else f"sentences of {Path(path).name}"
    return replace(corpus, name=f"{name}, spoken by eSpeak NG", skipped=(*skipped.sentences, *corpus.skipped))
