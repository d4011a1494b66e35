"""A step that is given, on two ranks: the loop of its page, and numbers that each rank has of its own sequences."""

import re
from pathlib import Path

import numpy as np
import pytest
from torch import distributed

import lengthwise as lw
from ranks import ask_ranks, complaint

pytestmark = pytest.mark.processes

PAGE = (Path(__file__).parents[2] / "docs" / "gradients.md").read_text().partition("## A step you already have")[2]


def run_page():
    """Runs the blocks of the page, which compare the gradient with that of the whole batch in float64."""
    names = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), names)
    worst = max(float((one - other).abs().max()) for one, other in zip(names["found"], names["whole"], strict=True))
    return names["rank"], worst, names["old"].tolist()


def test_the_loop_of_the_page_has_the_gradient_of_the_whole_batch_on_two_ranks():
    (first, error, old), (second, other_error, other_old) = ask_ranks(run_page)
    assert (first, second) == (0, 1)
    assert max(error, other_error) < 1e-12
    assert old == other_old
    assert len(set(old)) == 64


def gather():
    rank = distributed.get_rank()
    answers = [lw.torch.gather_numbers([3, 5, 9][: 3 * rank]), lw.torch.gather_numbers(np.full((rank + 1, 2), rank))]
    answers.append(lw.torch.gather_numbers([]))
    group = distributed.new_group([0])
    alone = lw.torch.gather_numbers([7], group=group) if rank == 0 else None
    refused = complaint(lambda: lw.torch.gather_numbers([[1, 2], [3]] if rank else [1]))
    uneven = complaint(lambda: lw.torch.gather_numbers([[1, 2]] if rank else [1]))
    assert uneven.startswith("ValueError: `values` must be of one shape on all ranks, but is [(1,), (1, 2)]. ")
    lengths, ranks = lw.torch.gather_numbers([2 + rank, 5])
    plan = lw.plan_step(lengths, lw.Batching(budget=7), world_size=2, ranks=ranks)
    return answers, alone, refused, plan.fingerprint(), [batch.tolist() for batch in plan.batches(rank)]


def test_numbers_are_gathered_rank_after_rank_and_an_error_of_one_is_raised_on_all():
    first, second = ask_ranks(gather)
    for answers, *_ in (first, second):
        lengths, rows, nothing = [[array.tolist() for array in answer] for answer in answers]
        assert lengths == [[3, 5, 9], [1, 1, 1]]
        assert rows == [[[0, 0], [1, 1], [1, 1]], [0, 1, 1]]
        assert nothing == [[], []]
    assert [array.tolist() for array in first[1]] == [[7], [0]]
    assert first[2].startswith("PlanMismatchError: Rank 1 could not make its plan. ValueError: ")
    assert second[2].startswith("ValueError: ")
    assert first[3] == second[3]
    assert (first[4], second[4]) == ([[0], [1]], [[2], [3]])


def test_one_rank_of_several_without_a_process_group_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"^torch\.distributed is not started in one of 2 processes"):
        lw.torch.gather_numbers([1])
