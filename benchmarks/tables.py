"""Writes docs/results.md, the table of the README and the pages of the recipes from the committed results.

    python benchmarks/tables.py [--check]

Every table names the machine, the date and the command that measured it. `--check` writes nothing, and fails where the
committed pages are not what the results say.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from lengthwise import files
from lengthwise_recipes.doetsch2017 import page as doetsch2017_page
from lengthwise_recipes.ge2021 import page as ge2021_page
from lengthwise_recipes.ge2021.table1 import describe_tolerances
from lengthwise_recipes.intervals import Interval, interval, smallest_shares
from lengthwise_recipes.khomenko2016 import page as khomenko2016_page
from lengthwise_recipes.pages import command_block, could_tell, percent, spread, table
from lengthwise_recipes.quality import answers as quality_answers
from lengthwise_recipes.quality import page as quality_page
from lengthwise_recipes.quality import power as quality_power

ROOT = Path(__file__).parents[1]
RESULTS = (ROOT / "benchmarks" / "results", ROOT / "recipes" / "results")
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "results.md"
PAPERS = ROOT / "recipes" / "docs" / "papers"
QUALITY = ROOT / "recipes" / "docs" / "quality.md"
RECIPES = ROOT / "recipes" / "README.md"
TASKS = ("handwriting", "acoustic", "synthesis")  # of the study of quality
END = "<!-- end -->"
HEAD = """# Results

All that was measured, also where it speaks against this package. Each section begins with the answer. The table
follows, then how to read it, and the command that measured it. Of a long table some rows are shown. A click on "All
rows" shows the others.

- *Padding* is the share of all computed frames that hold no data.
- *Mixing* says how random batches are in length. It is 1 where a batch tells nothing about the lengths in it, and near
  0 where it tells all. At each padding there is a *limit* of mixing that no batching passes ([why](theory.md)).
- A *step* is one update of the weights. It takes several batches if there are several ranks or micro-batches.
- *Waiting* is the share of the time of all ranks in which they wait for the slowest of their step.
- *Strategies* have the names of the command line: `max-entropy:0.1` is max-entropy batching that may pad 10 %.
  [What each name means](reference/command-line.md#lengthwise-compare).
- *Lengths*: "long-tailed" and "speech" are generated (`lw.example_lengths`). LJSpeech is clips of one English voice, in
  frames of 12.5 ms. Multi30k en-de is pairs of English and German sentences, in tokens.
- `python benchmarks/tables.py` makes this page from [benchmarks/results](../benchmarks/results).
"""


def main() -> int:
    """Writes, or checks; 1 where the pages are stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [page for page, text in pages().items() if not page.exists() or page.read_text() != text]
    for page in stale:
        print(f"{page.relative_to(ROOT)} {'is stale: run python benchmarks/tables.py' if check else 'written'}")
        if not check:
            files.write(page, pages()[page])
    return 1 if check and stale else 0


def pages() -> dict[Path, str]:
    """What each page should say."""
    studies = results("study-handwriting-latin-greek")
    shown = handwriting_in_short(studies[-1][1]) if studies else "Not measured yet."
    told = quality_in_short(list(latest_quality().values()))
    readme = fill(fill(README.read_text(), "table: handwriting", shown), "quality", told)
    sections = [part for title, members in GROUPS.items() for part in group(title, members)]
    again = ", ".join(f"[{page.stem}]({link(page)})" for page in papers())
    head = HEAD + (f"- Papers run again, their numbers beside ours: {again}.\n" if again else "")
    head += f"- What mixing is worth: [quality]({link(QUALITY)}).\n" if quality() else ""
    recipes = fill(RECIPES.read_text(), "quality", told)
    return {README: readme, RECIPES: recipes, PAGE: "\n".join([head, contents(), *sections]), **papers(), **quality()}


def fill(text: str, name: str, content: str) -> str:
    """A page with `content` between the mark of this name and the end mark that follows it.

    >>> fill("<!-- a -->old<!-- end --> rest", "a", "new").split()
    ['<!--', 'a', '-->', 'new', '<!--', 'end', '-->', 'rest']
    """
    start = f"<!-- {name} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(END)
    return f"{before}{start}\n{content}\n{END}{after}"


def quality() -> dict[Path, str]:
    """The page on what mixing is worth, of the latest study of each task; none where no task was studied."""
    latest = latest_quality()
    earlier = {link(path): document for task in TASKS for path, document in results(f"quality-{task}")[:-1]}
    return {QUALITY: quality_page.page(latest, earlier)} if latest else {}


def latest_quality() -> dict[str, dict[str, Any]]:
    """The latest study of each task, by where the page finds it."""
    return {link(path): document for task in TASKS for path, document in results(f"quality-{task}")[-1:]}


def quality_in_short(documents: list[dict[str, Any]]) -> str:
    """What the study of quality found and how small a difference it could have told, wrapped for a README."""
    if not documents:
        return "Not measured yet."
    found = quality_answers.record(documents, documents[0]["ours"], "test_last")
    told = ", ".join(f"{quality_power.mean_detectable_share(each, 'test_last')} ({each['task']})" for each in documents)
    seeds = " or ".join(dict.fromkeys(str(each["settings"]["seeds"]) for each in documents))
    text = (
        f"Max-entropy's test loss was compared with another order's, at equal padding and after as many epochs. It was "
        f"lower in {found.lower} of {found.total} comparisons, and higher in {found.higher}. {seeds} seeds show a "
        f"difference in 4 of 5 tries only if it is at least {told}."
    )
    return "\n".join(textwrap.wrap(text, 100))


def papers() -> dict[Path, str]:
    """The page of each paper that was run again, of its latest result."""
    found = {PAPERS / f"{name}.md": (write, results(f"{name}-small")) for name, write in REPRODUCTIONS.items()}
    return {page: write(ran[-1][1], json_link=link(ran[-1][0])) for page, (write, ran) in found.items() if ran}


REPRODUCTIONS: dict[str, Callable[..., str]] = {
    "khomenko2016": khomenko2016_page.page,
    "doetsch2017": doetsch2017_page.page,
    "ge2021": ge2021_page.page,
}


def results(what: str) -> list[tuple[Path, dict[str, Any]]]:
    """The committed results of one kind, oldest first."""
    found = sorted(
        (path for folder in RESULTS for path in folder.glob(f"{what}_*.json")),
        key=lambda path: path.stem.rsplit("_")[-1],
    )
    return [(path, json.loads(path.read_text())) for path in found]


def contents() -> str:
    """Links to all sections, by their group."""
    links = {
        title: [f"[{SECTIONS[what][0]}](#{anchor(SECTIONS[what][0])})" for what in members if results(what)]
        for title, members in GROUPS.items()
    }
    rows = [f"| {title} | {' · '.join(found)} |" for title, found in links.items() if found]
    return "\n".join(["| about | sections |", "|---|---|", *rows]) + "\n"


def anchor(title: str) -> str:
    """The name of a heading's place, as the site and GitHub make it.

    >>> anchor("Ge et al. 2021: padding, and counts")
    'ge-et-al-2021-padding-and-counts'
    """
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def group(title: str, members: tuple[str, ...]) -> list[str]:
    """The heading of a group, and its sections; nothing where none was measured."""
    found = [section(path, document, *SECTIONS[what]) for what in members for path, document in results(what)]
    return [f"## {title}\n", *found] if found else []


def section(path: Path, document: dict[str, Any], title: str, write: Callable[..., tuple[str, ...]]) -> str:
    """The answer, the tables, how to read them, and what measured them."""
    return "\n\n".join([f"### {title}", *write(document), source(path, document)]) + "\n"


def folded(
    heads: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    shown: Callable[[tuple[str, ...]], bool],
    columns: Sequence[int] = (),
) -> str:
    """Some rows of a long table, and some columns of a wide one; and all of it below, behind a click."""
    rows = list(rows)
    columns = columns or range(len(heads))
    some = table([heads[at] for at in columns], [[row[at] for at in columns] for row in rows if shown(row)])
    return f"{some}\n\n{behind_a_click(table(heads, rows), len(rows))}"


def behind_a_click(text: str, rows: int) -> str:
    """A table of so many rows that is shown when it is asked for, on the site and on GitHub."""
    return f'<details markdown="1">\n<summary>All rows ({rows})</summary>\n\n{text}\n\n</details>'


def handwriting(document: dict[str, Any]) -> tuple[str, ...]:
    """One row for each strategy of a study."""
    first = document["summary"][0]
    quickest = min(document["summary"], key=lambda each: each["seconds_per_epoch"])
    rows = [
        (
            f"`{each['strategy']}`",
            percent(each["padding_share"]),
            f"{each['mixing']:.2f}",
            f"{each['seconds_per_epoch']:.1f}",
            f"{each['seconds_per_epoch'] / first['seconds_per_epoch']:.2f}",
            f"{mean_loss(document, each['strategy'], early=True):.2f}",
            spread(each["validation_loss"]),
            percent(each["character_error_rate"]["mean"]),
        )
        for each in document["summary"]
    ]
    epochs, third = document["settings"]["epochs"], document["settings"]["epochs"] // 3
    heads = (
        "strategy",
        "padding",
        "mixing",
        "s / epoch",
        "of random",
        f"loss, epochs 1-{third}",
        f"loss, epoch {epochs}",
        "CER",
    )
    data = document["data"]
    share = quickest["seconds_per_epoch"] / first["seconds_per_epoch"]
    answer = (
        f"With `{quickest['strategy']}` an epoch takes {share:.2f} of the time that it takes with "
        f"`{first['strategy']}`. {told_apart(document)}"
    )
    note = (
        f"*Loss*: on words to validate on, in nats a symbol, mean of {document['settings']['seeds']} seeds (least to "
        f"greatest; [picture](handwriting.png)). *CER*: the share of wrong characters. Data: "
        f"{data['train_samples']:,} {data['name']}, and {data['validation_samples']:,} to validate on; {data['split']}."
    )
    return answer, table(heads, rows), note


IN_SHORT = ("random", "sorted", "semi-sorted:0.1", "optimal:8", "max-entropy:0.05", "max-entropy:0.15")


def handwriting_in_short(document: dict[str, Any]) -> str:
    """The table of the README: some strategies of a study, and the few columns that tell what they are worth."""
    summary = {each["strategy"]: each for each in document["summary"]}
    first = summary["random"]["seconds_per_epoch"]
    rows = [
        (
            f"`{label}`",
            percent(each["padding_share"]),
            f"{each['mixing']:.2f}",
            f"{each['seconds_per_epoch']:.1f}",
            f"{each['seconds_per_epoch'] / first:.2f}",
            spread(each["validation_loss"]),
            percent(each["character_error_rate"]["mean"]),
        )
        for label, each in ((label, summary[label]) for label in IN_SHORT)
    ]
    settings, data, machine = document["settings"], document["data"], document["machine"]
    heads = ("strategy", "padding", "mixing", "s / epoch", "of `random`", "loss at the end", "wrong characters")
    words = (
        f"{data['train_samples']:,} handwritten words, {data['validation_samples']:,} by other writers to validate on."
    )
    note = (
        f"`semi-sorted`: by length plus noise; `optimal:8`: 8 buckets; `max-entropy`: ours. {words} "
        f"{settings['epochs']} epochs, means of {settings['seeds']} seeds (least to greatest). {processor(machine)}, "
        f"{document['date'][:10]} ([more](docs/results.md))."
    )
    told = "\n".join(textwrap.wrap(f"{note} {told_apart(document)}", 100))
    return f"{table(heads, rows)}\n\n{told}"


def told_apart(document: dict[str, Any]) -> str:
    """Which strategies' last losses can be told from the first one's, and how small a difference could be."""
    first, *others = (each["strategy"] for each in document["summary"])
    base = last_losses(document, first)
    found = {other: beside(last_losses(document, other), base) for other in others}
    apart = [f"`{name}`" for name, difference in found.items() if difference.excludes_zero]
    shares = smallest_shares(found.values(), [sum(base) / len(base)] * len(found))
    which = f"The last losses of {', '.join(apart)} differ" if apart else "No strategy's last loss differs"
    least = could_tell(shares).replace(")", ", by strategy)")
    return (
        f"{which} from that of `{first}` by more than chance explains. {len(base)} seeds show a difference in 4 of 5 "
        f"tries only if it is at least {least}."
    )


def beside(losses: list[float], base: list[float]) -> Interval:
    """The difference to another strategy's losses, seed by seed."""
    return interval([ours - theirs for ours, theirs in zip(losses, base, strict=True)])


def last_losses(document: dict[str, Any], strategy: str) -> list[float]:
    """The validation loss after the last epoch under each seed."""
    last = document["settings"]["epochs"]
    rows = [row for row in document["rows"] if row["strategy"] == strategy and row["epoch"] == last]
    return [row["validation_loss"] for row in sorted(rows, key=lambda row: row["seed"])]


def parallel(document: dict[str, Any]) -> tuple[str, ...]:
    """One row for each strategy, number of processes and way of averaging."""
    rows = [
        (
            f"`{each['strategy'].removesuffix(several(each))}`",
            several(each).removeprefix(", ") or "1 process",
            f"{each['seconds_per_epoch']:.1f}",
            f"{each['share_of_first_seconds']:.2f}",
            f"{each['steps']:.0f}",
            percent(each["straggler_waste"]) if each["processes"] > 1 else "",
            f"{mean_loss(document, each['strategy'], early=True):.2f}",
            spread(each["validation_loss"]),
            percent(each["character_error_rate"]["mean"]),
        )
        for each in document["summary"]
    ]
    epochs, third = document["settings"]["epochs"], document["settings"]["epochs"] // 3
    heads = (
        *("strategy", "averaged", "s / epoch", "of the first", "steps / epoch", "waiting"),
        *(f"loss, epochs 1-{third}", f"loss, epoch {epochs}", "CER"),
    )
    first = document["summary"][0]["strategy"]
    shares = [each["share_of_first_seconds"] for each in document["summary"] if each["strategy"].startswith(first)]
    answer = (
        f"On several processes an epoch of `{first}` takes {min(shares):.2f} of the time of one process at best. "
        f"{told_apart(document)}"
    )
    note = (
        "*Parameter*: the processes average their parameters after every epoch (Khomenko et al. 2016). *Gradient*: "
        "they average their gradients in every step, which then holds a batch of each. *Waiting*: the share of "
        "their time in which processes wait for the slowest. All run on one machine of two cores. The learning rate is "
        "the same for all. Compare seconds within this table: it was timed apart from the first. Data and loss are "
        "those of the first table ([picture](handwriting-parallel.png))."
    )
    return answer, table(heads, rows), note


def several(summary: dict[str, Any]) -> str:
    """What the label of a run on several processes says of them."""
    return f", {summary['processes']} processes, {summary['averaging']}" if summary["processes"] > 1 else ""


def mean_loss(document: dict[str, Any], strategy: str, *, early: bool) -> float:
    """The mean validation loss over seeds and epochs, or over the first third of the epochs."""
    last = document["settings"]["epochs"] // 3 if early else document["settings"]["epochs"]
    losses = [
        row["validation_loss"] for row in document["rows"] if row["strategy"] == strategy and row["epoch"] <= last
    ]
    return sum(losses) / len(losses)


def mixing(document: dict[str, Any]) -> tuple[str, ...]:
    """At 5, 10 and 20 % padding or the nearest that a strategy has, its mixing beside max-entropy's and the limit."""
    rows = []
    for name, data in document["data"].items():
        kinds = dict.fromkeys(point["strategy"].partition(":")[0] for point in data["points"])
        for kind in kinds:
            points = [point for point in data["points"] if point["strategy"].startswith(f"{kind}:")]
            for share in (0.05, 0.10, 0.20):
                near = min(points, key=lambda point: abs(point["padding_share"] - share))
                rows.append((name, *mixing_row(near)))
    heads = ("lengths", "strategy", "padding", "mixing", "max-entropy's mixing", "at padding", "limit")
    kinds = list(dict.fromkeys(point["strategy"].partition(":")[0] for point in data_points(document)))
    answer = (
        f"Max-entropy batching mixed more than {len(kinds)} other strategies at equal padding: at "
        f"{document['max_entropy_ahead']} of {document['points']} settings between 2 and 20 % padding. The first table "
        "says how many times as much. Below 2 % padding it may mix less: see the next section."
    )
    times = [(name, *(times_mixed(data["points"], kind) for kind in kinds)) for name, data in document["data"].items()]
    note = (
        f"*Mixed more*: every one of {len(document['seeds'])} seeds lies above every seed of the other. By chance "
        f"alone that comes once in {math.comb(2 * len(document['seeds']), len(document['seeds']))} settings. All rows "
        "are those nearest to 5, 10 and 20 % padding."
    )
    every = behind_a_click(table(heads, dict.fromkeys(rows)), len(dict.fromkeys(rows)))
    return answer, table(("lengths", *(f"`{kind}`" for kind in kinds)), times), every, note


def data_points(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of all lengths."""
    return [point for data in document["data"].values() for point in data["points"]]


def times_mixed(points: list[dict[str, Any]], kind: str) -> str:
    """How many times the mixing of a strategy max-entropy batching has, from least to greatest."""
    own = [point for point in points if point["strategy"].startswith(f"{kind}:")]
    times = [point["max_entropy_mixing"] / point["mixing"] for point in own]
    return f"{min(times):.2f} to {max(times):.2f}"


def mixing_row(point: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"`{point['strategy']}`",
        percent(point["padding_share"]),
        f"{point['mixing']:.3f}",
        f"{point['max_entropy_mixing']:.3f}",
        percent(point["max_entropy_padding_share"]),
        f"{point['limit']:.3f}",
    )


def mixing_digits(document: dict[str, Any]) -> tuple[str, ...]:
    """Optimal buckets and max-entropy batching of the same padding, each beside the limit."""
    rows = [
        (
            f"`{each['theirs']['strategy']}`",
            *(cell for side in ("theirs", "ours") for cell in digits_cells(each[side])),
            "less" if each["behind"] else "more" if each["ours"]["least"] > each["theirs"]["greatest"] else "not told",
        )
        for each in document["rows"]
    ]
    heads = ("buckets", "padding", "mixing", "of the limit", "max-entropy's padding", "mixing", "of the limit", "mixes")
    behind = [each["theirs"]["padding_share"] for each in document["rows"] if each["behind"]]
    ahead = [
        each["theirs"]["padding_share"]
        for each in document["rows"]
        if each["ours"]["least"] > each["theirs"]["greatest"]
    ]
    answer = (
        "Where little is padded, optimal buckets can mix more than max-entropy batching: on spoken digits up to "
        f"{percent(max(behind))} padding. From {percent(min(ahead))} on max-entropy mixes more."
    )
    note = (
        f"*Mixes*: max-entropy less or more, where every one of {len(document['seeds'])} seeds lies on that side of "
        f"every seed of the other. Data: {document['sequences']:,} spoken digits (Free Spoken Digit Dataset), lengths "
        "in samples at 8 kHz, batches of 16."
    )
    return answer, table(heads, rows), note


def limits(document: dict[str, Any]) -> tuple[str, ...]:
    """For each data set and cut: the shares of the padding of random batches, and what comes near each."""
    rows = []
    for name, cut in dict.fromkeys((row["lengths"], cut_of(row)) for row in document["rows"]):
        points = [row for row in document["rows"] if (row["lengths"], cut_of(row)) == (name, cut)]
        most = next(row["padding_share"] for row in points if row["strategy"] == "random")
        shown = [row for share in SHARES_OF_RANDOM for row in nearest(points, share * most)]
        ends = [row for row in points if row["strategy"] in ("sorted", "random")]
        rows += [(name, cut, *limits_row(row)) for row in (ends[1], *shown, ends[0])]
    of_each = (
        cell for of in ("endless batches", "such batches", "such epochs") for cell in (f"limit of {of}", "of it")
    )
    heads = ("lengths", "batch", "strategy", "padding", "mixing", *of_each)
    ours = [row for row in document["rows"] if row["strategy"].startswith("max-entropy")]
    by_size, by_budget = ([row for row in ours if kind in row] for kind in ("batch_size", "budget"))
    near, near_in_budget = (
        sum(row["mixing"] >= 0.95 * row["epoch_limit"] for row in own) for own in (by_size, by_budget)
    )
    least = min(row["mixing"] / row["epoch_limit"] for row in by_budget)
    answer = (
        "An epoch takes each sequence once, which lowers the limit of mixing. In batches of a fixed size, max-entropy "
        f"has at least 95 % of this lower limit at {near} of {len(by_size)} settings. The other {len(by_size) - near} "
        f"ask for less padding than sorted batches have. Under a budget it has at least 95 % at {near_in_budget} of "
        f"{len(by_budget)} settings, and {100 * least:.0f} % at the worst."
    )
    note = (
        "*Limit of such epochs*: `mixing_limit(batch_size=..., batches=...)`, which knows that each sequence is taken "
        "once, by so many batches; under a budget `mixing_limit(budget=..., empty_places=...)`, by batches that leave "
        "so many places empty. All rows have two more limits. That of endless batches is the highest. That of such "
        "batches, `mixing_limit(batch_size=...)` or `mixing_limit(budget=...)`, knows that one sequence of a batch is "
        "as long as the batch is padded to. The rows lie within a quarter of 2, 5, 10, 20, 50 and 90 % of the padding "
        "of random batches. At each stands max-entropy, and the best of semi-sorted, alternated, bucketed and optimal "
        "buckets, by the share of the limit. The JSON has every setting. Many buckets can pad less than sorting does, "
        "in more batches, because the last batch of a bucket is smaller. Mixing is estimated in "
        f"{document['bins']:,} bins on {document['sequences']:,} sequences of one seed's epochs."
    )
    first = rows[0][:2]
    columns = (0, 1, 2, 3, 4, 9, 10)
    return answer, folded(heads, dict.fromkeys(rows), lambda row: row[:2] == first, columns), note


def step_limits(document: dict[str, Any]) -> tuple[str, ...]:
    """For each setting: random steps, and both orders near three shares of what these pad."""
    rows, names = [], ("lengths", "cut", "batches")
    for setting in dict.fromkeys(tuple(row[name] for name in names) for row in document["rows"]):
        points = [row for row in document["rows"] if tuple(row[name] for name in names) == setting]
        shown = [points[0]]
        for share in SHARES_OF_RANDOM_STEPS:
            for order in ("max-entropy", "semi-sorted"):
                target = share * points[0]["padding_share"]
                near = [row for row in points[1:] if row["order"] == order]
                found = min(near, key=lambda row: abs(row["padding_share"] - target))
                shown += [found] if abs(found["padding_share"] - target) <= 0.25 * target else []
        cut = str(document["batch"]) if setting[1] == "FixedSize" else "a budget"
        rows += [(setting[0], cut, str(setting[2]), *step_limits_cells(row)) for row in shown]
    ours = [row for row in document["rows"] if row["order"] == "max-entropy"]
    below = [row for row in ours if row["step_mixing"] < 0.95 * row["limit"]]
    least = min(row["step_mixing"] / row["limit"] for row in ours)
    random = {tuple(row[name] for name in names): row["padding_share"] for row in document["rows"][::-1]}
    pads = min(row["padding_share"] / random[tuple(row[name] for name in names)] for row in below)
    answer = (
        f"Steps of max-entropy batches have at least 95 % of the limit at {len(ours) - len(below)} of {len(ours)} "
        f"settings, and at least {100 * least:.0f} % at all others. There they pad nearly as much as random steps: "
        f"{100 * pads:.0f} % of it or more."
    )
    note = (
        "*Limit*: `mixing_limit(world_size=...)`, of everything that the padded lengths of a step tell. *Step mixing* "
        "is of their mean alone, which tells less: so steps can have more than the limit of it. *Vary*: the variance "
        "of the mean length of steps, 1 as that of random samples. *Waiting*: the share of time that ranks wait for "
        "the costliest. A budget is 16 sequences of the mean length, or the longest. Random steps are dealt as "
        "`RandomSteps`, the others as `Stratified`: a batch of every stratum. Rows lie within a quarter of 90, 50 and "
        "20 % of the padding of random steps; the JSON has more. "
        f"Both are estimated in {document['bins']} bins, on {document['sequences']:,} sequences of one seed's epochs."
    )
    heads = ("lengths", "batch", "steps of", "strategy", "padding", "step mixing", "limit", "of it", "vary", "waiting")
    first = rows[0][0], rows[0][2]
    return answer, folded(heads, dict.fromkeys(rows), lambda row: (row[0], row[2]) == first), note


def length_share(document: dict[str, Any]) -> tuple[str, str, str]:
    """For each task: the length share while it learns, and the variance ratio of every order."""
    by_task = {task: [row for row in document["rows"] if row["task"] == task] for task in TASKS}
    rows = [row for own in by_task.values() for row in length_share_rows(own)]
    heads = ("task", "batches", "padding", "mixing", "untrained", "after 1 epoch", "a third of them", "all")
    shares = "; ".join(f"{task} {share_range(own)}" for task, own in by_task.items() if own)
    answer = f"This share of the variance of a gradient goes with length, from the first epoch on: {shares}."
    note = (
        "*Length share*: the share of a gradient's variance that goes with length. *Noise scale*: steps of many more "
        "sequences than that lose little by a greater variance. The other rows have the variance of a batch's gradient "
        "over that of random batches: 2 is twice as much. All was measured before training, and after some epochs of "
        "random batches. Where single sequences have far greater gradients than all others, ratios are large and "
        "uncertain. "
        f"Batches of {document['batch_size']}; tasks and epochs as in the study of quality, gradients of "
        f"{document['sample']} sequences; means over {document['seeds']} seeds. ±: standard error between seeds, or "
        "that of the samples where it is greater. Orders whose knob comes within 1.2 points of 5, 10 and 20 % padding."
    )
    return answer, folded(heads, rows, lambda row: not row[2] or row[1].startswith("max-entropy")), note


def share_range(rows: list[dict[str, Any]]) -> str:
    """The least and the greatest share of one task after its first epoch, means over seeds."""
    trained = [row for row in rows if row.get("epoch")]
    stages, seeds = sorted({row["epoch"] for row in trained}), len({row["seed"] for row in trained})
    means = [sum(r["share"] for r in trained if r["epoch"] == stage) / seeds for stage in stages]
    return f"{share_of_variance(min(means))} to {share_of_variance(max(means))}"


def share_of_variance(share: float) -> str:
    """In percent; an estimate just below 0 is 0, and not -0.

    >>> share_of_variance(-0.0001), share_of_variance(-0.002)
    ('0.0 %', '-0.2 %')
    """
    return percent(round(share, 3) + 0.0)


def length_share_rows(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of one task: the share, the noise scale, and each order."""
    measured = [row for row in rows if "epoch" in row]
    stages = sorted({row["epoch"] for row in measured})
    at = [[row for row in measured if row["epoch"] == stage] for stage in stages]
    if not at:
        return []
    name = measured[0]["task"]
    shares = [of_seeds([r["share"] for r in own], [r["standard_error"] for r in own], share_of_variance) for own in at]
    scales = [[row["noise_scale"] for row in own] for own in at]
    told = ["not told" if None in own else f"{sum(own) / len(own):,.0f}" for own in scales]
    return [
        (name, "*length share*", "", "", *shares),
        (name, "*noise scale, sequences*", "", "", *told),
        *(
            (
                name,
                each["strategy"],
                percent(each["padding_share"]),
                f"{each['mixing']:.2f}",
                *(
                    of_seeds(
                        [row["variance_ratios"][each["strategy"]] for row in own],
                        [row["standard_errors"][each["strategy"]] for row in own],
                        "{:.2f}".format,
                    )
                    for own in at
                ),
            )
            for each in rows
            if "strategy" in each
        ),
    ]


def of_seeds(values: list[float], errors: list[float], write: Callable[[float], str]) -> str:
    """The mean over seeds, and its standard error: that between seeds, or that of the samples where it is greater.

    >>> of_seeds([1.0, 3.0], [0.1, 0.1], "{:.1f}".format)
    '2.0 ± 1.0'
    """
    count = len(values)
    mean = sum(values) / count
    between = math.sqrt(sum((each - mean) ** 2 for each in values) / max(1, count - 1) / count)
    within = math.sqrt(sum(each**2 for each in errors)) / count
    return f"{write(mean)} ± {write(max(between, within))}"


def streams(document: dict[str, Any]) -> tuple[str, str, str]:
    """One row for each data set, way and buffer."""
    rows = document["rows"]
    cells = [
        (
            row["data"],
            row["way"],
            "all" if row["buffer"] is None else f"{row['buffer']:,}",
            percent(row["padding_share"]),
            f"{row['mixing']:.3f}",
            f"{row['largest_cost'] / document['budgets'][row['data']]:.2f}",
            f"{row['mean_batch']:.1f}",
        )
        for row in rows
    ]
    heads = ("lengths", "way", "sees", "padding", "mixing", "costliest / budget", "batch size")
    far = [row for row in rows if row["way"] == "stream, 10%" and row["buffer"] == 4_096]
    near = [next(own for own in rows if own["data"] == row["data"] and own["way"] == "plan of all, 10%") for row in far]
    answer = "A stream that sees 4,096 sequences at a time pads and mixes nearly as a plan of all: " + "; ".join(
        f"on {row['data']} {percent(row['padding_share'])} padding and mixing {row['mixing']:.3f}, against "
        f"{percent(all_of['padding_share'])} and {all_of['mixing']:.3f}"
        for row, all_of in zip(far, near, strict=True)
    )
    note = (
        "*Sees*: sequences in the buffer. Budgets are "
        + ", ".join(f"{budget:,} ({name})" for name, budget in document["budgets"].items())
        + f". lhotse is {document['lhotse']}: it may exceed its budget, and in a small buffer few buckets are full. "
        f"Mixing in {document['bins']} bins; means over {len(document['seeds'])} seeds of {document['epochs']} epochs."
    )
    return (
        f"{answer}.",
        folded(heads, cells, lambda row: "2%" not in row[1] and row[2] in ("256", "4,096", "all")),
        note,
    )


SHARES_OF_RANDOM = (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)
SHARES_OF_RANDOM_STEPS = (0.9, 0.5, 0.2)


def nearest(points: list[dict[str, Any]], padding: float) -> list[dict[str, Any]]:
    """Of the rows within a quarter of this padding: max-entropy's nearest, and the others' best by share of limit."""
    near = [row for row in points if abs(row["padding_share"] - padding) <= 0.25 * padding]
    near = [row for row in near if row["strategy"] not in ("random", "sorted")]
    ours = [row for row in near if row["strategy"].startswith("max-entropy")]
    others = [row for row in near if row not in ours]
    best = sorted(ours, key=lambda row: abs(row["padding_share"] - padding))[:1]
    return best + sorted(others, key=lambda row: -row["mixing"] / row["batch_limit"])[:1]


def limits_row(row: dict[str, Any]) -> tuple[str, ...]:
    limits = [row.get(name) for name in ("limit", "batch_limit", "epoch_limit")]
    shares = ((f"{limit:.3f}", f"{row['mixing'] / limit:.2f}") if limit else ("", "") for limit in limits)
    cells = [cell for pair in shares for cell in pair]
    return f"`{row['strategy']}`", percent(row["padding_share"]), f"{row['mixing']:.3f}", *cells


def step_limits_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of steps: what it pads, mixes and waits for."""
    share = f"{row['step_mixing'] / row['limit']:.2f}"
    mixing, limit = (f"{row[name]:.3f}" for name in ("step_mixing", "limit"))
    varies, waits = f"{row['step_length_variance']:.1f}", percent(row["straggler_waste"])
    return f"`{row['order']}`", percent(row["padding_share"]), mixing, limit, share, varies, waits


def cut_of(row: dict[str, Any]) -> str:
    """The cut of a row, in words."""
    return str(row["batch_size"]) if "batch_size" in row else f"{row['budget']:,.0f} frames"


def digits_cells(found: dict[str, Any]) -> tuple[str, ...]:
    return percent(found["padding_share"]), f"{found['mixing']:.3f}", f"{found['share_of_limit']:.2f}"


SHOWN_RANKS = (8, 32)


def steps(document: dict[str, Any]) -> tuple[str, ...]:
    """What random steps pad by their number of batches; then every way to make steps, for 8 and 32 batches."""
    by = {(row["data"], row["way"], row["ranks"]): row for row in document["rows"]}
    names = ("data", "way", "ranks")
    data, ways, ranks = (list(dict.fromkeys(row[name] for row in document["rows"])) for name in names)
    padded = [
        (f"{name}, {way}", *(percent(by[name, way, each]["padding_share"]) for each in ranks))
        for name in data
        for way in ("random steps", "bound")
        if (name, way, ranks[0]) in by
    ]
    rows = [
        (name, way, *(cell for each in SHOWN_RANKS for cell in step_cells(by[name, way, each])))
        for name in data
        for way in ways
        if way != "bound"
    ]
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    of_each = ("padding", "step mixing", "vary", "waiting", "costliest")
    heads = ("lengths", "steps of", *(f"{head}, {each}" for each in SHOWN_RANKS for head in of_each))
    few, many = (percent(by[data[0], "random steps", each]["padding_share"]) for each in (ranks[0], ranks[-1]))
    answer = (
        f"The more batches make a step, the less random steps pad: on {data[0]} lengths {few} with {ranks[0]} batch "
        f"and {many} with {ranks[-1]}."
    )
    note = (
        f"First table: padding by the number of batches in a step, under a budget ({budgets}). *Bound*: what as many "
        "optimal buckets pad, the least for random steps without end. Finite steps of a long tail pad less. Second "
        f"table: steps of {' batches; all rows also of '.join(map(str, SHOWN_RANKS))}. *Vary*: the variance of the "
        "mean length of steps, 1 as that of random samples. *Waiting*: the share of time that ranks wait for the "
        "costliest. *Costliest*: the padded frames of the costliest batch. `batch_rebalance` takes as many sequences a "
        "step as random steps do on average, and knows no budget."
    )
    ways_of_8 = folded(heads, rows, lambda _: True, range(2 + len(of_each)))
    return answer, table(("batches in a step", *map(str, ranks)), padded), ways_of_8, note


def step_cells(row: dict[str, Any]) -> tuple[str, ...]:
    vary = row["step_length_variance"]
    return (
        percent(row["padding_share"]),
        f"{row['step_mixing']:.3f}",
        f"{vary:.2g}" if vary < 100 else f"{vary:.0f}",
        percent(row["straggler_waste"]),
        f"{row['largest_cost']:,.0f}",
    )


def packing(document: dict[str, Any]) -> tuple[str, ...]:
    """How full and how mixed the rows of each packer are, and how many sequences it packs a second."""
    rows = [packing_row(row) for row in document["rows"]]
    heads = ("lengths", "sequences", "packer", "rows", "fill", "pair mixing", "attention spread")
    hard = {row["method"]: row for row in document["rows"] if (row["data"], row["sequences"]) == HARD}
    pool, best = hard["pool of 1,024"], hard["best-fit"]
    answer = (
        f"Rows that are filled from a pool of 1,024 sequences are {percent(pool['fill'])} full, and rows by best fit "
        f"{percent(best['fill'])} (lengths of mean 1,400). How random are the lengths in a row? Pair mixing is 1 where "
        f"they are random. It is {pool['pair_mixing']:.2f} with the pool and {best['pair_mixing']:.2f} by best fit."
    )
    note = (
        f"Rows of {document['capacity']:,}. *Mean*: log-normal lengths of that mean, sigma {document['sigma']:g}, cut "
        "off at the capacity. GSM8K: questions with answers; HH harmless: chosen answers; both in tokens. All packers "
        "get the same lengths in the same random order. *Fill*: the share of computed tokens that are data. *Pair "
        "mixing*: 1 where a sequence tells nothing about the length of another in its row. *Attention spread*: the "
        "standard deviation of the sum of squared lengths of a row, as a share of the mean. *Sequences / s*: the "
        f"packing alone, in processor time, the median of {document['repeats']} interleaved repeats. *In a plan*: all "
        f"of `make_plan`. Ours, in bold, are compiled. TRL {document['trl']} packs an Arrow table and copies its "
        "tokens. The others are written in Python for this benchmark."
    )
    hardest = folded((*heads, "sequences / s", "in a plan"), rows, lambda row: row[:2] == (HARD[0], f"{HARD[1]:,}"))
    return answer, hardest, note, *packing_deals(document)


def packing_deals(document: dict[str, Any]) -> tuple[str, str, str]:
    """What ranks wait and how much steps vary, by each deal of the same rows."""
    rows = [
        (
            row["data"],
            str(row["ranks"]),
            str(row["rows_of_batch"]),
            f"`{row['deal']}`",
            f"{100 * row['straggler_waste']:.2f} %",
            f"{row['step_length_variance']:.2f}",
            percent(row["step_cost_spread"]),
            f"{100 * row['fill']:.2f} %",
            f"{row['pair_mixing']:.3f}",
        )
        for row in document["deals"]
    ]
    heads = ("lengths", "ranks", "rows", "deal", "waiting", "steps vary", "steps cost", "fill", "pair mixing")
    of = {row["deal"]: row for row in document["deals"] if (row["data"], row["ranks"], row["rows_of_batch"]) == EIGHT}
    balanced, steps = of["Balanced"], of["RandomSteps"]
    answer = (
        f"On lengths of mean 1,400, 8 ranks of 8 rows wait {100 * steps['straggler_waste']:.2f} % with `RandomSteps` "
        f"and {100 * balanced['straggler_waste']:.2f} % with `Balanced`. With `RandomSteps` the mean length of steps "
        f"varies {steps['step_length_variance']:.1f} times as much as that of random samples, with `Balanced` "
        f"{balanced['step_length_variance']:.1f} times as much."
    )
    note = (
        "*Rows*: those of a batch. *Waiting*: the share of time that ranks wait for the slowest of their step, if "
        "attention alone cost time. *Steps vary*: how much the mean length of steps varies, 1 as that of random "
        "samples does. *Steps cost*: the standard deviation of what a whole step costs, as a share of the mean. "
        "`Balanced` lets batches of like cost share a step, and `Mixed` random ones. `RandomSteps` shares out the rows "
        "of a random step."
    )
    shown = tuple(map(str, EIGHT))
    return answer, folded(heads, rows, lambda row: row[:3] == shown), note


HARD = ("mean 1,400", 100_000)  # lengths that leave room in a row, and how many
EIGHT = ("mean 1,400", 8, 8)  # lengths, ranks, and rows of a batch


def packing_row(row: dict[str, Any]) -> tuple[str, ...]:
    number = row["sequences"]

    def rate(seconds: list[float]) -> str:
        return f"{float(f'{number / median(seconds):.2g}'):,.0f}"

    return (
        row["data"],
        f"{row['sequences']:,}",
        f"**{row['method']}**" if row["ours"] else row["method"],
        f"{row['rows']:,}",
        f"{100 * row['fill']:.2f} %",
        f"{row['pair_mixing']:.3f}",
        percent(row["cost_spread"]),
        rate(row["seconds"]),
        rate(row["plan_seconds"]) if "plan_seconds" in row else "",
    )


WAITING_RANKS = (2, 8, 32)


def waiting(document: dict[str, Any]) -> tuple[str, ...]:
    """What each deal mixes and waits, for some numbers of ranks."""
    by = {(row["data"], row["cut"], row["way"], row["ranks"]): row for row in document["rows"]}
    kinds = {"fixed": f"{document['batch_size']} sequences", "budget": "a budget"}
    rows = [
        (
            f"{name}, {kinds[cut]}",
            way,
            percent(by[name, cut, way, 8]["padding_share"]),
            *(cell for ranks in WAITING_RANKS for cell in waiting_cells(by[name, cut, way, ranks])),
        )
        for name, cut, way in dict.fromkeys((row["data"], row["cut"], row["way"]) for row in document["rows"])
    ]
    of_each = (f"{what}, {ranks}" for ranks in WAITING_RANKS for what in ("step mixing", "waiting"))
    name = list(dict.fromkeys(row["data"] for row in document["rows"]))[-1]
    least, some, steps = (by[name, "fixed", way, 8] for way in ("balanced", "balanced, waiting 5 %", "random steps"))
    answer = (
        f"On {name}, 8 ranks take batches of {kinds['fixed']}. Step mixing is {least['step_mixing']:.2f} where ranks "
        f"wait least, and {some['step_mixing']:.2f} where they may wait 5 % of the time. With random steps it is "
        f"{steps['step_mixing']:.2f}: they wait {percent(steps['straggler_waste'])}, and pad "
        f"{percent(steps['padding_share'])} instead of {percent(some['padding_share'])}."
    )
    note = (
        f"Batches of max-entropy at {percent(document['padding'])} padding, dealt to "
        f"{', '.join(map(str, WAITING_RANKS))} ranks; below them random steps. The padding is that for 8 ranks; "
        "the JSON has 1 to 64 ranks. *Balanced, waiting 5 %*: `Balanced(waiting=0.05)`. Where even batches of like "
        "cost wait longer, it deals these, and warns. Batches under a budget cost about the same. There any of them "
        "may share a step, and ranks wait less than 5 %."
    )
    last = f"{name}, {kinds['fixed']}", f"{name}, {kinds['budget']}"
    return answer, folded(("batches of", "deal", "padding", *of_each), rows, lambda row: row[0] in last), note


def waiting_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['step_mixing']:.2f}", percent(row["straggler_waste"])


def planning(document: dict[str, Any]) -> tuple[str, ...]:
    """Seconds for each strategy under each cut, on one and on eight ranks."""
    labels = dict.fromkeys(row["strategy"] for row in document["rows"])
    columns = dict.fromkeys((row["cut"], row["world_size"]) for row in document["rows"])
    seconds = {(row["strategy"], row["cut"], row["world_size"]): row["seconds"] for row in document["rows"]}
    rows = [(f"`{label}`", *(f"{seconds[label, cut, ranks]:.2f}" for cut, ranks in columns)) for label in labels]
    heads = ("strategy", *(f"{cut}, {ranks} rank{'s' * (ranks > 1)}" for cut, ranks in columns))
    low, high = min(seconds.values()), max(seconds.values())
    answer = f"One core plans {document['count']:,} lengths in {low:.2f} to {high:.2f} seconds"
    note = "Each number is in seconds of one core; a column is a cut and a number of ranks."
    of_8 = (0, *(at for at, head in enumerate(heads) if head.endswith(", 8 ranks")))
    shown = folded(heads, rows, lambda _: True, of_8)
    if "permutation_seconds" not in document["rows"][0]:  # measured before permutations were
        return f"{answer}.", shown, note
    times = [row["seconds"] / row["permutation_seconds"] for row in document["rows"]]
    peaks = [row["bytes_per_sequence"] for row in document["rows"]]
    answer += f": {min(times):.1f} to {max(times):.1f} times what NumPy takes to permute as many numbers."
    note += (
        f" Planning takes {min(peaks):.0f} to {max(peaks):.0f} bytes a sequence at its peak, beyond the lengths that "
        "it is given. An order is fitted in the first epoch, which is not counted here, and remembered."
    )
    return answer, shown, note


def first_plan(document: dict[str, Any]) -> tuple[str, ...]:
    """Seconds until a fresh process has its first plan."""
    columns = ("import_seconds", "warm_seconds", "cold_seconds")
    rows = [
        (f"{row['count']:,}", row["case"], *(f"{row[column]:.2f}" for column in columns)) for row in document["rows"]
    ]
    slowest, warm = (max(row[f"{state}_seconds"] for row in document["rows"]) for state in ("cold", "warm"))
    cold = sorted(row["cold_seconds"] for row in document["rows"])
    answer = (
        f"The first plan of an installation takes {cold[0]:.2f} to {slowest:.1f} seconds. The first of every other "
        f"process takes up to {warm:.1f}. Small calls run in Python at first, and compile nothing."
    )
    note = (
        "In seconds of one core. *Cold*: nothing is compiled yet. *Warm*: another process has compiled all that the "
        "plan calls. Both come on top of the import."
    )
    return answer, table(("lengths", "order", "import", "first plan, warm", "first plan, cold"), rows), note


def step_cost(document: dict[str, Any]) -> tuple[str, ...]:
    """Predicted seconds of an epoch beside the measured ones, for each network and batching."""
    rows, errors = [], []
    for row in document["rows"]:
        errors.append(row["predicted"] / row["measured"] - 1)
        rows.append(
            (
                row["model"],
                row["batching"],
                percent(row["padding"]),
                f"{row['predicted']:.2f}",
                f"{row['measured']:.2f} ({row['least']:.2f} to {row['most']:.2f})",
                f"{100 * errors[-1]:+.1f} %",
            )
        )
    near = sum(abs(error) <= 0.1 for error in errors)
    answer = (
        f"From one measurement of its step, {near} of {len(rows)} epochs were predicted to within 10 %. The "
        f"largest error is {percent(max(map(abs, errors)))}."
    )
    fits = "; ".join(f"{fit['model']} {percent(fit['error'])}" for fit in document["fits"])
    loads = f"{min(document['loads']):.1f} to {max(document['loads']):.1f}"
    note = (
        f"In seconds, medians of {document['rounds']} rounds, least to most in brackets. A round times each of about "
        f"fifteen shapes, right after a run of the same shape, and trains an epoch of each batching. "
        f"On shapes left out, the fits miss: {fits}. Other programs ran meanwhile: the load was {loads} on "
        f"{document['cores']} cores, so epochs differ as the brackets say."
    )
    heads = ("network", "batching", "padding", "predicted", "measured", "error")
    return answer, table(heads, rows), note


def windows(document: dict[str, Any]) -> tuple[str, ...]:
    """Each size of window beside the whole plan, on one and on eight ranks; then the long epoch, and the cold disk."""
    rows = [
        (
            "all at once" if row["window"] is None else f"2^{row['window'].bit_length() - 1}",
            f"{row['world_size']}",
            percent(row["padding"]),
            f"{row['mixing']:.3f}",
            f"{row['step_mixing']:.3f}",
            f"{row['seconds']:.2f}",
        )
        for row in document["rows"]
    ]
    heads = ("window", "ranks", "padding", "mixing of batches", "mixing of steps", "s / epoch")
    long = document["epoch"]
    checked = "each sequence is in one batch" if long["each_once"] else "NOT EVERY SEQUENCE IS IN ONE BATCH"
    answer = (
        f"One core plans {long['count']:,} lengths on disk in {long['seconds']:,.0f} seconds: {long['windows']} "
        f"windows of up to 2^20, {long['seconds'] / long['windows']:.2f} seconds each. They pad "
        f"{percent(long['padding'])} where {percent(document['padding'])} was asked, and {checked}. The "
        f"process then has at most {long['peak_megabytes']:.0f} MB more than before."
    )
    first = document["cold"][0]["window"]
    cold = ", ".join(f"{row['cold_seconds']:.2f} s in blocks of {row['block']:,}" for row in document["cold"])
    note = (
        f"The table is of {document['compared']:,} log-normal lengths, {document['budget']:,} frames a batch and "
        f"`padding={document['padding']}`. A window of few batches pads more. All windows share one fit. "
        f"From a cold disk the lengths of a window of {first:,} take {cold}."
    )
    return answer, table(heads, rows), note


def edges(document: dict[str, Any]) -> tuple[str, ...]:
    """Seconds for optimal edges against the paper's recurrence."""
    rows = [
        (
            f"{row['distinct_lengths']:,}",
            f"{row['seconds']:.4f}",
            f"{row['recurrence_seconds']:.4f}" if "recurrence_seconds" in row else "",
            {True: "yes", False: "NO", None: ""}[row.get("same_optimum")],
        )
        for row in document["rows"]
    ]
    heads = ("distinct lengths", "`optimal_edges`, s", "the paper's recurrence, s", "same optimum")
    last = document["rows"][-1]
    answer = (
        f"One core finds the edges of {document['buckets']} buckets for {last['distinct_lengths']:,} distinct lengths "
        f"in {last['seconds']:.2f} seconds."
    )
    note = "Where a cell is empty, the recurrence was not tried."
    pairs = edges_of_pairs(document) if document["pairs"] else ()
    return answer, table(heads, rows), note, *pairs


def edges_of_pairs(document: dict[str, Any]) -> tuple[str, ...]:
    """What buckets of two lengths pad, and how near the search comes to the optimum of small sets."""
    rows = [
        (
            row["data"],
            str(row["buckets"]),
            *(percent(row[kind]) for kind in ("search", "grid", "sum")),
            f"{row['seconds']:.2f}",
        )
        for row in document["pairs"]
    ]
    heads = ("pairs of lengths", "buckets", "`optimal_edges`", "a grid", "by the sum", "search, s")
    small = document["small"]
    sets, optimal, most = (
        sum(row["sets"] for row in small),
        sum(row["optimal"] for row in small),
        max(row["most"] for row in small),
    )
    row = next(row for row in document["pairs"] if row["buckets"] == 8)
    answer = (
        f"Of two lengths, {row['buckets']} buckets pad {percent(row['search'])} on {row['data']}. A grid of as many "
        f"cells pads {percent(row['grid'])}, and buckets of the sum of both lengths {percent(row['sum'])}."
    )
    note = (
        "Each sequence is padded to both edges of its bucket. *A grid*: optimal edges of each length, the best product "
        "of no more cells. *By the sum*: optimal buckets of the sum of both lengths. The search is no proven optimum. "
        f"On {sets:,} random sets small enough to try all edges, of two and three lengths, it found the optimum of "
        f"{optimal:,}, and took at most {percent(most)} more frames than it."
    )
    return answer, table(heads, rows), note


def cuts(document: dict[str, Any]) -> tuple[str, ...]:
    """How far the greedy cut is from the best cuts of the same orders."""
    found = {(row["data"], row["budget"], row["strategy"], row["cost_of"], row["by"]): row for row in document["cuts"]}
    rows = []
    for (*about, cost, by), greedy in found.items():
        if cost == "padded" and by == "greedy":
            best, of_squares = found[(*about, "padded", "optimal")], found[(*about, "quadratic", "optimal")]
            priced, cheapest = found[(*about, "per batch", "greedy")], found[(*about, "per batch", "cheapest")]
            data, budget, strategy = about
            fewer = f"{cheapest['batches'] / priced['batches']:.2f}"
            savings = (best["saved"], of_squares["saved"], cheapest["saved"])
            shares = (*map(percent, (greedy["padding"], best["padding"])), *map(saving, savings))
            seconds = (f"{1e3 * each['seconds']:.2f}" for each in (greedy, best))
            rows.append((data, f"{budget:,}", f"`{strategy}`", *shares, fewer, *seconds))
    heads = ("lengths", "budget", "strategy", "greedy pads", "optimal pads", "saves", "with attention")
    heads = (*heads, "cheapest saves", "x batches", "greedy, ms", "optimal, ms")
    spread_of = {name: saved_by(document, name) for name in ("random", "sorted", "max-entropy:0.1")}
    answer = (
        '`Budget(by="optimal")` makes as few batches as the greedy cut, and cuts where they cost least. In random '
        f"order it saves {spread_of['random']} of the padded frames, in sorted order {spread_of['sorted']}, and in "
        f"that of max-entropy {spread_of['max-entropy:0.1']}. It cuts a million lengths in "
        f"{max(row['seconds'] for row in document['million']):.2f} seconds at most."
    )
    note = (
        "*Greedy*, *optimal*: `Budget(by=...)` on the same orders, without borders of buckets. Both make as few "
        "batches. *Saves*: of the padded frames; *with attention*: of `Quadratic(linear=1, quadratic=0.002)`, under "
        "five times the budget. *Cheapest*: of a cost by which a batch costs a tenth of the budget beside its frames, "
        f"and *x batches* how many more it makes. Means of {document['epochs']} epochs; milliseconds of the cut alone."
    )
    budgets = ("20,000", "12,800")
    return answer, folded(heads, rows, lambda row: row[1] in budgets, range(9)), note


def saved_by(document: dict[str, Any], strategy: str) -> str:
    """The least and the most that the optimal cut saves of the padded frames in the orders of a strategy."""
    saved = [
        row["saved"]
        for row in document["cuts"]
        if (row["strategy"], row["cost_of"], row["by"]) == (strategy, "padded", "optimal")
    ]
    return f"{saving(min(saved))} to {saving(max(saved))}"


def saving(share: float) -> str:
    """A small share."""
    return f"{100 * share:.2f} %"


def shapes(document: dict[str, Any]) -> tuple[str, ...]:
    """What few shapes pad, by how they are chosen; what leftovers passed on save; what multiples of counts cost."""
    one, two = document["shapes"], document["pairs"]
    counts = document["shape_counts"]
    names = ("lengths", "padded lengths", f"{counts[0]} shape", *map(str, counts[1:]))
    padded = [
        (
            row["data"] + (f", multiples of {row['multiple']}" if row.get("multiple", 1) > 1 else ""),
            f"`{row['way']}`" if "_" in row["way"] else row["way"],
            *map(percent, row["padding"]),
        )
        for row in (*one, *two)
    ]
    last = {row["way"]: row["padding"][-1] for row in one if row["data"] == "long-tailed" and row["multiple"] == 1}
    answer = (
        f"{counts[-1]} shapes of `optimal_shapes` pad {percent(last['optimal_shapes'])} on long-tailed lengths. As "
        f"many of `optimal_edges` pad {percent(last['optimal_edges'])}, powers of two {percent(last['powers of two'])}."
    )
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    note = (
        "The share of computed frames without data, where each batch is padded to its shape, by the number of shapes. "
        f"Rows that stay empty in the last batch of a shape count. Budgets: {budgets}. *Multiples of 8*: padded "
        "lengths and rows. *Powers of two*: the longest ones needed, so many at most. Of two lengths, `optimal_shapes` "
        "is the cheapest chain, and *the sum* has optimal buckets of the sum of both."
    )
    return answer, table(names, padded), note, *leftovers(document), *multiples(document)


def leftovers(document: dict[str, Any]) -> tuple[str, ...]:
    """What shapes save that pass their leftovers on."""
    first, *counts = document["shape_counts"]
    heads = ("lengths", "padded to multiples of", "different lengths", f"{first} shape", *map(str, counts))
    rows = [
        (row["data"], str(row["multiple"]), f"{row['different']:,}", *map(saving, row["saved"]))
        for row in document["leftovers"]
    ]
    most = max(max(row["saved"]) for row in document["leftovers"])
    answer = (
        f'With `leftovers="next"` the best shapes cost up to {saving(most)} less: what fills no batch of a shape goes '
        "to the next longer one. It saves more where many sequences share a length."
    )
    return answer, table(heads, rows)


def multiples(document: dict[str, Any]) -> tuple[str, ...]:
    """How long ranks wait where batches hold multiples."""
    rows = document["multiples"]
    wanted = sorted({row["multiple"] for row in rows})
    found = {(row["data"], row["budget"], row["multiple"]): row for row in rows}
    heads = ("lengths", "budget", *(f"multiples of {each}" if each > 1 else "any count" for each in wanted))
    table_rows = [
        (data, f"{budget:,}", *(percent(found[data, budget, each]["waiting"]) for each in wanted))
        for data, budget in dict.fromkeys((row["data"], row["budget"]) for row in rows)
    ]
    least, most = (found["long-tailed", 20_000, each]["waiting"] for each in (wanted[0], wanted[-1]))
    answer = (
        f"Counts in multiples of {wanted[-1]} make {document['ranks']} ranks wait {percent(most)} of the time in "
        f"random steps of long-tailed lengths under 20,000 frames, in place of {percent(least)}. "
        "A larger budget lowers it."
    )
    note = f"Waiting of `RandomSteps` by `count_multiple_of`, {document['epochs']} epochs."
    return answer, table(heads, table_rows), note


def ge2021_table1(document: dict[str, Any]) -> tuple[str, ...]:
    """The paper's numbers beside ours."""
    digits = {"batches": 0, "zpr": 2, "abl": 1}
    rows = [
        (
            f"`{row['strategy']}`",
            row["sizes"],
            row["quantity"],
            *(f"{row[name]:.{digits[row['quantity']]}f}" for name in ("paper", "mean", "least", "greatest")),
            f"{interval(row['values']).smallest_difference:.2g}",
            "reproduced" if row["reproduced"] else "not",
        )
        for row in document["rows"]
    ]
    heads = ("strategy", "batch size", "quantity", "paper", "ours", "least", "greatest", "could tell", "verdict")
    reproduced = sum(row["reproduced"] for row in document["rows"])
    answer = f"{reproduced} of {len(rows)} numbers of the paper are reproduced: our mean is {describe_tolerances()}."
    note = (
        f"Each row is of {len(document['seeds'])} random training sets of 10,480 clips. Which clips are drawn moves "
        f"the average batch length by about {abl_swing(document['rows']):.0f} frames either way. So a single run of "
        "`lengthwise compare --subset 10480` may miss the paper by more than the mean does. *Could tell*: the smallest "
        "difference of our mean from the paper's number that as many training sets would show in 4 of 5 tries (80 % "
        "power), in the unit of the quantity."
    )
    return answer, table(heads, rows), note


def abl_swing(rows: list[dict[str, Any]]) -> float:
    """Half of the range of the average batch length over the training sets, mean over the strategies."""
    swings = [(row["greatest"] - row["least"]) / 2 for row in rows if row["quantity"] == "abl"]
    return sum(swings) / len(swings)


def gradients(document: dict[str, Any]) -> tuple[str, ...]:
    """One row for each cut, loss, number of ranks and of micro-batches: the error of each way to weigh the losses."""
    keys = ("cut", "loss", "ranks", "micro_batches")
    cases: dict[tuple[Any, ...], dict[tuple[str, str], float]] = {}
    for row in document["rows"]:
        cases.setdefault(tuple(row[key] for key in keys), {})[row["way"], row["wrapper"]] = row["error"]
    usual = ("batches summed", "batches averaged", "ranks averaged")
    rows = [
        (
            f"`{cut}`",
            *(str(value) for value in rest),
            *(f"{max(found[way, 'DDP'], found[way, 'FSDP']):.2g}" for way in usual),
            *(f"{found['loss scales', wrapper]:.2g}" for wrapper in ("DDP", "FSDP")),
        )
        for (cut, *rest), found in cases.items()
    ]
    heads = ("cut", "mean over", "ranks", "micro-batches", *usual, "loss scales, DDP", "loss scales, FSDP")
    exact = max(row["error"] for row in document["rows"] if row["way"] == "loss scales")
    averaged = max(row["error"] for row in document["rows"] if row["way"] == "batches averaged")
    answer = (
        f"A step has several batches. With `loss_scales` its gradient differs from that of the whole step in one "
        f"process by at most {exact:.1e} of the largest entry. With the usual mean of batch means it differs by up to "
        f"{100 * averaged:.0f} %."
    )
    note = (
        "Each number is max |difference| / max |gradient|, beside the whole step in one process, in float64: the "
        f"greatest of {document['steps']} steps. *Batches summed*: the mean loss of each batch as it is. *Batches "
        "averaged*: divided by the micro-batches. *Ranks averaged*: the exact mean on every rank, averaged over ranks. "
        "These three are the same under DDP and FSDP (`fully_shard`). Data: "
        f"{document['sequences']:,} long-tailed lengths divided by {document['shorter']}, padded 5 %."
    )
    return answer, folded(heads, rows, lambda row: row[2:4] == ("4", "3")), note


def compilation(document: dict[str, Any]) -> tuple[str, ...]:
    """One row for each framework, compiler and strategy."""
    rows = [
        (
            f"{FRAMEWORKS[each['framework']]}, {COMPILERS[each['compiler']]}",
            f"`{each['strategy']}`",
            f"{each['shapes']}",
            f"{each['compilations']}",
            f"{each['compile_seconds']:.0f}",
            f"{each['seconds_per_epoch']:.2f}",
            f"{each['total_seconds']:.0f}",
            percent(each["padding_share"]),
        )
        for each in document["rows"]
    ]
    total = document["total_epochs"]
    heads = ("network", "batches", "shapes", "compiled", "compile, s", "s / epoch", f"{total} epochs, s", "padding")
    ran = [each for each in document["rows"] if each["framework"] == "jax"]
    quickest, slowest = (choose(ran, key=lambda each: each["total_seconds"]) for choose in (min, max))
    eager, compiled = (
        min(
            (each for each in document["rows"] if each["framework"] == "torch" and (each["compiler"] == "none") == own),
            key=lambda each: each["total_seconds"],
        )
        for own in (True, False)
    )
    answer = (
        f"More shapes pad less, and take longer to compile. {total} epochs in JAX took least with "
        f"{quickest['shapes']} shapes, {quickest['total_seconds']:.0f} s, and most with {slowest['shapes']}, "
        f"{slowest['total_seconds']:.0f} s. In PyTorch on a processor, compiling did not pay in {total} epochs: "
        f"{compiled['total_seconds']:.0f} s at best, against {eager['total_seconds']:.0f} s without it."
    )
    note = (
        "*Compile*, *s / epoch*: seconds of one core, compiling and epochs apart. `optimal:Q` is padded to the edges "
        "of Q buckets, the others to the longest of each batch. Rows that only fill a shape count as padding. The two "
        f"networks differ: compare within one. Data: {document['data']['samples']:,} {document['data']['name']}, "
        f"{document['data']['distinct_lengths']} distinct lengths, {document['settings']['batch_size']} a batch."
    )
    return answer, table(heads, rows), note


FRAMEWORKS = {"jax": "LSTM in JAX", "torch": "encoder in PyTorch"}
COMPILERS = {
    "jit": "`jit`",
    "none": "eager",
    "inductor": "`compile`",
    "inductor, dynamic": "`compile(dynamic=True)`",
}


GROUPS: dict[str, tuple[str, ...]] = {
    "Networks that were trained": (
        *("study-handwriting-latin-greek", "study-handwriting-parallel", "gradients", "length-share"),
        *("step-cost", "compilation"),
    ),
    "Padding and mixing of batches": ("mixing", "mixing-digits", "limits", "streams", "cuts"),
    "Whole steps": ("steps", "waiting", "step-limits"),
    "Packed rows and few shapes": ("packing", "shapes", "edges"),
    "How long planning takes": ("first-plan", "planning-1000000", "planning-10000000", "windows"),
    "A table of a paper": ("ge2021-table1",),
}
SECTIONS: dict[str, tuple[str, Callable[..., tuple[str, ...]]]] = {
    "study-handwriting-latin-greek": ("Online handwriting, 50 Latin and Greek letters", handwriting),
    "study-handwriting-parallel": ("Online handwriting on several processes", parallel),
    "gradients": ("Exact gradients", gradients),
    "mixing": ("Mixing at equal padding", mixing),
    "mixing-digits": ("Mixing where little is padded", mixing_digits),
    "steps": ("Whole steps: padding, mixing and waiting", steps),
    "waiting": ("Steps as mixed as a share of waiting allows", waiting),
    "limits": ("How near the limits", limits),
    "step-limits": ("How near steps come to their limit", step_limits),
    "streams": ("Streams, by the sequences that are looked at", streams),
    "length-share": ("How much of a gradient's noise goes with length", length_share),
    "step-cost": ("Seconds of an epoch, predicted from a measured step", step_cost),
    "packing": ("Packed rows beside other packers", packing),
    "ge2021-table1": ("Ge et al. 2021: padding and batch counts", ge2021_table1),
    "planning-1000000": ("Planning a million lengths", planning),
    "planning-10000000": ("Planning ten million lengths", planning),
    "first-plan": ("The first plan of a process", first_plan),
    "windows": ("A thousand million lengths, in windows", windows),
    "edges": ("Optimal bucket edges", edges),
    "cuts": ("Optimal cuts", cuts),
    "shapes": ("Few shapes, leftovers and multiples", shapes),
    "compilation": ("One compiled model per bucket", compilation),
}


def source(path: Path, document: dict[str, Any]) -> str:
    """Where, when and by which command."""
    measured = f"{processor(document['machine'])}, {document['date'][:10]}"
    return f"Measured on {measured} ([JSON]({link(path)})):\n\n{command_block(document['command'])}"


def processor(machine: dict[str, Any]) -> str:
    """What computed, and in how many threads."""
    where = machine.get("device_name") or machine.get("processor") or machine.get("cpu")
    threads = f", {machine['threads']} thread{'s' * (machine['threads'] > 1)}" if "threads" in machine else ""
    return f"{where}{threads}"


def link(path: Path) -> str:
    return f"/{path.relative_to(ROOT)}"


if __name__ == "__main__":
    sys.exit(main())
