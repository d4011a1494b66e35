"""Epochs under a loader: left early, taken again, or set too late. Samplers that it refuses, and what it pads by."""

import copy
import gc
import multiprocessing

import numpy as np
import pytest
import torch
from loaders import (
    BATCHES,
    BATCHING,
    EVERY_KIND,
    LEFT_EARLY,
    LENGTHS,
    SECOND_PASS,
    Data,
    loader_after,
    loader_of,
    planned,
    refusal,
    sampler_of,
    take,
)
from torch.utils.data import DataLoader, IterableDataset

import lengthwise as lw
from ranks import complaint

pytestmark = pytest.mark.slow


@EVERY_KIND
def test_an_epoch_that_is_left_before_its_end_warns_once(kind):
    loader = loader_of(kind)
    take(loader, 2)
    with pytest.warns(UserWarning, match=LEFT_EARLY):
        loader.set_epoch(1)
    take(loader, 2)
    loader.set_epoch(2)


def test_the_loss_scales_of_other_batches_warn():
    loader = loader_of()
    loader.batch_sampler.loss_scales()
    list(loader)
    loader.set_epoch(1)
    with pytest.warns(UserWarning, match="^Epoch 1 is taken with the loss scales of other batches. Call `loss_scales`"):
        list(loader)


class Ending(Data):
    """Ends every loop over it without an error, as `next` of an iterator does that is at its end."""

    def __getitem__(self, number):
        if number == planned()[2][0]:
            raise StopIteration
        return number


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_that_a_sample_ends_warns(workers):
    loader = lw.torch.DataLoader(Ending(), sampler_of(), collate_fn=list, num_workers=workers)
    assert list(loader) == planned()[:2]
    assert loader.delivered == 2
    with pytest.warns(UserWarning, match=LEFT_EARLY):
        loader.set_epoch(1)


def test_an_epoch_is_not_left_early_by_a_look_nor_where_another_run_begins():
    loader = loader_of()
    take(loader, 1)
    loader.set_epoch(1)  # warnings are errors here
    take(loader, 2)
    loader.set_epoch(0)
    take(loader, 2)
    first = sampler_of()
    first.set_epoch(1)
    loader.batch_sampler.resume(first.state_after(4))  # as a trainer may load it
    assert list(loader) == planned(1)[4:]


def test_an_epoch_that_a_trainer_sets_on_the_sampler_is_noticed_with_the_next_loop():
    sampler = sampler_of()
    loader = loader_of(sampler=sampler)
    take(loader, 2)
    sampler.set_epoch(1)
    with pytest.warns(UserWarning, match=LEFT_EARLY):
        assert list(loader) == planned(1)


@EVERY_KIND
@pytest.mark.parametrize("taken", [4, BATCHES])
def test_a_loaded_position_is_used_once(kind, taken):
    loader = loader_after(taken, kind)
    loader.set_epoch(0)
    assert list(loader) == planned()[taken:]
    with pytest.warns(UserWarning, match=SECOND_PASS):
        assert list(loader) == planned()
    loader = loader_after(taken, kind)
    list(loader)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        assert list(loader) == planned(epoch)


@EVERY_KIND
@pytest.mark.parametrize("taken", [0, 4, BATCHES])
def test_an_epoch_begins_anew_where_it_is_asked_to(kind, taken):
    loader = loader_after(taken, kind)
    for epoch in (0, 0, 1):
        loader.set_epoch(epoch, restart=True)
        assert loader.delivered == 0
        assert list(loader) == planned(epoch)


@pytest.mark.parametrize("kind", ["ahead", "persistent"])
def test_an_epoch_that_is_set_too_late_is_refused(kind):
    loader = loader_of(kind)
    batches = iter(loader)
    loader.set_epoch(1)
    with pytest.raises(ValueError, match=r"^Epoch 1 was set within a pass over epoch 0\. Set the epoch"):
        next(batches)
    loader = loader_of()
    batches = iter(loader)
    loader.set_epoch(1)  # nothing is fetched yet
    assert list(batches) == planned(1)


def test_a_position_that_is_loaded_ends_the_loop_before():
    loader = loader_of()
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(sampler_of().state_after(4))
    with pytest.raises(ValueError, match=r"^A position was loaded or restarted within a pass over epoch 0\. Set the"):
        next(batches)
    assert loader.delivered == 4
    assert list(loader) == planned()[4:]


@EVERY_KIND
def test_a_loop_goes_on_where_its_epoch_is_set_again(kind):
    loader = loader_of(kind)
    batches = iter(loader)
    for taken in range(BATCHES):
        loader.set_epoch(0)
        assert next(batches) == planned()[taken]
        assert loader.delivered == taken + 1
    loader.set_epoch(1)  # warnings are errors here


def test_workers_end_with_the_loop_that_is_left():
    loader = loader_of("workers")
    others = multiprocessing.active_children()
    gc.disable()  # where a garbage collector comes by, PyTorch may wait for its workers
    try:
        take(loader, 1)
        assert set(multiprocessing.active_children()) <= set(others)
    finally:
        gc.enable()


STATEFUL = {
    "every third": ({"snapshot_every_n_steps": 3}, range(BATCHES)),
    "workers": ({"num_workers": 2}, (0, 1, 4, 9)),
    "workers, every third": ({"num_workers": 1, "prefetch_factor": 4, "snapshot_every_n_steps": 3}, (0, 1, 4, 9)),
}


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind", STATEFUL)
def test_torchdatas_loader_keeps_its_own_position(kind):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    options, places = STATEFUL[kind]

    def made():
        sampler = sampler_of()
        loader = torchdata.StatefulDataLoader(Data(), batch_sampler=sampler, collate_fn=list, **options)
        return sampler, loader

    sampler, loader = made()
    sampler.set_epoch(1)
    states = [loader.state_dict(), *(copy.deepcopy(loader.state_dict()) for _ in loader)]
    for taken in (*places, BATCHES):
        sampler, other = made()
        other.load_state_dict(states[taken])
        sampler.set_epoch(1)
        assert list(other) == planned(1)[taken:]


# What is refused, and what is said


@pytest.mark.parametrize(
    ("sampler", "options", "said"),
    [
        ([[0, 1]], {}, "TypeError: `batch_sampler` must be a lengthwise.torch.BatchSampler, but is [[0, 1]]"),
        (lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2)), {}, "TypeError: `batch_sampler` must be a lengthwi"),
        (lw.torch.BatchSampler([5] * 23, BATCHING), {}, "ValueError: `lengths` must be as many as the 24 sequences"),
        (sampler_of(), {"in_order": False}, "ValueError: `in_order` must be True, but is False. Leave it out"),
        (sampler_of(), {"shuffle": True}, "ValueError: `shuffle` must be left out, but is True. Delete it"),
    ],
    ids=["lists", "evaluation", "other size", "out of order", "shuffled"],
)
def test_what_cannot_be_a_loader_is_refused(sampler, options, said):
    assert complaint(lambda: lw.torch.DataLoader(Data(), sampler, **options)).startswith(said)


@pytest.mark.parametrize("sample", [("abc", 1), {"text": "abc", "label": 1}])
def test_the_number_of_parts_of_a_sample_is_not_its_length(sample):
    said = "ValueError: `lengths` must be those of the sequences, but is '2 for all'. That is the number of parts of a"
    sampler = lw.torch.BatchSampler([2] * 24, BATCHING)
    assert complaint(lambda: lw.torch.DataLoader([sample] * 24, sampler)).startswith(said)
    lw.torch.DataLoader(["ab"] * 24, sampler)


class Unsized:
    def __getitem__(self, item):
        return item


def test_a_dataset_that_does_not_tell_its_size_is_taken_as_it_is():
    assert list(lw.torch.DataLoader(Unsized(), sampler_of(), collate_fn=list)) == planned()


class Stream(IterableDataset):
    """Iterates a sampler by itself."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.parametrize("make", [sampler_of, lambda: lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(2))])
def test_a_dataset_that_draws_from_a_sampler_in_a_worker_is_refused(make):
    sentence = "The dataset reads the sampler in worker 0 of 1, so each takes all batches. Give the loader a dataset"
    assert sentence in refusal(DataLoader(Stream(make()), batch_size=None, num_workers=1))


@pytest.mark.parametrize("make", [lw.torch.BatchSampler, lw.torch.EvaluationSampler])
def test_whoever_asks_one_rank_of_several_to_drop_the_last_is_refused(make):
    how = BATCHING if make is lw.torch.BatchSampler else lw.FixedSize(2)
    assert make(LENGTHS, how, rank=0, world_size=1).drop_last is False
    with pytest.raises(ValueError, match=r"^The sampler has shared its batches out to 2 ranks, and the loader would"):
        assert make(LENGTHS, how, rank=0, world_size=2).drop_last


@pytest.mark.parametrize(("rank", "quiet"), [(0, False), (1, False), (0, True)])
def test_the_first_batch_says_once_what_an_epoch_pads(capsys, rank, quiet):
    sampler = lw.torch.BatchSampler(np.arange(1, 41), BATCHING, rank=rank, world_size=2)
    loader = lw.torch.DataLoader(range(40), sampler, collate_fn=list, quiet=quiet)
    for epoch in range(2):
        loader.set_epoch(epoch)
        list(loader)
    heard = capsys.readouterr().err
    assert heard.startswith("" if rank or quiet else "Lengthwise: epoch 0 has 10 steps; ")
    assert heard.count("Lengthwise") == (not rank and not quiet)


class Noise(Data):
    """Draws a random number in place of each sequence."""

    def __getitem__(self, number):
        return torch.rand((), dtype=torch.float64).item()


def drawn(*, epoch=0, taken=0, **place):
    """The numbers that the workers of a loader draw from this place on."""
    # Of equal lengths, a loader reads the first sample.
    sampler = lw.torch.BatchSampler([*LENGTHS[1:], 6], BATCHING, **{"seed": 2} | place)
    sampler.set_epoch(epoch)
    sampler.resume(sampler.state_after(taken))
    return list(lw.torch.DataLoader(Noise(), sampler, collate_fn=list, quiet=True, num_workers=1))


def test_workers_draw_by_seed_epoch_rank_and_position_and_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    second = {"rank": 1, "world_size": 2}
    places = [{}, {"seed": 3}, {"epoch": 1}, {"taken": 4}, second, {"taken": 4, **second}]
    numbers = [number for place in places for batch in drawn(**place) for number in batch]
    assert len(set(numbers)) == len(numbers)
    for place in ({}, {"taken": 4}):  # two runs that begin at one place draw alike
        assert drawn(**place) == drawn(**place)
    assert torch.equal(torch.get_rng_state(), before)


# What makes a batch

SEQUENCES = [torch.ones(int(n)) for n in range(1, 41)]


@pytest.mark.parametrize(
    ("cut", "collate"),
    [
        (lw.FixedSize(4), lw.torch.PadCollate()),
        (lw.FixedSize(4, multiple_of=8), lw.torch.PadCollate(multiple_of=8)),
        (lw.Budget(400, count_multiple_of=4), lw.torch.PadCollate(count_multiple_of=4)),
        (lw.Rows(50, max_in_row=3), lw.torch.RowCollate(50, max_in_row=3)),
    ],
    ids=str,
)
def test_batches_are_padded_or_packed_as_the_plan_counts(cut, collate):
    sampler = lw.torch.BatchSampler(np.arange(1, 41), lw.Batching(cut=cut))
    loader = lw.torch.DataLoader(SEQUENCES, sampler)
    assert loader.collate_fn == collate
    assert {type(batch) for batch in loader} == {type(collate([SEQUENCES[0]]))}


def test_samples_without_a_sequence_are_stacked():
    batch = next(iter(lw.torch.DataLoader([(n, str(n)) for n in range(len(LENGTHS))], sampler_of())))
    assert batch[0].tolist() == [int(text) for text in batch[1]]


def test_an_epoch_that_was_resumed_and_left_early_counts_what_came_before():
    loader = loader_after(4)
    take(loader, 3)
    with pytest.warns(UserWarning, match="^Epoch 0 was left after 7 of its 12 batches"):
        loader.set_epoch(1)


def test_a_state_of_a_later_epoch_leaves_none_early():
    loader, later = loader_of(), sampler_of()
    take(loader, 3)
    later.set_epoch(1)
    loader.load_state_dict(later.state_after(0))
    assert loader.delivered == 0  # warnings are errors here
