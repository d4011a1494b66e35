"""Speed, memory and error rates of each batching of Doetsch et al. 2017, under every seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from lengthwise_recipes.study.results import Study, runs_of

OF_SEEDS = ("utterances_per_second", "word_error_rates", "frame_error_rates")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One row of the tables.

    Attributes:
        utterances_per_second: Training speed in each epoch timed apart, or in the median epoch of each seed. Chunks
            count as parts of utterances.
        word_error_rates: On the test part after the last epoch of each seed, 0 or more.
        frame_error_rates: On the validation part after the last epoch of each seed, 0..1.
        peak_bytes: Greatest memory of a training step; None if it was not measured.
        padding_share: Mean, 0..1.
    """

    utterances_per_second: list[float]
    word_error_rates: list[float]
    frame_error_rates: list[float]
    peak_bytes: int | None
    padding_share: float

    @property
    def word_error_rate(self) -> float:
        return fmean(self.word_error_rates)

    @property
    def frame_error_rate(self) -> float:
        return fmean(self.frame_error_rates)


def outcomes(study: Study) -> dict[str, Outcome]:
    """Returns the outcome of each batching, in the order of training."""
    return {label: _outcome(study, label) for label in dict.fromkeys(row.strategy for row in study.rows)}


def read_outcome(fields: Mapping[str, Any]) -> Outcome:
    """Reads an outcome from JSON, where null stands for nan."""
    finite: dict[str, Any] = {
        name: [math.nan if number is None else number for number in fields[name]] for name in OF_SEEDS
    }
    return Outcome(**{**fields, **finite})


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Returns `above` over `below`, under each seed.

    >>> ratios([3.0, 8.0], [1.0, 4.0])
    [3.0, 2.0]
    """
    return [first / second if second else float("inf") for first, second in zip(above, below, strict=True)]


def _outcome(study: Study, label: str) -> Outcome:
    runs = runs_of(study.rows, label)
    rows, timed = [row for run in runs for row in run], runs_of(study.timed, label) or runs
    tests = sorted((test for test in study.tests if test.strategy == label), key=lambda test: test.seed)
    return Outcome(
        utterances_per_second=[run[0].sequences / median(row.seconds for row in run) for run in timed],
        word_error_rates=[test.metrics["word_error_rate"] for test in tests],
        frame_error_rates=[run[-1].metrics["frame_error_rate"] for run in runs],
        peak_bytes=study.peak_bytes.get(label),
        padding_share=fmean(row.padding_share for row in rows),
    )
