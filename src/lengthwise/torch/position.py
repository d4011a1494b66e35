"""Where in an epoch a run stands: the arguments of `make_plan`, and the fingerprint of what it made of them.

    {"version": 1, "seed": 0, "lengths": "9f...", "batching": {"cut": {"choice": "cut.Budget", ...}, ...},
     "epoch": 3, "world_size": 6, "micro_batches": 1, "plan": "3a...", "runs": [[8, 1, 120], [6, 1, 40]]}

says that of epoch 3 each of 8 ranks had 120 batches, and then, of what those left, each of 6 ranks 40. It was saved on
those 6 ranks, and `plan` is of what the 8 had left them. Of a batching that is too long for a kilobyte, a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lengthwise import _checks
from lengthwise.plan import PlanMismatchError
from lengthwise.torch.facts import check_alike

VERSION = 1
KEYS = ("version", "seed", "lengths", "batching", "epoch", "world_size", "micro_batches", "plan", "runs")
MAX_CHARACTERS = 999  # of a state, as JSON

Run = tuple[int, int, int]  # world size, micro-batches, batches that each rank took


@dataclass(frozen=True, slots=True)
class Position:
    """What a state says: the epoch, the runs so far, and the place that it was saved at."""

    epoch: int
    runs: tuple[Run, ...]
    place: tuple[int, int]  # world size, micro-batches
    plan: str

    def check_plan(self, fingerprint: str) -> None:
        """Refuses another plan for that place: going on by it would lose some sequences and repeat others.

        Raises:
            PlanMismatchError: It is another one.
        """
        if fingerprint != self.plan:
            remedy = (
                "Lengths, batching and seed agree, so look for a cost function (or another choice of your own) that was"
                " changed, or for another version of lengthwise."
            )
            raise PlanMismatchError(_checks.sentence("plan", f"the checkpoint's, {self.plan!r}", fingerprint, remedy))


def parted(runs: tuple[Run, ...], world_size: int, micro_batches: int) -> tuple[tuple[Run, ...], int]:
    """The runs before this one, and how many batches this one has taken: it goes on where the last was of its shape.

    >>> parted(((8, 1, 120), (6, 1, 40)), 6, 1), parted(((8, 1, 120),), 6, 1)
    ((((8, 1, 120),), 40), (((8, 1, 120),), 0))
    """
    if runs and runs[-1][:2] == (world_size, micro_batches):
        return runs[:-1], runs[-1][2]
    return runs, 0


def state_of(facts: Mapping[str, Any], runs: tuple[Run, ...]) -> dict[str, Any]:
    """What `checked_state` reads, made anew in all its parts; runs that took nothing are left out."""
    state = {"version": VERSION, **facts, "runs": [run for run in runs if run[2]]}
    if len(json.dumps(state)) > MAX_CHARACTERS:
        state["batching"] = _digest(facts["batching"])
    return json.loads(json.dumps(state))


def checked_state(state: Mapping[str, Any], facts: Mapping[str, Any]) -> Position:
    """What a state says.

    Args:
        state: What `state_of` gave.
        facts: Seed, lengths and batching of the sampler that is to go on.

    Raises:
        ValueError: It is no such state.
        PlanMismatchError: It is one of another seed, of other lengths or of another batching.
    """
    if not isinstance(state, Mapping) or any(name not in state for name in KEYS) or state["version"] != VERSION:
        rule = f"what BatchSampler.state_dict gives, of version {VERSION}"
        raise _checks.value_error("state", rule, state, "Load it from the checkpoint as it was saved.")
    if isinstance(state["batching"], str):
        facts = {**facts, "batching": _digest(facts["batching"])}
    remedy = "Resume with what the checkpoint was made with, or begin a new run."
    check_alike({name: state[name] for name in facts}, facts, whose="the checkpoint's", remedy=remedy)
    remedy = "Load the state as it was saved."
    epoch = _checks.check_whole("epoch", state["epoch"], minimum=0, remedy=remedy)
    world_size = _checks.check_whole("world_size", state["world_size"], minimum=1, remedy=remedy)
    micro_batches = _checks.check_whole("micro_batches", state["micro_batches"], minimum=1, remedy=remedy)
    return Position(epoch, _checked_runs(state["runs"]), (world_size, micro_batches), state["plan"])


def _digest(choices: Mapping[str, Any]) -> str:
    """16 hex digits that name a batching."""
    return hashlib.blake2b(json.dumps(choices).encode(), digest_size=8).hexdigest()


def _checked_runs(runs: object) -> tuple[Run, ...]:
    remedy = "Load the state as it was saved."
    if not isinstance(runs, list | tuple) or any(not isinstance(run, list | tuple) or len(run) != 3 for run in runs):
        raise _checks.value_error("runs", "a list of three whole numbers each", runs, remedy)
    for run in runs:
        for number, least in zip(run, (1, 1, 0), strict=True):
            _checks.check_whole("runs", number, minimum=least, remedy=remedy)
    return tuple((int(world_size), int(micro_batches), int(taken)) for world_size, micro_batches, taken in runs)
