"""Reads files of ink: samples of the good ones, and a line on each bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from lengthwise.checks import check_whole, sentence
from lengthwise_recipes.handwriting.pen import FARTHEST, Sample, Stroke, as_sample, height, resample, within_reach
from lengthwise_recipes.skipped import Skipped

POINTS_PER_HEIGHT = 14  # of the whole line, ascenders and descenders included

Segments = list[tuple[list[Stroke], str]]  # the samples of a file: strokes, float64 [K, 2], and text


def read_ink(
    paths: Iterable[Path],
    parse: Callable[[Path], Segments],
    *,
    source: str | Path,
    kind: str,
    count: int | None = None,
    seed: int = 0,
    strict: bool = False,
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads files in their order, or in a random one if a count is given.

    Args:
        paths: The files.
        parse: Reads a file, or raises a ValueError that names the file if it is bad.
        source: Origin of the files, for the error if no file is good.
        kind: Name of the format in that error, such as "UNIPEN".
        count: Stop after this number of samples; None reads all. Folders are by writer, so the first are too alike.
        seed: Seed of the random order.
        strict: Raise for the first bad file instead of skipping it.

    Returns:
        Samples, float32 [T, 3]; their texts; and one line for each skipped file.

    Raises:
        ValueError: No file is good; with `strict` also if any file is bad.
    """
    if count is not None:
        check_whole("count", count, minimum=1, remedy="Give the number of samples, or leave it out to read all.")
    samples: list[Sample] = []
    texts: list[str] = []
    skipped = Skipped(strict=strict)
    if count is not None:
        paths = list(paths)
        paths = [paths[place] for place in np.random.default_rng(seed).permutation(len(paths))]
    for path in paths:
        if count is not None and len(samples) >= count:
            break
        try:
            segments = parse(path)
        except ValueError as error:
            skipped.add(error)
            continue
        samples += [as_points(strokes) for strokes, _ in segments]
        texts += [text for _, text in segments]
    if not samples:
        bad = skipped.sentences
        example = f" The first of {len(bad)} bad files: {bad[0]}" if bad else ""
        rule = f"of at least one good {kind} file"
        raise ValueError(sentence("data", rule, str(source), f"Give other data.{example}"))
    return samples[:count], texts[:count], list(skipped.sentences)


def bad_file(place: str | Path, rule: str, value: str) -> ValueError:
    """Makes the error about a file."""
    return ValueError(sentence("data", rule, value, "Fix the file or leave it out.", at=str(place)))


def read_points(
    rows: Sequence[Sequence[str]], columns: tuple[int, int], *, rule: str, shown: str, place: str | Path
) -> Stroke:
    """Reads the points [K, 2] in two columns of some rows; `rule` and `shown` are those of the error."""
    try:
        points = np.array([[float(row[column]) for column in columns] for row in rows])
    except (ValueError, IndexError) as error:
        raise bad_file(place, rule, shown) from error
    if not within_reach(points).all():
        raise bad_file(place, f"of finite points below {FARTHEST:g} in size", shown)
    return points


def as_points(strokes: list[Stroke]) -> Sample:
    """Scales a line by its height and places its points at equal distances."""
    step = height(strokes) / POINTS_PER_HEIGHT
    return as_sample([resample(stroke, step) for stroke in strokes], unit=step)
