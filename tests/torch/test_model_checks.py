"""Leaks across a packed row are seen, and losses are checked to be the mean that was said."""

import re

import pytest
import torch
from torch.nn.functional import cross_entropy

from lengthwise.torch import attention_leaks
from lengthwise.torch.model_checks import check_mean_loss, count_labels

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


# The mean over labels

LABELS = torch.tensor([[5, 2, 7, 1, 3], [3, 1, -100, -100, -100], [4, 4, 6, -100, -100]])
LOGITS = torch.arange(3 * 5 * 8, dtype=torch.float64).sin().reshape(3, 5, 8)


def each(labels, logits=LOGITS):
    """The loss at every label, 0 where it is -100."""
    return cross_entropy(logits.transpose(1, 2), labels, reduction="none")


def mean(labels):
    return cross_entropy(LOGITS.flatten(0, 1), labels.flatten())


def mean_of_next(labels):
    return cross_entropy(LOGITS[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def mean_of_rows(labels):
    return (each(labels).sum(1) / labels.ne(-100).sum(1).clamp(min=1)).mean()


def fed_back(labels):
    """A decoder that sees the label before: one that is taken away changes the next output."""
    before = torch.nn.functional.pad(labels.clamp(min=0), (1, 0))[:, :-1]
    return each(labels, LOGITS + before[..., None].cos() * LOGITS.cos()).sum() / labels.ne(-100).sum()


LOSSES = {
    "mean": (mean, "labels"),
    "rounded mean": (lambda labels: mean(labels).bfloat16(), "labels"),
    "decoder": (fed_back, "labels"),
    "next": (mean_of_next, "next labels"),
    "next and a term of its own": (lambda labels: mean_of_next(labels) + 1.0, "next labels"),
    "counted next": (lambda labels: each(labels)[:, 1:].sum() / labels[:, 1:].ne(-100).sum(), "next labels"),
    "rows": (mean_of_rows, "other"),
    "sum": (lambda labels: each(labels).sum(), "other"),
    "mean with the padding": (lambda labels: each(labels).mean(), "other"),
}
MUTE = {  # batches that cannot tell, whatever the loss
    "one row with labels": {"labels": LABELS[1:2]},
    "one label a row": {"labels": torch.tensor([1, 2, -100])},
    "no labels": {"targets": LABELS},
}


def refuse(batch):
    raise AssertionError(f"asked for the loss of {batch}")


def check(loss, *, shifted, labels=LABELS):
    check_mean_loss(lambda batch: float(loss(batch["labels"])), {"labels": labels}, shifted=shifted, name="Net")


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_what_was_said_or_refused(name):
    loss, kind = LOSSES[name]
    for shifted in (False, True):
        if kind == "other":
            with pytest.raises(ValueError, match=r"^`next_token` must be |^The loss of Net is not the mean over its"):
                check(loss, shifted=shifted)
        elif shifted == (kind == "next labels"):
            check(loss, shifted=shifted)
        else:
            with pytest.raises(ValueError, match=rf"^`next_token` must be {not shifted}, as Net compares "):
                check(loss, shifted=shifted)


def test_a_loss_that_is_no_mean_over_labels_is_told_to_give_weights():
    said = (
        "The loss of Net is not the mean over its labels. Give `weights`, 1 for each sequence if it is their mean; or "
        "`reduction='sum'` if it is a sum."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        check(mean_of_rows, shifted=False)


@pytest.mark.parametrize("name", MUTE)
def test_a_batch_that_cannot_tell_is_refused_and_costs_no_loss(name):
    with pytest.raises(ValueError, match=r"^The batch has no rows with several labels each, or no -100 among them"):
        check_mean_loss(refuse, MUTE[name], shifted=False, name="Net")


def test_labels_that_are_shifted_already_are_counted_as_they_are():
    batch = {"labels": LABELS, "shift_labels": LABELS[:, :2]}
    assert (count_labels(batch), count_labels(batch, shifted=True)) == (6, 6)
    assert count_labels({"labels": [[1, 2]]}) is None
