"""Whether a network keeps the sequences of a packed row apart, tried on outputs that are made up."""

import pytest
import torch

from lengthwise.torch.apart import Pair, are_apart

LENGTH = 20
TOKENS = torch.arange(2 * LENGTH)[None] % 7
PAIR = Pair({"input_ids": TOKENS}, border=LENGTH)


def outputs(dtype, share):
    """Outputs [1, C, 1], of which each place, or only one behind the border, changes with the tokens before it."""

    def compute(input_ids, **_):
        earlier = input_ids[0, :LENGTH].sum() * 0.1
        changed = torch.zeros(2 * LENGTH)
        changed[LENGTH : LENGTH + share] = earlier
        return [(input_ids + changed)[..., None].to(dtype)]

    return compute


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_network_that_looks_across_changes_every_place(dtype):
    assert are_apart(outputs(dtype, 0), PAIR)
    assert are_apart(outputs(dtype, LENGTH), PAIR) is False


def test_one_token_that_rounding_sends_to_another_expert_is_no_look_across():
    assert are_apart(outputs(torch.bfloat16, 1), PAIR)
    assert are_apart(outputs(torch.float32, 1), PAIR) is False  # which rounds to no other expert
