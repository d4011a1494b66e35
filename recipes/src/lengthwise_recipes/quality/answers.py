"""The answers: sentences made from the intervals alone.

Two strategies can be told apart only if the interval of their paired difference excludes 0.
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
    "A lower loss than that of random batches in equal time shows speed. It says nothing about the model after equally "
    "many epochs."
)


class Tally(NamedTuple):
    """The counts of differences that can be told apart from 0, by direction."""

    lower: int
    higher: int
    total: int

    @property
    def by_chance(self) -> float:
        """The expected count of differences told apart by chance alone."""
        return (1.0 - CONFIDENCE) * self.total


def tally(differences: Iterable[Interval]) -> Tally:
    """Counts differences below 0, above 0, and all.

    >>> tally([Interval(mean=-1.0, low=-1.5, high=-0.5, runs=3), Interval(mean=0.1, low=-0.2, high=0.4, runs=3)])
    Tally(lower=1, higher=0, total=2)
    """
    listed = list(differences)
    apart = [interval.mean for interval in listed if interval.excludes_zero]
    return Tally(lower=sum(mean < 0.0 for mean in apart), higher=sum(mean > 0.0 for mean in apart), total=len(listed))


def answers(documents: Sequence[Document]) -> list[str]:
    """Returns the sentences: the conclusion at equal padding, at each padding, and compared with random batches."""
    ours = documents[0]["ours"]
    to_random = "; ".join(f"{document['task']} {signed_text(difference_to_random(document))}" for document in documents)
    tallies = {measure: record(documents, ours, measure) for measure in MEASURES}
    by_measure = "; ".join(
        f"lower in {tallies[measure].lower} and higher in {tallies[measure].higher} {words}"
        for measure, words in MEASURES.items()
        if measure != DECIDING
    )
    return [
        conclusion(tallies[DECIDING]),
        f"The others show no difference. By chance alone, about {tallies[DECIDING].by_chance:.1f} would show one.",
        power_sentence(documents, DECIDING),
        *by_padding(documents),
        f"By the other measures: {by_measure}.",
        f"{SPEED} The loss of max-entropy batching minus that of random batches, on test sequences: {to_random}.",
        below_random(documents),
    ]


def record(documents: Sequence[Document], order: str, measure: str, place: int | None = None) -> Tally:
    """Compares an order with the other orders of its padding on all tasks; at one place of their paddings, if given."""
    return tally(difference for document in documents for difference in _differences(document, order, measure, place))


def _differences(document: Document, order: str, measure: str, place: int | None) -> Iterator[Interval]:
    """Yields the losses of an order minus those of each other order of its padding."""
    orders = {strategy["label"]: strategy["order"] for strategy in document["strategies"]}
    for row in document["comparisons"]:
        if row["measure"] != measure or (place is not None and row["padding"] != document["paddings"][place]):
            continue
        if orders[row["one"]] == order:
            yield read_interval(row["difference"])
        elif orders[row["other"]] == order:
            yield read_interval(row["difference"]).negative


def by_padding(documents: Sequence[Document]) -> list[str]:
    """Returns the counts at the smallest and at the largest padding of each task, if these differ."""
    if all(len(document["paddings"]) == 1 for document in documents):
        return []
    parts = []
    for name, place in PLACES.items():
        shares = sorted({100 * document["paddings"][place] for document in documents})
        counts = record(documents, documents[0]["ours"], DECIDING, place)
        span = " to ".join(f"{share:g}" for share in dict.fromkeys((shares[0], shares[-1])))
        parts.append(f"at the {name} ({span} %) lower in {counts.lower} of {counts.total}, higher in {counts.higher}")
    return [f"By padding: {'; '.join(parts)}."]


def difference_to_random(document: Document) -> Interval:
    """Returns the loss of max-entropy batching at the largest padding minus that of random batches of the same size."""
    ours = [row for row in document["strategies"] if row["order"] == document["ours"] and not row["dynamic"]]
    return read_interval(max(ours, key=lambda row: row["padding"])["to_random"][DECIDING])


def below_random(documents: Sequence[Document]) -> str:
    """Counts the strategies with a knob whose loss is lower than that of random batches."""
    in_time, by_epochs = (
        "; ".join(_below_random(document, measures) for document in documents)
        for measures in (("equal_seconds", "test_equal_seconds"), ("last", "test_last"))
    )
    return (
        "Strategies with a knob that have a lower loss than random batches, on validation and on test sequences. In "
        f"equal training time: {in_time}. After equally many epochs: {by_epochs}."
    )


def _below_random(document: Document, measures: Sequence[str]) -> str:
    fitted = [row for row in document["strategies"] if row["padding"] is not None and not row["dynamic"]]
    lower = (tally(read_interval(row["to_random"][measure]) for row in fitted).lower for measure in measures)
    return f"{document['task']} {' and '.join(f'{count} of {len(fitted)}' for count in lower)}"


def conclusion(counts: Tally) -> str:
    """Returns the conclusion for the default.

    Set before the study: more comparisons must point one way than the other, and more than by chance alone.
    """
    counts_text = (
        f"At equal padding and in equal training time, its loss on test sequences is lower than another order's in "
        f"{counts.lower} of {counts.total} comparisons, and higher in {counts.higher}."
    )
    if counts.lower > max(counts.higher, counts.by_chance):
        return f"These results speak for max-entropy batching as the default. {counts_text}"
    if counts.higher > max(counts.lower, counts.by_chance):
        return f"These results speak against max-entropy batching as the default. {counts_text}"
    return f"These results do not say whether max-entropy batching or another order is better. {counts_text}"


def signed_text(difference: Interval, *, mark: str = ", not told apart from 0") -> str:
    """Writes a difference and its interval, with a mark if it includes 0.

    >>> signed_text(Interval(mean=-0.123, low=-0.2, high=-0.05, runs=5))
    '-0.123 (-0.200 to -0.050)'
    """
    if difference.unknown:
        return "not known"
    bounds = f"({difference.low:+.3f} to {difference.high:+.3f})"
    return f"{difference.mean:+.3f} {bounds}{'' if difference.excludes_zero else mark}"
