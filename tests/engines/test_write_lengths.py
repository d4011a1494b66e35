"""The lengths of a large data set of files: the k-th is that of the k-th row, whole or not there."""

import os
import pickle
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as dataset
import pyarrow.parquet as parquet
import pytest

import lengthwise as lw
from table_files import write_table

# Rows of four files, in the order of the files' paths.
TOKENS = [[[1] * n for n in rows] for rows in ([3, 1, 4], [1, 5], [9, 2, 6, 5], [3])]
NAMES = ["a/part-0.parquet", "a/part-1.parquet", "b/part-0.parquet", "b/part-1.parquet"]
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


@pytest.fixture
def folder(tmp_path):
    for name, rows in reversed(list(zip(NAMES, TOKENS, strict=True))):
        audio = [{"frames": 10 * len(row), "channels": 2} for row in rows]
        write_table(tmp_path / "tokens" / name, tokens=rows, audio=audio, text=["é " * len(row) for row in rows])
    (tmp_path / "tokens" / "README.md").write_text("passed over")
    (tmp_path / "tokens" / "_SUCCESS").write_text("")
    return tmp_path / "tokens"


def names_beside(out):
    return sorted(path.name for path in out.parent.iterdir() if path.name not in ("tokens", "data"))


@pytest.mark.parametrize("batch_size", [1, 3, 4096])
def test_a_folder_is_read_in_the_order_of_its_paths(folder, out, batch_size):
    written = lw.write_lengths(folder, out, column="tokens", batch_size=batch_size)
    assert np.load(out).tolist() == written.lengths.tolist() == LENGTHS
    assert np.load(out).dtype == np.uint8
    assert (len(written), written.bad_rows, os.fspath(written)) == (10, [], str(out))
    assert names_beside(out) == ["lengths.npy"]
    assert lw.read_lengths(written).tolist() == LENGTHS
    assert pickle.loads(pickle.dumps(written)).lengths.tolist() == LENGTHS
    windows = lw.Windows(written, lw.Batching(cut=lw.FixedSize(2)), window=4, block=2)  # which map the file
    assert sorted(row for batch in lw.WindowEpoch(windows, 0).batches() for row in batch) == list(range(10))


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"column": "text", "count": "words"}, LENGTHS),
        ({"column": "text", "count": "characters"}, [2 * n for n in LENGTHS]),
        ({"column": "audio.frames"}, [10 * n for n in LENGTHS]),
        ({"column": "tokens, audio.frames"}, [[n, 10 * n] for n in LENGTHS]),
        ({"column": "text,tokens", "count": "words"}, [[n, n] for n in LENGTHS]),
        ({"length": lambda batch: [len(row) + 300 for row in batch["tokens"]]}, [n + 300 for n in LENGTHS]),
        ({"length": lambda batch: pa.compute.list_value_length(batch["tokens"])}, LENGTHS),
        ({"length": lambda batch: np.ones((batch.num_rows, 2))}, [[1, 1]] * 10),
    ],
)
def test_columns_and_functions(folder, out, options, lengths):
    written = lw.write_lengths(folder, out, batch_size=2, **options)
    assert written.lengths.tolist() == lengths
    assert written.lengths.dtype == np.min_scalar_type(np.max(lengths))


@pytest.mark.parametrize(
    ("source", "lengths"),
    [
        (lambda folder: [folder / name for name in NAMES], LENGTHS),
        (lambda folder: [folder / "b", folder / "a"], LENGTHS[5:] + LENGTHS[:5]),
        (lambda folder: f"{folder}/*/*-1.parquet", [1, 5, 3]),
        (lambda folder: dataset.dataset(str(folder / "a"), format="parquet"), LENGTHS[:5]),
        (lambda _: dataset.dataset([pa.table({"tokens": rows}) for rows in TOKENS[:2]]), LENGTHS[:5]),
        (lambda folder: dataset.dataset(str(folder / "a")).filter(dataset.field("audio", "frames") > 10), [3, 4, 5]),
    ],
    ids=["list", "folders", "pattern", "data set", "memory", "filtered"],
)
def test_sources_of_files(folder, out, source, lengths):
    assert lw.write_lengths(source(folder), out, column="tokens").lengths.tolist() == lengths


@pytest.fixture(params=["disk", "memory"])
def tree(request, tmp_path):
    """A folder with what other programs leave there, on the disk and in a store of objects; how to name it."""
    folder = tmp_path / "data"
    for number, name in enumerate(["B.parquet", "a.parquet", "a/z.parquet", "b[1].parquet", "dir.parquet/c.pq"], 1):
        write_table(folder / name, n=[number])
    write_table(folder / "e d" / "f.PARQUET", n=[6])
    write_table(folder / "x[1]" / "g.parquet", n=[7])
    for name in ("_temporary/0/a.parquet", ".git/a.parquet", ".a.parquet", "_a.parquet"):
        write_table(folder / name, n=[99])
    (folder / "_SUCCESS").write_text("")
    if request.param == "disk":
        yield str(folder)
        return
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(f"{folder}/", "/bucket/data", recursive=True)
    try:
        yield "memory://bucket/data"
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7]),  # "a.p" stands before "a/z"
        *[("/*.parquet", [1, 2, 4]), ("/*/*.p*", [3, 5, 7]), ("/**/*.parquet", [1, 2, 3, 4, 7])],
        *[("/_temporary/*/*.parquet", [99]), ("/_*/0/*.parquet", [99]), ("/_temporary", [99])],
        *[("/b[1].parquet", [4]), ("/x[1]", [7]), ("/e d", [6])],
    ],
)
def test_a_store_of_objects_and_a_disk_give_the_same_files(tree, out, name, lengths):
    assert lw.write_lengths(tree + name, out, column="n").lengths.tolist() == lengths


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz", ".ndjson.gz", ".arrow", ".feather", ".stream"])
def test_a_suffix_names_the_format_on_a_disk_and_in_a_store(tmp_path, out, suffix):
    path = write_table(tmp_path / "data" / f"rows{suffix}", n=[3, 1, 2])
    if suffix == ".stream":
        path = path.rename(path.with_suffix(".arrow"))
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(str(path), f"/one/{path.name}")
    for source in (path, f"memory://one/{path.name}"):
        assert lw.write_lengths(source, out, batch_size=2).lengths.tolist() == [3, 1, 2]
    store.rm("/one", recursive=True)


TURNS = [["hello", "and you"], ["fine"], [], ["one two three", "four", "five six"]]
CHATS = [[{"role": "user", "content": text} for text in texts] for texts in TURNS]


@pytest.mark.parametrize("source", ["parquet", "jsonl", "memory", "datasets"])
def test_all_turns_of_a_chat_are_counted_and_no_turns_without_count(tmp_path, out, source):
    if source == "memory":
        rows = dataset.dataset(pa.table({"chat": CHATS}))
    elif source == "datasets":
        rows = pytest.importorskip("datasets").Dataset.from_dict({"chat": CHATS})
    else:
        rows = write_table(tmp_path / f"chats.{source}", chat=CHATS)
    for column in ("chat", "chat.*.content"):
        written = lw.write_lengths(rows, out, column=column, count="words", bad="one", batch_size=3)
        assert written.lengths.tolist() == [3, 1, 1, 6]
        assert [row for row, _ in written.bad_rows] == [2]
    with pytest.raises(ValueError, match=r'must be a list of numbers.*column="chat\.\*\.content", count="words"'):
        lw.write_lengths(rows, out, column="chat", bad="one")


FIRST = (pa.array([7, 8]), pa.array([[1] * 7, [1] * 8]), pa.array(["a b", "c"]), pa.array([None, None], pa.null()))


@pytest.mark.parametrize("later", FIRST, ids=lambda array: str(array.type))
@pytest.mark.parametrize("first", FIRST, ids=lambda array: str(array.type))
def test_numbers_lists_and_texts_do_not_mix(tmp_path, out, first, later):
    write_table(tmp_path / "data" / "0.parquet", size=first, tokens=[[1], [2]])
    write_table(tmp_path / "data" / "1.parquet", size=later, tokens=[[1], [2]])
    options = {"count": "words"} if pa.string() in (first.type, later.type) else {}
    if first.type == later.type or pa.null() in (first.type, later.type):
        assert len(lw.write_lengths(tmp_path / "data", out, column="size,tokens", bad="one", **options)) == 4
        return
    with pytest.raises(ValueError, match=r"^`(size|count)` must be .*"):
        lw.write_lengths(tmp_path / "data", out, column="size", **options)


@pytest.mark.parametrize("types", [("int8", "int64"), ("int32", "float64")])
def test_a_later_file_may_have_another_type_of_numbers_and_not_lack_them(tmp_path, out, types):
    for number, (rows, kind) in enumerate(zip(([5, 6], [100, 3]), types, strict=True)):
        write_table(tmp_path / "data" / f"{number}.parquet", n=pa.array(rows, kind), other=[["a", "b"], [1, 2]][number])
    assert lw.write_lengths(tmp_path / "data", out, column="n").lengths.tolist() == [5, 6, 100, 3]
    write_table(tmp_path / "data" / "2.parquet", more=[1])
    with pytest.raises(ValueError, match=r"^`column` must be .*more, but is 'n' at .*2\.parquet"):
        lw.write_lengths(tmp_path / "data", out, column="n")


def test_durations_and_samples_become_frames_as_the_readers_make_them(tmp_path, out):
    path = write_table(tmp_path / "a.parquet", seconds=[0.145, 2.0, 0.001], num_samples=[48_000, 160, 81], n=[5, 6, 7])
    for options in (
        {"column": "seconds", "frame_shift": 0.01},
        {"column": "seconds,n", "frame_shift": 0.01},
        {"column": "num_samples", "frame_shift": 160},
        {"column": "num_samples,n", "frame_shift": 160},
    ):
        expected = lw.read_lengths(path, **options).tolist()
        assert lw.write_lengths(path, out, batch_size=1, **options).lengths.tolist() == expected


def test_what_is_seconds_does_not_change_from_file_to_file(tmp_path, out):
    write_table(tmp_path / "data" / "0.parquet", audio=[1.5, 2.5], tokens=[[3], [4]])
    write_table(tmp_path / "data" / "1.parquet", audio=[1, 2], tokens=[[3], [4]])
    with pytest.raises(ValueError, match="`frame_shift` must be given for durations only"):
        lw.write_lengths(tmp_path / "data", out, column="audio,tokens", frame_shift=0.01)
    written = lw.write_lengths(tmp_path / "data", out, column="audio", frame_shift=0.01)
    assert written.lengths.tolist() == [150, 250, 100, 200]
    write_table(tmp_path / "late" / "0.parquet", count=[1, 2], time=[1.5, 2.5])
    write_table(tmp_path / "late" / "1.parquet", count=[3.0, 4.0], time=[1.5, 2.5])
    with pytest.raises(ValueError, match=r"^`count` must be numbers, as in the rows before, but is 'seconds' at row 2"):
        lw.write_lengths(tmp_path / "late", out, column="count,time", frame_shift=0.01)


def test_what_a_function_raises_is_raised_and_the_old_file_stays(tmp_path, out):
    path = write_table(tmp_path / "a.parquet", n=[1, 2, 3])
    lw.write_lengths(path, out, column="n")

    with pytest.raises(KeyError, match="seven"):
        lw.write_lengths(path, out, length=lambda _: {}["seven"])
    assert np.load(out).tolist() == [1, 2, 3]
    assert names_beside(out) == ["a.parquet", "lengths.npy"]


def test_memory_is_bounded_by_a_batch_of_one_large_group_of_rows(tmp_path, out):
    rows, width = 20_000, 400
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(rows * width) % 977), width)
    table = pa.table({"tokens": lists.cast(pa.list_(pa.int64()))})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    whole = table.nbytes
    del table, lists
    before, peak = pa.total_allocated_bytes(), []

    def length(batch):
        peak.append(pa.total_allocated_bytes() - before)
        return [len(row) for row in batch["tokens"]]

    lw.write_lengths(tmp_path / "a.parquet", out, length=length, batch_size=100)
    assert np.load(out).tolist() == [width] * rows
    assert max(peak) < whole / 5


def test_rows_are_counted_on_a_terminal_alone(folder, out, capsys, monkeypatch):
    lw.write_lengths(folder, out, column="tokens")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lw.write_lengths(folder, out, column="tokens")
    assert "10.0 rows" in capsys.readouterr().err
    lw.write_lengths(folder, out, column="tokens", progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ("tokens", {"column": "token"}, "`column` must be one of tokens, "),
        ("tokens", {}, "`column` must be one of tokens, audio, text, but is None"),
        ("tokens", {"column": "text"}, "`text` must be a number, but is 'é é é '"),
        ("tokens", {"column": ",".join(["tokens"] * 9)}, "`lengths` must be at most 8 for each sequence, but is 9."),
        ("tokens", {"length": 5}, "`length` must be a function, but is 5."),
        ("tokens", {"length": len, "column": "tokens"}, "`column` must be left out if `length` is given, but is"),
        ("tokens", {"column": "tokens", "frame_shift": 0.01}, "`frame_shift` must be given for durations only, but is"),
        ("tokens", {"column": "tokens", "bad": "drop"}, "`bad` must be one of error, one, but is 'drop'."),
        ("tokens", {"column": "tokens", "max_bad": -1}, "`max_bad` must be at least 0, but is -1."),
        ("nothing", {"column": "a"}, "`source` must be a file or folder that exists, but is 'nothing'."),
        ("tokens/README.md", {"column": "a"}, "`source` must be a file or folder of a known format, but is "),
        ([], {"column": "a"}, "`source` must be a file or folder of a known format, but is '[]'."),
        ([3, 4], {"column": "a"}, "`source` must be a path, a list of paths, or a data set of pyarrow, datasets"),
        (pa.table({"n": [1]}), {"column": "n"}, "`source` must be a pyarrow.dataset.Dataset, but is 'Table'. Make one"),
        ("nothing://a/b", {"column": "a"}, "`source` must be at a URL that fsspec knows, but is 'nothing://a/b'."),
        ("oci://a/b", {"column": "a"}, "`source` must be at a URL whose file system is installed, but is 'oci://a"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(folder, out, monkeypatch, source, options, told):
    monkeypatch.chdir(folder.parent)
    with pytest.raises((ValueError, TypeError, FileNotFoundError, ModuleNotFoundError), match=f"^{re.escape(told)}"):
        lw.write_lengths(source, out, **options)
    assert names_beside(out) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lengths.txt", "`path` must be the path of a .npy file on a disk"),
        ("no/a.npy", "`path` must be in a folder that exists"),
        ("folder.npy", "`path` must be a file, not a folder"),
        ("pipe.npy", "`path` must be a file that can be written, but is .* pipe or a device"),
        (5, "`path` must be the path of a file, but is 5."),
    ],
)
def test_the_file_to_write_is_checked_before_anything_is_read(tmp_path, name, told):
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    path = name if name == 5 else tmp_path / name
    with pytest.raises((ValueError, TypeError, OSError), match=f"^{told}"):
        lw.write_lengths(tmp_path / "nothing", path, column="tokens")


def test_files_of_two_formats_of_two_stores_and_packed_ones_are_refused(folder, out):
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(str(folder / NAMES[0]), "/other/a.parquet")
    packed = folder / "rows.parquet.gz"
    packed.write_bytes(b"")
    (folder / "rows.csv").write_text("tokens\n1\n")
    for source, told in (
        ([folder / "a", "memory://other/a.parquet"], "on one file system, but is "),
        (folder, "files of one format, not (CSV or TSV and Parquet or A|Parquet or Arrow and CSV)"),
        (packed, "a file or folder of a known format"),
    ):
        with pytest.raises(ValueError, match=rf"^`source` must be .*{told}"):
            lw.write_lengths(source, out, column="tokens")


def test_damaged_and_missing_files_are_named(folder, out):
    path = folder / NAMES[2]
    (folder.parent / "data").mkdir()
    bad = folder.parent / "data" / "bad.arrow"
    bad.write_bytes(b"ARROW1 and nothing more")
    for damage in (lambda: path.write_bytes(path.read_bytes()[:60]), lambda: path.write_bytes(b"")):
        damage()
        with pytest.raises(ValueError, match=f"^`source` must be a Parquet or an Arrow file, but is '{path}'"):
            lw.write_lengths(folder, out, column="tokens")
    path.unlink()
    path.symlink_to("nothing.parquet")
    for source, name in ((folder, path), (bad, bad)):
        with pytest.raises(ValueError, match=f"^`source` must be a Parquet or an Arrow file, but is .*{name}'"):
            lw.write_lengths(source, out, column="tokens")
    assert names_beside(out) == []


def test_tensors_and_coded_texts_are_decoded_and_other_types_refused(out):
    rows = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 5), np.int64))
    squares = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2), np.int64))
    few = pa.array(["a b", "c", "a b"]).dictionary_encode()
    source = dataset.dataset(pa.table({"rows": rows, "squares": squares, "few": few}))
    assert lw.write_lengths(source, out, column="rows").lengths.tolist() == [5, 5, 5]
    assert lw.write_lengths(source, out, column="few", count="words").lengths.tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match=r"^`squares` must be a list of numbers"):
        lw.write_lengths(source, out, column="squares")
    for no_lengths in ([True, False], [b"1", b"2"]):
        with pytest.raises(ValueError, match=r"^`n` must be a number, but is "):
            lw.write_lengths(dataset.dataset(pa.table({"n": no_lengths})), out, column="n")
