"""Gradients over processes: under DDP and FSDP a step's gradient is that of the whole step in one process.

The cases are measured as `benchmarks/gradients.py` measures them for the table, on sequences few enough for a test.
"""

import importlib
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

import lengthwise as lw
from ranks import run_ranks

pytestmark = pytest.mark.processes

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # also where the processes look
gradients = importlib.import_module("gradients")

LENGTHS = lw.example_lengths("long-tailed", count=50) // 16
# 16 batches, which do not fill the steps: some stand twice.
BATCHING = lw.Batching(cut=lw.Budget(120), padding=0.1, deal=lw.Balanced(tail="repeat"))
RANKS = 3
EXACT = [gradients.Case(*case) for case in product(gradients.WRAPPERS, gradients.LOSSES, ("loss scales",), (1, 3))]
AVERAGED = ("batches averaged", "ranks averaged")
USUAL = [gradients.Case(*case) for case in product(("DDP",), gradients.LOSSES, AVERAGED, (3,))]


def named(case):
    return f"{case.wrapper} {case.loss}, {case.way}, {case.micro_batches} micro-batches"


@pytest.fixture(scope="module")
def errors():
    """The error of every case, measured by as many processes."""
    job = gradients.Job([*EXACT, *USUAL], LENGTHS, BATCHING, None)
    found = gradients.errors(job, ranks=RANKS, start=run_ranks)
    return dict(zip(job.cases, found, strict=True))


@pytest.mark.parametrize("case", EXACT, ids=named)
def test_loss_scales_give_the_gradient_of_the_whole_step(errors, case):
    assert errors[case] < 1e-12


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_so_they_do_over_nccl():
    job = gradients.Job(EXACT, LENGTHS, BATCHING, None, "cuda")
    assert max(gradients.errors(job, ranks=torch.cuda.device_count())) < 1e-12


@pytest.mark.parametrize("case", USUAL, ids=named)
def test_means_of_means_do_not(errors, case):
    assert errors[case] > 1e-3


def test_the_cases_hold_what_goes_wrong():
    plan = lw.make_plan(LENGTHS, BATCHING, world_size=RANKS, micro_batches=3)
    assert not plan.first_taken.all(), "a batch stands twice"
    supervised = gradients.supervised_tokens(LENGTHS)
    assert any(supervised[plan.batch(number)].sum() == 0 for number in range(len(plan.costs)))
