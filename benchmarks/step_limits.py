"""How near do steps of several batches come to the limit of steps?

    python benchmarks/step_limits.py

Random steps, and steps that take a batch of every stratum of max-entropy or semi-sorted batches, each beside the limit
at its own padding.
The limit is of everything that the padded lengths of a step tell. Mixing is of the mean padded length of a step alone,
which tells less, so a share of the limit may be too high, and never too low but for the estimate. Lengths are put into
the same groups for both. The epochs of one seed are pooled until they are 655,360 sequences.

Long-tailed example, LJSpeech, and the recordings of the Free Spoken Digit Dataset; steps of 4 and of 16 batches, each
of 16 sequences, or of as many padded frames as 16 sequences of the mean length have, or as the longest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from limits import SEQUENCES, sets
from numpy.typing import NDArray
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.choices.rate_distortion import ends_of_levels
from lengthwise.measures.epochs import read_epochs
from lengthwise.measures.mixing import bin_steps
from lengthwise.planning.joint import mixing_of_counts

BATCHES = (4, 16)  # of a step
BATCH = 16  # sequences
BINS = 256
SHARES = (0.9, 0.75, 0.5, 0.35, 0.2, 0.1)  # of the padding of random steps
NOISES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # of semi-sorted batches


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    warnings.filterwarnings("ignore", message="`padding` must be within")  # the row says what was reached
    found = {"bins": BINS, "sequences": SEQUENCES, "batch": BATCH}
    prints = {name: lw.fingerprint(each) for name, each in sets().items()}
    print(write("step-limits", {**found, "rows": list(rows()), "fingerprints": prints}))


def rows() -> Iterator[dict[str, Any]]:
    """Each set of lengths, cut and number of batches: random steps first, then what asks for less padding."""
    for name, lengths in sets().items():
        for cut in (lw.FixedSize(BATCH), lw.Budget(max(int(lengths.max()), round(BATCH * lengths.mean())))):
            for batches in tqdm(BATCHES, desc=f"{name}, {cut}", disable=None):
                setting = {"lengths": name, "cut": type(cut).__name__, "batches": batches}
                random = measured(lengths, lw.Shuffled(), cut, batches)
                yield {**setting, "order": "random", **random}
                asked = [("max-entropy", lw.MaxEntropy(padding=share * random["padding_share"])) for share in SHARES]
                for order, chosen in [*asked, *(("semi-sorted", lw.SemiSorted(noise)) for noise in NOISES)]:
                    yield {**setting, "order": order, **measured(lengths, chosen, cut, batches)}


def measured(lengths: NDArray[np.int64], order: Any, cut: Any, batches: int) -> dict[str, Any]:
    """Padding, waiting and mixing of steps, and the limit at that padding."""
    deal = lw.RandomSteps() if order == lw.Shuffled() else lw.Stratified()
    batching = lw.Batching(cut=cut, order=order, deal=deal)
    epochs = range(-(-SEQUENCES // len(lengths)))
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=batches) for epoch in epochs]
    found = lw.measure(plans, lengths)
    return {
        "padding_share": found.padding_share,
        "straggler_waste": found.straggler_waste,
        "step_length_variance": found.step_length_variance,
        "step_mixing": mixing_in_groups(plans, lengths),
        "limit": lw.mixing_limit(lengths, found.padding_share, world_size=batches, bins=BINS),
    }


def mixing_in_groups(plans: list[lw.Plan], lengths: NDArray[np.int64]) -> float:
    """exp(-I) of the group of a length, as the limit tells them apart, and of the mean padded length of its step."""
    starts, _ = ends_of_levels(lengths.astype(np.float64), BINS)
    epochs = read_epochs(plans, lengths)
    taken = np.concatenate(epochs.taken)
    row = np.searchsorted(starts, taken, side="right") - 1
    column = np.repeat(bin_steps(epochs, BINS), epochs.sizes)
    cells = np.bincount(row * BINS + column.astype(np.int64), minlength=len(starts) * BINS)
    return mixing_of_counts(cells.reshape(-1, BINS).astype(np.float64), len(taken))


if __name__ == "__main__":
    main()
