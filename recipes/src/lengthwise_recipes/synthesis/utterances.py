"""Recordings as input of the network: standardised spectrograms, and texts as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lengthwise.checks import value_error
from lengthwise_recipes.synthesis.mel import Mel

FEWEST_SYMBOLS = 2  # batch norm needs a variance


@dataclass(frozen=True, kw_only=True, slots=True)
class Utterances:
    """Sentences as input of the network.

    Attributes:
        mels: The spectrogram of each sentence, float32 [F, bands].
        symbols: The characters of each sentence, int64 [characters]; the first character of the alphabet is 1.
        texts: The text of each sentence after `spell`.
    """

    mels: tuple[Mel, ...]
    symbols: tuple[NDArray[np.int64], ...]
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.mels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Frames of each sentence, [n]."""
        return np.array([len(mel) for mel in self.mels], np.int64)

    @property
    def text_lengths(self) -> NDArray[np.int64]:
        """Characters of each sentence, [n]."""
        return np.array([len(symbols) for symbols in self.symbols], np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Tensors of B utterances: symbols int64 [B, L], frames float [B, F, bands], and counts of both, [B]."""

    symbols: Tensor
    symbol_counts: Tensor
    frames: Tensor
    counts: Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Mean and deviation of each band over all frames of the training utterances, [bands] each.

    The network learns frames of mean 0 and variance 1, so predicting the mean has a squared error of 1. NVIDIA's recipe
    learns the logarithms without scaling, but it has 220 epochs to learn their mean.
    """

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    @classmethod
    def of(cls, mels: Sequence[Mel]) -> Scale:
        count = sum(len(mel) for mel in mels)
        mean = sum(mel.sum(axis=0, dtype=np.float64) for mel in mels) / count
        variance = sum(np.square(mel - mean).sum(axis=0) for mel in mels) / count
        deviation = np.where(variance > 0, np.sqrt(variance), 1.0)
        return cls(mean=np.asarray(mean, np.float32), deviation=deviation.astype(np.float32))

    def apply(self, mel: Mel) -> Mel:
        return (mel - self.mean) / self.deviation

    def undo(self, frames: Mel) -> Mel:
        return frames * self.deviation + self.mean


def spell(text: str) -> str:
    """Normalises a text: small letters, digits, punctuation, single spaces.

    >>> spell("  The  Kilns, 1490. ")
    'the kilns, 1490.'
    """
    return " ".join(text.lower().split())


def symbols_of(text: str, alphabet: str) -> NDArray[np.int64]:
    """Returns the numbers of the characters of a text, from 1.

    Raises:
        ValueError: A character is not in the alphabet, or there are fewer than `FEWEST_SYMBOLS`.
    """
    spelt, classes = spell(text), {symbol: number for number, symbol in enumerate(alphabet, start=1)}
    strange = sorted(set(spelt) - set(classes))
    if strange or len(spelt) < FEWEST_SYMBOLS:
        rule = f"at least {FEWEST_SYMBOLS} characters of {alphabet!r}"
        raise value_error("text", rule, "".join(strange) or text, "Write it with these.")
    return np.array([classes[symbol] for symbol in spelt], np.int64)


def make_batch(
    utterances: Utterances, numbers: NDArray[np.int64], *, width: int, multiple: int, device: torch.device
) -> Batch:
    """Pads utterances with zeros, as tensors on a device.

    Args:
        utterances: All utterances.
        numbers: [B], the utterances of the batch.
        width: Frames to pad to; the longest utterance if that is more.
        multiple: Frames of a decoder step; the padded frames are a multiple of it.
        device: The device of the tensors.
    """
    mels = [utterances.mels[number] for number in numbers]
    symbols = [utterances.symbols[number] for number in numbers]
    frames = max(width, *(len(mel) for mel in mels), 0)
    return Batch(
        symbols=pad_arrays(symbols).to(device),
        symbol_counts=torch.tensor([len(array) for array in symbols], device=device),
        frames=pad_arrays(mels, -(-frames // multiple) * multiple).to(device),
        counts=torch.tensor([len(mel) for mel in mels], device=device),
    )


def pad_arrays(arrays: Sequence[NDArray[Any]], width: int = 0) -> Tensor:
    """Stacks arrays [n, ...] of different n, with zeros at the end, to `width` or the longest: [B, width, ...]."""
    width = max(width, *(len(array) for array in arrays), 0)
    stacked = np.zeros((len(arrays), width, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return torch.from_numpy(stacked)
