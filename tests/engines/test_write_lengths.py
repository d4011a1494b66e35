"""The lengths of a large data set of files: the k-th is that of the k-th row, whole or not there."""

import gzip
import json
import os
import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'lengthwise[io]'")
import pyarrow.dataset as dataset  # noqa: E402
import pyarrow.parquet as parquet  # noqa: E402

import lengthwise as lw  # noqa: E402

# Rows of four files, in the order of the files' paths.
TOKENS = [[[1] * n for n in rows] for rows in ([3, 1, 4], [1, 5], [9, 2, 6, 5], [3])]
NAMES = ["a/part-0.parquet", "a/part-1.parquet", "b/part-0.parquet", "b/part-1.parquet"]
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def one_file(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path, row_group_size=2)
    return path


@pytest.fixture
def folder(tmp_path):
    for name, rows in reversed(list(zip(NAMES, TOKENS, strict=True))):
        audio = [{"frames": 10 * len(row), "channels": 2} for row in rows]
        one_file(tmp_path / "tokens" / name, tokens=rows, audio=audio, text=["é " * len(row) for row in rows])
    (tmp_path / "tokens" / "README.md").write_text("passed over")
    (tmp_path / "tokens" / "_SUCCESS").write_text("")
    return tmp_path / "tokens"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "lengths.npy"


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


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"column": "text", "count": "words"}, LENGTHS),
        ({"column": "text", "count": "characters"}, [2 * n for n in LENGTHS]),
        ({"column": "audio.frames"}, [10 * n for n in LENGTHS]),
        ({"column": "tokens, audio.frames"}, [[n, 10 * n] for n in LENGTHS]),
        ({"column": "audio.channels,audio.frames"}, [[2, 10 * n] for n in LENGTHS]),
        ({"column": "text,tokens", "count": "words"}, [[n, n] for n in LENGTHS]),
        ({"length": lambda batch: [len(row) + 300 for row in batch["tokens"]]}, [n + 300 for n in LENGTHS]),
        ({"length": lambda batch: pa.compute.list_value_length(batch["tokens"])}, LENGTHS),
        ({"length": lambda batch: np.ones((batch.num_rows, 2))}, [[1, 1]] * 10),
        ({"length": lambda batch: np.ones((batch.num_rows, 1))}, [1] * 10),
    ],
)
def test_columns_and_functions(folder, out, options, lengths):
    written = lw.write_lengths(folder, out, batch_size=2, **options)
    assert written.lengths.tolist() == lengths
    assert written.lengths.dtype == np.min_scalar_type(np.max(lengths))


def test_windows_map_the_file(folder, out):
    written = lw.write_lengths(folder, out, column="tokens")
    windows = lw.Windows(written, lw.Batching(cut=lw.FixedSize(2)), window=4, block=2)
    assert sorted(row for batch in lw.WindowEpoch(windows, 0).batches() for row in batch) == list(range(10))


@pytest.mark.parametrize(
    ("source", "lengths"),
    [
        (lambda folder: [folder / name for name in NAMES], LENGTHS),
        (lambda folder: [folder / NAMES[3], str(folder / NAMES[0])], [3, 3, 1, 4]),
        (lambda folder: [folder / "b", folder / "a"], LENGTHS[5:] + LENGTHS[:5]),
        (lambda folder: f"{folder}/*/*-1.parquet", [1, 5, 3]),
        (lambda folder: f"{folder}/**/*.parquet", LENGTHS),
        (lambda folder: dataset.dataset(str(folder / "a"), format="parquet"), LENGTHS[:5]),
        (lambda _: dataset.dataset([pa.table({"tokens": rows}) for rows in TOKENS[:2]]), LENGTHS[:5]),
        (
            lambda folder: dataset.dataset(str(folder / "a")).filter(dataset.field("audio", "frames") > 10),
            [3, 4, 5],
        ),
    ],
    ids=["list", "list in its order", "folders", "pattern", "deep pattern", "data set", "memory", "filtered"],
)
def test_sources_of_files(folder, out, source, lengths):
    assert lw.write_lengths(source(folder), out, column="tokens").lengths.tolist() == lengths


@pytest.fixture(params=["disk", "memory"])
def tree(request, tmp_path):
    """A folder with what other programs leave there, on the disk and in a store of objects; how to name it."""
    folder = tmp_path / "data"
    for number, name in enumerate(["B.parquet", "a.parquet", "a/z.parquet", "b[1].parquet", "dir.parquet/c.pq"], 1):
        one_file(folder / name, n=[number])
    one_file(folder / "e d" / "f.PARQUET", n=[6])
    one_file(folder / "x[1]" / "g.parquet", n=[7])
    for name in ("_temporary/0/a.parquet", ".git/a.parquet", ".a.parquet", "_a.parquet"):
        one_file(folder / name, n=[99])
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
@pytest.mark.parametrize("remote", [False, True])
def test_a_suffix_names_the_format(tmp_path, out, suffix, remote):
    path = tmp_path / "data" / f"rows{suffix.replace('.stream', '.arrow')}"
    path.parent.mkdir()
    if suffix in (".arrow", ".feather", ".stream"):
        new = pa.ipc.new_stream if suffix == ".stream" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as file, new(file, pa.schema([("n", pa.int64())])) as writer:
            writer.write_table(pa.table({"n": [3, 1, 2]}))
    else:
        text = '{"n": 3}\n{"n": 1}\n{"n": 2}' if "json" in suffix else "n\n3\n1\n2\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    if not remote:
        assert lw.write_lengths(path.parent, out, column="n", batch_size=2).lengths.tolist() == [3, 1, 2]
        return
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(str(path), f"/one/{path.name}")
    try:
        assert lw.write_lengths(f"memory://one/{path.name}", out, batch_size=2).lengths.tolist() == [3, 1, 2]
    finally:
        store.rm("/one", recursive=True)


JSON = [{"n": n, "t": "word " * n, "m": [0] * n} for n in (1, 2, 3, 4)]
LINES = [json.dumps(record) for record in JSON]
TABLE = ["n,t", *(f"{n},some words" for n in (1, 2, 3, 4))]
# Each as `read_lengths` has it: the same lengths, or refused.
TEXTS = {
    "csv": (".csv", "\n".join(TABLE)),
    "open quote": (".csv", "\n".join([*TABLE[:3], '3,"an open quotation mark', *TABLE[3:]])),
    "quotes across lines": (".csv", 'n,t\n1,"some\nwords, and ""more"""\n2,"\n\n\n"\n3,"4,a\n5,b"\n'),
    "a cell more": (".csv", "\n".join([*TABLE[:3], "3,some,words", *TABLE[3:]])),
    "a cell less": (".csv", "\n".join([*TABLE[:3], "3", *TABLE[3:]])),
    "an empty cell": (".csv", "\n".join([*TABLE[:3], ",words", *TABLE[3:]])),
    "a text for a number": (".csv", "\n".join([*TABLE[:3], "many,words", *TABLE[3:]])),
    "blank lines": (".csv", "\n\n" + "\n\n".join(TABLE) + "\n\n\n"),
    "byte order mark": (".csv", "\ufeff" + "\n".join(TABLE)),
    "windows": (".csv", "\r\n".join(TABLE)),
    "semicolons": (".csv", "\n".join(TABLE).replace(",", ";")),
    "no header": (".csv", "\n".join(TABLE[1:])),
    "tsv": (".tsv", "\n".join(TABLE).replace(",", "\t")),
    "quotes of tsv": (".tsv", 'n\tt\n1\t"open\n2\t"open, too\n3\ta""b\n'),
    "jsonl": (".jsonl", "\n".join(LINES)),
    "a broken line": (".jsonl", "\n".join([*LINES[:2], LINES[2][:-9], LINES[3]])),
    "a last line that is cut": (".jsonl", "\n".join(LINES)[:-9]),
    "a record over lines": (".jsonl", "\n".join([LINES[0], LINES[1].replace(",", ",\n"), LINES[2]])),
    "a null": (".jsonl", '{"n": 1}\n{"n": null}\n{"n": 2}\n'),
    "a field that is absent": (".jsonl", '{"n": 1}\n{"t": 1}\n{"n": 2}\n'),
    "a text beside numbers": (".jsonl", '{"n": 1}\n{"n": "one"}\n{"n": 2}\n'),
    "a number beside lists": (".jsonl", '{"n": [1, 2]}\n{"n": 1}\n'),
    "lists of lists": (".jsonl", '{"n": [[1], [2]]}\n'),
    "one array": (".jsonl", "[" + ",".join(LINES) + "]"),
}


def outcome(read, **options):
    try:
        return np.asarray(read(column="n", **options)).tolist()
    except ValueError:
        return "refused"


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_file_of_text_has_the_lengths_that_the_reader_finds_or_is_refused(tmp_path, out, case, packed):
    suffix, text = TEXTS[case]
    path = tmp_path / f"rows{suffix}{packed}"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    expected = outcome(lambda **options: lw.read_lengths(path, **options))
    for batch_size in (1, 2, 4096):
        written = outcome(
            lambda size=batch_size, **options: lw.write_lengths(path, out, batch_size=size, **options).lengths
        )
        assert written == expected
        assert out.exists() == (expected != "refused")
    assert names_beside(out) == sorted([path.name, *["lengths.npy"] * out.exists()])


CELLS = st.lists(st.text(st.sampled_from('ab",\n\r ;\t'), max_size=6), min_size=1, max_size=6)


@settings(max_examples=100)
@given(CELLS, st.integers(0, 60), st.sampled_from(["", '"', ",", "\n"]), st.integers(1, 4))
def test_any_csv_has_the_lengths_that_the_reader_finds_or_is_refused(tmp_path_factory, cells, at, typo, size):
    folder = tmp_path_factory.mktemp("any")
    rows = [f'{n},"{cell.replace(chr(34), chr(34) * 2)}"\n' for n, cell in enumerate(cells, 1)]
    text = "".join(rows)
    (folder / "rows.csv").write_bytes(("n,t\n" + text[:at] + typo + text[at:]).encode())
    expected = outcome(lambda **options: lw.read_lengths(folder / "rows.csv", **options))
    written = outcome(
        lambda **options: lw.write_lengths(folder / "rows.csv", folder / "a.npy", batch_size=size, **options).lengths
    )
    assert written == expected
    if not typo:
        assert written == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("blank", ["", "\n", " \n\n"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_later_file_of_text_may_be_empty(tmp_path, out, suffix, blank):
    (tmp_path / f"0.{suffix}").write_text("n\n3\n" if suffix == "csv" else '{"n": 3}')
    (tmp_path / f"1.{suffix}").write_text(blank)
    (tmp_path / f"2.{suffix}").write_text("m,n\n7,4\n" if suffix == "csv" else '{"m": 7, "n": 4}')
    assert lw.write_lengths(tmp_path / f"*.{suffix}", out, column="n").lengths.tolist() == [3, 4]


def test_functions_see_rows_of_text_as_pyarrow_reads_them(tmp_path, out):
    (tmp_path / "rows.jsonl").write_text('{"t": "a b"}\n{"t": "c"}\n')

    def words(batch):
        return [len(text.split()) for text in batch["t"].to_pylist()]

    source = dataset.dataset(str(tmp_path / "rows.jsonl"), format="json")
    assert lw.write_lengths(source, out, length=words).lengths.tolist() == [2, 1]
    with pytest.raises(
        ValueError, match=r"^`length` must be left out for files of text, .*Give them as `pyarrow\.data"
    ):
        lw.write_lengths(tmp_path / "rows.jsonl", out, length=words)


CHATS = [["hello", "and you"], ["fine"], [], ["one two three", "four", "five six"]]
COUNTED = [3, 1, 0, 6]


@pytest.mark.parametrize("source", ["parquet", "jsonl", "memory", "datasets"])
@pytest.mark.parametrize(("name", "field"), [("messages", "content"), ("conversations", "value")])
def test_all_turns_of_a_chat_are_counted_and_no_turns_without_count(tmp_path, out, source, name, field):
    chats = [{name: [{"role": "user", field: text} for text in texts]} for texts in CHATS]
    if source == "jsonl":
        rows = tmp_path / "chats.jsonl"
        rows.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    elif source == "parquet":
        rows = one_file(tmp_path / "chats.parquet", **{name: [chat[name] for chat in chats]})
    elif source == "memory":
        rows = dataset.dataset(pa.Table.from_pylist(chats))
    else:
        rows = pytest.importorskip("datasets").Dataset.from_list(chats)
    for column in (name, f"{name}.*.{field}"):
        written = lw.write_lengths(rows, out, column=column, count="words", bad="one", batch_size=3)
        assert written.lengths.tolist() == [max(1, words) for words in COUNTED]
        assert [row for row, _ in written.bad_rows] == [2]
    with pytest.raises(ValueError, match=rf'must be a list of numbers.*column="{name}\.\*\.{field}", count="words"'):
        lw.write_lengths(rows, out, column=name, bad="one")


FIRST = (pa.array([7, 8]), pa.array([[1] * 7, [1] * 8]), pa.array(["a b", "c"]), pa.array([None, None], pa.null()))


@pytest.mark.parametrize("later", FIRST, ids=lambda array: str(array.type))
@pytest.mark.parametrize("first", FIRST, ids=lambda array: str(array.type))
def test_numbers_lists_and_texts_do_not_mix(tmp_path, out, first, later):
    one_file(tmp_path / "data" / "0.parquet", size=first, tokens=[[1], [2]])
    one_file(tmp_path / "data" / "1.parquet", size=later, tokens=[[1], [2]])
    options = {"count": "words"} if pa.string() in (first.type, later.type) else {}
    if first.type == later.type or pa.null() in (first.type, later.type):
        assert len(lw.write_lengths(tmp_path / "data", out, column="size,tokens", bad="one", **options)) == 4
        return
    with pytest.raises(ValueError, match=r"^`(size|count)` must be .*"):
        lw.write_lengths(tmp_path / "data", out, column="size", **options)


@pytest.mark.parametrize("types", [("int8", "int64"), ("int32", "float64"), ("uint64", "int16")])
def test_a_later_file_may_have_another_type_of_numbers(tmp_path, out, types):
    for number, (rows, kind) in enumerate(zip(([5, 6], [100, 3]), types, strict=True)):
        one_file(tmp_path / "data" / f"{number}.parquet", n=pa.array(rows, kind), other=[["a", "b"], [1, 2]][number])
    assert lw.write_lengths(tmp_path / "data", out, column="n").lengths.tolist() == [5, 6, 100, 3]


def test_a_later_file_without_the_column_is_named(tmp_path, out):
    one_file(tmp_path / "data" / "0.parquet", n=[1], more=[1])
    one_file(tmp_path / "data" / "1.parquet", more=[1])
    with pytest.raises(ValueError, match=r"^`column` must be .*more, but is 'n' at .*1\.parquet"):
        lw.write_lengths(tmp_path / "data", out, column="n")


def test_durations_and_samples_become_frames_as_the_readers_make_them(tmp_path, out):
    path = one_file(tmp_path / "a.parquet", seconds=[0.145, 2.0, 0.001], num_samples=[48_000, 160, 81], n=[5, 6, 7])
    for options in (
        {"column": "seconds", "frame_shift": 0.01},
        {"column": "seconds,n", "frame_shift": 0.01},
        {"column": "num_samples", "frame_shift": 160},
        {"column": "num_samples,n", "frame_shift": 160},
    ):
        expected = lw.read_lengths(path, **options).tolist()
        assert lw.write_lengths(path, out, batch_size=1, **options).lengths.tolist() == expected


def test_what_is_seconds_does_not_change_from_file_to_file(tmp_path, out):
    one_file(tmp_path / "data" / "0.parquet", audio=[1.5, 2.5], tokens=[[3], [4]])
    one_file(tmp_path / "data" / "1.parquet", audio=[1, 2], tokens=[[3], [4]])
    with pytest.raises(ValueError, match="`frame_shift` must be given for seconds only"):
        lw.write_lengths(tmp_path / "data", out, column="audio,tokens", frame_shift=0.01)
    written = lw.write_lengths(tmp_path / "data", out, column="audio", frame_shift=0.01)
    assert written.lengths.tolist() == [150, 250, 100, 200]
    one_file(tmp_path / "late" / "0.parquet", count=[1, 2], time=[1.5, 2.5])
    one_file(tmp_path / "late" / "1.parquet", count=[3.0, 4.0], time=[1.5, 2.5])
    with pytest.raises(ValueError, match=r"^`count` must be numbers, as in the rows before, but is 'seconds' at row 2"):
        lw.write_lengths(tmp_path / "late", out, column="count,time", frame_shift=0.01)


def test_bad_rows_are_named_with_their_files(tmp_path, out):
    for name, rows in (("a", [7, 0, 8]), ("b", [None, None]), ("c", [9, -1, 4])):
        one_file(tmp_path / "data" / f"{name}.parquet", n=pa.array(rows, pa.int64()))
    at = tmp_path / "data"
    message = (
        '`source` must be rows that have a length each, but 4 of 8 have none. Repair them, or give bad="one", which '
        f"counts each as 1. Row 1: `n` must be at least 1, but is 0 at row 1 of {at}/a.parquet. Drop the sequence or "
        f"repair its length. Row 3: `n` must be given, but is None at row 0 of {at}/b.parquet. Fill it in, or drop the "
        f"row. Row 4: `n` must be given, but is None at row 1 of {at}/b.parquet. Fill it in, or drop the row."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lw.write_lengths(at, out, column="n")
    assert names_beside(out) == []
    written = lw.write_lengths(at, out, column="n", bad="one")
    assert written.lengths.tolist() == [7, 1, 8, 1, 1, 9, 1, 4]
    assert [row for row, _ in written.bad_rows] == [1, 3, 4, 6]
    reason = f"`n` must be at least 1, but is -1 at row 1 of {at}/c.parquet. Drop the sequence or repair its length."
    assert written.bad_rows[-1].reason == reason


def test_reasons_show_what_would_colour_a_terminal(tmp_path, out):
    path = one_file(tmp_path / "\x1b[31ma.parquet", **{"n\x9b1m": [7, 0]})
    with pytest.raises(ValueError, match=r"Row 1: `n\\x9b1m` must be at least 1, but is 0 at row 1 of .*\\x1b\[31ma"):
        lw.write_lengths(path, out, column="n\x9b1m")
    (row,) = lw.write_lengths(path, out, column="n\x9b1m", bad="one").bad_rows
    assert row.reason.isprintable()


@pytest.mark.parametrize(
    ("value", "options", "reason"),
    [
        (1.5, {}, "`n` must be a whole number, but is 1.5 at"),
        (float("nan"), {}, "`n` must be finite, but is nan"),
        (2.0**60, {}, "`n` must be below 2**53 as a float, but is"),
        (0.0, {"frame_shift": 0.01}, "`n` must be finite and above 0, but is 0.0"),
        (float("inf"), {"frame_shift": 0.01}, "`n` must be finite and above 0, but is inf"),
        (
            48_000,
            {"frame_shift": 0.01},
            "`n` must be at most 7200 seconds in whole numbers, with `frame_shift` in seconds, but is 48000 at",
        ),
        ([], {}, "`n` must be at least 1, but is 0"),
        ("", {"count": "words"}, "`n` must be at least 1, but is 0"),
    ],
)
def test_reasons_of_bad_rows(tmp_path, out, value, options, reason):
    good = {float: 160.0, int: 160, list: [1], str: "word"}[type(value)]
    path = one_file(tmp_path / "a.parquet", n=[good, value, None, good])
    written = lw.write_lengths(path, out, column="n", bad="one", **options)
    assert [row for row, _ in written.bad_rows] == [1, 2]
    assert written.bad_rows[0].reason.startswith(reason)
    assert written.lengths[1:3].tolist() == [1, 1]


def test_a_row_of_several_lengths_is_bad_as_a_whole(tmp_path, out):
    path = one_file(tmp_path / "a.parquet", n=[3, 0, 4], m=[0, None, 5])
    written = lw.write_lengths(path, out, column="n,m", bad="one")
    assert written.lengths.tolist() == [[1, 1], [1, 1], [4, 5]]
    assert [reason[:22] for _, reason in written.bad_rows] == ["`m` must be at least 1", "`n` must be at least 1"]


def test_too_many_bad_rows_stop_the_run(folder, out):
    seen = []

    def length(batch):
        seen.append(batch.num_rows)
        return np.zeros(batch.num_rows)

    with pytest.raises(
        ValueError, match=r"^`max_bad` must be at least the number of bad rows, but is 2\. .*Row 0: `len"
    ):
        lw.write_lengths(folder, out, length=length, max_bad=2, batch_size=2)
    assert seen == [2, 1]


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-2, 300), st.just(70_000)), max_size=9)


@settings(max_examples=25)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.integers(1, 5))
def test_any_rows_are_written_in_order(tmp_path_factory, files, batch_size):
    folder = tmp_path_factory.mktemp("any")
    for number, rows in enumerate(files):
        one_file(folder / "n" / f"{number}.parquet", n=pa.array(rows, pa.int32()))
    cells = [cell for rows in files for cell in rows]
    if not cells:
        return
    written = lw.write_lengths(folder / "n", folder / "lengths.npy", column="n", bad="one", batch_size=batch_size)
    assert written.lengths.tolist() == [max(1, cell or 1) for cell in cells]
    assert written.lengths.dtype.itemsize == (4 if 70_000 in cells else 2 if max(written.lengths) > 255 else 1)
    assert [row for row, _ in written.bad_rows] == [row for row, cell in enumerate(cells) if cell is None or cell < 1]


def test_a_function_may_answer_numbers_alone(tmp_path, out):
    path = one_file(tmp_path / "a.parquet", n=[1, 2, 3])
    for answer in ([1, 2], 7, np.ones((3, 1, 1)), ["a", "b", "c"], [True] * 3, [1, None, 2], np.ones((3, 0))):
        with pytest.raises(
            ValueError, match=r"^`length` must be a function that returns \[[123]\] or \[[123], dims\] n"
        ):
            lw.write_lengths(path, out, length=lambda _, answer=answer: answer)
    widths = iter([np.ones((2, 2)), np.ones((1, 3))])
    with pytest.raises(ValueError, match=r"^`length` must be a function that returns as many numbers at each row"):
        lw.write_lengths(path, out, length=lambda _: next(widths), batch_size=2)
    written = lw.write_lengths(path, out, length=lambda batch: batch["n"].to_numpy() / [1, np.nan, 1], bad="one")
    assert written.lengths.tolist() == [1, 1, 3]


def test_what_a_function_raises_is_raised_and_the_old_file_stays(tmp_path, out):
    path = one_file(tmp_path / "a.parquet", n=[1, 2, 3])
    lw.write_lengths(path, out, column="n")

    with pytest.raises(KeyError, match="seven"):
        lw.write_lengths(path, out, length=lambda _: {}["seven"])
    assert np.load(out).tolist() == [1, 2, 3]
    assert names_beside(out) == ["a.parquet", "lengths.npy"]


@pytest.mark.parametrize("rows_of_a_group", [1_000, 20_000])
def test_memory_is_bounded_by_a_batch(tmp_path, out, rows_of_a_group):
    rows, width = 20_000, 400
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(rows * width) % 977), width)
    table = pa.table({"tokens": lists.cast(pa.list_(pa.int64()))})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows_of_a_group)
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
        ("tokens", {"column": 5}, "`column` must be a text, but is 5."),
        ("tokens", {"column": "text"}, "`text` must be a number, but is 'é é é '"),
        ("tokens", {"column": "tokens", "count": "words"}, "`count` must be given for texts only, but is 'words'."),
        ("tokens", {"column": ",".join(["tokens"] * 9)}, "`lengths` must be at most 8 for each sequence, but is 9."),
        ("tokens", {"length": 5}, "`length` must be a function, but is 5."),
        ("tokens", {"length": len, "column": "tokens"}, "`column` must be left out beside `length`, but is 'tokens'."),
        ("tokens", {"column": "tokens", "frame_shift": 0.01}, "`frame_shift` must be given for seconds only, but is"),
        ("tokens", {"column": "tokens", "bad": "drop"}, "`bad` must be one of error, one, but is 'drop'."),
        ("tokens", {"column": "tokens", "count": "tokens"}, "`tokenizer` must be given, because tokens are counted"),
        ("tokens", {"column": "tokens", "tokenizer": "a"}, "`tokenizer` must be left out unless tokens are counted"),
        ("tokens", {"column": "tokens", "max_bad": -1}, "`max_bad` must be at least 0, but is -1."),
        ("tokens", {"column": "tokens", "batch_size": 0}, "`batch_size` must be at least 1, but is 0."),
        ("tokens", {"column": "audio"}, "`audio` must be a number, but is {'"),
        ("", {"column": "a"}, "`source` must be a file or folder that is there, but is ''."),
        ("nothing", {"column": "a"}, "`source` must be a file or folder that is there, but is 'nothing'."),
        ("tokens/README.md", {"column": "a"}, "`source` must be a file or folder of a known format, but is "),
        ([], {"column": "a"}, "`source` must be a file or folder of a known format, but is '[]'."),
        (
            [3, 4],
            {"column": "a"},
            "`source` must be a path, a list of paths, or a data set of pyarrow, datasets, Ray or",
        ),
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
        ("no/a.npy", "`path` must be in a folder that is there"),
        ("folder.npy", "`path` must be a file, and no folder"),
        ("pipe.npy", "`path` must be a file that can be written, but is .* pipe or a device"),
        (5, "`path` must be a path, but is"),
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
    with pytest.raises(ValueError, match=r"^`source` must be on one file system, but is "):
        lw.write_lengths([folder, "memory://other/a.parquet"], out, column="tokens")
    (folder / "rows.csv").write_text("tokens\n1\n")
    with pytest.raises(
        ValueError, match=r"of files of one format, and not of (CSV or TSV and Parquet or A|Parquet or Arrow and CSV)"
    ):
        lw.write_lengths(folder, out, column="tokens")
    for name in ("rows.csv.zst", "rows.parquet.gz"):
        (folder / "rows.csv").rename(folder / name)
        with pytest.raises(ValueError, match=r"^`source` must be a file or folder of a known format"):
            lw.write_lengths(folder / name, out, column="tokens")
        (folder / name).rename(folder / "rows.csv")


def test_damaged_and_missing_files_are_named(folder, out):
    path = folder / NAMES[2]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=f"^`source` must be a Parquet or an Arrow file, but is '{path}'"):
        lw.write_lengths(folder, out, column="tokens")
    path.unlink()
    path.symlink_to("nothing.parquet")
    with pytest.raises(ValueError, match=f"^`source` must be a Parquet or an Arrow file, but is '{path}'"):
        lw.write_lengths(folder, out, column="tokens")
    (folder / "a.arrow").write_bytes(b"ARROW1 and nothing more")
    with pytest.raises(ValueError, match=r"^`source` must be a Parquet or an Arrow file, but is .*a\.arrow"):
        lw.write_lengths(folder / "a.arrow", out, column="tokens")
    assert names_beside(out) == []


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_nulls_among_texts_of_every_type_are_bad_rows(out, kind):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    source = dataset.dataset(pa.table({"n": pa.array(["a b", None, "", "c"], getattr(pa, kind)())}))
    written = lw.write_lengths(source, out, column="n", count="words", bad="one")
    assert written.lengths.tolist() == [2, 1, 1, 1]
    assert [row for row, _ in written.bad_rows] == [1, 2]


def test_few_texts_and_tensors_are_decoded(out):
    rows = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 5), np.int64))
    squares = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2), np.int64))
    few = pa.array(["a b", "c", "a b"]).dictionary_encode()
    source = dataset.dataset(pa.table({"rows": rows, "squares": squares, "few": few}))
    assert lw.write_lengths(source, out, column="rows").lengths.tolist() == [5, 5, 5]
    assert lw.write_lengths(source, out, column="few", count="words").lengths.tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match=r"^`squares` must be a list of numbers"):
        lw.write_lengths(source, out, column="squares")


@pytest.mark.parametrize("kind", ["bool_", "binary"])
def test_truth_values_and_bytes_are_no_lengths(out, kind):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    column = {
        "bool_": lambda: pa.array([True, False]),
        "binary": lambda: pa.array([b"1", b"2"]),
    }[kind]()
    with pytest.raises(ValueError, match=r"^`n` must be a number, but is "):
        lw.write_lengths(dataset.dataset(pa.table({"n": column})), out, column="n")
