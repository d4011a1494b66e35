"""Samples with fields of every kind, and how batches of them are compared."""

from typing import NamedTuple

import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from torch.utils.data import Dataset

from lengthwise.torch import PaddedSequences


class Utterance(NamedTuple):
    """A sample with fields of every kind, some of them deeper."""

    frames: torch.Tensor
    speaker: int
    targets: dict


def utterance(frames, *, tokens, text="", speaker=0):
    """`frames` frames [2] that count upwards from 1."""
    values = torch.arange(1.0, 2 * frames + 1).reshape(frames, 2)
    return Utterance(values, speaker, {"tokens": tokens, "spoken": (text, [0.5, None])})


class Utterances(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, number):
        return utterance(number + 1, tokens=[number] * (1 + number % 3), text=str(number), speaker=number)


def rows_of(batch):
    """The sequences of a batch field, one tensor each, whatever form they were batched to."""
    if isinstance(batch, PaddedSequences):
        return [values[mask] for values, mask in zip(batch.values, batch.mask, strict=True)]
    if isinstance(batch, PackedSequence):
        values, lengths = pad_packed_sequence(batch, batch_first=True)
        return [row[:length] for row, length in zip(values, lengths, strict=True)]
    return list(batch.values.split(batch.offsets.diff().tolist()))


def assert_alike(batch, expected):
    assert type(batch) is type(expected)
    if isinstance(batch, torch.Tensor):
        assert torch.equal(batch, expected)
    elif isinstance(batch, dict):
        assert_alike(list(batch.items()), list(expected.items()))
    elif isinstance(batch, tuple | list):
        for part, other in zip(batch, expected, strict=True):
            assert_alike(part, other)
    else:
        assert batch == expected
