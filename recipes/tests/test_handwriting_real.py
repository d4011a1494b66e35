"""Real pen strokes, where the shared data are at hand: LENGTHWISE_DATA or ../shared/data."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.characters import read_characters
from lengthwise_recipes.handwriting.data import words_of_characters

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
PEN = DATA / "omniglot_strokes" / "omniglot_small1_small2.npz"

pytestmark = pytest.mark.skipif(not PEN.exists(), reason=f"no pen strokes at {PEN}; set LENGTHWISE_DATA")


def test_every_class_is_drawn_once_by_every_drawer():
    characters = read_characters(PEN)
    assert len(characters.strokes) == 4840
    assert len(characters.names) == 242
    assert len(set(zip(characters.classes.tolist(), characters.drawers.tolist(), strict=True))) == 242 * 20
    heights = [np.concatenate(character)[:, 1].max() for character in characters.strokes]
    assert max(heights) <= 1.0 + 1e-9


def test_words_are_long_tailed():
    corpus = words_of_characters(PEN, count=400)
    lengths = corpus.train.lengths
    assert (len(corpus.train), len(corpus.validation)) == (380, 20)
    assert corpus.split.startswith("2 of 20 drawers held out")
    assert lengths.max() > 3 * np.median(lengths)
    assert lengths.max() <= 1500
    assert {len(text) for text in corpus.train.texts} >= {1, 2, 3, 4, 5, 6, 7, 8}
