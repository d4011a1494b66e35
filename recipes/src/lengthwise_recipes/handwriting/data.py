"""Corpora of handwriting: train, validation and test samples that share no ink.

Four sources: generated lines, characters of real drawers joined to words (`.npz`), folders of InkML, and UNIPEN files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.handwriting.characters import Characters, join_characters, of_scripts, read_characters
from lengthwise_recipes.handwriting.inkml import read_inkml
from lengthwise_recipes.handwriting.pen import Sample
from lengthwise_recipes.handwriting.strokes import write_lines
from lengthwise_recipes.handwriting.unipen import SUFFIXES, read_unipen, unipen_files

GENERATED = "lines written by the project's own hands"
BAD_FILES = "No option reads a bad file: fix it as its message says."


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Pen samples, float32 [T, 3] = dx, dy, pen_up, with their texts; one character is one symbol."""

    strokes: tuple[Sample, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.strokes) != len(self.texts):
            remedy = "Give one text for each sample."
            raise value_error("texts", f"{len(self.strokes)} texts", len(self.texts), remedy)

    def __len__(self) -> int:
        return len(self.strokes)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Points of each sample, [samples]."""
        return np.array([len(sample) for sample in self.strokes], np.int64)

    def take(self, numbers: Sequence[int] | NDArray[np.int64]) -> Samples:
        return Samples(
            strokes=tuple(self.strokes[number] for number in numbers),
            texts=tuple(self.texts[number] for number in numbers),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Samples for training, validation and test.

    Attributes:
        name: The source, in a few words.
        split: A sentence on how the parts were split.
        train: Samples to learn from.
        validation: Samples to judge by, without ink from `train`.
        test: Samples that no choice depends on, without ink from the other parts; None without a test part.
        alphabet: All symbols, one character each, sorted; symbol s is class s + 1 of the network.
        skipped: Skipped files and samples, one line each.
        advice: How to keep the skipped samples, one sentence for each kind of reason.
    """

    name: str
    split: str
    train: Samples
    validation: Samples
    test: Samples | None = None
    alphabet: str
    skipped: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def parts(self) -> dict[str, Samples]:
        """The parts by name, without "test" if there is no test part."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: part for name, part in parts.items() if part is not None}

    def as_dict(self) -> dict[str, object]:
        """Returns JSON: counts, symbols, quantiles of the train lengths, and fingerprints of lengths and content."""
        lengths = self.train.lengths
        quantiles = np.quantile(lengths, [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
        return {
            "name": self.name,
            "split": self.split,
            **{f"{name}_samples": len(part) for name, part in self.parts.items()},
            "symbols": len(self.alphabet),
            "skipped": list(self.skipped),
            "advice": list(self.advice),
            "train_points": int(lengths.sum()),
            "train_points_mean": round(float(lengths.mean()), 2),
            "train_points_quantiles_0_5_25_50_75_95_100": [round(float(value), 1) for value in quantiles],
            "train_fingerprint": lw.fingerprint(lengths),
            "fingerprint": fingerprint(self._contents()),
        }

    def _contents(self) -> Iterator[object]:
        for part in (self.train, self.validation, self.test):
            yield part and part.texts
            yield from part.strokes if part else ()


def synthetic_lines(
    *, count: int = 1200, validation_share: float = 0.05, test_share: float = 0.0, seed: int = 0
) -> Corpus:
    """Generates lines by `strokes.write_lines`, each by another writer."""
    _check_count(count)
    samples, texts = write_lines(count, seed=seed)
    split = "lines of every length are held out, each by a writer of its own"
    return _make_corpus(GENERATED, split, samples, texts, (validation_share, test_share))


def ink_samples(
    path: str | Path,
    *,
    count: int | None = None,
    validation_share: float = 0.05,
    test_share: float = 0.0,
    seed: int = 0,
    strict: bool = False,
) -> Corpus:
    """Reads the InkML files of a folder, or the labelled segments of UNIPEN files, in the order of their names.

    With `count` it reads files in an order of `seed` until it has as many samples. A folder is UNIPEN if it has files
    with UNIPEN's suffixes, no InkML.

    Raises:
        ValueError: `count` is below 2, or no file is readable; with `strict` also if any file is unreadable.
    """
    if count is not None:
        _check_count(count)
    kind, held_out, read = ("UNIPEN", "segments", read_unipen) if _is_unipen(path) else ("InkML", "files", read_inkml)
    samples, texts, skipped = read(path, count=count, seed=seed, strict=strict)
    split = f"{held_out} of every length are held out; one writer may be in several parts"
    shares = (validation_share, test_share)
    name = f"{kind} {held_out} of {'/'.join(Path(path).parts[-2:])}"
    return _make_corpus(name, split, samples, texts, shares, tuple(skipped))


def words_of_characters(
    path: str | Path,
    *,
    count: int = 4860,
    validation_share: float = 0.05,
    test_share: float = 0.0,
    held_out_share: float = 0.1,
    scripts: Sequence[str] = (),
    seed: int = 0,
) -> Corpus:
    """Joins characters of real drawers to words; every part has other drawers.

    Args:
        path: An `.npz` of characters, see `characters.read_characters`.
        count: Number of words, all parts together.
        validation_share, test_share: Shares of the words to validate on and to test on; 0 for no test part.
        held_out_share: Share of the drawers for validation only, at least one drawer. A test part has as many others.
        scripts: Use only these scripts; empty for all.
        seed: Seed of the words.
    """
    _check_share("held_out_share", held_out_share)
    validated, tested = _held_counts(count, validation_share, test_share)
    characters = of_scripts(read_characters(path), scripts)
    drawers = np.unique(characters.drawers)
    outside = max(1, round(held_out_share * len(drawers)))
    places = 2 if tested else 1  # parts that are held out
    if places * outside >= len(drawers):
        rule = f"drawn by at least {places * outside + 1} drawers"
        raise value_error("path", rule, len(drawers), "Give characters of more people.")
    learnt, held_out = drawers[: -places * outside], drawers[-outside:]
    train = _words(characters, learnt, count=count - validated - tested, seed=seed)
    validation = _words(characters, held_out, count=validated, seed=seed, lane=1)
    test = None
    if tested:
        test = _words(characters, drawers[-2 * outside : -outside], count=tested, seed=seed, lane=2)
    also = " and as many to test on" if tested else ""
    split = f"{outside} of {len(drawers)} drawers held out for validation{also}; each word is of one drawer"
    return Corpus(
        name=" ".join(
            ["words joined from the", *(["/".join(scripts)] if scripts else []), "characters of", Path(path).name]
        ),
        split=split,
        train=train,
        validation=validation,
        test=test,
        alphabet=_alphabet(train, validation, test),
    )


def read_corpus(
    path: str | Path | None,
    *,
    count: int | None = None,
    validation_share: float = 0.05,
    test_share: float = 0.0,
    scripts: Sequence[str] = (),
    seed: int = 0,
    strict: bool = False,
) -> Corpus:
    """Reads a corpus: generated lines without a path, characters from an `.npz`, else a file or folder of handwriting.

    A file is UNIPEN if it has one of UNIPEN's suffixes. A folder is InkML or UNIPEN, see `ink_samples`.
    """
    is_archive = path is not None and Path(path).suffix == ".npz" and not Path(path).is_dir()
    if scripts and not is_archive:
        raise value_error("scripts", "left out without an .npz of characters", list(scripts), "Leave them out.")
    shares = {"validation_share": validation_share, "test_share": test_share}
    if path is None:
        return synthetic_lines(count=1200 if count is None else count, seed=seed, **shares)
    if is_archive:
        return words_of_characters(path, count=4860 if count is None else count, scripts=scripts, seed=seed, **shares)
    if not (Path(path).is_dir() or _is_unipen(path)):
        raise value_error("data", "an .npz file, a folder of InkML, or UNIPEN files", str(path), "Give one of these.")
    return ink_samples(path, count=count, seed=seed, strict=strict, **shares)


def _is_unipen(path: str | Path) -> bool:
    path = Path(path)
    if path.is_dir():
        return next(path.rglob("*.inkml"), None) is None and bool(unipen_files(path))
    return path.suffix.lower() in SUFFIXES


def validation_numbers(lengths: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Picks `count` samples at equal steps through the sorted lengths, so that validation covers all lengths.

    >>> validation_numbers(np.array([10, 40, 20, 30, 60, 50]), 2).tolist()
    [2, 5]
    """
    places = (2 * np.arange(count) + 1) * len(lengths) // (2 * count)
    return np.sort(np.argsort(lengths, kind="stable")[places])


def _make_corpus(
    name: str,
    split: str,
    samples: list[Sample],
    texts: list[str],
    shares: tuple[float, float],
    skipped: tuple[str, ...] = (),
) -> Corpus:
    """Splits samples into train, validation and test parts; `shares` are those of validation and test."""
    everything = Samples(strokes=tuple(samples), texts=tuple(texts))
    validated, tested = _held_counts(len(samples), *shares)
    train, validation = _hold_out(everything, validated)
    train, test = _hold_out(train, tested) if tested else (train, None)
    return Corpus(
        name=name,
        split=split,
        train=train,
        validation=validation,
        test=test,
        alphabet=_alphabet(train, validation, test),
        skipped=skipped,
        advice=(BAD_FILES,) if skipped else (),
    )


def _hold_out(samples: Samples, count: int) -> tuple[Samples, Samples]:
    """Splits off `count` samples; returns the larger part first."""
    numbers = validation_numbers(samples.lengths, count)
    return samples.take(np.setdiff1d(np.arange(len(samples)), numbers)), samples.take(numbers)


def _words(characters: Characters, drawers: NDArray[np.int64], *, count: int, seed: int, lane: int = 0) -> Samples:
    strokes, texts = join_characters(characters, drawers, count=count, seed=seed, lane=lane)
    return Samples(strokes=tuple(strokes), texts=tuple(texts))


def _alphabet(*parts: Samples | None) -> str:
    return "".join(sorted({symbol for part in parts if part is not None for text in part.texts for symbol in text}))


def _held_counts(count: int, validation_share: float, test_share: float) -> tuple[int, int]:
    """Returns the numbers of samples to validate on and to test on; at least one is left to learn from.

    >>> _held_counts(100, 0.2, 0.1)
    (20, 10)
    """
    _check_share("validation_share", validation_share)
    if test_share == 0.0:
        _check_count(count)
        return min(max(1, round(validation_share * count)), count - 1), 0
    _check_share("test_share", test_share)
    check_whole("count", count, minimum=3, remedy="Give a sample to learn from, one to validate on and one to test on.")
    tested = min(max(1, round(test_share * count)), count - 2)
    return min(max(1, round(validation_share * count)), count - 1 - tested), tested


def _check_count(count: int) -> None:
    check_whole("count", count, minimum=2, remedy="Give at least one sample to learn from and one to judge by.")


def _check_share(name: str, share: float) -> None:
    check_number(name, share, above=True, maximum=0.5, remedy="Give a share such as 0.05.")
