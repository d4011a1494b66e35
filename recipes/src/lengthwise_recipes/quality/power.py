"""The power of the study: the smallest differences of loss that its comparisons would show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from lengthwise_recipes.intervals import POWER, read_interval, smallest_shares
from lengthwise_recipes.pages import could_tell, percent, table

Document = Mapping[str, Any]


def detectable_shares(document: Document, measure: str) -> list[float]:
    """Returns the smallest difference that each comparison of max-entropy batching would show, over the other loss.

    Args:
        document: The document of `quality.study` for a task, read from JSON.
        measure: One of `comparisons.MEASURES`.

    Returns:
        Shares of the mean loss of the other strategy, one for each comparison by this measure.
    """
    strategies = {strategy["label"]: strategy for strategy in document["strategies"]}
    rows = [
        row
        for row in document["comparisons"]
        if row["measure"] == measure and strategies[row["one"]]["order"] == document["ours"]
    ]
    losses = [read_interval(strategies[row["other"]]["losses"][measure]).mean for row in rows]
    return smallest_shares([read_interval(row["difference"]) for row in rows], losses)


def mean_detectable_share(document: Document, measure: str) -> str:
    """Returns the mean of `detectable_shares` in percent.

    >>> mean_detectable_share({"strategies": [], "comparisons": []}, "last")
    'nothing'
    """
    shares = detectable_shares(document, measure)
    return percent(sum(shares) / len(shares)) if shares else "nothing"


def power_sentence(documents: Sequence[Document], measure: str) -> str:
    """Returns a sentence on the smallest difference that the seeds show reliably, by task."""
    shares = {document["task"]: mean_detectable_share(document, measure) for document in documents}
    by_task = ", ".join(f"{task} {'not known' if share == 'nothing' else share}" for task, share in shares.items())
    tries = Fraction(POWER).limit_denominator(100)
    return (
        f"With these seeds we would detect such a difference in {tries.numerator} of {tries.denominator} studies if it "
        f"is this share of the loss: {by_task}."
    )


def power_table(documents: Sequence[Document], measures: Mapping[str, str]) -> str:
    """Returns a table with a row for each task and a column for each measure."""
    rows = [
        (
            document["task"],
            str(document["settings"]["seeds"]),
            *(could_tell(detectable_shares(document, measure)) for measure in measures),
        )
        for document in documents
    ]
    return table(("task", "seeds", *measures.values()), rows)
