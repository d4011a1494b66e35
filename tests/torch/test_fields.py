"""Samples of every structure under the three collate functions, and those that are refused."""

import numpy as np
import pytest
import torch
from utterances import Utterance, rows_of, utterance

from lengthwise.torch import ConcatCollate, PackCollate, PadCollate
from ranks import complaint

COLLATES = pytest.mark.parametrize("collate", [PadCollate(), PackCollate(), ConcatCollate()], ids=repr)


def test_the_batch_has_the_structure_of_a_sample():
    samples = [utterance(2, tokens=[7, 8, 9], text="a", speaker=4), utterance(1, tokens=[], text="b", speaker=5)]
    batch = PadCollate(value={"targets.tokens": -100})(samples)
    assert isinstance(batch, Utterance)
    assert batch.frames.values.tolist() == [[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [0.0, 0.0]]]
    assert batch.frames.lengths.tolist() == [2, 1]
    assert batch.frames.mask.tolist() == [[True, True], [True, False]]
    assert batch.speaker.tolist() == [4, 5]
    assert batch.targets["tokens"].values.tolist() == [[7, 8, 9], [-100, -100, -100]]
    assert batch.targets["tokens"].mask.tolist() == [[True] * 3, [False] * 3]
    assert batch.targets["spoken"][0] == ["a", "b"]
    assert batch.targets["spoken"][1][0].tolist() == [0.5, 0.5]
    assert batch.targets["spoken"][1][1] == [None, None]


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [
        (3, torch.int64),
        (3.5, torch.float32),
        (True, torch.bool),
        (np.float64(3.5), torch.float64),
        (np.array(3, np.int16), torch.int16),
        (torch.tensor(3, dtype=torch.uint8), torch.uint8),
    ],
    ids=str,
)
def test_numbers_are_stacked_in_their_own_dtype_and_filled_with_zeros(sample, dtype):
    batch, _ = PadCollate(shapes=[(3, 1)], value=9)([(sample, torch.ones(1))] * 2)
    assert batch.dtype == dtype
    assert batch.tolist() == [sample, sample, 0]


@COLLATES
@pytest.mark.parametrize(
    "array",
    [np.broadcast_to(np.float32(2), (3, 2)), np.arange(6.0)[::-1].reshape(3, 2), np.arange(3, dtype=">i4")],
    ids=["read-only", "reversed", "of other byte order"],
)
def test_arrays_that_pytorch_makes_no_tensor_of(collate, array):
    rows = rows_of(collate([array, array[:1]]))
    assert rows[0].numpy().dtype == array.dtype.newbyteorder("=")
    assert rows[0].tolist() == array.tolist()
    assert rows[1].tolist() == array[:1].tolist()


# What is refused

ONE = torch.ones(1)
ALIKE = "Make them alike in the data set's __getitem__."
TIME_FIRST = (
    "Make them alike in the data set's __getitem__, and time first: squeeze(0) a waveform [1, T], transpose features "
    "[F, T]."
)

ENDLESS = {"x": ONE}
ENDLESS["sample"] = ENDLESS

REFUSED = {
    "no samples": ([], "at least one, but is []. Leave empty batches out."),
    "dtypes": (
        [(ONE,), (ONE,), (torch.ones(2, dtype=torch.int64),)],
        "of the same dtype in every sample, torch.float32 as in sample 0, but is torch.int64 at sample 2, field 0. "
        + ALIKE,
    ),
    "frames": (
        [torch.ones(1, 80), torch.ones(1, 40)],
        f"of the same shape of a frame in every sample, (80,) as in sample 0, but is (40,) at sample 1. {TIME_FIRST}",
    ),
    "kinds": (
        [Utterance(ONE, 0, {"tokens": [1]}), Utterance(ONE, 0, {"tokens": None})],
        "of the same kind in every sample, a sequence as in sample 0, but is 'an object' at sample 1, "
        + f"field targets.tokens. {ALIKE}",
    ),
    "fields": (
        [{"frames": ONE}, {"frame": ONE}],
        f"of the same set of fields in every sample, ['frames'] as in sample 0, but is ['frame'] at sample 1. {ALIKE}",
    ),
    "a sample that holds itself": (
        [ENDLESS] * 2,
        "of a few levels, none of which holds itself, but is {'x': tensor([1.]), 'sample': {...}}. Leave that part out "
        "in the data set's __getitem__.",
    ),
    "arrays of text": (
        [(ONE, np.array(["a"]))],
        "of a dtype that PyTorch has, but is '<U1' at sample 0, field 1. Convert it in the data set's __getitem__.",
    ),
}


@COLLATES
@pytest.mark.parametrize(("samples", "message"), REFUSED.values(), ids=REFUSED)
def test_samples_that_are_not_alike_are_refused_by_name(collate, samples, message):
    assert complaint(lambda: collate(samples)) == f"ValueError: `samples` must be {message}"


@COLLATES
@pytest.mark.parametrize(
    "one",
    [{"x": ONE}, {0: ONE}, "text", None, 3, torch.ones(3, 2), iter([ONE])],
    ids=["name", "number", "text", "None", "3", "tensor", "iterator"],
)
def test_one_sample_in_place_of_a_list_is_refused(collate, one):
    with pytest.raises(TypeError, match=r"^`samples` must be a list of samples, but is .* Give the loader batch_sam"):
        collate(one)
