"""Sentences: what is recommended, by which rule, and what it saves."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from lengthwise.advice.answer import LEAP, NOTHING, WITHIN, AdviceRow, relative
from lengthwise.advice.contenders import OTHER_CUT
from lengthwise.advice.question import Question
from lengthwise.choices.cut import Budget, FixedSize
from lengthwise.choices.order import Bucketed, MaxEntropy, Shuffled

_WORDS = {
    "random": "random order",
    "sorted": "in the order of their lengths",
    "windowed": "shuffled, then sorted within windows",
    "dynamic-buckets": "buckets of as many frames each",
    "semi-sorted": "length plus uniform noise (Ge 2021)",
    "optimal": "buckets that pad least (Khomenko 2016)",
    "bucketed": "sorted, then cut into buckets, shuffled (Ge 2021)",
    "alternated": "random bins, sorted up and down in turn (Doetsch 2017)",
}
_SAME = 0.005  # of a price: a smaller difference is not worth a word
_MANY = 0.02  # more steps of an epoch are worth a word


def write_sentence(
    rows: Sequence[AdviceRow],
    best: AdviceRow,
    more_mixed: AdviceRow | None,
    question: Question,
    *,
    limit: float | None,
    least: float,
) -> str:
    """The sentences of an advice.

    Args:
        rows: All that are shown, random batches first.
        best: The one that is recommended.
        more_mixed: The one that would be, if more might be spent for mixing.
        limit: Of mixing, at its padding.
        least: The least price of what may be recommended.
    """
    if not len(question.lengths):
        return "You have nothing to gain: there are no sequences."
    random = rows[0]
    # Random batches may also be the best because a wide `within` affords their mixing: then there is something to gain.
    if best is random and random.price <= least * (1 + WITHIN):
        return _nothing(rows, random, question, least=least)
    said = [_name(best, question), _reason(best, question, limit, least=least), _saving(best, question)]
    if (more := _more_steps(best, random)) is not None:
        said.append(more)
    if (others := _others(rows, best, question)) is not None:
        said.append(others)
    if more_mixed is not None:
        said.append(_offer(more_mixed, best, question, least=least))
    if len(question.sample) < len(question.lengths):
        said.append(f"Measured on a random {len(question.sample):,} of the {len(question.lengths):,} sequences")
    return ". ".join(said) + "."


def _nothing(rows: Sequence[AdviceRow], random: AdviceRow, question: Question, *, least: float) -> str:
    """That random batches are as good as any; of what trainers ship and costs less, why it is not recommended."""
    cheapest = min(rows, key=lambda row: row.price)
    if random.price <= cheapest.price * (1 + WITHIN):
        more = relative(random.price, least) - 1
        much = f"{_percent(more)} more than the cheapest" if more > _SAME else "no more than the cheapest"
        return f"You have nothing to gain: random batches {_verb(question)} {much}. Shuffle."
    sizes = [row.measures.sequences / max(1, row.measures.steps) for row in (cheapest, random)]
    but = f"its steps hold {sizes[0]:,.3g}, and those of random batches {sizes[1]:,.3g} sequences on average"
    if dropped := cheapest.measures.dropped - random.measures.dropped:
        but = f"it drops {dropped:,} sequences more, in {cheapest.measures.epochs} epochs"
    return (
        f"You have nothing to gain: with steps as large, nothing {_verb(question)}s less than random batches. Shuffle. "
        f"{cheapest.label} ({cheapest.ships_in}) {_verb(question)}s {_more(cheapest.of_random)} they do, but {but}."
    )


def is_least(random: AdviceRow, least: float) -> bool:
    """Whether nothing costs clearly less than random batches."""
    return random.price <= least * (1 + NOTHING)


def _name(best: AdviceRow, question: Question) -> str:
    what = f"Take {best.label.removesuffix(OTHER_CUT)}: {_describe(best)}"
    cut = best.batching.cut
    if cut == question.cut or not isinstance(cut, Budget):
        return what
    size = best.measures.sequences / max(1, best.measures.steps)
    return (
        f"{what}. Cut it by a budget of {cut.budget:,.0f} padded frames, the memory of your longest batch; "
        f"a step then holds {size:,.0f} sequences on average"
    )


def _describe(row: AdviceRow) -> str:
    """What a strategy does, in a few words."""
    order, name = row.batching.order, re.split("[:,]", row.label)[0]
    if isinstance(order, MaxEntropy) and order.padding is not None:
        return f"as random as {100 * order.padding:.2g} % padding allows"
    if isinstance(order, Shuffled) and row.batching.takes_random_steps:
        return "each step is a random sample, sorted into its batches"
    return _WORDS[name]


def _reason(best: AdviceRow, question: Question, limit: float | None, *, least: float) -> str:
    if best.price > least * (1 + question.within):
        steps = "its steps mix" if question.world.slots > 1 else "it mixes"
        more = _percent(relative(best.price, least) - 1)
        # The leap of the rule.
        near = f"at least {LEAP:g} more than all within {_percent(question.within)} of the cheapest"
        return f"It {_verb(question)}s {more} more than the cheapest, and {steps} {best.mixing:.2f}, {near}"
    mixes = f"{'its steps mix' if question.world.slots > 1 else 'it mixes'} most, {best.mixing:.2f}"
    if limit is not None and best.mixing < limit < 1:
        mixes += f" ({limit:.2f} is the limit at its padding)"
    return f"Of all that {_verb(question)} at most {_percent(question.within)} more than the cheapest, {mixes}"


def _saving(best: AdviceRow, question: Question) -> str:
    if best.label == "random":
        return "That is what Lightning and the Trainer ship"
    return f"An epoch {_verb(question)}s {_more(best.of_random)} random batches (Lightning, Trainer)"


def _offer(more_mixed: AdviceRow, best: AdviceRow, question: Question, *, least: float) -> str:
    """What mixes far more, for somewhat more, and what to ask for to have it."""
    allowed = math.ceil(100 * (relative(more_mixed.price, least) - 1))
    more = _percent(relative(more_mixed.price, best.price) - 1)
    mixes = f"{more_mixed.label} mixes {more_mixed.mixing:.2f}"
    return f"Within {allowed} % of the cheapest, {mixes} and {_verb(question)}s {more} more"


def _more_steps(best: AdviceRow, random: AdviceRow) -> str | None:
    """What batches that are not full cost beside the frames: buckets of 100 sequences make 7 batches of 16."""
    more = relative(best.measures.steps, random.measures.steps) - 1
    if not (isinstance(best.batching.cut, FixedSize) and isinstance(best.batching.order, Bucketed)) or more < _MANY:
        return None
    return f"An epoch has {_percent(more)} more steps, because the last batch of each bucket is not full"


def _others(rows: Sequence[AdviceRow], best: AdviceRow, question: Question) -> str | None:
    """What the best costs beside the options of trainers, and what these mix."""
    others = [row for row in rows[1:] if row.ships_in and row is not best]
    if not others:
        return None
    costs = [f"{_more(relative(best.price, row.price))} {row.ships_in.replace(', ', ' and ')}" for row in others]
    mixing = _join([f"{row.mixing:.2f}" for row in others])
    return f"It {_verb(question)}s {_join(costs)}, which mix {mixing}"


def _more(ratio: float) -> str:
    """How much more or less than another, whose name follows.

    >>> _more(0.71), _more(1.001), _more(2.6)
    ('29 % less than', 'as much as', '2.6 times as much as')
    """
    if abs(ratio - 1) < _SAME:
        return "as much as"
    if ratio >= 2:
        return f"{ratio:.1f} times as much as"
    return f"{_percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'} than"


def _join(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _verb(question: Question) -> str:
    return {"frames": "compute", "seconds": "take", "cost": "cost"}[question.unit]


def _percent(share: float) -> str:
    """In whole percent, or, below 1 %, with a digit more.

    >>> _percent(0.05), _percent(0.005)
    ('5 %', '0.5 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else f"{100 * share:.1g} %"
