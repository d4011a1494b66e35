"""Streams of sequences that are a name and a length, for the tests."""

import numpy as np
from torch.utils.data import IterableDataset

import lengthwise as lw


def samples(count, *, seed=0, first=0):
    """(name, length) of sequences."""
    lengths = np.random.default_rng(seed).integers(1, 200, count)
    return [(first + number, int(length)) for number, length in enumerate(lengths)]


def shards_of(counts):
    return [samples(count, seed=seed, first=1_000 * seed) for seed, count in enumerate(counts)]


def length(sample):
    return sample[1]


def stream_of(shards, batching, **given):
    return lw.torch.StreamBatches(shards, batching, length=length, collate_fn=list, **{"buffer": 40, **given})


def names(batches):
    return [[name for name, _ in batch] for batch in batches]


class ByEpoch(IterableDataset):
    """A source that gives other samples in every epoch, as a Hugging Face stream that is shuffled."""

    def __init__(self, count):
        self.count, self.epoch = count, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(samples(self.count, seed=self.epoch))


class Stateful:
    """A source that knows where it stands, and notes where it was read from."""

    def __init__(self, own):
        self.own, self.at, self.begun = own, 0, []

    def __iter__(self):
        self.begun.append(self.at)
        while self.at < len(self.own):
            self.at += 1
            yield self.own[self.at - 1]
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]
