"""A rerun of Doetsch, Golik and Ney 2017: batch construction for a bidirectional LSTM acoustic model.

    lengthwise reproduce doetsch2017 --small --data fsdd_8k_int16.npz

1. Sounds become 16 cepstra per frame.
2. A GMM-HMM gives every frame a state.
3. Three bidirectional LSTM layers learn the states with Adam at a constant rate of 0.01.
4. Posteriors over priors are decoded with a language model scaled by 12.
All rows of tables 1 and 2, and the default order of this package, are trained from the same weights.

Deviations:
- CHiME-4 is not public, so any speech may be given.
- Connected digits in noise have states of whole words, and all digits are equally likely.
- In other speech, letters or the units of a lexicon have states, tied to 1500 classes. The language model is a bigram;
  the paper has a 4-gram.
- The paper does not give the numbers of cells and epochs. Gradients are clipped to a norm of 1.
- In the small rerun the network reads two frames of 10 ms as one; every chunk length is a multiple of two.
- The small rerun has fewer bins, since it has fewer utterances. Two bins hold 200 utterances each, as many as the
  paper's 256 bins if the paper trained on all six microphones of CHiME-4.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.acoustic.decoder import Search
from lengthwise_recipes.acoustic.labelling import choose_labelling
from lengthwise_recipes.acoustic.prepared import Prepared, prepare
from lengthwise_recipes.acoustic.task import AcousticTask
from lengthwise_recipes.acoustic.units import Units
from lengthwise_recipes.doetsch2017.batchings import FIGURE_UTTERANCES, PAPER_BINS, PAPER_FRAMES, batchings
from lengthwise_recipes.doetsch2017.outcomes import outcomes
from lengthwise_recipes.speech.parts import Parts
from lengthwise_recipes.study.results import Study, plain
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study

SCHEMA = "lengthwise-doetsch2017-1"
LEARNING_RATE = 0.01  # section 5
BEAM = 200.0  # of the decoder; with connected digits it finds the words of an exact search


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a rerun.

    Attributes:
        name: "small", for example.
        count: Utterances to train on, at most.
        validating: Strings of digits to validate on; other speech takes a tenth of the utterances.
        testing: Strings of digits to decode; other speech takes another tenth if there is no test data.
        epochs: Epochs of each run.
        seeds: Runs of each batching.
        hidden: LSTM cells of each direction.
        stack: Frames that the network reads as one.
        bins: Three rising numbers of bins of alternated sorting.
        splits: Splits of the GMM-HMM's densities; a state has at most 2 ** splits.
        frames: Frames of a batch.
        timed: See `Settings`.
        device: cpu or cuda.
    """

    name: str
    count: int
    validating: int
    testing: int
    epochs: int
    seeds: int = 3
    hidden: int
    stack: int
    bins: tuple[int, int, int]
    splits: int = 3
    frames: int = PAPER_FRAMES
    timed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_whole("count", self.count, minimum=2, remedy="Give how many utterances to train on.")
        check_whole("testing", self.testing, minimum=1, remedy="Give how many to decode.")
        if len(self.bins) != 3 or [0, *self.bins, self.count + 1] != sorted({0, *self.bins, self.count + 1}):
            raise value_error("bins", f"three, rising, of 1 to {self.count}", self.bins, "Give 8, 64, 256, or fewer.")


SMALL = Size(
    name="small",
    count=400,
    validating=60,
    testing=200,
    epochs=8,
    hidden=32,
    stack=2,
    bins=(2, 6, 18),
    splits=2,
)
# `count` is the number of training utterances of one channel of CHiME-4.
FULL = Size(
    name="full",
    count=8738,
    validating=500,
    testing=1000,
    epochs=20,
    hidden=512,
    stack=1,
    bins=PAPER_BINS,
    device="cuda",
)


def prepare_for(
    parts: Parts, size: Size, *, units: Units | None = None, folder: Path | None = None, strict: bool = False
) -> Prepared:
    """Aligns speech with the states of `acoustic.labelling.choose_labelling`.

    Args:
        parts, folder, strict: See `acoustic.prepared.prepare`.
        size: `SMALL`, `FULL` or your own.
        units: Units of each word, such as phonemes. None takes letters, and for digits whole words.
    """
    labelling = choose_labelling(parts, splits=size.splits, units=units)
    return prepare(parts, labelling, search=Search(beam=BEAM), folder=folder, strict=strict)


def reproduce(
    prepared: Prepared, size: Size, *, folder: Path | None = None, progress: bool = False, command: str = ""
) -> dict[str, Any]:
    """Trains every row of the tables and decodes.

    Args:
        prepared: Speech, see `prepare_for`.
        size: The size given to `prepare_for`.
        folder: Stores the checkpoints, from which an interrupted rerun continues.
        progress, command: See `run_study`.

    Returns:
        The document, ready for JSON: outcomes, lengths of figure 1, and the study. `claims.claims_of` judges it.

    Raises:
        ValueError: As `run_study` does.
    """
    task = AcousticTask(prepared=prepared, hidden=size.hidden, stack=size.stack)
    study = run_study(
        task,
        batchings(task.lengths, frames=size.frames, bins=size.bins),
        settings(size),
        progress=progress,
        command=command,
        checkpoints=None if folder is None else folder / "study",
    )
    return _document(prepared, size, study)


def settings(size: Size) -> Settings:
    """Returns the settings that all runs share; raises a ValueError as `Settings` does."""
    return Settings(
        optimizer="adam",
        learning_rate=LEARNING_RATE,
        epochs=size.epochs,
        seeds=size.seeds,
        device=size.device,
        memory=True,
        timed=size.timed,
    )


def _document(prepared: Prepared, size: Size, study: Study) -> dict[str, Any]:
    by_label, lengths = outcomes(study), prepared.train.lengths
    chosen = np.sort(np.random.default_rng(0).permutation(len(lengths))[:FIGURE_UTTERANCES])  # for figure 1
    return {
        "schema": SCHEMA,
        **study.origin,
        "machine": {**study.machine, "cores": os.cpu_count()},
        "size": dataclasses.asdict(size),
        "outcomes": {label: plain(dataclasses.asdict(outcome)) for label, outcome in by_label.items()},
        "gmm_word_error_rate": prepared.gmm_word_error_rate,
        "lm_scale": prepared.search.lm_scale,
        "lengths": lengths[chosen].tolist(),
        "study": study.as_dict(),
    }
