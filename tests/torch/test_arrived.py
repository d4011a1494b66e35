"""The padding of batches as they arrive, where a trainer has lengthened the sequences since they were measured."""

from collections import UserDict

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.torch.arrived import count_frames
from lengthwise.torch.trainers import Speed

LENGTHS = lw.example_lengths("long-tailed", count=300) // 8 + 4
BATCHING = lw.Batching(budget=2_000)
MASK = [[1, 1, 1], [1, 0, 0]]
PAIRS = [(torch.ones(3, 8), [7]), (torch.ones(1, 8), [7, 8])]


@pytest.mark.parametrize(
    ("batch", "dims", "counts"),
    [
        (lw.torch.PadCollate()(PAIRS), 1, [4, 6]),  # the frames, which are more than the labels
        (lw.torch.PadCollate()(PAIRS), 2, [7, 10]),
        ({"inner": [lw.torch.PadCollate()([{"input_ids": [1, 2]}, {"input_ids": [3]}])]}, 1, [3, 4]),
        (UserDict(input_ids=np.zeros((2, 3)), attention_mask=np.array(MASK)), 1, [4, 6]),
        (lw.torch.RowCollate(4)([{"input_ids": [1, 2, 3]}, {"input_ids": [3]}, {"input_ids": [3, 4]}]), 1, [6, 8]),
        ({"attention_mask": torch.tensor(MASK, device="meta")}, 1, [0, 0]),
    ],
    ids=str,
)
def test_frames_are_counted_by_the_masks_of_a_batch(batch, dims, counts):
    assert count_frames(batch, dims).tolist() == counts


@pytest.mark.filterwarnings("ignore:Batches hold")  # more than planned, as they do
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("template", [0, 40])
def test_the_summary_and_the_log_give_the_padding_that_was_computed(template, workers):
    samples = [np.ones(length + template, np.float32) for length in LENGTHS]
    sampler, speed = lw.torch.BatchSampler(LENGTHS, BATCHING), Speed()
    loader = lw.torch.DataLoader(samples, sampler, quiet=True, num_workers=workers)
    assert "were read" not in sampler.summary()
    speed.begin_epoch(sampler)
    batches = [batch for batch in loader if speed.note() is None]
    computed = sum(batch.values.numel() for batch in batches)
    padding = 1.0 - sum(map(len, samples)) / computed
    assert speed.epoch().as_log()["padding"] == pytest.approx(padding, abs=1e-4)
    assert (lw.measure(sampler.plan, LENGTHS).padding_share == pytest.approx(padding)) is (template == 0)
    assert f"\nIt is {100 * padding:.1f} % in the batches that were read, by their masks.\n" in sampler.summary()


def test_a_log_in_the_middle_of_a_step_and_batches_without_a_mask():
    sampler, speed = lw.torch.BatchSampler(LENGTHS, BATCHING, micro_batches=2), Speed()
    speed.begin_epoch(sampler)
    sampler.arrived += (90, 100)  # the first batch of a step
    assert speed.take_log().as_log() == {}
    sampler.arrived += (30, 50)
    speed.note()
    assert speed.take_log().as_log()["padding"] == pytest.approx(1 - 120 / 150, abs=1e-3)
    speed.note()
    planned = lw.measure([sampler.plan.batch(int(number)) for number in sampler.plan.grid[1].ravel()], LENGTHS)
    assert speed.take_log().as_log()["padding"] == pytest.approx(planned.padding_share)
