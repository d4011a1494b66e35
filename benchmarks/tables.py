"""Writes docs/results.md and the pages of the recipes from the committed results.

    python benchmarks/tables.py [--check]

Every table names its machine, date and command. `--check` writes nothing, and fails if a committed page differs from
the results.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lengthwise import files
from lengthwise_recipes.doetsch2017 import page as doetsch2017_page
from lengthwise_recipes.ge2021 import page as ge2021_page
from lengthwise_recipes.intervals import interval
from lengthwise_recipes.khomenko2016 import page as khomenko2016_page
from lengthwise_recipes.order import outcomes
from lengthwise_recipes.order import page as order_page
from lengthwise_recipes.order.study import PARTS
from lengthwise_recipes.pages import command_block
from lengthwise_recipes.quality import contrasts
from lengthwise_recipes.quality import page as quality_page
from lengthwise_recipes.record import read
from sections import GROUPS, Section, peers, trained
from sections.shared import processor

ROOT = Path(__file__).parents[1]
RESULTS = (ROOT / "benchmarks" / "results", ROOT / "recipes" / "results")
PAGE = ROOT / "docs" / "results.md"
PAPERS = ROOT / "recipes" / "docs" / "papers"
QUALITY = ROOT / "recipes" / "docs" / "quality.md"
ORDER = ROOT / "recipes" / "docs" / "order.md"
README = ROOT / "README.md"
RECIPES = ROOT / "recipes" / "README.md"
SWITCH = ROOT / "docs" / "switch.md"
TASKS = ("handwriting", "acoustic", "synthesis")  # of the study of quality
END = "<!-- end -->"
HEAD = """# Results

All measurements, also those that speak against this package. Sections begin with the answer and end with the command.
Long tables show some rows; the JSON has all.

- *Padding* is the share of all computed frames that hold no data. *Computed* is the number of frames computed for each
  frame of data, 1 / (1 - padding).
- *Waiting* is the share of the time of all ranks in which they wait for the slowest of their step.
- *Mixing* measures how random the lengths in batches are, from near 0 (sorted) to 1 (random), in 2 to 128 bins. At each
  padding it has a *limit* ([why](theory.md)). *Steps mix*: 1 if each step is a random sample. *Randomness* is that of
  `lw.measure`, of two lengths of a step or row.
- *Strategies* have the names of the [command line](reference/command-line.md#lengthwise-compare).
- *Lengths*: "long-tailed" and "speech" are generated (`lw.example_lengths`). "Chats" are log-normal, of mean 800 and
  up to 16,000; "two humps" are near 200 and 2,000. LJSpeech is clips of one English voice, in frames of 12.5 ms.
  Multi30k en-de, or "pairs", is pairs of English and German sentences, in tokens.
- Plans have changed: until 2026-11-25 epochs differed in their steps; until 2026-11-24 `max-entropy` mixed more at
  equal padding ([how much](theory.md#how-near-the-plans-come)).
"""


def main() -> int:
    """Writes or checks the pages; returns 1 if a check finds a stale page."""
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
    """Returns the text of each page."""
    quality_text = quality_in_short(list(latest_quality().values()))
    sections = [part for title, members in GROUPS.items() for part in group(title, members)]
    recipes = fill(RECIPES.read_text(), "quality", quality_text)
    path, document = results("order")[-1]
    order = fill(ORDER.read_text(), "results", order_page.results(document, link=link(path)))
    readme = fill(README.read_text(), "evidence", evidence())
    switch = peers.with_measures(SWITCH.read_text(), results("peers")[-1][1])
    front = {README: readme, RECIPES: recipes, ORDER: order, SWITCH: switch}
    return {**front, PAGE: "\n".join([HEAD, *sections]), **papers(), **quality()}


def fill(text: str, name: str, content: str) -> str:
    """Returns a page with `content` between the mark of this name and the next end mark.

    >>> fill("<!-- a -->old<!-- end --> rest", "a", "new").split()
    ['<!--', 'a', '-->', 'new', '<!--', 'end', '-->', 'rest']
    """
    start = f"<!-- {name} -->"
    head, _, tail = text.partition(start)
    _, _, ending = tail.partition(END)
    return f"{head}{start}\n{content}\n{END}{ending}"


def evidence() -> str:
    """Returns a line for each of the studies that a reader of the README may ask for."""
    rows = [row for row in results("peers")[-1][1]["rows"] if (row["data"], row["world"]) == ("long-tailed", "8x4")]
    waits = {row["peer"]: f"{100 * row['waiting']:.2g} %" for row in rows if "waiting" in row}
    training = results("training")[-1][1]
    speed, equal = (
        trained.span(trained.ratios(training, "tokens_a_second", way, "group_by_length"))
        for way in ("lengthwise", "equal memory")
    )
    groups, studies = results("order")[-1][1]["groups"], latest_quality().values()
    worse = outcomes.mean_difference(groups, PARTS[0], "grouped", PARTS[0].cells)
    control = outcomes.mean_difference(groups, PARTS[1], "grouped", [("control", "gru"), ("control", "transformer")])
    by_order = [interval(contrasts.sorted_to_random(study, "epochs")) for study in studies]
    ended = [f"{100 * each.mean:+.0f}" for each in by_order]
    told = [100 * each.smallest_difference for each in by_order]
    lines = (
        "- [Beside others](docs/results.md#compared-with-other-systems), 8 ranks x 4 batches wait "
        f"{waits['lengthwise']} of the time, if it goes by frames; {waits['group_by_length']} by Hugging Face's "
        f"`group_by_length`, {waits['lhotse']} by lhotse.",
        f"- [Trained](docs/results.md#training-beside-strategies-of-the-trainer) on CPUs: {speed} times the tokens a "
        f"second of `group_by_length`; in as much memory, {equal}, in fewer updates.",
        f"- [Sorted batches](recipes/docs/quality.md) of 16 end at losses {', '.join(ended)} % from random ones on "
        f"three tasks; we would see {min(told):.0f} to {max(told):.0f} %. Steps of 128 "
        f"[grouped by length](recipes/docs/order.md) end {100 * worse.mean:.0f} % worse in one pass, and "
        f"{100 * control.mean:.0f} % if length says nothing of content"
        f"{': beyond 1 %, void by its plan' * (control.mean > 0.01)}.",
        "- Promises are [tested](docs/guide.md#promises); [numbers](docs/results.md) name their command.",
    )
    return "\n".join(
        "\n".join(textwrap.wrap(line.replace(" %", "\xa0%"), 100, subsequent_indent="  ", break_on_hyphens=False))
        for line in lines
    ).replace("\xa0", " ")


def quality() -> dict[Path, str]:
    """Returns the page of the study of quality, with the latest study of each task, if there is one."""
    latest = latest_quality()
    return {QUALITY: quality_page.page(latest)} if latest else {}


def latest_quality() -> dict[str, dict[str, Any]]:
    """Returns the latest study of each task, by its link on the page."""
    return {link(path): document for task in TASKS for path, document in results(f"quality-{task}")[-1:]}


def quality_in_short(documents: list[dict[str, Any]]) -> str:
    """Returns the answers of the study of quality, wrapped for a README."""
    if not documents:
        return "Not measured yet."
    answer = f"{quality_page.lead(documents)[0]} {quality_page.orders_sentence(documents)}"
    return "\n".join(textwrap.wrap(answer, 100))


def papers() -> dict[Path, str]:
    """Returns the page of each rerun paper, from its latest result."""
    by_page = {PAPERS / f"{name}.md": (write, results(f"{name}-small")) for name, write in REPRODUCTIONS.items()}
    texts = {
        page: write(reruns[-1][1], json_link=link(reruns[-1][0])) for page, (write, reruns) in by_page.items() if reruns
    }
    for path, document in (*results("doetsch2017-larger")[-1:], *results("doetsch2017-tied")[-1:]):
        texts[PAPERS / "doetsch2017.md"] += f"\n{doetsch2017_page.nearer(document, json_link=link(path))}"
    for path, document in results("ge2021-longer")[-1:]:
        texts[PAPERS / "ge2021.md"] += f"\n{ge2021_page.longer(document, json_link=link(path))}"
    return texts


REPRODUCTIONS: dict[str, Callable[..., str]] = {
    "khomenko2016": khomenko2016_page.page,
    "doetsch2017": doetsch2017_page.page,
    "ge2021": ge2021_page.page,
}


def results(kind: str) -> list[tuple[Path, dict[str, Any]]]:
    """Returns the committed results of one kind, oldest first."""
    paths = sorted(
        (path for folder in RESULTS for path in folder.glob(f"{kind}_*.json")),
        key=lambda path: path.stem.rsplit("_")[-1],
    )
    return [(path, read(path)) for path in paths]


def group(title: str, members: dict[str, tuple[str, Section]]) -> list[str]:
    """Returns the heading of a group and its sections; nothing without results."""
    sections = [
        section(path, document, *member) for kind, member in members.items() for path, document in results(kind)
    ]
    return [f"## {title}\n", *sections] if sections else []


def section(path: Path, document: dict[str, Any], title: str, write: Section) -> str:
    """Returns the answer, the tables, their notes, and the source."""
    return "\n\n".join([f"### {title}", *write(document), source(path, document)]) + "\n"


def source(path: Path, document: dict[str, Any]) -> str:
    """Returns machine, date and command."""
    measured = f"{processor(document['machine'])}, {document['date'][:10]}"
    return f"Measured on {measured} ([JSON]({link(path)})):\n\n{command_block(document['command'])}"


def link(path: Path) -> str:
    return f"/{path.relative_to(ROOT)}"


if __name__ == "__main__":
    sys.exit(main())
