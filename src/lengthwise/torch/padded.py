"""Whether batches are padded as planned: what the collate function pads to, beside what the plan says.

A data set that was shuffled or filtered after its lengths were measured trains as if nothing were wrong, on batches
that pad like random ones and know no budget. So does one whose tokenizer has padded all texts to one length.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from lengthwise import checks
from lengthwise.planning.plan import Plan

_BATCHES = 24  # to look at: few, so that a user hears of it before an epoch is lost
_LEAST = 0.4  # correlation: special tokens, truncation, or lengths in words leave more than this
_VARIED = 1.25  # times the shortest: batches that are planned more alike can tell nothing


class PaddedAsPlanned:
    """Looks at the first batches of a run, and warns once if they are not padded as planned."""

    def __init__(self) -> None:
        self._planned: list[int] = []
        self._padded: list[int] = []

    def look(self, shapes: Sequence[tuple[int, int] | None], plan: object, numbers: range, rank: int) -> None:
        """Notes what the batches `numbers` of a rank are padded to.

        Args:
            shapes: Rows and padded length of each batch; None for one that does not tell.
            plan: Of which `numbers` are.
            numbers: Which of the rank's batches these are, counted from 0.
            rank: Whose.
        """
        # Packed rows are all of one length, and windows are not looked into.
        if len(self._planned) >= _BATCHES or not isinstance(plan, Plan) or plan.row_offsets is not None:
            return
        own = plan.grid[:, :, rank].reshape(-1)
        for shape, number in zip(shapes, numbers, strict=True):
            # A trainer that counts otherwise is no reason to end its run.
            if shape is None or number not in range(len(own)) or shape[0] < plan.batch_sizes[own[number]]:
                return
            self._planned.append(int(plan.padded_lengths[own[number], 0]))
            self._padded.append(shape[1])
        if len(self._planned) >= _BATCHES:
            self._tell()

    def _tell(self) -> None:
        planned, padded = np.array(self._planned), np.array(self._padded)
        least, most = int(planned.min()), int(planned.max())
        if most < _VARIED * least:
            return
        if (padded == padded[0]).all():
            remedy = "Let the collate function alone pad, to the longest sequence of the batch: no tokenizer before it."
            rule = f"padded to what is planned, {least} to {most}"
            warnings.warn(checks.sentence("batches", rule, f"{padded[0]} for all", remedy), stacklevel=4)
        elif np.corrcoef(planned, padded)[0, 1] < _LEAST:
            remedy = "Measure them once the data set is shuffled, filtered and tokenized, in its order."
            given = f"unlike what the first {len(planned)} batches are padded to"
            warnings.warn(checks.sentence("lengths", "those of the data set", given, remedy), stacklevel=4)
