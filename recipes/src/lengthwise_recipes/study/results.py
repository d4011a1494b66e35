"""The results of a study: a row for each strategy, seed and epoch, a summary for each strategy, and their JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

SCHEMA = "lengthwise-study-2"


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow:
    """One epoch of one strategy from one seed.

    Attributes:
        strategy: Label of the setup.
        processes: Number of processes that trained together.
        averaging: What they averaged, "parameter" or "gradient"; "none" for one process.
        seed: Seed of the first weights and of the plans.
        epoch: The epoch, from 1.
        steps: Optimiser steps of the epoch.
        seconds: Seconds of training with padding and moving of batches, without planning and validation; those of the
            slowest process.
        planning_seconds: Seconds of planning.
        elapsed_seconds: Training seconds of this and all earlier epochs.
        sequences: Sequences in its batches, whole or in chunks.
        useful_frames: Frames in its batches without padding; of two lengths the first.
        padding_share: Share of padding in the padded batches, 0..1; some networks do not compute the padding.
        mixing: exp(-I) of the plan, see `measure_mixing`.
        straggler_waste: Share of the time of all processes spent waiting by the plan, see `setups.waiting_share`.
        training_loss: Mean loss during the epoch, over sequences or frames as the task counts.
        metrics: The result of `validate` after the epoch: "validation_loss", and others by name.
    """

    strategy: str
    processes: int
    averaging: str
    seed: int
    epoch: int
    steps: int
    seconds: float
    planning_seconds: float
    elapsed_seconds: float
    sequences: int
    useful_frames: int
    padding_share: float
    mixing: float
    straggler_waste: float
    training_loss: float
    metrics: Mapping[str, float]

    @property
    def validation_loss(self) -> float:
        return self.metrics["validation_loss"]


def read_rows(rows: Sequence[Mapping[str, Any]]) -> list[EpochRow]:
    """Reads rows from JSON, in which metrics are on the top level and numbers that are not finite are null."""
    fields = [field.name for field in dataclasses.fields(EpochRow) if field.name != "metrics"]
    epoch_rows = []
    for row in rows:
        values: dict[str, Any] = {name: math.nan if value is None else value for name, value in row.items()}
        field_values: dict[str, Any] = {name: values.pop(name) for name in fields}
        epoch_rows.append(EpochRow(**field_values, metrics=values))
    return epoch_rows


def timed_rows(study: Mapping[str, Any]) -> list[EpochRow]:
    """Returns the rows of a study, read from JSON, to take times from: those timed apart, or else those of training."""
    return read_rows(study.get("timed") or study["rows"])


def runs_of(rows: Iterable[EpochRow], strategy: str) -> list[list[EpochRow]]:
    """Returns the epochs of a strategy under each seed, in order."""
    runs: dict[int, list[EpochRow]] = {}
    for row in rows:
        if row.strategy == strategy:
            runs.setdefault(row.seed, []).append(row)
    return [runs[seed] for seed in sorted(runs)]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """The result of the `test` of a task after the last epoch of one strategy and seed."""

    strategy: str
    processes: int
    averaging: str
    seed: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The peak bytes of a training step on the costliest batch of a strategy, see `memory.peaks`."""

    strategy: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """An epoch of a strategy that was timed apart from training; its row has no metrics."""

    strategy: str
    row: EpochRow


Finding = EpochRow | RunRow | Peak | Timed


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The mean of a few runs, and the least and the greatest."""

    mean: float
    least: float
    greatest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """One strategy over all its epochs and seeds; `metrics` and `tests` are from after the last epoch.

    Frames per second are all frames over all seconds. `share_of_first_seconds` is seconds per epoch, relative to the
    first strategy. `peak_bytes` is None if memory was not measured.
    """

    strategy: str
    processes: int
    averaging: str
    useful_frames_per_second: float
    padding_share: float
    mixing: float
    straggler_waste: float
    steps: float
    seconds_per_epoch: float
    share_of_first_seconds: float
    best_validation_loss: Spread
    metrics: Mapping[str, Spread]
    tests: Mapping[str, Spread]
    peak_bytes: int | None = None

    @property
    def validation_loss(self) -> Spread:
        return self.metrics["validation_loss"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A finished study, ready for JSON, tables and plots.

    Attributes:
        rows: One for each strategy, seed and epoch.
        summaries: One for each strategy.
        settings: Settings of the training and of the network.
        strategies: The batching of each strategy, as JSON.
        data: The description of the task.
        machine: The machine.
        date: The end of the study, in UTC.
        command: The command line.
        tests: One for each strategy and seed, if the task has a test.
        peak_bytes: By strategy, if memory was measured.
        timed: One for each strategy and repeat, if epochs were timed apart from training.
    """

    rows: tuple[EpochRow, ...]
    summaries: tuple[Summary, ...]
    settings: Mapping[str, object]
    strategies: Mapping[str, object]
    data: Mapping[str, object]
    machine: Mapping[str, object]
    date: str
    command: str
    tests: tuple[RunRow, ...] = ()
    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    timed: tuple[EpochRow, ...] = ()

    @property
    def origin(self) -> dict[str, object]:
        """Date, command and machine, for a document."""
        return {"date": self.date, "command": self.command, "machine": dict(self.machine)}

    def as_dict(self) -> dict[str, object]:
        """Returns a dict for JSON: numbers that are not finite (a run diverged) become null."""
        return {
            "schema": SCHEMA,
            **self.origin,
            "data": dict(self.data),
            "settings": dict(self.settings),
            "strategies": dict(self.strategies),
            "summary": [plain(flat(summary)) for summary in self.summaries],
            "tests": [plain(flat(row)) for row in self.tests],
            "rows": [plain(flat(row)) for row in self.rows],
            "timed": [plain(flat(row)) for row in self.timed],
        }


def summarise(
    rows: Sequence[EpochRow], tests: Sequence[RunRow] = (), peak_bytes: Mapping[str, int] | None = None
) -> tuple[Summary, ...]:
    """Summarises each strategy, in the order of their first rows."""
    first = fmean(row.seconds for row in rows if row.strategy == rows[0].strategy)
    peaks = peak_bytes or {}
    return tuple(
        _summary(runs_of(rows, label), [row.metrics for row in tests if row.strategy == label], first, peaks.get(label))
        for label in dict.fromkeys(row.strategy for row in rows)
    )


def flat(row: EpochRow | RunRow | Summary) -> dict[str, object]:
    """Returns a dict for JSON, with the metrics on the top level."""
    values = dataclasses.asdict(row)
    return values | values.pop("metrics")


def plain(value: Any) -> Any:
    """Rounds numbers to six digits, and makes those that are not finite null, also in dicts and lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _summary(
    runs: Sequence[Sequence[EpochRow]], tests: Sequence[Mapping[str, float]], first: float, peak_bytes: int | None
) -> Summary:
    rows = [row for run in runs for row in run]
    total = sum(row.seconds for row in rows)
    return Summary(
        strategy=rows[0].strategy,
        processes=rows[0].processes,
        averaging=rows[0].averaging,
        useful_frames_per_second=sum(row.useful_frames for row in rows) / total,
        padding_share=fmean(row.padding_share for row in rows),
        mixing=fmean(row.mixing for row in rows),
        straggler_waste=fmean(row.straggler_waste for row in rows),
        steps=fmean(row.steps for row in rows),
        seconds_per_epoch=total / len(rows),
        share_of_first_seconds=total / len(rows) / first,
        best_validation_loss=_spread([min(row.validation_loss for row in run) for run in runs]),
        metrics=_spreads([run[-1].metrics for run in runs]),
        tests=_spreads(tests),
        peak_bytes=peak_bytes,
    )


def _spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    return {name: _spread([run[name] for run in runs]) for name in (runs[0] if runs else ())}


def _spread(values: Sequence[float]) -> Spread:
    return Spread(mean=fmean(values), least=min(values), greatest=max(values))
