"""Contenders: the batchings that the search tries, and those that trainers ship.

Each is made for all sequences. Where the search measures a sample, `on_sample` scales the knobs that count sequences.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.arithmetic import round_up
from lengthwise.choices.arrange import InOrder
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import Balanced, InTurn, Mixed, RandomSteps, World
from lengthwise.choices.order import AlternatedSort, Bucketed, MaxEntropy, SemiSorted, Shuffled, Sorted, Windowed

SizedCut = FixedSize | Budget | DynamicSize

PADDINGS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
_NOISES = (0.02, 0.05, 0.1, 0.2, 0.4)
_BUCKETS = (4, 8, 16, 32)
_BATCHES_A_BIN = (6, 12, 25, 50)
_DYNAMIC_BUCKETS = 30  # NeMo's default
_MEGABATCH = 50  # batches that the Trainer sorts together
OTHER_CUT = ",cut=budget"  # ends the label of a batching by the budget beside a fixed size


class Contender(NamedTuple):
    """A batching, its label, and who ships what it models: "" where nobody does."""

    label: str
    batching: Batching
    ships_in: str = ""


def ours(cut: SizedCut, world: World, *, least: float, most: float) -> list[Contender]:
    """What this package offers between the paddings of sorted and of random batches."""
    contenders = []
    if world.slots > 1:
        ships_in = "Trainer's batch_rebalance" if isinstance(cut, FixedSize) else ""
        with suppress(ValueError):  # not every cut can form steps
            contenders.append(Contender("random-steps", Batching(cut=cut, deal=RandomSteps()), ships_in))
    for padding in PADDINGS:
        if least < padding < most:
            contenders.append(between(cut, padding))
    return contenders


def between(cut: Cut, padding: float) -> Contender:
    """Max-entropy at a padding."""
    return Contender(f"max-entropy:{padding:g}", Batching(cut=cut, order=MaxEntropy(padding=padding)))


def of_papers(cut: SizedCut, sizes: NDArray[np.int64], *, dims: int) -> list[Contender]:
    """The strategies of the three papers, at some values of their knobs: [n] `sizes`."""
    count, held = len(sizes), batch_size(cut, sizes)
    orders = {
        **{f"semi-sorted:{noise}": SemiSorted(noise) for noise in _NOISES},
        **{f"optimal:{buckets}": Bucketed(buckets=buckets) for buckets in _BUCKETS if dims == 1},
        **{f"bucketed:{size}": Bucketed(size=size) for size in (-(-count // buckets) for buckets in _BUCKETS)},
        **{f"alternated:{bins}": AlternatedSort(bins) for bins in (-(-count // (held * n)) for n in _BATCHES_A_BIN)},
    }
    return [Contender(label, Batching(cut=cut, order=order, deal=Balanced())) for label, order in orders.items()]


def shipped(cut: SizedCut, sizes: NDArray[np.int64], world: World, *, dims: int) -> list[Contender]:
    """What trainers ship, by the choices that equal it, all with the cut that was asked for.

    - PyTorch, Lightning and the Trainer shuffle, and deal batches to the ranks in turn.
    - The Trainer's group_by_length shuffles, sorts windows of 50 batches (fewer where these would not make four
      windows), and takes them in that order.
    - fairseq sorts all, cuts, and shuffles the batches, whose sequences are the same in every epoch.
    - NeMo and lhotse take a random batch of one of 30 buckets, which hold as many frames each.
    """
    step = batch_size(cut, sizes) * world.micro_batches
    window = step * (min(len(sizes) // (4 * step), _MEGABATCH) or 1)
    # With one batch a step there is nothing to deal: the default makes the shorter line of code.
    in_turn, mixed = (InTurn(), Mixed()) if world.slots > 1 else (None, None)
    found = [
        Contender("random", Batching(cut=cut, order=Shuffled(), deal=in_turn), "Lightning, Trainer"),
        Contender(
            f"windowed:{window}",
            Batching(cut=cut, order=Windowed(window), deal=in_turn, arrange=InOrder()),
            "Trainer's group_by_length",
        ),
        Contender("sorted", Batching(cut=cut, order=Sorted(), deal=mixed), "fairseq"),
    ]
    if dims == 1 and len(sizes):
        buckets = Bucketed(edges=_edges_of_equal_total(sizes))
        found.append(Contender("dynamic-buckets", Batching(cut=cut, order=buckets, deal=in_turn), "NeMo, lhotse"))
    return found


def sort_alone(cut: SizedCut) -> Contender:
    """Sorted batches, of which those of similar cost share a step: the least that can be computed, about."""
    return Contender("sorted,deal=balanced", Batching(cut=cut, order=Sorted()))


def of_equal_memory(cut: SizedCut, lengths: NDArray[np.int64]) -> Budget | None:
    """The budget whose batches take the memory of the longest `batch_size` sequences; None beside other cuts."""
    if not isinstance(cut, FixedSize) or cut.drop_incomplete or not len(lengths):
        return None
    longest = round_up(lengths.reshape(len(lengths), -1).max(axis=0), cut.multiple_of)
    return Budget(cut.batch_size * int(longest.sum()), multiple_of=cut.multiple_of)


def on_sample(batching: Batching, share: float) -> Batching:
    """The batching for a random `share` of the sequences: buckets and bins hold fewer, in as many batches each."""
    order = batching.order
    if isinstance(order, Bucketed) and order.size is not None:
        return replace(batching, order=replace(order, size=max(1, round(order.size * share))))
    if isinstance(order, AlternatedSort):
        return replace(batching, order=AlternatedSort(max(1, round(order.bins * share))))
    return batching


def batch_size(cut: SizedCut, sizes: NDArray[np.int64]) -> int:
    """About how many sequences a batch of mean length holds."""
    mean = np.array([[max(1, round(float(sizes.mean())))]]) if len(sizes) else np.ones((1, 1), np.int64)
    longest = sizes.max(initial=1, keepdims=True)
    return int(max(1, cut.batch_sizes(mean, cost=Padded(), longest=longest)[0]))


def _edges_of_equal_total(sizes: NDArray[np.int64]) -> tuple[int, ...]:
    """The longest of each of 30 buckets of about as many frames each.

    For lengths 1 1 2 4 4 and 3 buckets of 4 frames: the edges 2, 4 and 4, which are two buckets.
    """
    ordered = np.sort(sizes)
    # The frames up to and with each sequence, as a share of all; floats, for sums of long lengths.
    shares = np.cumsum(ordered, dtype=np.float64) / ordered.sum(dtype=np.float64)
    ends = np.searchsorted(shares, np.arange(1, _DYNAMIC_BUCKETS) / _DYNAMIC_BUCKETS)
    return tuple(np.unique([*ordered[ends.clip(max=len(ordered) - 1)], ordered[-1]]).tolist())
