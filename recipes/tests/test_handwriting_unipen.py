"""UNIPEN files written by hand: points, levels, delineations and includes; and bad ones, named."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.data import read_corpus
from lengthwise_recipes.handwriting.unipen import parse_unipen, read_unipen

INK = """.VERSION 1.0
.COMMENT pen strokes
.COORD T X Y
.PEN_DOWN
 0 1 2
 1 3 4
.PEN_UP
 2 9 9
.PEN_DOWN
 3 5 6
.DT 10
 4 7 8
 5 9 10
.PEN_UP
.PEN_DOWN
 6 0 0
.PEN_UP
"""
SEGMENTS = """.HIERARCHY PAGE WORD CHARACTER
.SEGMENT CHARACTER 0 OK "a"
.SEGMENT WORD 0-2 ? "a \\"b\\""
.SEGMENT WORD 2:1-3 "c"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "page.dat"
    path.write_text(INK + SEGMENTS)
    return path


def plain(segments):
    return [([stroke.tolist() for stroke in strokes], text) for strokes, text in segments]


def test_the_outermost_labelled_level_is_read_stroke_by_stroke(file):
    assert plain(parse_unipen(file)) == [
        ([[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]]], 'a "b"'),
        ([[[7, 8], [9, 10]], [[0, 0]]], "c"),
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("3", [[[0, 0]]]),
        ("2:1", [[[7, 8]]]),
        ("2:0-2:1", [[[5, 6], [7, 8]]]),
        ("0:1-2:0", [[[3, 4]], [[5, 6]]]),
        ("0:1-1", [[[3, 4]]]),
        ("1:9-2:0", [[[5, 6]]]),
        ("0,3", [[[1, 2], [3, 4]], [[0, 0]]]),
        ("0,2-3", [[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]], [[0, 0]]]),
        ("0-0:0,2:2-3", [[[1, 2]], [[9, 10]], [[0, 0]]]),
    ],
)
def test_delineations(file, where, expected):
    file.write_text(f'{INK}.SEGMENT WORD {where} ? "x"\n')
    assert plain(parse_unipen(file)) == [(expected, "x")]


@pytest.mark.parametrize("place", ["include/writer/ink.dat", "writer/ink.dat"])
def test_ink_that_is_included_is_found_upwards(tmp_path, place):
    ink = tmp_path / place
    ink.parent.mkdir(parents=True)
    ink.write_text(INK)
    page = tmp_path / "data" / "1a" / "page.dat"
    page.parent.mkdir(parents=True)
    page.write_text('.INCLUDE writer/ink.dat\n.SEGMENT WORD 3 ? "x"\n')
    assert plain(parse_unipen(page)) == [([[[0, 0]]], "x")]
    if place.startswith("include"):
        assert read_unipen(tmp_path)[1:] == (["x"], [])  # the ink alone is no bad file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (INK, "of segments with labels, but is 'without labels'"),
        (INK + '.SEGMENT WORD 0 ? ""\n', "of segments with labels, but is 'without labels'"),
        (INK + '.SEGMENT WORD 0-4 ? "x"\n', "of segments within its components, 0 to 3, but is '0-4' at line 18"),
        (INK + '.SEGMENT WORD 2-1 ? "x"\n', "of segments within its components, 0 to 3, but is '2-1'"),
        (INK + '.SEGMENT WORD OK "x"\n', "of segments within its components, 0 to 3, but is 'OK'"),
        ('.SEGMENT WORD 0 ? "x"\n', "of segments within its components, of which it has none, but is '0'"),
        (INK + '.SEGMENT WORD 0:7 ? "x"\n', "of segments within the points of its components, but is '0:7'"),
        (INK + '.SEGMENT WORD 2:0-2:3 ? "x"\n', "within the points of its components, but is '2:0-2:3'"),
        (INK + '.SEGMENT WORD 2:2-2:1 ? "x"\n', "of segments with at least one point, but is '2:2-2:1'"),
        (INK + '.SEGMENT WORD 1 ? "x"\n', "of segments with at least one point, but is '1'"),
        (INK + '.SEGMENT WORD 0, 2 ? "x"\n', 'with .SEGMENT of a level, a delineation, a quality and a "label", but'),
        ('.PEN_DOWN\n1 two\n.SEGMENT WORD 0 ? "x"\n', "of strokes of plain numbers, but is '1 two'"),
        ('.PEN_DOWN\n1\n.SEGMENT WORD 0 ? "x"\n', "of strokes of plain numbers, but is '1'"),
        ('.PEN_DOWN\n1 1e15\n.SEGMENT WORD 0 ? "x"\n', "of finite points below 1e+15 in size, but is '1 1e15'"),
        (".COORD X P\n", "with .COORD of X and Y, but is 'X P'"),
        (".INCLUDE gone.dat\n", "with .INCLUDE of files that exist and do not include this file, but is 'gone.dat'"),
        (".INCLUDE bad.dat\n", "with .INCLUDE of files that exist and do not include this file, but is 'bad.dat'"),
    ],
)
def test_a_bad_file_is_named_and_skipped_or_refused(file, text, complaint):
    bad = file.with_name("bad.dat")
    bad.write_text(text)
    samples, texts, skipped = read_unipen(file.parent)
    assert texts == ['a "b"', "c"]
    assert len(samples) == 2
    assert len(skipped) == 1
    assert complaint in skipped[0]
    assert "bad.dat" in skipped[0]
    with pytest.raises(ValueError, match="`data` must be"):
        read_unipen(file.parent, strict=True)


def test_nothing_to_read_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`data` must be of at least one good UNIPEN file"):
        read_unipen(tmp_path)
    with pytest.raises(ValueError, match=r"The first of 1 bad files: .*No such file"):
        read_unipen(tmp_path / "gone.dat")


def test_a_corpus_of_unipen_is_read_from_a_file_and_from_a_folder(tmp_path):
    for number in range(4):
        words = "".join(f'.SEGMENT WORD 0-2 ? "{letter}{number}"\n' for letter in "abcde")
        (tmp_path / f"{number}.dat").write_text(INK + words)
    corpus = read_corpus(tmp_path, count=18)
    assert (len(corpus.train), len(corpus.validation)) == (17, 1)
    assert corpus.alphabet == "0123abcde"
    assert corpus.name == f"UNIPEN segments of {tmp_path.parent.name}/{tmp_path.name}"
    alone = read_corpus(tmp_path / "0.dat", validation_share=0.2)
    assert (len(alone.train), len(alone.validation)) == (4, 1)
    assert np.isfinite(np.concatenate(alone.train.strokes)).all()


@pytest.mark.parametrize(
    ("encoding", "word", "read"),
    [("utf-8", "mąka Å", "mąka Å"), ("latin-1", "Åse", "Åse"), ("cp1252", "wait…", "wait")],
)
def test_labels_are_read_as_utf_8_or_else_latin_1_and_no_letter_ends_a_line(tmp_path, encoding, word, read):
    path = tmp_path / "page.dat"
    path.write_bytes((INK + f'.SEGMENT WORD 0 ? "{word}"\r\n.SEGMENT WORD 2 ? "b"\r\n').encode(encoding))
    assert [text for _, text in parse_unipen(path)] == [read, "b"]
