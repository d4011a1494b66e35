"""Measures the length share of a model as it learns, and the gradient noise of each order.

    python -m lengthwise_recipes.quality.length_share DATA [--tasks handwriting] [--seeds 3] [--json share.json]

It trains the three tasks of the study of quality in random batches of 16. Before the first epoch and after some others
it computes the gradients of single sequences. They give the length share, the noise scale, and for every order the
variance of the gradient of a batch over that of random batches. The knobs of all orders are set to about the same
padding. It leaves out a task without data in the folder DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes import record
from lengthwise_recipes.knobs import fit_knob
from lengthwise_recipes.length_share.share import LengthShare
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.quality.tasks import KINDS, Source
from lengthwise_recipes.study.noise import measure_share
from lengthwise_recipes.study.runs import Run, first_runs
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import setups
from lengthwise_recipes.study.task import Task
from lengthwise_recipes.study.training import train_epoch

FILES = {
    "handwriting": "omniglot_strokes/omniglot_small1_small2.npz",
    "acoustic": "fsdd/fsdd_8k_int16.npz",
    "synthesis": "ljspeech/metadata.csv",
}
SCRIPTS = {"handwriting": ("Latin", "Greek")}
ORDERS = ("max-entropy", "semi-sorted", "alternated", "bucketed")
PADDINGS = (0.05, 0.1, 0.2)
NEAR = 0.012  # an order is left out at a padding that its knob misses by more
CUT = lw.FixedSize(16)
EPOCHS = 20  # of plans, for each order


def main() -> None:
    """Measures every task and writes the result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, help="folder of recordings, strokes and texts")
    options.add_argument("--tasks", nargs="+", choices=tuple(FILES), default=tuple(FILES))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--sample", type=int, default=512)
    options.add_argument("--json", type=Path, default=Path("length-share.json"))
    options.add_argument("--folder", type=Path, help="keeps the alignment of speech and the spoken sentences")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name in arguments.tasks:
        if not (arguments.data / FILES[name]).exists():
            print(f"{name} is left out: {FILES[name]} is not there")
            continue
        kind = KINDS[name]
        source = Source(
            data=arguments.data / FILES[name], count=kind.count, scripts=SCRIPTS.get(name, ()), folder=arguments.folder
        )
        task = kind.make(source)
        plans = dict(strategies(task))
        for seed in range(arguments.seeds):
            for epoch, share in shares(task, seed, kind.epochs, kind.learning_rate, arguments.sample):
                rows.append(row(name, seed, epoch, share, plans))
                print(name, seed, epoch, f"{share.share:.1%} +- {share.standard_error:.1%}", flush=True)
        for label, several in plans.items():
            row_of_label = {"task": name, "strategy": label}
            padding, mixing = lw.measure(several, task.lengths).padding_share, measure_mixing(several, task.lengths)
            rows.append({**row_of_label, "padding_share": padding, "mixing": mixing})
    facts = {"batch_size": 16, "plans": EPOCHS, "sample": arguments.sample, "torch": torch.__version__}
    document = {**facts, "seeds": arguments.seeds, "rows": rows}
    record.write(arguments.json, document, module="lengthwise_recipes.quality.length_share")


def strategies(task: Task) -> Iterator[tuple[str, list[lw.Plan]]]:
    """Yields each order at each padding that its knob can reach, with its plans."""
    labelled = {"random": "random", "sorted": "sorted"}
    for padding in PADDINGS:
        for order in ORDERS:
            fitted = fit_knob(task.lengths, order, padding, cut=CUT)
            if abs(fitted.padding_share - padding) < NEAR:
                labelled[f"{order} {padding:.0%}"] = fitted.strategy
    for label, strategy in labelled.items():
        batching = parse_strategy(strategy, cut=CUT)
        yield label, [lw.make_plan(task.lengths, batching, epoch=epoch) for epoch in range(EPOCHS)]


def shares(task: Task, seed: int, epochs: int, learning_rate: float, sample: int) -> Iterator[tuple[int, LengthShare]]:
    """Trains in random batches; yields the share before the first epoch, after one, after a third and after all."""
    settings = Settings(epochs=epochs, learning_rate=learning_rate)
    random = setups({"random": parse_strategy("random", cut=CUT)}, settings)
    run: Run = first_runs(task, random, settings, seed=seed)["random"]
    stages = {0, 1, -(-epochs // 3), epochs}
    for epoch in tqdm(range(epochs + 1), leave=False, disable=None):
        if epoch:
            train_epoch(run, task, epoch)
        if epoch in stages:
            yield epoch, measure_share(task, run.model, sample=sample)


def row(task: str, seed: int, epoch: int, share: LengthShare, plans: dict[str, list[lw.Plan]]) -> dict[str, Any]:
    """Returns the share at one set of weights, and the step noise of every order."""
    noises = {label: share.measure(several) for label, several in plans.items()}
    return {
        "task": task,
        "seed": seed,
        "epoch": epoch,
        "share": share.share,
        "standard_error": share.standard_error,
        "noise_scale": share.noise_scale if np.isfinite(share.noise_scale) else None,
        "variance_ratios": {label: noise.variance_ratio for label, noise in noises.items()},
        "standard_errors": {label: noise.standard_error for label, noise in noises.items()},
        "extra_steps": {label: noise.extra_steps for label, noise in noises.items()},
    }


if __name__ == "__main__":
    main()
