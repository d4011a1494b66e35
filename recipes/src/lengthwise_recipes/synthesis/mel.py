"""Log-mel spectrograms, by librosa: samples [N] -> magnitudes [bins / 2 + 1, F] -> log mel [F, bands]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import windows

from lengthwise.checks import check_number, check_whole, value_error
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Samples
from lengthwise_recipes.speech.features import mel_filters, spectrum, transform_length
from lengthwise_recipes.speech.wav import check_samples
from lengthwise_recipes.synthesis.corpus import SpeechCorpus

Mel = NDArray[np.float32]

FLOOR = 1e-4  # 80 dB below a tone of full scale: digital silence needs a logarithm


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMel:
    """How a sound becomes a spectrogram.

    A frame is log(max(floor, mel filters @ |spectrum|)), where a tone of amplitude 1 has a spectrum of height 1.

    Attributes:
        bands: Mel filters, from 0 to half the sampling rate.
        window_seconds: What one frame sees, through a Hann window.
        shift_seconds: From one frame to the next.

    References:
        Ge et al. 2021, section 6: frames of 50 ms, shifted by 12.5 ms. Shen et al. 2018, section 2.1: magnitudes, 80
        filters, a floor and the logarithm; their filters go from 125 Hz to 7.6 kHz, and their floor is 0.01 on a scale
        that they do not tell.
    """

    bands: int = 80
    window_seconds: float = 0.050
    shift_seconds: float = 0.0125

    def __post_init__(self) -> None:
        check_whole("bands", self.bands, minimum=1, remedy="Give how many mel filters: 80, for example.")
        for name in ("window_seconds", "shift_seconds"):
            check_number(name, getattr(self, name), above=True, remedy="Give seconds such as 0.05.")

    def __call__(self, samples: Samples, *, rate: int) -> Mel:
        """Computes the spectrogram of one sound.

        Args:
            samples: [N], from -1 to 1.
            rate: Samples a second.

        Returns:
            [F, bands] with F = 1 + N // shift: frame f has its middle at sample f * shift, and there is silence
            before the first sample and after the last.

        Raises:
            ValueError: Where the samples do not fill one window, or as `filters` does.
        """
        window, shift = round(self.window_seconds * rate), max(1, round(self.shift_seconds * rate))
        if len(samples) < window:
            rule = f"at least one window of {window} samples"
            raise value_error("samples", rule, len(samples), "Leave the recording out.")
        surrounded = np.pad(samples, (window // 2, window - window // 2))
        hann = windows.hann(window, sym=False)
        magnitudes = spectrum(surrounded, hann, shift=shift) / (hann.sum() / 2)
        return np.log(np.maximum(self.filters(rate) @ magnitudes, FLOOR)).T.astype(np.float32)

    def filters(self, rate: int) -> NDArray[np.float64]:
        """The mel filters at a sampling rate, [bands, bins / 2 + 1]; bins are the next power of 2 of the window.

        Raises:
            ValueError: Where there are more bands than the window can tell apart.
        """
        window = round(self.window_seconds * rate)
        return mel_filters(self.bands, transform_length(window), rate)


def corpus_mels(corpus: SpeechCorpus, log_mel: LogMel, *, strict: bool = False) -> tuple[SpeechCorpus, list[Mel]]:
    """Computes the spectrogram of every recording; one sound at a time is in memory.

    Args:
        corpus: The recordings.
        log_mel: How.
        strict: Whether to raise for the first recording that cannot be used: too short for a window, samples that are
            not finite, or fewer of them than its file promised.

    Returns:
        The corpus without what was left out, which it names, its sounds fingerprinted; and the spectrogram of each
        recording, [F, bands].

    Raises:
        ValueError: Where `log_mel` does not fit the rate of the corpus, or as `strict` says.
    """
    log_mel.filters(corpus.rate)
    skipped, kept, mels = Skipped(strict=strict), [], []
    for recording in corpus.recordings:
        try:
            samples = check_samples(recording.load(), recording.count)
            mels.append(log_mel(samples, rate=corpus.rate))
            kept.append(replace(recording, sound=fingerprint([samples])))
        except ValueError as error:
            skipped.add(ValueError(f"{error} This is recording {recording.name}."))
    left = (*corpus.skipped, *skipped.sentences)
    return replace(corpus, recordings=tuple(kept), skipped=left), mels
