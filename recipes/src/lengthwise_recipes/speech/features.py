"""Mel-frequency cepstral coefficients of a sound, by librosa.

samples [N] -> magnitudes [bins / 2 + 1, F] -> log mel [filters, F] -> cepstra [F, D]
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from importlib.metadata import version

import librosa
import numpy as np
from numpy.typing import NDArray
from scipy import signal
from scipy.signal import windows

from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus, Samples
from lengthwise_recipes.speech.wav import check_samples

Features = NDArray[np.float32]

PREEMPHASIS = 0.97
POWER_FLOOR = 1e-10  # so that digital silence has a logarithm
SLOPE_REACH = 2  # frames to either side that a slope is fitted to
MADE_BY = f"librosa {version('librosa')}"  # for the record, and so that no checkpoint of other features is gone on with


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
        filters = mel_filters(self.filters, transform_length(window), rate)
        emphasis = np.array([1.0, -PREEMPHASIS], np.float32)  # in 32 bits, as the committed results have it
        sound = signal.lfilter(emphasis, np.ones(1, np.float32), samples.astype(np.float32))
        power = spectrum(np.asarray(sound), windows.hamming(window), shift=shift) ** 2
        mel = np.log(np.maximum(filters @ power, POWER_FLOOR))
        cepstra = librosa.feature.mfcc(S=mel, n_mfcc=self.coefficients).T
        return (cepstra - cepstra.mean(axis=0)).astype(np.float32)


def spectrum(sound: NDArray[np.floating], weights: NDArray[np.float64], *, shift: int) -> NDArray[np.float64]:
    """The magnitude of every frequency in every frame: frame f sees samples f * shift to f * shift + window.

    librosa takes windows of a power of 2 samples, the weights in their middle; the zeros that the sound gets on either
    side make up for that. So no sound that fills one window is too short, and no window reaches beyond the sound.

    Args:
        sound: [N], of one window at least.
        weights: [window], by which the samples of a frame are weighed.
        shift: Samples from one frame to the next.

    Returns:
        [bins / 2 + 1, F] with F = 1 + (N - window) // shift; bins are the next power of 2 of the window.
    """
    bins = transform_length(len(weights))
    before = (bins - len(weights)) // 2
    padded = np.pad(sound.astype(np.float64), (before, bins - len(weights) - before))
    found = librosa.stft(
        padded, n_fft=bins, hop_length=shift, win_length=len(weights), window=weights, center=False, dtype=np.complex128
    )
    return np.abs(found)


def transform_length(window: int) -> int:
    """The next power of 2.

    >>> transform_length(200), transform_length(256)
    (256, 256)
    """
    return 1 << (window - 1).bit_length()


def mel_filters(filters: int, bins: int, rate: int) -> NDArray[np.float64]:
    """Triangles of height 1, evenly spaced on the mel scale from 0 to half the rate; each begins where another peaks.

    mel(f) = 2595 log10(1 + f / 700), which librosa calls that of HTK.

    Args:
        filters: How many.
        bins: Length of the Fourier transform.
        rate: Samples a second.

    Returns:
        [filters, bins / 2 + 1]: the weight of every frequency.

    Raises:
        ValueError: Where a filter falls between two frequencies, and so would hear nothing.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Empty filters detected")  # said below, as an error
        weights = librosa.filters.mel(sr=rate, n_fft=bins, n_mels=filters, htk=True, norm=None, dtype=np.float64)
    if not weights.any(axis=1).all():
        raise value_error(
            "filters", "few enough that each hears a frequency", filters, "Give fewer, or a longer window."
        )
    return weights


def with_slopes(features: Features) -> Features:
    """Appends how fast each feature changes, and how fast that changes: [F, D] becomes [F, 3 D].

    The slope at frame t is that of the least-squares line through the frames t - 2 to t + 2, the first and the last
    frame repeated beyond the borders. A mixture sees a single frame, and is told of its neighbours by this; a
    recurrent network needs no such help.
    """
    first = _slopes(features)
    return np.concatenate([features, first, _slopes(first)], axis=1).astype(np.float32)


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
            samples = check_samples(utterance.load(), utterance.count)
            features.append(cepstra(samples, rate=corpus.rate))
            kept.append(replace(utterance, sound=fingerprint([samples])))
        except ValueError as error:
            skipped.add(ValueError(f"{error} This is utterance {utterance.name}."))
    left = (*corpus.skipped, *skipped.sentences)
    return replace(corpus, utterances=tuple(kept), skipped=left), features


def _slopes(features: Features) -> Features:
    return librosa.feature.delta(features, width=2 * SLOPE_REACH + 1, axis=0, mode="nearest")
