"""Two small models of sequences of tokens, and one run: a step's loss is summed and divided by a constant."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise_recipes.length_share.gradients import length_share
from lengthwise_recipes.order.data import LONGEST, Pool
from lengthwise_recipes.order.steps import Steps, make_steps, measure_steps

POINTS = (0.25, 0.5, 1.0)  # of a run, where the held-out loss is measured
CHECKPOINTS = (1 / 6, 1 / 2, 5 / 6)  # of a run, where the variance ratios are measured
_CHUNK = 64  # sequences that the CPU computes together


class Block(nn.Module):
    """A causal layer of a transformer with four heads, of width 48; its norms come first."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inputs, self.outputs = nn.LayerNorm(48), nn.Linear(48, 3 * 48), nn.Linear(48, 48)
        self.further = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))

    def forward(self, hidden: Tensor) -> Tensor:
        rows, tokens, width = hidden.shape
        heads = self.inputs(self.norm(hidden)).view(rows, tokens, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        hidden = hidden + self.outputs(attended.transpose(1, 2).reshape(rows, tokens, width))
        return hidden + self.further(hidden)


class Model(nn.Module):
    """Returns hidden states, [rows, tokens, width]: a GRU's, or those of two causal layers of a transformer."""

    def __init__(self, name: str, vocabulary: int) -> None:
        super().__init__()
        gru = name == "gru"
        self.embedding = nn.Embedding(vocabulary, 32 if gru else 48)
        self.places = None if gru else nn.Embedding(LONGEST, 48)
        self.layers = nn.GRU(32, 64, batch_first=True) if gru else nn.Sequential(Block(), Block(), nn.LayerNorm(48))
        self.output = nn.Linear(64 if gru else 48, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.places is None:
            return self.layers(self.embedding(tokens))[0]
        return self.layers(self.embedding(tokens) + self.places.weight[: tokens.shape[1]])


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Settings of the training of one part."""

    size: int = 128  # sequences of a step
    ranks: int = 8  # batches of a step
    updates: int = 80  # of one pass
    passes: int = 1
    held_out: int = 1_024  # sequences to judge by
    decay: bool = True  # the rate falls linearly to 0
    optimizer: str = "adam"  # or "sgd", with a momentum of 0.9
    token_mean: bool = False  # a step is divided by its own tokens
    sample: int = 128  # gradients for the variance ratios


class Data:
    """A pool, split by a seed into sequences to train on and others to judge by."""

    def __init__(self, pool: Pool, setting: Setting, seed: int) -> None:
        order = np.random.default_rng([seed, 2**20]).permutation(len(pool.lengths))
        self.train, self.held_out = order[: setting.size * setting.updates], order[len(order) - setting.held_out :]
        self.pool, self.lengths, self.sought = pool, pool.lengths, pool.lengths - pool.skipped
        self.setting, self.seed = setting, seed
        self.mean_tokens = self.sought[self.train].mean()

    def losses(self, model: Any, numbers: NDArray[np.int64]) -> Tensor:
        """Returns the loss of each sequence, summed over its tokens: [rows]."""
        lengths = torch.as_tensor(self.lengths[numbers])[:, None]
        tokens = self.pool.rows[torch.as_tensor(numbers), : int(lengths.max())]
        places = torch.arange(tokens.shape[1])
        sought = (places < lengths) & (places >= torch.as_tensor(self.pool.skipped[numbers])[:, None])
        hidden = model(nn.functional.pad(tokens[:, :-1], (1, 0)))
        loss = nn.functional.cross_entropy(model.output(hidden[sought]), tokens[sought], reduction="none")
        return torch.zeros(len(numbers)).index_add(0, sought.nonzero()[:, 0], loss)

    def chunks(self, numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Returns the sequences in batches for the CPU: few of them, with little padding."""
        rising = numbers[np.argsort(self.lengths[numbers], kind="stable")]
        borders, start = [], 0
        for place, length in enumerate(self.lengths[rising].tolist()):
            if place - start == _CHUNK or (place - start >= _CHUNK / 4 and length > 1.5 * self.lengths[rising[start]]):
                borders.append(start := place)
        return np.split(rising, borders)

    @torch.no_grad()
    def judge(self, model: nn.Module) -> list[float]:
        """Returns the held-out loss a token, of all sequences and of each kind."""
        chunks = self.chunks(self.held_out)
        numbers = np.concatenate(chunks)
        losses = torch.cat([self.losses(model, chunk) for chunk in chunks]).double().numpy()
        kinds = self.pool.kinds[numbers]
        masks = [kinds >= 0, *(kinds == kind for kind in range(3))]
        return [float(losses[mask].sum() / self.sought[numbers][mask].sum()) for mask in masks]

    def steps(self, arm: str, epoch: int = 0) -> Steps:
        return make_steps(arm, self.lengths[self.train], self.setting.size, self.seed, epoch)

    def ratios(self, model: nn.Module, arms: Sequence[str]) -> list[float]:
        """Returns the variance ratio of the steps of each arm, from the gradients of single sequences.

        The loss of a sequence is its sum over a constant, as in the steps. So all weights are 1.
        """

        def loss(model: nn.Module, number: NDArray[np.int64]) -> Tensor:
            return self.losses(model, number).sum() / self.mean_tokens

        how: Any = {"collate_fn": np.array, "sample": self.setting.sample, "seed": self.seed}
        share = length_share(model, loss, self.train, self.lengths[self.train], **how)
        return [share.measure_steps(self.steps(arm)).variance_ratio for arm in arms]


def run(
    pool: Pool, setting: Setting, model_name: str, arm: str, rate: float, seed: int, compare: Sequence[str] | None = ()
) -> dict[str, Any]:
    """Trains one model and returns its losses and, at `CHECKPOINTS`, the variance ratio of each arm in `compare`.

    A search of the rate, with `compare=None`, measures the last loss alone.
    """
    started, data = time.process_time(), Data(pool, setting, seed)
    torch.manual_seed(seed)
    model = Model(model_name, 1 + int(pool.rows.max()))
    sgd = partial(torch.optim.SGD, momentum=0.9)
    optimizer: Any = (sgd if setting.optimizer == "sgd" else torch.optim.Adam)(model.parameters(), lr=rate)
    steps = [step for epoch in range(setting.passes) for step in data.steps(arm, epoch)]
    constant = data.mean_tokens * np.mean([len(step) for step in steps])
    judged = {math.ceil(point * len(steps)) for point in (POINTS[-1:] if compare is None else POINTS)}
    measured = {int(point * len(steps)) for point in CHECKPOINTS} if compare else ()
    curve, ratios = [], []
    for number, step in enumerate(steps):
        if number in measured:
            ratios.append(data.ratios(model, compare or ()))
        members = data.train[step]
        scale = data.sought[members].sum() if setting.token_mean else constant
        optimizer.param_groups[0]["lr"] = rate * (1 - number / len(steps) if setting.decay else 1)
        optimizer.zero_grad()
        for chunk in data.chunks(members):
            (data.losses(model, chunk).sum() / scale).backward()
        optimizer.step()
        if number + 1 in judged:
            curve.append(data.judge(model))
    padding, waiting = measure_steps(arm, steps, data.lengths[data.train], setting.ranks, seed)
    row = {"seed": seed, "rate": rate, "loss": curve[-1][0], "curve": [losses[0] for losses in curve[:-1]]}
    row |= {"kinds": curve[-1][1:], "padding": padding, "waiting": waiting}
    row |= {"ratios": [list(arm) for arm in zip(*ratios, strict=True)]} if compare else {}
    return {**row, "seconds": time.process_time() - started}
