"""Generates handwriting: single-stroke letters, written by writers who differ.

The letters are A. V. Hershey's (1967), from the package Hershey-Fonts. Writers differ in slant, width, speed, size,
baseline and tremor. As in real notes, lines have a log-normal number of characters, from one letter to several words.

By hand, since models that write (Graves 2013) must be trained on data that we may not redistribute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_choice, check_number, check_whole, load_package, value_error
from lengthwise_recipes.handwriting.pen import Sample, Stroke, as_sample, resample

FONTS = ("futural", "scripts")  # print and script; the other single-stroke Latin fonts repeat their small letters
CAP_HEIGHT = 21.0  # the capitals' height on Hershey's grid, our unit of length
BASE_LINE = 9.0
WORD_LINES = """
    a i we he it is on to of in at by up so no go me my us an as do if or the and you for not but all out who
    one two six ten pen ink box jar fox dog cat sun sky sea red new old big day man way time hand line word page
    note late soon quick lazy brown river stone green black white water light night paper letter little people
    number second village garden winter summer morning evening between another thought through quarter kitchen
    journey picture weather question yesterday tomorrow beautiful different important handwriting vocabulary
    expression zigzag jazz quiz
"""
WORDS = tuple(WORD_LINES.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """A writer's hand; shares and angles apply to letters of cap height 1.

    Attributes:
        font: One of `FONTS`.
        slant: x moved per unit of y; positive leans to the right.
        width: Stretch of x.
        size: Cap height of the letters, which vary around it by `size_jitter`. Its unit does not change the sample.
        size_jitter: Standard deviation of the logarithm of a letter's size.
        points_per_unit: Points per cap height of path; a slower writer has more.
        speed_jitter: Standard deviation of the logarithm of the speed along a stroke.
        drift: Standard deviation of a letter's height over the line, in cap heights.
        tremor: Standard deviation of the smooth noise of the points, in cap heights.
        noise: Standard deviation of the white noise of the points, in cap heights.
        gap: Extra space between letters, in cap heights.
    """

    font: str
    slant: float
    width: float
    size: float
    size_jitter: float
    points_per_unit: float
    speed_jitter: float
    drift: float
    tremor: float
    noise: float
    gap: float

    def __post_init__(self) -> None:
        check_choice("font", self.font, FONTS)
        for name in ("width", "size", "points_per_unit"):
            check_number(name, getattr(self, name), above=True, remedy="Give a number above 0, such as 1.")
        for name in ("size_jitter", "speed_jitter", "drift", "tremor", "noise"):
            check_number(name, getattr(self, name), remedy="Give 0 for a hand without it.")


def draw_writer(generator: np.random.Generator) -> Writer:
    """Draws a readable random hand."""
    return Writer(
        font=FONTS[generator.integers(len(FONTS))],
        slant=generator.normal(0.1, 0.2),
        width=math.exp(generator.normal(0.0, 0.12)),
        size=math.exp(generator.normal(0.0, 0.25)),
        size_jitter=generator.uniform(0.02, 0.10),
        points_per_unit=math.exp(generator.normal(math.log(14.0), 0.2)),
        speed_jitter=generator.uniform(0.05, 0.30),
        drift=generator.uniform(0.0, 0.10),
        tremor=generator.uniform(0.01, 0.05),
        noise=generator.uniform(0.0, 0.01),
        gap=generator.uniform(-0.05, 0.15),
    )


def draw_text(generator: np.random.Generator, characters: int) -> str:
    """Draws words from `WORDS` and cuts their line to `characters`, or to one fewer if it would end in a space.

    >>> draw_text(np.random.default_rng(0), 5)
    'kitch'
    """
    check_whole("characters", characters, minimum=1, remedy="Give the characters of the line.")
    line = ""
    while len(line) < characters:
        line += WORDS[generator.integers(len(WORDS))] + " "
    return line[:characters].rstrip()


def write(text: str, writer: Writer, generator: np.random.Generator) -> Sample:
    """Writes a line of small letters and spaces as a pen would.

    Args:
        text: Letters a to z and spaces, at least one letter.
        writer: The hand.
        generator: Source of all jitter; the same state gives the same line.

    Returns:
        float32 [T, 3] = dx, dy, pen_up; dx and dy in units of the hand's mean distance between points, y upwards.

    Raises:
        ValueError: A character is not in the alphabet, or there is nothing to write.
    """
    strokes = [_shake(stroke, writer, generator) for stroke in _letters(text, writer, generator)]
    if not strokes:
        raise value_error("text", "at least one letter", text, "Give a word to write.")
    return as_sample(strokes, unit=writer.size / writer.points_per_unit)


def write_lines(
    count: int, *, seed: int = 0, median_characters: float = 8.0, spread: float = 0.5, max_characters: int = 60
) -> tuple[list[Sample], list[str]]:
    """Writes `count` lines, each by another writer; line i is the same for every `count`.

    The number of characters is round(exp(normal(log(median_characters), spread))) within 1..max_characters.

    Returns:
        Samples, float32 [T, 3], and their texts.
    """
    check_whole("count", count, minimum=1, remedy="Give the number of lines to write.")
    check_whole("seed", seed, minimum=0, remedy="Give a number from 0.")
    check_number("median_characters", median_characters, minimum=1.0, remedy="Give the characters of the middle line.")
    check_number("spread", spread, remedy="Give the standard deviation of the logarithm; 0 makes all lines alike.")
    samples: list[Sample] = []
    texts: list[str] = []
    for line in range(count):
        generator = np.random.default_rng(np.random.SeedSequence([seed, line]))
        characters = round(median_characters * math.exp(spread * generator.standard_normal()))
        texts.append(draw_text(generator, min(max(characters, 1), max_characters)))
        samples.append(write(texts[-1], draw_writer(generator), generator))
    return samples, texts


@cache
def _alphabet(font: str) -> dict[str, tuple[tuple[Stroke, ...], float]]:
    """Returns the shape and width of each letter, with baseline y = 0, y upwards and cap height 1."""
    package = load_package("HersheyFonts", "write lines", "Install it: pip install Hershey-Fonts.")
    fonts = package.HersheyFonts()
    fonts.load_default_font(font)
    shapes = {}
    for letter, glyph in fonts.all_glyphs.items():
        origin = np.array([glyph.left_offset, BASE_LINE])
        scale = np.array([1.0, -1.0]) / CAP_HEIGHT
        strokes = tuple((np.array(stroke, np.float64) - origin) * scale for stroke in glyph.strokes)
        shapes[letter] = (strokes, glyph.char_width / CAP_HEIGHT)
    return shapes


def _letters(text: str, writer: Writer, generator: np.random.Generator) -> Iterator[Stroke]:
    shapes = _alphabet(writer.font)
    pen = 0.0
    for place, letter in enumerate(text):
        if not ("a" <= letter <= "z" or letter == " "):
            raise value_error("text", "small letters and spaces", text, "Write it so.", at=f"character {place}")
        strokes, width = shapes[letter]
        size = writer.size * math.exp(writer.size_jitter * generator.standard_normal())
        lift = writer.size * writer.drift * generator.standard_normal()
        for stroke in strokes:
            x = stroke[:, 0] * writer.width + stroke[:, 1] * writer.slant
            yield np.column_stack([pen + size * x, lift + size * stroke[:, 1]])
        pen += size * writer.width * width + writer.size * writer.gap


def _shake(stroke: Stroke, writer: Writer, generator: np.random.Generator) -> Stroke:
    pace = np.exp(writer.speed_jitter * _smooth_noise(generator, 24))
    points = resample(stroke, writer.size / writer.points_per_unit, pace=pace)
    wobble = np.column_stack([_smooth_noise(generator, len(points)), _smooth_noise(generator, len(points))])
    white = generator.standard_normal(points.shape)
    return points + writer.size * (writer.tremor * wobble + writer.noise * white)


def _smooth_noise(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draws smooth noise [count] of variance 1: white noise under a window of 9 points."""
    window = np.hanning(11)[1:-1]
    white = generator.standard_normal(count + len(window) - 1)
    return np.convolve(white, window / np.linalg.norm(window), mode="valid").astype(np.float64)
