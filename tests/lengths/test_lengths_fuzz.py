"""Whatever bytes a file holds, they are lengths or one of our sentences; never another error."""

import json
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lengthwise.lengths import as_lengths, read_lengths
from table_files import as_bytes, npy

WHOLE = {
    "a.npy": npy([3, 1, 2]),
    "a.parquet": as_bytes(lambda file: parquet.write_table(pa.table({"n": [3, 1, 2]}), file)),
    "a.jsonl": b'{"n": 3}\n{"n": 1}\n',
    "a.csv": b"n\n3\n",
}
NAMES = [*WHOLE, "a.arrow", "a.txt", "utt2dur", "a.tsv", "a.json", "a.csv.gz"]


def read_or_refuse(path, content):
    path.write_bytes(content)
    lengths, refusal = tried(read_lengths, path)
    assert np.min(lengths) >= 1 if lengths else refusal.startswith("`") and " must be " in refusal


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_and_one_damaged_byte(tmp_path_factory, name):
    path, whole = tmp_path_factory.mktemp("fuzz") / name, WHOLE.get(name, b"")

    @settings(max_examples=30)
    @given(st.binary(max_size=40) | st.text(alphabet='0123456789.,-\t\n"[]{}: na', max_size=40).map(str.encode))
    def check_bytes(content):
        read_or_refuse(path, content)

    @settings(max_examples=30)
    @given(st.integers(0, len(whole) - 1), st.integers(0, 255))
    def check_damage(at, byte):
        read_or_refuse(path, whole[:at] + bytes([byte]) + whole[at + 1 :])

    check_bytes()
    if whole:
        check_damage()


def tried(read, values, **options):
    """The lengths and "", or None and the sentence that refuses them."""
    try:
        return read(values, **options).tolist(), ""
    except (ValueError, TypeError) as error:
        return None, str(error)


def is_sentence(refusal):
    return refusal.startswith("`") and " must be " in refusal and "\n" not in refusal


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
CELLS = {
    "a.txt": "{}\n",
    "utt2num_frames": "a {}\n",
    "a.csv": "n,m\n{},1\n",
    "a.tsv": "n\tm\n{}\t1\n",
    "a.jsonl": '{{"n": "{}"}}\n',
}


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_cell_is_the_number_it_shows_or_is_refused(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("fuzz") / name

    @settings(max_examples=50)
    @given(st.text("0123456789", min_size=15, max_size=21) | st.text("0123456789_.eE+-１٣²\xa0", min_size=1))
    @example("9007199254740993.0")
    @example("9007199254740993e0")
    @example("1_000")
    @example("１２")
    def check(text):
        path.write_text(CELLS[name].format(text), encoding="utf-8")
        lengths, refusal = tried(read_lengths, path, column="n" if path.suffix in (".csv", ".tsv") else None)
        if lengths is None:
            assert is_sentence(refusal)
            return
        (length,) = lengths
        assert NUMBER.fullmatch(text)
        assert abs(Fraction(text) - length) * 2**53 <= length  # as exact as a float
        assert not text.isdigit() or int(text) == length

    check()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("1_n", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("1n", max_size=2), inner, max_size=2),
    max_leaves=5,
)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_any_json_is_a_count_a_number_or_one_sentence(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("fuzz") / name

    @settings(max_examples=30)
    @given(st.lists(VALUES, min_size=1, max_size=3), st.sampled_from([None, 1]))
    def check(values, indent):
        records = [{"n": value} for value in values]
        rows = "\n".join(map(json.dumps, records))
        path.write_text(json.dumps(records, indent=indent) if name == "a.json" else rows)
        lengths, refusal = tried(read_lengths, path)
        if lengths is None:
            assert is_sentence(refusal)
        else:
            assert lengths == [length_of(value) for value in values]

    check()


def length_of(value):
    """What a JSON value says: the count of a list of single items, or the number."""
    if isinstance(value, list):
        assert not value or not isinstance(value[0], list)
        return len(value)
    assert not isinstance(value, bool)
    return int(value)


ROWS = st.lists(st.lists(st.integers(-1, 9) | st.booleans() | st.floats(), max_size=4), max_size=4)


@given(ROWS | ROWS.map(tuple) | ROWS.map(iter) | VALUES)
def test_any_object_of_python_is_lengths_or_one_sentence(values):
    """Rows in a list are pairs at most: a list of token lists is never taken for many lengths of each sequence."""
    lengths, refusal = tried(as_lengths, values)
    if lengths is None:
        assert is_sentence(refusal)
        return
    assert lengths == [list(map(int, row)) if isinstance(row, list) else int(row) for row in values]
    rows = [row if isinstance(row, list) else [row] for row in values]
    assert all(len(row) <= 2 for row in rows)
    assert not any(isinstance(value, bool) for row in rows for value in row)
