"""The handwriting to learn: train and validation samples that share no ink, and what they are.

Four sources: lines that the project writes itself, characters of real drawers joined to words (`.npz`), folders of
InkML, and UNIPEN files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise._checks import check_number, check_whole, value_error
from lengthwise.recipes.handwriting.characters import join_characters, of_scripts, read_characters
from lengthwise.recipes.handwriting.inkml import read_inkml
from lengthwise.recipes.handwriting.pen import Sample
from lengthwise.recipes.handwriting.strokes import write_lines
from lengthwise.recipes.handwriting.unipen import SUFFIXES, read_unipen, unipen_files


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Pen samples, each float32 [T, 3] = dx, dy, pen_up, and the text of each; one character is one symbol."""

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
    """What a study learns from and is judged by.

    Attributes:
        name: Where it comes from, in a few words.
        split: How train and validation were parted, one sentence.
        train: Samples to learn from.
        validation: Samples to be judged by; no ink of theirs is in `train`.
        alphabet: All symbols, one character each, sorted; symbol s is class s + 1 of the network.
        skipped: What was left out, one line each.
    """

    name: str
    split: str
    train: Samples
    validation: Samples
    alphabet: str
    skipped: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For JSON: counts, symbols, and the train lengths described and fingerprinted."""
        lengths = self.train.lengths
        quantiles = np.quantile(lengths, [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
        return {
            "name": self.name,
            "split": self.split,
            "train_samples": len(self.train),
            "validation_samples": len(self.validation),
            "symbols": len(self.alphabet),
            "skipped": list(self.skipped),
            "train_points": int(lengths.sum()),
            "train_points_mean": round(float(lengths.mean()), 2),
            "train_points_quantiles_0_5_25_50_75_95_100": [round(float(value), 1) for value in quantiles],
            "train_fingerprint": lw.fingerprint(lengths),
        }


def written_lines(*, count: int = 1200, validation_share: float = 0.05, seed: int = 0) -> Corpus:
    """Lines that `strokes.write_lines` writes, each by a writer of its own."""
    _check_count(count)
    samples, texts = write_lines(count, seed=seed)
    split = "validation lines of every length, each by a writer of its own"
    return _parted("lines written by the project's own hands", split, samples, texts, validation_share)


def inkml_folder(
    folder: str | Path, *, count: int | None = None, validation_share: float = 0.05, strict: bool = False
) -> Corpus:
    """The InkML files of a folder, by name; the first `count` readable ones where `count` is given.

    Raises:
        ValueError: Where `count` is below 2, no file can be read, or, if `strict`, where any cannot.
    """
    if count is not None:
        _check_count(count)
    samples, texts, skipped = read_inkml(folder, count=count, strict=strict)
    split = "validation files of every length; one writer may be in both parts"
    return _parted(f"InkML files of {Path(folder).name}", split, samples, texts, validation_share, tuple(skipped))


def unipen_samples(
    path: str | Path, *, count: int | None = None, validation_share: float = 0.05, strict: bool = False
) -> Corpus:
    """The labelled segments of a UNIPEN file, or of a folder of them; the first `count` where it is given.

    Raises:
        ValueError: As `inkml_folder` does.
    """
    if count is not None:
        _check_count(count)
    samples, texts, skipped = read_unipen(path, count=count, strict=strict)
    split = "validation segments of every length; one writer may be in both parts"
    return _parted(f"UNIPEN files of {Path(path).name}", split, samples, texts, validation_share, tuple(skipped))


def drawn_words(
    path: str | Path,
    *,
    count: int = 4860,
    validation_share: float = 0.05,
    held_out_share: float = 0.1,
    scripts: Sequence[str] = (),
    seed: int = 0,
) -> Corpus:
    """Words of real drawers' characters, with validation drawers whom training never sees.

    Args:
        path: An `.npz` of characters, see `characters.read_characters`.
        count: Words, train and validation together.
        validation_share: Share of the words that is kept for validation.
        held_out_share: Share of the drawers who write validation words and nothing else; at least one.
        scripts: Use these scripts alone; all where none is named.
        seed: Of the choice of words.
    """
    _check_share("held_out_share", held_out_share)
    held = _validation_count(count, validation_share)
    characters = of_scripts(read_characters(path), scripts)
    drawers = np.unique(characters.drawers)
    outside = max(1, round(held_out_share * len(drawers)))
    if outside >= len(drawers):
        raise value_error("path", "drawn by at least 2 drawers", len(drawers), "Give characters of more people.")
    train = join_characters(characters, drawers[:-outside], count=count - held, seed=seed)
    validation = join_characters(characters, drawers[-outside:], count=held, seed=seed, lane=1)
    return Corpus(
        name=" ".join(
            ["words joined from the", *(["/".join(scripts)] if scripts else []), "characters of", Path(path).name]
        ),
        split=f"{outside} of {len(drawers)} drawers held out for validation; each word is of one drawer",
        train=Samples(strokes=tuple(train[0]), texts=tuple(train[1])),
        validation=Samples(strokes=tuple(validation[0]), texts=tuple(validation[1])),
        alphabet="".join(sorted(set("".join(train[1] + validation[1])))),
    )


def read_corpus(
    path: str | Path | None,
    *,
    count: int | None = None,
    validation_share: float = 0.05,
    scripts: Sequence[str] = (),
    seed: int = 0,
    strict: bool = False,
) -> Corpus:
    """Chooses the source: no path for written lines, an `.npz` for characters, UNIPEN by its suffixes, else InkML.

    A folder is one of UNIPEN where it holds no InkML but files that end as UNIPEN does.
    """
    drawn = path is not None and Path(path).suffix == ".npz" and not Path(path).is_dir()
    if scripts and not drawn:
        raise value_error("scripts", "given with an .npz of characters", list(scripts), "Leave them out.")
    if path is None:
        return written_lines(count=1200 if count is None else count, validation_share=validation_share, seed=seed)
    if _is_unipen(Path(path)):
        return unipen_samples(path, count=count, validation_share=validation_share, strict=strict)
    if Path(path).is_dir():
        return inkml_folder(path, count=count, validation_share=validation_share, strict=strict)
    if not drawn:
        raise value_error("data", "an .npz file or a folder of InkML, or UNIPEN files", str(path), "Give one of these.")
    words = 4860 if count is None else count
    return drawn_words(path, count=words, validation_share=validation_share, scripts=scripts, seed=seed)


def _is_unipen(path: Path) -> bool:
    if path.is_dir():
        return next(path.rglob("*.inkml"), None) is None and bool(unipen_files(path))
    return path.suffix.lower() in SUFFIXES


def validation_numbers(lengths: NDArray[np.int64], held: int) -> NDArray[np.int64]:
    """Picks `held` of the samples at equal steps through the sorted lengths, so that every length is judged.

    >>> validation_numbers(np.array([10, 40, 20, 30, 60, 50]), 2).tolist()
    [2, 5]
    """
    places = (2 * np.arange(held) + 1) * len(lengths) // (2 * held)
    return np.sort(np.argsort(lengths, kind="stable")[places])


def _parted(
    name: str, split: str, samples: list[Sample], texts: list[str], share: float, skipped: tuple[str, ...] = ()
) -> Corpus:
    everything = Samples(strokes=tuple(samples), texts=tuple(texts))
    held = validation_numbers(everything.lengths, _validation_count(len(samples), share))
    kept = np.setdiff1d(np.arange(len(samples)), held)
    return Corpus(
        name=name,
        split=split,
        train=everything.take(kept),
        validation=everything.take(held),
        alphabet="".join(sorted(set("".join(texts)))),
        skipped=skipped,
    )


def _validation_count(count: int, share: float) -> int:
    _check_count(count)
    _check_share("validation_share", share)
    return min(max(1, round(share * count)), count - 1)


def _check_count(count: int) -> None:
    check_whole("count", count, minimum=2, remedy="Give at least one sample to learn from and one to judge by.")


def _check_share(name: str, share: float) -> None:
    check_number(name, share, above=True, maximum=0.5, remedy="Give a share such as 0.05.")
