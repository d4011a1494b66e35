"""Real pen strokes: reads the characters of many drawers, and joins them to words with long-tailed lengths."""

from __future__ import annotations

import dataclasses
import itertools
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.handwriting import pen
from lengthwise_recipes.handwriting.pen import Sample, Stroke, as_sample, height, resample, split_strokes

FIRST_SYMBOL = 0xE000  # private-use characters, so that every class is one character of a text
MAX_SYMBOLS = 0xF8FF - FIRST_SYMBOL + 1
POINTS_PER_HEIGHT = 12  # of a typical character: some 30 points for each, a third to a fifth of what devices record
GAP = 0.3  # between characters, in heights
MEDIAN_CHARACTERS = 4.0  # of a word
SPREAD = 0.6  # standard deviation of the logarithm of a word's number of characters

# For each array: a description, the kinds of numbers, and the shape of one entry.
FORMS = {
    "dxy": ("numbers [points, 2]", (np.integer, np.floating), (2,)),
    "pen_up": ("whole numbers [points]", (np.integer, np.bool_), ()),
    "offsets": ("whole numbers [characters + 1]", (np.integer,), ()),
    "label": ("whole numbers [characters]", (np.integer,), ()),
    "drawer": ("whole numbers [characters]", (np.integer,), ()),
    "vocab": ("bytes [bytes], of type uint8", (np.uint8,), ()),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Characters:
    """Characters as strokes scaled to height 1, y upwards, with the lower left corner of their box at 0, 0.

    Attributes:
        strokes: Strokes of each character.
        classes: Class of each character, [characters], from 0.
        drawers: Drawer of each character, [characters].
        scripts: Number of the script of each class, [classes]. A word has one script.
        names: Names of the classes.
    """

    strokes: tuple[tuple[Stroke, ...], ...]
    classes: NDArray[np.int64]
    drawers: NDArray[np.int64]
    scripts: NDArray[np.int64]
    names: tuple[str, ...]


def symbol(character_class: int) -> str:
    """Returns the character that stands for a class in a text.

    >>> hex(ord(symbol(5)))
    '0xe005'
    """
    return chr(FIRST_SYMBOL + character_class)


def read_characters(path: str | Path) -> Characters:
    """Reads an `.npz` of pen-drawn characters.

    The arrays, for P points of C characters:

        dxy      numbers [P, 2]           from each point to the next, y downwards, the first from 0, 0
        pen_up   whole numbers [P]        1 on the last point of a stroke, else 0
        offsets  whole numbers [C + 1]    character c has the points offsets[c] up to offsets[c + 1]
        label    whole numbers [C]        the class, a line of vocab, from 0
        drawer   whole numbers [C]        the number of the drawer
        vocab    uint8 [bytes]            the names of the classes in UTF-8, one a line

    The name Greek/character03 puts a class into the script Greek.

    Raises:
        ValueError: An array is missing, has another type or shape, or does not fit the others.
    """
    arrays, names = read_archive(path, max_classes=MAX_SYMBOLS)
    flipped = arrays["dxy"] * np.array([1.0, -1.0])
    pieces = itertools.pairwise(arrays["offsets"])
    scripts = [name.split("/")[0] for name in names]
    return Characters(
        strokes=tuple(_fit_box(split_strokes(flipped[a:b], arrays["pen_up"][a:b])) for a, b in pieces),
        classes=arrays["label"],
        drawers=arrays["drawer"],
        scripts=np.unique(scripts, return_inverse=True)[1],
        names=names,
    )


def of_scripts(characters: Characters, scripts: Sequence[str]) -> Characters:
    """Returns only the characters of some scripts, or of all if `scripts` is empty.

    Raises:
        ValueError: The file lacks a script; the message lists its scripts.
    """
    known_scripts = list(dict.fromkeys(name.split("/")[0] for name in characters.names))
    for script in scripts:
        if script not in known_scripts:
            raise value_error("scripts", "some of " + ", ".join(known_scripts), script, "Name them as the file does.")
    class_chosen = [not scripts or name.split("/")[0] in scripts for name in characters.names]
    numbers = np.flatnonzero(np.array(class_chosen)[characters.classes])
    return dataclasses.replace(
        characters,
        strokes=tuple(characters.strokes[number] for number in numbers),
        classes=characters.classes[numbers],
        drawers=characters.drawers[numbers],
    )


def join_characters(
    characters: Characters, drawers: NDArray[np.int64], *, count: int, seed: int = 0, lane: int = 0
) -> tuple[list[Sample], list[str]]:
    """Joins characters of one drawer and one script to words of log-normal lengths.

    A word has round(exp(normal(log(MEDIAN_CHARACTERS), SPREAD))) characters, at least 1 and at most 16. Like real
    writing, every word varies in slant (standard deviation 0.15), width and height (8 %).

    Args:
        characters: Characters to join.
        drawers: Drawers of the words. Each word draws one of them with one of the scripts, then characters of both.
        count: Number of words.
        seed: Seed of the words; word i is the same for every `count`.
        lane: Another lane of the same seed gives other words.

    Returns:
        Samples, each float32 [T, 3], and their texts. In them a private-use character stands for each class.
    """
    check_whole("count", count, minimum=1, remedy="Give the number of words.")
    inks = _inks(characters, drawers)
    samples: list[Sample] = []
    texts: list[str] = []
    for word in range(count):
        generator = np.random.default_rng(np.random.SeedSequence([seed, word, lane]))
        ink = inks[generator.integers(len(inks))]
        size = min(max(round(MEDIAN_CHARACTERS * math.exp(SPREAD * generator.standard_normal())), 1), 16)
        chosen = ink[generator.integers(len(ink), size=size)]
        samples.append(_word([characters.strokes[number] for number in chosen], generator))
        texts.append("".join(symbol(int(characters.classes[number])) for number in chosen))
    return samples, texts


def _inks(characters: Characters, drawers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Returns the numbers of the characters of each drawer and script."""
    scripts = characters.scripts[characters.classes]
    inks = [
        np.flatnonzero((characters.drawers == drawer) & (scripts == script))
        for drawer in drawers
        for script in np.unique(scripts)
    ]
    return [ink for ink in inks if len(ink)]


def _word(characters: list[tuple[Stroke, ...]], generator: np.random.Generator) -> Sample:
    slant = 0.15 * generator.standard_normal()
    stretch = np.exp(0.08 * generator.standard_normal(2))
    across = 0.0
    strokes = []
    for character in characters:
        points = np.concatenate(character)
        for stroke in character:
            x = stretch[0] * (across + stroke[:, 0]) + slant * stroke[:, 1]
            strokes.append(resample(np.column_stack([x, stretch[1] * stroke[:, 1]]), 1 / POINTS_PER_HEIGHT))
        across += float(points[:, 0].max()) + GAP
    return as_sample(strokes, unit=1 / POINTS_PER_HEIGHT)


def _fit_box(strokes: list[Stroke]) -> tuple[Stroke, ...]:
    corner = np.concatenate(strokes).min(axis=0)
    scale = 1.0 / height(strokes)
    return tuple((stroke - corner) * scale for stroke in strokes)


def read_archive(path: str | Path, *, max_classes: int) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Reads and checks the arrays that `read_characters` names.

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
    reachable = pen.within_reach(arrays["dxy"])
    if not reachable.all():
        wrong = int(np.flatnonzero(~reachable)[0])
        rule, place = f"finite and below {pen.FARTHEST:g} in size", f"point {wrong} of {path}"
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
        rule = f"from 0 to {classes - 1}, a line of vocab"
        raise value_error("label", rule, wrong, "Name every class.", at=str(path))
