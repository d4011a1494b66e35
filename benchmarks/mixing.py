"""Compares the mixing of max-entropy batching with every other strategy at equal padding.

    python benchmarks/mixing.py

Each strategy is tried with many values of its knob. At every value that pads from 2 to 20 %, max-entropy is fitted to
the same padding. Mixing is estimated in 128 bins on all epochs of a seed together; the limit is that of 128 bins too.
Batches have 16 sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import DATA, parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.limits import mixing_limit
from lengthwise_recipes.mixing import measure_mixing

SEEDS = range(5)
EPOCHS = 16
CUT = lw.FixedSize(16)
LEAST, MOST = 0.02, 0.20

KNOBS: dict[str, list[float]] = {
    "semi-sorted": np.geomspace(0.002, 2.0, 22).round(5).tolist(),
    "alternated": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384],
    "windowed": [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096],
    "bucketed": [32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144],
    "optimal": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
    "uniform": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
    "quantile": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
    "exponential": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
}


def main() -> None:
    """Measures, writes the result and prints a summary."""
    parser(__doc__).parse_args()
    document: dict[str, Any] = {"seeds": list(SEEDS), "epochs": EPOCHS, "bins": 128, "data": {}}
    for name, lengths in data().items():
        document["data"][name] = {"fingerprint": lw.fingerprint(lengths), "points": points(name, lengths)}
    compared = [point for data_set in document["data"].values() for point in data_set["points"]]
    document["points"] = len(compared)
    document["max_entropy_ahead"] = sum(point["ahead"] for point in compared)
    path = write("mixing", document)
    print(f"max-entropy mixes more at {document['max_entropy_ahead']} of {len(compared)} points; {path}")


def data() -> dict[str, NDArray[np.int64]]:
    """Returns generated lengths, and those of LJSpeech if they are there."""
    sets = {name: lw.example_lengths(name) for name in ("long-tailed", "speech")}
    file = DATA / "ljspeech" / "ljspeech_lengths.csv"
    if file.exists():
        sets["LJSpeech"] = lw.read_lengths(file, column="frames_12p5ms")
    return sets


def points(name: str, lengths: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Returns a point for each setting with a padding between 2 and 20 %."""
    settings = [f"{kind}:{knob:g}" for kind, knobs in KNOBS.items() for knob in knobs]
    rows = []
    for setting in tqdm(settings, desc=name, disable=None):
        padding = padding_share(lengths, parse_strategy(setting, cut=CUT))
        if LEAST <= padding <= MOST:
            rows.append(point(lengths, setting, padding))
    return rows


def padding_share(lengths: NDArray[np.int64], batching: lw.Batching, *, seeds: Iterable[int] = SEEDS) -> float:
    """Returns the mean padding share of the first epoch of each seed."""
    plans = [lw.make_plan(lengths, batching, seed=seed) for seed in seeds]
    return float(np.mean([1.0 - lengths.sum() / (plan.batch_sizes @ plan.padded_lengths[:, 0]) for plan in plans]))


def point(lengths: NDArray[np.int64], setting: str, padding: float) -> dict[str, Any]:
    """Compares a setting with max-entropy at equal padding; "ahead" if all our seeds are above all of theirs."""
    theirs = [pooled(lengths, parse_strategy(setting, cut=CUT), seed) for seed in SEEDS]
    ours = [pooled(lengths, lw.Batching(cut=CUT, order=fitted(lengths, padding)), seed) for seed in SEEDS]
    return {
        "strategy": setting,
        "padding_share": padding,
        "mixing": float(np.mean([mixing for mixing, _ in theirs])),
        "mixing_greatest": max(mixing for mixing, _ in theirs),
        "max_entropy_padding_share": float(np.mean([share for _, share in ours])),
        "max_entropy_mixing": float(np.mean([mixing for mixing, _ in ours])),
        "max_entropy_mixing_least": min(mixing for mixing, _ in ours),
        "limit": mixing_limit(lengths, padding, bins=128),
        "ahead": min(mixing for mixing, _ in ours) > max(mixing for mixing, _ in theirs),
    }


def fitted(lengths: NDArray[np.int64], padding: float) -> lw.MaxEntropy:
    """Returns a max-entropy order that pads at most `padding`; the fit alone may pad a little more."""
    target = padding
    for _ in range(8):
        order = lw.MaxEntropy(padding=target)
        share = padding_share(lengths, lw.Batching(cut=CUT, order=order))
        if share <= padding:
            break
        target *= padding / share * 0.998
    return order


def pooled(lengths: NDArray[np.int64], batching: lw.Batching, seed: int) -> tuple[float, float]:
    """Returns mixing and padding share of all epochs of a seed together."""
    plans = [lw.make_plan(lengths, batching, seed=seed, epoch=epoch) for epoch in range(EPOCHS)]
    computed = sum(float(plan.batch_sizes @ plan.padded_lengths[:, 0]) for plan in plans)
    return measure_mixing(plans, lengths, bins=128), 1.0 - EPOCHS * float(lengths.sum()) / computed


if __name__ == "__main__":
    main()
