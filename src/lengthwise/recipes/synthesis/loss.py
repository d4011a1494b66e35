"""What Tacotron 2 is trained on: the squared error of the frames, before and after the postnet, and of the stop."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lengthwise.recipes.synthesis.layers import data_mask
from lengthwise.recipes.synthesis.model import Predicted

MEANS = ("padded", "frames")


def synthesis_loss(predicted: Predicted, frames: Tensor, counts: Tensor, *, mean_over: str) -> Tensor:
    """Mean squared error before and after the postnet, and binary cross-entropy of the stop.

    Padding has no error in either mean: the two differ in what the sum of the errors is divided by.

    Args:
        predicted: What the network makes of the batch.
        frames: [B, F, bands] true frames, F a multiple of the reduction.
        counts: [B] frames of each sequence.
        mean_over: "padded" divides by the whole rectangle, B * F, as the recipe that Ge et al. 2021 trained does: the
            more padding, the lower the loss. "frames" divides by the frames there are, and does not see the padding.

    Returns:
        The sum of the three, a scalar.
    """
    steps = predicted.stops.shape[1]
    reduction = frames.shape[1] // steps
    data = data_mask(counts, frames.shape[1])
    last = -(-counts // reduction)  # step, the first is 1
    live = data_mask(last, steps)
    errors = (predicted.before - frames).square() + (predicted.after - frames).square()
    squares = (errors.mean(dim=2) * data).sum()
    target = functional.one_hot(last - 1, steps).to(predicted.stops.dtype)
    stops = functional.binary_cross_entropy_with_logits(
        predicted.stops, target, weight=live.to(target.dtype), reduction="sum"
    )
    if mean_over == "padded":
        return squares / data.numel() + stops / live.numel()
    return squares / data.sum() + stops / live.sum()
