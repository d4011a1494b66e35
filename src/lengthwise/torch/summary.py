"""The summary of an epoch in sentences, compared with random batches."""

from __future__ import annotations

import json
import warnings

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.advice.answer import ATTENTION, BALANCE, MISSED, describe_attention
from lengthwise.choices.arithmetic import length_multiple
from lengthwise.choices.batching import Batching, group_by_length
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Cut, FixedSize
from lengthwise.choices.deal import Deal, World
from lengthwise.choices.order import Order, Shuffled
from lengthwise.measures.metrics import Measures, measure, price_of, sum_frames, wait_under
from lengthwise.planning import make_plan
from lengthwise.planning.plan import Plan
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch
from lengthwise.report import words

_MUCH_WAITING = 0.05  # a smaller share of the time is not worth a sentence on attention
_RANDOM = Shuffled()


def summarize(
    plan: EpochPlan,
    lengths: ArrayLike,
    batching: Batching,
    *,
    earlier_batches: int = 0,
    plan_start: int = 0,
    batch_size: int | None = None,
    arrived: ArrayLike = (0, 0),
) -> str:
    """Returns sentences on the steps of an epoch, its batches, its padding, and the padding of random batches.

    Args:
        plan: The plan of the epoch; if it has windows, the first one is measured.
        lengths: [n] or [n, dims], of all sequences.
        batching: The batching of the plan.
        earlier_batches: The batches of each rank in earlier runs of the epoch; the plan is of the rest.
        plan_start: The batches of the plan that each rank has had.
        batch_size: The sequences in a random batch; by default the mean of the plan.
        arrived: [2], the frames without and with padding in the batches that loaders have read.

    >>> lengths = [5, 9, 2, 4] * 10
    >>> batching = Batching(budget=40, padding=0.05)
    >>> print(summarize(make_plan(lengths, batching, micro_batches=2), lengths, batching, plan_start=4))
    Epoch 0 has 4 steps of 2 batches on 1 rank.
    A batch holds 2 to 10 sequences, a step 10 on average.
    Padding is 3.4 %: 1.04 frames are computed for each frame of data.
    Random batches of 5 take 4 steps, pad 41.2 % and compute 1.70.
    Their largest batch has 45 padded frames, the plan's 30.
    Batches are as random as 5 % padding allows; the Trainer's group_by_length computes 1.30.
    Each rank has had 4 of its 8 batches.
    """
    steps = f"{words.count(plan.steps, 'step')} {'left, ' if earlier_batches else ''}{_per_step(plan)}"
    sentences = [f"Epoch {plan.epoch} has {steps}"]
    if not plan.steps:
        return f"{sentences[0]}."
    where, batches = "", len(plan)
    if isinstance(plan, WindowEpoch):
        plan, lengths = _first_window(plan, lengths)
        where = " in the first window"
    if plan.times is not None:
        sequences = f"{np.count_nonzero(plan.times):,} of {words.count(len(plan.times), 'sequence')}"
        copies = words.count(int(plan.times.sum()), "copy", "copies")
        sentences.append(f"It takes {sequences}, and {copies} of them in all")
    measures = measure(plan, lengths)
    size = max(1, round(measures.mean_batch)) if batch_size is None else batch_size
    item = "sequence" if batching.chunks is None else "chunk"
    mean = measures.mean_batch * measures.batches / measures.steps
    on_average = f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"
    sentences.append(f"A batch holds {_range(measures, item)}, a step {on_average} on average")
    share, frames = words.percent(measures.padding_share), words.computed(measures.padding_share)
    sentences.append(f"Padding is {share}{where}: {frames} frames are computed for each frame of data")
    useful, computed = np.asarray(arrived).tolist()
    if computed:
        share = words.percent(1.0 - useful / computed)
        sentences.append(f"It is {share} in the batches that were read, by their masks")
    sentences += _compare((plan, lengths), _plan_beside(plan, lengths, batching, FixedSize(size)), size)
    if plan.world_size > 1:
        waiting = words.percent(measures.straggler_waste)
        sentences.append(f"Ranks wait {waiting} of the time for each other")
    sentences.append(_price(measures, plan, lengths, batching, size))
    if plan.world_size > 1 and batching.balance is None and isinstance(batching.cost, Padded):
        waiting = wait_under([plan], lengths, ATTENTION)
        if waiting > _MUCH_WAITING:
            sentences.append(f"{describe_attention(waiting)}; they wait less with {BALANCE}")
    sentences += _exceptions(measures, item)
    if plan_start:
        sentences.append(f"Each rank has had {plan_start:,} of its {words.count(batches, 'batch', 'batches')}")
    return ".\n".join(sentences) + "."


def describe_padding(plan: EpochPlan, lengths: ArrayLike, *, earlier_batches: int = 0) -> str:
    """Returns one sentence on the steps and the padding of an epoch, or of its first window.

    If earlier runs had some batches, the plan is of the rest.

    >>> describe_padding(make_plan([5, 9, 2, 4], Batching(cut=FixedSize(4))), [5, 9, 2, 4])
    'Lengthwise: epoch 0 has 1 step; 44.4 % of its frames are padding.'
    """
    steps, where, epoch = words.count(plan.steps, "step"), "", plan.epoch
    steps += " left" if earlier_batches else ""
    if isinstance(plan, WindowEpoch):
        plan, lengths = _first_window(plan, lengths)
        where = " in its first window"
    frames, computed = (frames.sum() for frames in sum_frames(plan, lengths))
    share = words.percent(1.0 - frames / max(computed, 1))
    return f"Lengthwise: epoch {epoch} has {steps}; {share} of its frames are padding{where}."


def _first_window(epoch: WindowEpoch, lengths: ArrayLike) -> tuple[Plan, ArrayLike]:
    """Returns the plan and the lengths of the first window that has batches left."""
    window = epoch.window(epoch.find(0)[0] if epoch.steps else epoch.first)
    return window.plan, np.asarray(lengths)[window.numbers]


def _price(measures: Measures, plan: Plan, lengths: ArrayLike, batching: Batching, size: int) -> str:
    """Returns a sentence on the decision, its price, and that of the Trainer's group_by_length."""
    described, subject = json.loads(plan.batching), ""
    if batching.order is None:
        padding = described["order"].get("padding")
        subject = "Steps are random samples"
        if padding is not None:
            alike = plan.grid[0].size > 1 and described["deal"]["choice"] == "deal.Balanced"
            cost = " and of similar cost in each step" if alike else ""
            subject = f"Batches are as random as {100 * padding:.3g} % padding allows{cost}"
            if measures.padding_share > padding + MISSED:
                subject = f"So few batches cannot keep to {100 * padding:.3g} % of padding"
    world = World(plan.world_size, plan.micro_batches)
    cut = FixedSize(size, multiple_of=length_multiple(batching.cut))
    grouped = _plan_beside(plan, lengths, batching, cut, *group_by_length(size, measures.sequences, world))
    price = f"the Trainer's group_by_length computes {price_of(*grouped):.2f}"
    if plan.world_size > 1:
        price = (
            f"the price is {measures.price:.2f}, waiting counted, and that of group_by_length {price_of(*grouped):.2f}"
        )
    return f"{subject}; {price}" if subject else price[:1].upper() + price[1:]


def _plan_beside(
    plan: Plan, lengths: ArrayLike, batching: Batching, cut: Cut, order: Order = _RANDOM, deal: Deal | None = None
) -> tuple[Plan, ArrayLike]:
    """Returns another plan of the same sequences, by default of random batches, and its lengths."""
    shared = {"cost": batching.cost, "chunks": batching.chunks, "balance": batching.balance}
    other = Batching(cut=cut, order=order, deal=deal, **shared)
    if batching.chunks is None:  # only those of the plan: an order or an earlier run may have left some out
        lengths = np.asarray(lengths)[np.sort(plan.numbers)]
    elif plan.times is not None:
        lengths = np.repeat(lengths, plan.times, axis=0)
    with warnings.catch_warnings():  # the plan has already given the same warnings
        warnings.simplefilter("ignore")
        planned = make_plan(
            lengths, other, seed=plan.seed, world_size=plan.world_size, micro_batches=plan.micro_batches
        )
    return planned, lengths


def _compare(ours: tuple[Plan, ArrayLike], random: tuple[Plan, ArrayLike], size: int) -> list[str]:
    """Returns sentences on random batches of a size, and on their largest, unless the plan's is as large."""
    padding, steps = measure(*random).padding_share, words.count(random[0].steps, "step")
    pad = f"pad {words.percent(padding)} and compute {words.computed(padding)}"
    largest, planned = (int(sum_frames(*pair)[1].max()) for pair in (random, ours))
    beside = f"Their largest batch has {largest:,} padded frames, the plan's {planned:,}"
    return [f"Random batches of {size:,} take {steps}, {pad}", *([beside] if largest != planned else [])]


def _per_step(plan: EpochPlan) -> str:
    every = "each of " if plan.world_size > 1 else ""
    return f"of {words.count(plan.micro_batches, 'batch', 'batches')} on {every}{words.count(plan.world_size, 'rank')}"


def _range(measures: Measures, item: str) -> str:
    if measures.smallest_batch == measures.largest_batch:
        return words.count(measures.largest_batch, item)
    return f"{measures.smallest_batch:,} to {words.count(measures.largest_batch, item)}"


def _exceptions(measures: Measures, item: str) -> list[str]:
    """Returns a sentence for each exception: sequences left out or repeated, batches over the budget."""
    sentences = []
    if measures.dropped:
        sentences.append(f"Left out: {words.count(measures.dropped, item)}")
    if measures.repeated:
        sentences.append(f"Taken a second time, without weight: {words.count(measures.repeated, item)}")
    if measures.over_max_cost:
        sentences.append(f"Over the budget: {words.count(measures.over_max_cost, 'batch', 'batches')}")
    return sentences
