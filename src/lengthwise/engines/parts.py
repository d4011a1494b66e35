"""Parts: the lengths of each piece of a data set, in a file of its own, until all of them are there.

    lengths.npy.parts/
        source.json         what is read, by which rule, and the pieces in their order
        00000000.part       the lengths of the first piece, whole or not there
        00000001.part

A part holds the blocks of its piece one after the other, each in the smallest type that holds it; then JSON that says
which types these are, which rows are bad and why; then the 8 bytes of the size of that JSON. So a piece is written
batch by batch, and read again without a look at more than its end.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise.engines.rows import Block
from lengthwise.lengths.sources import source_error

_SOURCE = "source.json"
BAD_ROWS = "bad_rows.json"
_LEFTOVER = re.compile(rf"\.lengthwise-.*|{re.escape(BAD_ROWS)}|\d{{8,}}\.part")
_SIZE = 8  # bytes at the end, little-endian: of the JSON before them


class Piece(NamedTuple):
    """A part of a data set that can be read by itself: a file, a partition, a range of rows.

    Attributes:
        name: What an error and the list of pieces call it.
        stamp: Changes when the piece does: a size and a time, for example.
    """

    name: str
    stamp: str


@dataclass(frozen=True, kw_only=True)
class Tail:
    """What stands at the end of a part.

    Attributes:
        rows: How many rows the piece has.
        longest: The greatest of its lengths.
        shape: That of the lengths of one row: () for [n], (2,) for [n, 2]; None where no row has any.
        blocks: The type and the shape of each block.
        reasons: [row of the piece, reason] of each bad row, rising.
    """

    rows: int
    longest: int
    shape: tuple[int, ...] | None
    blocks: list[tuple[str, tuple[int, ...]]]
    reasons: list[tuple[int, str]]


class Parts:
    """The folder of parts of one run.

    Args:
        folder: Where they are; it need not be there.
        source: What is read and by which rule, as JSON; `describe_source` makes it.

    Raises:
        ValueError: The folder holds something else, or parts of another source.
    """

    def __init__(self, folder: Path, source: dict[str, Any]) -> None:
        self.folder: Path = folder
        self._source = source
        files.make_folder(folder)
        found = _read_source(folder)
        if found is None:  # what a run left that was killed while it removed its parts: of which source, nobody knows
            for path in folder.glob("*.part"):
                files.remove(path)
        # A run that was refused at its first row has left no part, and the next one may be told otherwise.
        if found is None or not any(folder.glob("*.part")):
            files.write(folder / _SOURCE, json.dumps(self._source))
        else:
            self._check_source(found)

    def has(self, number: int) -> bool:
        return self._path(number).is_file()

    def write(self, number: int, blocks: Iterable[Block]) -> Tail:
        """Writes the part of a piece, block by block, and returns its end.

        Raises:
            ValueError: Rows have different numbers of lengths.
        """
        path = self._path(number)
        blocks_written: list[tuple[str, tuple[int, ...]]] = []
        reasons: list[tuple[int, str]] = []
        rows, longest, shape = 0, 0, None
        with files.draft(path) as more:
            for block in blocks:
                most = int(block.lengths.max(initial=0))
                # A block without any length may have been made before anybody knew how many a row has.
                if most:
                    shape = check_shape(shape, block.lengths.shape[1:], path)
                lengths = block.lengths.astype(smallest_type(most))
                more(lengths.tobytes())
                blocks_written.append((lengths.dtype.str, lengths.shape))
                reasons += [(rows + row, block.reasons[row]) for row in sorted(block.reasons)]
                rows, longest = rows + len(lengths), max(longest, most)
            tail = Tail(rows=rows, longest=longest, shape=shape, blocks=blocks_written, reasons=reasons)
            text = json.dumps(asdict(tail)).encode()
            more(text + len(text).to_bytes(_SIZE, "little"))
        return tail

    def tail(self, number: int) -> Tail:
        """Reads the end of a part.

        Raises:
            ValueError: The part is damaged.
        """
        path = self._path(number)
        try:
            with open(path, "rb") as file:
                file.seek(-_SIZE, os.SEEK_END)
                size = int.from_bytes(file.read(_SIZE), "little")
                file.seek(-_SIZE - size, os.SEEK_END)
                return _parse_tail(json.loads(file.read(size)))
        except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
            raise _damaged(path) from error

    def blocks(self, number: int, tail: Tail, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
        """Yields the lengths of a piece, [k, *shape]: 0 at bad rows.

        Raises:
            ValueError: The part is damaged.
        """
        with open(self._path(number), "rb") as file:
            for dtype, found in tail.blocks:
                data = file.read(np.dtype(dtype).itemsize * math.prod(found))
                if len(data) < np.dtype(dtype).itemsize * math.prod(found):
                    raise _damaged(self._path(number))
                lengths = np.frombuffer(data, dtype).reshape(found)
                # One of another shape holds no length at all: `write` and `check_shape` have looked.
                yield lengths if found[1:] == shape else np.zeros((found[0], *shape), dtype)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.part"

    def _check_source(self, found: dict[str, Any]) -> None:
        if found == self._source:
            return
        remedy = f"Give resume=False to begin anew, or bring back what the parts in {self.folder} were made of."
        rule = f"as it was when the run began, but is changed: {_difference(found, self._source)}"
        raise ValueError(f"`source` must be {rule}. {remedy}")


def describe_source(facts: dict[str, Any], pieces: list[Piece]) -> dict[str, Any]:
    """What a run reads, in the form in which JSON gives it back: lists in place of tuples."""
    return json.loads(json.dumps({"facts": facts, "pieces": pieces}))


def remove_parts(folder: Path) -> None:
    """Removes a folder of parts, if it is there; files of others stay in it.

    Raises:
        ValueError: It holds no parts.
    """
    if folder.is_dir():
        _read_source(folder)
        files.remove(folder / _SOURCE)  # first: without it, no part is taken for one of a run
        for name in filter(_LEFTOVER.fullmatch, os.listdir(folder)):
            files.remove(folder / name)
        files.remove_empty_folder(folder)


def refuse_others(folder: Path) -> None:
    """Refuses a folder of parts that also holds files of others.

    Raises:
        ValueError: It holds no parts, or one of the others is named.
    """
    _read_source(folder)
    others = [name for name in sorted(os.listdir(folder)) if not (_LEFTOVER.fullmatch(name) or name == _SOURCE)]
    if others:
        remedy = f"Move {others[0]} away."
        raise source_error("a folder of parts and of nothing else", folder, remedy)


def holds_parts_of(folder: Path, source: dict[str, Any]) -> bool:
    """Whether parts of this source are there."""
    try:
        return folder.is_dir() and _read_source(folder) == source
    except ValueError:  # something else is
        return False


def check_shape(known: tuple[int, ...] | None, found: tuple[int, ...], path: Path) -> tuple[int, ...]:
    """Returns the shape of the lengths of one row, if it is the same as before.

    Raises:
        ValueError: It is not.
    """
    if known is not None and known != found:
        rule = f"a function that returns as many numbers at each row, {known}"
        raise value_error("length", rule, found, "Return one row of numbers for each row.", at=path.name)
    return found


def smallest_type(longest: int) -> np.dtype[Any]:
    """The smallest type that holds lengths of up to `longest`.

    >>> smallest_type(255).str, smallest_type(256).str, smallest_type(2**40).str
    ('|u1', '<u2', '<i8')
    """
    found = np.min_scalar_type(longest)
    # All lengths are below 2**63, and int64 meets other integers without becoming a float.
    return np.dtype("<i8") if found.itemsize == 8 else found.newbyteorder("<")


def _parse_tail(found: dict[str, Any]) -> Tail:
    return Tail(
        rows=found["rows"],
        longest=found["longest"],
        shape=None if found["shape"] is None else tuple(found["shape"]),
        blocks=[(dtype, tuple(shape)) for dtype, shape in found["blocks"]],
        reasons=[(row, reason) for row, reason in found["reasons"]],
    )


def _read_source(folder: Path) -> dict[str, Any] | None:
    """What an earlier run wrote; None of a folder that is empty, or holds the leftovers of a run."""
    try:
        found = json.loads((folder / _SOURCE).read_text(encoding="utf-8"))
        if found.keys() == {"facts", "pieces"}:
            return found
    except (OSError, ValueError, AttributeError):
        # Of a run that was killed before it had written anything, or while it removed what it had written.
        if all(_LEFTOVER.fullmatch(name) for name in os.listdir(folder)):
            return None
    raise source_error("a folder of parts, or none", folder, "Move it away, or write the lengths to another path.")


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Says what of the source has changed, the first change alone."""
    for name, value in now["facts"].items():
        if before["facts"].get(name) != value:
            return f"{name} was {before['facts'].get(name)!r} and is {value!r}"
    for (name, stamp), (other, other_stamp) in zip(before["pieces"], now["pieces"], strict=False):
        if name != other:
            return f"{other} stands where {name} was"
        if stamp != other_stamp:
            return f"{name} is not the same"
    return f"it had {len(before['pieces'])} pieces and has {len(now['pieces'])}"


def _damaged(path: Path) -> ValueError:
    return source_error("a whole part", path, "Remove it and call again: its piece is then read anew.")
