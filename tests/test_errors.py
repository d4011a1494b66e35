"""Every bad value raises one sentence: `name` must be <rule>, but is <value>[ at <place>]. <What to do>."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise._random import Key
from lengthwise.checks import sentence
from lengthwise.cli.strategies import parse_cut, parse_strategy

SENTENCE = re.compile(r"^`[\w ]+` must be .+, but is .+\. [A-Z].+\.$", re.DOTALL)

FIXED = lw.FixedSize(16)
BATCHING = lw.Batching(cut=lw.FixedSize(2))
PLAN = lw.make_plan([1, 2, 3, 4], BATCHING)
SIZE = "Give the number of sequences in a batch, such as 16."
SHARE = "Give a share of the computed frames, such as 0.05."
EDGES = "Give the longest length of each bucket, rising, in the unit of the lengths: (100, 200, 400), for example."
LONGEST = "Give the longest length of each bucket."
SEED = "Give a whole number from 0 to 2**64 - 1."
TIMES = "Give one number for each sequence, such as 0.5 to take it in every second epoch, or 2 for twice an epoch."
BUDGET = "Give the most padded frames of a batch: 16 sequences have about 16 times their mean length."
COST = "Return an array, from counts [batches] and padded_lengths [batches, dims]."
FEWER_CHUNKS = "Check the unit of the lengths, or give a larger size, and a larger step if you gave one."
GRAMMAR = "Write name[:value][,key=value...]; `lengthwise compare --help` lists the names."


def planned_with(cost):
    return lambda: lw.make_plan([1, 2, 3], lw.Batching(budget=10, order=lw.Shuffled(), cost=cost))


HIDDEN = np.ma.array([3, 4], mask=[True, False])
MASKED = "Drop the masked sequences first, as by `values.compressed()`."
VALUES = {
    "size of 0": (lambda: lw.FixedSize(0), f"`batch_size` must be at least 1, but is 0. {SIZE}"),
    "budget of 0": (
        lambda: lw.Budget(0),
        f"`budget` must be finite and above 0, but is 0. {BUDGET}",
    ),
    "budget of nothing": (
        lambda: lw.Budget(float("nan")),
        f"`budget` must be finite and above 0, but is nan. {BUDGET}",
    ),
    "budget beyond all floats": (
        lambda: lw.Budget(10**400),
        f"`budget` must be finite and above 0, but is 1{'0' * 46}...{'0' * 30}. {BUDGET}",
    ),
    "budget of more digits than Python writes": (
        lambda: lw.Budget(-(10**5000)),
        f"`budget` must be finite and above 0, but is a number of thousands of digits. {BUDGET}",
    ),
    "multiples of nothing": (
        lambda: lw.FixedSize(9, multiple_of=0),
        "`multiple_of` must be at least 1, but is 0. Give 8, for example, or 1 for any number.",
    ),
    "multiples of counts that overshoot": (
        lambda: lw.DynamicSize(9, rule="paper", count_multiple_of=8),
        "`count_multiple_of` must be left out by the rule of the paper, but is 8. Choose rule='hard'.",
    ),
    "max_sequences": (
        lambda: lw.Budget(9, max_sequences=0),
        f"`max_sequences` must be at least 1, but is 0. {SIZE}",
    ),
    "oversize": (
        lambda: lw.Budget(9, oversize="ignore"),
        "`oversize` must be one of error, alone, drop, but is 'ignore'. Choose one of these words.",
    ),
    "rule": (
        lambda: lw.DynamicSize(9, rule="soft"),
        "`rule` must be one of hard, paper, but is 'soft'. Choose one of these words.",
    ),
    "noise factor": (
        lambda: lw.SemiSorted(randomization_factor=-0.1),
        "`randomization_factor` must be finite and at least 0, but is -0.1. "
        "Give the width of the noise as a share of the range of lengths, such as 0.1.",
    ),
    "bins": (
        lambda: lw.AlternatedSort(bins=0),
        "`bins` must be at least 1, but is 0. Give the number of bins, such as 58.",
    ),
    "no buckets": (
        lambda: lw.Bucketed(),
        "`Bucketed` must be given one of size, edges, buckets, but is []. Choose one of the three.",
    ),
    "two kinds of buckets": (
        lambda: lw.Bucketed(size=3, buckets=4),
        "`Bucketed` must be given one of size, edges, buckets, but is ['size', 'buckets']. Choose one of the three.",
    ),
    "edges fall": (lambda: lw.Bucketed(edges=(9, 5)), f"`edges` must be rising and not empty, but is (9, 5). {EDGES}"),
    "no edges": (lambda: lw.Bucketed(edges=()), f"`edges` must be rising and not empty, but is (). {EDGES}"),
    "size padded to edges": (
        lambda: lw.Bucketed(size=5, pad_to_edge=True),
        "`pad_to_edge` must be False with size, but is True. Give buckets or edges for fixed shapes.",
    ),
    "a way to find edges that are given": (
        lambda: lw.Bucketed(edges=(5, 10), by="quantile"),
        "`by` must be left out with size or edges, but is 'quantile'. "
        "Leave it out, or give buckets, whose edges it finds.",
    ),
    "too long for buckets that hold the longest": (
        lambda: lw.Bucketed(buckets=4, longer="drop"),
        "`longer` must be left out with size or buckets, but is 'drop'. "
        "Leave it out, or give edges: no sequence is too long for other buckets.",
    ),
    "edges too short": (
        lambda: lw.make_plan([5, 50], lw.Batching(cut=FIXED, order=lw.Bucketed(edges=(10, 20)))),
        "`edges` must be no shorter than the longest sequence, 50, but is (10, 20). "
        "Add a longer edge, or choose longer='drop'.",
    ),
    "edges of one length for pairs": (
        lambda: lw.make_plan([[5, 50]], lw.Batching(cut=FIXED, order=lw.Bucketed(edges=(10, 60)))),
        "`edges` must be rows of 2 edges, one for each length, but is (10, 60). "
        "Write ((100, 100), (200, 200)), for example.",
    ),
    "edges of three lengths for pairs": (
        lambda: lw.make_plan([[5, 50]], lw.Batching(cut=FIXED, order=lw.Bucketed(edges=((9, 60, 4),)))),
        "`edges` must be rows of 2 edges, one for each length, but is ((9, 60, 4),). "
        "Write ((100, 100), (200, 200)), for example.",
    ),
    "edges of pairs for one length": (
        lambda: lw.make_plan([5, 50], lw.Batching(cut=FIXED, order=lw.Bucketed(edges=((10, 60),)))),
        "`edges` must be whole numbers, as sequences have one length, but is ((10, 60),). "
        "Write (100, 200), for example.",
    ),
    "a pair in no bucket": (
        lambda: lw.make_plan([[5, 5], [9, 7]], lw.Batching(cut=FIXED, order=lw.Bucketed(edges=((9, 6), (6, 9))))),
        "`edges` must be such that a bucket holds (9, 7), but is ((6, 9), (9, 6)). "
        "Add a longer edge, or choose longer='drop'.",
    ),
    "buckets of two widths": (
        lambda: lw.Bucketed(edges=((9, 6), (6,))),
        "`edges` must be rows of one width, but is (6,). "
        "Give an edge for each length of a sequence, bucket by bucket: ((100, 80), (200, 160)), for example.",
    ),
    "a bucket twice": (
        lambda: lw.Bucketed(edges=((9, 6), (6, 9), (9, 6))),
        "`edges` must be different from each other, but is (9, 6). "
        "Give an edge for each length of a sequence, bucket by bucket: ((100, 80), (200, 160)), for example.",
    ),
    "a bucket too long to add up": (
        lambda: lw.Bucketed(edges=((2**62, 2**62),)),
        "`edges` must be below 2**63 in sum, but is (4611686018427387904, 4611686018427387904). "
        "Give an edge for each length of a sequence, bucket by bucket: ((100, 80), (200, 160)), for example.",
    ),
    "too much to count": (
        lambda: lw.make_plan([2**52, 5], lw.Batching(cut=FIXED)),
        "`lengths` must be few and short enough to be padded to less than 2**53 frames, "
        "but is 9007199254740992.0. Check their unit; plan fewer sequences at a time.",
    ),
    "too much to count once rounded up": (
        lambda: lw.make_plan([2**52 - 1, 5], lw.Batching(cut=lw.FixedSize(4, multiple_of=8))),
        "`lengths` must be few and short enough to be padded to less than 2**53 frames, "
        "but is 9007199254740992.0. Check their unit; plan fewer sequences at a time.",
    ),
    "a field that no choice has": (
        lambda: lw.Batching.from_json('{"cut": {"choice": "cut.FixedSize", "batch_size": 4, "colour": 1}}'),
        "`choice` must be without colour, but is 'cut.FixedSize'. Give what Batching.to_json wrote.",
    ),
    "no choice": (
        lambda: lw.Batching.from_json('{"cut": 5}'),
        '`choice` must be of the form {"choice": ...}, but is 5. Give what Batching.to_json wrote.',
    ),
    "weights of another count": (
        lambda: lw.loss_scales(lw.make_plan([3, 4], lw.Batching(cut=FIXED)), [1.0]),
        "`weights` must be of shape [2], but is (1,). "
        "Give one weight for each sequence, or for each chunk of a plan of chunks.",
    ),
    "a weight below 0": (
        lambda: lw.loss_scales(lw.make_plan([3, 4], lw.Batching(cut=FIXED)), [1.0, -2.0]),
        "`weights` must be finite and at least 0, but is -2.0 at sequence 1. "
        "Give 0 to leave a sequence out of the loss.",
    ),
    "weights beyond what a float holds": (
        lambda: lw.loss_scales(lw.make_plan([3, 4], lw.Batching(cut=FIXED)), [1e308, 1e308]),
        "`weights` must be of a finite sum, but is inf. Give smaller ones: only their ratios count.",
    ),
    "padding": (
        lambda: lw.MaxEntropy(padding=1.5),
        f"`padding` must be at least 0 and at most 0.99, but is 1.5. {SHARE}",
    ),
    "padding and scale": (
        lambda: lw.MaxEntropy(padding=0.1, scale=3.0),
        "`MaxEntropy` must be given one of padding, mixing, scale, but is ['padding', 'scale']. "
        "Choose one of the three.",
    ),
    "an order that is not fitted": (
        lambda: lw.MaxEntropy(padding=0.1)(np.array([3.0, 4.0]), Key()),
        "`MaxEntropy` must be fitted to the lengths first, but is MaxEntropy(padding=0.1, scale=None, mixing=None). "
        "Plan with it: make_plan fits it.",
    ),
    "buckets that are not fitted": (
        lambda: lw.Bucketed(buckets=2)(np.array([3.0, 4.0]), Key()),
        "`Bucketed` must be fitted to the lengths first, but is Bucketed(size=None, "
        "edges=None, buckets=2, by='...to_edge=False, longer='error'). "
        "Plan with it: make_plan fits it.",
    ),
    "masked times": (
        lambda: lw.make_plan([3, 4], BATCHING, times=HIDDEN),
        f"`times` must be an array without masked values, but is 'masked'. {MASKED}",
    ),
    "masked groups": (
        lambda: lw.make_plan([3, 4], BATCHING, groups=HIDDEN),
        f"`groups` must be an array without masked values, but is 'masked'. {MASKED}",
    ),
    "masked weights": (
        lambda: lw.loss_scales(lw.make_plan([3, 4], BATCHING), HIDDEN),
        f"`weights` must be an array without masked values, but is 'masked'. {MASKED}",
    ),
    "masked lengths": (
        lambda: lw.make_plan(HIDDEN, BATCHING),
        f"`lengths` must be an array without masked values, but is 'masked'. {MASKED}",
    ),
    "tail": (
        lambda: lw.Balanced(tail="keep"),
        "`tail` must be one of split, repeat, drop, but is 'keep'. Choose one of these words.",
    ),
    "costly steps": (
        lambda: lw.CostliestFirst(steps=0),
        "`steps` must be at least 1, but is 0. Give how many costly steps come first, or None for all.",
    ),
    "epochs that are sorted": (
        lambda: lw.ShortestFirst(epochs=0),
        "`epochs` must be at least 1, but is 0. Give in how many epochs steps are sorted, such as 1, or None for all.",
    ),
    "chunk step": (
        lambda: lw.Chunks(10, step=11),
        "`step` must be at most 10, but is 11. Give at most the chunk size, 10; a larger step would lose frames.",
    ),
    "more chunks than a plan holds": (
        lambda: lw.make_plan([2**50] * 2, lw.Batching(cut=FIXED, chunks=lw.Chunks(1))),
        f"`chunks` must be at most 1073741824 in all, but is {2**51}. {FEWER_CHUNKS}",
    ),
    "chunks beyond the frames that can be counted": (
        lambda: lw.make_plan([2**63 - 1], lw.Batching(cut=FIXED, chunks=lw.Chunks(2**62))),
        "`lengths` must be few and short enough to be padded to less than 2**53 frames, "
        "but is 9.223372036854776e+18. Check their unit; plan fewer sequences at a time.",
    ),
    "a cost of lengths in one row": (
        lambda: lw.Quadratic()([2, 2], [100, 50]),
        "`padded_lengths` must be of shape [batches, dims], but is (2,). Give one row for each batch.",
    ),
    "coefficient": (
        lambda: lw.Quadratic(linear=-1),
        "`linear` must be finite and at least 0, but is -1. "
        "Give the coefficients of count x (per_sequence + linear L + quadratic L^2).",
    ),
    "coefficients of three lengths": (
        lambda: lw.make_plan([[2, 3]], lw.Batching(budget=9, cost=lw.Quadratic(linear=(1, 2, 3)))),
        "`linear` must be one number, or 2, as sequences have so many lengths, but is (1.0, 2.0, 3.0). "
        "Give a number for each length.",
    ),
    "one of two coefficients": (
        lambda: lw.Quadratic(per_length=(1, float("nan"))),
        "`per_length` must be finite and at least 0, but is nan. "
        "Give the coefficients of count x (per_sequence + linear L + quadratic L^2).",
    ),
    "no cut": (
        lambda: lw.Batching(),
        f"`Batching` must be given one of cut, budget, but is (None, None). Choose one. {BUDGET}",
    ),
    "order and padding": (
        lambda: lw.Batching(budget=9, order=lw.Sorted(), padding=0.1),
        "`Batching` must be given one of order, padding, but is 0.1. Choose one of the two.",
    ),
    "random order and padding": (
        lambda: lw.Batching(budget=9, order=lw.Shuffled(), padding=0.1),
        "`Batching` must be given one of order, padding, but is 0.1. Choose one of the two.",
    ),
    "lengths": (
        lambda: lw.make_plan([3, 0], BATCHING),
        "`lengths` must be at least 1, but is 0 at sequence 1. Drop the sequence or repair its length.",
    ),
    "stage": (
        lambda: lw.Key(stage="cut"),
        "`stage` must be one of examples, portions, order, ties, deal, arrange, tail, "
        "subset, rest, steps, trial, edges, windows, times, but is 'cut'. Choose one of these words.",
    ),
    "lane": (lambda: lw.Key(lane=-1), "`lane` must be at least 0, but is -1. Give a whole number from 0 to 2**56 - 1."),
    "times of another count": (
        lambda: lw.make_plan([3, 4], BATCHING, times=[1.0]),
        f"`times` must be of shape [2], or one number for all, but is (1,). {TIMES}",
    ),
    "times below 0": (
        lambda: lw.make_plan([3, 4], BATCHING, times=[1.0, -0.5]),
        "`times` must be finite and at least 0, but is -0.5 at sequence 1. Give 0 to leave a sequence out.",
    ),
    "times of nothing": (
        lambda: lw.torch.BatchSampler([3, 4], BATCHING, times=float("nan")),
        "`times` must be finite and at least 0, but is nan at sequence 0. Give 0 to leave a sequence out.",
    ),
    "times without an end": (
        lambda: lw.make_plan([3, 4], BATCHING, times=[float("inf"), 1]),
        "`times` must be finite and at least 0, but is inf at sequence 0. Give 0 to leave a sequence out.",
    ),
    "times that take nothing": (
        lambda: lw.make_plan([3, 4], BATCHING, times=[0, 0]),
        "`times` must be above 0 for some sequence, but is 0.0. Leave `times` out to take each sequence once an epoch.",
    ),
    "times that no memory holds": (
        lambda: lw.make_plan([3, 4], BATCHING, times=[1, 1e300]),
        "`times` must be at most 268435456 in sum, rounded up, but is 1e+300. "
        "Give how often one epoch takes each sequence, not a share or a number of frames.",
    ),
    "seed below 0": (lambda: lw.make_plan([3], BATCHING, seed=-1), f"`seed` must be at least 0, but is -1. {SEED}"),
    "epoch of 2**64": (
        lambda: lw.make_plan([3], BATCHING, epoch=2**64),
        f"`epoch` must be at most 18446744073709551615, but is 18446744073709551616. {SEED}",
    ),
    "no ranks": (
        lambda: lw.make_plan([3], BATCHING, world_size=0),
        "`world_size` must be at least 1, but is 0. Give the number of ranks.",
    ),
    "no micro-batches": (
        lambda: lw.make_plan([3], BATCHING, micro_batches=0),
        "`micro_batches` must be at least 1, but is 0. Give the batches a rank takes in a step.",
    ),
    "nothing left": (
        lambda: lw.make_plan([3], lw.Batching(cut=FIXED, deal=lw.Balanced(tail="drop")), world_size=2),
        "`steps` must be at least 1, but is 0. A step takes 2 batches, but there is 1. "
        "Choose tail='split', smaller batches, or a policy that drops less.",
    ),
    "chunks of pairs": (
        lambda: lw.make_plan([[3, 4]], lw.Batching(cut=FIXED, chunks=lw.Chunks(4))),
        "`lengths` must be of shape [n], but is (1, 2). "
        "Give one length each, such as lengths[:, 0] (on the command line: FILE:0), for chunks.",
    ),
    "cost of no shape": (
        planned_with(lambda counts, padded: 3.0 * padded.max() * counts.max()),
        f"`cost` must be of shape (3,), one for each batch, but is (). {COST}",
    ),
    "cost of nothing": (
        planned_with(lambda counts, padded: np.full(len(counts), np.nan) * padded[:, 0]),
        "`cost` must be finite, but is nan. Give smaller coefficients or a smaller batch size, or mend the function.",
    ),
    "cost beyond all numbers": (
        planned_with(lw.Quadratic(linear=1e308, quadratic=1e308)),
        "`cost` must be finite, but is inf. Give smaller coefficients or a smaller batch size, or mend the function.",
    ),
    "more bins of mixing than memory holds": (
        lambda: lw.measure(PLAN, [1, 2, 3, 4], bins=2**31).mixing,
        "`bins` must be at most 4096, but is 2147483648. Give the number of equal-mass bins, such as 64.",
    ),
    "more ranks than there are": (
        lambda: lw.make_plan([3], BATCHING, world_size=2**53, micro_batches=2),
        f"`world_size x micro_batches` must be at most 1048576 batches in a step, but is {2**54}. "
        "Check world_size and micro_batches.",
    ),
    "runs of another kind": (
        lambda: lw.make_plan([3], BATCHING, after=3),
        "`after` must be a list of three whole numbers each, but is 3. "
        "Give (world_size, micro_batches, batches that each rank took) of each run.",
    ),
    "cost below zero": (
        planned_with(lambda counts, padded: 0.01 * counts * padded[:, 0] - 40.0),
        "`cost` must be at least 0, but is -39.99. Add a constant, or clip it at 0.",
    ),
    "cost of another shape, with a padding asked": (
        lambda: lw.make_plan(
            range(1, 300), lw.Batching(budget=300, padding=0.1, cost=lambda counts, padded: counts[:, None] * padded)
        ),
        f"`cost` must be of shape (1,), one for each batch, but is (1, 1). {COST}",
    ),
    "rank": (
        lambda: PLAN.batches(rank=1),
        "`rank` must be at most 0, but is 1. Plan with the world_size of the run.",
    ),
    "start": (lambda: PLAN.batches(start=3), "`start` must be at most 2, but is 3. Start the next epoch instead."),
    "costliest": (lambda: PLAN.costliest(-1), "`count` must be at least 0, but is -1. Give how many batches to list."),
    "batch": (
        lambda: PLAN.batch(-1),
        "`number` must be at least 0, but is -1. Give the number of a batch, as in the grid.",
    ),
    "buckets": (
        lambda: lw.optimal_edges([1, 2], 0),
        "`buckets` must be at least 1, but is 0. Give the number of buckets, such as 6.",
    ),
    "too long to add up": (
        lambda: lw.optimal_edges([1, 2**61], 2),
        "`lengths` must be below 2**62 frames in all, padded, but is 2305843009213693952. Give them in a coarser unit.",
    ),
    "limit of nothing": (
        lambda: lw.mixing_limit([], 0.1),
        "`lengths` must be of shape [n], n at least 1, but is (0,). "
        "Give at least one sequence, and one length each: lengths[:, 0], for example.",
    ),
    "limit at all padding": (
        lambda: lw.mixing_limit([1, 2], 1.0),
        "`padding` must be at least 0 and at most 0.999, but is 1.0. Give a share from 0 to 0.999, such as 0.05.",
    ),
    "bins of mixing": (
        lambda: lw.measure(PLAN, [1, 2, 3, 4], bins=0).mixing,
        "`bins` must be at least 1, but is 0. Give the number of equal-mass bins, such as 64.",
    ),
    "mixing of no plan": (
        lambda: lw.measure([], [1, 2, 3, 4]).mixing,
        "`plans` must be one plan or more, or batches, but is []. Give a plan, or batches: list(sampler), for example.",
    ),
    "other lengths": (
        lambda: lw.measure(PLAN, [1, 2, 3, 5]),
        "`lengths` must be those of the plan, of fingerprint 8837b98d3b15e73c, but is "
        f"{lw.fingerprint([1, 2, 3, 5])!r}. Plan again for these lengths.",
    ),
    "JSON": (
        lambda: lw.Batching.from_json("nonsense"),
        "`text` must be JSON, but is 'nonsense'. Give what Batching.to_json wrote.",
    ),
    "JSON of something else": (
        lambda: lw.Batching.from_json('{"trim": null}'),
        "`text` must be a batching as JSON, but is '{\"trim\": null}'. Give what Batching.to_json wrote.",
    ),
    "a cost of one's own from JSON": (
        lambda: lw.Batching.from_json(lw.Batching(budget=9, cost=np.add).to_json()),
        "`choice` must be one of this package, but is 'numpy:add'. Make the Batching in code, with the choice itself.",
    ),
}

TYPES = {
    "times in words": (
        lambda: lw.make_plan([3, 4], BATCHING, times=["1", "2"]),
        f"`times` must be a list of numbers, but is ['1', '2']. {TIMES}",
    ),
    "times that are flags": (
        lambda: lw.make_plan([3, 4], BATCHING, times=np.array([True, False])),
        f"`times` must be a list of numbers, but is array([ True, False]). {TIMES}",
    ),
    "times of one name": (
        lambda: lw.make_plan([3, 4], BATCHING, times={"a": 1.0}),
        f"`times` must be a list of numbers, but is {{'a': 1.0}}. {TIMES}",
    ),
    "an arrangement for an order": (
        lambda: lw.Batching(cut=FIXED, order=lw.ShuffledSteps()),
        "`order` must be a choice such as Sorted(), but is ShuffledSteps(). Give order=Sorted(), for example.",
    ),
    "an order for a cost": (
        lambda: lw.Batching(cut=FIXED, cost=lw.Sorted()),
        "`cost` must be a choice such as Padded(), but is Sorted(descending=False). Give cost=Padded(), for example.",
    ),
    "descending of another kind": (
        lambda: lw.Sorted(descending="no"),
        "`descending` must be True or False, but is 'no'. Choose one of the two.",
    ),
    "pad_to_edge of another kind": (
        lambda: parse_strategy("optimal:4,pad-to-edge=banana", cut=lw.FixedSize(16)),
        "`pad_to_edge` must be True or False, but is 'banana'. Choose one of the two.",
    ),
    "drop_incomplete of another kind": (
        lambda: parse_cut("fixed:4,drop-incomplete=1"),
        "`drop_incomplete` must be True or False, but is 1. Choose one of the two.",
    ),
    "size": (lambda: lw.FixedSize("16"), f"`batch_size` must be a whole number, but is '16'. {SIZE}"),
    "true size": (lambda: lw.FixedSize(True), f"`batch_size` must be a whole number, but is True. {SIZE}"),
    "no plan": (
        lambda: lw.measure([7, PLAN], [1, 2, 3, 4]),
        "`plans` must be a Plan, but is 7. Make one, such as make_plan(lengths, batching).",
    ),
    "an edge of no shape": (
        lambda: lw.Bucketed(edges=np.array(3)),
        f"`edges` must be whole numbers, but is array(3). {EDGES}",
    ),
    "budget": (
        lambda: lw.Budget("20000"),
        f"`budget` must be a number, but is '20000'. {BUDGET}",
    ),
    "edges": (lambda: lw.Bucketed(edges=5), f"`edges` must be whole numbers, but is 5. {EDGES}"),
    "half an edge": (lambda: lw.Bucketed(edges=(1.5,)), f"`edges` must be a whole number, but is 1.5. {EDGES}"),
    "padding": (lambda: lw.MaxEntropy(padding="5%"), f"`padding` must be a number, but is '5%'. {SHARE}"),
    "seed": (lambda: lw.make_plan([3], BATCHING, seed=1.0), f"`seed` must be a whole number, but is 1.0. {SEED}"),
    "cut": (
        lambda: lw.Batching(cut=16),
        "`cut` must be a choice such as FixedSize(16), but is 16. Give FixedSize(16) for sequences, or Budget(16) for "
        "padded frames. Give the most padded frames of a batch: 16 sequences have about 16 times their mean length.",
    ),
    "a class": (
        lambda: lw.Batching(cut=FIXED, order=lw.Sorted),
        "`order` must be a choice such as Sorted(), but is <class 'lengthwise.choices.order.Sorted'>. "
        "Give order=Sorted(), for example.",
    ),
    "chunks": (
        lambda: lw.Batching(cut=FIXED, chunks=50),
        "`chunks` must be a choice such as Chunks(50), but is 50. Give chunks=Chunks(50), for example.",
    ),
    "batching": (
        lambda: lw.make_plan([3], "sorted"),
        "`batching` must be a Batching, but is 'sorted'. Make one, such as Batching(budget=20_000).",
    ),
}


@pytest.mark.parametrize("value", [np.zeros((3, 2)), [np.ones((2, 2)), np.ones((2, 3))]])
def test_a_value_of_several_lines_stands_on_one(value):
    assert len(sentence("x", "y", value, "z.").splitlines()) == 1


@pytest.mark.parametrize(("call", "message"), VALUES.values(), ids=VALUES)
def test_a_bad_value_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
    assert SENTENCE.match(message)


@pytest.mark.parametrize(("call", "message"), TYPES.values(), ids=TYPES)
def test_a_bad_type_is_refused_in_one_sentence(call, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        call()
    assert SENTENCE.match(message)


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


@pytest.mark.parametrize("name", ["ranks_averaged", "micro_batches_averaged"])
def test_no_flag_of_a_loss_is_a_number(name):
    with pytest.raises(TypeError, match=f"^`{name}` must be True or False, but is 1\\."):
        lw.loss_scales(PLAN, **{name: 1})


def test_a_plan_is_not_saved_in_a_folder_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "`path` must be in a folder that is there, but is 'missing/plan.npz'. Make the folder missing first."
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        PLAN.save("missing/plan.npz")
    PLAN.save("plan.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.npz"]


def test_the_one_knob_of_an_order_may_come_by_position():
    assert lw.SemiSorted(0.2) == lw.SemiSorted(randomization_factor=0.2)
    assert lw.AlternatedSort(64) == lw.AlternatedSort(bins=64)
    assert lw.Windowed(256) == lw.Windowed(window=256)


def test_what_comes_by_position_is_the_padding_of_max_entropy_batching():
    assert lw.MaxEntropy(0.1) == lw.MaxEntropy(padding=0.1)
    with pytest.raises(
        ValueError, match=re.escape(f"`padding` must be at least 0 and at most 0.99, but is 20. {SHARE}")
    ):
        lw.MaxEntropy(20)
