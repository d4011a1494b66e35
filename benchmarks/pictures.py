"""Draws every picture of the pages from the committed results; nothing is trained or measured again.

    python benchmarks/pictures.py [NAME ...]

Four are of plans, which are made anew: docs/padding.png of LJSpeech's own lengths, without which it is left as it is;
docs/trade-off.png and docs/theory-*.png of the long-tailed example. With names, such as padding or ge2021, only the
pictures whose names begin so are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import theory
from record import DATA, parser
from tables import PAPERS, QUALITY, ROOT, TASKS, results

import lengthwise as lw
from lengthwise import plot
from lengthwise_recipes.doetsch2017 import page as doetsch2017
from lengthwise_recipes.ge2021 import figures as ge2021
from lengthwise_recipes.khomenko2016 import page as khomenko2016
from lengthwise_recipes.quality import figure as quality
from lengthwise_recipes.quality.page import figure_name as quality_name
from lengthwise_recipes.study import figure as study

DOCS = ROOT / "docs"
LJSPEECH = DATA / "ljspeech" / "ljspeech_lengths.csv"
STUDIES = {"handwriting": "study-handwriting-latin-greek", "handwriting-parallel": "study-handwriting-parallel"}
RANKS, EPOCHS = 8, 12  # of docs/padding.png: a step is eight batches, and as many epochs fill the bins of mixing
MOST_PADDING = 0.3  # of docs/trade-off.png: nobody who has a choice pads more

Draw = Callable[[], None]


def main() -> None:
    """Draws all, or those that are named."""
    wanted = parser(__doc__)
    wanted.add_argument("names", nargs="*", metavar="NAME")
    starts = tuple(wanted.parse_args().names) or ("",)
    for draw, paths in pictures().items():
        if any(path.name.startswith(starts) for path in paths):
            draw()
            print(*(path.relative_to(ROOT) for path in paths))


def pictures() -> dict[Draw, list[Path]]:
    """What draws the pictures, and which."""
    drawn: dict[Draw, list[Path]] = {
        draw_padding: [DOCS / "padding.png"],
        draw_trade_off: [DOCS / "trade-off.png"],
        theory.draw: [DOCS / "theory-joint.png", DOCS / "theory-noise.png"],
    }
    for name, what in STUDIES.items():
        path = DOCS / f"{name}.png"
        drawn[partial(study.write_figure, latest(what), path)] = [path]
    for task in TASKS:
        path = QUALITY.parent / quality_name(task)
        drawn[partial(quality.write_figure, latest(f"quality-{task}"), path)] = [path]
    for module in (khomenko2016, doetsch2017, ge2021):
        what = module.__name__.split(".")[1]
        drawn[partial(module.write_figures, latest(f"{what}-small"), PAPERS)] = [
            PAPERS / module.figure_name(name) for name in module.FIGURES
        ]
    return drawn


def latest(what: str) -> Mapping[str, Any]:
    """The committed result of one kind that is the newest."""
    return results(what)[-1][1]


def draw_padding() -> None:
    """Steps of LJSpeech on eight ranks: what they pad, how long ranks wait, and how alike their lengths are."""
    if not LJSPEECH.exists():
        print(f"docs/padding.png is left as it is: there is no {LJSPEECH}.")
        return
    clips, cut, sorts = lw.read_lengths(LJSPEECH, column="frames_12p5ms"), lw.FixedSize(16), lw.MaxEntropy(padding=0.05)
    batchings = {
        "random": lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.Mixed()),
        "max-entropy, balanced steps": lw.Batching(cut=cut, order=sorts, deal=lw.Balanced()),
        "max-entropy, mixed steps": lw.Batching(cut=cut, order=sorts, deal=lw.Mixed()),
        "random-steps": lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps()),
    }
    plans = {
        name: [lw.make_plan(clips, batching, epoch=epoch, world_size=RANKS) for epoch in range(EPOCHS)]
        for name, batching in batchings.items()
    }
    plot.save(plot.step_padding(clips, plans, unit="frames of 12.5 ms"), DOCS / "padding.png")


def draw_trade_off() -> None:
    """What the strategies of the papers and max-entropy batching mix at up to 30 % padding."""
    lengths = lw.example_lengths("long-tailed")
    rows = plot.sweep(lengths, lw.FixedSize(16), epochs=16)
    plot.save(plot.trade_off(rows, lengths=lengths, max_padding=MOST_PADDING), DOCS / "trade-off.png")


if __name__ == "__main__":
    main()
