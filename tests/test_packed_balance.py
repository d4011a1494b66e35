"""Packed rows: ranks that attend by the squares of lengths share out a step evenly."""

from pathlib import Path

import numpy as np

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=8_000).clip(max=2_048)
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)


def waiting(deal):
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(2_048, rows=4), cost=ATTENTION, **deal), world_size=4)
    squares = np.array([sum(float(LENGTHS[n]) ** 2 for n in plan.batch(k).tolist()) for k in range(len(plan.costs))])
    of_ranks = squares[plan.grid].sum(axis=1)
    return 1.0 - of_ranks.sum() / (4 * of_ranks.max(axis=1).sum())


def test_the_default_deal_balances_the_squares_over_the_ranks_of_a_step():
    assert waiting({}) < 0.01
    assert waiting({"deal": lw.InTurn()}) > 0.1
    assert abs(waiting({"deal": lw.Balanced(waiting=0.05)}) - 0.05) < 0.01


def test_frames_alone_say_nothing_of_attention():
    """The numbers of the page on packed rows."""
    lengths = lw.example_lengths("long-tailed").clip(max=4_096)
    found = []
    for cost in (lw.Padded(), lw.Quadratic(linear=1, quadratic=0.001)):
        plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(4_096, rows=8), cost=cost), world_size=8)
        squares = np.add.reduceat(lengths[plan.sequences] ** 2, plan.offsets[:-1])
        of_ranks = squares[plan.grid].sum(axis=1)
        found.append(1.0 - of_ranks.sum() / (8 * of_ranks.max(axis=1).sum()))
    page = " ".join((Path(__file__).parents[1] / "docs" / "packing.md").read_text().split())
    assert f"8 ranks wait {found[0]:.0%} of the time that attention takes".replace("%", " %") in page
    assert f"With it they wait {found[1]:.0%}".replace("%", " %") in page
