"""How near does each order come to the limits: of endless batches, of batches of its cut, and of as many in an epoch?

    python benchmarks/limits.py

Every setting of an order stands beside the limits at its own padding. That of epochs is for as many batches of a fixed
size, and under a budget for as many empty places as the epoch has that leaves most empty.
Lengths and padded lengths are put into the same groups, those of `mixing_limit(bins=1024)`, so that the limits are
those of the mixing that is measured. The epochs of one seed are pooled until they are 655,360 sequences.

Long-tailed example, LJSpeech, and the recordings of the Free Spoken Digit Dataset (lengths in samples at 8 kHz);
batches of 16 and of 64, and of as many padded frames as 16 and 64 sequences of the mean length have, or of the longest.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from mixing import data
from numpy.typing import NDArray
from record import DATA, parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.choices.rate_distortion import ends_of_levels
from lengthwise.planning.joint import mixing_of_counts

BATCHES = (16, 64)
BINS = 1024
SEQUENCES = 655_360
KNOBS: dict[str, tuple[float, ...]] = {
    "max-entropy": (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    "semi-sorted": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0),
    "alternated": (2, 4, 8, 16, 32, 64, 128),
    "bucketed": (128, 256, 512, 1024, 2048),
    "optimal": (2, 4, 8, 16, 32, 64),
}


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    warnings.filterwarnings("ignore", message="`padding` must be within")  # the row says what was reached
    rows = [row for name, lengths in sets().items() for cut in cuts(lengths) for row in measured(name, lengths, cut)]
    found = {"bins": BINS, "sequences": SEQUENCES, "rows": rows}
    print(write("limits", {**found, "fingerprints": {name: lw.fingerprint(each) for name, each in sets().items()}}))


def sets() -> dict[str, NDArray[np.int64]]:
    """The lengths that are at hand; the speech example is as LJSpeech, and is left out."""
    found = {name: lengths for name, lengths in data().items() if name != "speech"}
    file = DATA / "fsdd" / "fsdd_8k_int16.npz"
    if file.exists():
        with np.load(file) as held:
            found["spoken digits"] = np.diff(held["offsets"])
    return found


def cuts(lengths: NDArray[np.int64]) -> list[lw.FixedSize | lw.Budget]:
    """Batches of a size, and of about as many frames."""
    frames = [max(int(lengths.max()), round(batch * lengths.mean())) for batch in BATCHES]
    return [*map(lw.FixedSize, BATCHES), *map(lw.Budget, frames)]


def measured(name: str, lengths: NDArray[np.int64], cut: lw.FixedSize | lw.Budget) -> list[dict[str, Any]]:
    """A row for each setting of each order, and for random and sorted batches."""
    bound = {"batch_size": cut.batch_size} if isinstance(cut, lw.FixedSize) else {"budget": cut.budget}
    knobs = [f"{order}:{knob:g}" for order, values in KNOBS.items() for knob in values]
    settings = tqdm(["random", "sorted", *knobs], desc=f"{name}, {bound}", disable=None)
    return [{"lengths": name, **bound, **row(lengths, cut, bound, setting)} for setting in settings]


def row(
    lengths: NDArray[np.int64], cut: lw.FixedSize | lw.Budget, bound: dict[str, Any], strategy: str
) -> dict[str, Any]:
    """Padding and mixing of a setting, with the limits at that padding; most epochs have as many batches."""
    # Batches as the order has them: no steps are formed before them.
    batching = lw.Batching(cut=cut, order=lw.strategy(strategy, cut=cut).order, deal=lw.Balanced())
    epochs = -(-SEQUENCES // len(lengths))
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(epochs)]
    padded = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    shorter = np.concatenate([lengths[plan.sequences] for plan in plans])
    padding = 1.0 - float(shorter.sum()) / float(padded.sum())
    batches = max(len(plan.batch_sizes) for plan in plans)
    found = {
        "strategy": strategy,
        "epochs": epochs,
        "padding_share": padding,
        "mixing": mixing_in_groups(lengths, shorter, padded),
        "batches": batches,
        "limit": lw.mixing_limit(lengths, padding, bins=BINS),
        "batch_limit": lw.mixing_limit(lengths, padding, bins=BINS, **bound),
    }
    of_epochs = {"batches": batches} if "batch_size" in bound else {"empty_places": empty_places(plans, cut.budget)}
    return found | of_epochs | {"epoch_limit": lw.mixing_limit(lengths, padding, bins=BINS, **bound, **of_epochs)}


def empty_places(plans: list[lw.Plan], budget: float) -> int:
    """How many more sequences the batches of an epoch could hold, as long as they are: the most of all epochs."""
    return max(int((budget // plan.padded_lengths[:, 0] - plan.batch_sizes).sum()) for plan in plans)


def mixing_in_groups(lengths: NDArray[np.int64], shorter: NDArray[np.int64], padded: NDArray[np.int64]) -> float:
    """exp(-I) of the groups of a length and of what it is padded to, which the limit tells apart."""
    starts, _ = ends_of_levels(lengths.astype(np.float64), BINS)
    row, column = (np.searchsorted(starts, each, side="right") - 1 for each in (shorter, padded))
    cells = np.bincount(row * len(starts) + column, minlength=len(starts) ** 2)
    return mixing_of_counts(cells.reshape(-1, len(starts)).astype(np.float64), len(shorter))


if __name__ == "__main__":
    main()
