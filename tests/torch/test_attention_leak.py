"""Leaks across a packed row are seen, tried on outputs that are made up."""

import pytest
import torch

from lengthwise.torch import attention_leaks

LENGTH = 20
TOKENS = torch.arange(2 * LENGTH)[None] % 7 + 1
BATCH = {"input_ids": TOKENS, "position_ids": torch.arange(LENGTH).repeat(2)[None]}


class Net(torch.nn.Module):
    """Outputs [1, C, 1], of which the first places behind the border change with the tokens before it."""

    def __init__(self, dtype, share, first=0):
        super().__init__()
        self.dtype, self.share, self.first = dtype, share, first

    def forward(self, input_ids, position_ids=None, **_):
        positions = torch.arange(input_ids.shape[1]) + self.first if position_ids is None else position_ids
        changed = torch.zeros(input_ids.shape[1])
        changed[LENGTH : LENGTH + self.share] = input_ids[0, :LENGTH].sum() * 0.1
        return [(input_ids + changed + positions)[..., None].to(self.dtype)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_network_that_looks_across_changes_every_place(dtype):
    assert attention_leaks(Net(dtype, 0), BATCH) is False
    assert attention_leaks(Net(dtype, LENGTH), BATCH) is True


def test_one_token_that_rounding_sends_to_another_expert_is_no_leak():
    assert attention_leaks(Net(torch.bfloat16, 1), BATCH) is False
    assert attention_leaks(Net(torch.float32, 1), BATCH) is True  # which rounds to no other expert


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_network_that_counts_positions_from_another_number_is_seen(dtype):
    assert attention_leaks(Net(dtype, 0, first=2), BATCH) is True
    assert attention_leaks(Net(dtype, 0, first=2), {**BATCH, "position_ids": BATCH["position_ids"] + 2}) is False


@pytest.mark.parametrize(
    "batch",
    [
        {"input_ids": TOKENS},
        {"input_ids": TOKENS, "position_ids": torch.arange(2 * LENGTH)[None]},
        {"input_ids": torch.tensor([[5, 6, 0, 0]]), "position_ids": torch.tensor([[0, 1, 0, 1]])},  # padding
        {**BATCH, "pixel_values": torch.ones(1, 3)},
        [TOKENS],
    ],
)
def test_a_batch_without_two_sequences_in_a_row_cannot_tell(batch):
    assert attention_leaks(Net(torch.float32, LENGTH), batch) is None


def test_modes_and_random_numbers_stay_as_they_were():
    net = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout().eval())
    net.forward = lambda input_ids, **_: [torch.rand(input_ids.shape)[..., None]]
    state = torch.get_rng_state()
    assert attention_leaks(net, BATCH) is True
    assert torch.equal(torch.get_rng_state(), state)
    assert [each.training for each in net] == [True, False]
