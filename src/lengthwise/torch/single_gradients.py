"""The length share of a model: the gradients of single sequences, one after the other, at the weights of now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.utils.data import IterableDataset, default_collate

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.lengths import as_lengths
from lengthwise.measures.length_share import LEAST_SAMPLE, LengthShare, scale_weights

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

    It computes the gradient of `sample` sequences, each alone. So it takes about as long as training on them in
    batches of one. The model, its gradients, its buffers and PyTorch's random numbers are afterwards as they were.

    The answer is that of these weights. It changes while a model learns: measure after some hundred steps, and again
    later. What goes wrong in use: a loss that is a sum, or that is divided by something that depends on the batch, is
    not the mean that the training steps average; then `weights` do not match it.

    Args:
        model: On its device, in the mode it is trained in. Of DistributedDataParallel the model inside is taken. Not
            sharded, and without reentrant checkpointing.
        loss: Called with the model and a batch of one sequence: its mean loss, a scalar.
        dataset: `dataset[i]` is sequence i, for i from 0 to n - 1.
        lengths: [n] or [n, dims], of all sequences.
        collate_fn: From a list of one sample to a batch, the one of your DataLoader.
        sample: How many sequences, 32 at least, drawn at random; at most all. 512 tell a share of 1 %.
        weights: [n], what each sequence counts for in the loss of a batch, as in `loss_scales`: the lengths for a mean
            over tokens; 1 each by default.
        seed: Of which sequences are drawn, and of what the model draws (dropout).

    Returns:
        The share, the noise scale, and by `measure` what any plan of these lengths is worth.

    Raises:
        ValueError: A loss that is no scalar, not finite, or of no parameter; a model without parameters to learn, or
            with some that have no shape yet; `sample` out of range; `weights` as in `LengthShare.of`.
        TypeError: A loss that is no function; a dataset that is not indexed.

    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths("long-tailed", count=200)
    >>> _ = torch.manual_seed(0)
    >>> frames = [torch.randn(int(length), 4) for length in lengths]
    >>> share = length_share(
    ...     nn.Linear(4, 1), lambda model, batch: model(batch).square().mean(), frames, lengths
    ... )
    >>> abs(share.share) < 4 * share.standard_error  # noise: the length tells nothing
    True

    References:
        As in `lengthwise.LengthShare`. Deviation: a model of more than 16,384 parameters is measured on random sums of
        its gradients, with a sign drawn for each parameter, as in the count sketch of Charikar et al. 2002 ("Finding
        frequent items in data streams"). They keep inner products to 0.8 % of the norms.
    """
    array = as_lengths(lengths)
    _check_called(loss, dataset)
    remedy = f"Give how many gradients to measure, {LEAST_SAMPLE} at least."
    checks.check_whole("sample", sample, minimum=LEAST_SAMPLE, remedy=remedy)
    if len(array) < LEAST_SAMPLE:
        rule = f"of at least {LEAST_SAMPLE} sequences"
        raise checks.value_error("lengths", rule, len(array), "Fewer gradients do not tell a share.")
    counts = scale_weights(weights, len(array))  # before the long part, not after it
    sampled = np.sort(Key(seed=seed, stage="subset").permutation(len(array))[:sample])
    if hasattr(dataset, "__len__") and len(dataset) != len(array):
        rule = f"one for each of the {len(dataset)} sequences of `dataset`"
        raise checks.value_error("lengths", rule, len(array), "Give the lengths of this dataset.")
    inner = _unwrap(model)
    parameters = [each for each in inner.parameters() if each.requires_grad]
    if not parameters:
        remedy = "Set requires_grad of some of them."
        raise checks.value_error("model", "of parameters to learn", type(inner).__name__, remedy)
    if any(isinstance(each, nn.parameter.UninitializedParameter) for each in parameters):
        remedy = "Call it once on a batch: a lazy module makes its parameters then."
        raise checks.value_error("model", "of parameters that have a shape", type(inner).__name__, remedy)
    sketch = _Sketch(sum(each.numel() * (1 + each.is_complex()) for each in parameters), seed)
    rows = []
    with _keep(inner, parameters[0].device, seed):
        for number in sampled.tolist():
            value = loss(inner, collate_fn([dataset[number]]))
            rows.append(sketch.shrink(_gradient(value, parameters, number)))
    return LengthShare.of(np.stack(rows), sampled, array, weights=counts)


def _check_called(loss: object, dataset: object) -> None:
    if not callable(loss):
        remedy = "Give a function of the model and a batch: `lambda model, batch: ...`."
        raise checks.type_error("loss", "a function", loss, remedy)
    if not hasattr(dataset, "__getitem__") or isinstance(dataset, IterableDataset):
        remedy = "Put the sequences of a stream in a list first."
        raise checks.type_error("dataset", "one of sequences by number, as a list is", dataset, remedy)


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


def _unwrap(model: object) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise checks.type_error("model", "a torch.nn.Module", model, "Give the model that is trained.")
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


@contextmanager
def _keep(model: nn.Module, device: torch.device, seed: int) -> Iterator[None]:
    """Puts buffers and random numbers back; gradients are never stored, so nothing of them changes."""
    # Each module with its buffers by name, because a model may put another tensor in the place of one.
    before = [
        (module, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    # `fork_rng` would put back the generators of all GPUs; the model draws on its own alone.
    devices: Sequence[torch.device] = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices), torch.inference_mode(False), torch.enable_grad():
            # Not `torch.manual_seed`: it would seed the generators of all GPUs.
            torch.default_generator.manual_seed(seed)
            for each in devices:
                with torch.cuda.device(each):
                    torch.cuda.manual_seed(seed)
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, value in before:
                module._buffers[name] = None if buffer is None or value is None else buffer.copy_(value)


def _gradient(value: object, parameters: Sequence[Tensor], number: int) -> Tensor:
    """The gradient of one loss: [parameters], float32 at least."""
    at = f"sequence {number}"
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        remedy = "Return the mean loss of the batch, from the model's output."
        raise checks.value_error("loss", "a scalar tensor with a gradient", value, remedy, at=at)
    if not math.isfinite(value.item()):
        remedy = "Leave the sequence out of lengths and dataset, or give it a finite loss."
        raise checks.value_error("loss", "finite", value.item(), remedy, at=at)
    # Not `backward`: it would add to `.grad`, and wake the hooks by which DDP talks to other ranks.
    found = torch.autograd.grad(value.sum(), parameters, allow_unused=True)
    parts = [torch.zeros_like(own) if each is None else each for own, each in zip(parameters, found, strict=True)]
    row = torch.cat([_flatten(part) for part in parts])
    if not bool(torch.isfinite(row).all()):
        raise checks.value_error("loss", "of a finite gradient", value.item(), "Leave the sequence out.", at=at)
    return row


def _flatten(part: Tensor) -> Tensor:
    """The gradient of one parameter as real numbers: float32 at least."""
    dense = part.to_dense() if part.is_sparse else part  # nn.Embedding(..., sparse=True) has sparse ones
    real = torch.view_as_real(dense) if dense.is_complex() else dense
    return real.reshape(-1).to(torch.promote_types(real.dtype, torch.float32))
