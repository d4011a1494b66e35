"""The answers: sentences made of the intervals, and of nothing else.

Two strategies can be told apart where the interval of their paired difference excludes 0, and only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lengthwise_recipes.intervals import CONFIDENCE, Interval, read_interval
from lengthwise_recipes.quality.comparisons import DECIDING, MEASURES
from lengthwise_recipes.quality.power import power_sentence

Document = Mapping[str, Any]

PLACES = {"smallest": 0, "largest": -1}  # of a task's paddings
SPEED = (
    "Less loss than random batches in equal time is speed: batches that pad less take more epochs in the same time. It "
    "says nothing of the model after as many epochs."
)


class Tally(NamedTuple):
    """How many of some differences can be told apart from 0, and in which direction."""

    lower: int
    higher: int
    total: int

    @property
    def by_chance(self) -> float:
        """How many would seem to differ if none did."""
        return (1.0 - CONFIDENCE) * self.total


def tally(differences: Iterable[Interval]) -> Tally:
    """Counts differences below 0, above 0, and all.

    >>> tally([Interval(mean=-1.0, low=-1.5, high=-0.5, runs=3), Interval(mean=0.1, low=-0.2, high=0.4, runs=3)])
    Tally(lower=1, higher=0, total=2)
    """
    found = list(differences)
    apart = [each.mean for each in found if each.excludes_zero]
    return Tally(lower=sum(mean < 0.0 for mean in apart), higher=sum(mean > 0.0 for mean in apart), total=len(found))


def answers(documents: Sequence[Document]) -> list[str]:
    """Sentences: at equal padding, what follows and whether it follows at every padding, and beside random batches."""
    ours = documents[0]["ours"]
    beside = "; ".join(f"{document['task']} {signed_text(beside_random(document))}" for document in documents)
    found = {measure: record(documents, ours, measure) for measure in MEASURES}
    others = "; ".join(
        f"lower in {found[measure].lower} and higher in {found[measure].higher} {words}"
        for measure, words in MEASURES.items()
        if measure != DECIDING
    )
    return [
        conclusion(found[DECIDING]),
        f"The rest cannot be told apart. By chance alone, about {found[DECIDING].by_chance:.1f} would seem to differ.",
        power_sentence(documents, DECIDING),
        *by_padding(documents),
        f"By the other measures: {others}.",
        f"{SPEED} The loss of max-entropy batching less that of random batches, on test sequences in equal training "
        f"time: {beside}.",
        below_random(documents),
    ]


def record(documents: Sequence[Document], order: str, measure: str, place: int | None = None) -> Tally:
    """An order beside the others of its padding, on all tasks; at one place of each task's paddings, if given."""
    return tally(each for document in documents for each in _differences(document, order, measure, place))


def _differences(document: Document, order: str, measure: str, place: int | None) -> Iterator[Interval]:
    """The losses of an order less those of each other of its padding."""
    orders = {each["label"]: each["order"] for each in document["strategies"]}
    for each in document["comparisons"]:
        if each["measure"] != measure or (place is not None and each["padding"] != document["paddings"][place]):
            continue
        if orders[each["one"]] == order:
            yield read_interval(each["difference"])
        elif orders[each["other"]] == order:
            yield read_interval(each["difference"]).negative


def by_padding(documents: Sequence[Document]) -> list[str]:
    """What the conclusion rests on at the smallest and at the largest padding of each task, where these differ."""
    if all(len(document["paddings"]) == 1 for document in documents):
        return []
    parts = []
    for name, place in PLACES.items():
        shares = sorted({100 * document["paddings"][place] for document in documents})
        counts = record(documents, documents[0]["ours"], DECIDING, place)
        span = " to ".join(f"{share:g}" for share in dict.fromkeys((shares[0], shares[-1])))
        parts.append(f"at the {name} ({span} %) lower in {counts.lower} of {counts.total}, higher in {counts.higher}")
    return [f"By padding: {'; '.join(parts)}."]


def beside_random(document: Document) -> Interval:
    """Max-entropy batching of the largest padding less random batches, both of one batch size, by the same measure."""
    ours = [each for each in document["strategies"] if each["order"] == document["ours"] and not each["dynamic"]]
    return read_interval(max(ours, key=lambda each: each["padding"])["to_random"][DECIDING])


def below_random(documents: Sequence[Document]) -> str:
    """Of how many orders that were brought to a padding the loss is told to be below that of random batches."""
    in_time, by_epochs = (
        "; ".join(_below_random(document, measures) for document in documents)
        for measures in (("equal_seconds", "test_equal_seconds"), ("last", "test_last"))
    )
    return (
        "How many strategies brought to a padding have less loss than random batches, first on validation and then on "
        f"test sequences. In equal training time: {in_time}. After as many epochs: {by_epochs}."
    )


def _below_random(document: Document, measures: Sequence[str]) -> str:
    fitted = [each for each in document["strategies"] if each["padding"] is not None and not each["dynamic"]]
    lower = (tally(read_interval(each["to_random"][measure]) for each in fitted).lower for measure in measures)
    return f"{document['task']} {' and '.join(f'{count} of {len(fitted)}' for count in lower)}"


def conclusion(counts: Tally) -> str:
    """What follows for the default.

    The rule, set before anything was measured: more comparisons must point one way than the other, and more than chance
    alone would tell apart.
    """
    told = (
        f"At equal padding and in equal training time, its loss on test sequences is lower than another order's in "
        f"{counts.lower} of {counts.total} comparisons, and higher in {counts.higher}."
    )
    if counts.lower > max(counts.higher, counts.by_chance):
        return f"These results speak for max-entropy batching as the default. {told}"
    if counts.higher > max(counts.lower, counts.by_chance):
        return f"These results speak against max-entropy batching as the default. {told}"
    return f"These results do not say whether max-entropy batching or another order is better. {told}"


def signed_text(found: Interval, *, mark: str = ", which is not told apart from 0") -> str:
    """A difference and its interval, marked where it includes 0.

    >>> signed_text(Interval(mean=-0.123, low=-0.2, high=-0.05, runs=5))
    '-0.123 (-0.200 to -0.050)'
    """
    if found.unknown:
        return "not known"
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}){'' if found.excludes_zero else mark}"
