"""Snippet: the lines of code that train with a batching."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from lengthwise.choices.batching import Batching, arguments_of

_WIDTH = 79  # columns of a line of code


def write_loop(batching: Batching, *, micro_batches: int) -> str:
    """The lines from the batching to the loop over epochs, for code that has `lengths`, `dataset` and `epochs`.

    The sampler asks torch.distributed which rank it is.
    """
    options = f", micro_batches={micro_batches}" if micro_batches > 1 else ""
    return "\n".join(
        [
            _wrap(f"batching = {write_batching(batching)}"),
            f"sampler = lw.torch.BatchSampler(lengths, batching{options})",
            "loader = DataLoader(dataset, batch_sampler=sampler)  # and your collate_fn",
            "for epoch in range(epochs):",
            "    sampler.set_epoch(epoch)",
            "    for batch in loader:",
            "        ...",
        ]
    )


def _wrap(line: str) -> str:
    """The call on a line of its own in its brackets, where it is too long for one line of 80."""
    if len(line) <= _WIDTH:
        return line
    head, _, rest = line.partition("(")
    return f"{head}(\n    {rest[:-1]}\n)"


def write_batching(batching: Batching) -> str:
    """A call that makes the batching, without defaults.

    >>> write_batching(Batching(budget=20_000, padding=0.05))
    'lw.Batching(budget=20_000, padding=0.05)'
    """
    given = arguments_of(batching)
    if batching.order == Batching(cut=batching.cut).order:
        given = {name: value for name, value in given.items() if name not in ("order", "padding")}
    return f"lw.Batching({', '.join(f'{name}={_write(value)}' for name, value in given.items())})"


def _write(value: Any) -> str:
    if hasattr(value, "__dataclass_fields__"):
        return _write_choice(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        return f"{int(value):_}"
    return repr(value)


def _write_choice(choice: Any) -> str:
    """`lw.SemiSorted(0.1)`: the fields that differ from their defaults, by name where they must be."""
    words = []
    for field in fields(choice):
        value = getattr(choice, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        words.append(f"{field.name}={_write(value)}" if field.kw_only or words else _write(value))
    return f"lw.{type(choice).__name__}({', '.join(words)})"
