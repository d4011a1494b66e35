"""Prices the default beside other batches, by frames and by attention, on one rank and on several.

    python benchmarks/prices.py

The price is the cost that all ranks compute for each unit of the data's own, waiting counted. Attention costs a
sequence of length L as L (1 + q L). All batches but those of group_by_length have the same budget of padded frames.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import parser, write
from steps import data
from tqdm import tqdm

import lengthwise as lw
from lengthwise.advice.candidates import list_shipped
from lengthwise.advice.search import epoch_price
from lengthwise_recipes.mixing import measure_mixing

SEEDS = range(3)
WORLDS = ((1, 1), (1, 4), (2, 1), (8, 1), (8, 4))
QUADRATICS = (0.0, 4.1e-5, 1e-3)  # q: none, a model of width 8,192, and one of 512
BUDGETS = {"long-tailed": 20_000, "LJSpeech": 20_000, "chats": 32_768, "two lengths": 8_000}


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    warnings.filterwarnings("ignore", message="`padding` must be")
    rows = []
    for name, lengths in sets().items():
        for world in tqdm([lw.World(*each) for each in WORLDS], desc=name, disable=None):
            for quadratic in QUADRATICS:
                about = {"data": name, "quadratic": quadratic, **world._asdict()}
                rows += [about | row for row in rows_of(lengths, BUDGETS[name], world, quadratic)]
    print(write("prices", {"seeds": list(SEEDS), "budgets": BUDGETS, "rows": rows}))


def sets() -> dict[str, NDArray[np.int64]]:
    """Returns the lengths by name: those of steps, chats of 50-fold spread, and four of 100 for each of 1,000."""
    chance = np.random.default_rng(0)
    chats = np.clip(chance.lognormal(6.2, 1.0, 30_000), 20, 16_000).astype(np.int64)
    two = np.where(chance.random(20_000) < 0.8, 100, 1_000)
    return {name: each for name, each in data().items() if each.ndim == 1} | {"chats": chats, "two lengths": two}


def rows_of(lengths: NDArray[np.int64], budget: int, world: lw.World, quadratic: float) -> list[dict[str, Any]]:
    """Returns a row for each way to make batches."""
    cost = lw.Quadratic(quadratic=quadratic)
    balance = cost if quadratic else None
    default = lw.Batching(budget=budget, balance=balance)
    size = max(1, round(len(lengths) / lw.make_plan(lengths, default, **world._asdict()).grid.size))
    shipped = {row.ships_in: row.batching for row in list_shipped(lw.Budget(budget), lengths, world, dims=1)}
    by_size = {row.ships_in: row.batching for row in list_shipped(lw.FixedSize(size), lengths, world, dims=1)}
    ways = {
        "default": default,
        "default of before": default_of_before(lengths, budget, world),
        "strata, 5 %": lw.Batching(budget=budget, padding=0.05, deal=lw.Stratified(), balance=balance),
        "balanced, 5 %": lw.Batching(budget=budget, padding=0.05, deal=lw.Balanced(), balance=balance),
        "random steps": lw.Batching(budget=budget, deal=lw.RandomSteps(), balance=balance),
        "group_by_length": by_size["Trainer's group_by_length"],
        "30 buckets (NeMo, lhotse)": shipped["NeMo, lhotse"],
    }
    return [{"way": name, **measured(lengths, batching, world, cost, budget)} for name, batching in ways.items()]


def default_of_before(lengths: NDArray[np.int64], budget: int, world: lw.World) -> lw.Batching:
    """Returns the default of before: random steps if they pad at most 10 %, else strata; no cost is balanced."""
    in_steps = lw.Batching(budget=budget, deal=lw.RandomSteps())
    padding = lw.measure(lw.make_plan(lengths, in_steps, **world._asdict()), lengths).padding_share
    strata = lw.Batching(budget=budget, padding=0.1, deal=lw.Stratified())
    return in_steps if world.slots > 1 and padding <= 0.1 else strata


def measured(
    lengths: NDArray[np.int64], batching: lw.Batching, world: lw.World, cost: lw.Cost, budget: int
) -> dict[str, Any]:
    """Returns the measures of one epoch, as means over the seeds; the price has its range."""
    plans = [lw.make_plan(lengths, batching, seed=seed, **world._asdict()) for seed in SEEDS]
    needed = float(cost(np.ones_like(lengths), lengths[:, None]).sum())
    done = [float(cost(plan.row_counts, plan.padded_lengths)[plan.grid].sum()) for plan in plans]
    paid = [epoch_price(plan, cost) * world.world_size for plan in plans]
    prices = [each / needed for each in paid]
    return {
        "batching": plans[0].batching,
        "price": float(np.mean(prices)),
        "price_ends": [min(prices), max(prices)],
        "padding_share": float(np.mean([lw.measure(plan, lengths).padding_share for plan in plans])),
        "waiting": 1.0 - float(np.sum(done) / np.sum(paid)),
        "step_mixing": float(np.mean([measure_mixing(plan, lengths, steps=True) for plan in plans])),
        "steps": float(np.mean([plan.steps for plan in plans])),
        "over_budget": int(max((plan.row_counts * plan.padded_lengths[:, 0] > budget).sum() for plan in plans)),
        "largest": float(max((plan.row_counts * plan.padded_lengths[:, 0]).max() for plan in plans)) / budget,
    }


if __name__ == "__main__":
    main()
