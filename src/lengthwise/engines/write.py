"""`write_lengths`: the length of every row of a large data set, once, into the one file that plans map."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import (
    check_choice,
    check_flag,
    check_number,
    check_whole,
    type_error,
    value_error,
)
from lengthwise.engines.dispatch import open_source
from lengthwise.engines.lengths_file import BadRow, LengthsFile, sidecar_of
from lengthwise.engines.parts import (
    BAD_ROWS,
    Parts,
    Tail,
    check_shape,
    describe_source,
    holds_parts_of,
    refuse_others,
    remove_parts,
    smallest_type,
)
from lengthwise.engines.rows import Block, Measure, Rule
from lengthwise.engines.source import Source
from lengthwise.lengths.columns import check_sample_shift
from lengthwise.lengths.counts import TextCount, check_count
from lengthwise.lengths.rules import check_dims

BAD = ("error", "one", "drop")
_SHOWN = 3  # bad rows in an error; the others are in a file


def write_lengths(
    source: Any,
    out: str | os.PathLike[str],
    *,
    column: str | None = None,
    length: Measure | None = None,
    frame_shift: float | None = None,
    sample_rate: float | None = None,
    count: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    bad: str = "error",
    max_bad: int = 10_000,
    engine: str | None = None,
    workers: int | None = None,
    batch_size: int = 4096,
    resume: bool = True,
    progress: bool = True,
) -> LengthsFile:
    """Computes the length of every row of a large data set, once, into one file, in the order of the rows.

    `Windows` maps that file into memory, so neither the data nor the lengths need fit there. Beside it, `out`.json says
    which file holds which rows. The data set is read piece by piece: a file, a partition, or a range of rows. The
    lengths of finished pieces are kept in the folder `out`.parts until all are there. A run that was killed goes on at
    the next piece. The file appears whole, or not at all.

    What goes wrong in use: a function `length` that reads global variables or objects, which have changed since. Only
    its name and its code are compared, and the numbers and texts that it holds. Then give `resume=False`.

    Args:
        source: One of these:

            - a folder of files, a file, a pattern as "tokens/*.parquet", or a list of them: Parquet, Arrow, CSV, JSON
              lines or ORC, also by a URL that fsspec knows, as "s3://bucket/tokens". Folders `year=2024` are
              columns. Files of a folder or a pattern are sorted by path; those of a list keep its order;
            - a `pyarrow.dataset.Dataset`, in the order of its fragments; what of it is in memory is read by every call;
            - a Hugging Face `datasets.Dataset`, of which ranges of rows are mapped, and kept in its cache;
            - a Ray `ray.data.Dataset`, in the order of its blocks. It cannot be read from its middle, so a run that
              was killed begins anew; files with `engine="ray"` do not;
            - a `dask.dataframe.DataFrame`, in the order of its partitions.
        out: The .npy file to write, on a disk. Its folder must be there.
        column: The column of lengths, or of lists, which are counted, or of texts with `count`. Several as
            "source,target" give [n, dims]; nested ones as "audio.frames".
        length: In place of `column`: a function that takes a `pyarrow.RecordBatch` of k rows, and returns [k] or
            [k, dims] numbers. Under Ray and Dask it travels to other processes.
        frame_shift: What durations are divided by, as in `read_lengths`; of several columns, those named duration,
            seconds or dur and those of floats.
        sample_rate: Samples in a second, such as 16_000, for a column that counts samples: with it, `frame_shift` is in
            seconds. With several columns it applies to those named num_samples, samples or n_samples.
        count: What is counted in texts: "characters", "words" or "tokens".
        tokenizer: The path of a tokenizer.json, for tokens. Special tokens count; its padding and truncation do not.
        bad: What becomes of rows that have no length: a null, a number that is none, an empty list, an error in
            `length`. "error" reads all rows and then raises; a second call with another word is done at once. "one"
            counts each as 1, so that sequence k stays row k. "drop" leaves them out; then `LengthsFile.rows` says
            which row a sequence is. They are listed in all three cases.
        max_bad: More bad rows than this stop the run, because the column is most likely another one.
        engine: For files: "ray" or "dask" reads them on your cluster; None reads them here, in threads.
        workers: For a Hugging Face data set: its `num_proc`.
        batch_size: The most rows that are measured at once; of Parquet, also the most in memory, in each process. Files
            of lines of text are read 16 MiB at once, others by the batches that they were written in.
        resume: Whether to go on where an earlier run stopped, and to return at once if it had finished.
        progress: Whether to show a bar, on a terminal.

    Returns:
        The file. Give it to `Windows`.

    Raises:
        ValueError: Bad rows, with where they are listed; a source that has changed since the run was killed; a column
            without lengths; an option that does not apply; another process that writes `out`.
        TypeError: A source of another kind.
        FileNotFoundError: No such source, tokenizer or folder.
        ModuleNotFoundError: pyarrow or what the source stands on is not installed.
    """
    target = _check_out(out)
    if column is not None and not isinstance(column, str):
        raise type_error("column", "text", column, 'Write a name, or several columns as "source,target".')
    check_flag("resume", resume)
    found = open_source(source, engine=engine, workers=workers, batch_size=batch_size, resume=resume)
    rule = _make_rule(found, column, length, (frame_shift, sample_rate), check_count(count, tokenizer))
    check_choice("bad", bad, BAD)
    described = describe_source(found.facts | rule.facts, found.pieces)
    again = resume and found.resumes
    folder = target.with_name(target.name + ".parts")
    if again and (finished := _find_finished(target, described, bad)):
        if holds_parts_of(folder, described):  # of a run that was killed before it removed them
            with files.hold_folder(folder) as held:
                if held:
                    remove_parts(folder)
        return finished
    most, shown = _check_max(max_bad), check_flag("progress", progress)
    if not again:
        with _hold(folder, target):
            refuse_others(folder)  # before a part is lost
            remove_parts(folder)
    with _hold(folder, target):
        run = _Run(found, rule, Parts(folder, described), most)
        _assemble(target, described, run, run.measure(shown), bad)
        remove_parts(folder)
    return LengthsFile(target)


@contextmanager
def _hold(folder: Path, target: Path) -> Iterator[None]:
    """Keeps the folder of parts to this process: two that read different data would mix their parts."""
    with files.hold_folder(folder) as held:
        if not held:
            remedy = "Wait until the other one is done, and call again: then it returns at once."
            raise value_error("out", "written by one process at a time", str(target), remedy)
        yield


def _check_out(out: str | os.PathLike[str]) -> Path:
    if not isinstance(out, str | os.PathLike):
        raise type_error("out", "a path", type(out), 'Give the file to write, such as "lengths.npy".')
    path = Path(out)
    if path.suffix != ".npy" or "://" in os.fspath(out):
        remedy = "Plans map it into memory: write it to a disk, and copy it from there."
        raise value_error("out", "the path of a .npy file on a disk", os.fspath(out), remedy)
    files.check_folder("out", path)
    with files.refusals(path, "written"):
        files.check_regular(path)
    if path.is_dir():  # found when all is read, it would have been read for nothing
        raise value_error("out", "a file, and no folder", os.fspath(out), "Name a file in it, or remove it.")
    return path


def _check_max(max_bad: int) -> int:
    return check_whole("max_bad", max_bad, minimum=0, remedy="Give how many bad rows are listed, such as 10_000.")


def _make_rule(
    source: Source,
    column: str | None,
    length: Measure | None,
    shift: tuple[float | None, float | None],
    count: TextCount | None,
) -> Rule:
    frame_shift, sample_rate = shift
    if length is None:
        if frame_shift is not None:
            frame_shift = check_number("frame_shift", frame_shift, remedy="Give seconds, as 0.01.", above=True)
        if sample_rate is not None:
            remedy = "Give samples in a second, such as 16_000."
            sample_rate = check_number("sample_rate", sample_rate, remedy=remedy, above=True)
            check_sample_shift(frame_shift)
        names = source.names(column)
        check_dims(len(names))
        return Rule(names=names, frame_shift=frame_shift, sample_rate=sample_rate, count=count)
    if not callable(length):
        remedy = "Give one that takes a pyarrow.RecordBatch and returns one number for each of its rows."
        raise type_error("length", "a function", length, remedy)
    given = {"column": column, "frame_shift": frame_shift, "sample_rate": sample_rate, "count": count and count.count}
    for name, value in given.items():
        if value is not None:
            remedy = "Give one of the two: the function gives the lengths."
            raise value_error(name, "left out beside `length`", value, remedy)
    return Rule(length=length)


def _find_finished(path: Path, described: dict[str, Any], bad: str) -> LengthsFile | None:
    """The file of an earlier run, if it is of the same source; another one is written anew."""
    try:
        found = LengthsFile(path)
    except (OSError, ValueError):
        return None
    # Without bad rows the word for them makes no difference.
    return found if found.is_of(described) and (found.bad == bad or not found.bad_rows) else None


class _Run:
    """The pieces that are measured, one after the other."""

    def __init__(self, source: Source, rule: Rule, parts: Parts, max_bad: int) -> None:
        self.source = source
        self.parts = parts
        self._rule = rule
        self._max_bad = max_bad
        self._tails: dict[int, Tail] = {}
        self._bad = 0

    def measure(self, progress: bool) -> list[Tail]:
        """Writes the parts that are missing, and returns the ends of all."""
        from tqdm import tqdm

        numbers = range(len(self.source.pieces))
        self._tails = {number: self.parts.tail(number) for number in numbers if self.parts.has(number)}
        self._bad = sum(len(tail.reasons) for tail in self._tails.values())
        self._check_bad(0)
        missing = [number for number in numbers if number not in self._tails]
        # Without a terminal, in the log of a job say, there is no bar.
        with tqdm(
            total=len(numbers), initial=len(self._tails), unit="piece", disable=None if progress else True
        ) as bar:
            for number, blocks in zip(missing, self.source.measure(missing, self._rule), strict=True):
                self._tails[number] = self.parts.write(number, self._watch(blocks, number))
                bar.update()
        return [self._tails[number] for number in numbers]

    def bad_rows(self) -> list[BadRow]:
        """All bad rows of the pieces that are measured, up to the first that is not."""
        found: list[BadRow] = []
        first = 0
        for number, piece in enumerate(self.source.pieces):
            if number not in self._tails:
                break
            tail = self._tails[number]
            found += [BadRow(first + row, piece.name, row, reason) for row, reason in tail.reasons]
            first += tail.rows
        return found

    def _watch(self, blocks: Iterable[Block], number: int) -> Iterator[Block]:
        """Yields the blocks of a piece, and stops the run where they have too many bad rows."""
        for block in blocks:
            self._bad += len(block.reasons)
            self._check_bad(number, block)
            yield block

    def _check_bad(self, number: int, block: Block | None = None) -> None:
        if self._bad <= self._max_bad:
            return
        known = [f"{each.reason} (row {each.row_in_piece} of {each.piece})" for each in self.bad_rows()]
        name = self.source.pieces[number].name
        known += [] if block is None else [f"{reason} (in {name})" for reason in block.reasons.values()]
        remedy = "Is it the right column? Else give a larger number, and call again: what is done is kept."
        rule = f"at least the number of bad rows, but is {self._max_bad}: {'; '.join(known[:_SHOWN])}"
        raise ValueError(f"`max_bad` must be {rule}. {remedy}")


def _assemble(path: Path, described: dict[str, Any], run: _Run, tails: list[Tail], bad: str) -> None:
    """Writes the file of lengths, and after it what it is made of."""
    listed = run.bad_rows()
    if listed and bad == "error":
        _refuse(run, listed, sum(tail.rows for tail in tails))
    shape: tuple[int, ...] | None = None
    for tail in tails:
        shape = shape if tail.shape is None else check_shape(shape, tail.shape, path)
    count = sum(tail.rows for tail in tails) - (len(listed) if bad == "drop" else 0)
    if not count:
        raise value_error("source", "of at least one row that has a length", count, "Is it the right data set?")
    whole = (count, *(shape or ()))
    dtype = smallest_type(max(1, *(tail.longest for tail in tails)))
    pieces = [[*piece, tail.rows] for piece, tail in zip(run.source.pieces, tails, strict=True)]
    facts = {"bad": bad, "shape": whole, "dtype": dtype.str, "facts": described["facts"]}
    with files.draft(path) as more:
        more(_header(dtype, whole))
        for number, tail in enumerate(tails):
            for lengths in run.parts.blocks(number, tail, shape or ()):
                more(_settle(lengths, bad).astype(dtype).tobytes())
        # Two files cannot change at once. A run that is killed between them leaves lengths without a .json, which are
        # not taken for finished; lengths beside the .json of others would be.
        files.remove(sidecar_of(path))
    files.write(sidecar_of(path), json.dumps(facts | {"pieces": pieces, "bad_rows": listed}))


def _settle(lengths: NDArray[Any], bad: str) -> NDArray[Any]:
    """Makes of the bad rows, which have the length 0, what was asked."""
    if bad == "drop":
        return lengths[lengths.reshape(len(lengths), -1).all(axis=1)]
    return np.maximum(lengths, 1)


def _refuse(run: _Run, listed: list[BadRow], rows: int) -> None:
    path = run.parts.folder / BAD_ROWS
    files.write(path, "".join(json.dumps(each._asdict()) + "\n" for each in listed))
    shown = "; ".join(
        f"row {each.row}, {each.reason} (row {each.row_in_piece} of {each.piece})" for each in listed[:_SHOWN]
    )
    found = f"{len(listed)} of {rows} rows have none: {shown}"
    remedy = f'Repair them, or call again with bad="drop" or bad="one"; all are listed in {path}'
    raise ValueError(f"`source` must be rows that have a length each, but is bad: {found}. {remedy}.")


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return header.getvalue()
