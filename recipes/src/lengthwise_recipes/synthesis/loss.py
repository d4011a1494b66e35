"""The loss of Tacotron 2: squared errors of the frames, before and after the postnet, and the error of the stop."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

from lengthwise_recipes.synthesis.layers import data_mask
from lengthwise_recipes.synthesis.model import Predicted

MEANS = ("padded", "frames")


class Errors(NamedTuple):
    """The errors of a batch and their divisors; all are sums, so those of several batches can be added.

    squares: The squared errors before and after the postnet, each a mean over the bands, without padding.
    stops: The binary cross-entropies of the stop, up to the last step of each sequence.
    frames, steps: Counts without padding.
    padded_frames, padded_steps: Counts with padding.
    """

    squares: Tensor
    stops: Tensor
    frames: Tensor
    steps: Tensor
    padded_frames: int
    padded_steps: int

    def mean(self, over: str) -> Tensor:
        """Returns the mean squared errors plus the mean cross-entropy.

        Args:
            over: "padded" divides by the counts with padding, as in the recipe of Ge et al. 2021: more padding gives a
                lower loss. "frames" divides by the counts without padding.
        """
        if over == "padded":
            return self.squares / self.padded_frames + self.stops / self.padded_steps
        return self.squares / self.frames + self.stops / self.steps


def together(errors: Sequence[Errors]) -> Errors:
    """Adds the errors of several batches."""
    return Errors(*(functools.reduce(operator.add, parts) for parts in zip(*errors, strict=True)))


def synthesis_errors(predicted: Predicted, frames: Tensor, counts: Tensor) -> Errors:
    """Compares the prediction of a batch with the true frames.

    Args:
        predicted: The prediction.
        frames: [B, F, bands] true frames, F a multiple of the reduction.
        counts: [B] frames of each sequence.
    """
    steps = predicted.stops.shape[1]
    last = -(-counts * steps // frames.shape[1])  # the last step of each sequence, counted from 1
    data, live = data_mask(counts, frames.shape[1]), data_mask(last, steps)
    squares = (predicted.before - frames).square() + (predicted.after - frames).square()
    target = functional.one_hot(last - 1, steps).to(predicted.stops.dtype)
    stops = functional.binary_cross_entropy_with_logits(predicted.stops, target, reduction="none")
    return Errors(
        squares=(squares.mean(dim=2) * data).sum(),
        stops=(stops * live).sum(),
        frames=data.sum(),
        steps=live.sum(),
        padded_frames=data.numel(),
        padded_steps=live.numel(),
    )
