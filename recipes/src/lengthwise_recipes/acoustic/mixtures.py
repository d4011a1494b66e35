"""Gaussian mixtures of all states: densities with diagonal covariance, fitted to frames with known states.

weights    [S, M]      weights of a state's densities; weight 0 disables a density
means      [S, M, D]
variances  [S, M, D]

By hand, since scikit-learn's GaussianMixture fits one mixture at a time and adds a constant to its variances; on
kaldi-hmm-gmm see `em`. Here three matrix products score all states, variances have a floor, and densities are split in
two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.speech.features import Features

SCORES_AT_ONCE = 2**23  # frames x densities, which bounds the memory
SMALLEST_WEIGHT = 1e-8  # a density with less weight no longer learns


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixtures:
    """A mixture of Gaussian densities for each state.

    Attributes:
        weights: [S, M]; they sum to 1 for each state.
        means: [S, M, D].
        variances: [S, M, D], at least `floor`.
        floor: [D].
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    floor: NDArray[np.float64]

    def scores(self, features: Features) -> NDArray[np.float64]:
        """Returns the log likelihood of every frame in every state, [F, S], from features [F, D]."""
        size = max(1, SCORES_AT_ONCE // self.weights.size)
        pieces = [features[first : first + size] for first in range(0, len(features), size)]
        return np.concatenate([_log_sum(self.densities(piece)) for piece in pieces])

    def densities(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """Returns the log of weight x density of every frame, [F, S, M].

        log w - (D log(2 pi) + sum log v + sum (x - m)^2 / v) / 2, with the square expanded into matrix products.
        """
        size = features.shape[1]
        wide = features.astype(np.float64)
        inverse = (1 / self.variances).reshape(-1, size)
        means = self.means.reshape(-1, size)
        with np.errstate(divide="ignore"):  # the logarithm of weight 0 is -inf, as intended
            constant = np.log(self.weights).ravel() - 0.5 * (
                size * np.log(2 * np.pi) - np.log(inverse).sum(axis=1) + (means**2 * inverse).sum(axis=1)
            )
        exponents = wide @ (means * inverse).T - 0.5 * wide**2 @ inverse.T
        return (constant + exponents).reshape(len(features), *self.weights.shape)


def global_mixtures(features: Sequence[Features], total: int, *, floor_share: float = 0.05) -> Mixtures:
    """Gives each of `total` states the same density: mean and variance of all frames.

    Args:
        features: [F, D] per utterance.
        total: Number of states, S.
        floor_share: Variances stay above this share of the variance of all frames.
    """
    frames = np.concatenate(features).astype(np.float64)
    shape = (total, 1, frames.shape[1])
    variance = np.maximum(frames.var(axis=0), 1e-6)
    return Mixtures(
        weights=np.ones(shape[:2]),
        means=np.broadcast_to(frames.mean(axis=0), shape).copy(),
        variances=np.broadcast_to(variance, shape).copy(),
        floor=floor_share * variance,
    )


def refit(mixtures: Mixtures, features: Sequence[Features], labels: Sequence[NDArray[np.int64]]) -> Mixtures:
    """Takes one step of expectation and maximisation for each state; it never lowers the likelihood of its frames.

    A state without frames stays as it is.

    Args:
        mixtures: To begin from.
        features, labels: [F, D] per utterance, and the state of every frame, [F].

    References:
        Dempster, Laird and Rubin 1977. A variance below the floor is set to the floor, the most likely value allowed.
    """
    frames, states = np.concatenate(features).astype(np.float64), np.concatenate(labels)
    order = np.argsort(states, kind="stable")
    borders = np.searchsorted(states[order], np.arange(len(mixtures.weights) + 1))
    fitted = [
        _refit_state(mixtures, state, frames[order[borders[state] : borders[state + 1]]])
        for state in range(len(mixtures.weights))
    ]
    weights, means, variances = (np.stack(arrays) for arrays in zip(*fitted, strict=True))
    return Mixtures(weights=weights, means=means, variances=variances, floor=mixtures.floor)


def split(mixtures: Mixtures, counts: NDArray[np.int64], *, least_frames: float = 20.0, step: float = 0.2) -> Mixtures:
    """Splits every density in two, moved apart by `step` standard deviations to either side.

    Args:
        mixtures: M densities per state.
        counts: Frames of each state, [S].
        least_frames: A density with too few frames to give each half this many is not split: its twin has weight 0.
        step: In standard deviations.

    Returns:
        2 M densities per state.
    """
    splits = mixtures.weights * counts[:, None] >= 2 * least_frames
    shift = np.where(splits[..., None], step * np.sqrt(mixtures.variances), 0.0)
    first = np.where(splits, 0.5, 1.0) * mixtures.weights
    return Mixtures(
        weights=np.concatenate([first, mixtures.weights - first], axis=1),
        means=np.concatenate([mixtures.means - shift, mixtures.means + shift], axis=1),
        variances=np.concatenate([mixtures.variances] * 2, axis=1),
        floor=mixtures.floor,
    )


def _refit_state(
    mixtures: Mixtures, state: int, frames: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fits weights [M], means [M, D] and variances [M, D] of one state to its frames, [F, D]."""
    weights, means, variances = mixtures.weights[state], mixtures.means[state], mixtures.variances[state]
    if not len(frames):
        return weights, means, variances
    alone = Mixtures(weights=weights[None], means=means[None], variances=variances[None], floor=mixtures.floor)
    logs = alone.densities(frames)[:, 0]
    shares = np.exp(logs - _log_sum(logs)[:, None])
    masses = shares.sum(axis=0)
    learns = masses > SMALLEST_WEIGHT * len(frames)
    divisor = np.where(learns, masses, 1.0)[:, None]
    means = np.where(learns[:, None], shares.T @ frames / divisor, means)
    spread = np.stack([share @ (frames - mean) ** 2 for share, mean in zip(shares.T, means, strict=True)])
    variances = np.where(learns[:, None], np.maximum(spread / divisor, mixtures.floor), variances)
    return masses / masses.sum(), means, variances


def _log_sum(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns log(sum(exp(logs))) over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1))
