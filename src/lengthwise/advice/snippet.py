"""Snippet: the lines of code that train with a batching."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from lengthwise.choices.batching import Batching, arguments_of, tag_of

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
            "loader = lw.torch.DataLoader(dataset, sampler)  # pads; or your collate_fn",
            "for epoch in range(epochs):",
            "    loader.set_epoch(epoch)",
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
    given = arguments_of(batching).items()
    return f"lw.Batching({', '.join(f'{name}={write_choice(value)}' for name, value in given)})"


def write_choice(value: Any) -> str:
    """A choice as the call that makes it, without defaults; a number as 20_000 in place of 20000.0.

    >>> from lengthwise.choices.cut import FixedSize
    >>> write_choice(FixedSize(16, multiple_of=8))
    'lw.FixedSize(16, multiple_of=8)'
    """
    if tag_of(value) is not None:
        chosen = [field for field in fields(value) if field.init]
        given = [(field, getattr(value, field.name)) for field in chosen]
        # The first by its place, as pages and advice write it.
        words = [
            write_choice(own) if field is chosen[0] and not field.kw_only else f"{field.name}={write_choice(own)}"
            for field, own in given
            if own != field.default
        ]
        return f"lw.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"{int(value):_}"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)
