"""Mel-frequency cepstral coefficients of a sound, by librosa.

samples [N] -> magnitudes [bins / 2 + 1, F] -> log mel [filters, F] -> cepstra [F, D]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
SLOPE_REACH = 2  # frames on either side for the fit of a slope
MADE_BY = f"librosa {version('librosa')}"  # recorded, and checked before training continues from a checkpoint


@dataclass(frozen=True, kw_only=True, slots=True)
class Cepstra:
    """Computes features of a sound; the defaults are those of the paper, if it gives them.

    Attributes:
        coefficients: Cepstra of a frame, with the energy.
        filters: Mel filters, from 0 to half the sampling rate.
        window_seconds: Window of a frame.
        shift_seconds: Time from one frame to the next.

    References:
        Doetsch et al. 2017, section 5: 16 coefficients. It does not give window, shift, filters and normalisation; ours
        are usual. The mean of each coefficient over the utterance is subtracted.
    """

    coefficients: int = 16
    filters: int = 24
    window_seconds: float = 0.025
    shift_seconds: float = 0.010

    def __post_init__(self) -> None:
        remedy = "Give at least as many filters as coefficients."
        check_whole("coefficients", self.coefficients, minimum=1, maximum=self.filters, remedy=remedy)
        check_whole("filters", self.filters, minimum=1, remedy=remedy)
        for name in ("window_seconds", "shift_seconds"):
            check_number(name, getattr(self, name), above=True, remedy="Give seconds such as 0.01.")

    def __call__(self, samples: Samples, *, rate: int) -> Features:
        """Computes the features of one utterance.

        Args:
            samples: [N], from -1 to 1.
            rate: Samples per second.

        Returns:
            [F, coefficients] with F = 1 + (N - window) // shift: whole windows only, without padding.

        Raises:
            ValueError: The samples do not fill one window.
        """
        window, shift = frame_sizes(samples, rate, self.window_seconds, self.shift_seconds)
        filters = mel_filters(self.filters, transform_length(window), rate)
        emphasis = np.array([1.0, -PREEMPHASIS], np.float32)  # in 32 bits, as in the committed results
        sound = signal.lfilter(emphasis, np.ones(1, np.float32), samples.astype(np.float32))
        power = spectrum(np.asarray(sound), windows.hamming(window), shift=shift) ** 2
        mel = np.log(np.maximum(filters @ power, POWER_FLOOR))
        cepstra = librosa.feature.mfcc(S=mel, n_mfcc=self.coefficients).T
        return (cepstra - cepstra.mean(axis=0)).astype(np.float32)


def frame_sizes(samples: Samples, rate: int, window_seconds: float, shift_seconds: float) -> tuple[int, int]:
    """Returns the samples of a window and of a shift; raises a ValueError if the sound does not fill a window."""
    window = round(window_seconds * rate)
    if len(samples) < window:
        rule = f"at least one window of {window} samples"
        raise value_error("samples", rule, len(samples), "Leave the utterance out.")
    return window, max(1, round(shift_seconds * rate))


def spectrum(sound: NDArray[np.floating], weights: NDArray[np.float64], *, shift: int) -> NDArray[np.float64]:
    """Returns the magnitude of every frequency; frame f covers samples f * shift to f * shift + window.

    librosa uses windows of a power of 2 samples, with the weights in the middle. Zeros on either side of the sound
    compensate for that: one window of sound is long enough, and no window reaches beyond the sound.

    Args:
        sound: [N], at least one window.
        weights: [window], the weights of the samples of a frame.
        shift: Samples from one frame to the next.

    Returns:
        [bins / 2 + 1, F] with F = 1 + (N - window) // shift; bins are the next power of 2 of the window.
    """
    bins = transform_length(len(weights))
    left_padding = (bins - len(weights)) // 2
    padded = np.pad(sound.astype(np.float64), (left_padding, bins - len(weights) - left_padding))
    transform = librosa.stft(
        padded, n_fft=bins, hop_length=shift, win_length=len(weights), window=weights, center=False, dtype=np.complex128
    )
    return np.abs(transform)


def transform_length(window: int) -> int:
    """Returns the next power of 2.

    >>> transform_length(200), transform_length(256)
    (256, 256)
    """
    return 1 << (window - 1).bit_length()


def mel_filters(filters: int, bins: int, rate: int) -> NDArray[np.float64]:
    """Returns triangles of height 1, evenly spaced on the mel scale; each begins at the peak of the previous one.

    They cover 0 to half the rate. mel(f) = 2595 log10(1 + f / 700), the variant that librosa calls HTK.

    Args:
        filters: Number of filters.
        bins: Length of the Fourier transform.
        rate: Samples per second.

    Returns:
        [filters, bins / 2 + 1]: the weight of every frequency.

    Raises:
        ValueError: A filter falls between two frequencies, so all its weights are 0.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Empty filters detected")  # said below, as an error
        weights = librosa.filters.mel(sr=rate, n_fft=bins, n_mels=filters, htk=True, norm=None, dtype=np.float64)
    if not weights.any(axis=1).all():
        remedy = "Give fewer, or a longer window."
        raise value_error("filters", "few enough that each covers a frequency", filters, remedy)
    return weights


def with_slopes(features: Features) -> Features:
    """Appends the slopes of the features, and the slopes of these slopes: [F, D] becomes [F, 3 D].

    The slope at frame t is that of the least-squares line through the frames t - 2 to t + 2. Beyond the borders the
    first and the last frame repeat. A Gaussian mixture sees single frames, so it needs slopes; a recurrent network does
    not.
    """
    first = _slopes(features)
    return np.concatenate([features, first, _slopes(first)], axis=1).astype(np.float32)


def corpus_features(
    corpus: Corpus, compute: Callable[..., Features] | None = None, *, strict: bool = False
) -> tuple[Corpus, list[Features]]:
    """Computes the features of all utterances.

    Args:
        corpus: The utterances; one at a time is in memory.
        compute: Computes features [F, D] of samples [N] at a `rate`; by default `Cepstra` of the paper.
        strict: Raise for the first unusable utterance: too short for a frame, samples that are not finite, or too few
            samples in its file.

    Returns:
        The corpus of the usable utterances, with fingerprints of their sounds, and the features of each, [F, D]. The
        corpus names the utterances that were left out.
    """
    compute, skipped = compute or Cepstra(), Skipped(strict=strict)
    utterances, features = [], []
    for utterance in corpus.utterances:
        try:
            samples = check_samples(utterance.load(), utterance.count)
            features.append(compute(samples, rate=corpus.rate))
            utterances.append(replace(utterance, sound=fingerprint([samples])))
        except ValueError as error:
            skipped.add(ValueError(f"{error} This is utterance {utterance.name}."))
    sentences = (*corpus.skipped, *skipped.sentences)
    return replace(corpus, utterances=tuple(utterances), skipped=sentences), features


def _slopes(features: Features) -> Features:
    return librosa.feature.delta(features, width=2 * SLOPE_REACH + 1, axis=0, mode="nearest")
