"""Mel-frequency cepstral coefficients of a sound.

samples [N] -> frames [F, window] -> power [F, bins] -> log mel [F, filters] -> cepstra [F, D]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus, Samples
from lengthwise_recipes.speech.wav import checked

Features = NDArray[np.float32]

PREEMPHASIS = 0.97
POWER_FLOOR = 1e-10  # so that digital silence has a logarithm
SLOPE_REACH = 2  # frames to either side that a slope is fitted to


@dataclass(frozen=True, kw_only=True, slots=True)
class Cepstra:
    """How a sound becomes features; the defaults are those of the paper where it names them.

    Attributes:
        coefficients: Cepstra of a frame, the one of the energy included.
        filters: Mel filters, from 0 to half the sampling rate.
        window_seconds: What one frame sees.
        shift_seconds: From one frame to the next.

    References:
        Doetsch et al. 2017, section 5: 16 coefficients. Window, shift and filters are not given there, and neither
        is the normalisation; those here are usual. The mean of each coefficient over the utterance is taken off.
    """

    coefficients: int = 16
    filters: int = 24
    window_seconds: float = 0.025
    shift_seconds: float = 0.010

    def __post_init__(self) -> None:
        remedy = "Give as many filters as coefficients at least."
        check_whole("coefficients", self.coefficients, minimum=1, maximum=self.filters, remedy=remedy)
        check_whole("filters", self.filters, minimum=1, remedy=remedy)
        for name in ("window_seconds", "shift_seconds"):
            check_number(name, getattr(self, name), above=True, remedy="Give seconds such as 0.01.")

    def __call__(self, samples: Samples, *, rate: int) -> Features:
        """Computes the features of one utterance.

        Args:
            samples: [N], from -1 to 1.
            rate: Samples a second.

        Returns:
            [F, coefficients] with F = 1 + (N - window) // shift: only whole windows, nothing is padded.

        Raises:
            ValueError: Where the samples do not fill one window.
        """
        window, shift = round(self.window_seconds * rate), max(1, round(self.shift_seconds * rate))
        if len(samples) < window:
            rule = f"at least one window of {window} samples"
            raise value_error("samples", rule, len(samples), "Leave the utterance out.")
        sound = np.append(samples[:1], samples[1:] - PREEMPHASIS * samples[:-1]).astype(np.float64)
        frames = sliding_window_view(sound, window)[::shift] * np.hamming(window)
        bins = 1 << (window - 1).bit_length()
        power = np.abs(np.fft.rfft(frames, bins)) ** 2
        mel = np.maximum(power @ mel_filters(self.filters, bins, rate).T, POWER_FLOOR)
        cepstra = np.log(mel) @ cosines(self.coefficients, self.filters).T
        return (cepstra - cepstra.mean(axis=0)).astype(np.float32)


def mel_filters(filters: int, bins: int, rate: int) -> NDArray[np.float64]:
    """Triangles of height 1, evenly spaced on the mel scale from 0 to half the rate; each begins where another peaks.

    mel(f) = 2595 log10(1 + f / 700).

    Args:
        filters: How many.
        bins: Length of the Fourier transform.
        rate: Samples a second.

    Returns:
        [filters, bins / 2 + 1]: the weight of every frequency.

    Raises:
        ValueError: Where a filter falls between two frequencies, and so would hear nothing.
    """
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, filters + 2) / 2595) - 1)
    frequencies = np.arange(bins // 2 + 1) * rate / bins
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0.0, np.minimum(rising, falling))
    if not weights.any(axis=1).all():
        raise value_error(
            "filters", "few enough that each hears a frequency", filters, "Give fewer, or a longer window."
        )
    return weights


def cosines(coefficients: int, filters: int) -> NDArray[np.float64]:
    """The first rows of the orthonormal discrete cosine transform (type II), [coefficients, filters].

    >>> cosines(2, 2).round(4).tolist()
    [[0.7071, 0.7071], [0.7071, -0.7071]]
    """
    angles = np.pi / filters * np.outer(np.arange(coefficients), np.arange(filters) + 0.5)
    scales = np.where(np.arange(coefficients) == 0, 1 / filters, 2 / filters) ** 0.5
    return scales[:, None] * np.cos(angles)


def with_slopes(features: Features) -> Features:
    """Appends how fast each feature changes, and how fast that changes: [F, D] becomes [F, 3 D].

    The slope at frame t is that of the least-squares line through the frames t - 2 to t + 2, the first and the last
    frame repeated beyond the borders. A mixture sees a single frame, and is told of its neighbours by this; a
    recurrent network needs no such help.
    """
    first = _slopes(features)
    return np.concatenate([features, first, _slopes(first)], axis=1)


def corpus_features(
    corpus: Corpus, cepstra: Cepstra | None = None, *, strict: bool = False
) -> tuple[Corpus, list[Features]]:
    """Computes the features of all utterances.

    Args:
        corpus: What to compute them of; one utterance at a time is in memory.
        cepstra: How; as in the paper where none is given.
        strict: Whether to raise for the first utterance that cannot be used: too short for a frame, samples that are
            not finite, or fewer of them than its file promised.

    Returns:
        The corpus without what was left out, which it names, its sounds fingerprinted; and the features of each
        utterance, [F, D].
    """
    cepstra, skipped = cepstra or Cepstra(), Skipped(strict=strict)
    kept, features = [], []
    for utterance in corpus.utterances:
        try:
            samples = checked(utterance.load(), utterance.count)
            features.append(cepstra(samples, rate=corpus.rate))
            kept.append(replace(utterance, sound=fingerprint([samples])))
        except ValueError as error:
            skipped.add(ValueError(f"{error} This is utterance {utterance.name}."))
    left = (*corpus.skipped, *skipped.sentences)
    return replace(corpus, utterances=tuple(kept), skipped=left), features


def _slopes(features: Features) -> Features:
    padded = np.pad(features, ((SLOPE_REACH, SLOPE_REACH), (0, 0)), mode="edge")
    reach = np.arange(-SLOPE_REACH, SLOPE_REACH + 1, dtype=np.float32)
    return sliding_window_view(padded, len(reach), axis=0) @ (reach / np.square(reach).sum())
