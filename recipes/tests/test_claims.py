"""Verdicts: what a claim's seeds and regime allow to say of it, by hand."""

import math

import pytest

from lengthwise_recipes.claims import HOLDS, Claim, Regime
from lengthwise_recipes.pages import claims_table, reasons, verdicts

SAME = Regime(what="steps", ours=100, paper=1000)
SMALLER = Regime(what="steps", ours=300, paper=144_100)


def claimed(ours, *, holds="whole", effect=1.0, no_effect=0.0, regime=SAME, unit=""):
    return Claim(
        claim="it is more",
        where="section 2",
        paper="1",
        ours=ours,
        holds=holds,
        no_effect=no_effect,
        effect=effect,
        regime=regime,
        unit=unit,
        why="So it is.",
    )


@pytest.mark.parametrize("holds", HOLDS)
def test_outside_the_papers_regime_nothing_is_judged_whatever_holds(holds):
    found = claimed([1.0, 1.01, 0.99], holds=holds, regime=SMALLER)
    assert found.verdict == "not comparable"
    assert found.reason == "Another regime (steps: 300, in the paper 144,100). So it is."
    assert claimed([1.0], holds=holds, regime=SMALLER).verdict == "not comparable"


def test_a_tenth_of_the_papers_training_is_its_regime():
    assert SAME.comparable
    assert not Regime(what="steps", ours=99, paper=1000).comparable
    assert not Regime(what="speed-up", ours=2.5, paper=4.0, least=0.85).comparable
    assert str(Regime(what="hours", ours=0.0125, paper=30.0, digits=2)) == "hours: 0.01, in the paper 30.00"


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [("whole", "agrees, in one run"), ("part", "partly, in one run"), ("none", "differs, in one run")],
)
def test_one_run_reproduces_nothing_and_refutes_nothing(holds, verdict):
    found = claimed([1.0], holds=holds)
    assert (found.verdict, found.could_tell, found.reason) == (verdict, "nothing", "So it is.")


@pytest.mark.parametrize(
    ("holds", "verdict"), [("whole", "reproduced"), ("part", "partly"), ("none", "not reproduced")]
)
def test_seeds_that_tell_the_effect_from_none_are_judged_by_what_holds(holds, verdict):
    assert claimed([1.0, 1.1, 0.9], holds=holds).verdict == verdict
    assert claimed([1.0, 1.1, 0.9], holds=holds, regime=None).verdict == verdict
    assert claimed([-0.1, 0.0, 0.1], holds=holds).verdict == verdict  # it would have been seen: 0.33 is told apart
    assert claimed([2.0, 2.1, 1.9], holds=holds, no_effect=1.0, effect=None).verdict == verdict


@pytest.mark.parametrize("holds", HOLDS)
def test_seeds_too_far_apart_to_see_the_papers_effect_judge_nothing(holds):
    wide = claimed([-1.0, 0.0, 1.0], holds=holds, unit="%")  # 5.65 / sqrt(3) is told apart, and the effect is 1
    assert wide.verdict == "not comparable"
    assert wide.could_tell == "3.26 %"
    assert wide.reason == "These 3 seeds cannot tell an effect of 1.00 %. So it is."
    directed = claimed([-0.1, 0.0, 0.1], holds=holds, effect=None)
    assert directed.verdict == "not comparable"
    assert directed.reason == "These 3 seeds cannot tell whether there is an effect. So it is."


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_run_that_diverged_judges_nothing(value):
    found = claimed([1.0, value], holds="none")
    assert (found.verdict, found.could_tell) == ("not comparable", "nothing")
    assert found.reason == "A run diverged. So it is."


def test_a_claim_needs_a_number_and_says_how_much_of_it_holds():
    with pytest.raises(ValueError, match=r"`ours` must be at least one number, but is \[\]"):
        claimed([])
    with pytest.raises(ValueError, match="`holds` must be one of whole, part, none, but is 'reproduced'"):
        claimed([1.0], holds="reproduced")


def test_the_table_says_seeds_and_what_they_could_tell():
    claims = [claimed([1.0, 1.1, 0.9], unit="%")]
    heads, rule, line = claims_table(claims).splitlines()
    assert heads.count("|") == rule.count("|") == line.count("|")
    assert line == "| 1. it is more | reproduced | section 2 | 1 | 1.00 % (0.90 to 1.10) | 3 | 0.33 % |"
    assert reasons(claims).splitlines()[-1] == "1. So it is."
    found = [claimed([1.0]), claimed([1.0], regime=SMALLER), claimed([1.0], regime=SMALLER)]
    assert verdicts(found) == "Of 3 claims: 2 not comparable; 1 agrees, in one run."
