"""Runs the experiment. Each run is written to the result before the next begins, and is never repeated.

For each data set and model of a part the rates are sought first: all under the first search seed, and the best two
under the others. Three seeds follow. When all data and models of the part have them, the other seeds follow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch

from lengthwise import files
from lengthwise.checks import value_error
from lengthwise_recipes import record
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.order.data import Pool
from lengthwise_recipes.order.steps import PADDINGS, RULER
from lengthwise_recipes.order.training import Setting, run
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import describe_machine

RATES = {"gru": (0.008, 0.016, 0.032, 0.064, 0.128), "transformer": (0.002, 0.004, 0.008, 0.016, 0.032)}
SEARCH_SEEDS = (1_000, 1_001, 1_002)
BEST, FIRST_SEEDS = 2, 3
BOTH = ("random/1", "grouped")
GROUPED = (*RULER, "grouped", "library")
MORE = ("tokens", "half", "trainer")
NOISE = (*BOTH, *(f"noise/{padding:g}" for padding in PADDINGS))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Part:
    """One part of the experiment: every arm on all data and models."""

    name: str
    data: Sequence[str] = ("kinds", "catalogues")
    models: Sequence[str] = ("gru",)
    arms: Sequence[str] = BOTH
    setting: Setting = Setting()
    seeds: int = 10
    rates: Mapping[str, Sequence[float]] = field(default_factory=RATES.copy)
    compare: tuple[str, ...] = ()  # the arms whose variance ratio is measured on random runs

    @property
    def cells(self) -> list[tuple[str, str]]:
        return [(data, model) for model in self.models for data in self.data]

    def group(self, data: str, model: str, arm: str) -> str:
        """Returns the name of the runs that differ in seed and rate alone."""
        return f"{self.name}: {data}, {model}, {arm}"


_MODELS = ("gru", "transformer")
_RATIOS = ("grouped", "half", "trainer")
_OTHER = ("control", "phonemes")
_ONE_BATCH = {size: Setting(size=size, ranks=1, updates=10_240 // size) for size in (16, 64)}
PARTS = (
    Part(name="primary", models=_MODELS, arms=GROUPED, seeds=20, compare=_RATIOS),
    Part(name="other data", data=_OTHER, models=_MODELS, arms=GROUPED, compare=_RATIOS),
    *(Part(name=f"batches of {n}", arms=NOISE, setting=_ONE_BATCH[n], compare=NOISE[1:]) for n in _ONE_BATCH),
    Part(name="more orders", data=("kinds", "catalogues", *_OTHER), models=_MODELS, arms=MORE),
    Part(name="five passes", setting=Setting(passes=5)),
    Part(name="constant rate", setting=Setting(decay=False)),
    Part(name="momentum", setting=Setting(optimizer="sgd"), rates={"gru": (0.05, 0.1, 0.2, 0.4, 0.8)}),
    Part(name="token mean", arms=(*BOTH, "tokens"), setting=Setting(token_mean=True)),
)


class Run(NamedTuple):
    """One run: `rate` is None if the search has chosen it."""

    part: Part
    data: str
    model: str
    arm: str
    seed: int
    rate: float | None = None

    @property
    def group(self) -> str:
        return self.part.group(self.data, self.model, self.arm)

    @property
    def kind(self) -> str:
        return "search" if self.rate else "runs"

    def is_left(self, groups: Any) -> bool:
        """Returns True if the run is still to do: the result lacks it, and its rate is not ruled out."""
        columns = groups.get(self.group, {}).get(self.kind, {"seed": (), "rate": ()})
        pairs = zip(columns["seed"], columns["rate"], strict=True)
        if any(seed == self.seed and self.rate in {None, rate} for seed, rate in pairs):
            return False
        first = self.best_rates(groups, SEARCH_SEEDS[:1])
        is_out = len(first) == len(self.part.rates[self.model]) and self.rate not in {None, *first[:BEST]}
        return not (is_out and self.seed in SEARCH_SEEDS[1:])

    def best_rates(self, groups: Any, seeds: Sequence[int]) -> list[float]:
        """Returns the rates that have run under all these search seeds, the best first; of random for the library's."""
        group = self.part.group(self.data, self.model, "random/1" if self.arm == "library" else self.arm)
        search = groups.get(group, {}).get("search", {"seed": (), "rate": (), "loss": ()})
        losses: dict[float, list[float]] = {rate: [] for rate in self.part.rates[self.model]}
        for seed, rate, loss in zip(search["seed"], search["rate"], search["loss"], strict=True):
            if seed in seeds and rate in losses:
                losses[rate].append(loss)
        means = {rate: fmean(found) for rate, found in losses.items() if len(found) == len(seeds)}
        return sorted(means, key=lambda rate: (math.isnan(means[rate]), means[rate]))


def all_runs(parts: Sequence[Part] = PARTS) -> Iterator[Run]:
    """Yields all runs in order."""
    for part in parts:
        for cell in part.cells:
            for arm in part.arms:
                if arm != "library":
                    pairs = ((seed, rate) for seed in SEARCH_SEEDS for rate in part.rates[cell[1]])
                    yield from (Run(part, *cell, arm, *pair) for pair in pairs)
            yield from (Run(part, *cell, arm, seed) for seed in range(part.seeds)[:FIRST_SEEDS] for arm in part.arms)
        for seed in range(part.seeds)[FIRST_SEEDS:]:
            yield from (Run(part, *cell, arm, seed) for cell in part.cells for arm in part.arms)


def progress(path: Path, parts: Sequence[Part] = PARTS) -> Iterator[str]:
    """Yields a line for each part: how many runs are left, and the hours of one core for those like finished ones."""
    groups = _read(path)["groups"]
    for part in parts:
        planned = list(all_runs([part]))
        left = [missing for missing in planned if missing.is_left(groups)]
        alike = [groups.get(missing.group, {}).get(missing.kind) for missing in left]
        seconds = [fmean(columns["seconds"]) for columns in alike if columns]
        hours = f"; {len(seconds):,} of them take {sum(seconds) / 3600:.1f} hours" if seconds else ""
        yield f"{part.name}: {len(planned) - len(left):,} of {len(planned):,} runs done, {len(left):,} left{hours}."


def study(read: Callable[[str], Pool], path: Path, *, command: str, parts: Sequence[Part] = PARTS) -> Iterator[Run]:
    """Runs what the result at `path` lacks, and yields each run before it begins; `read` returns the pool of a name.

    Only one process may write a result. Other data than those of the result are refused.
    """
    torch.set_num_threads(1)
    pools: dict[str, Pool] = {}
    document: dict[str, Any] = {"command": command, **_read(path)}
    groups, machine, cpu = document["groups"], document["machine"], describe_machine(Settings())["cpu"]
    for planned in all_runs(parts):
        if not planned.is_left(groups):
            continue
        if planned.data not in pools:
            pool = pools[planned.data] = read(planned.data)
            digits = fingerprint([pool.rows.numpy(), pool.lengths, pool.skipped])
            if (wanted := document["data"].setdefault(planned.data, digits)) != digits:
                remedy = "Take the files and the Python that the result names, or begin another."
                raise value_error("data", f"{planned.data} of fingerprint {wanted}", digits, remedy)
        yield planned
        search, rate = planned.kind == "search", planned.rate or planned.best_rates(groups, SEARCH_SEEDS)[0]
        compare = None if search else planned.part.compare if planned.arm == "random/1" else ()
        row = run(pools[planned.data], planned.part.setting, planned.model, planned.arm, rate, planned.seed, compare)
        rounded = json.loads(json.dumps(row), parse_float=lambda digits: round(float(digits), 5))
        columns = groups.setdefault(planned.group, {}).setdefault(planned.kind, {})
        for name in ("seed", "rate", "loss", "seconds") if search else row:
            columns.setdefault(name, []).append(rounded[name])
        machine["cpu"] += f", then {cpu}" if cpu not in machine["cpu"].split(", then ") else ""
        document["date"] = record.now()
        files.write(path, json.dumps(document) + "\n")


def _read(path: Path) -> dict[str, Any]:
    """Returns a result, or an empty one of this machine."""
    if path.exists():
        try:
            document: dict[str, Any] = json.loads(path.read_text())
            return document | {"groups": dict(document["groups"])}
        except (ValueError, TypeError, KeyError) as error:
            raise value_error("json", "a result of this study", str(path), "Name another file.") from error
    return {"machine": describe_machine(Settings()), "data": {}, "groups": {}}
