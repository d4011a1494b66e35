"""Samples made ready for the network: those that CTC can learn, as frames and class numbers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lengthwise._checks import value_error
from lengthwise.recipes.handwriting.data import Corpus, Samples
from lengthwise.recipes.handwriting.model import frames_needed, stack_frames


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """Samples as the network takes them: frames float32 [F, 3 * stack], labels int64 [symbols], lengths in points."""

    frames: list[Tensor]
    labels: list[Tensor]
    lengths: NDArray[np.int64]
    texts: tuple[str, ...]
    stack: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedCorpus:
    """Samples as the network takes them; symbol s of the alphabet is class s + 1."""

    train: Prepared
    validation: Prepared
    test: Prepared | None
    alphabet: str


def learnable(corpus: Corpus, *, stack: int, strict: bool = False) -> tuple[Corpus, list[str]]:
    """Leaves out the samples with fewer frames than CTC needs to write their text, and says which, one line each.

    Raises:
        ValueError: Where none is left, or, if `strict`, where one is left out.
    """
    skipped: list[str] = []
    parts = {}
    for name in ("train", "validation", "test"):
        samples: Samples | None = getattr(corpus, name)
        if samples is None:
            continue
        frames = -(-samples.lengths // stack)
        needed = np.array([frames_needed(text) for text in samples.texts])
        for sample in np.flatnonzero((frames < needed) | (needed == 0)):
            skipped.append(
                f"{name} sample {sample}: {frames[sample]} frames for a text that needs {max(needed[sample], 1)}"
            )
        if skipped and strict:
            remedy = "Give a smaller stack, or leave strict out to skip it."
            raise value_error("data", "of samples as long as their texts", skipped[0], remedy)
        parts[name] = samples.take(np.flatnonzero((frames >= needed) & (needed > 0)))
        if not len(parts[name]):
            raise value_error("data", "of samples as long as their texts", skipped[0], "Give a smaller stack.")
    return dataclasses.replace(corpus, **parts), skipped


def prepare(samples: Samples, alphabet: str, stack: int) -> Prepared:
    """Stacks the points and numbers the symbols from 1."""
    classes = {symbol: number for number, symbol in enumerate(alphabet, start=1)}
    return Prepared(
        frames=[stack_frames(sample, stack) for sample in samples.strokes],
        labels=[torch.tensor([classes[symbol] for symbol in text]) for text in samples.texts],
        lengths=samples.lengths,
        texts=samples.texts,
        stack=stack,
    )


def prepare_corpus(corpus: Corpus, stack: int) -> PreparedCorpus:
    return PreparedCorpus(
        train=prepare(corpus.train, corpus.alphabet, stack),
        validation=prepare(corpus.validation, corpus.alphabet, stack),
        test=None if corpus.test is None else prepare(corpus.test, corpus.alphabet, stack),
        alphabet=corpus.alphabet,
    )
