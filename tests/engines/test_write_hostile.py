"""Files that a stranger has: long lines, views, odd names, what other programs leave; and runs that break off."""

import json
import os

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'lengthwise[io]'")
import pyarrow.parquet as parquet  # noqa: E402

import lengthwise as lw  # noqa: E402
from lengthwise.engines.rows import Rule  # noqa: E402


@pytest.fixture
def out(tmp_path):
    return tmp_path / "lengths.npy"


def one_file(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def write_arrow(path, column):
    schema = pa.schema([("n", column.type)])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(pa.table({"n": column}))
    return path


def test_a_row_may_be_longer_than_a_block_of_arrow(tmp_path, out):
    long = "word " * 500_000  # 2.5 MB; Arrow reads 1 MiB at once
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"n": text}) + "\n" for text in ("a b", long, "c")))
    (tmp_path / "rows.csv").write_text(f"n,m\na b,1\n{long},2\nc,3\n")
    for name in ("rows.jsonl", "rows.csv"):
        found = lw.write_lengths(tmp_path / name, out, column="n", count="words")
        assert found.lengths.tolist() == [2, 500_000, 1]


def test_a_text_of_several_lines_is_one_row_at_the_border_of_a_block_too(tmp_path, out):
    text = '"two words\nand three more"\n'
    count = 2**24 // len(text) + 10_000  # more than one block, whose border is within some text
    (tmp_path / "rows.csv").write_text("n\n" + text * count)
    found = lw.write_lengths(tmp_path / "rows.csv", out, column="n", count="words")
    assert (len(found), set(found.lengths.tolist())) == (count, {5})


def test_a_number_that_becomes_a_fraction_late_in_a_text_file_is_a_bad_row(tmp_path, out):
    (tmp_path / "rows.jsonl").write_text('{"n": 3}\n' * 200_000 + '{"n": 3.5}\n')
    found = lw.write_lengths(tmp_path / "rows.jsonl", out, column="n", bad="one")
    assert [(each.row, each.reason[:34]) for each in found.bad_rows] == [
        (200_000, "n must be a whole number, but is 3")
    ]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_nulls_among_texts_of_every_type_are_bad_rows(tmp_path, out, kind):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    path = write_arrow(tmp_path / "rows.arrow", pa.array(["a b", None, "", "c"], getattr(pa, kind)()))
    found = lw.write_lengths(path, out, column="n", count="words", bad="one")
    assert found.lengths.tolist() == [2, 1, 1, 1]
    assert [each.row for each in found.bad_rows] == [1, 2]


def test_bytes_are_no_texts(tmp_path, out):
    path = write_arrow(tmp_path / "rows.arrow", pa.array([b"ab", None], getattr(pa, "binary_view", pa.binary)()))
    with pytest.raises(ValueError, match=r"^`n` must be a column of numbers, lists or texts, but is 'large_binary'"):
        lw.write_lengths(path, out, column="n")


def test_an_arrow_stream_is_refused_with_the_way_to_read_it(tmp_path, out):
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, pa.schema([("n", pa.int64())])) as writer:
        writer.write_table(pa.table({"n": [3, 4]}))
    message = rf"^`source` must be of files that can be read together, but is '{path}'\. If it is an Arrow stream, as `"
    with pytest.raises(ValueError, match=message + r"datasets` saves them, .*datasets\.load_from_disk\(folder\)"):
        lw.write_lengths(path, out, column="n")


@pytest.fixture(params=["disk", "memory"])
def tree(request, tmp_path):
    """A folder with what other programs leave there, on the disk and in a store of objects; how to name it."""
    folder = tmp_path / "tokens"
    for number, name in enumerate(["a.parquet", "b[1].parquet", "dir.parquet/c.parquet", "e d/f.parquet"], 1):
        one_file(folder / name, n=[number])
    one_file(folder / "_temporary" / "0" / "a.parquet", n=[99])
    one_file(folder / "x[1]" / "g.parquet", n=[5])
    (folder / "_SUCCESS").write_text("")
    (folder / ".a.parquet").write_text("")
    if request.param == "disk":
        yield str(folder)
        return
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(f"{folder}/", "/bucket/tokens", recursive=True)
    try:
        yield "memory://bucket/tokens"
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("/*", [1, 2]),
        ("/*.parquet", [1, 2]),
        ("/**/*.parquet", [1, 2, 3, 4, 5]),
        ("/**", [1, 2, 3, 4, 5]),
        ("/_temporary/*/*.parquet", [99]),
        ("/_*/0/*.parquet", [99]),
        ("/_temporary", [99]),
        ("/b[1].parquet", [2]),
        ("/x[1]", [5]),
        ("/e d", [4]),
    ],
)
def test_a_store_of_objects_and_a_disk_give_the_same_files(tree, out, name, lengths):
    assert lw.write_lengths(tree + name, out, column="n").lengths.tolist() == lengths


@pytest.mark.parametrize(
    ("url", "error", "told"),
    [
        ("nothing://a/b", ValueError, "`source` must be at a URL that fsspec knows, but is 'nothing://a/b'. Check it"),
        ("oci://a/b", ModuleNotFoundError, "`source` must be at a URL whose file system is installed, but is 'oci://a"),
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_in_one_sentence(out, url, error, told):
    pytest.importorskip("fsspec")
    with pytest.raises(error) as caught:
        lw.write_lengths(url, out, column="n")
    assert str(caught.value).startswith(told)


def test_a_run_that_breaks_off_leaves_no_old_lengths_under_a_new_name(tmp_path, out):
    """The lengths of other data, of as many rows and the same type, beside what is said of the new ones."""
    path = one_file(tmp_path / "data" / "0.parquet", n=[3] * 3_000)
    one_file(tmp_path / "data" / "1.parquet", n=[3, 4])
    lw.write_lengths(tmp_path / "data", out, column="n")
    one_file(path, n=[7] * 3_000)
    one_file(tmp_path / "data" / "1.parquet", n=pa.array([3, None]))
    with pytest.raises(ValueError, match=r"^`source` must be rows that have a length each"):
        lw.write_lengths(tmp_path / "data", out, column="n")
    part = out.with_name(out.name + ".parts") / "00000000.part"
    whole = part.read_bytes()
    part.write_bytes(whole[3_000:])  # as if the disk failed while the file of lengths is written
    with pytest.raises(ValueError, match=r"^`source` must be a whole part, but is "):
        lw.write_lengths(tmp_path / "data", out, column="n", bad="one")
    part.write_bytes(whole)
    found = lw.write_lengths(tmp_path / "data", out, column="n", bad="one")
    assert found.lengths.tolist() == [7] * 3_000 + [3, 1]


def test_lengths_without_their_json_are_not_taken_for_finished(tmp_path, out):
    path = one_file(tmp_path / "data" / "0.parquet", n=[3, 4])
    lw.write_lengths(path, out, column="n")
    os.unlink(f"{out}.json")
    np.save(out, np.array([9, 9], np.uint8))
    assert lw.write_lengths(path, out, column="n").lengths.tolist() == [3, 4]


def test_more_lengths_than_a_sequence_may_have_are_refused_before_they_are_read(tmp_path, out):
    path = one_file(tmp_path / "0.parquet", n=[3, 4])
    with pytest.raises(ValueError, match=r"^`lengths` must be at most 8 for each sequence, but is 9\."):
        lw.write_lengths(path, out, column=",".join("n" * 9))
    assert lw.write_lengths(path, out, column=",".join("n" * 8)).lengths.shape == (2, 8)


def test_a_folder_in_the_place_of_the_file_is_refused_before_anything_is_read(tmp_path, out):
    out.mkdir()
    path = one_file(tmp_path / "data" / "0.parquet", n=[3, 4])
    with pytest.raises(ValueError, match=r"^`out` must be a file, and no folder, but is "):
        lw.write_lengths(path, out, column="n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "lengths.npy"]


@pytest.mark.parametrize("removed", [["source.json"], ["source.json", "00000001.part"]])
@pytest.mark.parametrize("resume", [True, False])
def test_a_run_that_is_killed_while_it_removes_its_parts_is_in_nobodys_way(tmp_path, out, removed, resume):
    for number, rows in enumerate([[3, 4], [5, None]]):
        one_file(tmp_path / "data" / f"{number}.parquet", n=pa.array(rows, pa.int64()))
    with pytest.raises(ValueError, match=r"^`source` must be rows that have a length each"):
        lw.write_lengths(tmp_path / "data", out, column="n")
    parts = out.with_name(out.name + ".parts")
    for name in removed:
        (parts / name).unlink()
    for number in range(2):  # of which the parts that are left say nothing
        one_file(tmp_path / "data" / f"{number}.parquet", n=[8, 9])
    assert lw.write_lengths(tmp_path / "data", out, column="n", resume=resume).lengths.tolist() == [8, 9, 8, 9]
    assert not parts.exists()


def test_parts_that_a_finished_run_left_are_removed_and_files_of_others_are_not(tmp_path, out, monkeypatch):
    source = one_file(tmp_path / "rows.parquet", n=[3, 4])
    parts = out.with_name(out.name + ".parts")
    with monkeypatch.context() as patch:
        patch.setattr("lengthwise.engines.write.remove_parts", print)  # as if it were killed before
        lw.write_lengths(source, out, column="n")
    assert (parts / "source.json").is_file()
    (parts / "hello.txt").write_text("mine")
    before = out.stat().st_mtime_ns
    assert lw.write_lengths(source, out, column="n").lengths.tolist() == [3, 4]
    assert out.stat().st_mtime_ns == before
    assert [each.name for each in parts.iterdir()] == ["hello.txt"]


def test_a_pipe_is_refused_before_anything_is_read(tmp_path, out):
    os.mkfifo(out)
    with pytest.raises(OSError, match=r"^`path` must be a file that can be written, .* a pipe or a device"):
        lw.write_lengths(tmp_path / "none.parquet", out, column="n")


@pytest.mark.parametrize("first", [[], ["short.jsonl"]])
@pytest.mark.parametrize("blank", ["", "\n \n"])
def test_json_lines_whose_first_row_is_longer_than_a_block_are_refused(tmp_path, out, first, blank):
    """Each of their rows would be null."""
    (tmp_path / "short.jsonl").write_text('{"t": "a"}\n{"t": "b"}\n')
    rows = [json.dumps({"t": "x" * (17 * 2**20)}) + "\n", json.dumps({"t": "ab"}) + "\n"]
    (tmp_path / "rows.jsonl").write_text(blank + "".join(rows))
    sources = [tmp_path / name for name in [*first, "rows.jsonl"]]
    with pytest.raises(ValueError, match=r"^`source` must be of rows of less than 16777216 bytes, .*rows\.jsonl"):
        lw.write_lengths(sources, out, column="t", count="characters", bad="one")
    (tmp_path / "rows.jsonl").write_text("".join(reversed(rows)))
    found = lw.write_lengths(tmp_path / "rows.jsonl", out, column="t", count="characters", resume=False)
    assert found.lengths.tolist() == [2, 17 * 2**20]


@pytest.mark.parametrize("first", [[], ["short.jsonl"]])
def test_one_json_line_without_an_end_is_refused(tmp_path, out, first):
    """It would be null."""
    (tmp_path / "short.jsonl").write_text('{"t": "a"}\n{"t": "b"}')  # the last of several may lack it
    (tmp_path / "one.jsonl").write_text('{"t": "abc"}')
    sources = [tmp_path / name for name in [*first, "one.jsonl"]]
    with pytest.raises(
        ValueError, match=r"^`source` must be of lines that end with a newline, but is .*one\.jsonl.*Add"
    ):
        lw.write_lengths(sources, out, column="t", count="characters", bad="one")
    (tmp_path / "one.jsonl").write_text('{"t": "abc"}\n')
    found = lw.write_lengths(sources, out, column="t", count="characters", resume=False)
    assert found.lengths.tolist() == [*([1, 1] if first else []), 3]


@pytest.mark.parametrize("name", ["pipe.jsonl", "pipe.csv", "link.jsonl"])
def test_a_pipe_and_a_link_to_nothing_are_refused_at_once(tmp_path, out, name):
    if name.startswith("pipe"):
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to(tmp_path / "nothing")
    with pytest.raises((ValueError, FileNotFoundError), match=r"^`source` must be "):
        lw.write_lengths([tmp_path / name], out, column="n")


def test_a_file_of_others_among_the_parts_stops_a_new_run_before_a_part_is_lost(tmp_path, out):
    for number, rows in enumerate([[3, 4], [5, None]]):
        one_file(tmp_path / "data" / f"{number}.parquet", n=pa.array(rows, pa.int64()))
    with pytest.raises(ValueError, match=r"^`source` must be rows that have a length each"):
        lw.write_lengths(tmp_path / "data", out, column="n")
    parts = out.with_name(out.name + ".parts")
    (parts / "hello.txt").write_text("mine")
    before = sorted(path.name for path in parts.iterdir())
    with pytest.raises(ValueError, match=r"of parts and of nothing else, but is .* Move hello\.txt away\."):
        lw.write_lengths(tmp_path / "data", out, column="n", resume=False)
    assert sorted(path.name for path in parts.iterdir()) == before


@pytest.mark.parametrize("blank", ["", "\n", " \n\n"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_later_file_of_text_may_be_empty(tmp_path, out, suffix, blank):
    for number, text in enumerate(['{"n": 3}\n' if suffix == "jsonl" else "n\n3\n", blank, '{"n": 4}\n']):
        (tmp_path / f"{number}.{suffix}").write_text("n\n4\n" if suffix == "csv" and number == 2 else text)
    found = lw.write_lengths(tmp_path / f"*.{suffix}", out, column="n")
    assert found.lengths.tolist() == [3, 4]
    assert [rows for _, rows in found.pieces] == [1, 0, 1]


def test_tensors_of_one_dimension_are_counted_as_lists():
    rows = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 5), np.int64))
    squares = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2), np.int64))
    table = pa.table({"rows": rows, "squares": squares})
    assert [each.lengths.tolist() for each in Rule(names=("rows",)).blocks(table)] == [[5, 5, 5]]
    with pytest.raises(ValueError, match=r"`squares` must be "):
        list(Rule(names=("squares",)).blocks(table))


@pytest.mark.skipif(not hasattr(pa, "bool8"), reason="needs a newer PyArrow")
def test_truth_values_are_no_lengths():
    for kind in (pa.bool_(), pa.bool8()):
        array = pa.array([1, 0, 1], pa.int8()).cast(pa.bool_()) if kind == pa.bool_() else None
        array = pa.ExtensionArray.from_storage(kind, pa.array([1, 0, 1], pa.int8())) if array is None else array
        with pytest.raises(ValueError, match=r"^`n` must be a column of numbers, lists or texts, but is "):
            list(Rule(names=("n",)).blocks(pa.table({"n": array})))


def test_a_path_that_is_none_is_refused():
    with pytest.raises(TypeError, match=r"^`path` must be the path of a \.npy file, but is 5\. "):
        lw.LengthsFile(5)
