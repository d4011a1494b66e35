"""What a study found: a row for each strategy, seed and epoch, a summary for each strategy, and all of it as JSON."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

SCHEMA = "lengthwise-study-handwriting-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow:
    """One epoch of one strategy from one seed.

    Attributes:
        strategy: Label of the batching, and of the processes where there are several.
        processes: How many trained it together.
        averaging: What they averaged, "parameter" or "gradient"; "none" where there was one.
        seed: Of the first weights and of the plans.
        epoch: From 1.
        steps: Optimiser steps of the epoch.
        seconds: Of its training, batches padded and moved included, planning and validation not; of several
            processes the slowest's.
        planning_seconds: Of making its plan.
        elapsed_seconds: Of this and all earlier epochs' training.
        useful_frames: Points of the pen in its batches, padding not counted.
        padding_share: Padding in the padded batches, 0..1; it is computed but where the sequences are packed.
        mixing: exp(-I) of the plan, see `lengthwise.measure`.
        straggler_waste: Share of the processes' time that the plan leaves to waiting for each other, see
            `setups.waiting_share`.
        training_loss: Mean over its sequences of the CTC loss in nats per symbol, while the weights moved.
        validation_loss: The same over the validation sequences, after the epoch.
        character_error_rate: Edits of the decoded validation texts over their symbols, 0..
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
    useful_frames: int
    padding_share: float
    mixing: float
    straggler_waste: float
    training_loss: float
    validation_loss: float
    character_error_rate: float

    @property
    def useful_frames_per_second(self) -> float:
        return self.useful_frames / self.seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The mean of a few runs, and the least and the greatest of them."""

    mean: float
    least: float
    greatest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """One strategy over all its epochs and seeds; losses and error rates are those of the last epoch."""

    strategy: str
    processes: int
    averaging: str
    useful_frames_per_second: float
    padding_share: float
    mixing: float
    straggler_waste: float
    steps: float
    seconds_per_epoch: float
    planning_seconds_per_epoch: float
    share_of_first_seconds: float
    validation_loss: Spread
    best_validation_loss: Spread
    character_error_rate: Spread


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A finished study, ready for JSON, tables and plots."""

    rows: tuple[EpochRow, ...]
    summaries: tuple[Summary, ...]
    settings: Mapping[str, object]
    strategies: Mapping[str, object]
    data: Mapping[str, object]
    machine: Mapping[str, object]
    date: str
    command: str

    def as_dict(self) -> dict[str, object]:
        """For JSON: a number that is not finite (a run that diverged) becomes null."""
        return {
            "schema": SCHEMA,
            "date": self.date,
            "command": self.command,
            "machine": dict(self.machine),
            "data": dict(self.data),
            "settings": dict(self.settings),
            "strategies": dict(self.strategies),
            "loss": "mean over the sequences of CTC loss / symbols, nats per symbol",
            "frames": "points of the pen",
            "summary": [plain(dataclasses.asdict(summary)) for summary in self.summaries],
            "rows": [
                plain(dataclasses.asdict(row) | {"useful_frames_per_second": row.useful_frames_per_second})
                for row in self.rows
            ],
        }


def summarise(rows: Sequence[EpochRow]) -> tuple[Summary, ...]:
    """Summarises each strategy, in the order in which they first appear.

    Useful frames per second are all frames over all seconds; `share_of_first_seconds` is seconds per epoch over the
    first strategy's.
    """
    labels = list(dict.fromkeys(row.strategy for row in rows))
    first = fmean(row.seconds for row in rows if row.strategy == labels[0])
    return tuple(_summary([row for row in rows if row.strategy == label], first) for label in labels)


def describe_machine(*, torch_version: str, threads: int, device: str, device_name: str) -> dict[str, object]:
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": processor_name(),
        "torch": torch_version,
        "threads": threads,
        "device": device,
        "device_name": device_name,
    }


def processor_name(table: Path = Path("/proc/cpuinfo")) -> str:
    """The model name of the first processor; what `platform` says where the system keeps no such table."""
    if table.exists():
        for line in table.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _summary(rows: Sequence[EpochRow], first: float) -> Summary:
    seeds = list(dict.fromkeys(row.seed for row in rows))
    runs = [[row for row in rows if row.seed == seed] for seed in seeds]
    seconds = fmean(row.seconds for row in rows)
    return Summary(
        strategy=rows[0].strategy,
        processes=rows[0].processes,
        averaging=rows[0].averaging,
        useful_frames_per_second=sum(row.useful_frames for row in rows) / sum(row.seconds for row in rows),
        padding_share=fmean(row.padding_share for row in rows),
        mixing=fmean(row.mixing for row in rows),
        straggler_waste=fmean(row.straggler_waste for row in rows),
        steps=fmean(row.steps for row in rows),
        seconds_per_epoch=seconds,
        planning_seconds_per_epoch=fmean(row.planning_seconds for row in rows),
        share_of_first_seconds=seconds / first,
        validation_loss=_spread([run[-1].validation_loss for run in runs]),
        best_validation_loss=_spread([min(row.validation_loss for row in run) for run in runs]),
        character_error_rate=_spread([run[-1].character_error_rate for run in runs]),
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(mean=fmean(values), least=min(values), greatest=max(values))


def plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
