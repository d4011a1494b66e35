"""The lengths of a large data set of files: in its order, whole or not at all, and never twice."""

import functools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

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
NAMES = ["year=2023/part-0.parquet", "year=2023/part-1.parquet", "year=2024/part-0.parquet", "year=2024/part-1.parquet"]
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


@pytest.fixture
def folder(tmp_path):
    for name, rows in reversed(list(zip(NAMES, TOKENS, strict=True))):
        path = tmp_path / "tokens" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"tokens": rows, "audio": [{"frames": 10 * len(row), "channels": 2} for row in rows]})
        parquet.write_table(table, path, row_group_size=2)
    (tmp_path / "tokens" / "README.md").write_text("passed over")
    (tmp_path / "tokens" / "_SUCCESS").write_text("")
    return tmp_path / "tokens"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "lengths.npy"


def names_beside(out):
    return sorted(path.name for path in out.parent.iterdir() if path.name.startswith(out.name))


def one_file(folder, name="rows.parquet", **columns):
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.table(columns), folder / name)
    return folder / name


def test_a_folder_is_read_in_the_order_of_its_paths(folder, out):
    found = lw.write_lengths(folder, out, column="tokens")
    assert np.load(out).tolist() == LENGTHS
    assert np.load(out).dtype == np.uint8
    assert found.pieces == [(str(folder / name), len(rows)) for name, rows in zip(NAMES, TOKENS, strict=True)]
    assert found.find(8) == (str(folder / NAMES[2]), 3)
    assert found.rows([[0, 8]]).tolist() == [[0, 8]]
    assert found.bad_rows == []
    assert names_beside(out) == ["lengths.npy", "lengths.npy.json"]
    assert lw.read_lengths(found).tolist() == LENGTHS


WIDER = [
    (pa.array([None, None], pa.null()), pa.array([70_000, 3], pa.int64())),
    (pa.array([5, None], pa.int8()), pa.array([70_000, 3], pa.int64())),
    (pa.array([70_000, None], pa.int64()), pa.array([5, 3], pa.int8())),
    (pa.array([5, None], pa.int32()), pa.array([700.0, 3.0], pa.float64())),
    (pa.array([[1] * 5, None], pa.list_(pa.int16())), pa.array([[70_000] * 9, [3] * 2], pa.list_(pa.int64()))),
    (pa.array([[None] * 5, None], pa.list_(pa.null())), pa.array([[70_000] * 9, [3] * 2], pa.list_(pa.int64()))),
    (pa.array([None, None], pa.null()), pa.array([[70_000] * 9, [3] * 2], pa.large_list(pa.int64()))),
]


@pytest.mark.parametrize(("first", "second"), WIDER)
@pytest.mark.parametrize("reads", ["column", "length"])
def test_a_later_file_may_have_wider_columns(tmp_path, out, first, second, reads):
    def count(value):
        return value if isinstance(value, int | float | None) else len(value)

    expected = [count(value) for column in (first, second) for value in column.to_pylist()]
    for name, column in (("0.parquet", first), ("1.parquet", second)):
        one_file(tmp_path / "data", name, size=column, other=pa.array(["a", "b"]))

    def length(batch):
        assert batch.schema.names == ["size", "other"]
        return np.array([count(value) or 1 for value in batch["size"].to_pylist()])

    if reads == "column":
        found = lw.write_lengths(tmp_path / "data", out, column="size", bad="one")
    else:
        found = lw.write_lengths(tmp_path / "data", out, length=length)
    assert found.lengths.tolist() == [value or 1 for value in expected]


def test_what_a_path_says_counts_and_what_a_file_lacks_is_null(tmp_path, out):
    one_file(tmp_path / "year=3", n=pa.array([5, 6]), year=pa.array([9, 9], pa.int32()), more=[1, 2])
    one_file(tmp_path / "year=4", n=pa.array([7], pa.int16()))
    expected = [
        {"n": 5, "year": 3, "more": 1},
        {"n": 6, "year": 3, "more": 2},
        {"n": 7, "year": 4, "more": None},
    ]
    assert dataset.dataset(tmp_path, format="parquet", partitioning="hive").to_table().to_pylist() == expected
    found = []

    def length(batch):
        found.extend(batch.to_pylist())
        return batch["n"]

    assert lw.write_lengths(tmp_path, out, length=length).lengths.tolist() == [5, 6, 7]
    assert found == expected  # as Arrow reads it


def test_texts_and_numbers_do_not_fit(tmp_path, out):
    one_file(tmp_path / "data", "0.parquet", size=[7, 8])
    one_file(tmp_path / "data", "1.parquet", size=["a", "b"])
    with pytest.raises(ValueError, match=r"^`source` must be of files that can be read, but is .*1\.parquet"):
        lw.write_lengths(tmp_path / "data", out, column="size")


def test_what_is_seconds_is_told_alike_in_all_files(tmp_path, out):
    one_file(tmp_path / "data", "0.parquet", audio=[1, 2], tokens=[3, 4])
    one_file(tmp_path / "data", "1.parquet", audio=[1.5, 2.5], tokens=[3, 4])
    # Read in its own type, the first file would count 1 and 2 frames, and the second 150 and 250.
    with pytest.raises(ValueError, match="`frame_shift` must be given for seconds only"):
        lw.write_lengths(tmp_path / "data", out, column="audio,tokens", frame_shift=0.01)
    found = lw.write_lengths(tmp_path / "data", out, column="audio", frame_shift=0.01)
    assert found.lengths.tolist() == [100, 200, 150, 250]
    one_file(tmp_path / "late", "0.parquet", count=[1, 2], time=[1.5, 2.5])
    one_file(tmp_path / "late", "1.parquet", count=[3.0, 4.0], time=[1.5, 2.5])
    found = lw.write_lengths(tmp_path / "late", out, column="count,time", frame_shift=0.01)
    assert found.lengths.tolist() == [[1, 150], [2, 250], [3, 150], [4, 250]]


def test_columns_that_are_not_asked_for_are_not_read(tmp_path, out):
    one_file(tmp_path / "data", "0.parquet", n=[3, 1], other=[7, 8])
    one_file(tmp_path / "data", "1.parquet", n=[4, 1], other=["a", "b"])
    assert lw.write_lengths(tmp_path / "data", out, column="n").lengths.tolist() == [3, 1, 4, 1]


@pytest.mark.parametrize("samples", [[48_000, 160, 81], [48_000.0, 160.0, 81.0]])
def test_samples_become_frames_as_the_readers_make_them(tmp_path, out, samples):
    path = one_file(tmp_path / "data", num_samples=samples, tokens=[[1], [1, 2], [3]])
    shift = {"frame_shift": 0.01, "sample_rate": 16_000}
    found = lw.write_lengths(path, out, column="num_samples", **shift)
    assert found.lengths.tolist() == lw.read_lengths(path, column="num_samples", **shift).tolist() == [300, 1, 1]
    found = lw.write_lengths(path, out, column="num_samples,tokens", **shift)
    assert found.lengths.tolist() == [[300, 1], [1, 2], [1, 1]]


def test_a_part_of_a_sample_is_no_sample(tmp_path, out):
    path = one_file(tmp_path / "data", audio=[160.0, 80.5])
    with pytest.raises(ValueError, match=r"row 1, audio must be a whole number of samples, but is 80\.5 "):
        lw.write_lengths(path, out, column="audio", frame_shift=0.01, sample_rate=16_000)


def test_find_takes_one_sequence(folder, out):
    found = lw.write_lengths(folder, out, column="tokens")
    message = "`sequence` must be one whole number, but is [0, 1]. Call it for each; `rows` takes many."
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        found.find([0, 1])
    again = pickle.loads(pickle.dumps(found))
    assert (again.find(8), again.lengths.tolist()) == (found.find(8), LENGTHS)


def test_windows_map_the_file(folder, out):
    windows = lw.Windows(
        lw.write_lengths(folder, out, column="tokens"), lw.Batching(cut=lw.FixedSize(2)), window=4, block=2
    )
    taken = sorted(number for batch in lw.WindowEpoch(windows, 0).batches() for number in batch)
    assert taken == list(range(10))


@pytest.mark.parametrize(
    "source",
    [
        lambda folder: [folder / name for name in NAMES],
        lambda folder: f"{folder}/*/*.parquet",
        lambda folder: dataset.dataset(str(folder / "year=2023"), format="parquet").replace_schema(
            pa.schema([("tokens", pa.list_(pa.int64()))])
        ),
        lambda _: dataset.dataset([pa.table({"tokens": rows}) for rows in TOKENS[:2]]),
    ],
    ids=["list", "pattern", "dataset", "memory"],
)
def test_other_sources_of_files(folder, out, source):
    lw.write_lengths(source(folder), out, column="tokens")
    found = np.load(out).tolist()
    assert found == LENGTHS[: len(found)]
    assert len(found) in (5, 10)


def write_as(path, kind, rows):
    """Writes a column `n` in a format of pyarrow."""
    table = pa.table({"n": rows})
    if kind in ("csv", "json"):
        head, line = ("n\n", "{}\n") if kind == "csv" else ("", '{{"n": {}}}\n')
        path.write_text(head + "".join(line.format(n) for n in rows))
    elif kind == "orc":
        pytest.importorskip("pyarrow.orc").write_table(table, path)
    else:
        dataset.write_dataset(table, path.parent / "one", format=kind, basename_template="{i}")
        (path.parent / "one" / "0").rename(path)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        *[(".parquet", "parquet"), (".pq", "parquet"), (".PARQUET", "parquet"), (".arrow", "arrow")],
        *[(".feather", "feather"), (".csv", "csv"), (".jsonl", "json"), (".ndjson", "json"), (".orc", "orc")],
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_suffix_names_the_format(tmp_path, out, suffix, kind, alone):
    path = tmp_path / "data" / f"rows{suffix}"
    path.parent.mkdir()
    write_as(path, kind, [3, 1])
    assert lw.write_lengths(path if alone else path.parent, out, column="n").lengths.tolist() == [3, 1]


def test_of_a_folder_hidden_files_are_passed_over_and_the_others_are_sorted_by_path(tmp_path, out):
    shown = {"B.parquet": 1, "a.parquet": 2, "a/z.parquet": 3, "b/a.parquet": 4}  # "a.p" stands before "a/z"
    hidden = [".a.parquet", "_a.parquet", ".git/a.parquet", "_tmp/a.parquet", "b/.c/d.parquet"]
    for name, n in reversed([*shown.items(), *((name, 99) for name in hidden)]):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        one_file(path.parent, path.name, n=[n])
    assert lw.write_lengths(tmp_path / "data", out, column="n").lengths.tolist() == [1, 2, 3, 4]


def test_a_pattern_names_files_at_any_depth_and_no_folders(tmp_path, out):
    one_file(tmp_path, "a.parquet", n=[1])
    one_file(tmp_path / "b.parquet", "c.parquet", n=[2])
    assert lw.write_lengths(tmp_path / "*.parquet", out, column="n").lengths.tolist() == [1]
    assert lw.write_lengths(tmp_path / "**" / "*.parquet", out, column="n").lengths.tolist() == [1, 2]


def test_several_folders_keep_their_columns(folder, out):
    found = lw.write_lengths([folder / "year=2024", folder / "year=2023"], out, column="year")
    assert found.lengths.tolist() == [2024] * 5 + [2023] * 5


def test_folders_above_the_one_that_is_given_are_no_columns(tmp_path, out):
    (tmp_path / "run=7").mkdir()
    one_file(tmp_path / "run=7" / "data", n=[3])
    with pytest.raises(ValueError, match=r"^`column` must be one of n, but is 'run'"):
        lw.write_lengths(tmp_path / "run=7" / "data", out, column="run")


def test_a_list_keeps_its_order(folder, out):
    lw.write_lengths([folder / NAMES[3], folder / NAMES[0]], out, column="tokens")
    assert np.load(out).tolist() == [3, 3, 1, 4]


def test_a_store_of_objects_by_its_url(folder, out):
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(f"{folder}/", "/bucket/tokens", recursive=True)
    try:
        found = lw.write_lengths("memory://bucket/tokens", out, column="tokens")
        assert np.load(out).tolist() == LENGTHS
        assert found.find(9) == ("/bucket/tokens/year=2024/part-1.parquet", 0)
        lw.write_lengths("memory://bucket/tokens/*/part-1.parquet", out, column="year,tokens")
        assert np.load(out).tolist() == [[2023, 1], [2023, 5], [2024, 3]]
        lw.write_lengths(f"memory://bucket/tokens/{NAMES[1]}", out, column="tokens")
        assert np.load(out).tolist() == [1, 5]
        with pytest.raises(
            FileNotFoundError, match=r"^`source` must be a file or folder that is there, but is 'memory:"
        ):
            lw.write_lengths("memory://bucket/nothing", out, column="tokens")
        with pytest.raises(ValueError, match=r"^`source` must be on one file system, but is "):
            lw.write_lengths([folder, "memory://bucket/tokens"], out, column="tokens")
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize(("suffix", "text"), [(".csv", "id,n\na,3\nb,1\n"), (".jsonl", '{"n": 3}\n{"n": 1}\n')])
def test_tables_of_text(tmp_path, out, suffix, text):
    (tmp_path / f"rows{suffix}").write_text(text)
    lw.write_lengths(tmp_path / f"rows{suffix}", out, column="n")
    assert np.load(out).tolist() == [3, 1]


def test_nested_columns_several_columns_and_a_function(folder, out):
    lw.write_lengths(folder, out, column="audio.frames")
    assert np.load(out).tolist() == [10 * n for n in LENGTHS]
    lw.write_lengths(folder, out, column="tokens, audio.frames")
    assert np.load(out).tolist() == [[n, 10 * n] for n in LENGTHS]
    lw.write_lengths(folder, out, column="year")
    assert np.load(out).tolist() == [2023] * 5 + [2024] * 5
    lw.write_lengths(folder, out, column="audio.frames, audio.channels")
    assert np.load(out).tolist() == [[10 * n, 2] for n in LENGTHS]
    lw.write_lengths(folder, out, length=lambda batch: 1000 * np.array(batch["year"]), batch_size=3)
    assert (np.load(out)[[0, 9]].tolist(), np.load(out).dtype) == ([2_023_000, 2_024_000], np.uint32)


def test_durations_become_frames(tmp_path, out):
    path = one_file(tmp_path / "a", seconds=[0.145, 2.0, 0.001], n=[5, 6, 7])
    lw.write_lengths(path, out, column="seconds,n", frame_shift=0.01)
    assert np.load(out).tolist() == [[15, 5], [200, 6], [1, 7]]


def test_the_rows_of_the_data_set_are_found_again(tmp_path, out):
    for name, rows in (("a", [7, 0, 8]), ("b", [None, None]), ("c", [9, -1, 4])):
        one_file(tmp_path / "n", f"{name}.parquet", n=pa.array(rows, pa.int64()))
    found = lw.write_lengths(tmp_path / "n", out, column="n", bad="drop")
    assert found.lengths.tolist() == [7, 8, 9, 4]
    assert found.rows(range(4)).tolist() == [0, 2, 5, 7]
    assert [found.find(k) for k in range(4)] == [
        (str(tmp_path / "n" / f"{name}.parquet"), row) for name, row in (("a", 0), ("a", 2), ("c", 0), ("c", 2))
    ]
    assert [(each.row, each.row_in_piece, each.reason) for each in found.bad_rows] == [
        (1, 1, "n must be at least 1, but is 0"),
        (3, 0, "n is null"),
        (4, 1, "n is null"),
        (6, 1, "n must be at least 1, but is -1"),
    ]
    assert lw.LengthsFile(out).bad_rows == found.bad_rows
    assert lw.write_lengths(tmp_path / "n", out, column="n", bad="one").lengths.tolist() == [7, 1, 8, 1, 1, 9, 1, 4]
    with pytest.raises(ValueError, match=re.escape("`sequences` must be from 0 to 7, but is 8.")):
        lw.LengthsFile(out).rows([8])


def test_bad_rows_are_an_error_that_lists_them_and_what_was_read_is_kept(tmp_path, out):
    path = one_file(tmp_path / "a", n=[5.0, float("nan"), 1.5, None, 2.0])
    calls = []

    def length(batch):
        calls.append(batch.num_rows)
        return batch["n"].to_numpy(zero_copy_only=False)

    message = (
        "`source` must be rows that have a length each, but is bad: 3 of 5 rows have none: row 1, length must be "
        f"finite, but is nan (row 1 of {path}); row 2, length must be a whole number, but is 1.5: seconds need "
        f"`frame_shift` (row 2 of {path}); row 3, length must be finite, but is nan (row 3 of {path}). "
        "Repair them, or call again "
        f'with bad="drop" or bad="one"; all are listed in {out}.parts/bad_rows.json.'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lw.write_lengths(path, out, length=length)
    assert not out.exists()
    listed = [json.loads(line) for line in Path(f"{out}.parts/bad_rows.json").read_text().splitlines()]
    assert [row["row"] for row in listed] == [1, 2, 3]
    assert lw.write_lengths(path, out, length=length, bad="drop").lengths.tolist() == [5, 2]
    assert calls == [5]


def test_a_function_that_raises_marks_its_rows_alone(tmp_path, out):
    path = one_file(tmp_path / "a", text=["one two", "", "three"])

    def length(batch):
        return [len(text.as_py().split()[0]) for text in batch["text"]]

    found = lw.write_lengths(path, out, length=length, bad="one", batch_size=2)
    assert found.lengths.tolist() == [3, 1, 5]
    assert [row.reason for row in found.bad_rows] == ["length raised IndexError: list index out of range"]


def test_a_function_may_answer_anything_but_another_shape(tmp_path, out):
    path = one_file(tmp_path / "a", n=[1, 2, 3])
    found = lw.write_lengths(path, out, length=lambda _: [1, None, "x"], bad="drop")
    assert [row.reason for row in found.bad_rows] == [
        "length must be a number, but is None",
        "length must be a number, but is 'x'",
    ]
    assert lw.write_lengths(path, out, length=lambda _: [[1, 2], [3, 0], [5, 6]], bad="drop").lengths.tolist() == [
        [1, 2],
        [5, 6],
    ]
    for answer, told in ([1, 2], "(2,)"), (7, "()"), (np.ones((3, 1, 1)), "(3, 1, 1)"):
        with pytest.raises(
            ValueError, match=r"^`length` must be a function that returns \[3\] .* but is " + re.escape(told)
        ):
            lw.write_lengths(path, out, length=lambda _, answer=answer: answer)


@pytest.mark.parametrize("answers", [[[5, 6], 7], [7, [5, 6]], [[5, 6], [7, 8, 9]]])
def test_rows_that_are_asked_one_by_one_have_as_many_lengths_each(tmp_path, out, answers):
    path = one_file(tmp_path / "data", x=[0, 1, 2])

    def length(batch):
        rows = batch["x"].to_pylist()
        return [answers[row] for row in rows]  # raises at row 2, and so at all three together

    with pytest.raises(ValueError, match=r"`length` must be a function that returns as many numbers at each row"):
        lw.write_lengths(path, out, length=length, bad="one")


def test_what_a_function_raises_is_told_in_one_line(tmp_path, out):
    path = one_file(tmp_path / "data", x=[1])

    def length(batch):
        raise RuntimeError(f"{batch['x'][0]}\nb " * 500)

    with pytest.raises(ValueError, match=r"row 0, length raised RuntimeError: 1 b 1 b") as told:
        lw.write_lengths(path, out, length=length)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 1000


def link_to_nothing(folder):
    (folder / "a.parquet").symlink_to("nothing.parquet")


def empty_first_file(folder):
    (folder / "a.parquet").touch()


def partition_named_as_a_column(folder):
    one_file(folder / "x=abc", x=[1])


@pytest.mark.parametrize("spoil", [link_to_nothing, empty_first_file, partition_named_as_a_column])
def test_files_that_do_not_fit_together_are_refused_in_one_sentence(tmp_path, out, spoil):
    one_file(tmp_path / "data", x=[1])
    spoil(tmp_path / "data")
    with pytest.raises(ValueError, match=r"^`source` must be of files that can be read together, but is .*\)\.$"):
        lw.write_lengths(tmp_path / "data", out, column="x")


def test_an_empty_path_is_not_the_folder_we_are_in(tmp_path, out, monkeypatch):
    monkeypatch.chdir(one_file(tmp_path / "data", x=[1]).parent)
    with pytest.raises(FileNotFoundError, match=r"^`source` must be a file or folder that is there, but is ''"):
        lw.write_lengths("", out, column="x")


def test_a_column_is_text(tmp_path, out):
    with pytest.raises(TypeError, match=r"^`column` must be text, but is 5\."):
        lw.write_lengths(one_file(tmp_path / "data", x=[1]), out, column=5)  # pyright: ignore[reportArgumentType]


def test_too_many_bad_rows_stop_the_run(folder, out):
    with pytest.raises(ValueError, match=r"^`max_bad` must be at least the number of bad rows, but is 2: length must"):
        lw.write_lengths(folder, out, length=lambda batch: np.zeros(batch.num_rows), max_bad=2)


def test_texts_need_a_count(tmp_path, out):
    path = one_file(tmp_path / "a", text=["größer als", "x"])
    with pytest.raises(ValueError, match=r"^`text` must be a column of numbers or lists, but is 'text'. Give `count`"):
        lw.write_lengths(path, out, column="text")
    assert lw.write_lengths(path, out, column="text", count="characters").lengths.tolist() == [10, 1]
    assert lw.write_lengths(path, out, column="text", count="words").lengths.tolist() == [2, 1]
    path = one_file(tmp_path / "a", few=pa.array(["a b", None, "a b"]).dictionary_encode(), n=[1, 2, 3])
    assert lw.write_lengths(path, out, column="few,n", count="words", bad="drop").lengths.tolist() == [[2, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"^`count` must be given for texts only, but is 'words'\."):
        lw.write_lengths(path, out, column="n", count="words")


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-2, 300), st.just(70_000)), max_size=9)


@settings(max_examples=25)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from(["one", "drop"]), st.integers(1, 5))
def test_any_rows_are_written_in_order_and_found_again(tmp_path_factory, files, bad, batch_size):
    folder = tmp_path_factory.mktemp("any")
    for number, rows in enumerate(files):
        one_file(folder / "n", f"{number}.parquet", n=pa.array(rows, pa.int32()))
    places = [(number, row) for number, rows in enumerate(files) for row in range(len(rows))]
    good = [(number, row) for number, row in places if (files[number][row] or 0) >= 1]
    kept = good if bad == "drop" else places
    if not kept:
        return
    found = lw.write_lengths(folder / "n", folder / "lengths.npy", column="n", bad=bad, batch_size=batch_size)
    assert found.lengths.tolist() == [max(1, files[number][row] or 1) for number, row in kept]
    assert found.lengths.dtype.itemsize == (4 if 70_000 in found.lengths else 2 if found.lengths.max() > 255 else 1)
    assert [found.find(k) for k in range(len(kept))] == [(str(folder / "n" / f"{f}.parquet"), row) for f, row in kept]
    assert [places[row] for row in found.rows(range(len(kept)))] == kept
    listed = [(int(Path(row.piece).stem), row.row_in_piece) for row in found.bad_rows]
    assert listed == [place for place in places if place not in good]


SCRIPT = """
import os, signal, sys
from pathlib import Path
import lengthwise as lw

folder, out, killed_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seen = Path(out).with_name("seen")

def length(batch):
    with seen.open("a") as file:
        file.write(f"{batch.num_rows}\\n")
    if len(seen.read_text().split()) == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return [len(row) for row in batch["tokens"]]

print(lw.write_lengths(folder, out, length=length).lengths.tolist())
"""


def killed(folder, out, at):
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(folder), str(out), str(at)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_that_is_killed_goes_on_at_the_next_file(folder, out):
    # Files of two row groups are read in two batches: the third file's first is the fourth that is seen.
    first = killed(folder, out, 4)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert names_beside(out) == ["lengths.npy.parts"]
    parts = {path.name for path in Path(f"{out}.parts").iterdir()}
    assert {"source.json", "00000000.part", "00000001.part"} <= parts
    assert "00000002.part" not in parts
    second = killed(folder, out, 0)
    assert (second.returncode, second.stderr) == (0, "")
    assert json.loads(second.stdout) == LENGTHS
    # 2 + 1 rows and 2 rows were read once; of the third file 2 rows twice; then its rest, and the fourth.
    assert (out.parent / "seen").read_text().split() == ["2", "1", "2", "2", "2", "2", "1"]
    assert names_beside(out) == ["lengths.npy", "lengths.npy.json"]


@pytest.mark.parametrize("wrong", [[0.5], ["a"], None, True, 2**70])
def test_sequences_are_whole_numbers(folder, out, wrong):
    found = lw.write_lengths(folder, out, column="tokens")
    with pytest.raises(TypeError, match=r"^`sequences` must be whole numbers, but is"):
        found.rows(wrong)
    assert found.rows([]).tolist() == []


def test_a_file_of_pairs_counts_its_sequences(tmp_path, out):
    path = one_file(tmp_path / "data", n=[3, 0, 4], m=[5, 6, 7])
    found = lw.write_lengths(path, out, column="n,m", bad="drop")
    assert (len(found), repr(found)) == (2, f"LengthsFile({str(out)!r}: 2 sequences of 3 rows in 1 pieces)")
    for wrong, at in ([0, -1], -1), ([-2, 9], -2), ([1, 2], 2):
        with pytest.raises(ValueError, match=rf"^`sequences` must be from 0 to 1, but is {at}\."):
            found.rows(wrong)
    numbers = np.arange(2)
    for kept in (found, lw.write_lengths(path, tmp_path / "all.npy", column="m")):
        kept.rows(numbers)[:] = 9
    assert numbers.tolist() == [0, 1]


HOLDER = """
import sys
from lengthwise import files
with files.hold_folder(sys.argv[1]) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")
@pytest.mark.parametrize("resume", [True, False])
def test_a_second_process_is_refused_until_the_first_is_done_or_killed(folder, out, resume):
    command = [sys.executable, "-c", HOLDER, f"{out}.parts"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with pytest.raises(ValueError, match=r"^`out` must be written by one process at a time, but is .*Wait until"):
            lw.write_lengths(folder, out, column="tokens", resume=resume)
        assert names_beside(out) == ["lengths.npy.parts"]
        other.kill()
    assert lw.write_lengths(folder, out, column="tokens", resume=resume).lengths.tolist() == LENGTHS
    assert names_beside(out) == ["lengths.npy", "lengths.npy.json"]


def test_sources_that_changed_meanwhile_are_refused(folder, out):
    assert killed(folder, out, 4).returncode == -signal.SIGKILL
    one_file(folder / "year=2024", "part-1.parquet", tokens=[[1, 2]], audio=[{"frames": 20}])
    again = killed(folder, out, 0)
    told = again.stderr.strip().splitlines()[-1]
    assert told == (
        "ValueError: `source` must be as it was when the run began, but is changed: "
        f"{folder}/year=2024/part-1.parquet is not the same. "
        f"Give resume=False to begin anew, or bring back what the parts in {out}.parts were made of."
    )
    (folder / "year=2024" / "part-1.parquet").unlink()
    assert "changed: it had 4 pieces and has 3" in killed(folder, out, 0).stderr
    with pytest.raises(ValueError, match="changed: column was None and is 'tokens'"):
        lw.write_lengths(folder, out, column="tokens")
    lw.write_lengths(folder, out, column="tokens", resume=False)
    assert np.load(out).tolist() == LENGTHS[:-1]


def test_a_second_call_reads_nothing_and_another_source_is_written_anew(folder, out):
    calls = []

    def length(batch):
        calls.append(batch.num_rows)
        return [len(row) for row in batch["tokens"]]

    lw.write_lengths(folder, out, length=length)
    read = len(calls)
    assert lw.write_lengths(folder, out, length=length).lengths.tolist() == LENGTHS
    assert len(calls) == read
    lw.write_lengths(folder, out, length=length, resume=False)
    assert len(calls) == 2 * read
    os.utime(folder / NAMES[0], ns=(1, 1))
    lw.write_lengths(folder, out, length=length)
    assert len(calls) == 3 * read


def rewrite_at_the_same_time(folder, rows):
    """Of another size, with the time of before: as a copy may have it."""
    path = one_file(folder, n=[*rows, *range(1, 99 * rows[0])])
    os.utime(path, ns=(1, 1))
    return path


def put_into_a_store(folder, rows):
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put(str(one_file(folder, n=rows)), "/changed/n.parquet")
    return "memory://changed/n.parquet"


CHANGING = {
    "a file": rewrite_at_the_same_time,
    "a store": put_into_a_store,
    "files of several data sets": lambda folder, rows: dataset.dataset([dataset.dataset(one_file(folder, n=rows))]),
    "memory": lambda _, rows: dataset.dataset(pa.table({"n": rows})),
    "memory of two": lambda _, rows: dataset.dataset([pa.table({"n": rows}), pa.table({"n": [7]})]),
}


@pytest.mark.parametrize("make", CHANGING.values(), ids=CHANGING)
def test_a_source_that_has_changed_is_read_again(tmp_path, out, make):
    for rows in ([3, 1], [4, 1], [5, 9, 2]):
        found = lw.write_lengths(make(tmp_path / "data", rows), out, column="n")
        assert found.lengths.tolist()[: len(rows)] == rows


def test_files_of_several_data_sets_are_not_read_twice(tmp_path, out):
    parts = [one_file(tmp_path / name, n=rows) for name, rows in (("a", [3, 1]), ("b", [4]))]
    source = dataset.dataset([dataset.dataset(path) for path in parts])
    written = []
    for _ in range(2):
        assert lw.write_lengths(source, out, column="n").pieces == [(str(parts[0]), 2), (str(parts[1]), 1)]
        written.append(out.stat().st_ino)
    assert written[0] == written[1]
    memory = dataset.dataset([pa.table({"n": [3, 1]}), pa.table({"n": [4]})])
    assert lw.write_lengths(memory, out, column="n").pieces == [("fragment 0", 2), ("fragment 1", 1)]


def test_a_schema_that_has_changed_is_read_again(tmp_path, out):
    path = one_file(tmp_path / "data", n=[7, 12])
    for kind, lengths in ((pa.int64(), [1, 2]), (pa.float64(), [3, 4])):  # 7 and 12; 7.0 and 12.0
        source = dataset.dataset(path, schema=pa.schema([("n", kind)]))
        found = lw.write_lengths(source, out, length=lambda batch: [len(str(n)) for n in batch["n"].to_pylist()])
        assert found.lengths.tolist() == lengths


def by_default(k):
    def length(batch, k=k):
        return [k] * batch.num_rows

    return length


def by_keyword(k):
    def length(batch, *, k=k):
        return [k] * batch.num_rows

    return length


def around(k):
    def length(batch):
        return [k] * batch.num_rows

    return length


def decorated(k):
    inner = (lambda batch: [3] * batch.num_rows) if k == 3 else (lambda batch: [4] * batch.num_rows)

    @functools.wraps(around)
    def length(batch):
        return inner(batch)

    return length


def twice(k):
    def wrap(inner, add):
        return lambda batch: [each + add for each in inner(batch)]

    return wrap(wrap(around(1), k - 2), 1)


def an_object(k):
    class Length:
        if k == 3:

            def __call__(self, batch):
                return [3] * batch.num_rows

        else:

            def __call__(self, batch):
                return [4] * batch.num_rows

    return Length()


FUNCTIONS = {
    **{"default": by_default, "keyword": by_keyword, "around": around, "decorated": decorated, "twice": twice},
    "partial": lambda k: functools.partial(by_default(k)),
    "given": lambda k: functools.partial(lambda batch, k: [k] * batch.num_rows, k=k),
    "object": an_object,
    "method": lambda k: an_object(k).__call__,
}


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_computes_something_else_is_called_again(tmp_path, out, make):
    path = one_file(tmp_path / "data", n=[1, 2])
    written = []
    for k in (3, 3, 4):
        assert lw.write_lengths(path, out, length=make(k)).lengths.tolist() == [k, k]
        written.append(out.stat().st_ino)
    assert [written[0] == written[1], written[1] == written[2]] == [True, False]  # the same file, and another


def test_a_function_that_calls_itself_is_named(tmp_path, out):
    def count(rows):
        return 1 + count(rows[1:]) if len(rows) else 0

    path = one_file(tmp_path / "data", n=[1, 2])
    assert lw.write_lengths(path, out, length=lambda batch: [count(batch["n"])] * 2).lengths.tolist() == [2, 2]


@pytest.mark.parametrize("rows_of_a_group", [1_000, 20_000])
def test_memory_is_bounded_by_a_batch(tmp_path, out, rows_of_a_group):
    rows, width = 20_000, 400
    table = pa.table({"tokens": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(rows * width) % 977), width)})
    parquet.write_table(
        table.cast(pa.schema([("tokens", pa.list_(pa.int64()))])),
        tmp_path / "a.parquet",
        row_group_size=rows_of_a_group,
    )
    whole = table.nbytes
    del table
    before, peak = pa.total_allocated_bytes(), []

    def length(batch):
        peak.append(pa.total_allocated_bytes() - before)
        return [len(row) for row in batch["tokens"]]

    lw.write_lengths(tmp_path / "a.parquet", out, length=length, batch_size=100)
    assert np.load(out).tolist() == [width] * rows
    assert max(peak) < whole / 5


def test_a_bar_is_shown_on_a_terminal_alone(folder, out, capsys, monkeypatch):
    lw.write_lengths(folder, out, column="tokens")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lw.write_lengths(folder, out, column="tokens", resume=False)
    assert "4/4" in capsys.readouterr().err
    lw.write_lengths(folder, out, column="tokens", resume=False, progress=False)
    assert capsys.readouterr().err == ""


def test_a_folder_that_is_not_of_parts_is_left_alone(folder, out):
    Path(f"{out}.parts").mkdir()
    Path(f"{out}.parts/mine.txt").write_text("mine")
    for resume in (True, False):
        with pytest.raises(ValueError, match=r"^`source` must be a folder of parts, or none, but is .*Move it away"):
            lw.write_lengths(folder, out, column="tokens", resume=resume)
    assert Path(f"{out}.parts/mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ("tokens", {"column": "token"}, "`column` must be one of tokens, "),
        ("tokens", {}, "`column` must be one of tokens, audio, year, but is None"),
        ("tokens", {"length": 5}, "`length` must be a function, but is 5."),
        ("tokens", {"length": len, "column": "tokens"}, "`column` must be left out beside `length`, but is 'tokens'."),
        (
            "tokens",
            {"column": "tokens", "frame_shift": 0.01},
            "`frame_shift` must be given for seconds only, but is 0.01.",
        ),
        ("tokens", {"column": "tokens", "bad": "ignore"}, "`bad` must be one of error, one, drop, but is 'ignore'."),
        ("tokens", {"column": "tokens", "engine": "spark"}, "`engine` must be one of ray, dask, but is 'spark'."),
        ("tokens", {"column": "tokens", "workers": 2}, "`workers` must be left out here, but is 2."),
        (
            "tokens",
            {"column": "tokens", "count": "tokens"},
            "`tokenizer` must be given, because tokens are counted, but",
        ),
        ("tokens", {"column": "tokens", "tokenizer": "a"}, "`tokenizer` must be left out unless tokens are counted"),
        ("tokens", {"column": "tokens", "max_bad": -1}, "`max_bad` must be at least 0, but is -1."),
        ("tokens", {"column": "tokens", "batch_size": 0}, "`batch_size` must be at least 1, but is 0."),
        ("tokens", {"column": "audio"}, "`audio` must be a column of numbers, lists or texts, but is 'struct"),
        ("nothing", {"column": "a"}, "`source` must be a file or folder that is there, but is 'nothing'."),
        ("tokens/README.md", {"column": "a"}, "`source` must be a file or folder of a known format, but is "),
        ([], {"column": "a"}, "`source` must be a file or folder of a known format, but is '[]'."),
        ("tokens", {"column": "tokens", "workers": 0}, "`workers` must be left out here, but is 0."),
        (
            [3, 4],
            {"column": "a"},
            "`source` must be a path, a list of paths, or a data set of pyarrow, datasets, Ray or",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(folder, out, monkeypatch, source, options, told):
    monkeypatch.chdir(folder.parent)
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=f"^{re.escape(told)}"):
        lw.write_lengths(source, out, **options)
    assert not out.exists()


def test_of_several_files_the_one_of_no_known_format_is_named(folder, out):
    wrong = folder / "README.md"
    with pytest.raises(ValueError, match=rf"^`source` must be a file or folder of a known format, but is '{wrong}'\."):
        lw.write_lengths([folder / NAMES[0], wrong], out, column="tokens")


def test_an_engine_that_is_not_installed_is_named(folder, out, monkeypatch):
    monkeypatch.delitem(sys.modules, "lengthwise.engines.dask", raising=False)
    monkeypatch.setitem(sys.modules, "dask.base", None)
    with pytest.raises(ModuleNotFoundError, match=r"^`engine` must be installed, but is 'dask'\. Install it: pip inst"):
        lw.write_lengths(folder, out, column="tokens", engine="dask")


@pytest.mark.parametrize(
    ("name", "told"), [("lengths.txt", "the path of a .npy file on a disk"), ("no/a.npy", "in a folder")]
)
def test_the_file_to_write_is_checked_first(folder, tmp_path, name, told):
    with pytest.raises((ValueError, FileNotFoundError), match=f"^`out` must be {told}"):
        lw.write_lengths(folder, tmp_path / name, column="tokens")


def test_files_of_two_formats_and_damaged_files_are_named(folder, out):
    (folder / "rows.csv").write_text("tokens\n1\n")
    with pytest.raises(ValueError, match=r"of files of one format, and not of (csv and parquet|parquet and csv)"):
        lw.write_lengths(folder, out, column="tokens")
    (folder / "rows.csv").unlink()
    path = folder / NAMES[2]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=f"^`source` must be of files that can be read, but is '{path}'"):
        lw.write_lengths(folder, out, column="tokens")
    assert {"00000000.part", "00000001.part"} <= {each.name for each in Path(f"{out}.parts").iterdir()}


def test_a_file_that_was_removed_and_a_filter_are_refused(folder, out):
    whole = dataset.dataset(folder, format="parquet", exclude_invalid_files=True)
    with pytest.raises(ValueError, match=r"^`source` must be a data set without a filter, but is "):
        lw.write_lengths(whole.filter(dataset.field("year") > 1), out, column="tokens")
    (folder / NAMES[2]).unlink()
    with pytest.raises(ValueError, match=f"^`source` must be of files that can be read, but is '{folder / NAMES[2]}'"):
        lw.write_lengths(whole, out, column="tokens")


def test_a_damaged_part_is_named(folder, out):
    assert killed(folder, out, 4).returncode == -signal.SIGKILL
    part = Path(f"{out}.parts/00000000.part")
    part.write_bytes(part.read_bytes()[:-3])
    assert f"`source` must be a whole part, but is '{part}'. Remove it" in killed(folder, out, 0).stderr


def test_a_sidecar_of_another_file_is_refused(folder, out):
    lw.write_lengths(folder, out, column="tokens")
    for other in (np.ones(3, np.uint8), np.ones(10, np.int64), np.ones((10, 1), np.uint8)):
        np.save(out, other)
        with pytest.raises(ValueError, match=r"^`source` must be a file of lengths as it was written, but is"):
            lw.LengthsFile(out)
    Path(f"{out}.json").write_text("[")
    with pytest.raises(ValueError, match=r"^`source` must be the .json beside a file of lengths, but is"):
        lw.LengthsFile(out)
    Path(f"{out}.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"^`source` must be a file that is there, but is"):
        lw.LengthsFile(out)
    assert lw.write_lengths(folder, out, column="tokens").lengths.tolist() == LENGTHS


@pytest.mark.parametrize(
    "change",
    [
        *[{"pieces": pieces} for pieces in (None, [["a", 1]], [["a", "", "b"]], [["a", "", 9]])],
        *[{"bad_rows": None}, {"bad_rows": [[1, "a"]]}, {"bad_rows": [["a", "a", 1, ""]]}, {"shape": None}],
        {"bad": "drop", "bad_rows": [[1, "a", 1, ""]]},
    ],
)
def test_a_damaged_sidecar_is_refused_and_written_anew(folder, out, change):
    lw.write_lengths(folder, out, column="tokens")
    sidecar = Path(f"{out}.json")
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | change))
    with pytest.raises(ValueError, match=r"^`source` must be the \.json beside a file of lengths, but is"):
        lw.LengthsFile(out)
    assert lw.write_lengths(folder, out, column="tokens").lengths.tolist() == LENGTHS
    assert lw.LengthsFile(out).find(9) == (str(folder / NAMES[3]), 0)


@pytest.mark.parametrize("kept", [0, 5, -1])
def test_a_damaged_file_of_lengths_is_refused_and_written_anew(folder, out, kept):
    lw.write_lengths(folder, out, column="tokens")
    out.write_bytes(out.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"^`source` must be a whole \.npy file, but is .*Write the lengths again"):
        lw.LengthsFile(out)
    assert lw.write_lengths(folder, out, column="tokens").lengths.tolist() == LENGTHS
