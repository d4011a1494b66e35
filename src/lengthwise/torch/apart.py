"""Whether a network of Hugging Face keeps the sequences of a packed row apart.

Many find them by `position_ids`. Others do not look for them (BERT, RoBERTa, T5 and OPT in transformers 5.23), and no
attribute of a model says which. So it is tried: of two sequences in a row, the tokens of the first are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Relative to the greatest output. Where sequences are apart, nothing changes but for rounding, in layers that sort
# tokens to experts. BERT with random weights, which attends to nothing in particular, changes by 0.002.
EXACT, ROUNDED = 1e-4, 0.02  # of outputs in float32, and of those that are computed in bfloat16 or float16
# In bfloat16, rounding may send a single token to another expert, which changes its place by 0.15 (Mixtral of 16
# layers). What looks across changes most of the first places behind the border.
_FIRST = 16
# Of a batch with other fields, of images for example, nobody knows how to change the tokens.
_FIELDS = {
    *("input_ids", "labels", "position_ids", "attention_mask", "token_type_ids", "use_cache"),
    *("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"),
}

Outputs = Callable[..., Any]


class Pair(NamedTuple):
    """Two sequences of a batch as a row of their own: its `fields`, and the `border` where the second begins."""

    fields: dict[str, Any]
    border: int


def are_apart(outputs: Outputs, pair: Pair) -> bool | None:
    """Whether the outputs of a sequence stay the same if the sequence before it in the row is another.

    Args:
        outputs: From the fields of a batch by name to the outputs, of which the first is [1, C, ...].
        pair: From `take_pair`.

    Returns:
        None if the outputs cannot tell.

    >>> pair = take_pair({"input_ids": torch.tensor([[5, 6, 7, 8]]), "position_ids": torch.tensor([[0, 1, 0, 1]])})
    >>> are_apart(lambda input_ids, **_: [input_ids[..., None].float()], pair)
    True
    >>> are_apart(lambda input_ids, **_: [input_ids.cumsum(1)[..., None].float()], pair)
    False
    """
    tokens = pair.fields["input_ids"]
    least, most = tokens.min(), tokens.max()
    if least == most:
        return None
    # Tokens [5, 6 | 7, 8] become [8, 8 | 7, 8]: every token of the first sequence is another.
    changed = tokens.clone()
    changed[:, : pair.border] = torch.where(tokens[:, : pair.border] == most, least, most)
    one, other = outputs(**pair.fields)[0], outputs(**{**pair.fields, "input_ids": changed})[0]
    if not torch.is_tensor(one) or one.shape[:2] != tokens.shape or not one.isfinite().all():
        return None
    exact = one.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(one.device.type)
    changes = (one - other)[0, pair.border :].abs().flatten(1).amax(1)  # of each place of the second sequence
    greatest = one.abs().max()
    return bool(changes.max() <= EXACT * greatest if exact else changes[:_FIRST].median() <= ROUNDED * greatest)


def take_pair(batch: Any) -> Pair | None:
    """The first two sequences that share a row; None if the rows are not packed, or hold fields that are not tokens."""
    if not isinstance(batch, Mapping) or not {"input_ids", "position_ids"} <= batch.keys() <= _FIELDS:
        return None
    tokens, positions = batch["input_ids"], batch["position_ids"]
    if not (torch.is_tensor(tokens) and torch.is_tensor(positions) and tokens.dim() == 2) or (
        positions.shape != tokens.shape
    ):
        return None
    for row in range(len(tokens)):
        # Positions [0, 1, 2, 0, 1, 0] have borders [3, 5].
        borders = (positions[row].diff() != 1).nonzero().flatten().add(1).tolist()
        if borders:
            border, end = (*borders, tokens.shape[1])[:2]
            fields = {name: _cut(field, row, end, tokens.shape) for name, field in batch.items() if name != "labels"}
            return Pair(_tell_borders(fields, border, end), border)
    return None


def _cut(field: Any, row: int, end: int, shape: torch.Size) -> Any:
    """The first `end` places of a row: of a field [R, C], or a mask [R, 1, C, C]."""
    if not torch.is_tensor(field) or field.shape[0] != shape[0] or field.dim() not in (2, 4):
        return field
    return field[row : row + 1, :end] if field.dim() == 2 else field[row : row + 1, :, :end, :end]


def _tell_borders(fields: dict[str, Any], border: int, end: int) -> dict[str, Any]:
    """The fields with the borders and the longest of the two sequences, where varlen attention is told those."""
    told: dict[str, Tensor | int] = {}
    for name in fields.keys() & {"cu_seq_lens_q", "cu_seq_lens_k"}:
        told[name] = fields[name].new_tensor([0, border, end])
    for name in fields.keys() & {"max_length_q", "max_length_k"}:
        told[name] = max(border, end - border)
    return {**fields, **told}
