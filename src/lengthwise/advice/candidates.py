"""The candidates of `advise`: the batchings of trainers and of this package, and the first budget."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.arithmetic import round_up
from lengthwise.choices.arrange import InOrder
from lengthwise.choices.batching import DEFAULT_PADDING, Batching, group_by_length
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Budget, DynamicSize, FixedSize
from lengthwise.choices.deal import Mixed, RandomSteps, World
from lengthwise.choices.order import Bucketed, MaxEntropy, Shuffled, Sorted, finds_noise

SizedCut = FixedSize | Budget | DynamicSize

BATCH_SIZE = 16  # sequences in the batches of most trainers' examples
_DYNAMIC_BUCKETS = 30  # NeMo's default


class Candidate(NamedTuple):
    """A batching, its label, and the libraries that ship the batching, "" if none does."""

    label: str
    batching: Batching
    ships_in: str = ""


def first_budget(
    lengths: NDArray[np.int64], batch_size: int = BATCH_SIZE, *, padding: float = DEFAULT_PADDING, multiple_of: int = 1
) -> int:
    """Returns a first budget: batch_size x mean length / (1 - padding), or the longest length if that is more.

    An epoch then has about as many steps as with batches of `batch_size` sequences.

    Args:
        lengths: [n] or [n, dims], of at least one sequence.
        batch_size: The sequences in a batch.
        padding: The share of the budget that may be padding.
        multiple_of: The multiple to which batches are padded.

    >>> first_budget(np.array([90, 100]), 16), first_budget(np.array([90, 100, 9_000]), 1)
    (1600, 9000)
    """
    sizes = round_up(lengths.reshape(len(lengths), -1), multiple_of).sum(axis=1)
    return max(_budget_of_mean(sizes, batch_size, padding), int(sizes.max()))


def describe_longest(lengths: NDArray[np.int64], batch_size: int = BATCH_SIZE) -> str:
    """Returns a sentence on the sequences that are longer than a budget of the mean; "" if there are none.

    >>> describe_longest(np.array([90, 100, 9_000]), 1).partition(", or")[0]
    'The budget is set by 1 sequence longer than 104: cut there, and plan with lengths.clip(max=104)'
    """
    budget = int(lengths.max())
    while (lower := _budget_of_mean(lengths.clip(max=budget), batch_size, DEFAULT_PADDING)) < budget:
        budget = lower  # cutting lowers the mean
    count = int(np.count_nonzero(lengths > budget)) if lengths.ndim == 1 else 0
    state = f"The budget is set by {count:,} sequence{'s' * (count > 1)} longer than {budget:,}"
    cut = f"cut there, and plan with lengths.clip(max={budget}), or --max-length {budget}"
    return f"{state}: {cut}; or give cut=lw.Budget({budget}, oversize='alone'), or 'drop'." if count else ""


def _budget_of_mean(sizes: NDArray[np.int64], batch_size: int, padding: float) -> int:
    return math.ceil(batch_size * float(sizes.mean()) / (1 - padding) - 1e-6)


def list_shipped(cut: SizedCut, sizes: NDArray[np.int64], world: World, *, dims: int) -> list[Candidate]:
    """Returns the batchings that trainers ship, random batches first.

    - PyTorch, Lightning and the Trainer shuffle. Batch k goes to rank k modulo the number of ranks.
    - The Trainer's group_by_length shuffles, and sorts windows of 50 batches, or of a quarter of the epoch if that is
      shorter. Its batch_rebalance makes random steps.
    - fairseq sorts all sequences, cuts, and shuffles the batches, which are the same in every epoch.
    - NeMo and lhotse draw random batches from 30 buckets with equal numbers of frames.

    Args:
        cut: The cut of all candidates.
        sizes: [n], the lengths summed over their dimensions.
        world: The ranks and micro-batches of a step.
        dims: The lengths of each sequence.
    """
    windowed, turns = group_by_length(count_in_batch(cut, sizes), len(sizes), world)
    # With one batch a step, the deal does not matter: the default makes shorter code.
    in_turn, mixed = (turns, Mixed()) if world.slots > 1 else (None, None)
    grouped = Batching(cut=cut, order=windowed, deal=in_turn, arrange=InOrder())
    shipped = [
        Candidate("random", Batching(cut=cut, order=Shuffled(), deal=in_turn), "Lightning, Trainer"),
        Candidate(f"windowed:{windowed.window}", grouped, "Trainer's group_by_length"),
        Candidate("sorted", Batching(cut=cut, order=Sorted(), deal=mixed), "fairseq"),
    ]
    if dims == 1:
        buckets = Bucketed(edges=_edges_of_equal_total(sizes))
        shipped.append(Candidate("dynamic-buckets", Batching(cut=cut, order=buckets, deal=in_turn), "NeMo, lhotse"))
    if world.slots > 1 and isinstance(cut, FixedSize) and not cut.drop_incomplete:
        rebalanced = Batching(cut=cut, deal=RandomSteps())
        shipped.append(Candidate(f"random-steps of {cut.batch_size}", rebalanced, "Trainer's batch_rebalance"))
    return shipped


def list_ours(decided: Batching, padding: float, *, slots: int) -> list[Candidate]:
    """Returns the decided batching, the same with half and with twice the padding, and random steps.

    Args:
        decided: The batching of the plan of a default, with its order and deal.
        padding: The padding to halve and to double if random steps were decided.
        slots: The batches of a step.
    """
    if decided.takes_random_steps:
        batches = Batching(cut=decided.cut, order=MaxEntropy(padding=padding), balance=decided.balance)
    else:
        batches = decided
    share = batches.order.padding
    ours = [replace(batches, padding=part) for part in (share / 2, share, 2 * share) if part < 1]
    if slots > 1:
        with suppress(ValueError):  # not every cut can fill random steps
            ours.append(replace(batches, order=Shuffled(), deal=RandomSteps()))
    return [Candidate(name_decided(batching), batching) for batching in ours]


def name_decided(batching: Batching) -> str:
    """Returns the strategy of `lengthwise compare` that names the batching of a plan of a default; "" if none does.

    >>> name_decided(Batching(budget=500, order=MaxEntropy(padding=0.032)))
    'max-entropy:0.032'
    """
    if batching.takes_random_steps:
        return "random-steps"
    if not finds_noise(batching.order):
        return ""
    usual = Batching(cut=batching.cut, order=batching.order).deal
    deal = "" if batching.deal == usual else f",deal={type(batching.deal).__name__.lower()}"
    return f"max-entropy:{batching.order.padding:g}{deal}"


def count_in_batch(cut: SizedCut, sizes: NDArray[np.int64]) -> int:
    """Estimates the number of sequences in a batch, from the mean length."""
    mean = np.array([[max(1, round(float(sizes.mean())))]])
    return int(max(1, cut.batch_sizes(mean, cost=Padded(), longest=sizes.max(keepdims=True))[0]))


def _edges_of_equal_total(sizes: NDArray[np.int64]) -> tuple[int, ...]:
    """Returns the edges of 30 buckets with about equal numbers of frames.

    For lengths 1 1 2 4 4 and 3 buckets of 4 frames: the edges 2, 4 and 4, which are two buckets.
    """
    ordered = np.sort(sizes)
    # The frames up to and including each sequence, as a share of all; floats, because the sums may be large.
    shares = np.cumsum(ordered, dtype=np.float64) / ordered.sum(dtype=np.float64)
    ends = np.searchsorted(shares, np.arange(1, _DYNAMIC_BUCKETS) / _DYNAMIC_BUCKETS)
    return tuple(np.unique([*ordered[ends.clip(max=len(ordered) - 1)], ordered[-1]]).tolist())
