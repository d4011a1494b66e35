"""Streams of sequences that are a name and a length, for the tests."""

import itertools

import numpy as np
from torch.utils.data import IterableDataset

import lengthwise as lw

BUDGET = lw.Batching(budget=400)


def samples(count, *, seed=0, first=0):
    """(name, length) of sequences."""
    lengths = np.random.default_rng(seed).integers(1, 200, count)
    return [(first + number, int(length)) for number, length in enumerate(lengths)]


def shards_of(counts):
    return [samples(count, seed=seed, first=1_000 * seed) for seed, count in enumerate(counts)]


def length(sample):
    return sample[1]


def stream_of(shards, batching=BUDGET, **given):
    return lw.torch.StreamBatches(shards, batching, length=length, collate_fn=list, **{"buffer": 40, **given})


def stream_after(state, shards, batching=BUDGET, **given):
    """A stream that goes on where a state was saved."""
    stream = stream_of(shards, batching, **given)
    stream.load_state_dict(state)
    return stream


def take(stream, count):
    """Reads batches of a loop that is then left."""
    return list(itertools.islice(iter(stream), count))


def names(batches):
    return [[name for name, _ in batch] for batch in batches]


def check_goes_on(made, *, every=4, names=names):
    """A stream of `made()` goes on exactly, in another that was made alike, after every few of its batches."""
    whole, running, ends = names(made()), made(), [0]
    for taken, _ in enumerate(running, 1):
        ends += [taken] * running.last_of_step
        if taken % every == 0 or taken == len(whole):
            resumed = made()
            resumed.load_state_dict(running.state_dict())
            take(resumed, taken < len(whole))  # a look
            resumed.set_epoch(resumed.epoch)
            # From within a step, the whole step is taken again; a window ends with a whole step.
            assert names(resumed) == whole[next(begun for begun in ends[::-1] if begun <= taken) :]
    assert len(whole) > every
    return whole


class ByEpoch(IterableDataset):
    """A source that gives other samples in every epoch, as a Hugging Face stream that is shuffled."""

    def __init__(self, count):
        self.count, self.epoch = count, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(samples(self.count, seed=self.epoch))


class Stateful(IterableDataset):
    """A source that knows where it stands, with what belongs to it; it goes on from there whenever it is read."""

    def __init__(self, own):
        self.own, self.place = own, {"at": 0}
        self.reads = []  # where passes began: a copy may share it

    def __deepcopy__(self, memo):
        copied = type(self)(self.own)
        copied.place, copied.reads = dict(self.place), self.reads
        return copied

    def __iter__(self):
        self.reads.append(self.place["at"])
        while self.place["at"] < len(self.own):
            self.place["at"] += 1
            yield self.own[self.place["at"] - 1]
        self.place["at"] = 0

    def state_dict(self):
        return self.place  # in which it goes on writing

    def load_state_dict(self, state):
        self.place = state
