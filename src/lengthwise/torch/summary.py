"""Sentences on what an epoch computes, beside random batches."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import Budget, Cut, FixedSize
from lengthwise.choices.order import Shuffled
from lengthwise.measures.metrics import Measures, measure, sum_frames
from lengthwise.planning import make_plan
from lengthwise.planning.plan import Plan
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch
from lengthwise.report import words

_SAME = 1.005  # times as much: less than this is no difference worth a sentence
_TIMES = 1.05  # less than this would be told as 1 times as much


def summarize(
    plan: EpochPlan,
    lengths: ArrayLike,
    batching: Batching,
    *,
    before: int = 0,
    taken: int = 0,
    batch_size: int | None = None,
) -> str:
    """The steps of an epoch, its batches and its padding, and the padding of random batches.

    Args:
        plan: Of the epoch; of windows the first one is measured.
        lengths: [n] or [n, dims], of all sequences.
        batching: Which made the plan.
        before: Batches that each of other ranks had of the epoch; the plan is of what they left.
        taken: Batches of the plan that each rank has had.
        batch_size: Sequences in a random batch; by default random batches are cut as the plan is.

    >>> lengths = [5, 9, 2, 4] * 10
    >>> batching = Batching(budget=40, padding=0.05)
    >>> print(summarize(make_plan(lengths, batching, micro_batches=2), lengths, batching, taken=4))
    Epoch 0 has 4 steps of 2 batches on 1 rank.
    A batch holds 2 to 10 sequences, a step 10 on average.
    Padding is 3.4 % of what is computed.
    Random batches under this budget pad 32.4 %, and compute 1.4 times as much.
    Each rank has had 4 of its 8 batches.
    """
    said = [f"Epoch {plan.epoch} has {words.count(plan.steps, 'step')} {'left, ' if before else ''}{_per_step(plan)}"]
    if not plan.steps:
        return f"{said[0]}."
    of, batches = "what is computed", len(plan)
    if isinstance(plan, WindowEpoch):
        (plan, lengths), of = _first_window(plan, lengths), "what the first window computes"
    if plan.times is not None:
        taken_ones = f"{np.count_nonzero(plan.times):,} of {words.count(len(plan.times), 'sequence')}"
        copies = words.count(int(plan.times.sum()), "copy", "copies")
        said.append(f"It takes {taken_ones}, and {copies} of them in all")
    cut = batching.cut if batch_size is None else FixedSize(batch_size)
    drawn, of_drawn = _plan_random(plan, lengths, batching, cut)
    own, random = measure(plan, lengths), measure(drawn, of_drawn)
    item = "sequence" if batching.chunks is None else "chunk"
    mean = own.mean_batch * own.batches / own.steps
    said.append(f"A batch holds {_range(own, item)}, a step {_number(mean)} on average")
    said.append(f"Padding is {words.percent(own.padding_share)} of {of}")
    said.append(_beside(own, random, batching, batch_size, there="" if of == "what is computed" else " there"))
    theirs, ours = (int(sum_frames(*each)[1].max()) for each in ((drawn, of_drawn), (plan, lengths)))
    if batch_size is not None and theirs != ours:
        said.append(f"Their largest batch has {theirs:,} padded frames, the plan's {ours:,}")
    if plan.world_size > 1:
        waiting = words.percent(own.straggler_waste)
        said.append(f"Ranks wait {waiting} of the time for each other")
    said += _exceptions(own, item)
    if taken:
        said.append(f"Each rank has had {taken:,} of its {words.count(batches, 'batch', 'batches')}")
    return ".\n".join(said) + "."


def describe_padding(plan: EpochPlan, lengths: ArrayLike) -> str:
    """Says how many steps an epoch has, and what it pads; of windows, the first.

    >>> describe_padding(make_plan([5, 9, 2, 4], Batching(cut=FixedSize(4))), [5, 9, 2, 4])
    'Lengthwise: epoch 0 has 1 step; 44.4 % of what it computes is padding.'
    """
    steps, where, epoch = words.count(plan.steps, "step"), "", plan.epoch
    if isinstance(plan, WindowEpoch):
        plan, lengths = _first_window(plan, lengths)
        where = " in its first window"
    frames, computed = (frames.sum() for frames in sum_frames(plan, lengths))
    share = words.percent(1.0 - frames / max(computed, 1))
    return f"Lengthwise: epoch {epoch} has {steps}; {share} of what it computes is padding{where}."


def _first_window(epoch: WindowEpoch, lengths: ArrayLike) -> tuple[Plan, ArrayLike]:
    """Returns the plan and the lengths of the first window with a batch: an earlier run may have left one without."""
    window = epoch.window(epoch.find(0)[0] if epoch.steps else epoch.first)
    return window.plan, np.asarray(lengths)[window.numbers]


def _plan_random(plan: Plan, lengths: ArrayLike, batching: Batching, cut: Cut) -> tuple[Plan, ArrayLike]:
    """A plan of random batches of the same sequences, and its lengths."""
    random = Batching(cut=cut, order=Shuffled(), cost=batching.cost, chunks=batching.chunks)
    if batching.chunks is None:  # an order may leave out what is over the budget, and another run may have had some
        lengths = np.asarray(lengths)[np.sort(plan.numbers)]
    elif plan.times is not None:
        lengths = np.repeat(lengths, plan.times, axis=0)
    with warnings.catch_warnings():  # what these warn of, the plan itself has warned of
        warnings.simplefilter("ignore")
        planned = make_plan(
            lengths, random, seed=plan.seed, world_size=plan.world_size, micro_batches=plan.micro_batches
        )
    return planned, lengths


def _beside(own: Measures, random: Measures, batching: Batching, batch_size: int | None, *, there: str) -> str:
    # Of 100 frames of data, 10 % padding makes 111 frames, 60 % 250: 2.25 times as many.
    times = own.fill / random.fill
    pad = f"pad {words.percent(random.padding_share)}"
    if batch_size is not None:
        told = f"Random batches of {batch_size:,} take {words.count(random.steps, 'step')}{there}, {pad}"
    elif isinstance(batching.cut, Budget):
        told = f"Random batches under this budget {pad}"
    else:
        told = f"Random batches of the same cut {pad}"
    if times <= _SAME:
        return f"{told}, and compute as much" if batch_size is not None else f"{told} too"
    more = f"{times:,.2g} times as much" if times >= _TIMES else f"{words.percent(times - 1.0)} more"
    return f"{told}, and compute {more}"


def _per_step(plan: EpochPlan) -> str:
    each = "each of " if plan.world_size > 1 else ""
    return f"of {words.count(plan.micro_batches, 'batch', 'batches')} on {each}{words.count(plan.world_size, 'rank')}"


def _range(own: Measures, item: str) -> str:
    if own.smallest_batch == own.largest_batch:
        return words.count(own.largest_batch, item)
    return f"{own.smallest_batch:,} to {words.count(own.largest_batch, item)}"


def _exceptions(own: Measures, item: str) -> list[str]:
    """What is not as usual, a sentence each."""
    said = []
    if own.dropped:
        said.append(f"Left out: {words.count(own.dropped, item)}")
    if own.repeated:
        said.append(f"Taken a second time, without weight: {words.count(own.repeated, item)}")
    if own.over_max_cost:
        said.append(f"Over the budget: {words.count(own.over_max_cost, 'batch', 'batches')}")
    return said


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
