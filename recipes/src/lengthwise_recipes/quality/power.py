"""What the study could have told: the smallest differences of loss that its comparisons would have shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from lengthwise_recipes.intervals import POWER, read_interval, smallest_shares
from lengthwise_recipes.pages import could_tell, percent, table

Document = Mapping[str, Any]


def detectable_shares(document: Document, measure: str) -> list[float]:
    """Of each comparison of max-entropy batching, the smallest difference it could have told, over the other's loss.

    Args:
        document: What `quality.study` gave for a task, as read back from JSON.
        measure: One of `comparisons.MEASURES`.

    Returns:
        Shares of the mean loss of the other strategy, one for each comparison by this measure.
    """
    strategies = {each["label"]: each for each in document["strategies"]}
    chosen = [
        each
        for each in document["comparisons"]
        if each["measure"] == measure and strategies[each["one"]]["order"] == document["ours"]
    ]
    losses = [read_interval(strategies[each["other"]]["losses"][measure]).mean for each in chosen]
    return smallest_shares([read_interval(each["difference"]) for each in chosen], losses)


def mean_detectable_share(document: Document, measure: str) -> str:
    """The mean of those shares in percent.

    >>> mean_detectable_share({"strategies": [], "comparisons": []}, "last")
    'nothing'
    """
    shares = detectable_shares(document, measure)
    return percent(sum(shares) / len(shares)) if shares else "nothing"


def power_sentence(documents: Sequence[Document], measure: str) -> str:
    """The smallest difference of each task that the seeds show reliably, mean over the comparisons."""
    shares = {document["task"]: mean_detectable_share(document, measure) for document in documents}
    told = ", ".join(f"{task} {'not known' if share == 'nothing' else share}" for task, share in shares.items())
    tries = Fraction(POWER).limit_denominator(100)
    return (
        f"The seeds show such a difference in {tries.numerator} of {tries.denominator} tries only if it is at least "
        f"this share of the loss: {told}."
    )


def power_table(documents: Sequence[Document], measures: Mapping[str, str]) -> str:
    """One row for each task, one column for each measure."""
    rows = [
        (
            document["task"],
            str(document["settings"]["seeds"]),
            *(could_tell(detectable_shares(document, each)) for each in measures),
        )
        for document in documents
    ]
    return table(("task", "seeds", *measures.values()), rows)
