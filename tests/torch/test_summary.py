"""The summary of a sampler: each of its numbers is counted again from the batches, for every choice."""

import re

import numpy as np
import pytest

import lengthwise as lw
from menu import ARRANGEMENTS, CHUNKS, COSTS, DEALS, ORDERS, cuts, suit, suit_order

LENGTHS = lw.example_lengths("long-tailed", count=120)


def said(sampler):
    """The sentences, by their first word."""
    sentences = sampler.summary().splitlines()
    assert all(sentence.endswith(".") for sentence in sentences)
    found = {sentence.split()[0]: sentence for sentence in sentences}
    assert len(found) == len(sentences)
    return found


def share(plan, lengths):
    """The padding of a plan, batch by batch."""
    data = computed = 0
    for batch in range(len(plan.costs)):
        items = plan.batch(batch)
        own = items[:, 2] - items[:, 1] if items.ndim == 2 else lengths[items]
        data += own.sum()
        computed += plan.row_counts[batch] * plan.padded_lengths[batch].sum()
    return 1 - data / computed


def price_of(plan, lengths):
    """The computed frames for each of data, waiting included."""
    ranks = (plan.costs if plan.balances is None else plan.balances)[plan.grid].sum(axis=1)
    return ranks.max(axis=1).sum() * plan.world_size / ranks.sum() / (1 - share(plan, lengths))


def percent(text):
    return float(re.search(r"([\d.]+) %", text)[1]) / 100


def check(sampler, lengths):
    told, plan = said(sampler), sampler.plan
    assert told["Epoch"].startswith(f"Epoch {plan.epoch} has {plan.steps:,} step")
    sizes = plan.batch_sizes
    assert re.match(rf"A batch holds ({sizes.min():,} to )?{sizes.max():,} ", told["A"])
    assert percent(told["Padding"]) == pytest.approx(share(plan, lengths), rel=0.06, abs=1e-5)
    assert f": {1 / (1 - share(plan, lengths)):.2f} frames are computed" in told["Padding"]
    own, size = sampler.batching, max(1, round(plan.batch_sizes[np.unique(plan.grid)].mean()))
    random = lw.Batching(cut=lw.FixedSize(size), order=lw.Shuffled(), chunks=own.chunks)
    kept = lengths if own.chunks else lengths[np.unique(plan.sequences)]
    world = {"world_size": plan.world_size, "micro_batches": plan.micro_batches}
    padded = share(lw.make_plan(kept, random, seed=plan.seed, **world), kept)
    assert percent(told["Random"]) == pytest.approx(padded, rel=0.06, abs=1e-5)
    assert told["Random"].startswith(f"Random batches of {size:,} take ")
    assert f" and compute {1 / (1 - padded):.2f}" in told["Random"]
    assert ("Ranks" in told) == (plan.world_size > 1)
    (price,) = (sentence for sentence in told.values() if "group_by_length " in sentence)
    if plan.world_size > 1:
        assert float(re.search(r"price is ([\d.]+)", price)[1]) == pytest.approx(price_of(plan, lengths), abs=0.006)
    assert ("Left" in told) == bool(len(plan.dropped()))
    assert ("Taken" in told) == bool(len(plan.repeated()))
    assert ("Over" in told) == bool(len(plan.over_max_cost()))


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("name", ["budget", "fixed", "rows"])
def test_a_summary_stands_beside_random_batches_of_a_size_that_is_given(name, world_size):
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=CUTS[name]), rank=0, world_size=world_size)
    lines = sampler.summary(batch_size=5).splitlines()
    random = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(5), order=lw.Shuffled()), world_size=world_size)
    padded = share(random, LENGTHS)
    text = (
        f"Random batches of 5 take {random.steps} steps, pad {100 * padded:.1f} % and compute {1 / (1 - padded):.2f}."
    )
    assert text in lines
    largest = [int((plan.row_counts * plan.padded_lengths[:, 0]).max()) for plan in (random, sampler.plan)]
    told = "Their largest batch has {:,} padded frames, the plan's {:,}.".format(*largest)
    assert (told in lines) == (largest[0] != largest[1])
    with pytest.raises(ValueError, match=r"^`batch_size` must be at least 1, but is 0"):
        lw.torch.BatchSampler(LENGTHS, lw.Batching(budget=6_000)).summary(batch_size=0)


@pytest.mark.parametrize(
    ("choices", "micro_batches", "subject"),
    [
        ({}, 1, "Batches are as random as 5 % padding allows; the"),
        (
            {"padding": 0.05, "balance": lw.Quadratic(quadratic=0.001)},
            1,
            "Batches are as random as 5 % padding allows and of similar cost in each step; the",
        ),
        ({}, 12, "Steps are random samples; the"),
        ({"padding": 0.2, "deal": lw.Balanced()}, 1, "The"),
    ],
    ids=["batches", "balance", "steps", "written out"],
)
def test_the_decision_and_its_price_stand_beside_group_by_length(choices, micro_batches, subject):
    lengths = lw.example_lengths("long-tailed", count=1_500)
    world = {"world_size": 2, "micro_batches": micro_batches}
    sampler = lw.torch.BatchSampler(lengths, lw.Batching(budget=6_500, **choices), rank=0, **world)
    plan = sampler.plan
    size = round(plan.batch_sizes.mean())
    order = lw.Windowed(size * micro_batches * (1_500 // (4 * size * micro_batches)))
    turns = lw.Batching(cut=lw.FixedSize(size), order=order, deal=lw.InTurn(), balance=choices.get("balance"))
    grouped = price_of(lw.make_plan(lengths, turns, **world), lengths)
    told = (
        f"{subject} price is {price_of(plan, lengths):.2f}, waiting counted, and that of group_by_length {grouped:.2f}."
    )
    assert told in sampler.summary().splitlines()


def test_ranks_that_attention_makes_wait_read_the_remedy():
    lengths = lw.example_lengths("long-tailed", count=1_500)
    attention = lw.Quadratic(quadratic=0.001)

    def sampler_of(ranks=8, **choices):
        return lw.torch.BatchSampler(lengths, lw.Batching(**{"budget": 6_500} | choices), rank=0, world_size=ranks)

    plan = sampler_of().plan
    ranks = attention(plan.batch_sizes, plan.padded_lengths)[plan.grid].sum(axis=1)
    waiting = 1 - ranks.sum() / ranks.max(axis=1).sum() / 8
    assert sampler_of().summary().splitlines()[-1] == (
        f"With attention, if L frames cost L (1 + 0.001 L), ranks wait {100 * waiting:.1f} % of the time; "
        "they wait less with balance=lw.Quadratic(quadratic=0.001)."
    )
    for other in (sampler_of(balance=attention), sampler_of(budget=20_000, cost=attention), sampler_of(ranks=1)):
        assert "attention" not in other.summary()
    # Packed rows all compute as much, but a sequence in a row attends to itself alone.
    rows = lw.torch.BatchSampler(lengths, lw.Batching(cut=lw.Rows(6_500)), rank=0, world_size=8)
    costs = attention(np.ones(len(lengths)), lengths[rows.plan.sequences, None])
    ranks = np.add.reduceat(costs, rows.plan.offsets[:-1])[rows.plan.grid].sum(axis=1)
    waiting = 1 - ranks.sum() / ranks.max(axis=1).sum() / 8
    assert f"ranks wait {100 * waiting:.1f} % of the time" in rows.summary()


CUTS = cuts(6_000, 700)
CASES = [
    *((order, "budget", "Balanced_split", "padded", "whole") for order in ("edges_drop", "optimal_fixed", "sorted")),
    *(("entropy_padding", cut, "Balanced_split", "padded", "whole") for cut in CUTS),
    *(("shuffled", "budget", deal, "padded", "whole") for deal in DEALS),
    *(("sorted", "fixed", "Balanced_split", cost, "whole") for cost in COSTS),
    *(("sorted", "budget", "Balanced_split", "padded", chunks) for chunks in CHUNKS),
]


@pytest.mark.parametrize(("order", "cut", "deal", "cost", "chunks"), sorted(set(CASES)))
def test_a_summary_counts_what_the_plan_does(order, cut, deal, cost, chunks):
    chosen = CUTS[cut]
    batching = lw.Batching(
        cut=chosen,
        order=suit_order(ORDERS[order], chosen),
        deal=suit(DEALS[deal], chosen, COSTS[cost], ORDERS[order]),
        cost=COSTS[cost],
        chunks=CHUNKS[chunks],
        arrange=ARRANGEMENTS["shuffled"],
    )
    for places in ({}, {"rank": 0, "world_size": 3, "micro_batches": 2}):
        check(lw.torch.BatchSampler(LENGTHS, batching, **places), LENGTHS)


@pytest.mark.parametrize(("delivered", "left"), [(0, "4 steps of"), (3, "3 steps left, of"), (12, "0 steps left, of")])
def test_a_summary_says_what_is_left(delivered, left):
    batching = lw.Batching(cut=lw.FixedSize(10), order=lw.Sorted())
    sampler = lw.torch.BatchSampler(LENGTHS, batching)
    state = sampler.state_after(delivered)
    sampler.resume(state)
    told = said(sampler)
    assert told["Epoch"] == "Epoch 0 has 12 steps of 1 batch on 1 rank."
    assert told.get("Each") == (f"Each rank has had {delivered} of its 12 batches." if delivered else None)
    other = lw.torch.BatchSampler(LENGTHS, batching, rank=1, world_size=3)
    other.resume(state)
    told = said(other)
    assert told["Epoch"] == f"Epoch 0 has {left} 1 batch on each of 3 ranks."
    if delivered == 3:  # of the 12 batches of 10, nine
        assert told["A"] == "A batch holds 10 sequences, a step 30 on average."


def test_of_windows_the_first_is_measured():
    lengths = np.tile(LENGTHS, 4)
    batching = lw.Batching(cut=lw.FixedSize(10), order=lw.Sorted())
    sampler = lw.torch.WindowSampler(lengths, batching, window=120, block=20)
    told, window = said(sampler), sampler.plan.window(0)
    assert told["Epoch"] == "Epoch 0 has 48 steps of 1 batch on 1 rank."
    assert " % in the first window: " in told["Padding"]
    assert percent(told["Padding"]) == pytest.approx(share(window.plan, lengths[window.numbers]), rel=0.06)


def test_of_windows_the_first_that_has_a_batch_is_measured():
    """One batch fills three places of a step. An earlier version could save a state within the step."""
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted(), deal=lw.Mixed(tail="repeat"))
    first = lw.torch.WindowSampler([5, 9, 2, 4], batching, window=2, block=2, micro_batches=3)
    other = lw.torch.WindowSampler([5, 9, 2, 4], batching, window=2, block=2, rank=0, world_size=2)
    other.resume(first.state_after(3) | {"runs": [[1, 3, 1]]})
    assert other.plan.window(0).plan.steps == 0
    told = said(other)
    assert told["Epoch"] == "Epoch 0 has 1 step left, of 1 batch on each of 2 ranks."
    assert told["A"] == "A batch holds 2 sequences, a step 2 on average."


@pytest.mark.parametrize("count", [1, 2])
def test_few_sequences_are_summed_up_too(count):
    sampler = lw.torch.BatchSampler(LENGTHS[:count], lw.Batching(budget=6_000))
    assert said(sampler)["Epoch"] == "Epoch 0 has 1 step of 1 batch on 1 rank."
    check(sampler, LENGTHS[:count])
