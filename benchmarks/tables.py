"""Writes docs/results.md and the pages of the recipes from the committed results.

    python benchmarks/tables.py [--check]

Every table names the machine, the date and the command that measured it. `--check` writes nothing, and fails where the
committed pages are not what the results say.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lengthwise import files
from lengthwise_recipes.doetsch2017 import page as doetsch2017_page
from lengthwise_recipes.ge2021 import page as ge2021_page
from lengthwise_recipes.khomenko2016 import page as khomenko2016_page
from lengthwise_recipes.pages import command_block
from lengthwise_recipes.quality import answers as quality_answers
from lengthwise_recipes.quality import page as quality_page
from lengthwise_recipes.quality import power as quality_power
from sections import GROUPS, Section
from sections.shared import processor

ROOT = Path(__file__).parents[1]
RESULTS = (ROOT / "benchmarks" / "results", ROOT / "recipes" / "results")
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
- Results from before 2026-11-25 ran `max-entropy` by another algorithm: batches drawn from a pool of waiting sequences,
  or noise fitted on the histogram of lengths. At equal padding it mixed up to a tenth more.
- Results from before 2026-11-26 ran plans whose epochs had as many steps as their batches filled, and whose last step
  was filled by halving batches. Now all epochs have the same number of steps, and batches are cut to fill them.
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
    told = quality_in_short(list(latest_quality().values()))
    sections = [part for title, members in GROUPS.items() for part in group(title, members)]
    again = ", ".join(f"[{page.stem}]({link(page)})" for page in papers())
    head = HEAD + (f"- Papers run again, their numbers beside ours: {again}.\n" if again else "")
    head += f"- What mixing is worth: [quality]({link(QUALITY)}).\n" if quality() else ""
    more = [f"[{name}](/recipes/docs/{name}.md)" for name in ("length-share", "limits")]
    head += f"- Research on what batches tell of lengths: {', '.join(more)}.\n"
    recipes = fill(RECIPES.read_text(), "quality", told)
    return {RECIPES: recipes, PAGE: "\n".join([head, contents(), *sections]), **papers(), **quality()}


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
        group: [f"[{title}](#{anchor(title)})" for what, (title, _) in members.items() if results(what)]
        for group, members in GROUPS.items()
    }
    rows = [f"| {group} | {' · '.join(found)} |" for group, found in links.items() if found]
    return "\n".join(["| about | sections |", "|---|---|", *rows]) + "\n"


def anchor(title: str) -> str:
    """The name of a heading's place, as the site and GitHub make it.

    >>> anchor("Ge et al. 2021: padding, and counts")
    'ge-et-al-2021-padding-and-counts'
    """
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def group(title: str, members: dict[str, tuple[str, Section]]) -> list[str]:
    """The heading of a group, and its sections; nothing where none was measured."""
    found = [section(path, document, *each) for what, each in members.items() for path, document in results(what)]
    return [f"## {title}\n", *found] if found else []


def section(path: Path, document: dict[str, Any], title: str, write: Section) -> str:
    """The answer, the tables, how to read them, and what measured them."""
    return "\n\n".join([f"### {title}", *write(document), source(path, document)]) + "\n"


def source(path: Path, document: dict[str, Any]) -> str:
    """Where, when and by which command."""
    measured = f"{processor(document['machine'])}, {document['date'][:10]}"
    return f"Measured on {measured} ([JSON]({link(path)})):\n\n{command_block(document['command'])}"


def link(path: Path) -> str:
    return f"/{path.relative_to(ROOT)}"


if __name__ == "__main__":
    sys.exit(main())
