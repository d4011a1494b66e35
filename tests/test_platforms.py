"""The same bits on every platform: what golden fingerprints leave out, and a process that rounds otherwise.

This machine is another platform without the instructions that NumPy, its BLAS, the C library and Numba choose among:
they then round logarithms, products of vectors and the like otherwise, as they do on another processor.
"""

import hashlib
import itertools
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


def plans():
    """Fingerprints of plans by each order of the table, once of one length a sequence and once of two."""
    of_cuts, of_deals, of_costs, of_arrangements = map(
        itertools.cycle, (menu.cuts(1, 1), menu.DEALS, list(menu.COSTS)[:4], menu.ARRANGEMENTS)
    )
    drawn = Key(seed=5, stage="examples").words(300).reshape(150, 2) >> np.uint64(57)
    for dims, orders in (1, menu.ORDERS), (2, menu.OF_PAIRS):
        lengths = 1 + drawn.astype(np.int64)[:, :dims].reshape((150, dims)[:dims])
        for name, order in orders.items():
            cost = menu.COSTS[next(of_costs)]
            budget = float(cost(np.array([8]), np.full((1, dims), 160))[0])
            cut = menu.cuts(budget, budget)[next(of_cuts)]
            cut = lw.FixedSize(7) if dims == 2 and menu.packs(cut) else cut
            batching = lw.Batching(
                order=menu.suit_order(order, cut),
                cut=cut,
                deal=menu.suit(menu.DEALS[next(of_deals)], cut, cost, order),
                cost=cost,
                arrange=menu.ARRANGEMENTS[next(of_arrangements)],
            )
            yield name, lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2).fingerprint()


def fits():
    """The bits of what orders are fitted by, before any rounding hides them."""
    lengths = lw.example_lengths(count=3_000).astype(np.float64)
    at_once = _exact.logs(lengths / 7.0), _exact.exps(lengths / -700.0)
    return digest(lengths, *at_once), digest(*functions())


def functions():
    """Exponentials, logarithms, cosines and exponential numbers."""
    cosines = _exact.cosines(np.linspace(0.0, 1.0, 997))
    return [_exact.exps(AROUND), _exact.logs(ABOVE), cosines, Key(seed=2).exponential(1_000)]


def test_exact_functions_are_near():
    exps, logs, cosines, _ = functions()
    with np.errstate(over="ignore", divide="ignore"):
        assert exps[AROUND > -708] == pytest.approx(np.exp(AROUND[AROUND > -708]), rel=4e-16)
        assert logs == pytest.approx(np.log(ABOVE), rel=4e-16, abs=1e-16)
    assert cosines == pytest.approx(np.cos(2 * np.pi * np.linspace(0.0, 1.0, 997)), abs=7e-16)
    assert exps[AROUND < -708].tolist() == [0.0]


# Where a logarithm or a difference is near 0, and where exponentials meet their bounds, most bits are lost.
NEAR_ONE = 1.0 + np.concatenate([sign * np.geomspace(1e-12, 0.3, 4_000) for sign in (-1, 1)])
WIDE = np.concatenate([NEAR_ONE, np.geomspace(2.3e-308, 1.7e308, 4_000), np.linspace(0.5, 2.0, 4_001)])
STEEP = np.concatenate([np.linspace(-708.0, 709.0, 8_001), np.linspace(-1.0, 1.0, 8_001)])


@pytest.mark.parametrize(
    ("kernel", "given", "expected"),
    [(_exact.logs, WIDE, math.log), (_exact.exps, STEEP, math.exp)],
    ids=["log", "exp"],
)
def test_errors_are_below_four_units_in_the_last_place(kernel, given, expected):
    wanted = np.array([expected(value) for value in given.tolist()])
    assert (abs(kernel(given) - wanted) <= 4.0 * np.spacing(abs(wanted))).all()


def test_the_logarithm_of_what_is_no_finite_number_is_none():
    assert all(np.isnan(_exact.log(value)) for value in (math.inf, math.nan, -1.0))


# The same on x86-64, AArch64 and s390x. `python tests/test_platforms.py` prints them on another platform.
PLANS, FITS = "414279992038775b", ("78386c8df47fb113", "5250342a5057fbd8")


def plans_digest():
    return hashlib.sha256(" ".join(f"{name} {found}" for name, found in plans()).encode()).hexdigest()[:16]


def test_plans_of_all_orders_and_the_bits_of_fits_are_what_they_were():
    assert (plans_digest(), fits()) == (PLANS, FITS)


# Kernels of the fits are compiled for a processor that has nothing but the least. For plans that takes ten seconds.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "expected", "settings"),
    [
        ("here.fits()", FITS, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
        ("here.plans_digest()", PLANS, {}),
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
    print(plans_digest(), *fits())
