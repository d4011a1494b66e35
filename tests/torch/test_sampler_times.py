"""A sampler with times: its batches are of the data set, and what an epoch cannot take is refused at once."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=180)
TIMES = np.repeat([0.4, 2.5, 0.0, 1.0], [100, 40, 20, 20])
FIXED = lw.Batching(cut=lw.FixedSize(4))
PADDING = lw.Batching(budget=12_000, padding=0.1)
CHUNKS = lw.Batching(cut=lw.Budget(3_000), chunks=lw.Chunks(300))


def made(batching=PADDING, **changed):
    return lw.torch.BatchSampler(LENGTHS, batching, **({"seed": 9, "times": TIMES} | changed))


def test_a_loader_is_given_the_samples_of_the_data_set_as_often_as_asked():
    dataset = [torch.full((int(length),), number) for number, length in enumerate(LENGTHS)]
    times = TIMES.copy()
    sampler = made(times=times)
    times[:] = 1.0  # the sampler has its own
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=lambda batch: batch, num_workers=1)
    seen = Counter()
    for epoch in range(5):
        sampler.set_epoch(epoch)
        taken = Counter(int(sample[0]) for batch in loader for sample in batch)
        plan = lw.make_plan(LENGTHS, PADDING, seed=9, epoch=epoch, times=TIMES)
        assert sampler.plan.fingerprint() == plan.fingerprint()
        assert taken == Counter(np.repeat(np.arange(len(LENGTHS)), plan.times).tolist())
        sources = np.repeat(np.arange(4), [100, 40, 20, 20])
        assert np.bincount(sources[list(taken)], list(taken.values()), minlength=4).tolist() == [40, 100, 0, 20]
        seen += taken
    assert all(seen[number] == round(5 * TIMES[number]) for number in np.flatnonzero((5 * TIMES) % 1 == 0))


@pytest.mark.parametrize("batching", [PADDING, CHUNKS], ids=["padding", "chunks"])
def test_the_summary_says_what_is_taken(batching):
    sampler = made(batching)
    told = sampler.summary().splitlines()
    assert told[1] == "It takes 100 of 180 sequences, and 160 copies of them in all."
    copies = np.repeat(LENGTHS, sampler.plan.times)
    size = round(sampler.plan.batch_sizes.mean())
    random = lw.Batching(cut=lw.FixedSize(size), order=lw.Shuffled(), chunks=batching.chunks)
    for line, plan, lengths in ((3, sampler.plan, LENGTHS), (4, lw.make_plan(copies, random, seed=9), copies)):
        assert f" {100 * lw.measure(plan, lengths).padding_share:.1f} %" in told[line]


OVER = "`budget` must be at least the cost of the costliest sequence, 900, but is 100.0 at sequence 2. "
REFUSED = {
    "budget": (lw.Batching(budget=100), OVER),
    "rows": (lw.Batching(cut=lw.Rows(100)), "`capacity` must be "),
    "steps": (lw.Batching(budget=100, order=lw.Shuffled(), deal=lw.RandomSteps(tail="drop")), OVER),
    "edges": (
        lw.Batching(cut=lw.FixedSize(2), order=lw.Bucketed(edges=(50,))),
        "`edges` must be such that a bucket holds the longest sequence, 900, but is (50,). ",
    ),
}


@pytest.mark.parametrize(("batching", "message"), REFUSED.values(), ids=REFUSED)
def test_a_sequence_that_few_epochs_take_is_refused_at_once(batching, message):
    lengths, times = [10, 20, 900, 30], [1, 1, 0.01, 1]
    for make in lw.make_plan, lw.torch.BatchSampler:  # though most epochs take only what fits
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            make(lengths, batching, times=times)


def test_what_no_epoch_takes_may_be_over_the_budget_and_copies_may_fill_a_batch():
    sampler = lw.torch.BatchSampler([10, 20, 900, 30], lw.Batching(budget=100), times=[1, 0.5, 0, 1])
    assert {number for batch in sampler for number in batch} <= {0, 1, 3}
    drop = lw.Batching(cut=lw.FixedSize(4, drop_incomplete=True))
    assert len(lw.torch.BatchSampler([10, 20], drop, times=[0.5, 8.5])) == 2


def test_times_of_which_an_epoch_takes_nothing_are_refused():
    """Trainers divide by the batches of an epoch. `make_plan` plans such an epoch, of no batch."""
    with pytest.raises(ValueError, match=r"^`times` must be at least 1 in sum, for each .*, but is 0.8\. Give lar"):
        lw.torch.BatchSampler([10, 20, 30, 40], lw.Batching(cut=lw.FixedSize(2)), times=0.2)
    sampler = lw.torch.BatchSampler([10, 20], lw.Batching(cut=lw.FixedSize(2)), seed=1, times=[0.6, 0.7])
    with pytest.raises(ValueError, match=r"^`times` must be enough in sum for each epoch .* is 1.3 at epoch 3\. "):
        sampler.set_epoch(3)


@pytest.mark.parametrize(("count", "times"), [(3, 1 / 3), (49, 1 / 49)])
def test_times_that_are_rounded_to_a_little_less_than_one_in_sum_are_taken(count, times):
    sampler = lw.torch.BatchSampler(LENGTHS[:count], FIXED, times=times)
    for epoch in range(count):
        sampler.set_epoch(epoch)
        assert len(list(sampler)) == 1
