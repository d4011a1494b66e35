"""The evaluation sampler under DataLoader, alone and on two ranks."""

import ast
import subprocess
import sys

import pytest
from torch.utils.data import DataLoader

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=101)


def test_under_a_loader_every_pass_is_the_same():
    sampler = lw.torch.EvaluationSampler(LENGTHS, lw.Budget(20_000))
    loader = DataLoader(range(101), batch_sampler=sampler, collate_fn=list)
    first, second = list(loader), list(loader)
    assert first == second
    assert len(loader) == len(first)
    assert sampler.restore_order([number for batch in first for number in batch]) == list(range(101))
    assert sampler.weights(LENGTHS).sum() == pytest.approx(1.0)


def test_ranks_that_are_given_share_out_and_gather_elsewhere():
    samplers = [lw.torch.EvaluationSampler(LENGTHS, lw.FixedSize(8), rank=rank, world_size=3) for rank in range(3)]
    outputs = [[number for batch in sampler for number in batch] for sampler in samplers]
    assert lw.restore_order(samplers[0].plan, outputs) == list(range(101))
    assert sum(sampler.weights().sum() for sampler in samplers) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"torch\.distributed's own, to gather outputs, but is 1"):
        samplers[1].restore_order(outputs[1])


RANK = """
import sys
import torch.distributed as distributed
import lengthwise as lw

rank, store = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
sampler = lw.torch.EvaluationSampler([5, 9, 2, 4, 7], lw.FixedSize(2))
print(sampler.restore_order([number for batch in sampler for number in batch]))
distributed.destroy_process_group()
"""


def test_outputs_are_gathered_from_the_ranks(tmp_path):
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    said = [ast.literal_eval(process.communicate(timeout=120)[0]) for process in ranks]
    assert said == [[0, 1, 2, 3, 4]] * 2
