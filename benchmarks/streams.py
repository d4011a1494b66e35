"""Measures padding and mixing of batches of a stream, by the size of its buffer, compared with the buckets of lhotse.

    python benchmarks/streams.py

Sequences come in random order, as a stream brings them. `StreamBatches` reads windows of 256 to 8,192 of them, and
batches these under a budget, at 10 % padding and at 2 %. It is compared with the plan that sees all lengths, and, where
lhotse is installed, with its `DynamicBucketingSampler` of 30 buckets, whose batches may exceed the budget. Mixing is
that of all epochs of a seed pooled, in 128 bins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import parser, write
from steps import data, plans_of
from tqdm import tqdm

import lengthwise as lw
from lengthwise_recipes.mixing import measure_mixing

BUFFERS = (256, 1_024, 4_096, 8_192)
PADDINGS = (0.1, 0.02)
BUCKETS = 30
SEEDS, EPOCHS, BINS = range(3), 8, 128
BUDGETS = {"long-tailed": 20_000, "LJSpeech": 12_800}

Epochs = Iterator[list[list[int]]]


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    rows = []
    sets = {name: lengths for name, lengths in data().items() if name in BUDGETS}
    for name, lengths in sets.items():
        for way, buffer, run in tqdm(list(ways(lengths, BUDGETS[name])), desc=name, disable=None):
            rows.append({"data": name, "way": way, "buffer": buffer, **measured(lengths, run)})
    facts = {"seeds": list(SEEDS), "epochs": EPOCHS, "bins": BINS, "buckets": BUCKETS, "budgets": BUDGETS}
    print(write("streams", {**facts, "lhotse": lhotse_version(), "rows": rows}))


def ways(lengths: NDArray[np.int64], budget: int) -> Iterator[tuple[str, int | None, Callable[[int], Epochs]]]:
    """Yields each way to batch: its name, the size of its buffer, and a function for the epochs of a seed."""
    for padding in PADDINGS:
        batching = lw.Batching(budget=budget, padding=padding)
        for buffer in BUFFERS:
            yield f"stream, {padding:.0%}", buffer, lambda seed, b=batching, n=buffer: streamed(lengths, b, n, seed)
        yield f"plan of all, {padding:.0%}", None, lambda seed, b=batching: planned(lengths, b, seed)
    if lhotse_version() is not None:
        for buffer in BUFFERS:
            yield f"lhotse, {BUCKETS} buckets", buffer, lambda seed, n=buffer: bucketed(lengths, budget, n, seed)


def streamed(lengths: NDArray[np.int64], batching: lw.Batching, buffer: int, seed: int) -> Epochs:
    """Yields epochs of a stream, each in another order."""
    for epoch in range(EPOCHS):
        samples = [(number, int(lengths[number])) for number in shuffled(len(lengths), seed, epoch)]
        batches = lw.torch.StreamBatches(
            [samples], batching, length=lambda sample: sample[1], buffer=buffer, collate_fn=list, seed=seed
        )
        batches.set_epoch(epoch)
        yield [[number for number, _ in batch] for batch in batches]


def planned(lengths: NDArray[np.int64], batching: lw.Batching, seed: int) -> Epochs:
    """Yields epochs of plans of all lengths."""
    for epoch in range(EPOCHS):
        yield [batch.tolist() for batch in lw.make_plan(lengths, batching, seed=seed, epoch=epoch).batches()]


def bucketed(lengths: NDArray[np.int64], budget: int, buffer: int, seed: int) -> Epochs:
    """Yields epochs of the sampler of lhotse; a frame is a hundredth of a second."""
    from lhotse import CutSet, MonoCut, Recording
    from lhotse.dataset import DynamicBucketingSampler

    for epoch in range(EPOCHS):
        cuts = []
        for number in shuffled(len(lengths), seed, epoch):
            seconds = float(lengths[number]) / 100
            recording = Recording(
                id=str(number), sources=[], sampling_rate=100, num_samples=int(lengths[number]), duration=seconds
            )
            cuts.append(MonoCut(id=str(number), start=0, duration=seconds, channel=0, recording=recording))
        sampler = DynamicBucketingSampler(
            CutSet.from_cuts(cuts),
            max_duration=budget / 100,
            num_buckets=BUCKETS,
            buffer_size=buffer,
            num_cuts_for_bins_estimate=min(buffer, 10_000),
            shuffle=True,
            seed=seed,
            world_size=1,
            rank=0,
        )
        sampler.set_epoch(epoch)
        yield [[int(cut.id) for cut in batch] for batch in sampler]


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """Returns the order of the sequences of a stream."""
    return np.random.default_rng([seed, epoch]).permutation(count).tolist()


def measured(lengths: NDArray[np.int64], run: Callable[[int], Epochs]) -> dict[str, Any]:
    """Returns means over the seeds; seconds are those of an epoch with its samples."""
    rows, seconds = [], []
    for seed in SEEDS:
        start = time.perf_counter()
        epochs = list(run(seed))
        seconds.append((time.perf_counter() - start) / EPOCHS)
        plans = plans_of(epochs, lengths, 1)
        rows.append(lw.measure(plans, lengths).as_dict() | {"mixing": measure_mixing(plans, lengths, bins=BINS)})
    names = ("padding_share", "mixing", "largest_cost", "mean_batch", "dropped", "repeated")
    means = {name: float(np.mean([row[name] for row in rows])) for name in names}
    return means | {"seconds": float(np.median(seconds))}


def lhotse_version() -> str | None:
    """Returns the version of lhotse; None if it is not installed."""
    try:
        return version("lhotse")
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
