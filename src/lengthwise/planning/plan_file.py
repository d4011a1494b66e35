"""What a plan file holds, and whether it is whole.

A plan file is a NumPy `.npz`: the arrays of a plan, and its facts as JSON, with a checksum of all of them. The checksum
finds damage. The structure is checked too, for a program that writes plan files itself may compute a right checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks, files

VERSION = 3  # 3 says `max_cost` where 2 said `limit`
_REQUIRED = {"sequences": 1, "offsets": 1, "padded_lengths": 2, "costs": 1, "grid": 3}  # each array and its dimensions
DIMS = _REQUIRED | {"row_offsets": 1, "spans": 2, "delivered": 1, "times": 1}
_REMEDY = "This is a damaged plan file: make the plan anew."

Arrays = Mapping[str, Any]  # of NumPy's arrays
Facts = dict[str, Any]
Fault = tuple[str, str, object]  # what is wrong: its name, the rule, the value


def write(path: str | os.PathLike[str], arrays: Arrays, facts: Facts) -> None:
    """Writes a plan file, whole or not at all.

    Raises:
        OSError: As `files.write` does.
    """
    facts = {"version": VERSION, **facts, "max_cost": repr(float(facts["max_cost"]))}  # as text: JSON knows no infinity
    facts["checksum"] = _checksum(arrays, facts)
    content = io.BytesIO()
    np.savez_compressed(content, facts=np.array(json.dumps(facts)), **arrays)
    files.write(path, content.getbuffer())


def read(path: str | os.PathLike[str]) -> tuple[Arrays, Facts]:
    """The arrays and the facts of a plan file, all checked except for the fingerprint.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is no plan file, of another version, or damaged.
    """
    stored = _read_bytes(path)
    try:
        arrays, facts = _parse(stored)
        version = facts["version"]
    except MemoryError:
        raise
    except Exception as error:  # whatever zipfile, zlib, NumPy and json make of bytes that are not theirs
        raise checks.value_error("path", "a plan that Plan.save wrote", str(path), _REMEDY) from error
    # First, because the checks below know this version alone.
    if version != VERSION:
        remedy = (
            "Another version of Lengthwise wrote it. Make the plan anew from the same lengths, batching, seed and "
            "epoch, and save it with Plan.save."
        )
        raise checks.value_error("path", f"a plan file of version {VERSION}", version, remedy, at=str(path))
    for name, rule, value in _faults(arrays, facts):
        raise checks.value_error(name, rule, value, _REMEDY, at=str(path))
    return arrays, facts | {"max_cost": float(facts["max_cost"])}


def check_fingerprint(path: str | os.PathLike[str], fingerprint: str, facts: Facts) -> None:
    """Refuses a file whose plan has another fingerprint than the file says."""
    if fingerprint != facts["fingerprint"]:
        rule = f"the fingerprint of the plan, {fingerprint}"
        raise checks.value_error("fingerprint", rule, facts["fingerprint"], _REMEDY, at=str(path))


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    files.check_path("path", path)
    if not os.path.exists(path):
        rule, remedy = "a file that is there", "Make the plan and save it there, or name another file."
        raise FileNotFoundError(checks.sentence("path", rule, str(path), remedy))
    if not os.path.isfile(path):  # a folder; nobody may ever write into a pipe, and /dev/zero has no end
        raise checks.value_error("path", "a plan file", str(path), "Name the file that Plan.save wrote.")
    with files.refusals(path, "read"), open(path, "rb") as file:
        return file.read()


def _parse(stored: bytes) -> tuple[Arrays, Facts]:
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        names = set(archive.namelist())
        facts = json.loads(str(_array(archive, "facts")))
        return {name: _array(archive, name) for name in DIMS if f"{name}.npy" in names}, facts


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array of the archive, in the byte order of this machine."""
    content = io.BytesIO(archive.read(f"{name}.npy"))
    np.lib.format.read_magic(content)
    shape, _, kind = np.lib.format.read_array_header_1_0(content)  # NumPy writes 1.0 for arrays of numbers and texts
    # NumPy makes room for as much as the header says, terabytes too, before it finds that there is less.
    if math.prod(shape) * kind.itemsize != content.getbuffer().nbytes - content.tell():
        raise ValueError(name)
    content.seek(0)
    array = np.lib.format.read_array(content, allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _checksum(arrays: Arrays, facts: Facts) -> str:
    digest = hashlib.blake2b(digest_size=16)
    # Sorted, because the order of the facts in the file and of the arrays in the archive means nothing.
    digest.update(json.dumps({name: facts[name] for name in sorted(facts) if name != "checksum"}).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}{array.dtype.name}{array.shape}".encode())
        # In one byte order on all machines: `_array` reads either.
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def _faults(arrays: Arrays, facts: Facts) -> Iterator[Fault]:
    """What is wrong. Each check relies on those before it, so only the first fault is certain."""
    yield from _faults_of_facts(facts)
    yield from _faults_of_forms(arrays)
    yield from _faults_of_batches(arrays)
    yield from _faults_of_rows(arrays)
    yield from _faults_of_members(arrays, facts["count"])
    if facts["checksum"] != (checksum := _checksum(arrays, facts)):
        yield "checksum", f"that of what the file holds, {checksum}", facts["checksum"]


def _faults_of_facts(facts: Facts) -> Iterator[Fault]:
    for name, (rule, holds) in _FACTS.items():
        if not holds(facts.get(name)):
            yield name, rule, facts.get(name)
    # A fact that nothing reads is a mistake of whoever wrote the file: a misspelt name, for example.
    for name in facts.keys() - _FACTS.keys() - {"version"}:
        yield "facts", "those of a plan alone", name


def _faults_of_forms(arrays: Arrays) -> Iterator[Fault]:
    for name, dims in DIMS.items():
        if name not in arrays:
            if name in _REQUIRED:
                yield name, "in the file", None
            continue
        form = (arrays[name].dtype.name, arrays[name].ndim)
        expected = ("float64" if name == "costs" else "int64", dims)
        if form != expected:
            yield name, "of {} in {} dimension(s)".format(*expected), "{} in {}".format(*form)


def _faults_of_batches(arrays: Arrays) -> Iterator[Fault]:
    offsets, lengths, costs, grid = (arrays[name] for name in ("offsets", "padded_lengths", "costs", "grid"))
    batches, members = len(costs), len(arrays["sequences"])
    # Three batches have the four offsets [0, 2, 5, 6].
    if len(offsets) != batches + 1 or len(lengths) != batches:
        yield "costs", f"of {len(offsets) - 1} batches", f"of {batches}, padded_lengths of {len(lengths)}"
    if offsets[0] != 0 or offsets[-1] != members or (offsets[1:] <= offsets[:-1]).any():
        yield "offsets", f"strictly rising from 0 to {members}", offsets.tolist()
    if lengths.shape[1] == 0 or (lengths < 1).any():
        yield "padded_lengths", "at least 1", lengths.min(initial=1)
    if not (np.isfinite(costs) & (costs >= 0)).all():
        yield "costs", "finite and at least 0", float(costs[~(np.isfinite(costs) & (costs >= 0))][0])
    if 0 in grid.shape[1:]:
        yield "grid", "of shape [steps, micro_batches, ranks]", grid.shape
    yield from _out_of_range("grid", grid, batches)


def _faults_of_rows(arrays: Arrays) -> Iterator[Fault]:
    rows, offsets = arrays.get("row_offsets"), arrays["offsets"]
    if rows is None:
        return
    # Rows lie within batches: each batch begins with a row.
    if not len(rows) or rows[0] != 0 or rows[-1] != offsets[-1] or (rows[1:] <= rows[:-1]).any():
        yield "row_offsets", f"strictly rising from 0 to {offsets[-1]}", rows.tolist()
    if not np.isin(offsets, rows).all():
        yield "row_offsets", "with all offsets of batches among them", rows.tolist()


def _faults_of_members(arrays: Arrays, count: int) -> Iterator[Fault]:
    sequences, spans, delivered = arrays["sequences"], arrays.get("spans"), arrays.get("delivered")
    yield from _out_of_range("sequences", sequences, count)
    rising = np.sort(sequences)  # equal numbers stand side by side: [0, 2, 2, 5] has 2 twice
    if (twice := rising[1:] == rising[:-1]).any():
        yield "sequences", "different from each other", int(rising[1:][twice][0])
    if delivered is not None:
        yield from _out_of_range("delivered", delivered, count)
        if (delivered[1:] <= delivered[:-1]).any():
            yield "delivered", "strictly rising", delivered.tolist()
    times = arrays.get("times")
    if times is not None and (times < 0).any():
        yield "times", "at least 0", times.tolist()
    # Each is counted by itself, for a sum of numbers beyond 2**62 may come out right.
    if times is not None and spans is None and ((times > count).any() or times.sum() != count):
        yield "times", f"{count} in sum", times.tolist()
    if spans is not None:
        if spans.shape != (count, 3):
            yield "spans", f"of shape {(count, 3)}", spans.shape
        sequence, start, stop = spans.T
        if (wrong := (sequence < 0) | (start < 0) | (stop <= start)).any():
            yield "spans", "of a sequence, a start and a stop behind it", spans[wrong][0].tolist()


def _out_of_range(name: str, numbers: NDArray[np.int64], count: int) -> Iterator[Fault]:
    if (outside := (numbers < 0) | (numbers >= count)).any():
        yield name, f"numbers from 0 to {count - 1}", int(numbers[outside][0])


def _is_whole(value: object) -> bool:
    # In Python True is an int; in JSON it is no number.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_max_cost(value: object) -> bool:
    try:
        return isinstance(value, str) and float(value) >= 0.0  # NaN compares as False
    except ValueError:
        return False


def _is_batching(value: object) -> bool:
    """Whether it is JSON of choices, each with its name. The choices are not made: a user's own could not be."""
    try:
        choices = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return False
    return isinstance(choices, dict) and all(
        choice is None or (isinstance(choice, dict) and isinstance(choice.get("choice"), str))
        for choice in choices.values()
    )


_FACTS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "count": ("a whole number, 0 or more", _is_whole),
    "seed": ("a whole number from 0 to 2**64 - 1", _is_whole),
    "epoch": ("a whole number from 0 to 2**64 - 1", _is_whole),
    "batching": ("a batching as JSON", _is_batching),
    "lengths_fingerprint": ("a text", _is_text),
    "max_cost": ("a number, 0 or more", _is_max_cost),
    "fingerprint": ("a text", _is_text),
    "checksum": ("a text", _is_text),
}
