"""Writes columns into a file of the format that its suffix names, for the tests that read it back."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet


def write_table(path, **columns):
    """Writes `columns` to `path` and returns it. Its last suffix is `.saved` for a folder as Hugging Face saves it.

    Parquet and Arrow files get groups of two rows; `.gz` packs a text file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.lower().removesuffix(".gz")
    suffix = name[name.rindex(".") :]
    if suffix == ".saved":
        write_table(path / "data.stream", **columns)
        (path / "dataset_info.json").write_text("{}")
        (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.stream"}]}))
    elif suffix in (".parquet", ".pq"):
        parquet.write_table(pa.table(columns), path, row_group_size=2)
    elif suffix in (".arrow", ".feather", ".stream"):
        new = pa.ipc.new_stream if suffix == ".stream" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as file, new(file, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns), max_chunksize=2)
    else:
        text = _as_text(suffix, columns).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def _as_text(suffix, columns):
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if suffix == ".json":
        return json.dumps(rows)
    if suffix in (".jsonl", ".ndjson"):
        return "".join(json.dumps(row) + "\n" for row in rows)
    text = io.StringIO()
    table = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    table.writerows([columns, *(row.values() for row in rows)])
    return text.getvalue()


def as_bytes(save):
    """Returns what `save(file)` writes."""
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def npy(values):
    """Returns the bytes of an .npy file."""
    return as_bytes(lambda file: np.save(file, values, allow_pickle=True))


def npz(**arrays):
    """Returns the bytes of an .npz file."""
    return as_bytes(lambda file: np.savez_compressed(file, **arrays))
