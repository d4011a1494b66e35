"""Errors have two forms.

A bad value:   `name` must be <rule>, but is <value>[ at <place>]. <What to do>.
A bad state:   <What is so>. <What to do>.
"""

import ast
import copy
import importlib
import pickle
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import lengthwise as lw
import menu
from lengthwise._random import Key
from lengthwise.checks import sentence
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.rows import LongerThanRowError
from lengthwise.cli.strategies import parse_strategy
from lengthwise.planning.make import NoStepError
from lengthwise.planning.plan import PlanMismatchError

SENTENCE = re.compile(r"^`[\w ]+` must be .+, but is .+\. [A-Z].+\.$", re.DOTALL)
STATE = re.compile(r"^[A-Z][^.]+\. [\w`].+\.$")

FIXED = lw.FixedSize(16)
BATCHING = lw.Batching(cut=lw.FixedSize(2))
PLAN = lw.make_plan([1, 2, 3, 4], BATCHING)
HIDDEN = np.ma.array([3, 4], mask=[True, False])


def planned(*given, **which):
    return lambda: lw.make_plan(*given, **which)


def planned_with(cost):
    return planned([1, 2, 3], lw.Batching(budget=10, order=lw.Shuffled(), cost=cost))


def bucketed(lengths, edges):
    return planned(lengths, lw.Batching(cut=FIXED, order=lw.Bucketed(edges=edges)))


VALUES = [
    (lambda: lw.FixedSize(0), "`batch_size` must be at least 1, but is 0."),
    (lambda: lw.Budget(0), "`budget` must be finite and above 0, but is 0."),
    (lambda: lw.Budget(10**400), f"`budget` must be finite and above 0, but is 1{'0' * 46}...{'0' * 30}."),
    (lambda: lw.Budget(-(10**5000)), "`budget` must be finite and above 0, but is a number of thousands of digits."),
    (lambda: lw.FixedSize(9, multiple_of=0), "`multiple_of` must be at least 1, but is 0."),
    (
        lambda: lw.DynamicSize(9, rule="paper", count_multiple_of=8),
        "`count_multiple_of` must be left out by the rule of the paper, but is 8.",
    ),
    (lambda: lw.torch.BatchSampler([], lw.Batching(budget=9)), "`lengths` must be at least one, but is 0."),
    (lambda: lw.Budget(9, max_sequences=0), "`max_sequences` must be at least 1, but is 0."),
    (lambda: lw.SemiSorted(-0.1), "`randomization_factor` must be finite and at least 0, but is -0.1."),
    (lambda: lw.AlternatedSort(bins=0), "`bins` must be at least 1, but is 0."),
    (lambda: lw.Bucketed(), "Bucketed takes one of `size`, `edges`, `buckets`, but has none."),
    (
        lambda: lw.Bucketed(size=3, buckets=4),
        "Bucketed takes one of `size`, `edges`, `buckets`, but has `size` and `buckets`.",
    ),
    (lambda: lw.Bucketed(edges=(9, 5)), "`edges` must be rising and not empty, but is (9, 5)."),
    (lambda: lw.Bucketed(size=5, pad_to_edge=True), "`pad_to_edge` must be False with size, but is True."),
    (lambda: lw.Bucketed(buckets=4, longer="drop"), "`longer` must be left out with size or buckets, but is 'drop'."),
    (bucketed([5], ((1, 6),)), "`edges` must be whole numbers, because sequences have one length, but is ((1, 6),)."),
    (bucketed([[9, 7]], ((9, 6), (6, 9))), "`edges` must be such that a bucket holds (9, 7), but is ((6, 9), (9, 6))."),
    (lambda: lw.Bucketed(edges=((9, 6), (6,))), "`edges` must be rows of equally many edges, but is (6,)."),
    (lambda: lw.Bucketed(edges=((9, 6), (6, 9), (9, 6))), "`edges` must be different from each other, but is (9, 6)."),
    (
        lambda: lw.Batching.from_json('{"cut": {"choice": "cut.FixedSize", "batch_size": 4, "colour": 1}}'),
        "`choice` must be one with a field colour, but is 'cut.FixedSize'.",
    ),
    (lambda: lw.Batching.from_json('{"cut": 5}'), '`choice` must be of the form {"choice": ...}, but is 5.'),
    (lambda: lw.loss_scales(PLAN, -np.ones(4)), "`weights` must be finite and at least 0, but is -1.0 at sequence 0."),
    (lambda: lw.MaxEntropy(padding=1.5), "`padding` must be at least 0 and at most 0.99, but is 1.5."),
    (lambda: lw.MaxEntropy(0.1, scale=3), "MaxEntropy takes one of `padding`, `scale`, but has `padding` and `scale`."),
    (lambda: lw.MaxEntropy(0.1)(np.ones(2), Key()), "MaxEntropy was called before it was fitted to the lengths."),
    (lambda: lw.Bucketed(buckets=2)(np.ones(2), Key()), "Bucketed was called before it was fitted to the lengths."),
    (lambda: lw.loss_scales(PLAN, HIDDEN), "`weights` must be an array without masked values, but is 'masked'."),
    (lambda: lw.CostliestFirst(steps=0), "`steps` must be at least 1, but is 0."),
    (lambda: lw.ShortestFirst(epochs=0), "`epochs` must be at least 1, but is 0."),
    (lambda: lw.Chunks(10, step=11), "`step` must be at most 10, but is 11."),
    (
        planned([2**50] * 2, lw.Batching(cut=FIXED, chunks=lw.Chunks(1))),
        "`chunks` must be at most 1073741824 in all, but is 2251799813685248.",
    ),
    (
        planned([2**63 - 1], lw.Batching(cut=FIXED, chunks=lw.Chunks(2**62))),
        "`lengths` must be few and short enough to be padded to less than 2**53 frames, but is 9.223372036854776e+18.",
    ),
    (lambda: lw.Quadratic()([2, 2], [100, 50]), "`padded_lengths` must be of shape [batches, dims], but is (2,)."),
    (lambda: lw.Quadratic(linear=-1), "`linear` must be finite and at least 0, but is -1."),
    (
        planned([[2, 3]], lw.Batching(budget=9, cost=lw.Quadratic(linear=(1, 2, 3)))),
        "`linear` must be one number, or 2, one for each length of a sequence, but is (1.0, 2.0, 3.0).",
    ),
    (lambda: lw.Quadratic(per_length=(1, float("nan"))), "`per_length` must be finite and at least 0, but is nan."),
    (lambda: lw.Batching(), "Batching takes one of `cut`, `budget`, but has none."),
    (planned([3, 0], BATCHING), "`lengths` must be at least 1, but is 0 at sequence 1."),
    (
        lambda: lw.Key(stage="cut"),
        "`stage` must be one of examples, portions, order, ties, deal, arrange, tail, "
        "subset, rest, steps, trial, edges, windows, times, but is 'cut'.",
    ),
    (lambda: lw.example_lengths("talk"), "`name` must be one of long-tailed, speech, but is 'talk'."),
    (lambda: lw.example_lengths(count=-1), "`count` must be at least 0, but is -1."),
    (lambda: lw.example_lengths(seed=-1), "`seed` must be at least 0, but is -1."),
    (lambda: lw.Key(lane=-1), "`lane` must be at least 0, but is -1."),
    (planned([3, 4], BATCHING, times=[1.0]), "`times` must be of shape [2], or one number for all, but is (1,)."),
    (planned([3, 4], BATCHING, times=[1.0, -0.5]), "`times` must be finite and at least 0, but is -0.5 at sequence 1."),
    (planned([3, 4], BATCHING, times=np.nan), "`times` must be finite and at least 0, but is nan at sequence 0."),
    (planned([3, 4], BATCHING, times=[np.inf, 1]), "`times` must be finite and at least 0, but is inf at sequence 0."),
    (planned([3, 4], BATCHING, times=[0, 0]), "`times` must be above 0 for some sequence, but is 0.0."),
    (planned([3], BATCHING, times=1e300), "`times` must be at most 268435456 in sum, rounded up, but is 1e+300."),
    (planned([3], BATCHING, seed=-1), "`seed` must be at least 0, but is -1."),
    (planned([3], BATCHING, epoch=2**64), "`epoch` must be at most 18446744073709551615, but is 18446744073709551616."),
    (planned([3], BATCHING, world_size=0), "`world_size` must be at least 1, but is 0."),
    (planned([3], BATCHING, micro_batches=0), "`micro_batches` must be at least 1, but is 0."),
    (planned([[3, 4]], lw.Batching(cut=FIXED, chunks=lw.Chunks(4))), "`lengths` must be of shape [n], but is (1, 2)."),
    (planned_with(lambda *_: 3.0), "`cost` must be of shape (3,), one for each batch, but is ()."),
    (planned_with(lambda counts, _: np.full(len(counts), np.nan)), "`cost` must be finite, but is nan."),
    (planned_with(lw.Quadratic(linear=1e308, quadratic=1e308)), "`cost` must be finite, but is inf."),
    (planned([3], BATCHING, after=3), "`after` must be a list of runs, each of three whole numbers, but is 3."),
    (planned_with(lambda counts, _: counts - 40.0), "`cost` must be at least 0, but is -39.0."),
    (planned_with(lambda _, padded: padded), "`cost` must be of shape (3,), one for each batch, but is (3, 1)."),
    (lambda: PLAN.batches(rank=1), "`rank` must be at most 0, but is 1."),
    (lambda: PLAN.batches(start=3), "`start` must be at most 2, but is 3."),
    (lambda: PLAN.costliest(-1), "`count` must be at least 0, but is -1."),
    (lambda: PLAN.batch(-1), "`number` must be at least 0, but is -1."),
    (lambda: lw.optimal_edges([1, 2], 0), "`buckets` must be at least 1, but is 0."),
    (
        lambda: lw.measure(PLAN, [1, 2, 3, 5]),
        "`lengths` must be those of the plan, of fingerprint 8837b98d3b15e73c, but is 'd01bb212cd09aec6'.",
    ),
    (lambda: lw.Batching.from_json("nonsense"), "`text` must be JSON, but is 'nonsense'."),
    (lambda: lw.Batching.from_json(100_000 * "["), f"`text` must be JSON, but is '{46 * '['}...{29 * '['}'."),
    (lambda: lw.Batching.from_json('{"trim": null}'), "`text` must be a batching as JSON, but is '{\"trim\": null}'."),
    (
        lambda: lw.Batching.from_json(lw.Batching(budget=9, cost=np.add).to_json()),
        "`choice` must be one of this package, but is 'numpy:add'.",
    ),
]

TYPES = [
    (lambda: lw.Batching(16), "`cut` must be a choice such as FixedSize(16), but is 16."),
    (lambda: lw.loss_scales(PLAN, ranks_averaged=1), "`ranks_averaged` must be True or False, but is 1."),
    (
        lambda: lw.loss_scales(PLAN, micro_batches_averaged=1),
        "`micro_batches_averaged` must be True or False, but is 1.",
    ),
    (planned([3, 4], BATCHING, times=["1", "2"]), "`times` must be a list of numbers, but is ['1', '2']."),
    (planned([3], BATCHING, times=np.array([True])), "`times` must be a list of numbers, but is array([ True])."),
    (planned([3, 4], BATCHING, times={"a": 1.0}), "`times` must be a list of numbers, but is {'a': 1.0}."),
    (lambda: lw.Batching(budget=9, order=lw.InOrder()), "`order` must be a choice such as Sorted(), but is InOrder()."),
    (lambda: lw.Batching(cut=FIXED, cost=lw.InOrder()), "`cost` must be a choice such as Padded(), but is InOrder()."),
    (lambda: parse_strategy("sorted,descending=no", cut=FIXED), "`descending` must be True or False, but is 'no'."),
    (lambda: lw.example_lengths(count=1.5), "`count` must be a whole number, but is 1.5."),
    (lambda: lw.FixedSize("16"), "`batch_size` must be a whole number, but is '16'."),
    (lambda: lw.Bucketed(edges=np.array(3)), "`edges` must be whole numbers, but is array(3)."),
    (lambda: lw.Budget("20000"), "`budget` must be a number, but is '20000'."),
    (lambda: lw.Bucketed(edges=5), "`edges` must be whole numbers, but is 5."),
    (lambda: lw.Bucketed(edges=(1.5,)), "`edges` must be a whole number, but is 1.5."),
    (lambda: lw.MaxEntropy(padding="5%"), "`padding` must be a number, but is '5%'."),
    (planned([3], BATCHING, seed=1.0), "`seed` must be a whole number, but is 1.0."),
    (lambda: lw.Batching(cut=16), "`cut` must be a choice such as FixedSize(16), but is 16."),
    (
        lambda: lw.Batching(cut=FIXED, order=lw.Sorted),
        "`order` must be a choice such as Sorted(), but is <class 'lengthwise.choices.order.Sorted'>.",
    ),
    (lambda: lw.Batching(cut=FIXED, chunks=50), "`chunks` must be a choice such as Chunks(50), but is 50."),
    (planned([3], "sorted"), "`batching` must be a Batching, but is 'sorted'."),
]


# The largest number that is taken, what it is given to, and the error of one more.
LIMITS = [
    (2**20, lambda most: lw.FixedSize(4, multiple_of=most), "`multiple_of` must be at most 1048576"),
    (2**24, lambda most: lw.Rows(most), "`capacity` must be at most 16777216"),
    (2**62 - 1, lambda most: lw.Bucketed(edges=((2**62, most),)), "`edges` must be below 2**63 in sum"),
    (2**56 - 1, lambda most: lw.Key(lane=most), "`lane` must be at most 72057594037927935"),
    (2**61 - 1, lambda most: lw.optimal_edges([1, most], 2), "`lengths` must be below 2**62 frames in all when"),
    (8, lambda most: lw.make_plan(np.ones((2, most), int), BATCHING), "`lengths` must be at most 8 for each sequence"),
    (
        2**20,
        lambda most: lw.make_plan([3], BATCHING, world_size=most),
        "`world_size x micro_batches` must be at most 1048576 batches in a step",
    ),
    (1_000, lambda most: lw.make_plan([3, 4], BATCHING, after=[(1, 1, 0)] * most), "`after` must be at most 1000"),
    (2**52 - 1, lambda most: lw.make_plan([most, 5], BATCHING), "`lengths` must be few and short enough"),
    (
        2**53 - 2**20,
        lambda most: lw.make_plan([most], lw.Batching(cut=lw.FixedSize(2, multiple_of=2**20))),
        "`lengths` must be few and short enough",
    ),
    (
        2**32,
        lambda most: lw.Windows(np.broadcast_to(np.array(5), most), BATCHING, window=1, block=1),
        "`window` must be so large that an epoch has at most 4294967296 windows",
    ),
    (
        2**30 - 1,
        lambda most: lw.torch.ConcatCollate()([torch.empty(count, device="meta") for count in (2**30, most)]),
        "`samples` must be below 2**31 frames in all, which int32 offsets can count",
    ),
]


@pytest.mark.parametrize(("most", "give", "message"), LIMITS)
def test_a_number_at_its_limit_is_taken_and_one_more_is_refused(most, give, message):
    give(most)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}.*, but is ") as caught:
        give(most + 1)
    assert SENTENCE.match(str(caught.value))


@pytest.mark.parametrize("value", [np.zeros((3, 2)), [np.ones((2, 2)), np.ones((2, 3))]])
def test_a_value_of_several_lines_stands_on_one(value):
    assert len(sentence("x", "y", value, "z.").splitlines()) == 1


def check_sentence(call, message, error):
    with pytest.raises(error, match=f"^{re.escape(message)} ") as caught:
        call()
    assert (SENTENCE if message.startswith("`") else STATE).match(str(caught.value))


@pytest.mark.parametrize(("call", "message"), VALUES)
def test_a_bad_value_is_refused_in_one_sentence(call, message):
    check_sentence(call, message, ValueError)


@pytest.mark.parametrize(("call", "message"), TYPES)
def test_a_bad_type_is_refused_in_one_sentence(call, message):
    check_sentence(call, message, TypeError)


@pytest.mark.parametrize("name", ["lengths", "times", "groups"])
def test_masked_values_are_refused(name):
    given = {"lengths": [3, 4], name: HIDDEN}
    message = f"`{name}` must be an array without masked values, but is 'masked'."
    check_sentence(planned(batching=BATCHING, **given), message, ValueError)


CHOICES = {
    type(choice).__name__: choice
    for table in (menu.ORDERS, menu.cuts(9, 9), menu.DEALS, menu.ARRANGEMENTS)
    for choice in table.values()
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_no_option_takes_a_word_that_it_does_not_know(choice):
    for name in (field.name for field in fields(choice) if isinstance(field.default, str)):
        rule = f"^`{name}` must be one of .+, but is 'hue'\\. Choose one of these words\\.$"
        with pytest.raises(ValueError, match=rule):
            replace(choice, **{name: "hue"})


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_no_flag_is_a_number(choice):
    for name in (field.name for field in fields(choice) if isinstance(field.default, bool)):
        with pytest.raises(TypeError, match=f"^`{name}` must be True or False, but is 1\\. Choose one of the two\\.$"):
            replace(choice, **{name: 1})


# Every exception of ours is copied and pickled whole: one that is not hangs a pool of processes for ever.

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "recipes" / "src")

# One of each class, made as the package makes it.
ERRORS = [
    OversizeError(9.0, 10.0, 3),
    OversizeError(9.0, 10.0, 3, sequence=7),
    OversizeError(9.0, 30.0, 3, sequence=7, span=(10, 20), mean_cost=12.0),
    LongerThanRowError(9.0, 10.0, 3, sequence=7),
    LongerThanRowError(9.0, 10.0, 3, sequence=7, span=(10, 20)),
    NoStepError("`steps` must be at least 1, but is 0."),
    PlanMismatchError("`plan` must be mine, but is another."),
]


def exception_classes():
    for source in SOURCES:
        for path in source.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
                if any(base.endswith(("Error", "Exception", "Warning")) for base in bases):
                    if node.name.startswith("_"):  # of which a user sees nothing
                        continue
                    module = ".".join(path.relative_to(source).with_suffix("").parts)
                    yield getattr(importlib.import_module(module), node.name)


@pytest.mark.slow
def test_every_exception_class_is_tried():
    assert {type(error) for error in ERRORS} == set(exception_classes())


def facts(error):
    return type(error), str(error), error.args, {**vars(error)}


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_exception_is_copied_whole(error):
    original, error = facts(error), copy.copy(error)
    assert facts(error) == original
    error.add_note("of rank 3")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert facts(again) == facts(error)
