"""Files of ink, one after the other: samples of those that are good, and a line on each of those that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from lengthwise.checks import check_whole, sentence
from lengthwise_recipes.handwriting.pen import Sample, Stroke, as_sample, height, resample
from lengthwise_recipes.skipped import Skipped

POINTS_PER_HEIGHT = 14  # of the whole line, ascenders and descenders included

Segments = list[tuple[list[Stroke], str]]  # of a file: the strokes, each float64 [K, 2], and the text of each sample


def read_ink(
    paths: Iterable[Path],
    parse: Callable[[Path], Segments],
    *,
    source: str | Path,
    kind: str,
    count: int | None = None,
    strict: bool = False,
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads files in their order.

    Args:
        paths: Of the files.
        parse: Reads one; raises a ValueError that names the file where it is bad.
        source: Where all of them are from, for the message that none is good.
        kind: What they are called in it, such as "UNIPEN".
        count: Stop at so many samples; None reads all.
        strict: Refuse the first bad file instead of skipping it.

    Returns:
        Samples, each float32 [T, 3]; their texts; and one line for each file that was skipped.

    Raises:
        ValueError: Where no file is good, or, if `strict`, where one is not.
    """
    if count is not None:
        check_whole("count", count, minimum=1, remedy="Give the number of samples, or leave it out to read all.")
    samples: list[Sample] = []
    texts: list[str] = []
    skipped = Skipped(strict=strict)
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


def as_points(strokes: list[Stroke]) -> Sample:
    """Scales a line to its own height and places its points equidistantly."""
    step = height(strokes) / POINTS_PER_HEIGHT
    return as_sample([resample(stroke, step) for stroke in strokes], unit=step)
