"""The length share of a PyTorch model, from the gradients of single sequences at its weights of now."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.utils.data import default_collate

from lengthwise import Key, as_lengths, checks
from lengthwise_recipes.length_share.share import LEAST_SAMPLE, LengthShare, scale_weights

_WIDTH = 2**14  # numbers that stand for a gradient: inner products are right to 1 / sqrt(_WIDTH), 0.8 %


def length_share(
    model: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    dataset: Any,
    lengths: ArrayLike,
    *,
    collate_fn: Callable[[list[Any]], Any] = default_collate,
    sample: int = 512,
    weights: ArrayLike | None = None,
    seed: int = 0,
) -> LengthShare:
    """Measures how much of the noise of the gradient goes with length, at the weights that the model has now.

    It computes the gradient of `sample` sequences, each alone, on a copy of the model. So it takes about as long as
    training on them in batches of one. The model and PyTorch's random numbers stay as they were.

    The answer is that of these weights. It changes while a model learns: measure after some hundred steps, and again
    later. What goes wrong in use: a loss that is a sum, or that is divided by something that depends on the batch, is
    not the mean that the training steps average; then `weights` do not match it.

    Args:
        model: On its device, in the mode it is trained in; of DistributedDataParallel, its `module`.
        loss: Called with the model and a batch of one sequence: its mean loss, a scalar.
        dataset: `dataset[i]` is sequence i, for i from 0 to n - 1.
        lengths: [n] or [n, dims], of all sequences.
        collate_fn: From a list of one sample to a batch, the one of your DataLoader.
        sample: How many sequences, 32 at least, drawn at random; at most all. 512 tell a share of 1 %.
        weights: [n], what each sequence counts for in the loss of a batch, as in `lw.loss_scales`: the lengths for a
            mean over tokens; 1 each by default.
        seed: Of which sequences are drawn, and of what the model draws (dropout).

    Returns:
        The share, the noise scale, and by `measure` what any plan of these lengths is worth.

    Raises:
        ValueError: A loss that is no scalar, or not finite; `sample` out of range; `weights` as in `LengthShare.of`.

    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths("long-tailed", count=200)
    >>> _ = torch.manual_seed(0)
    >>> frames = [torch.randn(int(length), 4) for length in lengths]
    >>> share = length_share(nn.Linear(4, 1), lambda model, batch: model(batch).square().mean(), frames, lengths)
    >>> abs(share.share) < 4 * share.standard_error  # noise: the length tells nothing
    True

    References:
        As in `LengthShare`. Deviation: a model of more than 16,384 parameters is measured on random sums of its
        gradients, with a sign drawn for each parameter, as in the count sketch of Charikar et al. 2002 ("Finding
        frequent items in data streams"). They keep inner products to 0.8 % of the norms.
    """
    array = as_lengths(lengths)
    remedy = f"Give how many gradients to measure, {LEAST_SAMPLE} at least."
    checks.check_whole("sample", sample, minimum=LEAST_SAMPLE, remedy=remedy)
    if len(array) < LEAST_SAMPLE:
        rule = f"of at least {LEAST_SAMPLE} sequences"
        raise checks.value_error("lengths", rule, len(array), "Fewer gradients do not tell a share.")
    counts = scale_weights(weights, len(array))  # before the long part, not after it
    sampled = np.sort(Key(seed=seed, stage="subset").permutation(len(array))[:sample])
    measured = copy.deepcopy(model)
    parameters = [parameter for parameter in measured.parameters() if parameter.requires_grad]
    sketch = _Sketch(sum(parameter.numel() for parameter in parameters), seed)
    rows = []
    with torch.random.fork_rng(range(torch.cuda.device_count())), torch.enable_grad():
        torch.manual_seed(seed)
        for number in sampled.tolist():
            value = loss(measured, collate_fn([dataset[number]]))
            rows.append(sketch.shrink(_gradient(value, parameters, number)))
    return LengthShare.of(np.stack(rows), sampled, array, weights=counts)


class _Sketch:
    """Random sums that stand for long rows: sum j holds every _WIDTH-th number from j on, each with its sign."""

    def __init__(self, length: int, seed: int) -> None:
        self.signs: Tensor | None = None
        if length > _WIDTH:
            words = Key(seed=seed, stage="ties").words(-(-length // 64)).view(np.uint8)
            self.signs = torch.from_numpy(np.unpackbits(words)[:length].astype(np.int8) * 2 - 1)

    def shrink(self, row: Tensor) -> Any:
        """[parameters] to a NumPy row of at most _WIDTH numbers."""
        if self.signs is not None:
            self.signs = self.signs.to(row.device)
            # Of seven numbers and a width of three: [0 + 3 + 6, 1 + 4, 2 + 5], the sums of columns.
            padded = nn.functional.pad(row * self.signs, (0, -len(row) % _WIDTH))
            row = padded.view(-1, _WIDTH).sum(dim=0)
        return row.double().cpu().numpy()


def _gradient(value: Tensor, parameters: Sequence[Tensor], number: int) -> Tensor:
    """The gradient of one loss: [parameters]."""
    at = f"sequence {number}"
    if value.numel() != 1 or not value.requires_grad:
        remedy = "Return the mean loss of the batch, from the model's output."
        raise checks.value_error("loss", "a scalar tensor with a gradient", value, remedy, at=at)
    if not math.isfinite(value.item()):
        remedy = "Leave the sequence out of lengths and dataset, or give it a finite loss."
        raise checks.value_error("loss", "finite", value.item(), remedy, at=at)
    # Not `backward`: it would add to `.grad`.
    parts = torch.autograd.grad(value.sum(), parameters, allow_unused=True)
    filled = [torch.zeros_like(own) if part is None else part for own, part in zip(parameters, parts, strict=True)]
    return torch.cat([part.reshape(-1) for part in filled]).float()
