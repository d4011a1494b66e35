"""The length share of a PyTorch model, from the gradients of single sequences at its current weights."""

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

_WIDTH = 2**14  # numbers that represent a gradient: inner products are right to 1 / sqrt(_WIDTH), 0.8 %


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
    """Measures the part of the gradient noise that length explains, at the current weights of the model.

    It computes the gradient of `sample` sequences, each alone, on a copy of the model. So it takes about as long as
    training on them in batches of one. The model and PyTorch's random numbers stay as they were.

    The share changes while a model learns: measure after some hundred steps, and again later. The loss must be a mean
    over the sequence. A sum, or a loss divided by a property of the batch, does not match `weights`.

    Args:
        model: On its device, in the mode of its training. For DistributedDataParallel, give its `module`.
        loss: Called with the model and a batch of one sequence: its mean loss, a scalar.
        dataset: `dataset[i]` is sequence i, for i from 0 to n - 1.
        lengths: [n] or [n, dims], of all sequences.
        collate_fn: Makes a batch of a list of one sample: the `collate_fn` of your DataLoader.
        sample: Number of random sequences, at least 32; all if there are fewer. 512 can detect a share of 1 %.
        weights: [n], the weight of each sequence in the loss of a batch, as in `lw.loss_scales`: the lengths for a
            mean over tokens; 1 each by default.
        seed: Seed of the choice of sequences, and of dropout in the model.

    Returns:
        The share and the noise scale. `LengthShare.measure` compares plans of these lengths with random steps.

    Raises:
        ValueError: The loss is not a scalar, or not finite; fewer than 32 sequences or samples; `weights` as in
            `LengthShare.of`.

    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths("long-tailed", count=200)
    >>> _ = torch.manual_seed(0)
    >>> frames = [torch.randn(int(length), 4) for length in lengths]
    >>> share = length_share(nn.Linear(4, 1), lambda model, batch: model(batch).square().mean(), frames, lengths)
    >>> abs(share.share) < 4 * share.standard_error  # noise: the gradient does not depend on the length
    True

    References:
        As in `LengthShare`. Deviation: a model of more than 16,384 parameters is measured on random sums of its
        gradients, with a random sign for each parameter, as in the count sketch of Charikar et al. 2002 ("Finding
        frequent items in data streams"). These sums keep inner products to 0.8 % of the norms.
    """
    array = as_lengths(lengths)
    remedy = f"Give the number of gradients to measure, at least {LEAST_SAMPLE}."
    checks.check_whole("sample", sample, minimum=LEAST_SAMPLE, remedy=remedy)
    if len(array) < LEAST_SAMPLE:
        rule = f"of at least {LEAST_SAMPLE} sequences"
        raise checks.value_error("lengths", rule, len(array), "Fewer gradients cannot show a share.")
    counts = scale_weights(weights, len(array))  # checked before the gradients, which take long
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
    """Random sums that represent long rows: sum j adds every _WIDTH-th number from j on, each with its sign."""

    def __init__(self, length: int, seed: int) -> None:
        self.signs: Tensor | None = None
        if length > _WIDTH:
            words = Key(seed=seed, stage="ties").words(-(-length // 64)).view(np.uint8)
            self.signs = torch.from_numpy(np.unpackbits(words)[:length].astype(np.int8) * 2 - 1)

    def shrink(self, row: Tensor) -> Any:
        """Reduces a gradient [parameters] to a NumPy row of at most _WIDTH numbers."""
        if self.signs is not None:
            self.signs = self.signs.to(row.device)
            # Of seven numbers and a width of three: [0 + 3 + 6, 1 + 4, 2 + 5], the sums of columns.
            padded = nn.functional.pad(row * self.signs, (0, -len(row) % _WIDTH))
            row = padded.view(-1, _WIDTH).sum(dim=0)
        return row.double().cpu().numpy()


def _gradient(value: Tensor, parameters: Sequence[Tensor], number: int) -> Tensor:
    """Returns the gradient of one loss: [parameters]."""
    at = f"sequence {number}"
    if value.numel() != 1 or not value.requires_grad:
        remedy = "Return the mean loss of the batch, from the model's output."
        raise checks.value_error("loss", "a scalar tensor with a gradient", value, remedy, at=at)
    if not math.isfinite(value.item()):
        remedy = "Leave the sequence out of lengths and dataset, or give it a finite loss."
        raise checks.value_error("loss", "finite", value.item(), remedy, at=at)
    # Not `backward`: it would add to `.grad`.
    parts = torch.autograd.grad(value.sum(), parameters, allow_unused=True)
    filled = [
        torch.zeros_like(parameter) if part is None else part for parameter, part in zip(parameters, parts, strict=True)
    ]
    return torch.cat([part.reshape(-1) for part in filled]).float()
