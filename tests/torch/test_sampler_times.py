"""A sampler with times: its batches are of the data set, and it resumes with the unseen copies."""

import copy
import json
import pickle
import random
import re
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.planning import make
from lengthwise.torch import planner

LENGTHS = lw.example_lengths("long-tailed", count=180)
TIMES = np.repeat([0.4, 2.5, 0.0, 1.0], [100, 40, 20, 20])
BATCHINGS = {
    "fixed": lw.Batching(cut=lw.FixedSize(4)),
    "padding": lw.Batching(budget=12_000, padding=0.1),
    "steps": lw.Batching(cut=lw.Budget(9_000), order=lw.Shuffled(), deal=lw.RandomSteps()),
    "portions": lw.Batching(cut=lw.FixedSize(3), deal=lw.Portions()),
    "rows": lw.Batching(cut=lw.Rows(8_000, rows=2)),
    "chunks": lw.Batching(cut=lw.Budget(3_000), chunks=lw.Chunks(300)),
}


def made(batching=BATCHINGS["fixed"], **changed):
    return lw.torch.BatchSampler(LENGTHS, batching, **({"seed": 9, "times": TIMES} | changed))


def planned(batching, epoch):
    """What an epoch is to deliver: the number of each copy, or the span of each chunk of a copy."""
    plan = lw.make_plan(LENGTHS, batching, seed=9, epoch=epoch, times=TIMES)
    if plan.spans is not None:
        return Counter(map(tuple, plan.spans.tolist()))
    return Counter(np.repeat(np.arange(len(LENGTHS)), plan.times).tolist())


def take(ranks, batches):
    """What the ranks deliver in so many batches each; without batches that only keep a rank in step."""
    got = Counter()
    for rank, sampler in enumerate(ranks):
        start = sampler.start - (len(sampler) - len(sampler.plan))
        first = sampler.plan.first_taken[:, :, rank].reshape(-1)[start:]
        for _, counts, batch in zip(range(batches), first, sampler, strict=False):
            got.update(batch if counts else [])
    return got


@pytest.mark.parametrize("batching", BATCHINGS.values(), ids=BATCHINGS)
def test_however_the_ranks_change_each_copy_is_delivered_once(batching):
    chance = random.Random(batching.to_json())
    for epoch in (0, 1, 7):
        state, got = None, Counter()
        for left in (2, 1, 0):
            places = {"world_size": chance.randint(1, 4), "micro_batches": chance.randint(1, 2)}
            ranks = [made(batching, rank=rank, **places) for rank in range(places["world_size"])]
            for sampler in ranks:
                sampler.set_epoch(epoch) if state is None else sampler.resume(json.loads(state))
            open_batches = len(ranks[0]) - ranks[0].start
            batches = chance.randint(0, open_batches) if left else open_batches
            got += take(ranks, batches)
            (state,) = {json.dumps(sampler.state_after(sampler.start + batches)) for sampler in ranks}
            assert len(state) < 1_000
        assert got == planned(batching, epoch)


def test_a_loader_is_given_the_samples_of_the_data_set_as_often_as_asked():
    dataset = [torch.full((int(length),), number) for number, length in enumerate(LENGTHS)]
    sampler = made(BATCHINGS["padding"])
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=lambda batch: batch, num_workers=1)
    seen = Counter()
    for epoch in range(5):
        sampler.set_epoch(epoch)
        taken = Counter(int(sample[0]) for batch in loader for sample in batch)
        assert taken == planned(BATCHINGS["padding"], epoch)
        assert taken.keys() <= set(np.flatnonzero(TIMES).tolist())
        sources = np.repeat(np.arange(4), [100, 40, 20, 20])
        totals = np.bincount(sources[list(taken)], list(taken.values()), minlength=4)
        assert totals.tolist() == [40, 100, 0, 20]
        seen += taken
    assert all(seen[number] == round(5 * TIMES[number]) for number in np.flatnonzero((5 * TIMES) % 1 == 0))


def test_the_steps_of_all_epochs_are_known_beforehand():
    sampler, steps = made(BATCHINGS["padding"], micro_batches=2), 0
    for epoch in range(6):
        sampler.set_epoch(epoch)
        steps += sum(1 for _ in sampler) // 2
    assert 6 * made(BATCHINGS["padding"], micro_batches=2).steps == steps


@pytest.mark.parametrize("other", [None, 1.0, np.where(TIMES == 0.4, 0.5, TIMES)], ids=["none", "one", "others"])
def test_a_state_of_other_times_is_refused(other):
    state = made().state_after(3)
    with pytest.raises(lw.PlanMismatchError, match=r"`times` must be the checkpoint's, '[0-9a-f]{16}', but is "):
        made(times=other).resume(state)
    with pytest.raises(lw.PlanMismatchError, match="`times` must be the checkpoint's, "):
        made().resume(made(times=other).state_after(3))


def test_a_state_without_times_is_as_ever():
    state = made(times=None).state_after(3)
    assert "times" not in state
    made(times=None).resume(state)


def test_a_damaged_name_of_times_is_refused():
    state = made().state_after(3)
    for damaged in (np.zeros(2), 5, "0" * 16):
        with pytest.raises(ValueError, match="`times` must be "):
            made().resume(state | {"times": damaged})


def test_what_the_user_does_to_the_times_changes_nothing():
    own = TIMES.copy()
    sampler = made(times=own)
    own[:] = 1.0
    sampler.set_epoch(1)
    known = lw.make_plan(LENGTHS, BATCHINGS["fixed"], seed=9, epoch=1, times=TIMES)
    assert sampler.plan.fingerprint() == known.fingerprint()


def test_a_sampler_draws_once_for_all_epochs_what_make_plan_draws_for_each(monkeypatch):
    drawn, draw = [], planner.draw_times
    for module in (planner, make):
        monkeypatch.setattr(
            module, "draw_times", lambda times, lengths, seed: drawn.append(seed) or draw(times, lengths, seed)
        )
    sampler = made()
    for epoch in (0, 1, 5, 2):
        sampler.set_epoch(epoch)
        assert sampler.plan.epoch == epoch
    assert drawn.count(9) == 1  # the seed of the run; the plan that tries all sequences has another
    sampler.resume(sampler.state_after(1))
    assert drawn.count(9) == 1
    known = lw.make_plan(LENGTHS, BATCHINGS["fixed"], seed=9, epoch=2, times=TIMES)
    assert sampler.plan.fingerprint() == known.fingerprint()


def test_copies_of_a_sampler_go_on_alike():
    sampler = made()
    drawn = [batch for _, batch in zip(range(5), sampler, strict=False)]
    assert len(drawn) == 5
    for other in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert other.state_after(0) == sampler.state_after(0)
        assert other.plan.fingerprint() == sampler.plan.fingerprint()


def test_the_loss_scales_take_a_weight_for_each_sequence_of_the_data_set():
    sampler = made(BATCHINGS["padding"], micro_batches=3)
    scales = sampler.loss_scales(LENGTHS)
    frames = np.array([LENGTHS[batch].sum() for batch in sampler]).reshape(-1, 3)
    assert scales.reshape(-1, 3) == pytest.approx(frames / frames.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["padding", "chunks"])
def test_the_summary_says_what_is_taken(name):
    sampler, cut = made(BATCHINGS[name]), BATCHINGS[name].cut
    told = sampler.summary().splitlines()
    assert told[1] == "It takes 100 of 180 sequences, and 160 copies of them in all."
    copies = np.repeat(LENGTHS, sampler.plan.times)
    random = lw.Batching(cut=cut, order=lw.Shuffled(), chunks=BATCHINGS[name].chunks)
    for line, plan, lengths in ((3, sampler.plan, LENGTHS), (4, lw.make_plan(copies, random, seed=9), copies)):
        assert f" {100 * lw.measure(plan, lengths).padding_share:.1f} %" in told[line]


REFUSED = {
    "budget": (
        lw.Batching(budget=100),
        "`budget` must be at least the cost of the costliest sequence, 900, but is 100.0 at sequence 2. ",
    ),
    "rows": (lw.Batching(cut=lw.Rows(100)), "`capacity` must be "),
    "steps": (
        lw.Batching(budget=100, order=lw.Shuffled(), deal=lw.RandomSteps(tail="drop")),
        "`budget` must be at least the cost of the costliest sequence, 900, but is 100.0 at sequence 2. ",
    ),
    "edges": (
        lw.Batching(cut=lw.FixedSize(2), order=lw.Bucketed(edges=(50,))),
        "`edges` must be no shorter than the longest sequence, 900, but is (50,). ",
    ),
}


@pytest.mark.parametrize(("batching", "message"), REFUSED.values(), ids=REFUSED)
def test_a_sequence_that_few_epochs_take_is_refused_at_once(batching, message):
    lengths, times = [10, 20, 900, 30], [1, 1, 0.01, 1]
    if "edges" not in message:  # by themselves most epochs take only what fits
        assert lw.make_plan(lengths, batching, times=times).times.tolist() == [1, 1, 0, 1]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        lw.torch.BatchSampler(lengths, batching, times=times)


def test_what_no_epoch_takes_may_be_over_the_budget():
    sampler = lw.torch.BatchSampler([10, 20, 900, 30], lw.Batching(budget=100), times=[1, 0.5, 0, 1])
    assert {number for batch in sampler for number in batch} <= {0, 1, 3}


def test_batches_that_only_copies_fill_are_not_refused():
    batching = lw.Batching(cut=lw.FixedSize(4, drop_incomplete=True))
    assert len(lw.torch.BatchSampler([10, 20], batching, times=[0.5, 8.5])) == 2


def test_times_of_which_an_epoch_takes_nothing_are_refused():
    """Trainers divide by the batches of an epoch. `make_plan` plans such an epoch, of no batch."""
    with pytest.raises(ValueError, match=r"^`times` must be at least 1 in sum, for each .*, but is 0.8\. Give lar"):
        lw.torch.BatchSampler([10, 20, 30, 40], lw.Batching(cut=lw.FixedSize(2)), times=0.2)
    sampler = lw.torch.BatchSampler([10, 20], lw.Batching(cut=lw.FixedSize(2)), seed=1, times=[0.6, 0.7])
    with pytest.raises(ValueError, match=r"^`times` must be enough in sum for each epoch .* is 1.3 at epoch 3\. "):
        sampler.set_epoch(3)


@pytest.mark.parametrize(("count", "times"), [(3, 1 / 3), (10, 0.1), (49, 1 / 49)])
def test_times_that_are_rounded_to_a_little_less_than_one_in_sum_are_taken(count, times):
    sampler = lw.torch.BatchSampler(LENGTHS[:count], BATCHINGS["fixed"], times=times)
    for epoch in range(count):
        sampler.set_epoch(epoch)
        assert len(list(sampler)) == 1
