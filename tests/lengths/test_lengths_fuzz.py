"""Whatever bytes a file holds, they are lengths or one of our sentences; never another error."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.lengths import read_lengths

NAMES = [
    "a.npy",
    "a.npz",
    "a.txt",
    "utt2dur",
    "a.csv",
    "a.tsv",
    "a.jsonl",
    "a.json",
    "a.parquet",
    "a.arrow",
    "a.csv.gz",
]
TABLE = pa.table({"n": [3, 1, 2]})


def npy():
    buffer = io.BytesIO()
    np.save(buffer, np.array([3, 1, 2]))
    return buffer.getvalue()


def npz():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, n=np.array([3, 1, 2]))
    return buffer.getvalue()


def parquet():
    buffer = io.BytesIO()
    pq.write_table(TABLE, buffer)
    return buffer.getvalue()


def arrow():
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return buffer.getvalue()


WHOLE = {
    "a.npy": npy(),
    "a.npz": npz(),
    "a.parquet": parquet(),
    "a.arrow": arrow(),
    "a.jsonl": b'{"n": 3}\n{"n": 1}\n',
    "a.csv": b"n\n3\n",
}


def read_or_refuse(path, content):
    path.write_bytes(content)
    try:
        lengths = read_lengths(path)
    except (ValueError, TypeError) as error:
        refusal = str(error)
    else:
        assert lengths.dtype == np.int64
        assert len(lengths) > 0
        assert (lengths >= 1).all()
        return
    assert refusal.startswith("`")
    assert " must be " in refusal


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("fuzz") / name

    @settings(max_examples=30)
    @given(st.binary(max_size=40) | st.text(alphabet='0123456789.,-\t\n"[]{}: na', max_size=40).map(str.encode))
    def check(content):
        read_or_refuse(path, content)

    check()


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_one_damaged_byte(tmp_path_factory, name):
    path, whole = tmp_path_factory.mktemp("fuzz") / name, WHOLE[name]

    @settings(max_examples=60)
    @given(st.integers(0, len(whole) - 1), st.integers(0, 255))
    def check(at, byte):
        read_or_refuse(path, whole[:at] + bytes([byte]) + whole[at + 1 :])

    check()
