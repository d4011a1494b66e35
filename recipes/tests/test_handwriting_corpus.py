"""Train and validation share no ink, and the corpus says what it is."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("HersheyFonts")

import lengthwise as lw
from lengthwise_recipes.handwriting.characters import symbol
from lengthwise_recipes.handwriting.data import (
    ink_samples,
    read_corpus,
    synthetic_lines,
    validation_numbers,
    words_of_characters,
)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=60), st.data())
def test_validation_takes_every_length(lengths, data):
    held = data.draw(st.integers(1, len(lengths) - 1))
    numbers = validation_numbers(np.array(lengths), held)
    assert len(set(numbers.tolist())) == held
    assert numbers.tolist() == sorted(numbers.tolist())
    ranks = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")[numbers]
    # One of every len/held neighbours in length: no gap of ranks past two such shares.
    assert np.diff(np.concatenate([[0], np.sort(ranks), [len(lengths) - 1]])).max() <= 2 * len(lengths) / held


def test_written_lines_are_parted_without_overlap():
    corpus = synthetic_lines(count=60, validation_share=0.1)
    assert (len(corpus.train), len(corpus.validation)) == (54, 6)
    inks = [sample.tobytes() for sample in corpus.train.strokes + corpus.validation.strokes]
    assert len(set(inks)) == 60
    assert set("".join(corpus.train.texts + corpus.validation.texts)) == set(corpus.alphabet)


def test_what_is_tested_on_is_in_no_other_part(tmp_path, good_ink):
    corpus = synthetic_lines(count=60, validation_share=0.1, test_share=0.2)
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (42, 6, 12)
    inks = [sample.tobytes() for part in (corpus.train, corpus.validation, corpus.test) for sample in part.strokes]
    assert len(set(inks)) == 60
    assert corpus.validation.texts == synthetic_lines(count=60, validation_share=0.1).validation.texts
    assert corpus.as_dict()["test_samples"] == 12
    for number in range(4):
        (tmp_path / f"{number}.inkml").write_text(good_ink)
    inkml = read_corpus(tmp_path, validation_share=0.25, test_share=0.25)
    assert (len(inkml.train), len(inkml.validation), len(inkml.test)) == (2, 1, 1)


def test_drawers_of_test_words_draw_in_no_other_part(tmp_path, pen_arrays):
    arrays = pen_arrays(drawers=20)
    # Drawers 16 and 17 draw the dash at twice the height, 18 and 19 at four times: each pair is told by its ink.
    for drawers, height in (((16, 17), 4), ((18, 19), 8)):
        theirs = np.repeat(np.isin(arrays["drawer"], drawers), 4)
        arrays["dxy"][theirs & (np.arange(len(theirs)) % 4 == 2), 1] = height
    np.savez(tmp_path / "pen.npz", **arrays)
    corpus = words_of_characters(tmp_path / "pen.npz", count=200, validation_share=0.1, test_share=0.2)
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (140, 20, 40)
    assert corpus.split.startswith("2 of 20 drawers held out for validation and as many to test on")
    drops = [_mean_pen_up_drop(part.strokes) for part in (corpus.train, corpus.test, corpus.validation)]
    assert drops[1] > 1.3 * drops[0]
    assert drops[2] > 1.3 * drops[1]


def test_drawers_of_validation_words_never_train(tmp_path, pen_arrays):
    arrays = pen_arrays(drawers=20)
    # The last two of twenty drawers draw at twice the height of the dash, so that their ink can be told apart.
    last = np.repeat(arrays["drawer"] >= 18, 4)
    arrays["dxy"][last & (np.arange(len(last)) % 4 == 2), 1] = 4
    np.savez(tmp_path / "pen.npz", **arrays)
    corpus = words_of_characters(tmp_path / "pen.npz", count=200)
    assert (len(corpus.train), len(corpus.validation)) == (190, 10)
    assert corpus.split.startswith("2 of 20 drawers held out")
    assert set(corpus.alphabet) <= {symbol(0), symbol(1), symbol(2)}
    steps = [_mean_pen_up_drop(part.strokes) for part in (corpus.train, corpus.validation)]
    assert steps[1] > 2 * steps[0]


def test_ink_sampless_name_what_they_skip(tmp_path, good_ink):
    for number in range(4):
        (tmp_path / f"{number}.inkml").write_text(good_ink)
    (tmp_path / "9.inkml").write_text("<ink><trace>0 0, 1 1</trace></ink>")
    corpus = ink_samples(tmp_path, validation_share=0.25)
    assert (len(corpus.train), len(corpus.validation), len(corpus.skipped)) == (3, 1, 1)
    assert corpus.advice == ("No option reads a bad file: fix it as its message says.",)
    some = [ink_samples(tmp_path, count=3, seed=seed) for seed in range(20)]
    assert {len(corpus.skipped) for corpus in some} == {0, 1}  # files are read in a random order
    assert some[0].as_dict() == ink_samples(tmp_path, count=3, seed=0).as_dict()
    assert corpus.alphabet == " beot"
    with pytest.raises(ValueError, match=r"9\.inkml"):
        read_corpus(tmp_path, strict=True)


def test_a_corpus_describes_itself():
    corpus = synthetic_lines(count=20)
    described = json.loads(json.dumps(corpus.as_dict()))
    assert described["train_samples"] == 19
    assert described["train_points"] == sum(len(sample) for sample in corpus.train.strokes)
    assert described["train_fingerprint"] == lw.fingerprint(corpus.train.lengths)
    quantiles = described["train_points_quantiles_0_5_25_50_75_95_100"]
    assert quantiles[0] == corpus.train.lengths.min()
    assert quantiles[-1] == corpus.train.lengths.max()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: read_corpus(folder / "pen.csv"), "`data` must be an .npz file, a folder of InkML"),
        (lambda _: read_corpus(None, count=1), "`count` must be at least 2, but is 1"),
        (lambda _: synthetic_lines(count=4, validation_share=0.0), "`validation_share` must be above 0"),
        (lambda _: synthetic_lines(count=4, validation_share=0.9), "at most 0.5, but is 0.9"),
        (lambda _: synthetic_lines(count=4, test_share=-0.1), "`test_share` must be .* but is -0.1"),
        (lambda _: synthetic_lines(count=2, test_share=0.1), "`count` must be at least 3, but is 2"),
        (lambda _: read_corpus(None, scripts=["Latin"]), "`scripts` must be left out without an .npz"),
        (lambda folder: read_corpus(folder), "at least one good .inkml file"),
    ],
)
def test_bad_choices_are_named(tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)


@pytest.mark.parametrize("count", [-5, 0, 1])
@pytest.mark.parametrize("kind", ["lines", "inkml", "npz"])
def test_a_count_below_two_is_refused_for_every_kind_of_data(tmp_path, good_ink, pen_arrays, kind, count):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.inkml").write_text(good_ink)
    np.savez(tmp_path / "pen.npz", **pen_arrays())
    path = {"lines": None, "inkml": tmp_path, "npz": tmp_path / "pen.npz"}[kind]
    with pytest.raises(ValueError, match=f"`count` must be at least 2, but is {count}"):
        read_corpus(path, count=count)


def test_one_drawer_is_too_few(tmp_path, pen_arrays):
    np.savez(tmp_path / "pen.npz", **pen_arrays(drawers=1))
    with pytest.raises(ValueError, match="drawn by at least 2 drawers"):
        words_of_characters(tmp_path / "pen.npz", count=10)
    np.savez(tmp_path / "pen.npz", **pen_arrays(drawers=2))
    with pytest.raises(ValueError, match="drawn by at least 3 drawers"):
        words_of_characters(tmp_path / "pen.npz", count=10, test_share=0.1)


def _mean_pen_up_drop(strokes):
    drops = [-sample[1:][sample[:-1, 2] == 1.0, 1].min() for sample in strokes]
    return float(np.mean(drops))
