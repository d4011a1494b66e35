"""Rows of a large data set that have no length: named with their files and reasons, or counted as 1 on request."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset

import lengthwise as lw
from table_files import write_table


def test_bad_rows_are_named_with_their_files(tmp_path, out):
    for name, rows in (("a", [7, -2, 8]), ("b", [None, None]), ("c", [9, -1, 4])):
        write_table(tmp_path / "data" / f"{name}.parquet", n=pa.array(rows, pa.int64()))
    at = tmp_path / "data"
    message = (
        '4 of 8 rows of `source` have no length. Repair them, or count each as 1 by bad="one" (--bad one). Row 1: '
        f"`n` must be at least 1, but is -2 at row 1 of {at}/a.parquet. Drop the sequence or repair its length. Row 3: "
        f"`n` must be given, but is None at row 0 of {at}/b.parquet. Fill it in, or drop the row. Row 4: `n` must be "
        f"given, but is None at row 1 of {at}/b.parquet. Fill it in, or drop the row."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lw.write_lengths(at, out, column="n")
    assert not out.exists()
    written = lw.write_lengths(at, out, column="n", bad="one")
    assert written.lengths.tolist() == [7, 1, 8, 1, 1, 9, 1, 4]
    assert [row for row, _ in written.bad_rows] == [1, 3, 4, 6]
    reason = f"`n` must be at least 1, but is -1 at row 1 of {at}/c.parquet. Drop the sequence or repair its length."
    assert written.bad_rows[-1].reason == reason


def test_reasons_show_what_would_colour_a_terminal(tmp_path, out):
    path = write_table(tmp_path / "\x1b[31ma.parquet", **{"n\x9b1m": [7, 0]})
    with pytest.raises(ValueError, match=r"Row 1: `n\\x9b1m` must be at least 1, but is 0 at row 1 of .*\\x1b\[31ma"):
        lw.write_lengths(path, out, column="n\x9b1m")
    (row,) = lw.write_lengths(path, out, column="n\x9b1m", bad="one").bad_rows
    assert row.reason.isprintable()


@pytest.mark.parametrize(
    ("value", "options", "reason"),
    [
        (1.5, {}, "`n` must be a whole number, but is 1.5 at"),
        (float("inf"), {"frame_shift": 0.01}, "`n` must be finite and above 0, but is inf"),
        ([], {}, "`n` must be at least 1, but is 0"),
    ],
)
def test_reasons_of_bad_rows(tmp_path, out, value, options, reason):
    good = {float: 160.0, int: 160, list: [1], str: "word"}[type(value)]
    path = write_table(tmp_path / "a.parquet", n=[good, value, None, good])
    written = lw.write_lengths(path, out, column="n", bad="one", **options)
    assert [row for row, _ in written.bad_rows] == [1, 2]
    assert written.bad_rows[0].reason.startswith(reason)
    assert written.lengths[1:3].tolist() == [1, 1]


def test_a_row_of_several_lengths_is_bad_as_a_whole(tmp_path, out):
    path = write_table(tmp_path / "a.parquet", n=[3, 0, 4], m=[0, None, 5])
    written = lw.write_lengths(path, out, column="n,m", bad="one")
    assert written.lengths.tolist() == [[1, 1], [1, 1], [4, 5]]
    assert [reason[:22] for _, reason in written.bad_rows] == ["`m` must be at least 1", "`n` must be at least 1"]


def test_too_many_bad_rows_stop_the_run(tmp_path, out):
    path, seen = write_table(tmp_path / "a.parquet", n=[1] * 9), []

    def length(batch):
        seen.append(batch.num_rows)
        return np.zeros(batch.num_rows)

    with pytest.raises(ValueError, match=r"^`max_bad` must be at least the number of bad rows, but is 2\. .*Row 0: "):
        lw.write_lengths(path, out, length=length, max_bad=2, batch_size=2)
    assert seen == [2, 2]


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-2, 300), st.just(70_000)), max_size=9)


@settings(max_examples=25)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.integers(1, 5))
def test_any_rows_are_written_in_order(tmp_path_factory, files, batch_size):
    folder = tmp_path_factory.mktemp("any")
    for number, rows in enumerate(files):
        write_table(folder / "n" / f"{number}.parquet", n=pa.array(rows, pa.int32()))
    cells = [cell for rows in files for cell in rows]
    if not cells:
        return
    written = lw.write_lengths(folder / "n", folder / "lengths.npy", column="n", bad="one", batch_size=batch_size)
    assert written.lengths.tolist() == [max(1, cell or 1) for cell in cells]
    assert written.lengths.dtype.itemsize == (4 if 70_000 in cells else 2 if max(written.lengths) > 255 else 1)
    assert [row for row, _ in written.bad_rows] == [row for row, cell in enumerate(cells) if cell is None or cell < 1]


def test_a_function_may_answer_numbers_alone(tmp_path, out):
    path = write_table(tmp_path / "a.parquet", n=[1, 2, 3])
    lists = [1, 2], ["a", "b", "c"], [True] * 3, [1, None, 2], [[1], [2, 3], [4]]
    for answer in (*lists, 7, np.ones((3, 1, 1)), np.ones((3, 0))):
        with pytest.raises(ValueError, match=r"^`length` must be a function that returns \[3\] or \[3, dims\] n"):
            lw.write_lengths(path, out, length=lambda _, answer=answer: answer)
    widths = iter([np.ones((2, 2)), np.ones((1, 3))])
    with pytest.raises(ValueError, match=r"^`length` must be a function that returns rows of one shape"):
        lw.write_lengths(path, out, length=lambda _: next(widths), batch_size=2)
    written = lw.write_lengths(path, out, length=lambda batch: batch["n"].to_numpy() / [1, np.nan, 1], bad="one")
    assert written.lengths.tolist() == [1, 1, 3]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_nulls_among_texts_of_every_type_are_bad_rows(out, kind):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    source = dataset.dataset(pa.table({"n": pa.array(["a b", None, "", "c"], getattr(pa, kind)())}))
    written = lw.write_lengths(source, out, column="n", count="words", bad="one")
    assert written.lengths.tolist() == [2, 1, 1, 1]
    assert [row for row, _ in written.bad_rows] == [1, 2]
