"""Compares max-entropy batching with optimal buckets at little padding, on spoken digits.

    python benchmarks/mixing_digits.py

The lengths are those of the 3,000 recordings of the Free Spoken Digit Dataset, in samples at 8 kHz. Each number of
optimal buckets is compared with max-entropy batching that pads at most as much. Mixing is estimated in 128 bins on all
epochs of a seed together; the limit is that of 128 bins too. Batches have 16 sequences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mixing import CUT, EPOCHS, SEEDS, fitted, pooled
from numpy.typing import NDArray
from record import DATA, parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy

BUCKETS = (40, 36, 32, 28, 24, 20, 16, 12, 8)


def main() -> None:
    """Measures and writes the result; needs the recordings."""
    parser(__doc__).parse_args()
    file = DATA / "fsdd" / "fsdd_8k_int16.npz"
    if not file.exists():
        raise SystemExit(f"{file} must hold the recordings, but is not there. Set LENGTHWISE_DATA.")
    with np.load(file) as arrays:
        lengths = np.diff(arrays["offsets"])
    rows = [row(lengths, buckets) for buckets in tqdm(BUCKETS, disable=None)]
    facts = {"seeds": list(SEEDS), "epochs": EPOCHS, "bins": 128, "sequences": len(lengths), "rows": rows}
    path = write("mixing-digits", {**facts, "fingerprint": lw.fingerprint(lengths)})
    print(f"max-entropy mixes less at {sum(result['behind'] for result in rows)} of {len(rows)} paddings; {path}")


def row(lengths: NDArray[np.int64], buckets: int) -> dict[str, Any]:
    """Compares buckets with max-entropy at equal padding; "behind" if all our seeds are below all those of buckets."""
    theirs = measured(lengths, parse_strategy(f"optimal:{buckets}", cut=CUT), f"optimal:{buckets}")
    order = fitted(lengths, theirs["padding_share"])
    ours = measured(lengths, lw.Batching(cut=CUT, order=order), f"max-entropy:{order.padding:.4g}")
    return {"theirs": theirs, "ours": ours, "behind": ours["greatest"] < theirs["least"]}


def measured(lengths: NDArray[np.int64], batching: lw.Batching, strategy: str) -> dict[str, Any]:
    """Returns the mean padding share, and mixing: its mean and range over seeds, and the mean divided by the limit."""
    seeds = [pooled(lengths, batching, seed) for seed in SEEDS]
    values = [mixing for mixing, _ in seeds]
    padding = float(np.mean([share for _, share in seeds]))
    return {
        "strategy": strategy,
        "padding_share": padding,
        "mixing": float(np.mean(values)),
        "least": min(values),
        "greatest": max(values),
        "share_of_limit": float(np.mean(values)) / lw.mixing_limit(lengths, padding, bins=128),
    }


if __name__ == "__main__":
    main()
