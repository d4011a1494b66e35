"""Tests if a network of Hugging Face keeps the sequences of a packed row apart.

Many find them by `position_ids`. Others do not look for them (BERT, T5 and OPT in transformers 5.23), and RoBERTa
counts positions from 2. No attribute of a model says so: two sequences are computed in a row, and each alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

# Relative to the greatest output. Sequences that are apart differ by rounding alone. BERT with random weights, which
# attends to nothing in particular, differs by 0.002.
_EXACT, _ROUNDED = 1e-4, 0.02  # of outputs in float32, and of those that are computed in bfloat16 or float16
# In bfloat16, rounding may send a single token to another expert, which changes its place by 0.15 (Mixtral of 16
# layers). A leak changes most of the first places behind the border.
_FIRST = 16
_LONGEST = 64  # places of each sequence that are computed, so that the outputs are small
# Of a batch with other fields, of images for example, we cannot cut the sequences.
_FIELDS = {
    *("input_ids", "labels", "position_ids", "attention_mask", "token_type_ids", "use_cache"),
    *("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"),
}


def attention_leaks(model: torch.nn.Module, batch: Any) -> bool | None:
    """Tells if a model computes something else for two sequences in a packed row than for each alone.

    Attention that looks from one to the other does, and so do states that run on, and positions that count from another
    number. The model runs three times, in evaluation mode, without gradients and on at most 64 places of each sequence.
    What goes wrong in use: windows of attention that are longer than that are not seen.

    Args:
        model: A network of Hugging Face. Its first output is [rows, places, ...].
        batch: As `PackedRows.for_transformers` gives it, on the device of the model.

    Returns:
        None if the batch cannot tell: no row has two sequences of several tokens, or it has fields that are not tokens.

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
        one = model(**packed)[0]
        other = torch.cat([model(**fields)[0] for fields in alone], dim=1)
    exact = one.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(one.device.type)
    places = (one - other)[0].abs().flatten(1).amax(1)
    border, greatest = alone[0]["input_ids"].shape[1], other.abs().max()
    if exact:
        return bool(places.max() > _EXACT * greatest)
    return bool(places[border : border + _FIRST].median() > _ROUNDED * greatest)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Turns off gradients, dropout and running averages, then sets each module and generator back."""
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
    """Returns the fields of the first two sequences of the fullest row, and those of each alone."""
    if not isinstance(batch, Mapping) or not {"input_ids", "position_ids"} <= batch.keys() <= _FIELDS:
        return None
    tokens, positions = batch["input_ids"], batch["position_ids"]
    # Positions [0, 1, 2, 0, 1, 0] have borders [3, 5]. The row with most borders has the fewest that begin padding.
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
    """Returns these places of a row, of fields [R, C] and masks [R, 1, C, C]; without labels."""
    shape = batch["input_ids"].shape
    cut = {name: field for name, field in batch.items() if name != "labels"}
    for name, field in cut.items():
        if isinstance(field, Tensor) and field.dim() in (2, 4) and field.shape[-1] == shape[1]:
            part = field[row : row + 1, ..., places]
            cut[name] = part if field.dim() == 2 else part[:, :, places]
    return cut
