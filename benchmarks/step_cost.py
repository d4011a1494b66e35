"""Compares the seconds of an epoch with a prediction from a measured step.

    python benchmarks/step_cost.py [--models handwriting acoustic transformer] [--rounds 7]

It uses three small networks: two of the study of quality, on their real data, and a transformer on generated frames.
`lengthwise.torch.measure_step` measures the step of each, and each trains epochs of several batchings. A round has
trials of the step and one epoch of each batching, so other programs slow both alike. Medians count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from record import DATA, parser, write
from torch import nn
from tqdm import tqdm

import lengthwise as lw
from lengthwise_recipes.quality.tasks import KINDS, Source

FILES = {"handwriting": "omniglot_strokes/omniglot_small1_small2.npz", "acoustic": "fsdd/fsdd_8k_int16.npz"}
SCRIPTS = {"handwriting": ("Latin", "Greek")}
MODELS = ("handwriting", "acoustic", "transformer")
BATCH = 16
CLIPPED = 5.0  # the norm of gradients, as in the study


class Subject(NamedTuple):
    """A network with its data: `loss` takes sequence numbers [B] and their padded length."""

    model: nn.Module
    lengths: NDArray[np.int64]
    loss: Callable[[NDArray[np.int64], int], torch.Tensor]


class Encoder(nn.Module):
    """Two layers of attention over frames of 32 numbers."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, dim_feedforward=256, dropout=0.0, batch_first=True)
        self.first, self.layers, self.last = nn.Linear(32, 64), nn.TransformerEncoder(layer, 2), nn.Linear(64, 8)

    def forward(self, frames: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(self.first(frames), src_key_padding_mask=padding))


def main() -> None:
    """Measures every network and writes the result."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--folder", type=Path, help="folder for the alignment of speech")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    rows, fits = [], []
    loads = [os.getloadavg()[0]]
    for name in arguments.models:
        if name in FILES and not (DATA / FILES[name]).exists():
            print(f"{name} is left out: {FILES[name]} is not there")
            continue
        torch.manual_seed(0)
        subject = transformer() if name == "transformer" else studied(name, arguments.folder)
        fit, model_rows = compare(subject, arguments.rounds)
        fits.append({"model": name, **fit})
        rows += [{"model": name, **row} for row in model_rows]
        loads.append(os.getloadavg()[0])
        for row in model_rows:
            print(name, row["batching"], f"{row['predicted'] / row['measured'] - 1:+.1%}", flush=True)
    facts = {"rounds": arguments.rounds, "batch_size": BATCH, "torch": torch.__version__, "cores": os.cpu_count()}
    print(write("step-cost", {**facts, "loads": loads, "fits": fits, "rows": rows}))


def compare(subject: Subject, rounds: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the fit, and for each batching the predicted and the measured seconds of an epoch."""
    plans = batchings(subject.lengths)
    budget = max(float(plan.costs.max()) for plan in plans.values())
    step, make_batch = trainer(subject), maker(subject.lengths)
    measured: dict[str, list[float]] = {label: [] for label in plans}
    points = []
    for _ in tqdm(range(rounds), leave=False, disable=None):
        points.append(lw.torch.measure_step(step, make_batch, subject.lengths, budget=budget, repeats=1))
        for label, plan in plans.items():
            measured[label].append(epoch_seconds(step, plan))
    first = points[0]
    medians = np.median([point.measured_seconds for point in points], axis=0)
    cost = lw.StepCost.of(first.counts, first.padded_lengths, medians)
    print(cost, flush=True)
    fit = {
        "error": cost.seconds_error,
        "shapes": len(cost.counts),
        "seconds": str(cost).splitlines()[0],
        # The data for another fit on the same rounds.
        "counts": cost.counts.tolist(),
        "padded_lengths": cost.padded_lengths.tolist(),
        "rounds": [np.round(point.measured_seconds, 6).tolist() for point in points],
    }
    rows = [
        {
            "batching": label,
            "steps": plan.steps,
            "padding": lw.measure(plan, subject.lengths).padding_share,
            "predicted": cost.seconds_of(plan),
            "measured": float(np.median(measured[label])),
            "rounds": np.round(measured[label], 4).tolist(),
            "least": min(measured[label]),
            "most": max(measured[label]),
        }
        for label, plan in plans.items()
    ]
    return fit, rows


def batchings(lengths: NDArray[np.int64]) -> dict[str, lw.Plan]:
    """Plans an epoch of equal counts, random and sorted, and one of equal frames with little padding."""
    fixed, budget = lw.FixedSize(BATCH), float(max(BATCH * lengths.mean(), lengths.max()))
    choices = {
        "random": lw.Batching(cut=fixed, order=lw.Shuffled()),
        "sorted": lw.Batching(cut=fixed, order=lw.Sorted()),
        "budget, padding=0.1": lw.Batching(budget=budget, padding=0.1),
    }
    return {label: lw.make_plan(lengths, batching) for label, batching in choices.items()}


def trainer(subject: Subject) -> Callable[[tuple[NDArray[np.int64], int]], None]:
    """Returns the training step: forward, backward, clip, update."""
    optimizer = torch.optim.Adam(subject.model.parameters(), lr=1e-4)
    subject.model.train()

    def step(batch: tuple[NDArray[np.int64], int]) -> None:
        optimizer.zero_grad()
        subject.loss(*batch).backward()
        nn.utils.clip_grad_norm_(subject.model.parameters(), CLIPPED)
        optimizer.step()

    return step


def maker(lengths: NDArray[np.int64]) -> Callable[[int, int], tuple[NDArray[np.int64], int]]:
    """Returns a maker of batches of the longest sequences up to a length; if these are too few, they are repeated."""
    rising = np.argsort(lengths, kind="stable")
    generator = np.random.default_rng(0)

    def make_batch(count: int, length: int) -> tuple[NDArray[np.int64], int]:
        fitting = int(np.searchsorted(lengths[rising], length, side="right"))
        candidates = rising[max(0, fitting - max(count, len(lengths) // 10)) : max(1, fitting)]
        return generator.choice(candidates, count, replace=len(candidates) < count), length

    return make_batch


def epoch_seconds(step: Callable[[tuple[NDArray[np.int64], int]], None], plan: lw.Plan) -> float:
    """Trains an epoch; only the steps are timed."""
    widths = plan.padded_lengths[plan.grid[:, 0, 0], 0].tolist()
    batches = list(zip(plan.batches(), widths, strict=True))
    start = time.perf_counter()
    for batch in batches:
        step(batch)
    return time.perf_counter() - start


def studied(name: str, folder: Path | None) -> Subject:
    """Returns a task of the study of quality, in its size there."""
    kind = KINDS[name]
    task = kind.make(Source(data=DATA / FILES[name], count=kind.count, scripts=SCRIPTS.get(name, ()), folder=folder))
    model = task.model()
    return Subject(model, task.lengths, lambda batch, width: task.loss(model, batch, width))


def transformer() -> Subject:
    """Returns a transformer on random frames of long-tailed lengths."""
    model, lengths = Encoder(), -(-lw.example_lengths("long-tailed", count=800) // 8)
    frames = torch.randn(int(lengths.max()), 32)

    def loss(batch: NDArray[np.int64], width: int) -> torch.Tensor:
        padding = torch.arange(width) >= torch.from_numpy(lengths[batch])[:, None]
        padded = frames[:width].expand(len(batch), -1, -1).masked_fill(padding[:, :, None], 0.0)
        return model(padded, padding)[~padding].square().mean()

    return Subject(model, lengths, loss)


if __name__ == "__main__":
    main()
