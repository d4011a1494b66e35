"""InkML files, characters joined to words, and the parting of train from validation."""

import os

import numpy as np
import pytest

pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.characters import join_characters, of_scripts, read_characters, symbol
from lengthwise_recipes.handwriting.inkml import parse_inkml, read_inkml

BAD = {
    "not-xml": ("<ink><trace>0 0", "an XML file"),
    "no-trace": ('<ink><annotation type="truth">a</annotation></ink>', "ink with at least one trace"),
    "empty-trace": ('<ink><annotation type="truth">a</annotation><trace> </trace></ink>', "at least one trace"),
    "no-truth": (
        '<ink><annotation type="writer">me</annotation><trace>0 0, 1 1</trace></ink>',
        "annotated with its truth",
    ),
    "blank-truth": (
        '<ink><annotation type="truth"> </annotation><trace>0 0, 1 1</trace></ink>',
        "annotated with its truth",
    ),
    "short-point": (
        '<ink><annotation type="truth">a</annotation><trace>0 0, 1</trace></ink>',
        "of traces 'x y, x y, ...'",
    ),
    "differences": ("<ink><annotation type=\"truth\">a</annotation><trace>0 0, '1'1</trace></ink>", "in plain numbers"),
    "not-finite": ('<ink><annotation type="truth">a</annotation><trace>0 0, nan 1</trace></ink>', "of finite points"),
    "too-far": ('<ink><annotation type="truth">a</annotation><trace>0 0, 0 1e308</trace></ink>', "below 1e+15 in size"),
    "commas": ('<ink><annotation type="truth">a</annotation><trace>,,</trace></ink>', "each with a point"),
    "comma-and-ink": (
        '<ink><annotation type="truth">a</annotation><trace>0 0, 1 1</trace><trace>, </trace></ink>',
        "each with a point",
    ),
    "pen-up-alone": (
        '<ink><annotation type="truth">a</annotation><trace type="penUp">0 0, 1 1</trace></ink>',
        "ink with at least one trace",
    ),
    "unknown-encoding": ('<?xml version="1.0" encoding="foo"?><ink/>', "an XML file, but is 'unknown encoding: foo'"),
    "wide-encoding": ('<?xml version="1.0" encoding="gb2312"?><ink/>', "an XML file"),
}


def test_inkml_gives_traces_and_the_truth_nearest_the_top(tmp_path, good_ink):
    path = tmp_path / "good.inkml"
    path.write_text(good_ink)
    ((strokes, text),) = parse_inkml(path)
    assert text == "to be"
    assert [stroke.tolist() for stroke in strokes] == [[[0, 0], [0, 4], [3, 4]], [[5, 0], [5, 2]]]


def test_inkml_channels_and_annotation_xml(tmp_path):
    path = tmp_path / "channels.inkml"
    path.write_text(
        '<ink><traceFormat><channel name="T"/><channel name="X"/><channel name="Y"/></traceFormat>'
        '<annotationXML type="transcription"><line>so <b>be</b> it</line></annotationXML>'
        "<trace>9 1 2, 10 3 4</trace></ink>"
    )
    ((strokes, text),) = parse_inkml(path)
    assert text == "so be it"
    assert strokes[0].tolist() == [[1, 2], [3, 4]]


def test_a_hovering_pen_leaves_no_ink(tmp_path):
    path = tmp_path / "hover.inkml"
    path.write_text(
        '<ink><annotation type="truth">a</annotation><trace type="penDown">0 0, 1 1</trace>'
        '<trace type="penUp">1 1, 5 5</trace><trace type="indeterminate">5 5, 6 7</trace></ink>'
    )
    assert [stroke.tolist() for stroke in parse_inkml(path)[0][0]] == [[[0, 0], [1, 1]], [[5, 5], [6, 7]]]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_inkml_file_is_named(tmp_path, name):
    content, rule = BAD[name]
    path = tmp_path / f"{name}.inkml"
    path.write_text(content)
    with pytest.raises(ValueError, match="`data` must be") as caught:
        parse_inkml(path)
    assert rule in str(caught.value)
    assert path.name in str(caught.value)


def test_bad_inkml_files_are_skipped_or_refused(tmp_path, good_ink):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.inkml").write_text(good_ink)
    (tmp_path / "b.inkml").write_text(good_ink)
    (tmp_path / "c.inkml").write_text(BAD["no-truth"][0])
    (tmp_path / "readme.txt").write_text("not ink")
    samples, texts, skipped = read_inkml(tmp_path)
    assert texts == ["to be", "to be"]
    # Height 4, so 14 points to 4 units: paths of 7 and 2 give 1 + round(24.5) and 1 + 7 points.
    assert [len(sample) for sample in samples] == [25 + 8, 25 + 8]
    assert len(skipped) == 1
    assert "c.inkml" in skipped[0]
    assert len(read_inkml(tmp_path, count=1)[0]) == 1
    with pytest.raises(ValueError, match=r"c\.inkml"):
        read_inkml(tmp_path, strict=True)


def a_folder(path):
    path.mkdir()


def a_pipe(path):
    os.mkfifo(path)


def a_dangling_link(path):
    path.symlink_to("nowhere.inkml")


@pytest.mark.parametrize("make", [*BAD, a_folder, a_pipe, a_dangling_link])
def test_one_odd_entry_does_not_end_the_reading(tmp_path, good_ink, make):
    (tmp_path / "a.inkml").write_text(good_ink)
    (tmp_path / "z.inkml").write_text(good_ink)
    odd = tmp_path / "odd.inkml"
    if callable(make):
        make(odd)
    else:
        odd.write_text(BAD[make][0])
    _, texts, skipped = read_inkml(tmp_path)
    assert texts == ["to be", "to be"]
    assert len(skipped) == 1
    assert str(odd) in skipped[0]
    assert "\n" not in skipped[0]
    with pytest.raises(ValueError, match=r"^`data` must be .*odd\.inkml\. Fix the file or leave it out\.$"):
        read_inkml(tmp_path, strict=True)


@pytest.mark.parametrize("count", [0, -5])
def test_a_count_of_no_files_is_refused(tmp_path, good_ink, count):
    (tmp_path / "a.inkml").write_text(good_ink)
    with pytest.raises(ValueError, match=f"`count` must be at least 1, but is {count}"):
        read_inkml(tmp_path, count=count)


def test_a_folder_without_good_ink_is_refused_with_an_example(tmp_path):
    with pytest.raises(ValueError, match=r"at least one good \.inkml file"):
        read_inkml(tmp_path)
    (tmp_path / "a.inkml").write_text(BAD["no-trace"][0])
    with pytest.raises(ValueError, match=r"first of 1 bad files: .*a\.inkml"):
        read_inkml(tmp_path)


@pytest.fixture
def pen_file(tmp_path, pen_arrays):
    np.savez(tmp_path / "pen.npz", **pen_arrays())
    return tmp_path / "pen.npz"


def test_characters_stand_in_a_box_of_height_one_y_upwards(pen_file):
    characters = read_characters(pen_file)
    assert len(characters.strokes) == 12
    line, dash = characters.strokes[0]  # down 4, then 3 right and 1 down, then 5 right: 5 tall
    np.testing.assert_allclose(line, [[0.0, 1.0], [0.0, 0.2]])
    np.testing.assert_allclose(dash, [[0.6, 0.0], [1.6, 0.0]])
    assert characters.scripts.tolist() == [0, 0, 1]


def test_words_are_of_one_drawer_and_one_script(pen_file):
    characters = read_characters(pen_file)
    samples, texts = join_characters(characters, np.array([0, 1]), count=200, seed=5)
    greek, latin = {symbol(0), symbol(1)}, {symbol(2)}
    assert all(set(text) <= greek or set(text) <= latin for text in texts)
    assert {len(text) for text in texts} >= {1, 2, 4, 8}
    assert max(map(len, texts)) <= 16
    assert all(sample.shape[1] == 3 and np.isfinite(sample).all() for sample in samples)
    # Two strokes a character, so two pen-ups.
    assert [int(sample[:, 2].sum()) for sample in samples] == [2 * len(text) for text in texts]


def test_scripts_are_kept_by_name(pen_file):
    characters = read_characters(pen_file)
    greek = of_scripts(characters, ["Greek"])
    assert sorted(set(greek.classes.tolist())) == [0, 1]
    assert len(greek.strokes) == len(greek.drawers) == 8
    assert len(of_scripts(characters, []).strokes) == 12
    with pytest.raises(ValueError, match="`scripts` must be some of Greek, Latin, but is 'Elvish'"):
        of_scripts(characters, ["Latin", "Elvish"])


def test_words_repeat_from_their_seed(pen_file):
    characters = read_characters(pen_file)
    first = join_characters(characters, np.array([0, 1]), count=5, seed=5)
    again = join_characters(characters, np.array([0, 1]), count=9, seed=5)
    assert first[1] == again[1][:5]
    assert join_characters(characters, np.array([0, 1]), count=9, seed=5, lane=1)[1] != again[1]
    assert all(np.array_equal(a, b) for a, b in zip(first[0], again[0], strict=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drawer": None}, "Add drawer"),
        ({"offsets": np.array([0, 4, 4, 48])}, "`offsets` must be strictly rising"),
        ({"offsets": np.array([0, 48])}, "must be 1, 1 and 48 long"),
        ({"label": np.full(12, 3, np.int16)}, "`label` must be from 0 to 2, a line of vocab, but is 3"),
        ({"label": np.full(12, -1, np.int16)}, "`label` must be from 0 to 2, a line of vocab, but is -1"),
        # Twelve characters of 4 points, as the arrays stand; the offsets fall, which an unsigned difference hides.
        ({"offsets": np.array([0, 8, 4, 48], np.uint64)}, "`offsets` must be strictly rising"),
        ({"offsets": np.array([0.0, 48.0])}, r"`offsets` must be whole .*, but is 'float64 \[2\]'"),
        ({"dxy": np.full((48, 2), np.nan)}, r"`dxy` must be finite .*, but is \[nan, nan\] at point 0 of"),
        ({"dxy": np.full((48, 2), 1e300)}, r"`dxy` must be finite and below 1e\+15 in size"),
        ({"dxy": np.ones((48, 3))}, r"`dxy` must be numbers \[points, 2\], but is 'float64 \[48, 3\]'"),
        ({"dxy": np.ones(96)}, r"`dxy` must be numbers \[points, 2\], but is 'float64 \[96\]'"),
        ({"dxy": np.ones((48, 2), complex)}, r"`dxy` must be numbers \[points, 2\], but is 'complex128"),
        ({"pen_up": np.full(48, 0.5)}, r"`pen_up` must be whole numbers \[points\], but is 'float64 \[48\]'"),
        ({"label": np.full(12, "a")}, r"`label` must be whole numbers \[characters\], but is '<U1 \[12\]'"),
        ({"label": np.arange(12) % 3 + 0.5}, r"`label` must be whole numbers .*, but is 'float64 \[12\]'"),
        ({"label": np.array(1)}, r"`label` must be whole numbers .*, but is 'int64 \[\]'"),
        ({"label": np.full(12, None)}, "`label` must be whole numbers .*, but is 'unreadable'"),
        ({"drawer": np.zeros((12, 1), np.int16)}, r"`drawer` must be whole .*, but is 'int16 \[12, 1\]'"),
        ({"vocab": np.array([65, 10, 0xFF], np.uint8)}, r"`vocab` must be UTF-8, .*, but is b'\\xff' at byte 2 of"),
        ({"vocab": np.array(["a", "b", "c"])}, r"`vocab` must be bytes .* uint8, but is '<U1 \[3\]'"),
    ],
)
def test_bad_pen_files_are_named(tmp_path, pen_arrays, change, message):
    arrays = {name: array for name, array in (pen_arrays() | change).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_characters(tmp_path / "bad.npz")


def test_whole_numbers_of_any_size_are_read(tmp_path, pen_arrays, pen_file):
    arrays = pen_arrays()
    change = {
        "dxy": arrays["dxy"].astype(np.float32),
        "pen_up": arrays["pen_up"].astype(bool),
        "offsets": arrays["offsets"].astype(np.uint64),
        "label": arrays["label"].astype(np.uint8),
    }
    np.savez(tmp_path / "other.npz", **(arrays | change))
    one, other = read_characters(pen_file), read_characters(tmp_path / "other.npz")
    assert other.classes.tolist() == one.classes.tolist() == [0, 1, 2] * 4
    for first, second in zip(one.strokes, other.strokes, strict=True):
        np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))


def test_a_damaged_member_is_named(tmp_path, pen_file):
    stored = bytearray(pen_file.read_bytes())
    # A bit of the first array's numbers, past its header of 128 bytes: the archive's own checksum tells.
    stored[30 + len("dxy.npy") + 128 + 40] ^= 1
    (tmp_path / "damaged.npz").write_bytes(stored)
    with pytest.raises(ValueError, match=r"a readable \.npz file.*damaged\.npz"):
        read_characters(tmp_path / "damaged.npz")


def test_a_broken_archive_is_named(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match=r"a readable \.npz file"):
        read_characters(tmp_path / "broken.npz")
