"""Checks that run a model, because its attributes do not say enough.

Many models of Hugging Face find the sequences of a packed row by `position_ids`. Others ignore them (BERT, T5 and OPT
in transformers 5.23), and RoBERTa counts positions from 2. So `attention_leaks` computes two sequences packed into
one row, and then each alone. `check_mean_loss` compares losses with some labels set to -100, which `cross_entropy`
ignores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lengthwise import checks
from lengthwise._samples import IGNORED

# Tolerances, relative to the greatest output. Separate sequences differ by rounding alone. BERT with random weights
# leaks only 0.002.
_EXACT, _ROUNDED = 1e-4, 0.02  # for float32, and for bfloat16 or float16
# In bfloat16, rounding may send one token to another expert, which changes its output by 0.15 (Mixtral of 16 layers). A
# leak changes most of the first 16 places of the second sequence.
_FIRST = 16
_LONGEST = 64  # the most places of a sequence to compute, so that the outputs are small
# A batch with other fields, such as images, cannot be cut into its sequences.
_FIELDS = {
    *("input_ids", "labels", "position_ids", "attention_mask", "token_type_ids", "use_cache"),
    *("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"),
}

_TOLERANCE = 0.05  # relative: losses in bfloat16 are exact to 0.01; another mean differs by a factor

Loss = Callable[[dict[str, Any]], float]


def attention_leaks(model: torch.nn.Module, batch: Any) -> bool | None:
    """Tells if a model computes other outputs for two sequences in a packed row than for each alone.

    The reason may be attention between them, a state that one leaves to the other, or positions that begin at another
    number than the model's own. The model runs three times, in evaluation mode, without gradients and on at most 64
    places of each sequence. Leaks over a longer distance are not detected.

    Args:
        model: A model of Hugging Face. Its first output is [rows, places, ...].
        batch: A batch from `PackedRows.for_transformers`, on the device of the model.

    Returns:
        None if this batch cannot show it, as when no row has two sequences of several tokens, or a field is not of
        tokens.

    >>> def make(outputs):
    ...     model = torch.nn.Module()
    ...     model.forward = lambda input_ids, **_: [outputs(input_ids)[..., None].float()]
    ...     return model
    >>> tokens, positions = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[0, 1, 0, 1]])
    >>> batch = {"input_ids": tokens, "position_ids": positions}
    >>> attention_leaks(make(lambda ids: ids), batch)
    False
    >>> attention_leaks(make(lambda ids: ids.cumsum(1)), batch)
    True
    """
    pair = _take_pair(batch)
    if pair is None:
        return None
    packed, alone = pair
    with evaluating(model):
        output = model(**packed)[0]
        expected = torch.cat([model(**fields)[0] for fields in alone], dim=1)
    exact = output.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(output.device.type)
    places = (output - expected)[0].abs().flatten(1).amax(1)
    border, greatest = alone[0]["input_ids"].shape[1], expected.abs().max()
    if exact:
        return bool(places.max() > _EXACT * greatest)
    return bool(places[border : border + _FIRST].median() > _ROUNDED * greatest)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Turns off gradients, dropout and running averages, then restores each module and generator."""
    modes = [(module, module.training) for module in model.modules()]
    devices = {tensor.device for tensor in model.parameters() if tensor.is_cuda}
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices):
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def _take_pair(batch: Any) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """Returns the first two sequences of one row, packed, and each of them alone; None if there is no such pair."""
    if not isinstance(batch, Mapping) or not {"input_ids", "position_ids"} <= batch.keys() <= _FIELDS:
        return None
    tokens, positions = batch["input_ids"], batch["position_ids"]
    # Positions [0, 1, 2, 0, 1, 0] have borders [3, 5]. Padding has a border too: the row with most borders is best.
    begins = positions.diff() != 1
    row = int(begins.sum(1).argmax())
    border, end = (*(begins[row].nonzero().flatten() + 1).tolist(), tokens.shape[1], tokens.shape[1])[:2]
    second = tokens[row, border:end]
    if not len(second) or bool((second == second[0]).all()):  # no second sequence, or padding
        return None
    first_places = torch.arange(min(border, _LONGEST), device=tokens.device)
    second_places = torch.arange(border, min(end, border + _LONGEST), device=tokens.device)
    packed = _cut(batch, row, torch.cat([first_places, second_places]))
    lengths = (len(first_places), len(second_places))
    for name in packed.keys() & {"cu_seq_lens_q", "cu_seq_lens_k"}:
        packed[name] = packed[name].new_tensor([0, lengths[0], sum(lengths)])
    for name in packed.keys() & {"max_length_q", "max_length_k"}:
        packed[name] = max(lengths)
    simple = {name: batch[name] for name in batch.keys() & {"input_ids", "token_type_ids", "use_cache"}}
    return packed, [_cut(simple, row, places) for places in (first_places, second_places)]


def _cut(batch: Mapping[str, Any], row: int, places: Tensor) -> dict[str, Any]:
    """Returns some places of one row, from fields [R, C] and masks [R, 1, C, C], without the labels."""
    shape = batch["input_ids"].shape
    cut = {name: field for name, field in batch.items() if name != "labels"}
    for name, field in cut.items():
        if isinstance(field, Tensor) and field.dim() in (2, 4) and field.shape[-1] == shape[1]:
            part = field[row : row + 1, ..., places]
            cut[name] = part if field.dim() == 2 else part[:, :, places]
    return cut


def count_labels(batch: Any, *, shifted: bool = False) -> int | None:
    """Counts the labels of a batch that are not -100; returns None if `labels` is not a tensor.

    Args:
        batch: A batch from a collate function.
        shifted: True if the model compares its outputs with the next labels: the first label of a row does not count.

    >>> batch = {"labels": torch.tensor([[5, 2, 7], [3, 1, -100]])}
    >>> count_labels(batch), count_labels(batch, shifted=True), count_labels({})
    (5, 3, None)
    """
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    if not torch.is_tensor(labels):
        return None
    if torch.is_tensor(batch.get("shift_labels")):
        labels = batch["shift_labels"]
    elif shifted:
        labels = labels[..., 1:]
    return int(labels.ne(IGNORED).sum())


def check_mean_loss(loss: Loss, batch: Any, *, shifted: bool, name: str) -> None:
    """Checks that a loss is the mean over the labels of its batch, or over the next labels.

    Args:
        loss: A function that returns the loss of a batch, without dropout. Terms without labels, such as the auxiliary
            loss of a mixture of experts, do no harm.
        batch: A batch from a collate function.
        shifted: True if the loss should be the mean over the next labels.
        name: The name of the model, for the error.

    Raises:
        ValueError: The loss is another mean, or the batch cannot show it. The batch needs rows with several labels,
            and -100 among them.

    >>> def mean(batch):
    ...     return float(batch["labels"][batch["labels"] != -100].float().mean())
    >>> batch = {"labels": torch.tensor([[5, 2, 7], [3, 1, -100]])}
    >>> check_mean_loss(mean, batch, shifted=False, name="Mean")
    >>> check_mean_loss(lambda batch: mean({"labels": batch["labels"][:, 1:]}), batch, shifted=True, name="Next")
    """
    # A batch without -100 is refused: its loss may not accept -100.
    if not _can_tell(batch):
        remedy = "Give the data_collator's batch of two samples of different lengths, with labels [rows, places]."
        raise checks.state_error("The batch has no rows with several labels each, or no -100 among them", remedy)
    if batch["labels"][..., 0].ne(IGNORED).any() and (is_next := _is_shifted(loss, batch)) != shifted:
        rule = f"{is_next}, as {name} compares its outputs with {'the next labels' if is_next else 'labels in place'}"
        raise checks.value_error("next_token", rule, shifted, f"Give PlannedTrainer next_token={is_next}.")
    if not _is_mean(loss, batch, shifted):
        remedy = "Give `weights`, 1 for each sequence if it is their mean; or `reduction='sum'` if it is a sum."
        raise checks.state_error(f"The loss of {name} is not the mean over its labels", remedy)


def _can_tell(batch: Any) -> bool:
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    if not torch.is_tensor(labels) or labels.dim() < 2 or not labels.eq(IGNORED).any() or "shift_labels" in batch:
        return False
    # A half without labels has a loss of 0/0, which shows nothing.
    return all(count_labels(half, shifted=True) for half in _halves(batch))


def _halves(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns two copies of the batch: one has labels in the odd rows only, one in the even rows only."""
    halves = []
    for first in (0, 1):  # rows 0, 2, 4 lose their labels first, then rows 1, 3, 5
        labels = batch["labels"].clone()
        labels[first::2] = IGNORED
        halves.append({**batch, "labels": labels})
    return halves


def _is_shifted(loss: Loss, batch: Mapping[str, Any]) -> bool:
    """Tells if a row's first label, as its only label, has no effect on the loss."""
    # A model that predicts the next label ignores the first label of a row. Without any label the mean is 0/0: two NaN
    # count as equal.
    none = torch.full_like(batch["labels"], IGNORED)
    first = none.clone()
    first[..., 0] = batch["labels"][..., 0]
    with_first, without = loss({**batch, "labels": first}), loss({**batch, "labels": none})
    return with_first == without or (math.isnan(with_first) and math.isnan(without))


def _is_mean(loss: Loss, batch: Mapping[str, Any], shifted: bool) -> bool:
    """Tells if the losses of both halves of the rows, weighted by their labels, add up to the loss of the batch.

    With 6 labels in one half and 2 in the other, a mean over labels is 6/8 of the first half's loss and 2/8 of the
    second's. A mean over rows is not: each half also counts the rows that have no labels left.
    """
    halves = _halves(batch)
    counts = [count_labels(half, shifted=shifted) or 0 for half in halves]
    total = loss({**batch})
    sums = [count * loss(half) for half, count in zip(halves, counts, strict=True)]
    return abs(sum(sums) / sum(counts) - total) <= _TOLERANCE * abs(total)
