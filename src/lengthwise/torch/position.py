"""Where in an epoch a run stands: the arguments of `make_plan`, and no more.

    {"version": 1, "seed": 0, "epoch": 3, "runs": [[8, 1, 120], [6, 1, 40]], "lengths": "9f...", "batching": "02..."}

says that of epoch 3 each of 8 ranks had 120 batches, and then, of what those left, each of 6 ranks 40.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from lengthwise import _checks
from lengthwise.batching import Batching
from lengthwise.plan import PlanMismatchError

VERSION = 1
KEYS = ("version", "seed", "epoch", "runs", "lengths", "batching")

Run = tuple[int, int, int]  # world size, micro-batches, batches that each rank took


def digest(batching: Batching) -> str:
    """16 hex digits that name a batching."""
    return hashlib.blake2b(batching.to_json().encode(), digest_size=8).hexdigest()


def parted(runs: tuple[Run, ...], world_size: int, micro_batches: int) -> tuple[tuple[Run, ...], int]:
    """The runs before this one, and how many batches this one has taken: it goes on where the last was of its shape.

    >>> parted(((8, 1, 120), (6, 1, 40)), 6, 1), parted(((8, 1, 120),), 6, 1)
    ((((8, 1, 120),), 40), (((8, 1, 120),), 0))
    """
    if runs and runs[-1][:2] == (world_size, micro_batches):
        return runs[:-1], runs[-1][2]
    return runs, 0


def state_of(facts: Mapping[str, object], runs: tuple[Run, ...]) -> dict[str, Any]:
    """What `checked_runs` reads; runs that took nothing are left out."""
    return {"version": VERSION, **facts, "runs": [list(run) for run in runs if run[2]]}


def checked_state(state: Mapping[str, Any], facts: Mapping[str, object]) -> tuple[int, tuple[Run, ...]]:
    """The epoch and the runs of a state.

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
    for name, value in facts.items():
        if name != "epoch" and state[name] != value:
            remedy = "Resume with what the checkpoint was made with, or begin a new run."
            raise PlanMismatchError(_checks.sentence(name, f"the checkpoint's, {state[name]!r}", value, remedy))
    epoch = _checks.check_whole("epoch", state["epoch"], minimum=0, remedy="Load the state as it was saved.")
    return epoch, _checked_runs(state["runs"])


def _checked_runs(runs: object) -> tuple[Run, ...]:
    remedy = "Load the state as it was saved."
    if not isinstance(runs, list | tuple) or any(not isinstance(run, list | tuple) or len(run) != 3 for run in runs):
        raise _checks.value_error("runs", "a list of three whole numbers each", runs, remedy)
    for run in runs:
        for number, least in zip(run, (1, 1, 0), strict=True):
            _checks.check_whole("runs", number, minimum=least, remedy=remedy)
    return tuple((world_size, micro_batches, taken) for world_size, micro_batches, taken in runs)
