"""Log-mel spectrograms, by librosa: samples [N] -> magnitudes [bins / 2 + 1, F] -> log mel [F, bands]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import windows

from lengthwise.checks import check_number, check_whole
from lengthwise_recipes.speech.corpus import Samples
from lengthwise_recipes.speech.features import frame_sizes, mel_filters, spectrum, transform_length

Mel = NDArray[np.float32]

FLOOR = 1e-4  # 80 dB below a tone of full scale; without a floor, digital silence would be log(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMel:
    """Computes the spectrogram of a sound.

    A frame is log(max(floor, mel filters @ |spectrum|)). A tone of amplitude 1 has a spectrum of height 1.

    Attributes:
        bands: Mel filters, from 0 to half the sampling rate.
        window_seconds: Hann window of a frame.
        shift_seconds: Time from one frame to the next.

    References:
        Ge et al. 2021, section 6: frames of 50 ms, shifted by 12.5 ms. Shen et al. 2018, section 2.1: magnitudes, 80
        filters, a floor and the logarithm. Deviation: their filters go from 125 Hz to 7.6 kHz; their floor is 0.01 on
        a scale that the paper does not give.
    """

    bands: int = 80
    window_seconds: float = 0.050
    shift_seconds: float = 0.0125

    def __post_init__(self) -> None:
        check_whole("bands", self.bands, minimum=1, remedy="Give the number of mel filters: 80, for example.")
        for name in ("window_seconds", "shift_seconds"):
            check_number(name, getattr(self, name), above=True, remedy="Give seconds such as 0.05.")

    def __call__(self, samples: Samples, *, rate: int) -> Mel:
        """Computes the spectrogram of one sound.

        Args:
            samples: [N], from -1 to 1.
            rate: Samples per second.

        Returns:
            [F, bands] with F = 1 + N // shift. The middle of frame f is at sample f * shift; silence surrounds the
            sound.

        Raises:
            ValueError: The samples do not fill one window, or see `filters`.
        """
        window, shift = frame_sizes(samples, rate, self.window_seconds, self.shift_seconds)
        padded = np.pad(samples, (window // 2, window - window // 2))
        hann = windows.hann(window, sym=False)
        magnitudes = spectrum(padded, hann, shift=shift) / (hann.sum() / 2)
        return np.log(np.maximum(self.filters(rate) @ magnitudes, FLOOR)).T.astype(np.float32)

    def filters(self, rate: int) -> NDArray[np.float64]:
        """Returns the mel filters at a rate, [bands, bins / 2 + 1]; bins are a power of 2, at least the window.

        Raises:
            ValueError: There are too many bands for the window.
        """
        window = round(self.window_seconds * rate)
        return mel_filters(self.bands, transform_length(window), rate)
