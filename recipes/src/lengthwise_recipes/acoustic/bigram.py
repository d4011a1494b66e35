"""A language model: the probability of a word after the word before it.

By hand, since kenlm, which the field uses, has no wheel and must be built from C++. The decoder needs one array of all
pairs of words, which takes ten lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_number, value_error

DISCOUNT = 0.5  # taken off every count, and given to unseen pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Bigram:
    """Scores of word pairs.

    Attributes:
        words: The vocabulary, V words.
        scores: [V + 1, V + 1]: row h, column w is the logarithm of P(w | h). The last row is the start of an
            utterance, the last column is its end.
    """

    words: tuple[str, ...]
    scores: NDArray[np.float64]


def even_bigram(words: Sequence[str]) -> Bigram:
    """Gives every word, and the end, the same probability after any word: right for random digits."""
    size = len(words) + 1
    return Bigram(words=tuple(words), scores=np.full((size, size), -np.log(size)))


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
    single = counts.sum(axis=0) + 1
    totals = counts.sum(axis=1, keepdims=True)
    kinds = (counts > 0).sum(axis=1, keepdims=True)
    divisor = np.maximum(totals, 1)
    spared = np.where(totals > 0, discount * kinds / divisor, 1.0)
    shares = np.maximum(counts - discount, 0) / divisor + spared * single / single.sum()
    return Bigram(words=tuple(words), scores=_logs(shares))


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


def _logs(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # without a discount, an unseen pair is impossible
        return np.log(shares)
