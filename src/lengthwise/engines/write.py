"""`write_lengths`, which writes the lengths of a large data set into one file, for plans to map."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.engines.sources import Block, Measure, Rule, read_blocks
from lengthwise.files import check_folder, check_path, check_regular, draft, refusals
from lengthwise.lengths.arrays import map_file
from lengthwise.lengths.cells import check_options
from lengthwise.lengths.columns import check_kinds

_SHOWN = 3  # bad rows in an error
_COPIED = 2**20  # lengths that are copied at once


class BadRow(NamedTuple):
    """A row without a length.

    Attributes:
        row: The number of the row in the data set, from 0.
        reason: One sentence. For files, it names the file and the row or line.
    """

    row: int
    reason: str


@dataclass(frozen=True)
class LengthsFile:
    """A file that `write_lengths` wrote. `Windows` and `read_lengths` take it in place of its path.

    Attributes:
        path: The .npy file.
        bad_rows: The rows without a length, by rising number. In the file, each has the length 1.
    """

    path: Path
    bad_rows: list[BadRow] = field(repr=False)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.lengths)

    @cached_property
    def lengths(self) -> NDArray[Any]:
        """The lengths, [n] or [n, dims], mapped into memory, read-only."""
        return map_file(self.path)


def write_lengths(
    source: Any,
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    length: Measure | None = None,
    frame_shift: float | None = None,
    count: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    bad: str = "error",
    max_bad: int = 10_000,
    batch_size: int = 4096,
    progress: bool = True,
) -> LengthsFile:
    r"""Writes the length of every row of a large data set into one file, in the order of the rows.

    `Windows` maps that file, so the data and the lengths may be larger than the memory. The file appears whole, or not
    at all.

    Args:
        source: One of these:

            - the path of a file or a folder, a pattern such as "tokens/*.parquet", or a list of these. A path may be a
              URL that fsspec knows, such as "s3://bucket/tokens". Files are Parquet, Arrow, CSV, TSV, JSON lines, FASTA
              or FASTQ. Those of a folder or a pattern are sorted by path, and those of a list keep its order;
            - a `pyarrow.dataset.Dataset`, in the order of its fragments;
            - a Hugging Face `datasets.Dataset`;
            - a Ray `ray.data.Dataset`, in the order of its blocks, measured on its cluster;
            - a `dask.dataframe.DataFrame`, in the order of its partitions, measured by its scheduler.
        path: The .npy file to write, on a disk. Its folder must exist.
        column: A column of lengths, of lists (their items are counted), or, with `count`, of texts. Several columns,
            as "source,target", give [n, dims]. Nested ones are written as "audio.frames".
        length: In place of `column`: a function that takes a `pyarrow.RecordBatch` of k rows, and returns [k] or
            [k, dims] numbers. Ray and Dask may call it in other processes. Not for CSV, TSV and JSON lines.
        frame_shift: The divisor of durations, as in `read_lengths`. But among several columns, floats count as
            durations even if none has a fraction.
        count: The unit of texts: "characters", "words" or "tokens".
        tokenizer: The path of a tokenizer.json, for tokens. Special tokens are counted; padding and truncation are
            turned off.
        bad: The treatment of rows without a length: a null, an empty list, a number that is not a length. "error" reads
            all rows and then raises. "one" gives each such row the length 1; `LengthsFile.bad_rows` lists them.
        max_bad: The most rows without a length. Once there are more, an error is raised, because the column is most
            likely the wrong one.
        batch_size: The most rows that are measured at once. Dask measures whole partitions.
        progress: If True, counts the rows on a terminal.

    Returns:
        The file. Give it to `Windows`.

    Raises:
        ValueError: Some rows are bad, a file is damaged or of unknown format, a column has no lengths, or an option
            does not apply.
        TypeError: `source` has an unknown type.
        FileNotFoundError: The source, the tokenizer or the folder does not exist.
        ModuleNotFoundError: pyarrow, or the package of the source, is not installed.

    >>> import lengthwise as lw
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"tokens": [5, 6, 7]}\n{"tokens": [8]}\n')
    >>> written = lw.write_lengths(folder / "a.jsonl", folder / "lengths.npy", column="tokens", progress=False)
    >>> written.lengths.tolist(), written.bad_rows
    ([3, 1], [])
    """
    from tqdm import tqdm

    target = _check_path(path)
    checks.check_choice("bad", bad, ("error", "one"))
    checks.check_flag("progress", progress)
    checks.check_whole("max_bad", max_bad, minimum=0, remedy="Give the most bad rows of a run, such as 10_000.")
    checks.check_whole("batch_size", batch_size, minimum=1, remedy="Give rows that fit in memory, such as 4096.")
    if length is not None and not callable(length):
        remedy = "Give one that takes a pyarrow.RecordBatch and returns one number for each of its rows."
        raise checks.type_error("length", "a function", length, remedy)
    for name, value in {"column": column, "frame_shift": frame_shift, "count": count}.items():
        if length is not None and value is not None:
            raise checks.value_error(name, "left out if `length` is given", value, "The function gives the lengths.")
    frame_shift, counted = check_options(column, frame_shift, count, tokenizer)
    rule = Rule(column=column, length=length, frame_shift=frame_shift, count=counted)
    with tempfile.TemporaryFile(dir=target.parent) as spool:
        # Without a terminal, as in the log of a job, nothing is shown.
        with tqdm(unit=" rows", unit_scale=True, disable=None if progress else True) as bar:
            shape, longest, bad_rows = _spool(read_blocks(source, rule, batch_size), spool, max_bad, bar)
        if bad_rows and bad == "error":
            remedy = f'Repair them, or count each as 1 by bad="one" (--bad one). {_show(bad_rows)}'
            raise checks.state_error(f"{len(bad_rows)} of {shape[0]} rows of `source` have no length", remedy)
        if not shape[0]:
            raise checks.value_error("source", "of at least one row", 0, "Is it the right data set?")
        _copy(spool, target, shape, longest)
    return LengthsFile(target, bad_rows)


def save_lengths(lengths: NDArray[np.int64], path: str | os.PathLike[str]) -> None:
    """Writes lengths in memory into a file as `write_lengths` does.

    Raises:
        ValueError: `path` is not the path of a .npy file on a disk.
        FileNotFoundError: The folder of `path` does not exist.
    """
    _copy(io.BytesIO(lengths.tobytes()), _check_path(path), lengths.shape, int(lengths.max(initial=1)))


def _check_path(path: str | os.PathLike[str]) -> Path:
    check_path("path", path)
    target = Path(path)
    if target.suffix != ".npy" or "://" in os.fspath(path):
        remedy = "Plans map the file: write it to a disk, and copy it from there."
        raise checks.value_error("path", "the path of a .npy file on a disk", os.fspath(path), remedy)
    # Check before the rows are read: later, they would have been read in vain.
    check_folder("path", target)
    with refusals(target, "written"):
        check_regular(target)
    if target.is_dir():
        raise checks.value_error("path", "a file, not a folder", os.fspath(path), "Name a file in it, or remove it.")
    return target


def _spool(blocks: Iterable[Block], spool: Any, max_bad: int, bar: Any) -> tuple[tuple[int, ...], int, list[BadRow]]:
    """Writes the lengths as int64 into a file; returns their shape, the longest, and the bad rows."""
    count, longest, bad_rows, kinds = 0, 1, list[BadRow](), dict[int, str]()
    dims: tuple[int, ...] | None = None
    for block in blocks:
        new_dims = block.lengths.shape[1:]
        if new_dims != (dims := new_dims if dims is None else dims):
            rule, remedy = f"a function that returns rows of one shape, {dims}", "Return as many numbers for every row."
            raise checks.value_error("length", rule, new_dims, remedy)
        check_kinds(kinds, block.kinds, f"row {count}")
        bad_rows += [BadRow(count + row, reason) for row, reason in block.reasons.items()]
        if len(bad_rows) > max_bad:
            remedy = f"Is it the right column? If so, give `write_lengths` a larger number. {_show(bad_rows)}"
            raise checks.value_error("max_bad", "at least the number of bad rows", max_bad, remedy)
        spool.write(block.lengths.tobytes())
        bar.update(len(block.lengths))
        count, longest = count + len(block.lengths), max(longest, int(block.lengths.max(initial=1)))
    return (count, *(dims or ())), longest, bad_rows


def _show(bad_rows: list[BadRow]) -> str:
    return " ".join(f"Row {row}: {reason}" for row, reason in bad_rows[:_SHOWN])


def _copy(spool: Any, target: Path, shape: tuple[int, ...], longest: int) -> None:
    """Copies the lengths into the file, in the smallest type that holds them."""
    smallest = np.min_scalar_type(longest)
    # Lengths are below 2**63. NumPy turns uint64 and int64 together into floats, so int64 is the widest.
    dtype = np.dtype("<i8") if smallest.itemsize == 8 else smallest.newbyteorder("<")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    spool.seek(0)
    with draft(target) as append:
        append(header.getvalue())
        while data := spool.read(8 * _COPIED):
            append(np.frombuffer(data, np.int64).astype(dtype).tobytes())
