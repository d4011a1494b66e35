"""Verdicts: what a claim's seeds allow to say of it, by hand."""

import dataclasses
import math
from pathlib import Path

import pytest

from lengthwise_recipes.claims import (
    CLOSE,
    HOLDS,
    Claim,
    Size,
    of_each,
    of_effect,
    of_likeness,
    of_order,
    tells_greater,
)
from lengthwise_recipes.pages import claims_table, judgement, verdicts

SMALLER = Size(ours=300, paper=144_100, source="clips")


def claimed(ours, *, holds="whole", effect=1.0, no_effect=0.0, size=None, unit=""):
    return Claim(
        claim="it is more",
        where="section 2",
        paper="1",
        ours=ours,
        holds=holds,
        no_effect=no_effect,
        effect=effect,
        size=size,
        unit=unit,
        why="So it is.",
    )


@pytest.mark.parametrize("holds", HOLDS)
def test_with_less_than_a_tenth_of_the_data_losses_are_not_comparable(holds):
    tenth = Size(ours=14_410, paper=144_100, source="clips")
    small, enough, bare = (claimed([1.0, 1.01, 0.99], holds=holds, size=size) for size in (SMALLER, tenth, None))
    assert small.at_our_size == enough.verdict == enough.sized_verdict == bare.verdict == bare.sized_verdict
    assert small.sized_verdict == f"not comparable, with 0.21 % of the data; at our size {bare.verdict}"
    assert str(SMALLER) == "300 frames of training data, 0.21 % of the paper's 144,100 (clips)"


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
    assert claimed([-0.1, 0.0, 0.1], holds=holds).verdict == verdict  # it would have been seen: 0.33 is told apart
    assert claimed([2.0, 2.1, 1.9], holds=holds, no_effect=1.0, effect=None).verdict == verdict


@pytest.mark.parametrize("holds", HOLDS)
def test_seeds_too_far_apart_to_see_the_papers_effect_judge_nothing(holds):
    wide = claimed([-1.0, 0.0, 1.0], holds=holds, unit="%")  # 5.65 / sqrt(3) is told apart, and the effect is 1
    assert wide.verdict == "undecided"
    assert wide.could_tell == "3.26 %"
    assert wide.reason == "These 3 runs could not show an effect of 1.00 %. So it is."
    directed = claimed([-0.1, 0.0, 0.1], holds=holds, effect=None)
    assert directed.verdict == "undecided"
    assert directed.reason == "These 3 runs cannot tell whether there is an effect. So it is."


def test_a_likeness_is_undecided_where_the_runs_reach_into_the_tolerance_and_beyond():
    across, beyond = ([0.8, 1.5, 2.2], [4.0, 5.5, 7.0])  # 1.5 -+ 1.7 and 5.5 -+ 3.7; the tolerance is 1
    for ours, verdict in ((across, "undecided"), (beyond, "not reproduced"), ([0.8, 0.7, 0.9], "partly")):
        alike = claimed(ours, holds="part" if verdict == "partly" else "none")
        assert dataclasses.replace(alike, likeness=True).verdict == verdict


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_run_that_diverged_judges_nothing(value):
    found = claimed([1.0, value], holds="none")
    assert (found.verdict, found.could_tell) == ("undecided", "nothing")
    assert found.reason == "A run diverged. So it is."


@pytest.mark.parametrize(
    ("ours", "holds"),
    [
        ([1.46, 1.47, 1.45], "whole"),
        ([1.40, 1.41, 1.39], "whole"),  # an effect of 0.40 is 13 % less than 0.46
        ([1.24, 1.25, 1.23], "part"),  # half of the effect, though 85 % of the ratio
        ([1.68, 1.69, 1.67], "part"),  # half as much again
        ([0.54, 0.55, 0.53], "none"),  # the same size, of the other sign
        ([1.0, 1.3, 0.9], "none"),
        ([0.9, 1.6, 1.9], "none"),  # close in the mean, but one seed is of the other sign
        ([1.24], "part"),
        ([0.9], "none"),
        ([1.46, math.nan], "none"),
        ([1.46, math.inf], "none"),
    ],
)
def test_an_effect_holds_if_it_is_close_on_either_side_and_in_part_if_the_seeds_tell_it(ours, holds):
    assert of_effect(ours, 1.46, no_effect=1.0) == holds
    assert of_effect([1.0 - value for value in ours], -0.46) == holds


def test_an_order_holds_if_the_seeds_tell_each_pair_and_in_part_if_they_tell_the_first():
    far, near = ([3.0, 3.1, 3.2], 1.0), ([3.0, 3.1, 3.2], [3.0, 3.2, 3.0])
    assert of_order(far) == of_order(far, far) == "whole"
    assert (of_order(far, near), of_order(near, far)) == ("part", "none")
    assert of_order(far, far[::-1]) == "part"
    assert of_order((2.0, 1.0), (2.0, 1.5)) == "whole"  # one run
    assert of_order((2.0, 2.0)) == "none"
    assert not tells_greater([2.0, math.inf], 1.0)


def test_a_likeness_holds_if_the_interval_is_within_the_tolerance_and_in_part_if_the_mean_is():
    near, far = [0.1, 0.2, 0.0], [0.4, 0.6, 0.0]  # the interval of `far` reaches 1.09
    assert of_likeness(0.5, near, [-0.1, -0.2, 0.0]) == "whole"
    assert of_likeness(0.5, near, far) == "part"
    assert of_likeness(0.3, near, far) == "none"
    assert of_likeness(0.5, [0.4]) == "whole"  # one run has no interval
    assert of_likeness(0.5, near, [math.nan, 0.1]) == "none"


def test_a_claim_under_several_choices_holds_whole_only_under_each():
    assert of_each("whole", "whole") == "whole"
    assert of_each("whole", "none") == of_each("part", "part") == of_each("none", "part") == "part"
    assert of_each("none", "none") == "none"


def test_the_rule_says_the_tolerance():
    words = " ".join((Path(__file__).parents[1] / "README.md").read_text().split())
    assert f"within {100 * CLOSE:g} % of the paper's, above or below" in words


def test_the_first_sentences_say_what_the_seeds_could_tell():
    shares = dataclasses.replace(claimed([11.0, 12.0, 13.0], unit="%"), kind="loss")
    speeds = [
        dataclasses.replace(claimed(ours, no_effect=1.0), kind="speed") for ours in ([1.0, 1.2, 1.4], [1.1, 1.2, 1.3])
    ]
    told = verdicts([*speeds, shares, claimed([1.0])])
    assert told.endswith(
        " Our runs could tell a difference of 33 to 65 % in speed and of 3 % in loss; smaller ones may exist."
    )


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
    assert judgement(claims).splitlines()[-1] == "1. So it is."
    found = [claimed([1.0]), claimed([-1.0, 0.0, 1.0], size=SMALLER), claimed([-1.0, 0.0, 1.0])]
    counts = "1 agrees, in one run; 1 not comparable; 1 undecided"
    assert verdicts(found) == f"Of 3 claims: {counts}. Size matters to 1: ours is {SMALLER}."
