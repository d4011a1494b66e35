"""advise: searches batchings for the one that is worth most on these lengths."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.advice.answer import LEAP, Advice, AdviceRow, affordable, epoch_price, relative
from lengthwise.advice.contenders import (
    OTHER_CUT,
    Contender,
    between,
    of_equal_memory,
    of_papers,
    on_sample,
    ours,
    shipped,
    sort_alone,
)
from lengthwise.advice.question import Question, read_question
from lengthwise.advice.sentences import is_least, write_sentence
from lengthwise.advice.snippet import write_loop
from lengthwise.advice.step_cost import StepCost
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost
from lengthwise.choices.cut import Cut, FixedSize
from lengthwise.choices.order import Sorted, finds_noise
from lengthwise.measures.limit import mixing_limit
from lengthwise.measures.metrics import epochs_to_pool, measure_pooled
from lengthwise.planning.make import NoStepError, make_plan

Watch = Callable[[Sequence[Contender]], Iterable[Contender]]

_MOST_EPOCHS = 8  # of each contender
_CLEAR = 0.005  # of mixing: what is less is chance
_OTHER_CUT = 1.1  # times the mixing: so much more must another cut mix than the one that was asked for
_MOST_CHANGE = 2  # times as many sequences, or as few, as a step of random batches holds
_DROPPED = 0.01  # of all sequences: no more than this may a batching drop that random batches keep
_DEARER = 0.2  # of the least: within this, what mixes far more than the best is worth a sentence
_FAR = 0.25  # of mixing


def advise(
    lengths: ArrayLike,
    cut: Cut,
    *,
    cost: Cost | StepCost | None = None,
    within: float | None = None,
    world_size: int = 1,
    micro_batches: int = 1,
    seed: int = 0,
) -> Advice:
    """Tries batchings on these lengths, and recommends one: with a reason, what it saves, and the code.

    It plans some epochs by each of dozens of batchings: ours, those of three papers, and those that trainers ship. The
    rule: of all that cost at most 5 % more than the cheapest, it takes the one whose steps mix most; or, of all that
    cost at most 15 % more, if that mixes at least 0.5 more.

    Without a `cost`, a batching costs the frames that its slowest ranks compute, padding included: a frame takes as
    long in every batch. Of more than 262,144 sequences, a random 262,144 are measured, or as many
    as make 16 steps.

    Args:
        lengths: [n] or [n, dims].
        cut: `FixedSize`, `Budget` or `DynamicSize`, as you train now. Beside a `FixedSize`, the budget whose batches
            take as much memory is tried too, where its steps hold at most twice as many sequences. It is recommended
            only where it mixes a tenth more, or costs less than your cut can.
        cost: A `StepCost`, for prices in seconds; or any cost, in its unit.
        within: How much more than the cheapest a batching may cost for its mixing, as a share of its price: in place of
            the 5 and 15 %.
        world_size: Ranks of the run.
        micro_batches: Batches of a rank in a step.
        seed: Of the plans that are compared, and of the sample.

    Returns:
        The advice. The same inputs give the same.

    Raises:
        ValueError: A cut that is none of the three; a number out of range; a sequence over the budget.

    >>> import lengthwise as lw
    >>> advice = lw.advise([7, 7, 7, 7], lw.FixedSize(2))
    >>> print(advice)
    You have nothing to gain: random batches compute no more than the cheapest. Shuffle.

    References:
        Khomenko et al. 2016, Doetsch et al. 2017 and Ge et al. 2021 for the strategies of papers.
    """
    question = read_question(
        lengths,
        cut,
        cost=cost,
        within=within,
        world_size=world_size,
        micro_batches=micro_batches,
        seed=seed,
    )
    return answer(question, watch=iter)


def answer(question: Question, *, watch: Watch) -> Advice:
    """The advice; `watch` is given each list of contenders before they are measured, and shows progress."""
    with warnings.catch_warnings():  # nobody asked for these paddings, and each row says what it has
        warnings.filterwarnings("ignore", message="`padding` must be")
        rows = _drop_incomparable(_measure_all(question, watch))
        rows += _measure_each(_spend_rest(rows, question), question, iter)
    rows = _drop_incomparable(rows)
    rows = _set_beside_random(_drop_equals(rows))
    fit = [row for row in rows if _is_comparable(row, rows[0])]
    best, least = _choose(fit, question), min(row.price for row in fit)
    more_mixed = _choose_more_mixed(fit, best, question)
    limit = _limit(question, best)
    return Advice(
        candidates=tuple(sorted(rows, key=lambda row: row.price)),
        best=best,
        more_mixed=more_mixed,
        sentence=write_sentence(rows, best, more_mixed, question, limit=limit, least=least),
        code=write_loop(best.batching, micro_batches=question.world.micro_batches),
        limit=limit,
        unit=question.unit,
        sequences=len(question.lengths),
        measured=len(question.sample),
        world_size=question.world.world_size,
        micro_batches=question.world.micro_batches,
    )


def _measure_all(question: Question, watch: Watch) -> list[AdviceRow]:
    """Rows of all contenders, those that trainers ship first."""
    sizes, world, cut = question.sizes, question.world, question.cut
    first = [*shipped(cut, sizes, world, dims=question.dims)]
    first += [sort_alone(cut)] if world.slots > 1 else []
    known = _measure_each(first, question, watch)
    if not len(sizes):
        return known
    # Between the paddings of these, the knobs have something to turn.
    paddings = [row.measures.padding_share for row in known]
    ends = {"least": min(paddings), "most": max(paddings)}
    rest = [*ours(cut, world, **ends), *of_papers(cut, sizes, dims=question.dims)]
    budget = of_equal_memory(cut, question.lengths)
    # One batch a step pads and mixes the same by either cut, so that only a cost could tell them apart.
    if budget is not None and (world.slots > 1 or question.cost is not None):
        rest += ours(budget, world, **ends)
    return known + _measure_each(rest, question, watch)


def _is_comparable(row: AdviceRow, random: AdviceRow) -> bool:
    """Whether it trains about as random batches do, only faster.

    On a long tail a budget may hold ten times the sequences of a fixed size, and so take a tenth of the steps. And 32
    buckets of 100 sequences hold 3 each: batches of 3 pad less than batches of 16, whatever is in them. With
    `drop_incomplete`, they are dropped instead, and what is dropped costs nothing.
    """
    size, usual = (each.measures.sequences / max(1, each.measures.steps) for each in (row, random))
    if row.measures.dropped - random.measures.dropped > _DROPPED * row.measures.sequences:
        return False
    asked = random.batching.cut
    at_most = size <= _MOST_CHANGE * usual or row.batching.cut == asked
    return at_most and (size >= usual / _MOST_CHANGE or not isinstance(asked, FixedSize))


def _drop_incomparable(rows: list[AdviceRow]) -> list[AdviceRow]:
    """Only what trainers ship is shown also where it cannot be recommended."""
    return [row for row in rows if row.ships_in or _is_comparable(row, rows[0])]


def _spend_rest(rows: list[AdviceRow], question: Question) -> list[Contender]:
    """Max-entropy at the padding that spends all that may be spent for mixing, by each cut that was tried.

    At prices of 1.04 for a padding of 0.04 and of 1.06 for 0.05, 1.05 may be spent: 0.045.
    """
    most = min(row.price for row in rows if _is_comparable(row, rows[0])) * (1 + question.within)
    found = []
    for cut in dict.fromkeys(row.batching.cut for row in rows):
        own = [row for row in rows if row.batching == Batching(cut=cut, order=row.batching.order)]
        known = [(row.price, row.batching.order.padding or 0.0) for row in own if finds_noise(row.batching.order)]
        # Sorted batches pad least.
        known += [(row.price, row.measures.padding_share) for row in own if row.batching.order == Sorted()]
        steps = sorted(known)
        for (low, less), (high, more) in pairwise(steps):
            if low < most < high:
                padding = less + (more - less) * (most - low) / (high - low)
                found.append(between(cut, np.floor(1000 * padding) / 1000))
    return found


def _measure_each(contenders: Sequence[Contender], question: Question, watch: Watch) -> list[AdviceRow]:
    """Rows of those that take a step: of small buckets, `drop_incomplete` may drop every batch."""
    rows = []
    for each in watch(contenders):
        try:
            rows.append(_measure(each, question))
        except NoStepError:
            if each.label == "random":
                raise
    return rows


def _measure(contender: Contender, question: Question) -> AdviceRow:
    sample = question.sample
    batching = on_sample(contender.batching, len(sample) / max(1, len(question.lengths)))
    plans = [
        make_plan(sample, batching, seed=question.seed, epoch=epoch, **question.world._asdict())
        for epoch in range(epochs_to_plan(len(sample)))
    ]
    measures = measure_pooled(plans, sample)
    price = sum(epoch_price(plan, question.price) for plan in plans) / len(plans) * question.scale
    return AdviceRow(
        label=contender.label + ("" if contender.batching.cut == question.cut else OTHER_CUT),
        batching=contender.batching,
        ships_in=contender.ships_in,
        measures=measures,
        price=price,
        of_random=np.nan,
        on_front=False,
    )


def epochs_to_plan(count: int) -> int:
    """How many epochs each contender is measured on: fewer than one strategy of `compare`, for there are many more."""
    return min(epochs_to_pool(count), _MOST_EPOCHS)


def _drop_equals(rows: list[AdviceRow]) -> list[AdviceRow]:
    """Each plan once: of every padding beyond what random steps pad, the plan is that of random steps.

    What trainers ship stays, though it be equal to another.
    """
    first: dict[tuple[float, ...], AdviceRow] = {}
    for row in rows:
        first.setdefault((row.price, row.mixing, row.measures.padding_share, float(row.measures.steps)), row)
    kept = {id(row) for row in first.values()}
    return [row for row in rows if row.ships_in or id(row) in kept]


def _set_beside_random(rows: list[AdviceRow]) -> list[AdviceRow]:
    """The rows with what they are beside random batches, the first, and the others."""
    random = rows[0]
    front = {id(row) for row in _front(rows)}
    return [
        replace(
            row,
            of_random=relative(row.price, random.price),
            on_front=id(row) in front,
        )
        for row in rows
    ]


def _front(rows: list[AdviceRow]) -> Iterator[AdviceRow]:
    """The rows that no other beats, by rising price."""
    most = -1.0
    for row in sorted(rows, key=lambda row: (row.price, -row.mixing)):
        if row.mixing > most + _CLEAR:
            most = row.mixing
            yield row


def _choose(rows: list[AdviceRow], question: Question) -> AdviceRow:
    if is_least(rows[0], min(row.price for row in rows)):
        return rows[0]
    near, far = (_affordable(rows, within) for within in (question.within, question.further))
    best = _most_mixed(far, question)
    return best if best.mixing >= max(map(_mixing, near)) + LEAP else _most_mixed(near, question)


def _affordable(rows: list[AdviceRow], within: float) -> list[AdviceRow]:
    """All that cost at most `within` more than the least."""
    return [rows[place] for place in affordable([row.price for row in rows], within)]


def _most_mixed(near: list[AdviceRow], question: Question) -> AdviceRow:
    best = max(near, key=_mixing)
    own = max((row for row in near if row.batching.cut == question.cut), key=_mixing, default=best)
    # The cut that was asked for stays, unless another mixes clearly more, or costs less than it can.
    return best if best.mixing > _OTHER_CUT * own.mixing + _CLEAR else own


def _choose_more_mixed(rows: list[AdviceRow], best: AdviceRow, question: Question) -> AdviceRow | None:
    """What would be chosen, if more might be spent for mixing; None where that mixes little more."""
    dearer = _most_mixed(_affordable(rows, max(_DEARER, question.within)), question)
    return dearer if dearer.mixing > best.mixing + _FAR else None


def _mixing(row: AdviceRow) -> float:
    return row.mixing


def _limit(question: Question, best: AdviceRow) -> float | None:
    """The most mixing that any batch can have at the padding of the best; None of several lengths, and of steps."""
    if question.dims > 1 or question.world.slots > 1 or not len(question.sample):
        return None
    return mixing_limit(question.sample, min(best.measures.padding_share, 0.999), bins=best.measures.mixing_bins)
