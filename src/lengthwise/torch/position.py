"""Where in an epoch a run stands: the arguments of `make_plan`, and the fingerprint of what it made of them.

    {"version": 1, "seed": 0, "lengths": "9f...", "batching": {"cut": {"choice": "cut.Budget", ...}, ...},
     "sequences": 9000, "epoch": 3, "world_size": 6, "micro_batches": 1, "plan": "3a...",
     "runs": [[8, 1, 120], [6, 1, 40]]}

says that of epoch 3 each of 8 ranks had 120 batches, and then, of what those left, each of 6 ranks 40. It was saved on
those 6 ranks, and `plan` is of what the 8 had left them. Of a batching that is too long for a kilobyte, a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lengthwise import checks
from lengthwise.choices.world import World, check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.planning.rest import EarlierRun, read_runs
from lengthwise.torch.facts import check_alike

VERSION = 1
KEYS = ("version", "seed", "lengths", "batching", "epoch", "world_size", "micro_batches", "plan", "runs")
MAX_CHARACTERS = 999  # of a state, as JSON
DAMAGED = "Load the state as it was saved."


@dataclass(frozen=True, slots=True)
class Position:
    """What a state says.

    Attributes:
        epoch: Counted from 0.
        runs: Those of the epoch so far, the one that saved the state included where it took anything.
        world: Which the state was saved in.
        plan: The fingerprint of the plan for that world.
    """

    epoch: int
    runs: tuple[EarlierRun, ...]
    world: World
    plan: str

    def check_plan(self, fingerprint: str) -> None:
        """Refuses another plan for that world: going on by it would lose some sequences and repeat others.

        Raises:
            PlanMismatchError: It is another one.
        """
        if fingerprint != self.plan:
            remedy = (
                "Lengths, batching and seed agree, so look for a cost function (or another choice of your own) that was"
                " changed, or for another version of lengthwise."
            )
            raise PlanMismatchError(checks.sentence("plan", f"the checkpoint's, {self.plan!r}", fingerprint, remedy))


def split_runs(runs: tuple[EarlierRun, ...], world: World) -> tuple[tuple[EarlierRun, ...], int]:
    """The runs before this one, and how many batches this one has taken: it goes on where the last was of its world.

    >>> earlier, own = EarlierRun(World(8, 1), 120), EarlierRun(World(6, 1), 40)
    >>> split_runs((earlier, own), World(6, 1)) == ((earlier,), 40), split_runs((earlier,), World(6, 1))[1]
    (True, 0)
    """
    if runs and runs[-1].world == world:
        return runs[:-1], runs[-1].taken
    return runs, 0


def write_state(facts: Mapping[str, Any], world: World, runs: tuple[EarlierRun, ...]) -> dict[str, Any]:
    """What `read_state` reads, made anew in all its parts; runs that took nothing are left out."""
    state = {"version": VERSION, **facts, **world._asdict(), "runs": [run.numbers for run in runs if run.taken]}
    if len(json.dumps(state)) > MAX_CHARACTERS:
        state["batching"] = _digest(facts["batching"])
    return json.loads(json.dumps(state))


def read_state(state: Mapping[str, Any], facts: Mapping[str, Any], *, sequences: int) -> Position:
    """What a state says.

    Args:
        state: What `write_state` gave.
        facts: Seed, lengths and batching of the sampler that is to go on.
        sequences: How many lengths it has.

    Raises:
        ValueError: It is no such state.
        PlanMismatchError: It is one of another seed, of other lengths or of another batching.
    """
    known = isinstance(state, Mapping) and all(name in state for name in KEYS) and isinstance(state["version"], int)
    if not known or state["version"] != VERSION:
        rule = f"what BatchSampler.state_dict gives, of version {VERSION}"
        raise checks.value_error("state", rule, state, DAMAGED)
    _check_plain(state)
    epoch = checks.check_whole("epoch", state["epoch"], minimum=0, remedy=DAMAGED)
    _check_count(state, epoch, sequences)
    if isinstance(state["batching"], str):
        facts = {**facts, "batching": _digest(facts["batching"])}
    remedy = "Resume with what the checkpoint was made with, or begin a new run."
    check_alike({name: state[name] for name in facts}, facts, whose="the checkpoint's", remedy=remedy)
    world = check_world(state["world_size"], state["micro_batches"], remedy=DAMAGED)
    return Position(epoch, read_runs(state["runs"], name="runs", remedy=DAMAGED), world, state["plan"])


def _check_plain(state: Mapping[str, Any]) -> None:
    """Refuses what JSON cannot hold: an array cannot be compared, nor what contains itself be written."""
    for name in ("seed", "lengths", "batching", "plan"):
        try:
            json.dumps(state[name])
        except (TypeError, ValueError, RecursionError) as error:
            rule = "of plain numbers and words"
            raise checks.value_error(name, rule, type(state[name]).__name__, DAMAGED) from error


def _check_count(state: Mapping[str, Any], epoch: int, sequences: int) -> None:
    """Refuses a data set that has grown or shrunk since; states of before this was kept do not tell."""
    if (count := state.get("sequences")) is None:
        return
    count = checks.check_whole("sequences", count, minimum=0, remedy=DAMAGED)
    if count != sequences:
        remedy = (
            f"Finish epoch {epoch} with the lengths of those {count}; or begin epoch {epoch + 1} with all {sequences}: "
            f"load no state, and call set_epoch({epoch + 1})."
        )
        rule = f"as many as the checkpoint's {count} sequences"
        raise PlanMismatchError(checks.sentence("lengths", rule, sequences, remedy))


def _digest(choices: Mapping[str, Any]) -> str:
    """16 hex digits that name a batching."""
    return hashlib.blake2b(json.dumps(choices).encode(), digest_size=8).hexdigest()
