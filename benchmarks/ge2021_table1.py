"""Compares the padding and the batch counts of Ge et al. 2021 with ours on LJSpeech.

    python benchmarks/ge2021_table1.py

It writes the output of `lengthwise reproduce ge2021-table1` on the lengths of LJSpeech as a result.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from record import DATA, parser, write

import lengthwise as lw
from lengthwise.cli.parser import draw_subset
from lengthwise_recipes.ge2021.table1 import TRAINING_CLIPS, table1, tally

SEEDS = range(20)


def main() -> int:
    """Measures and writes; returns 1 if the lengths of LJSpeech are missing."""
    parser(__doc__).parse_args()
    file = DATA / "ljspeech" / "ljspeech_lengths.csv"
    if not file.exists():
        print(f"LJSpeech's lengths are not at {file}", file=sys.stderr)
        return 1
    lengths = lw.read_lengths(file, column="frames_12p5ms")
    rows = table1({seed: draw_subset(lengths, TRAINING_CLIPS, seed=seed) for seed in SEEDS})
    facts = {"fingerprint": lw.fingerprint(lengths), "seeds": list(SEEDS), "rows": [asdict(row) for row in rows]}
    print(f"{tally(rows)} {write('ge2021-table1', facts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
