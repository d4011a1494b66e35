"""Missed: a padding that was asked for and cannot be had is said, once, with what was had and why."""

from __future__ import annotations

import warnings
from typing import NamedTuple

_TOLERANCE = 0.02  # of the computed frames: less is chance, or nothing that anybody would change
_FEW = 100  # batches, below which chance decides what they pad
_told: set[tuple[str, str]] = set()  # what was said in this process: (batching, fingerprint of the lengths)


class Had(NamedTuple):
    """What a plan pads of what it computes, in how many batches of how many dimensions."""

    padding: float
    batches: int
    dims: int


def is_missed(asked: float, had: Had) -> bool:
    return had.batches > 0 and abs(had.padding - asked) > _TOLERANCE


def is_first(about: tuple[str, str]) -> bool:
    """Whether nothing was said yet of `about`, a batching and lengths by their names; from now on, something was."""
    first = about not in _told
    _told.add(about)
    return first


def tell_missed(asked: float, had: Had, *, least: float, most: float) -> None:
    """Warns that `asked` is missed.

    Args:
        asked: The padding share that the order was to spend.
        had: What it spends.
        least: What the same cut pads of sorted sequences.
        most: What it pads of sequences in random order.
    """
    sentence = f"`padding` must be within {_TOLERANCE} of what was asked, {asked:g}, but is {had.padding:.3f}."
    warnings.warn(f"{sentence} {_why(asked, had, least, most)}", stacklevel=5)  # where make_plan is called


def _why(asked: float, had: Had, least: float, most: float) -> str:
    correct = f"ask for {'less' if had.padding > asked else 'more'} to correct it."
    if asked > most:
        return f"Random batches pad {most:.3f} here, and nothing pads more: ask for less."
    if asked < least and had.dims > 1:
        return f"Sorting by the sum of {had.dims} lengths pads {least:.3f}: make the batches smaller, or ask for more."
    if asked < least:
        return f"Sorting pads {least:.3f} here: make the batches smaller, or ask for more."
    if had.dims > 1:
        return f"It is fitted to the sum of the {had.dims} lengths: {correct}"
    if had.batches < _FEW:
        return f"With {had.batches} batches it depends on chance: plan more sequences, or {correct}"
    return f"A few long sequences are most of it: cut by a budget with oversize='alone', or {correct}"
