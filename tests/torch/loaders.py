"""Loaders of 12 batches, with workers and without, for the tests."""

import itertools
import json
import traceback

import pytest
from torch.utils.data import Dataset

import lengthwise as lw

BATCHES = 12
LENGTHS = [5] * (2 * BATCHES)
BATCHING = lw.Batching(cut=lw.FixedSize(2))
KINDS = {
    "no workers": {},
    "workers": {"num_workers": 2, "prefetch_factor": 1},
    "ahead": {"num_workers": 1, "prefetch_factor": 20},  # all batches of an epoch are fetched before the first comes
    "persistent": {"num_workers": 1, "persistent_workers": True},
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
TWO_LOOPS = "Two loops over this loader have begun, so its position is unknown. Give one a loader and a sampler"
SECOND_PASS = "Epoch 0 is taken a second time. Call set_epoch with a new number before each epoch. Look at a batch by"
LEFT_EARLY = f"Epoch 0 was left after 2 of its {BATCHES} batches, so sequences are lost. Let the loop end by itself"


class Data(Dataset):
    """Gives back what it is asked for, but for the sequences that cannot be read."""

    def __init__(self, broken=()):
        self.broken = set(broken)

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        if number in self.broken:
            raise OSError("this file is gone")
        return number


def sampler_of(**options):
    return lw.torch.BatchSampler(LENGTHS, BATCHING, **{"seed": 2} | options)


def loader_of(kind="no workers", broken=(), sampler=None):
    return lw.torch.DataLoader(Data(broken), sampler or sampler_of(), collate_fn=list, **KINDS[kind])


def refusal(loader, error=ValueError):
    """What a loader is refused with. Its workers end at once: left to the collector of garbage, they wait for 5 s."""
    with pytest.raises(error) as caught:
        next(iter(loader))
    traceback.clear_frames(caught.tb)
    return str(caught.value)


def loader_after(taken, kind="no workers"):
    """A loader that goes on after so many batches."""
    loader = loader_of(kind)
    loader.load_state_dict(sampler_of().state_after(taken))
    return loader


def planned(epoch=0):
    return [batch.tolist() for batch in lw.make_plan(LENGTHS, BATCHING, seed=2, epoch=epoch).batches()]


def rest_of(loader, **delivered):
    """The batches that a new process goes on with."""
    resumed = loader_of()
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict(**delivered))))
    return list(resumed)


def take(loader, count):
    """Reads batches of a loop that is then left."""
    return list(itertools.islice(loader, count))
