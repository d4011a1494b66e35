"""The settings of a plan, written as code that makes it again."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.advice.code import write_plan
from menu import ARRANGEMENTS, CHUNKS, DEALS, ORDERS, cuts

LENGTHS = lw.example_lengths(count=200)


ALL = {
    **{name: {"order": order} for name, order in ORDERS.items()},
    **{name: {"cut": cut} for name, cut in cuts(40_000, 900).items()},
    **{name: {"deal": deal} for name, deal in DEALS.items()},
    **{name: {"arrange": arrangement} for name, arrangement in ARRANGEMENTS.items()},
    **{name: {"chunks": chunks} for name, chunks in CHUNKS.items()},
    "quadratic": {"cost": lw.Quadratic(quadratic=0.01)},
    "largest": {"cost": lw.Padded(dims="largest")},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_the_settings_as_code_make_the_plan_again(name, capsys):
    choices = ALL[name]
    lengths = np.minimum(LENGTHS, 800)
    order = {} if "order" in choices else {"order": lw.Shuffled()}
    batching = lw.Batching(**{"cut": lw.FixedSize(4), **order, **choices})
    plan = lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2, micro_batches=2)
    code = write_plan(plan, loading="lengths = given")
    ran = {"given": lengths}
    exec(code, ran)  # its last line prints the fingerprint
    assert ran["plan"].fingerprint() == plan.fingerprint() == capsys.readouterr().out.strip()
    assert ran["batching"] == batching


def test_the_settings_of_copies_ask_for_the_times(capsys):
    times = np.linspace(0.1, 2, len(LENGTHS))
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8)), seed=3, epoch=2, times=times)
    code = write_plan(plan, loading="lengths = given")
    assert "\ntimes = ...  # how often epochs take each sequence\n" in code
    exec(code.replace("times = ...", "times = asked"), {"given": LENGTHS, "asked": times})
    assert capsys.readouterr().out.strip() == plan.fingerprint()


def test_settings_of_your_own_are_named_in_a_remark():
    def by_hand(counts, padded_lengths):
        return np.asarray(counts) * np.asarray(padded_lengths, float).max(axis=1)

    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), cost=by_hand))
    assert "by_hand" in write_plan(plan)
