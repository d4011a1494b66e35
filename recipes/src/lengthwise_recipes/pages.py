"""Parts of the Markdown pages, made only from JSON."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from lengthwise_recipes.claims import Claim


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown. Columns of numbers are aligned right, except for the first column.

    >>> print(table(("Q", "averaged", "seconds"), [("1", "2 processes", "3.5 (3.1 to 3.9)")]))
    | Q | averaged | seconds |
    | --- | --- | ---: |
    | 1 | 2 processes | 3.5 (3.1 to 3.9) |
    """
    rows = list(rows)
    columns = list(zip(*rows, strict=True))[1:]
    lines = [heads, ["---", *("---:" if all(map(_is_number, cells)) else "---" for cells in columns)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_number(cell: str) -> bool:
    """Returns True for a number with its unit or spread, and for cells that say that there is none."""
    number = re.sub(r"\(.*?\)", "", cell)
    none = number in {"", "diverged", "nothing"}
    return none or (re.search(r"\d", number) is not None and not re.search(r"`|[a-z]{4}", number))


def verdicts(claims: Sequence[Claim]) -> str:
    """Returns sentences: the count of each verdict, the size of ours, the smallest differences of each kind of claim.

    >>> verdicts([Claim(claim="", where="", paper="", ours=[1.0, 1.2, 1.4], holds="part", why="", kind="speed")] * 2)
    'Of 2 claims: 2 partly. Our runs could tell a difference of 65 % in speed; smaller ones may exist.'
    """
    counts = Counter(claim.verdict for claim in claims)
    parts = "; ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    sizes = [claim.size for claim in claims if claim.size is not None]
    size = f" Size matters to {len(sizes)}: ours is {sizes[0]}." if sizes else ""
    return f"Of {len(claims)} claims: {parts}.{size}{_smallest_differences(claims)}"


def by_verdict(claims: Sequence[Claim], *, first: int = 1) -> str:
    """Lists the numbers of the claims, from `first` on, by their verdicts, such as "partly: 1, 3; undecided: 2"."""
    found = [claim.sized_verdict for claim in claims]
    numbers = {verdict: [str(n) for n, each in enumerate(found, first) if each == verdict] for verdict in found}
    return "; ".join(f"{verdict}: {', '.join(those)}" for verdict, those in numbers.items())


def _smallest_differences(claims: Sequence[Claim]) -> str:
    percents: defaultdict[str, list[float]] = defaultdict(list)
    for claim in claims:
        percent = claim.effects.smallest_difference * (100 if claim.unit == "" else 1)
        if claim.kind and math.isfinite(percent):
            percents[claim.kind].append(percent)
    if not percents:
        return ""
    ranges = {kind: dict.fromkeys(map(_round, (min(values), max(values)))) for kind, values in percents.items()}
    told = " and ".join(f"of {' to '.join(ends)} % in {kind}" for kind, ends in ranges.items())
    return f" Our runs could tell a difference {told}; smaller ones may exist."


def _round(percent: float) -> str:
    return f"{percent:.{0 if percent >= 1.0 else 2}f}"


RULE_IN_SHORT = (
    "[How a claim is judged](/recipes/README.md#how-a-claim-is-judged). *Could tell apart*: the smallest effect that "
    "these runs would show."
)


def judgement(claims: Sequence[Claim]) -> str:
    """Returns the table of the claims, a sentence on the verdicts, and the reason of each."""
    reasons = "\n".join(f"{number}. {claim.reason}" for number, claim in enumerate(claims, 1))
    return f"{claims_table(claims)}\n\n{RULE_IN_SHORT}\n\nWhy, by the numbers of the table:\n\n{reasons}"


def claims_table(claims: Iterable[Claim]) -> str:
    """Returns a table of the claims: verdict, the paper's number, ours with its spread, and the least effect."""
    heads = ("the paper says", "verdict", "section", "paper", "ours (least to greatest)", "runs", "could tell apart")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for number, claim in enumerate(claims, 1):
        cells = (claim.sized_verdict, claim.where, claim.paper, ours(claim), str(claim.runs), claim.could_tell)
        lines.append("| " + " | ".join((f"{number}. {claim.claim}", *cells)) + " |")
    return "\n".join(lines)


def ours(claim: Claim) -> str:
    """Returns our number and its spread, or "diverged".

    >>> ours(Claim(claim="", where="", paper="", ours=[10.0, 14.5], holds="part", why="", unit="%"))
    '12.25 % (10.00 to 14.50)'
    """
    if not math.isfinite(claim.mean):
        return "diverged"
    unit = f" {claim.unit}" if claim.unit else ""
    return f"{claim.mean:.2f}{unit}{within(min(claim.ours), max(claim.ours))}"


def spread(values: Mapping[str, Any], *, digits: int = 2) -> str:
    """Returns a mean and the range of the seeds."""
    if None in values.values():
        return "diverged"
    return f"{values['mean']:.{digits}f}{within(values['least'], values['greatest'], digits=digits)}"


def over_seeds(values: Sequence[float], *, digits: int = 2) -> str:
    """Returns the mean of the numbers of the seeds, with the least and the greatest.

    >>> over_seeds([1.0, 2.0]), over_seeds([2.0])
    ('1.50 (1.00 to 2.00)', '2.00')
    """
    return f"{fmean(values):.{digits}f}{within(min(values), max(values), digits=digits)}"


def within(least: float, greatest: float, *, digits: int = 2) -> str:
    low, high = f"{least:.{digits}f}", f"{greatest:.{digits}f}"
    return "" if low == high else f" ({low} to {high})"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def timed_epoch(size: Mapping[str, Any]) -> str:
    """Names the epochs of a rerun whose times stand on its page."""
    return f"a first epoch, run anew {size['timed']} times in turn" if size.get("timed") else "the median epoch"


def figure_name(paper: str, name: str) -> str:
    """Returns the file of a figure, in the folder of the page."""
    return f"{paper}-{name}.svg"


def figures(paper: str, captions: Mapping[str, str]) -> str:
    """Returns the section of the figures, by the name and the caption of each."""
    shown = (f"![{name}]({figure_name(paper, name)})\n\n{text}" for name, text in captions.items())
    return "\n\n".join(("## Figures", *shown))


def machine_note(document: Mapping[str, Any], *, link: str) -> str:
    """Returns machine, versions, date, a link to the JSON, its remark if it has one, and the command as a block."""
    machine = document["machine"]
    where = machine["device_name"] or machine["cpu"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)} a process"
    measured = f"{where}, {threads}, torch {machine['torch']}, {document['date'][:10]}"
    remark = f" {document['remark']}" if "remark" in document else ""
    return f"Measured on {measured} ([JSON]({link})).{remark}\n\n{command_block(document['command'])}"


WIDTH = 94  # columns of a command; with margin and backslash a line fits the 100 columns of the site


def command_block(command: str) -> str:
    r"""Returns a command as a block of Markdown. Lines break after an option, for a shell to join.

    A list that is longer than a line is quoted and breaks after a comma: the command line accepts blanks there.

    >>> print(command_block(f"lengthwise study --strategies {5 * 'max-entropy:0.05,'}sorted --epochs 8"))
        lengthwise study \
            --strategies "max-entropy:0.05,max-entropy:0.05,max-entropy:0.05,max-entropy:0.05, \
                max-entropy:0.05,sorted" \
            --epochs 8
    """
    command = command.replace("../shared/data", "$LENGTHWISE_DATA")  # each reader has another folder
    command = re.sub(r" (?!--)", "\xa0", command)  # keeps an option with its value
    full = textwrap.wrap(command, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    lines = [line for long in full for line in _break_list(long)]
    return "\n".join(f"    {line}" for line in " \\\n".join(lines).replace("\xa0", " ").splitlines())


def _break_list(line: str) -> list[str]:
    """Breaks a line that is too long after the commas of its list; returns other lines as they are."""
    option, _, value = line.partition("\xa0")
    if len(line) <= WIDTH or "," not in value:
        return [line]
    words = textwrap.wrap(value.replace(",", ", "), WIDTH - len(option) - 4, break_on_hyphens=False)
    first, *middle, last = [word.replace(", ", ",") for word in words]
    return [f'{option}\xa0"{first}', *(f"        {words}" for words in middle), f'        {last}"']
