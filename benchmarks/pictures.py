"""Draws the pictures of the README.

    python benchmarks/pictures.py

docs/padding.png is of LJSpeech's own lengths where they are at hand, and of the speech example where they are not;
docs/trade-off.png is of the long-tailed example.
"""

from __future__ import annotations

from pathlib import Path

from record import DATA, parser

import lengthwise as lw
from lengthwise import plot

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Draws both."""
    parser(__doc__).parse_args()
    file = DATA / "ljspeech" / "ljspeech_lengths.csv"
    clips = lw.read_lengths(file, column="frames_12p5ms") if file.exists() else lw.example_lengths("speech")
    batchings = lw.strategies("random,max-entropy:0.05", cut=lw.FixedSize(16))
    plans = {label: lw.make_plan(clips, batching) for label, batching in batchings.items()}
    plot.save(plot.epoch_lengths(clips, plans, unit="frames of 12.5 ms"), DOCS / "padding.png")
    lengths = lw.example_lengths("long-tailed")
    rows = plot.sweep(lengths, lw.FixedSize(16), epochs=16)
    plot.save(plot.trade_off(rows, lengths=lengths), DOCS / "trade-off.png")


if __name__ == "__main__":
    main()
