"""Labels of packed rows: what they hold at borders, and that no sample gets some that it should not have."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import RowCollate

PROMPT = {"input_ids": [5, 6, 7], "labels": [-100, -100, 7]}


@pytest.mark.parametrize("samples", [[PROMPT, {"input_ids": [1, 2]}], [{"input_ids": [1, 2]}, PROMPT]])
def test_a_sample_without_labels_beside_one_with_labels_is_refused(samples):
    """A copy of its tokens would train on a prompt that the data set meant to hide."""
    with pytest.raises(ValueError, match=r"^`samples` must be of one set of fields in every sample, .* at sample 1\. "):
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
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("make", [np.array, lambda *each: torch.from_numpy(np.array(*each))], ids=["numpy", "torch"])
def test_labels_of_tokens_without_a_sign_get_one(make, kind, given):
    ids = make([5, 6, 7], kind)
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
