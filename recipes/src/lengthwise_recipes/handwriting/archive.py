"""Reads and checks the arrays of an `.npz` of pen-drawn characters."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes.handwriting.pen import FARTHEST, within_reach

# For each array: a description, the kinds of numbers, and the shape of one entry.
FORMS = {
    "dxy": ("numbers [points, 2]", (np.integer, np.floating), (2,)),
    "pen_up": ("whole numbers [points]", (np.integer, np.bool_), ()),
    "offsets": ("whole numbers [characters + 1]", (np.integer,), ()),
    "label": ("whole numbers [characters]", (np.integer,), ()),
    "drawer": ("whole numbers [characters]", (np.integer,), ()),
    "vocab": ("bytes [bytes], of type uint8", (np.uint8,), ()),
}


def read_archive(path: str | Path, *, max_classes: int) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Reads and checks the arrays that `characters.read_characters` names.

    Args:
        path: The `.npz`.
        max_classes: All labels must be below it.

    Returns:
        The arrays by name, whole numbers as int64 and `dxy` as float64; and the names of the classes.

    Raises:
        ValueError: An array is missing, breaks the rule in `FORMS`, or does not fit the others.
    """
    arrays = _read_arrays(Path(path))
    _check_forms(arrays, path)
    names = _names(arrays.pop("vocab"), path)
    arrays = {name: array.astype(np.float64 if name == "dxy" else np.int64) for name, array in arrays.items()}
    _check_fit(arrays, min(len(names), max_classes), path)
    return arrays, names


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    files.check_regular(path)
    with path.open("rb") as file:
        try:
            return _load(file, path)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # encrypted: RuntimeError
            raise value_error("data", "a readable .npz file", str(path), "Write it with numpy.savez.") from error


def _load(file: IO[bytes], path: Path) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(file):
        raise zipfile.BadZipFile
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        missing = [name for name in FORMS if name not in stored.files]
        if missing:
            rule = "an .npz with the arrays " + ", ".join(FORMS)
            raise value_error("data", rule, str(path), f"Add {', '.join(missing)}.")
        return {name: _member(stored, name, path) for name in FORMS}


def _member(stored: np.lib.npyio.NpzFile, name: str, path: Path) -> NDArray[Any]:
    try:
        return np.asarray(stored[name])
    except ValueError as error:  # Python objects, or a header that is not NumPy's
        remedy = "Write it with numpy.savez."
        raise value_error(name, FORMS[name][0], "unreadable", remedy, at=str(path)) from error


def _check_forms(arrays: dict[str, NDArray[Any]], path: str | Path) -> None:
    for name, (rule, kinds, entry) in FORMS.items():
        array = arrays[name]
        kind_fits = any(np.issubdtype(array.dtype, kind) for kind in kinds)
        if not kind_fits or array.ndim == 0 or array.shape[1:] != entry:
            shown = f"{array.dtype} {list(array.shape)}"
            raise value_error(name, rule, shown, "Store it in this type and shape.", at=str(path))
    reachable = within_reach(arrays["dxy"])
    if not reachable.all():
        wrong = int(np.flatnonzero(~reachable)[0])
        rule, place = f"finite and below {FARTHEST:g} in size", f"point {wrong} of {path}"
        raise value_error("dxy", rule, arrays["dxy"][wrong].tolist(), "Drop its character.", at=place)


def _names(vocab: NDArray[Any], path: str | Path) -> tuple[str, ...]:
    try:
        return tuple(vocab.tobytes().decode("utf8").split("\n"))
    except UnicodeDecodeError as error:
        shown = vocab.tobytes()[error.start : error.end]
        place = f"byte {error.start} of {path}"
        raise value_error("vocab", "UTF-8, one name a line", shown, "Encode the names anew.", at=place) from error


def _check_fit(arrays: dict[str, NDArray[Any]], classes: int, path: str | Path) -> None:
    offsets, labels = arrays["offsets"], arrays["label"]
    points = len(arrays["dxy"])
    rises = len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == points and bool(np.all(np.diff(offsets) > 0))
    if not rises:
        rule = f"strictly rising from 0 to the number of points, {points}"
        raise value_error("offsets", rule, offsets[:6].tolist(), "Drop empty characters.", at=str(path))
    count = len(offsets) - 1
    sizes = tuple(len(arrays[name]) for name in ("label", "drawer", "pen_up"))
    if sizes != (count, count, points):
        rule = f"{count}, {count} and {points} long"
        raise value_error("label, drawer, pen_up", rule, sizes, "Store them together.", at=str(path))
    if labels.min() < 0 or labels.max() >= classes:
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise value_error(
            "label", f"from 0 to {classes - 1}, a line of vocab", wrong, "Name every class.", at=str(path)
        )
