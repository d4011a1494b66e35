"""The same bits on every platform: what golden fingerprints leave out, and a process that rounds otherwise.

This machine is another platform without the instructions that NumPy, its BLAS, the C library and Numba choose among:
they then round logarithms, products of vectors and the like otherwise, as they do on another processor.
"""

import hashlib
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise import _exact
from lengthwise._random import Key

AROUND = np.concatenate([np.linspace(-30.0, 30.0, 3_001), np.linspace(-0.4, 0.4, 801), [-800.0, -708.0, 709.0, 800.0]])
ABOVE = np.concatenate([[0.0, 5e-324, 1e-300, 1e300], np.linspace(0.01, 3.0, 3_001), 2.0 ** np.arange(-60, 60)])


def digest(*arrays):
    """16 hex digits of the bits of arrays, the same for either order of bytes."""
    whole = [each.astype(np.float64).view(np.int64).astype("<i8").tobytes() for each in arrays]
    return hashlib.sha256(b"".join(whole)).hexdigest()[:16]


# Lengths of a sequence, order, cut, deal, cost, arrangement, and the fingerprint of the plan. It is the same on x86-64,
# AArch64 and s390x: `python tests/test_platforms.py` prints the table on another platform. A new choice adds a line.
PLANS = """
1 shuffled fixed Balanced_split padded in_order 8091ba6f24478310
1 sorted one Balanced_repeat quadratic shuffled 6295ac15d016559c
1 falling fixed_drop Balanced_drop per_length shortest d0b836349bb6a4db
1 semi_sorted budget Mixed_split largest longest 2d2ba6843ee06e94
1 alternated budget_few Mixed_repeat padded shortest_at_first b9218aa500c374f8
1 windowed budget_alone Mixed_drop quadratic costliest 4e37b369498a34d3
1 bucketed budget_drop Stratified_split per_length costliest_all df71d109e500fcb2
1 edges_drop budget_multiples Stratified_repeat largest in_order 406edcedb33c28f5
1 edges_fixed budget_drop_multiples Stratified_drop padded shuffled c61b08ad87745bff
1 optimal fixed_multiple InTurn_split quadratic shortest 108d558ec57e11bf
1 optimal_fixed dynamic InTurn_repeat per_length longest 3a4d070cabe4625c
1 uniform dynamic_multiples InTurn_drop largest shortest_at_first 967daa45b8457de9
1 quantile_fixed dynamic_paper portions padded costliest f74479c93ef54ce8
1 exponential rows RandomSteps_split quadratic costliest_all 8c83ad43e5bf210b
1 entropy_padding rows_best_fit RandomSteps_repeat per_length in_order 60a355eae1b7d1c2
1 entropy_scale rows_of_two RandomSteps_drop largest shuffled d7ca02f6489c2c55
2 shuffled rows_best_fit_of_three RandomSteps_by_count padded shortest fd841ed66ebb5852
2 sorted rows_drop Balanced_split quadratic longest b2f2de21bcec2d4a
2 falling fixed Balanced_repeat per_length shortest_at_first b536fd3873af9f94
2 semi_sorted one Balanced_drop largest costliest 6ec6e4cca422e910
2 alternated fixed_drop Mixed_split padded costliest_all c121ea854f2ccba2
2 windowed budget Mixed_repeat quadratic in_order d8b544ae0846a954
2 bucketed budget_few Mixed_drop per_length shuffled 85742543dda4fe50
2 entropy_padding budget_alone Stratified_split largest shortest 055b6c9fcbc8657f
2 entropy_scale budget_drop Stratified_repeat padded longest 5183fee1dd50918c
2 edges_drop budget_multiples Stratified_drop quadratic shortest_at_first 970008decf09ad39
2 edges budget_drop_multiples InTurn_split per_length costliest 57bb6504ba5817e1
2 edges_drop_fixed fixed_multiple InTurn_repeat largest costliest_all 19f2dff382e15c1b
2 edges_fixed dynamic InTurn_drop padded in_order b7ce6db4a7d207c0
1 sorted rows_best_fit_of_three Mixed_split padded in_order 3c34ec2044f3a6d5
1 windowed rows_drop Balanced_split quadratic shuffled 1cd989e9a7ae3424
"""
TABLE = [line.split() for line in PLANS.strip().splitlines()]


def plans():
    """The lines of the table, with the fingerprints that this platform finds."""
    drawn = Key(seed=5, stage="examples").words(300).reshape(150, 2) >> np.uint64(57)
    for dims, order_name, cut_name, deal, cost_name, arrangement, _ in TABLE:
        lengths = 1 + drawn.astype(np.int64)[:, : int(dims)].squeeze()
        order, cost = (menu.ORDERS if dims == "1" else menu.OF_PAIRS)[order_name], menu.COSTS[cost_name]
        budget = float(cost(np.array([8]), np.full((1, int(dims)), 160))[0])
        cut = menu.cuts(budget, budget)[cut_name]
        cut = lw.FixedSize(7) if dims == "2" and menu.packs(cut) else cut
        batching = lw.Batching(
            order=menu.suit_order(order, cut),
            cut=cut,
            deal=menu.suit(menu.DEALS[deal], cut, cost, order),
            cost=cost,
            arrange=menu.ARRANGEMENTS[arrangement],
        )
        plan = lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2)
        yield " ".join([dims, order_name, cut_name, deal, cost_name, arrangement, plan.fingerprint()])


def fits():
    """The bits of what orders are fitted by, before any rounding hides them."""
    lengths = lw.example_lengths(count=3_000).astype(np.float64)
    at_once = _exact.logs(lengths / 7.0), _exact.exps(lengths / -700.0)
    return digest(lengths, *at_once), digest(*functions())


def functions():
    """Exponentials, logarithms, cosines and exponential numbers."""
    cosines = _exact.cosines(np.linspace(0.0, 1.0, 997))
    return [_exact.exps(AROUND), _exact.logs(ABOVE), cosines, Key(seed=2).exponential(1_000)]


def test_cosines_are_near_and_the_least_exponentials_are_0_and_some_logarithms_none():
    exps, _, cosines, _ = functions()
    assert cosines == pytest.approx(np.cos(2 * np.pi * np.linspace(0.0, 1.0, 997)), abs=7e-16)
    assert exps[AROUND < -708].tolist() == [0.0]
    assert all(np.isnan(_exact.log(value)) for value in (math.inf, math.nan, -1.0))


# Where a logarithm or a difference is near 0, and where exponentials meet their bounds, most bits are lost.
NEAR_ONE = 1.0 + np.concatenate([sign * np.geomspace(1e-12, 0.3, 4_000) for sign in (-1, 1)])
WIDE = np.concatenate([NEAR_ONE, np.geomspace(2.3e-308, 1.7e308, 4_000), np.linspace(0.5, 2.0, 4_001)])
STEEP = np.concatenate([np.linspace(-708.0, 709.0, 8_001), np.linspace(-1.0, 1.0, 8_001)])


@pytest.mark.parametrize(
    ("kernel", "given", "expected"), [(_exact.logs, WIDE, math.log), (_exact.exps, STEEP, math.exp)], ids=["log", "exp"]
)
def test_errors_are_below_four_units_in_the_last_place(kernel, given, expected):
    wanted = np.array([expected(value) for value in given.tolist()])
    assert (abs(kernel(given) - wanted) <= 4.0 * np.spacing(abs(wanted))).all()


FITS = "78386c8df47fb113", "5250342a5057fbd8"


def test_plans_of_every_choice_and_the_bits_of_fits_are_what_they_were():
    assert list(plans()) == PLANS.strip().splitlines()
    assert fits() == FITS


def test_the_table_holds_every_choice():
    dims, orders, cuts, deals, _, arrangements, _ = map(list, zip(*TABLE, strict=True))
    assert {order for dim, order in zip(dims, orders, strict=True) if dim == "1"} == set(menu.ORDERS)
    assert {order for dim, order in zip(dims, orders, strict=True) if dim == "2"} == set(menu.OF_PAIRS)
    assert {cut for dim, cut in zip(dims, cuts, strict=True) if dim == "1"} == set(menu.cuts(1, 1))
    assert (set(deals), set(arrangements)) == (set(menu.DEALS), set(menu.ARRANGEMENTS))


# Kernels of the fits are compiled for a processor that has nothing but the least. For plans that takes ten seconds.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "expected", "settings"),
    [
        ("here.fits()", FITS, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
        ("*here.plans(), sep='\\n'", PLANS.strip(), {}),
    ],
    ids=["fits", "plans"],
)
def test_a_process_without_the_instructions_of_this_processor_finds_the_same(asked, expected, settings):
    settings |= {
        "NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    if platform.machine() in ("x86_64", "AMD64"):
        settings["OPENBLAS_CORETYPE"] = "Prescott"
    script = f"import test_platforms as here; print({asked})"
    command = [sys.executable, "-W", "ignore::UserWarning", "-c", script]  # of paddings that so few lengths miss
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    assert (done.stdout.strip(), done.stderr) == (str(expected), "")


if __name__ == "__main__":
    print(*plans(), *fits(), sep="\n")
