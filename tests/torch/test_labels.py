"""What the loss of a batch is a mean over is found out, for losses of every kind."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from lengthwise.torch.labels import count_labels, mean_of

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
    "mean and a term of its own": (lambda labels: mean(labels) + 1.0, "labels"),
    "decoder": (fed_back, "labels"),
    "next": (mean_of_next, "next labels"),
    "next and a term of its own": (lambda labels: mean_of_next(labels) + 1.0, "next labels"),
    "counted next": (
        lambda labels: each(labels)[:, 1:].sum() / labels[:, 1:].ne(-100).sum().clamp(min=1),
        "next labels",
    ),
    "rows": (mean_of_rows, "other"),
    "sum": (lambda labels: each(labels).sum(), "other"),
    "mean with the padding": (lambda labels: each(labels).mean(), "other"),
}
MUTE = {  # batches that cannot tell, whatever the loss
    "no padding": {"labels": LABELS[:1].expand(3, 5)},
    "one row with labels": {"labels": LABELS[1:2]},
    "one label a row": {"labels": torch.tensor([1, 2, -100])},
    "no labels": {"targets": LABELS},
    "no mapping": (LABELS,),
}


def refuse(batch):
    raise AssertionError(f"asked for the loss of {batch}")


@pytest.mark.parametrize("name", LOSSES)
def test_the_kind_of_a_loss_is_found_out(name):
    loss, expected = LOSSES[name]
    assert mean_of(lambda batch: float(loss(batch["labels"])), {"labels": LABELS}) == expected


def test_where_no_row_has_a_first_label_the_kind_is_as_it_was_said():
    later = LABELS.clone()
    later[:, 0] = -100
    for shifted, expected in ((False, "labels"), (True, "next labels")):
        assert mean_of(lambda batch: float(mean(batch["labels"])), {"labels": later}, shifted=shifted) == expected


@pytest.mark.parametrize("name", MUTE)
def test_a_batch_that_cannot_tell_costs_no_loss(name):
    assert mean_of(refuse, MUTE[name]) is None


def test_a_loss_that_is_not_finite_tells_nothing():
    assert mean_of(lambda _: float("nan"), {"labels": LABELS}) is None


def test_the_batch_is_left_as_it_was():
    batch = {"labels": LABELS.clone()}
    mean_of(lambda batch: float(mean(batch["labels"])), batch)
    assert torch.equal(batch["labels"], LABELS)


def test_labels_that_are_shifted_already_are_counted_as_they_are():
    batch = {"labels": LABELS, "shift_labels": LABELS[:, :2]}
    assert (count_labels(batch), count_labels(batch, shifted=True)) == (6, 6)
    assert count_labels({"labels": [[1, 2]]}) is None
