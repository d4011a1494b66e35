"""Packed rows: ranks that attend by the squares of lengths share out a step evenly."""

import json
from pathlib import Path

import numpy as np

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=8_000).clip(max=2_048)
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)
ROOT = Path(__file__).parents[1]
NAMES = ("pair_mixing", "fill")


def page_on_rows():
    return " ".join((ROOT / "docs" / "packing.md").read_text(encoding="utf-8").split())


def waiting(deal):
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(2_048, rows=4), cost=ATTENTION, **deal), world_size=4)
    squares = np.array([sum(float(LENGTHS[n]) ** 2 for n in plan.batch(k).tolist()) for k in range(len(plan.costs))])
    of_ranks = squares[plan.grid].sum(axis=1)
    return 1.0 - of_ranks.sum() / (4 * of_ranks.max(axis=1).sum())


def test_the_default_deal_balances_the_squares_over_the_ranks_of_a_step():
    assert waiting({}) < 0.01
    assert waiting({"deal": lw.InTurn()}) > 0.1


def test_frames_alone_say_nothing_of_attention():
    """The numbers of the page on packed rows."""
    lengths = lw.example_lengths("long-tailed").clip(max=4_096)
    found = []
    for cost in (lw.Padded(), lw.Quadratic(linear=1, quadratic=0.001)):
        plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(4_096, rows=8), cost=cost), world_size=8)
        squares = np.add.reduceat(lengths[plan.sequences] ** 2, plan.offsets[:-1])
        of_ranks = squares[plan.grid].sum(axis=1)
        found.append(1.0 - of_ranks.sum() / (8 * of_ranks.max(axis=1).sum()))
    page = page_on_rows()
    assert f"8 ranks wait {found[0]:.0%} of the time that attention takes".replace("%", " %") in page
    assert f"With it they wait {found[1]:.0%}".replace("%", " %") in page


def test_the_page_prints_what_was_measured():
    document = json.loads(sorted((ROOT / "benchmarks" / "results").glob("packing_*.json"))[-1].read_text())
    found = {
        row["method"]: row for row in document["rows"] if (row["data"], row["sequences"]) == ("mean 1,400", 100_000)
    }
    large, small = (found[f"pool of {size}"] for size in ("1,024", "64"))
    words = "pair mixing is {:.2f}, and rows are {:.1%} full. A smaller pool mixes more: with `pool=64` it is {:.2f}, "
    told = (words + "and rows are {:.1%} full").format(*(row[name] for row in (large, small) for name in NAMES))
    assert told.replace("%", " %") in page_on_rows()
