"""Pages: Markdown of a paper's rerun, made from its JSON alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its first column to the left and the others to the right.

    >>> print(table(("Q", "seconds"), [("1", "3.5")]))
    | Q | seconds |
    | --- | ---: |
    | 1 | 3.5 |
    """
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdicts(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many claims there are, and how they were judged.

    >>> verdicts([{"verdict": "partly"}, {"verdict": "not"}, {"verdict": "not"}])
    'Of 3 claims: 1 partly, 2 not.'
    """
    counts = Counter(claim["verdict"] for claim in claims)
    return f"Of {len(claims)} claims: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}."


def claims_table(claims: Iterable[Mapping[str, Any]]) -> str:
    """The paper's number beside ours with the spread over seeds, a verdict and why."""
    lines = ["| the paper says | where | paper | ours (least to greatest) | verdict | why |", "|" + " --- |" * 6]
    for claim in claims:
        cells = (*(claim[name] for name in ("claim", "where", "paper")), ours(claim), claim["verdict"], claim["why"])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ours(claim: Mapping[str, Any]) -> str:
    """Our number and its spread; "diverged" where there is none.

    >>> ours({"mean": 12.34, "least": 10.0, "greatest": 14.0, "unit": "%"})
    '12.34 % (10.00 to 14.00)'
    """
    if None in (claim["mean"], claim["least"], claim["greatest"]):
        return "diverged"
    unit = f" {claim['unit']}" if claim["unit"] else ""
    return f"{claim['mean']:.2f}{unit}{within(claim['least'], claim['greatest'])}"


def spread(values: Mapping[str, Any], *, digits: int = 2) -> str:
    """A mean, and from where to where the seeds reach."""
    if None in values.values():
        return "diverged"
    return f"{values['mean']:.{digits}f}{within(values['least'], values['greatest'], digits=digits)}"


def within(least: float, greatest: float, *, digits: int = 2) -> str:
    low, high = f"{least:.{digits}f}", f"{greatest:.{digits}f}"
    return "" if low == high else f" ({low} to {high})"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def measured(document: Mapping[str, Any], *, link: str) -> str:
    """Where, when and by which command, and where the JSON is."""
    machine = document["machine"]
    where = machine["device_name"] or machine["cpu"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)} a process"
    command = document["command"].replace("../shared/data", "$LENGTHWISE_DATA")  # where it lies is each reader's own
    return f"{where}, {threads}, torch {machine['torch']}, {document['date'][:10]}, `{command}` ([JSON]({link}))."
