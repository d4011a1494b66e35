"""Candidates: what trainers ship with a cut, and what this package takes, with the first budget."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.arithmetic import round_up
from lengthwise.choices.batching import DEFAULT_PADDING, Batching
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import InOrder, InTurn, Mixed, RandomSteps, World
from lengthwise.choices.order import Bucketed, MaxEntropy, Shuffled, Sorted, Windowed

SizedCut = FixedSize | Budget | DynamicSize

BATCH_SIZE = 16  # sequences in the batches of most trainers' examples
_DYNAMIC_BUCKETS = 30  # NeMo's default
_MEGABATCH = 50  # batches that the Trainer sorts together


class Candidate(NamedTuple):
    """A batching, its label, and who ships what it models: "" where nobody does."""

    label: str
    batching: Batching
    ships_in: str = ""


def first_budget(
    lengths: NDArray[np.int64], batch_size: int = BATCH_SIZE, *, padding: float = DEFAULT_PADDING, multiple_of: int = 1
) -> int:
    """The budget to begin with: batch_size x mean length / (1 - padding), at least the longest.

    The padded frames count too, so that an epoch has about as many steps as with batches of that size.

    Args:
        lengths: [n] or [n, dims], of at least one sequence.
        batch_size: Sequences in a batch.
        padding: The share of the budget that may be padding.
        multiple_of: What batches are padded to.

    >>> first_budget(np.array([80, 100]), 16), first_budget(np.array([80, 100, 9_000]), 1)
    (1600, 9000)
    """
    sizes = round_up(lengths.reshape(len(lengths), -1), multiple_of).sum(axis=1)
    return max(math.ceil(batch_size * float(sizes.mean()) / (1 - padding) - 1e-6), int(sizes.max()))


def list_shipped(cut: SizedCut, sizes: NDArray[np.int64], world: World, *, dims: int) -> list[Candidate]:
    """The batchings that trainers ship, by the choices that equal them; random batches first.

    - PyTorch, Lightning and the Trainer shuffle, and deal batches to the ranks in turn.
    - The Trainer's group_by_length shuffles, sorts windows of 50 batches (fewer where these would not make four
      windows), and takes them in that order. Its batch_rebalance takes random steps.
    - fairseq sorts all, cuts, and shuffles the batches, whose sequences are the same in every epoch.
    - NeMo and lhotse take a random batch of one of 30 buckets, which hold as many frames each.

    Args:
        cut: Of all of them.
        sizes: [n], the lengths summed over their dimensions.
        world: Ranks and micro-batches of a step.
        dims: Lengths of a sequence.
    """
    step = count_in_batch(cut, sizes) * world.micro_batches
    window = step * (min(len(sizes) // (4 * step), _MEGABATCH) or 1)
    # With one batch a step there is nothing to deal: the default makes the shorter line of code.
    in_turn, mixed = (InTurn(), Mixed()) if world.slots > 1 else (None, None)
    grouped = Batching(cut=cut, order=Windowed(window), deal=in_turn, arrange=InOrder())
    shipped = [
        Candidate("random", Batching(cut=cut, order=Shuffled(), deal=in_turn), "Lightning, Trainer"),
        Candidate(f"windowed:{window}", grouped, "Trainer's group_by_length"),
        Candidate("sorted", Batching(cut=cut, order=Sorted(), deal=mixed), "fairseq"),
    ]
    if dims == 1:
        buckets = Bucketed(edges=_edges_of_equal_total(sizes))
        shipped.append(Candidate("dynamic-buckets", Batching(cut=cut, order=buckets, deal=in_turn), "NeMo, lhotse"))
    if world.slots > 1 and isinstance(cut, FixedSize) and not cut.drop_incomplete:
        rebalanced = Batching(cut=cut, deal=RandomSteps())
        shipped.append(Candidate(f"random-steps of {cut.batch_size}", rebalanced, "Trainer's batch_rebalance"))
    return shipped


def list_ours(cut: Cut, padding: float, *, slots: int) -> list[Candidate]:
    """Random steps where a step has several batches, and max-entropy at half the padding, the padding, and twice it."""
    ours = [
        Candidate(f"max-entropy:{share:g}", Batching(cut=cut, order=MaxEntropy(padding=share)))
        for share in (padding / 2, padding, 2 * padding)
        if share < 1
    ]
    if slots > 1:
        with suppress(ValueError):  # not every cut can form steps
            ours.append(Candidate("random-steps", Batching(cut=cut, deal=RandomSteps())))
    return ours


def count_in_batch(cut: SizedCut, sizes: NDArray[np.int64]) -> int:
    """About how many sequences a batch of mean length holds."""
    mean = np.array([[max(1, round(float(sizes.mean())))]])
    return int(max(1, cut.batch_sizes(mean, cost=Padded(), longest=sizes.max(keepdims=True))[0]))


def _edges_of_equal_total(sizes: NDArray[np.int64]) -> tuple[int, ...]:
    """The longest of each of 30 buckets of about as many frames each.

    For lengths 1 1 2 4 4 and 3 buckets of 4 frames: the edges 2, 4 and 4, which are two buckets.
    """
    ordered = np.sort(sizes)
    # The frames up to and with each sequence, as a share of all; floats, for sums of long lengths.
    shares = np.cumsum(ordered, dtype=np.float64) / ordered.sum(dtype=np.float64)
    ends = np.searchsorted(shares, np.arange(1, _DYNAMIC_BUCKETS) / _DYNAMIC_BUCKETS)
    return tuple(np.unique([*ordered[ends.clip(max=len(ordered) - 1)], ordered[-1]]).tolist())
