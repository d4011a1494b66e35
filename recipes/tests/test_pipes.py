"""A named pipe where the recipes read data is left out or refused at once: its reader would wait without end."""

import os
import re

import numpy as np
import pytest
import soundfile

from lengthwise_recipes.handwriting.characters import read_archive
from lengthwise_recipes.handwriting.unipen import parse_unipen
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.digits import read_recordings
from lengthwise_recipes.speech.folders import read_folder
from lengthwise_recipes.speech.kaldi import read_lexicon, read_table
from lengthwise_recipes.synthesis.ljspeech import read_texts


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", ["a.wav", "a.txt"])
def test_a_pipe_among_recordings_is_left_out(tmp_path, name):
    for stem in ("a", "b"):
        soundfile.write(tmp_path / f"{stem}.wav", np.zeros(800), 8_000)
        (tmp_path / f"{stem}.txt").write_text("one")
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    corpus = read_folder(tmp_path)
    assert [utterance.name for utterance in corpus.utterances] == ["b"]
    assert len(corpus.skipped) == 1


READERS = {
    "handwriting": lambda path: read_archive(path, max_classes=9),
    "UNIPEN": parse_unipen,
    "digits": read_recordings,
    "lexicon": read_lexicon,
    "Kaldi": read_table,
    "texts": lambda path: read_texts(path, Skipped(strict=True)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_pipe_in_the_place_of_data_is_refused(pipe, read):
    with pytest.raises((ValueError, OSError), match=re.escape(str(pipe))):
        read(pipe)
