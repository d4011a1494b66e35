"""Labels of packed rows: what they hold at borders, and that no sample gets some that it should not have."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import PadCollate, RowCollate

PROMPT = {"input_ids": [5, 6, 7], "labels": [-100, -100, 7]}


@pytest.mark.parametrize("samples", [[PROMPT, {"input_ids": [1, 2]}], [{"input_ids": [1, 2]}, PROMPT]])
def test_a_sample_without_labels_beside_one_with_labels_is_refused(samples):
    """A copy of its tokens would train on a prompt that the data set meant to hide."""
    with pytest.raises(ValueError, match=r"^`samples` must be of the same set of fields in every .* at sample 1\. "):
        RowCollate(6)(samples)


def test_labels_of_a_sample_within_a_sample_end_at_borders_too():
    samples = [{"text": {"input_ids": ids, "labels": ids}, "pair": ({"labels": ids},)} for ids in ([5, 6, 7], [8, 9])]
    fields = RowCollate(6)(samples).fields
    expected = [[-100, 6, 7, -100, 9, -100]]
    assert fields["text"]["labels"].tolist() == fields["pair"][0]["labels"].tolist() == expected
    assert fields["text"]["input_ids"].tolist() == [[5, 6, 7, 8, 9, 0]]
    kept = RowCollate(6, labels="text.labels")(samples).fields
    assert kept["text"]["labels"].tolist() == expected
    assert kept["pair"][0]["labels"].tolist() == [[5, 6, 7, 8, 9, -100]]


@pytest.mark.parametrize("given", [True, False], ids=["given", "copied"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
def test_labels_of_tokens_without_a_sign_get_one(kind, given):
    ids = np.array([5, 6, 7], kind)
    fields = RowCollate(4)([{"input_ids": ids} | ({"labels": ids} if given else {})]).fields
    assert (fields["labels"].tolist(), fields["labels"].dtype) == ([[-100, 6, 7, -100]], torch.int64)
    assert fields["input_ids"].tolist() == [[5, 6, 7, 0]]
    assert fields["input_ids"].dtype == torch.from_numpy(np.empty(0, kind)).dtype
    same = RowCollate(4, value={"labels": 255})([{"input_ids": ids}]).fields["labels"]
    assert (same.tolist(), same.dtype) == ([[255, 6, 7, 255]], torch.int64)


class Pieces:
    """Answers the spans of a plan of chunks with tokens that tell their sequence and their place."""

    def __getitem__(self, span):
        sequence, start, stop = span
        return {"input_ids": torch.arange(start, stop) + 100 * sequence}


def test_a_piece_of_a_sequence_is_a_sequence_of_its_own():
    """So are its positions, its labels, and what it weighs."""
    lengths, batching = [25, 7, 12, 1], lw.Batching(cut=lw.Rows(12, rows=2), chunks=lw.Chunks(10))
    sampler = lw.torch.BatchSampler(lengths, batching, micro_batches=2)
    spans = sampler.plan.spans
    labels = spans[:, 2] - spans[:, 1] - 1
    scales = sampler.loss_scales(weights=labels)
    counted = []
    for batch in DataLoader(Pieces(), batch_sampler=sampler, collate_fn=RowCollate(12, rows=2)):
        own, first = batch.segments > 0, batch.positions == 0
        assert (batch.fields["input_ids"][own & first] % 100 % 10 == 0).all()
        assert (batch.fields["labels"][first] == -100).all()
        assert (batch.fields["labels"][own & ~first] >= 0).all()
        counted.append(int((batch.fields["labels"] >= 0).sum()))
    assert sum(counted) == labels.sum() == sum(lengths) - len(spans)
    totals = np.repeat(np.array(counted).reshape(-1, 2).sum(axis=1), 2)
    assert scales == pytest.approx(np.array(counted) / totals)


def test_more_frames_than_offsets_count_are_refused():
    with pytest.raises(ValueError, match=r"^`samples` must be below 2\*\*31 frames in all, which int32 offsets can "):
        RowCollate(2**24, rows=128)([{"input_ids": [5, 6]}])


@pytest.mark.parametrize("wrong", [False, 0, ["labels"], {}])
def test_a_name_of_labels_that_is_no_text_is_refused(wrong):
    """`labels=False` would add a field `False`, and leave the first label of each sequence as it is."""
    with pytest.raises(TypeError, match=r"^`labels` must be a text, but is .* Give the name of a field, or None for"):
        RowCollate(4, labels=wrong)
    with pytest.raises(TypeError, match=r"^`inputs` must be a text, but is .* Give the name of the field that labels"):
        RowCollate(4, inputs=wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bool, torch.int8])
@pytest.mark.parametrize("value", [0.0, 1.0, {"labels": 1}], ids=repr)
@pytest.mark.parametrize("next_token", [True, False])
def test_padding_of_labels_holds_what_pad_collate_gives_it_and_targets_of_floats_are_all_kept(dtype, value, next_token):
    samples = [{"labels": torch.tensor([1, 0, 1]).to(dtype)}, {"labels": torch.tensor([1]).to(dtype)}]
    padded = PadCollate(value=value)(samples)["labels"]
    laid = RowCollate(3, value=value, next_token=next_token)(samples).fields["labels"]
    assert laid[1, 1:].tolist() == padded.values[1, 1:].tolist()
    # The first label is no target of a network that predicts the next, where the loss can leave it out.
    left_out = next_token and (dtype == torch.int8 or isinstance(value, dict))
    first = padded.values[1, 1:2].tolist() * 2 if left_out else [1, 1]
    assert laid[:, 0].tolist() == first
    assert laid[0, 1:].tolist() == [0, 1]
