"""The batch sampler, alone and under DataLoader."""

import json
import types
import warnings

import numpy as np
import pytest
from torch import distributed
from torch.utils.data import DataLoader, Dataset

import lengthwise as lw
from ranks import run_ranks

LENGTHS = lw.example_lengths("long-tailed", count=300)
BATCHING = lw.Batching(cut=lw.Budget(20_000), order=lw.MaxEntropy(padding=0.1))


class Numbers(Dataset):
    """Gives back what it is asked for."""

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, item):
        return item


def as_is(batch):
    return batch


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_delivers_the_plan_in_order(workers):
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=3)
    loader = lw.torch.DataLoader(Numbers(), sampler, collate_fn=as_is, num_workers=workers)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        plan = lw.make_plan(LENGTHS, BATCHING, seed=3, epoch=epoch)
        delivered = list(loader)
        assert delivered == [batch.tolist() for batch in plan.batches()]
        assert len(loader) == len(delivered) == len(sampler)


def test_epochs_differ_and_repeat_exactly():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first


def test_lists_are_fresh():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    for batch in sampler:
        batch.clear()
    sampler.set_epoch(1)
    assert sorted(number for batch in sampler for number in batch) == list(range(len(LENGTHS)))


def test_ranks_share_out_every_sequence_in_equal_steps():
    ranks = [lw.torch.BatchSampler(LENGTHS, BATCHING, rank=rank, world_size=3, micro_batches=2) for rank in range(3)]
    assert len({len(sampler) for sampler in ranks}) == 1
    assert len(ranks[0]) % 2 == 0
    delivered = [number for sampler in ranks for batch in sampler for number in batch]
    assert sorted(delivered) == list(range(len(LENGTHS)))


def test_chunks_come_as_spans():
    batching = lw.Batching(cut=lw.FixedSize(4), chunks=lw.Chunks(100))
    spans = [span for batch in lw.torch.BatchSampler([250, 40], batching) for span in batch]
    assert sorted(spans) == [(0, 0, 100), (0, 100, 200), (0, 200, 250), (1, 0, 40)]
    assert all(type(number) is int for span in spans for number in span)


def test_an_epoch_that_never_advances_warns_once():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    list(sampler), list(sampler)
    with pytest.warns(
        UserWarning, match=r"`epoch` must be another for every epoch, but is 0 at the second pass"
    ) as told:
        list(DataLoader(LENGTHS, batch_sampler=sampler))
    assert [each.filename for each in told] == [__file__]  # of the loop, and not of PyTorch's loader
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(sampler)


def test_a_sampler_that_nobody_asks_raises_with_the_next_epoch():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    sampler.set_epoch(0)
    sampler.state_after(0)  # for a checkpoint
    with pytest.raises(ValueError, match=r"`sampler` must be asked for batches .* at epoch 0\. .* no training_data"):
        sampler.set_epoch(1)


def test_looking_ahead_at_lengths_does_not_warn():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in range(4):
            sampler.set_epoch(epoch)
            assert len(sampler) > 0


def share_of_a_rank(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    sampler = lw.torch.BatchSampler([5, 9, 2, 4, 7, 7, 1], lw.Batching(cut=lw.FixedSize(2)), seed=1)
    found = len(sampler), [number for batch in sampler for number in batch]
    (folder / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


@pytest.mark.processes
def test_ranks_of_torch_distributed_take_their_own_share(tmp_path):
    run_ranks(share_of_a_rank, tmp_path)
    lengths, shares = zip(*(json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)), strict=True)
    assert lengths == (2, 2)
    assert sorted(shares[0] + shares[1]) == list(range(7))


def test_a_sampler_says_where_its_passes_begin():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=3)
    sampler.set_epoch(5)
    sampler.resume(sampler.state_after(3))
    assert f"BatchSampler(rank 0 of 1, epoch 5 from batch 3 of {len(sampler)}, 300 sequences, Batch" in repr(sampler)


def test_no_batch_size_attribute_to_mislead_trainers():
    assert not hasattr(lw.torch.BatchSampler(LENGTHS, BATCHING), "batch_size")


def test_global_generators_are_left_alone():
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    list(lw.torch.BatchSampler(LENGTHS, BATCHING))
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"batching": 16}, TypeError, r"`batching` must be a Batching, but is 16"),
        ({"rank": 1}, ValueError, r"`rank` must be given together with world_size, but is 'rank=1, world_size=None'"),
        ({"rank": 2, "world_size": 2}, ValueError, r"`rank` must be at most 1, but is 2"),
        ({"rank": 0, "world_size": 0}, ValueError, r"`world_size` must be at least 1, but is 0"),
        ({"micro_batches": 0}, ValueError, r"`micro_batches` must be at least 1, but is 0"),
        ({"seed": -1}, ValueError, r"`seed` must be at least 0, but is -1"),
        ({"lengths": [3, 0]}, ValueError, r"`lengths` .* 0"),
    ],
)
def test_bad_values_are_refused_at_once(arguments, kind, message):
    with pytest.raises(kind, match=message):
        lw.torch.BatchSampler(**{"lengths": LENGTHS, "batching": BATCHING, **arguments})


def test_tab_completion_shows_what_is_public():
    assert [name for name in dir(lw.torch) if not name.startswith("_")] == lw.torch.__all__ == sorted(lw.torch.__all__)
    assert not [name for name in lw.torch.__all__ if isinstance(getattr(lw.torch, name), types.ModuleType)]
