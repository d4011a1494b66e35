"""The page for those who come from another sampler: each line makes a valid plan, and means what theirs means.

Where it is short, the rule of the other system is written here, from its description.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[1] / "docs" / "switch.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
LENGTHS = lw.example_lengths("long-tailed")
WITHIN_ROWS = LENGTHS.clip(max=4_096)  # no sequence is longer than any row or budget of the table
MAPPING = PAGE.partition("## Your setting, and the nearest here\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*$", MAPPING, re.MULTILINE)[2:]]


@pytest.fixture(scope="module")
def names():
    """The names that the code of the page defines."""
    values = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), "switch.md", "exec"), values)
    return values


def batching_of(name, names, setting=""):
    """The batching that the page's table gives for a system."""
    (here,) = (cells[2] for cells in ROWS if cells[0].startswith(name) and setting in cells[1])
    return eval(f"lw.Batching({', '.join(re.findall(r'`(.*?)`', here))})", names)


def batches_of(plan):
    return [plan.batch(number) for number in range(len(plan.batch_sizes))]


def cut_by_tokens(order, sizes, budget):
    """Batches in order: each of as many as fit."""
    batches, start = [], 0
    while start < len(order):
        counts = np.arange(1, len(order) - start + 1)
        fits = counts * np.maximum.accumulate(sizes[order[start:]]) <= budget
        held = counts[fits].max()
        batches.append(order[start : start + held])
        start += held
    return batches


def padding_of(batches, lengths):
    lengths = lengths.reshape(len(lengths), -1)
    return 1 - lengths.sum() / sum(len(batch) * lengths[batch].max(axis=0).sum() for batch in batches)


@pytest.mark.parametrize("row", range(len(ROWS)), ids=lambda row: f"{ROWS[row][0]} {ROWS[row][1][:24]}")
def test_each_line_of_the_table_makes_a_valid_plan(row, names):
    batching = batching_of(ROWS[row][0], names, ROWS[row][1])
    plan = lw.make_plan(WITHIN_ROWS, batching, world_size=4)
    assert sorted(plan.sequences.tolist()) == list(range(len(WITHIN_ROWS)))
    assert plan.costs.max() <= batching.cut.max_cost(batching.cost, WITHIN_ROWS.max(keepdims=True))


OUTSIDE = PAGE.replace(MAPPING, "")


@pytest.mark.parametrize("code", re.findall(r"`(lw\.(?:Batching|Budget|Rows|torch\.RowCollate)\([^.`]+\))`", OUTSIDE))
def test_each_call_in_a_sentence_is_valid(code, names):
    choice = eval(code, names)
    if isinstance(choice, lw.Batching):
        assert len(lw.make_plan(WITHIN_ROWS, choice).dropped()) == 0


@pytest.mark.parametrize("code", re.findall(r"`((?:cost|chunks|arrange)=lw\..*?\))`", OUTSIDE))
def test_each_argument_in_a_sentence_is_one_of_a_batching(code, names):
    two = code.startswith("cost=") and "(80, 1)" in code
    batching = eval(f"lw.Batching(cut=lw.Budget(400_000), order=lw.Sorted(), {code})", names)
    plan = lw.make_plan(pairs() if two else LENGTHS, batching)
    assert plan.costs.max() <= 400_000


def test_fairseq_counts_the_longer_of_two_lengths(names):
    batching = batching_of("fairseq", names)
    plan = lw.make_plan(pairs(), batching)
    counted = [len(batch) * pairs()[batch].max() for batch in batches_of(plan)]
    assert plan.costs.tolist() == counted
    assert 0.9 * 4_096 < max(counted) <= 4_096


def test_with_one_length_fairseqs_rule_makes_the_same_batches(names):
    """Of lengths that are all different, so that no batch is left to chance."""
    lengths = np.random.default_rng(0).permutation(np.arange(10, 2_010))
    plan = lw.make_plan(lengths, batching_of("fairseq", names))
    by_rule = cut_by_tokens(np.argsort(lengths), lengths, 4_096)
    theirs, ours = (sorted(sorted(batch.tolist()) for batch in batches) for batches in (by_rule, batches_of(plan)))
    assert ours == theirs


def test_a_table_of_buckets_fills_the_batches_of_tf_data(names):
    """Each sequence goes to the first bucket whose boundary is above it; a bucket gives a batch when it is full."""
    plan = lw.make_plan(names["lengths"], names["batching"])
    bucket_of = np.searchsorted(names["bucket_boundaries"], names["lengths"], side="right")
    expected = Counter()
    for bucket, size in enumerate(names["bucket_batch_sizes"]):
        full, rest = divmod(int((bucket_of == bucket).sum()), size)
        expected[bucket, size] += full
        expected[bucket, rest] += rest > 0
    batches = Counter()
    for batch in batches_of(plan):
        (bucket,) = set(bucket_of[batch].tolist())
        batches[bucket, len(batch)] += 1
    assert batches == +expected


def test_the_batches_of_the_trainer_pad_and_are_as_random_as_its_row(names):
    samplers = pytest.importorskip("transformers.trainer_pt_utils", reason="needs transformers")
    torch = pytest.importorskip("torch")
    sampler = samplers.LengthGroupedSampler(16, lengths=LENGTHS.tolist(), generator=torch.Generator().manual_seed(0))
    order = list(sampler)
    theirs = lw.measure([order[first : first + 16] for first in range(0, len(order), 16)], LENGTHS)
    ours = lw.measure(lw.make_plan(LENGTHS, batching_of("Trainer", names, "group_by_length")), LENGTHS)
    assert ours.padding_share == pytest.approx(theirs.padding_share, abs=0.015)
    assert ours.randomness == pytest.approx(theirs.randomness, abs=0.01)
    assert ours.step_length_correlation > 0.5
    assert theirs.step_length_correlation > 0.5
    asked = lw.measure(lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(16), padding=0.09)), LENGTHS)
    assert f"pad {100 * theirs.padding_share:.1f} % and have a randomness of {theirs.randomness:.2f}. Those" in TEXT
    assert f"padding=0.09)` have {asked.randomness:.2f}." in TEXT


def test_the_steps_of_batch_rebalance_are_those_of_its_row(names):
    samplers = pytest.importorskip("transformers.trainer_pt_utils", reason="needs transformers")
    ranks = [list(samplers.BatchRebalanceSampler(LENGTHS.tolist(), 16 * 8, 4, 2, rank=rank)) for rank in range(4)]
    theirs = [batch for rank in ranks for batch in rank]
    plan = lw.make_plan(LENGTHS, batching_of("Trainer", names, "batch_rebalance"), world_size=4, micro_batches=2)
    held = plan.batch_sizes[plan.grid].sum(axis=(1, 2))
    assert plan.steps == -(-len(LENGTHS) // (16 * 8))
    assert set(held.tolist()) == {127, 128}
    known = np.concatenate(theirs)  # its default leaves out a last step that is not full
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in theirs)
    assert padding_of(batches_of(plan), LENGTHS) == pytest.approx(1 - LENGTHS[known].sum() / padded, abs=0.02)


def test_the_shares_of_sources_are_those_of_the_page(names):
    sizes, total = names["sizes"], len(names["lengths"])
    assert sizes.sum() == total
    for weights in (np.array([0.6, 0.4]), names["weights"]):  # the last of the page are those of the temperature
        times = np.repeat(weights * sizes.sum() / sizes, sizes)
        for epoch in (0, 500):
            plan = lw.make_plan(names["lengths"], lw.Batching(budget=20_000), epoch=epoch, times=times)
            taken = np.add.reduceat(plan.times, [0, sizes[0]])
            assert (np.abs(taken - weights * total) < 1).all()
    assert names["weights"][0] / names["weights"][1] == pytest.approx((sizes[0] / sizes[1]) ** 0.2)


def pairs():
    """The lengths of the page on two lengths."""
    chance = np.random.default_rng(0)
    source = chance.lognormal(2.5, 0.4, 8_000)
    return np.stack([source, source * chance.lognormal(0.0, 0.25, 8_000)], axis=1).astype(int) + 1
