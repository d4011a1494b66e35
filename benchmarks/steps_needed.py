"""Counts the steps of an epoch beside the fewest that its cut needs, from 10,000 to 1,000,000 lengths.

    python benchmarks/steps_needed.py [--counts 10000,10000000] [--ranks 1,512]

Every epoch of a run has the same number of steps, settled before the first. An epoch may need fewer. Lengths are
log-normal, a batch has the budget of 128 mean sequences, and a rank takes one or four batches in a step.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise._random import Key
from lengthwise.choices.deal import World
from lengthwise.planning.epoch import draw_epoch
from lengthwise.planning.items import kinds_of, read_source
from lengthwise.planning.settle import settle_run

BATCHINGS: dict[str, dict[str, Any]] = {
    "random steps": {"deal": lw.RandomSteps()},
    "strata": {"padding": 0.05},
    "sorted": {"order": lw.Sorted()},
}
EPOCHS = (0, 1)


def main() -> None:
    """Plans every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--counts", default="10000,100000,1000000")
    options.add_argument("--ranks", default="1,8,64,512,4096")
    arguments = options.parse_args()
    rows = []
    for count in map(int, arguments.counts.split(",")):
        lengths = np.random.default_rng(0).lognormal(5.0, 0.6, count).astype(np.int64) + 1
        worlds = [World(ranks, each) for ranks in map(int, arguments.ranks.split(",")) for each in (1, 4)]
        # A step of fewer sequences than places takes some again: that is no question of counting.
        cases = [world for world in worlds if world.slots * 128 <= count]
        for (name, choices), world in tqdm([*itertools.product(BATCHINGS.items(), cases)], disable=None):
            rows += count_steps(lengths, lw.Batching(budget=128.0 * float(lengths.mean()), **choices), world, name)
    print(write("steps-needed", {"rows": rows}))


def count_steps(lengths: np.ndarray, batching: lw.Batching, world: World, name: str) -> list[dict[str, object]]:
    """Returns a row for each epoch: its steps, the fewest that its cut needs, and how full its batches are."""
    source = read_source(lengths)
    settled = settle_run(source, batching, world)
    rows: list[dict[str, object]] = []
    for epoch in EPOCHS:
        items, key = source.items(batching, epoch), Key(seed=0, epoch=epoch)
        kinds = kinds_of(items.lengths, settled.batching)
        least = draw_epoch(items, kinds, settled._replace(steps=None), world, key)[1]
        plan = lw.make_plan(lengths, batching, epoch=epoch, **world._asdict())
        full = float(plan.costs.mean()) / plan.max_cost
        rows.append(
            {
                **{"count": len(lengths), "batching": name, "epoch": epoch, **world._asdict()},
                **{"steps": plan.steps, "least": least, "full": full},
            }
        )
    return rows


if __name__ == "__main__":
    main()
