"""Prepares samples for the network: selects those that CTC can learn, and makes frames and class numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lengthwise.checks import value_error
from lengthwise_recipes.handwriting.data import Corpus, Samples
from lengthwise_recipes.handwriting.model import least_frames, stack_frames


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """Samples for the network: frames float32 [F, 3 * stack], labels int64 [symbols], lengths in points."""

    frames: list[Tensor]
    labels: list[Tensor]
    lengths: NDArray[np.int64]
    texts: tuple[str, ...]
    stack: int


def select_learnable(corpus: Corpus, *, stack: int, strict: bool = False) -> tuple[Corpus, list[str]]:
    """Leaves out samples with fewer frames than CTC needs for their text; also returns a line on each of them.

    The returned corpus advises how many of them smaller stacks would keep.

    Raises:
        ValueError: A part has no samples left; with `strict` also if any sample is too short.
    """
    skipped: list[str] = []
    stacks: list[int] = []
    parts: dict[str, Any] = {}
    for name, samples in corpus.parts.items():
        frames = -(-samples.lengths // stack)
        needed = np.array([least_frames(text) for text in samples.texts])
        for sample in np.flatnonzero((frames < needed) | (needed == 0)):
            stacks.append(_largest_stack(int(samples.lengths[sample]), int(needed[sample])))
            skipped.append(
                f"{name} sample {sample}: {frames[sample]} frames for a text that needs {max(needed[sample], 1)}"
            )
        if skipped and strict:
            remedy = "Give a smaller stack, or leave strict out to skip it."
            raise value_error("data", "of samples as long as their texts", skipped[0], remedy)
        parts[name] = samples.take(np.flatnonzero((frames >= needed) & (needed > 0)))
        if not len(parts[name]):
            raise value_error("data", "of samples as long as their texts", skipped[0], "Give a smaller stack.")
    advice = (*corpus.advice, *_advice(stacks, stack))
    return dataclasses.replace(corpus, **parts, advice=advice), skipped


def _largest_stack(points: int, needed: int) -> int:
    """Returns the largest stack that makes at least `needed` frames of `points`; 0 if none does.

    9 points are 3 frames with a stack of 4, and 5 frames with a stack of 2. For 4 frames, 2 is the largest stack.

    >>> _largest_stack(9, 3), _largest_stack(9, 4), _largest_stack(9, 10)
    (4, 2, 0)
    """
    return (points - 1) // (needed - 1) if needed > 1 else 0


def _advice(stacks: Sequence[int], stack: int) -> Iterator[str]:
    """Advises smaller stacks, with the number of skipped samples that each would keep.

    `stacks` has the largest stack that keeps each skipped sample.
    """
    gains = {smaller: sum(largest >= smaller for largest in stacks) for smaller in range(1, stack)}
    better = [smaller for smaller in gains if gains[smaller] > gains.get(smaller + 1, 0)]
    if better:
        choices = ", ".join(f"{gains[smaller]:,} with --stack {smaller}" for smaller in reversed(better[-3:]))
        yield (
            f"Samples with fewer frames than their text needs: {len(stacks):,}. "
            f"Of these `lengthwise study handwriting` would keep {choices}."
        )
    if lost := stacks.count(0):
        yield f"Samples that no stack keeps, with fewer points than their text needs frames: {lost:,}."


def prepare(samples: Samples, alphabet: str, stack: int) -> Prepared:
    """Stacks the points and numbers the symbols: symbol s of the alphabet is class s + 1."""
    classes = {symbol: number for number, symbol in enumerate(alphabet, start=1)}
    return Prepared(
        frames=[stack_frames(sample, stack) for sample in samples.strokes],
        labels=[torch.tensor([classes[symbol] for symbol in text]) for text in samples.texts],
        lengths=samples.lengths,
        texts=samples.texts,
        stack=stack,
    )
