"""All runs of the experiment, in turn. Each is written to the result before the next begins, and is never run again.

In every part the rates are sought first: all under the first search seed, and the best two under the others. Then come
all arms of seed 0 on all data and models, then those of seed 1.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes import record
from lengthwise_recipes.order.data import Pool
from lengthwise_recipes.order.steps import PADDINGS, RULER
from lengthwise_recipes.order.training import MODELS, Setting, run

RATES = (0.002, 0.004, 0.008, 0.016, 0.032)
MOMENTUM_RATES = (0.05, 0.1, 0.2, 0.4, 0.8)
SEARCH_SEEDS = (1_000, 1_001, 1_002)
BEST = 2  # rates that run under all of them
GROUPED = (*RULER, "grouped", "library")
MORE = ("tokens", "half", "trainer")
NOISE = ("random/1", "grouped", *(f"noise/{padding:g}" for padding in PADDINGS))
BOTH = ("random/1", "grouped")
_DIGITS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the experiment: every arm on all data and models.

    Attributes:
        compare: The arms whose variance ratio is measured on random runs.
    """

    name: str
    data: Sequence[str]
    arms: Sequence[str]
    models: Sequence[str] = tuple(MODELS)
    setting: Setting = Setting()
    seeds: int = 10
    rates: Sequence[float] = RATES
    compare: tuple[str, ...] = ()

    def group(self, data: str, model: str, arm: str) -> str:
        """Returns the name of the runs that differ in seed and rate alone."""
        return f"{self.name}: {data}, {model}, {arm}"


_MAIN, _OTHER = ("kinds", "catalogues"), ("control", "phonemes")
_RATIOS = ("grouped", "half", "trainer")
_ONE_BATCH = {size: Setting(size=size, ranks=1, updates=10_240 // size) for size in (16, 64)}
PARTS = (
    Part(name="primary", data=_MAIN, arms=GROUPED, seeds=20, compare=_RATIOS),
    Part(name="other data", data=_OTHER, arms=GROUPED, compare=_RATIOS),
    *(
        Part(name=f"batches of {size}", data=_MAIN, models=["gru"], arms=NOISE, setting=setting, compare=NOISE[1:])
        for size, setting in _ONE_BATCH.items()
    ),
    Part(name="more orders", data=(*_MAIN, *_OTHER), arms=MORE),
    Part(name="five passes", data=_MAIN, models=["gru"], arms=BOTH, setting=Setting(passes=5)),
    Part(name="constant rate", data=_MAIN, models=["gru"], arms=BOTH, setting=Setting(decay=False)),
    Part(
        name="momentum",
        data=_MAIN,
        models=["gru"],
        arms=BOTH,
        setting=Setting(optimizer="sgd"),
        rates=MOMENTUM_RATES,
    ),
    Part(
        name="token mean",
        data=_MAIN,
        models=["gru"],
        arms=("random/1", "tokens"),
        setting=Setting(token_mean=True),
    ),
)


class Run(NamedTuple):
    """One run: `rate` is None if the search has chosen it."""

    part: Part
    data: str
    model: str
    arm: str
    seed: int
    rate: float | None

    @property
    def group(self) -> str:
        return self.part.group(self.data, self.model, self.arm)

    @property
    def kind(self) -> str:
        return "search" if self.rate else "runs"

    def is_in(self, groups: Any) -> bool:
        """True if the groups of a result hold this run."""
        columns = groups.get(self.group, {}).get(self.kind, {})
        pairs = zip(columns.get("seed", ()), columns.get("rate", ()), strict=True)
        return any(seed == self.seed and self.rate in {None, rate} for seed, rate in pairs)


def all_runs(parts: Sequence[Part] = PARTS) -> Iterator[Run]:
    """Yields all runs in order. The library's steps take the rate of random steps, which they are."""
    for part in parts:
        cells = [(data, model) for data in part.data for model in part.models]
        for data, model in cells:
            for arm in part.arms:
                if arm != "library":
                    pairs = ((seed, rate) for seed in SEARCH_SEEDS for rate in part.rates)
                    yield from (Run(part, data, model, arm, *pair) for pair in pairs)
        for seed in range(part.seeds):
            yield from (Run(part, *cell, arm, seed, None) for cell in cells for arm in part.arms)


def best_rates(groups: Any, planned: Run, seeds: Sequence[int]) -> list[float]:
    """Returns the rates that have run under all these search seeds, by their mean loss, the best first."""
    arm = "random/1" if planned.arm == "library" else planned.arm
    search = groups.get(planned._replace(arm=arm).group, {}).get("search", {"seed": (), "rate": (), "loss": ()})
    losses = {rate: [] for rate in planned.part.rates}
    for seed, rate, loss in zip(search["seed"], search["rate"], search["loss"], strict=True):
        if seed in seeds:
            losses[rate].append(loss)
    return sorted((rate for rate in losses if len(losses[rate]) == len(seeds)), key=lambda rate: fmean(losses[rate]))


def is_left(groups: Any, planned: Run) -> bool:
    """Returns True if a run is still to do: it is not in the result, and its rate is not ruled out."""
    first = best_rates(groups, planned, SEARCH_SEEDS[:1])
    is_out = len(first) == len(planned.part.rates) and planned.rate not in {None, *first[:BEST]}
    return not planned.is_in(groups) and not (is_out and planned.seed in SEARCH_SEEDS[1:])


def progress(groups: Any, parts: Sequence[Part] = PARTS) -> Iterator[str]:
    """Yields a line for each part: what is done and what is left, in hours of one core."""
    for part in parts:
        planned = list(all_runs([part]))
        left = [each for each in planned if is_left(groups, each)]
        seconds = [
            fmean(groups[each.group][each.kind]["seconds"]) for each in left if each.kind in groups.get(each.group, {})
        ]
        seeds = min([each.seed for each in left if each.rate is None], default=part.seeds)
        hours = f", {sum(seconds) / 3600:.1f} hours for {len(seconds):,} of them" if seconds else ""
        yield (
            f"{part.name}: {len(planned) - len(left):,} of {len(planned):,} runs done, {seeds} of {part.seeds} seeds "
            f"whole, {len(left):,} runs left{hours}."
        )


def study(read: Callable[[str], Pool], path: Path, *, command: str, parts: Sequence[Part] = PARTS) -> Iterator[Run]:
    """Runs what the result at `path` lacks, and yields each run before it begins.

    Args:
        read: Returns the pool of a name.
        path: Of the result, which may be new.
        command: For the result.
        parts: Of the experiment.

    Raises:
        ValueError: The data are not those of the result.
    """
    torch.set_num_threads(1)
    document = json.loads(path.read_text()) if path.exists() else _new_document(command)
    groups: Any = document["groups"]
    pools: dict[str, Pool] = {}
    for planned in all_runs(parts):
        if not is_left(groups, planned):
            continue
        if planned.data not in pools:
            pools[planned.data] = _check(planned.data, read(planned.data), document["data"])
        yield planned
        part = planned.part
        rate = planned.rate or best_rates(groups, planned, SEARCH_SEEDS)[0]
        search = planned.kind == "search"
        how = {"search": search, "compare": part.compare if planned.arm == "random/1" and not search else ()}
        pool = pools[planned.data]
        row = run(pool, part.setting, planned.model, planned.arm, rate=rate, seed=planned.seed, **how)
        kept = {name: row[name] for name in ("seed", "rate", "loss", "seconds")} if search else row
        columns = groups.setdefault(planned.group, {}).setdefault(planned.kind, {})
        for name, value in kept.items():
            columns.setdefault(name, []).append(_round(value))
        document["date"] = record.now()
        files.write(path, write(document))


def write(document: dict[str, Any]) -> str:
    """Returns a result as JSON, with a line for each group."""
    groups = ",\n".join(f"{json.dumps(name)}: {json.dumps(group)}" for name, group in document["groups"].items())
    head = json.dumps({name: value for name, value in document.items() if name != "groups"}, indent=1)
    return f'{head[:-2]},\n "groups": {{\n{groups}\n}}}}\n'


def _new_document(command: str) -> dict[str, Any]:
    machine = {
        "cpu": record.processor_name(),
        "device_name": "",
        "cores": os.cpu_count(),
        "threads": 1,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    return {"date": record.now(), "command": command, "machine": machine, "data": {}, "groups": {}}


def _check(name: str, pool: Pool, fingerprints: dict[str, str]) -> Pool:
    if (wanted := fingerprints.setdefault(name, pool.fingerprint)) != pool.fingerprint:
        remedy = "Take the files and the version of Python that the result names, or begin a new one."
        raise value_error("data", f"the {name} of the result, of fingerprint {wanted}", pool.fingerprint, remedy)
    return pool


def _round(value: Any) -> Any:
    if isinstance(value, list):
        return [_round(item) for item in value]
    return round(value, _DIGITS) if isinstance(value, float) else value
