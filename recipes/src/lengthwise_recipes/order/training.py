"""Two small models of sequences of tokens, and one run of one of them.

The gradient of a step is the sum over its tokens, divided by the mean number of tokens of a step: a constant. So it
does not depend on how the step is cut into batches. Steps are sorted here and cut into batches for the CPU.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise_recipes.length_share.gradients import length_share
from lengthwise_recipes.order.data import LONGEST, Pool
from lengthwise_recipes.order.steps import make_steps, measure_steps

POINTS = (0.25, 0.5, 1.0)  # of a run, where the held-out loss is measured
CHECKPOINTS = (1 / 6, 1 / 2, 5 / 6)  # of a run, where the variance ratios are measured
_CHUNK = 64  # sequences that the CPU computes together


class Gru(nn.Module):
    """One layer of 64 cells; returns [rows, tokens, width]."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 32)
        self.recurrent = nn.GRU(32, 64, batch_first=True)
        self.output = nn.Linear(64, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.recurrent(self.embedding(tokens))[0]


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


class Transformer(nn.Module):
    """Two causal layers; returns [rows, tokens, width]."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(vocabulary, 48), nn.Embedding(LONGEST, 48)
        self.layers = nn.Sequential(Block(), Block(), nn.LayerNorm(48))
        self.output = nn.Linear(48, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layers(self.embedding(tokens) + self.places.weight[: tokens.shape[1]])


MODELS = {"gru": Gru, "transformer": Transformer}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """How one group of runs trains; the seed and the learning rate come on top.

    Attributes:
        size: Sequences of a step.
        ranks: Batches of a step.
        updates: Of one pass.
        held_out: Sequences to judge by.
        passes: Over the training sequences.
        decay: True if the rate falls linearly to 0.
        optimizer: "adam", or "sgd" with a momentum of 0.9.
        token_mean: True if a step is divided by its own tokens.
        sample: Gradients for the variance ratios.
    """

    size: int = 128
    ranks: int = 8
    updates: int = 80
    held_out: int = 1_024
    passes: int = 1
    decay: bool = True
    optimizer: str = "adam"
    token_mean: bool = False
    sample: int = 128


class Data:
    """A pool as arrays, split by a seed: the sequences to train on, and those to judge by."""

    def __init__(self, pool: Pool, setting: Setting, seed: int) -> None:
        order = np.random.default_rng([seed, 2**20]).permutation(len(pool.tokens))
        self.train = order[: setting.size * setting.updates]
        self.held_out = order[len(order) - setting.held_out :]
        self.pool, self.lengths = pool, pool.lengths
        self.sought = self.lengths - pool.skipped
        self.rows = nn.utils.rnn.pad_sequence([torch.as_tensor(tokens) for tokens in pool.tokens], batch_first=True)

    def losses(self, model: Any, numbers: NDArray[np.int64]) -> Tensor:
        """Returns the loss of each sequence, summed over its tokens: [rows]."""
        lengths = torch.as_tensor(self.lengths[numbers])[:, None]
        tokens = self.rows[torch.as_tensor(numbers), : int(lengths.max())]
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
        kinds, tokens = self.pool.kinds[numbers], self.sought[numbers]
        by_kind = [losses[kinds == kind].sum() / tokens[kinds == kind].sum() for kind in np.unique(self.pool.kinds)]
        return [float(losses.sum() / tokens.sum()), *map(float, by_kind)]


def run(
    pool: Pool,
    setting: Setting,
    model_name: str,
    arm: str,
    *,
    rate: float,
    seed: int,
    search: bool = False,
    compare: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Trains one model and returns its losses and, at `CHECKPOINTS`, the variance ratio of each arm in `compare`.

    A search of the rate measures the last loss alone.
    """
    started, data = time.process_time(), Data(pool, setting, seed)
    lengths = data.lengths[data.train]
    torch.manual_seed(seed)
    model = MODELS[model_name](pool.vocabulary)
    if setting.optimizer == "adam":
        optimizer: Any = torch.optim.Adam(model.parameters())
    else:
        optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    steps = [step for epoch in range(setting.passes) for step in make_steps(arm, lengths, setting.size, seed, epoch)]
    shrink = int(arm.partition("/")[2]) if arm.startswith("random") else 1
    constant = setting.size / shrink * data.sought[data.train].mean()
    judged = {math.ceil(point * len(steps)) for point in (POINTS[-1:] if search else POINTS)}
    measured = {int(point * len(steps)) for point in CHECKPOINTS} if compare else set()
    curve, ratios = [], {other: [] for other in compare}
    for number, step in enumerate(steps):
        if number in measured:
            for other, ratio in _ratios(data, model, constant, setting, seed, compare).items():
                ratios[other].append(ratio)
        members = data.train[step]
        scale = data.sought[members].sum() if setting.token_mean else constant
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - number / len(steps) if setting.decay else 1)
        optimizer.zero_grad()
        for chunk in data.chunks(members):
            (data.losses(model, chunk).sum() / scale).backward()
        optimizer.step()
        if number + 1 in judged:
            curve.append(data.judge(model))
    padding, waiting = measure_steps(arm, steps, lengths, setting.ranks)
    return {
        "seed": seed,
        "rate": rate,
        "loss": curve[-1][0],
        "curve": [losses[0] for losses in curve[:-1]],
        "kinds": curve[-1][1:],
        "padding": padding,
        "waiting": waiting,
        "seconds": time.process_time() - started,
        **({"ratios": [ratios[other] for other in compare]} if compare else {}),
    }


def _ratios(
    data: Data, model: nn.Module, constant: float, setting: Setting, seed: int, arms: tuple[str, ...]
) -> dict[str, float]:
    """Returns the variance ratio of the steps of each arm, from the gradients of single sequences.

    The loss of a sequence is its sum over a constant, as in the steps. So all weights are 1.
    """
    lengths = data.lengths[data.train]
    scale = constant / setting.size
    share = length_share(
        model,
        lambda model, number: data.losses(model, number).sum() / scale,
        data.train,
        lengths,
        collate_fn=np.array,
        sample=setting.sample,
        seed=seed,
    )
    steps = {arm: make_steps(arm, lengths, setting.size, seed) for arm in arms}
    return {arm: share.measure_steps(several).variance_ratio for arm, several in steps.items()}
