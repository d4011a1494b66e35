"""A file of lengths, and beside it what it was made of: which row of which file each length is of.

lengths.npy         [n] or [n, dims], in the smallest type that holds them
lengths.npy.json    the pieces of the data set in their order, with their rows; and the rows that are bad
"""

from __future__ import annotations

import json
import operator
import os
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import type_error, value_error
from lengthwise.lengths.mapped import keep_mapped
from lengthwise.lengths.sources import source_error, source_sentence

_SIDECAR = ".json"


class BadRow(NamedTuple):
    """A row that has no length.

    Attributes:
        row: Its number in the data set, from 0.
        piece: The file or partition that holds it.
        row_in_piece: Its number there, from 0.
        reason: One sentence.
    """

    row: int
    piece: str
    row_in_piece: int
    reason: str


class LengthsFile:
    """A file that `write_lengths` wrote: `Windows` and `read_lengths` take it as its path.

    Sequence k is row k of the data set, unless bad rows were dropped: then `rows` says which row it is.

    Args:
        path: Of the .npy file; its .json stands beside it.

    Attributes:
        path: As given.
        bad: What became of the bad rows: "error" where there are none, "one" or "drop".
        pieces: (name, rows) of each file or partition, in order.
        bad_rows: All of them, by rising number.

    Raises:
        FileNotFoundError: One of the two files is not there.
        ValueError: The .json is damaged, or of another file; the .npy is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise type_error("path", "the path of a .npy file", path, 'Give "lengths.npy", for example.')
        self.path: Path = Path(path)
        found = _read_sidecar(self.path)
        try:
            self.bad: str = found["bad"]
            self.pieces: list[tuple[str, int]] = [(name, int(rows)) for name, _, rows in found["pieces"]]
            bad_rows = [BadRow(*row) for row in found["bad_rows"]]
            self.bad_rows: list[BadRow] = [each._replace(row=operator.index(each.row)) for each in bad_rows]
            dropped = len(self.bad_rows) if self.bad == "drop" else 0
            # Of pieces of 4 and 3 rows, 2 of them dropped, 5 lengths are left.
            counted = found["shape"][0] == sum(rows for _, rows in self.pieces) - dropped
        except (TypeError, ValueError, LookupError) as error:
            raise _damaged_sidecar(self.path) from error
        if not counted:
            raise _damaged_sidecar(self.path)
        self._source: dict[str, Any] = {
            "facts": found["facts"],
            "pieces": [[name, stamp] for name, stamp, _ in found["pieces"]],
        }
        if list(self.lengths.shape) != found["shape"] or self.lengths.dtype.str != found["dtype"]:
            remedy = "Write the lengths again: its .json is of another file."
            raise source_error("a file of lengths as it was written", self.path, remedy)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.lengths)

    def __repr__(self) -> str:
        total = sum(rows for _, rows in self.pieces)
        return f"LengthsFile({str(self.path)!r}: {len(self)} sequences of {total} rows in {len(self.pieces)} pieces)"

    @cached_property
    def lengths(self) -> NDArray[Any]:
        """[n] or [n, dims], mapped into memory, read-only."""
        try:
            return keep_mapped(np.load(self.path, mmap_mode="r", allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise source_error("a whole .npy file", self.path, "Write the lengths again.") from error

    def rows(self, sequences: ArrayLike) -> NDArray[np.int64]:
        """The rows of the data set that these sequences are, of any shape: the same, unless bad rows were dropped.

        Raises:
            ValueError: A number of no sequence.
            TypeError: What is not whole numbers.
        """
        given = np.asarray(sequences)
        if given.size and given.dtype.kind not in "iu":
            remedy = "Give numbers of sequences, as the batches of a plan hold them."
            raise type_error("sequences", "whole numbers", sequences, remedy)
        numbers = given.astype(np.int64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < len(self)):
            at = numbers.min() if numbers.min() < 0 else numbers.max()
            remedy = "Give numbers of sequences, as the batches of a plan hold them."
            raise value_error("sequences", f"from 0 to {len(self) - 1}", int(at), remedy)
        if self.bad != "drop":
            return numbers.copy()
        # Rows 1 and 4 of 0..6 were dropped. Before them stand 1 and 3 sequences: from sequence 1 on, add 1; from 3, 2.
        before = self._dropped - np.arange(len(self._dropped))
        return numbers + np.searchsorted(before, numbers, side="right")

    def find(self, sequence: int) -> tuple[str, int]:
        """The file or partition that holds a sequence, and the number of its row there.

        Raises:
            ValueError: The number of no sequence.
            TypeError: Several numbers, or what is none.
        """
        if np.ndim(sequence):
            remedy = "Call it for each; `rows` takes many."
            raise type_error("sequence", "one whole number", sequence, remedy)
        row = int(self.rows(sequence))
        return _locate_row(self.pieces, self._ends, row)

    def is_of(self, source: dict[str, Any]) -> bool:
        """Says whether it was made of the same pieces by the same rule."""
        return self._source == source

    @cached_property
    def _dropped(self) -> NDArray[np.int64]:
        return np.array([each.row for each in self.bad_rows], dtype=np.int64)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([rows for _, rows in self.pieces])


def _locate_row(pieces: list[tuple[str, int]], ends: NDArray[np.int64], row: int) -> tuple[str, int]:
    """The piece that holds a row of the data set, and the number of the row there.

    >>> _locate_row([("a", 3), ("b", 2)], np.array([3, 5]), 4)
    ('b', 1)
    """
    at = int(np.searchsorted(ends, row, side="right"))
    return pieces[at][0], row - (int(ends[at - 1]) if at else 0)


def sidecar_of(path: Path) -> Path:
    return path.with_name(path.name + _SIDECAR)


def _read_sidecar(path: Path) -> dict[str, Any]:
    sidecar = sidecar_of(path)
    for each in (path, sidecar):
        if not each.is_file():
            remedy = "Write it by `write_lengths`; a file of lengths alone is read by `read_lengths`."
            raise FileNotFoundError(source_sentence("a file that is there", each, remedy))
    try:
        found = json.loads(sidecar.read_text(encoding="utf-8"))
        if found.keys() >= {"bad", "pieces", "bad_rows", "facts", "shape", "dtype"}:
            return found
    except (ValueError, AttributeError):
        pass
    raise _damaged_sidecar(path)


def _damaged_sidecar(path: Path) -> ValueError:
    return source_error("the .json beside a file of lengths", sidecar_of(path), "Write the lengths again.")
