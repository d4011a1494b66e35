"""A language model: the probability of a word after the word before it.

By hand, since the wheel of kenlm (ufal-kenlm) only reads models: it leaves out lmplz, the program that estimates them.
kaldingram, which trains them too, calls itself alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_number, value_error

DISCOUNT = 0.5  # taken off every count, and given to unseen pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Bigram:
    """Logarithms of probabilities. Words have numbers from 0, and the start and the end of an utterance both have V.

    P(w | h) is that of the pair, or P(w) times the back-off of h for a pair that was never seen.

    Attributes:
        words: The vocabulary, V words.
        singles: Log P(w), [V + 1].
        backoffs: Of each word before, [V + 1].
        pairs: Log P(w | h) for pairs (h, w).
    """

    words: tuple[str, ...]
    singles: NDArray[np.float64]
    backoffs: NDArray[np.float64]
    pairs: Mapping[tuple[int, int], float]


def even_bigram(words: Sequence[str]) -> Bigram:
    """Gives every word, and the end, the same probability after any word: right for random digits."""
    size = len(words) + 1
    return Bigram(words=tuple(words), singles=np.full(size, -np.log(size)), backoffs=np.zeros(size), pairs={})


def count_bigram(transcripts: Sequence[Sequence[str]], words: Sequence[str], *, discount: float = DISCOUNT) -> Bigram:
    """Learns a bigram from transcripts.

        P(w | h) = max(c(h, w) - discount, 0) / c(h) + discount n(h) / c(h) P(w)
        P(w) = (c(w) + 1) / (sum of c + V + 1)
        n(h) is the number of different words after h. If h never occurs, P(w | h) = P(w).

    Args:
        transcripts: Words of each utterance.
        words: The vocabulary.
        discount: From 0 to 1.

    Raises:
        ValueError: A transcript has a word that is not in the vocabulary.

    References:
        Absolute discounting, interpolated: Ney, Essen and Kneser 1994. Doetsch et al. 2017, section 5, decode with a
        4-gram; with a vocabulary of digits in any order, two words say as much as four.
    """
    check_number("discount", discount, maximum=1.0, remedy="Give a number such as 0.5.")
    counts = _pairs(transcripts, words)
    single = (counts.sum(axis=0) + 1) / (counts.sum() + len(counts))
    totals = counts.sum(axis=1)
    spared = np.where(totals > 0, discount * (counts > 0).sum(axis=1) / np.maximum(totals, 1), 1.0)
    pairs = {
        (last, word): float(np.log((counts[last, word] - discount) / totals[last] + spared[last] * single[word]))
        for last, word in np.argwhere(counts).tolist()
    }
    with np.errstate(divide="ignore"):  # without a discount, an unseen pair is impossible
        return Bigram(words=tuple(words), singles=np.log(single), backoffs=np.log(spared), pairs=pairs)


def _pairs(transcripts: Sequence[Sequence[str]], words: Sequence[str]) -> NDArray[np.int64]:
    numbers = {word: number for number, word in enumerate(words)}
    counts = np.zeros((len(words) + 1, len(words) + 1), np.int64)
    for transcript in transcripts:
        unknown = [word for word in transcript if word not in numbers]
        if unknown:
            remedy = "Add it, or leave its utterance out."
            raise value_error("transcripts", "of words of the vocabulary", unknown[0], remedy)
        row = [numbers[word] for word in transcript]
        np.add.at(counts, ([len(words), *row], [*row, len(words)]), 1)
    return counts
