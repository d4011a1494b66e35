"""Streams of sequences that are a name and a length, for the tests."""

import numpy as np

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
