"""Parameter averaging: every rank trains its own model, and from time to time all models become their mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, distributed, nn

from lengthwise import checks
from lengthwise.torch.ranks import OwnRank


class ParameterAveraging:
    """Averages the models of all ranks. With alpha = 1, the update is equation 3 of Khomenko et al. 2016.

        V(t) = V(t-1) + alpha (V_a(t) - V(t-1)) - beta V(t-1)

    V_a(t) is the mean of a parameter over the ranks now. V(t-1) is the result of the last `average`, or the initial
    value. Between two calls of `average`, no rank communicates or waits for another. Deal by `lw.Portions`: it
    draws new portions in every epoch, so that every rank sees all of the data over many epochs.

    The model starts with rank 0's weights and buffers on every rank. The state of the optimisers stays local: the paper
    sends the parameters alone. Change the learning rate or the model on all ranks, never on one alone. Do not wrap the
    model in DDP over the same ranks: DDP averages the gradients already.

    Args:
        model: The model, on its device and not sharded. Parameters that need no gradient are averaged, and decay, too;
            those of whole numbers, as of a quantised model, become rank 0's.
        alpha: The share of the way from V(t-1) to the mean: 1 is the mean itself.
        beta: The share of V(t-1) that is subtracted, a weight decay.
        group: Ranks of torch.distributed, by gloo or nccl; by default all. If torch.distributed is not running, there
            is one rank, and its model is the mean.

    Raises:
        ValueError: `alpha` or `beta` is out of range. Or torchrun started several processes, and torch.distributed is
            not running.
        PlanMismatchError: The ranks differ in model, alpha or beta.

    With `torch.distributed.init_process_group("gloo")` before it, this loop is one rank of a run that torchrun starts:

    >>> import lengthwise as lw
    >>> strokes = [torch.ones(length, 1) for length in (5, 9, 2, 4, 7)]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), deal=lw.Portions())
    >>> sampler = lw.torch.BatchSampler([len(stroke) for stroke in strokes], batching)
    >>> model = nn.Linear(1, 1)
    >>> averaging = ParameterAveraging(model)
    >>> optimizer = torch.optim.Adadelta(model.parameters())
    >>> for epoch in range(3):
    ...     sampler.set_epoch(epoch)  # draws new portions
    ...     for batch in sampler:
    ...         padded = nn.utils.rnn.pad_sequence([strokes[number] for number in batch])
    ...         optimizer.zero_grad()
    ...         model(padded).square().mean().backward()
    ...         optimizer.step()
    ...     averaging.average()

    References:
        Khomenko et al. 2016, section III.B, steps 3 to 5 and equation 3. The paper takes alpha from Huang et al. 2013
        (Accelerating recurrent neural network training via two stage classes and parallelization, ASRU), but prints
        only the case alpha = 1. The form above is ours, and is the same for alpha = 1. The paper does not mention
        buffers. Here floating-point buffers (the statistics of batch norm) become their mean, and all others become
        rank 0's. In the paper a main process gathers the models; here every rank computes the same mean by an
        all-reduce.
    """

    def __init__(
        self, model: nn.Module, *, alpha: float = 1.0, beta: float = 1e-6, group: distributed.ProcessGroup | None = None
    ) -> None:
        if not isinstance(model, nn.Module):
            raise checks.type_error("model", "a torch.nn.Module", model, "Give the model that this rank trains.")
        self.alpha: float = checks.check_number("alpha", alpha, above=True, remedy="Give 1 for the mean itself.")
        remedy = "Give a small share such as 1e-6, or 0."
        self.beta: float = checks.check_number("beta", beta, maximum=1.0, remedy=remedy)
        self.model = model
        self.group = group
        remedy = "Give every rank the same layers, alpha and beta."
        self._own_rank = OwnRank(None, None, group, remedy=remedy)
        self._own_rank.check_started(self._facts)
        self.world_size: int = self._own_rank.world_size
        # Begin with equal models: V(t-1) is then the same on every rank,
        # and the paper's equation holds from its first use.
        self._take_from_first_rank(dict(model.named_parameters()) | dict(model.named_buffers()))
        parameters = dict(model.named_parameters())
        averaged = [name for name, tensor in parameters.items() if tensor.is_floating_point() or tensor.is_complex()]
        self._previous = {name: parameters[name].detach().clone() for name in averaged}

    @torch.no_grad()
    def average(self) -> None:
        """Replaces the parameters by V(t), and averages the buffers. Every rank must call it equally often.

        One all-reduce averages all parameters of one type and device; another averages the floating-point buffers of
        that type and device. Types of fewer than 32 bits are averaged in float32, then converted back.

        Raises:
            ValueError: torch.distributed was started or ended since the averaging was made.
        """
        if (world_size := self._own_rank.world_size) != self.world_size:
            remedy = "Make the averaging after torch.distributed.init_process_group."
            rule = f"{self.world_size}, as when the averaging was made"
            raise checks.value_error("world_size", rule, world_size, remedy)
        # One flat tensor for each type and device takes one all-reduce in place of one for each layer.
        tensors = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        for parameters in _alike({name: tensors[name] for name in self._previous}):
            self._update(list(parameters.values()), [self._previous[name] for name in parameters])
        floating = {name: buffer for name, buffer in self.model.named_buffers() if buffer.is_floating_point()}
        for part in _alike(floating):
            _spread(self._mean(part.values()), part.values())
        averaged = self._previous | floating
        self._take_from_first_rank({name: tensor for name, tensor in tensors.items() if name not in averaged})

    def state_dict(self) -> dict[str, Tensor]:
        """Returns V(t-1) of each parameter, the same on every rank.

        Right after `average`, V(t-1) equals the parameters. A checkpoint within an epoch needs both V(t-1) and each
        rank's model.
        """
        return {name: previous.clone() for name, previous in self._previous.items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Loads the V(t-1) that `state_dict` returned.

        To resume within an epoch, first make the averaging, which overwrites the models. Then load each rank's model.

        Raises:
            ValueError: The names or shapes are not those of the model.
        """
        shapes = {name: tuple(previous.shape) for name, previous in self._previous.items()}
        loaded = {name: tuple(previous.shape) for name, previous in state.items()}
        names = sorted(name for name in shapes.keys() | loaded.keys() if shapes.get(name) != loaded.get(name))
        # Nothing was written yet: a state that does not fit leaves the averaging as it was.
        if names:
            rule = f"of shape {shapes.get(names[0], 'none')}"
            remedy = "Load the state that was saved with this model."
            raise checks.value_error("state", rule, loaded.get(names[0]), remedy, at=names[0])
        for name, previous in self._previous.items():
            previous.copy_(state[name])

    def _update(self, parameters: Sequence[Tensor], previous: Sequence[Tensor]) -> None:
        """Writes V(t) over the parameters of one type and device, and over their V(t-1)."""
        # The equation with both terms of V(t-1) added up: alpha V_a(t) + (1 - alpha - beta) V(t-1).
        updated = self._mean(parameters).mul_(self.alpha)
        weight_of_previous = 1.0 - self.alpha - self.beta
        if weight_of_previous:  # alpha = 1 without decay leaves the mean as it is, bit for bit, whatever V(t-1) was
            updated.add_(_flat(previous).to(updated.dtype), alpha=weight_of_previous)
        _spread(updated, parameters)
        _spread(updated, previous)

    def _mean(self, tensors: Collection[Tensor]) -> Tensor:
        """Returns the mean over the ranks of tensors of one type and device, as one flat tensor."""
        flat = _flat(tensors)
        # A sum of eight bfloat16 numbers in bfloat16 would lose most of its digits.
        flat = flat.to(torch.promote_types(flat.dtype, torch.float32))
        if self.world_size > 1:
            distributed.all_reduce(flat, group=self.group)
            flat /= self.world_size
        return flat

    @torch.no_grad()
    def _take_from_first_rank(self, tensors: Mapping[str, Tensor]) -> None:
        if self.world_size == 1:
            return
        # `broadcast` wants the number of a rank in the whole run, not in the group.
        first = 0 if self.group is None else distributed.get_global_rank(self.group, 0)
        for part in _alike(tensors):
            flat = _flat(part.values())
            distributed.broadcast(flat.view(torch.uint8), first, group=self.group)  # bytes: gloo lacks some types
            _spread(flat, part.values())

    def _facts(self) -> dict[str, Any]:
        """Returns the facts that all ranks must share: else they would hang, or mix up the parameters."""
        tensors = [*self.model.named_parameters(), *self.model.named_buffers()]
        shapes = {name: f"{tensor.dtype} {list(tensor.shape)}" for name, tensor in tensors}
        return {"alpha": self.alpha, "beta": self.beta, "model": shapes, "order of the layers": list(shapes)}


def _alike(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Groups tensors by type and device."""
    parts: dict[tuple[torch.dtype, torch.device], dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        parts[tensor.dtype, tensor.device][name] = tensor
    return list(parts.values())


def _flat(tensors: Collection[Tensor]) -> Tensor:
    """Copies tensors of one type and device into one flat tensor."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _spread(flat: Tensor, tensors: Collection[Tensor]) -> None:
    """Copies a flat tensor back into the tensors that it was made of."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view_as(tensor))
