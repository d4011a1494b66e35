"""Lets eSpeak NG speak sentences to a folder in the format of LJSpeech.

    ids and texts -> one process of `espeak.py` for each -> wavs/id.wav, and a line of metadata.csv

The package espeakng-loader has the library and the data of eSpeak NG.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tqdm import tqdm

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.synthesis import espeak
from lengthwise_recipes.synthesis.ljspeech import METADATA, WAVS, read_texts

VOICE = "en-us"  # one voice at one pitch and rate: only the texts vary
SECONDS_TO_SPEAK = 60  # the most real time for one sentence


def speak_sentences(texts: Mapping[str, str], folder: str | Path, *, progress: bool = False) -> None:
    """Speaks sentences to wavs/id.wav, each with its line in metadata.csv.

    A sentence that the folder has with the same id and text is not spoken again, so an interrupted call continues.

    Args:
        texts: The sentences by id; an id is a file name without suffix.
        folder: The folder, created if missing. Its sentences of other ids stay, at the end of metadata.csv.
        progress: Show a bar on standard error.

    Raises:
        ValueError: eSpeak NG is not installed, or does not speak.
    """
    library, data = engine()
    folder = Path(folder)
    (folder / WAVS).mkdir(parents=True, exist_ok=True)
    spoken = {name: text for name, text in _read_spoken(folder).items() if texts.get(name, text) == text}
    _write_metadata(folder, spoken)
    for name, text in tqdm(texts.items(), unit="sentence", disable=None if progress else True):
        if name not in spoken:
            files.write(folder / WAVS / f"{name}.wav", speak(text, library=library, data=data))
            files.append(folder / METADATA, _line(name, text))
    _write_metadata(folder, {**texts, **spoken})


def speak(text: str, *, library: str, data: str) -> bytes:
    """Returns the wav of a sentence, the same every time; see `engine` for the paths of `library` and `data`.

    Raises:
        ValueError: eSpeak NG does not speak.
    """
    command = [sys.executable, "-I", espeak.__file__, library, data, VOICE]
    try:
        process = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=SECONDS_TO_SPEAK, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode(errors="replace").splitlines() or [f"It says nothing: {error}"]
        raise value_error("text", "speakable by eSpeak NG", text, said[-1]) from error
    return process.stdout


def engine() -> tuple[str, str]:
    """Returns the paths of the library of eSpeak NG and of its data.

    Raises:
        ValueError: espeakng-loader is not installed.
    """
    if importlib.util.find_spec("espeakng_loader") is None:
        remedy = "Install it, pip install espeakng-loader, or give a folder of recordings."
        raise value_error("espeakng-loader", "installed to speak sentences", None, remedy)
    import espeakng_loader

    return str(espeakng_loader.get_library_path()), str(espeakng_loader.get_data_path())


def _read_spoken(folder: Path) -> dict[str, str]:
    """Reads the texts that are already spoken, by id."""
    if not (folder / METADATA).exists():
        return {}
    texts = read_texts(folder / METADATA, Skipped(strict=False))
    return {name: text for name, text in texts.items() if (folder / WAVS / f"{name}.wav").exists()}


def _write_metadata(folder: Path, texts: Mapping[str, str]) -> None:
    files.write(folder / METADATA, "".join(_line(*row) for row in texts.items()))


def _line(name: str, text: str) -> str:
    return f"{name}|{text}\n"
