"""The numbers of UNIPEN components: pen up and pen down alike, but none without points, and anew in every set."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.unipen import parse_unipen

DOWN = [".PEN_DOWN\n1 1\n", ".PEN_DOWN\n2 2\n", ".PEN_DOWN\n3 3\n"]
UP = ".PEN_UP\n9 9\n"
EMPTY = ".PEN_UP\n"


def read(tmp_path, text):
    """The first coordinates of the points of every sample, stroke by stroke, and the label."""
    path = tmp_path / "page.dat"
    path.write_text(text)
    return [([stroke[:, 0].tolist() for stroke in strokes], label) for strokes, label in parse_unipen(path)]


@pytest.mark.parametrize(
    ("ink", "where"),
    [
        (DOWN[0] + EMPTY + DOWN[1] + EMPTY + DOWN[2] + EMPTY, "1-2"),
        (DOWN[0] + UP + DOWN[1] + UP + DOWN[2] + UP, "2-4"),
        (DOWN[0] + UP + DOWN[1] + EMPTY + DOWN[2], "2-3"),
        (DOWN[0] + ".PEN_DOWN\n" + EMPTY + DOWN[1] + DOWN[2], "1-2"),
        (EMPTY + UP + DOWN[0] + UP + DOWN[1] + UP + DOWN[2], "3-5"),
        (DOWN[0] + EMPTY + ".DT 120\n" + DOWN[1] + UP + ".DT 30\n" + DOWN[2], "1-3"),
        (DOWN[0] + ".COMMENT 7 7\n8 8\n" + DOWN[1] + ".START_BOX\n" + DOWN[2], "1-2"),
        (DOWN[0] + ".COMMENT\n.PEN_UP\n \n" + DOWN[1] + DOWN[2], "1-2"),
    ],
)
def test_components_with_points_are_numbered_pen_up_ones_too(tmp_path, ink, where):
    assert read(tmp_path, f'{ink}.SEGMENT WORD {where} ? "x"\n') == [([[2.0], [3.0]], "x")]


def test_every_level_is_numbered_alike_and_the_outermost_labelled_one_is_read(tmp_path):
    ink = DOWN[0] + UP + DOWN[1] + UP + DOWN[2]
    segments = {
        "TEXT": '.SEGMENT TEXT 0-4 ? "ab c"\n',
        "WORD": '.SEGMENT WORD 0-2 ? "ab"\n.SEGMENT WORD 4 OK "c"\n',
        "CHARACTER": '.SEGMENT CHARACTER 0 ? "a"\n.SEGMENT CHARACTER 2 ? "b"\n.SEGMENT CHARACTER 4 ? "c"\n',
    }
    expected = {
        "TEXT": [([[1.0], [2.0], [3.0]], "ab c")],
        "WORD": [([[1.0], [2.0]], "ab"), ([[3.0]], "c")],
        "CHARACTER": [([[1.0]], "a"), ([[2.0]], "b"), ([[3.0]], "c")],
    }
    while segments:
        head = f".HIERARCHY {' '.join(expected)}\n"
        assert read(tmp_path, head + ink + "".join(reversed(segments.values()))) == expected[next(iter(segments))]
        unlabelled = next(iter(segments))
        del segments[unlabelled]
    unlabelled = ".HIERARCHY TEXT WORD\n.SEGMENT TEXT 0-4\n"
    assert read(tmp_path, unlabelled + ink + '.SEGMENT WORD 4 ? "c"\n') == [([[3.0]], "c")]


def test_numbers_count_through_what_a_file_includes(tmp_path):
    (tmp_path / "more.ink").write_text(UP + DOWN[1])
    text = DOWN[0] + ".INCLUDE more.ink\n" + DOWN[2] + '.SEGMENT WORD 0-2 ? "x"\n.SEGMENT WORD 3 ? "y"\n'
    assert read(tmp_path, text) == [([[1.0], [2.0]], "x"), ([[3.0]], "y")]


def test_every_set_counts_from_0(tmp_path):
    first = ".START_SET one\n" + DOWN[0] + UP + '.SEGMENT WORD 0 ? "x"\n'
    second = ".START_SET two\n" + '.SEGMENT WORD 1 ? "y"\n' + DOWN[1] + DOWN[2]
    assert read(tmp_path, first + second) == [([[1.0]], "x"), ([[3.0]], "y")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A segment before its ink, as in single digits one after the other; its quality may be left out as well.
        (f'.SEGMENT D ? "1"\n{DOWN[0]}{UP}.SEGMENT D ? ? "2"\n{DOWN[1]}{DOWN[2]}', [([[1]], "1"), ([[2], [3]], "2")]),
        (f'{DOWN[0]}{UP}{DOWN[1]}.SEGMENT D ? "all"\n', [([[1], [2]], "all")]),
        (
            f'.HIERARCHY T W\n.SEGMENT T ? "a"\n.SEGMENT W ? "b"\n{DOWN[0]}.SEGMENT W ? "c"\n{DOWN[1]}'
            f'.SEGMENT T ? "d"\n{DOWN[2]}',
            [([[1], [2]], "a"), ([[3]], "d")],
        ),
        (
            f'.HIERARCHY T W\n.SEGMENT T\n.SEGMENT W ? "b"\n{DOWN[0]}.SEGMENT T ? ? ""\n{DOWN[1]}'
            f'.SEGMENT W ? "c"\n{DOWN[2]}',
            [([[1]], "b"), ([[3]], "c")],
        ),
        (f'.SEGMENT D "1"\n{DOWN[0]}.START_SET b\n{DOWN[1]}.SEGMENT D 0 ? "2"\n', [([[1]], "1"), ([[2]], "2")]),
    ],
)
def test_a_segment_without_delineation_reaches_to_the_next_of_its_level(tmp_path, text, expected):
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('.Pen_Down\n1 1\n.pen_up\n9 9\n.PEN_DOWN\n2 2\n.segment Word 2 ok "Ab"\n', [([[2]], "Ab")]),
        (
            '.hierarchy text word\n.Pen_Down\n1 1\n.Segment WORD 0 ? "a"\n.SEGMENT Text 0 ? "b"\n',
            [([[1]], "b")],
        ),
        ('.coord y x\n.PEN_DOWN\n5 1\n.SEGMENT W 0 ? "a"\n', [([[1]], "a")]),
        ('.PEN_DOWN 1 1\n2 2\n.SEGMENT W 0:1-0:1 ? "a"\n', [([[2]], "a")]),
        ('.COORD X Y\n.PEN_DOWN 1 1 2 2\n3 3\n.SEGMENT W 0:0-0:1 ? "a"\n', [([[1, 2]], "a")]),
        ('.COORD X Y T\n.PEN_DOWN\n1 1\n0 2 2\n1\n.SEGMENT W 0 ? "a"\n', [([[1, 2]], "a")]),
        ('.PEN_DOWN\n1 1\n.SEGMENT W 0 ? "a\nb"\n', [([[1]], "a b")]),
        ('.PEN_DOWN\n1 1\n.SEGMENT W 0 ?\n\t"a\\\\ \\"b"\n', [([[1]], 'a\\ "b')]),
        ('.PEN_DOWN\n1 1\n.DT 20\n2 2\n.PEN_UP\n.SEGMENT W 0:1 ? "a"\n', [([[2]], "a")]),
    ],
)
def test_keywords_levels_points_and_labels_stand_as_the_format_allows(tmp_path, text, expected):
    assert read(tmp_path, text) == expected
