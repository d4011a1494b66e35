"""Cepstra and spectrograms by the same formulas in plain NumPy.

The results committed up to 2026-11-22 were trained on features that were computed so.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def cepstra(samples, rate, *, coefficients=16, filters=24):
    """[F, coefficients]: pre-emphasis, a Hamming window of 25 ms every 10 ms, log mel, the cosine transform."""
    window, shift = round(0.025 * rate), round(0.010 * rate)
    sound = np.append(samples[:1], samples[1:] - 0.97 * samples[:-1]).astype(np.float64)
    frames = sliding_window_view(sound, window)[::shift] * np.hamming(window)
    bins = 1 << (window - 1).bit_length()
    power = np.abs(np.fft.rfft(frames, bins)) ** 2
    found = np.log(np.maximum(power @ triangles(filters, bins, rate).T, 1e-10)) @ cosines(coefficients, filters).T
    return (found - found.mean(axis=0)).astype(np.float32)


def log_mel(samples, rate, *, bands):
    """[F, bands]: silence around, a Hann window of 50 ms every 12.5 ms, magnitudes, the mel filters, a floor."""
    window, shift = round(0.050 * rate), round(0.0125 * rate)
    silence = np.zeros(window // 2, np.float32)
    sound = np.concatenate([silence, samples, silence, np.zeros(window % 2, np.float32)])
    hann = np.hanning(window + 1)[:-1]
    frames = sliding_window_view(sound, window)[::shift] * hann
    filters = triangles(bands, 1 << (window - 1).bit_length(), rate)
    magnitudes = np.abs(np.fft.rfft(frames, 2 * (filters.shape[1] - 1))) / (hann.sum() / 2)
    return np.log(np.maximum(magnitudes @ filters.T, 1e-4)).astype(np.float32)


def slopes(features):
    """[F, 2 D]: the slope of the line through five frames, and that of these."""
    first = _slope(features)
    return np.concatenate([first, _slope(first)], axis=1)


def triangles(filters, bins, rate):
    """[filters, bins / 2 + 1], evenly spaced by mel(f) = 2595 log10(1 + f / 700)."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, filters + 2) / 2595) - 1)
    frequencies = np.arange(bins // 2 + 1) * rate / bins
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0.0, np.minimum(rising, falling))


def cosines(coefficients, filters):
    """The first rows of the orthonormal discrete cosine transform of type II."""
    angles = np.pi / filters * np.outer(np.arange(coefficients), np.arange(filters) + 0.5)
    scales = np.where(np.arange(coefficients) == 0, 1 / filters, 2 / filters) ** 0.5
    return scales[:, None] * np.cos(angles)


def _slope(features):
    padded = np.pad(features, ((2, 2), (0, 0)), mode="edge")
    reach = np.arange(-2, 3, dtype=np.float32)
    return sliding_window_view(padded, 5, axis=0) @ (reach / 10)
