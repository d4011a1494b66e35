"""Where in an epoch a run stands: the arguments of `make_plan`, and the fingerprint of what it made of them.

    {"seed": 0, "lengths": "9f...", "batching": {"cut": {"choice": "cut.Budget", ...}, ...},
     "sequences": 9000, "epoch": 3, "world_size": 6, "micro_batches": 1, "plan": "3a...",
     "runs": [[8, 1, 120], [6, 1, 40]]}

is of epoch 3. Each of 8 ranks had 120 batches; then each of 6 ranks had 40 of what was left. The state was saved on
those 6 ranks, and `plan` is the fingerprint of what the 8 ranks left. A batching too long for a kilobyte is a digest.
Where a sampler has `times`, the state has their name too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lengthwise import checks
from lengthwise.choices.deal import World, check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.planning.resume import EarlierRun, read_runs
from lengthwise.planning.window_epoch import EpochPlan

KEYS = ("seed", "lengths", "batching", "sequences", "epoch", "world_size", "micro_batches", "plan", "runs")
_MAX_CHARACTERS = 999  # of a state, as JSON
DAMAGED = "Load the state as it was saved."


@dataclass(frozen=True, slots=True)
class Position:
    """What a state says.

    Attributes:
        epoch: Counted from 0.
        runs: The runs of the epoch so far, with the one that saved the state if it took anything.
        world: The world that the state was saved in.
        plan: The fingerprint of the plan for that world.
    """

    epoch: int
    runs: tuple[EarlierRun, ...]
    world: World
    plan: str

    def check_plan(self, fingerprint: str) -> None:
        """Refuses another plan for that world: it would lose some sequences and repeat others.

        Raises:
            PlanMismatchError: The fingerprints differ.
        """
        if fingerprint != self.plan:
            remedy = (
                "Lengths, batching and seed agree, so look for a cost function (or another choice of your own) that was"
                " changed, or for another version of lengthwise."
            )
            raise PlanMismatchError(checks.sentence("plan", f"the checkpoint's, {self.plan!r}", fingerprint, remedy))


def split_runs(runs: tuple[EarlierRun, ...], world: World) -> tuple[tuple[EarlierRun, ...], int]:
    """The runs before this one, and how many batches this one has taken: those of the last run, if it had this world.

    >>> earlier, own = EarlierRun(World(8, 1), 120), EarlierRun(World(6, 1), 40)
    >>> split_runs((earlier, own), World(6, 1)) == ((earlier,), 40), split_runs((earlier,), World(6, 1))[1]
    (True, 0)
    """
    # Two runs in one world are one run: the second took the next batches of the same plan.
    if runs and runs[-1].world == world:
        return runs[:-1], runs[-1].taken
    return runs, 0


def write_state(facts: Mapping[str, Any], world: World, runs: tuple[EarlierRun, ...]) -> dict[str, Any]:
    """What `read_state` reads, as fresh dicts and lists; runs that took nothing are left out."""
    known = {name: fact for name, fact in facts.items() if fact is not None}  # without times, states are as ever
    state = {**known, **world._asdict(), "runs": [run.numbers for run in runs if run.taken]}
    if len(json.dumps(state)) > _MAX_CHARACTERS:
        state["batching"] = _digest(facts["batching"])
    # Through JSON: what the caller does to the state changes nothing of the sampler's own.
    return json.loads(json.dumps(state))


def read_state(state: Mapping[str, Any], facts: Mapping[str, Any], *, sequences: int) -> Position:
    """What a state says.

    Args:
        state: What `write_state` gave.
        facts: Seed, lengths, times and batching of the sampler that is to go on.
        sequences: How many lengths it has.

    Raises:
        ValueError: The state is not one that `write_state` gave.
        PlanMismatchError: It is one of another seed, of other lengths or times, or of another batching.
    """
    if not isinstance(state, Mapping) or any(name not in state for name in KEYS):
        raise checks.value_error("state", "what DataLoader.state_dict gives", state, DAMAGED)
    check_plain(state, ("seed", "lengths", "times", "batching", "plan"))
    epoch = checks.check_whole("epoch", state["epoch"], minimum=0, remedy=DAMAGED)
    _check_count(state, epoch, sequences)
    if isinstance(state["batching"], str):  # a batching too long for a kilobyte was saved as its digest
        facts = {**facts, "batching": _digest(facts["batching"])}
    remedy = "Resume with what the checkpoint was made with, or begin a new run."
    # The plan alone would show that something differs. This says which: the seed, the lengths, a part of the batching.
    check_alike({name: state.get(name) for name in facts}, facts, whose="the checkpoint's", remedy=remedy)
    world = check_world(state["world_size"], state["micro_batches"], remedy=DAMAGED)
    return Position(epoch, read_runs(state["runs"], name="runs", remedy=DAMAGED), world, state["plan"])


def check_plain(state: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuses values that JSON cannot hold: arrays, which `==` does not compare, and values that contain themselves."""
    for name in names:
        try:
            # State files come through torch.save too, which keeps arrays and tensors.
            json.dumps(state.get(name))
        except (TypeError, ValueError, RecursionError) as error:
            rule = "of plain numbers and words"
            raise checks.value_error(name, rule, type(state.get(name)).__name__, DAMAGED) from error


def _check_count(state: Mapping[str, Any], epoch: int, sequences: int) -> None:
    """Refuses a data set that has grown or shrunk since."""
    count = checks.check_whole("sequences", state["sequences"], minimum=0, remedy=DAMAGED)
    if count != sequences:
        remedy = (
            f"Finish epoch {epoch} with the lengths of those {count}; or begin epoch {epoch + 1} with all {sequences}: "
            f"load no state, and call set_epoch({epoch + 1}). Under a trainer, begin a new "
            "run with the weights of this one."
        )
        rule = f"as many as the checkpoint's {count} sequences"
        raise PlanMismatchError(checks.sentence("lengths", rule, sequences, remedy))


def _digest(choices: Mapping[str, Any]) -> str:
    """16 hex digits that name a batching."""
    return hashlib.blake2b(json.dumps(choices).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class Remainder:
    """A plan, and how many of its batches were taken.

    Say 8 ranks had 120 batches each of an epoch, and then 6 ranks had 40. Here `plan` is of what the 8 ranks left, for
    6 ranks, and `taken` is 40.

    Attributes:
        plan: Of what the earlier runs left; of the whole epoch where there were none.
        earlier: The runs before, on other numbers of ranks or micro-batches.
        taken: Batches of the plan that each rank had before the next pass.
    """

    plan: EpochPlan
    earlier: tuple[EarlierRun, ...]
    taken: int

    @classmethod
    def after(cls, runs: tuple[EarlierRun, ...], plan: EpochPlan) -> Remainder:
        """Where a run stands on the plan of what `runs` left."""
        earlier, taken = split_runs(runs, World(plan.world_size, plan.micro_batches))
        # A state that was damaged may say more batches than the plan has. Windows are counted when len is asked for.
        if taken:
            checks.check_whole("runs", taken, minimum=0, maximum=len(plan), remedy=DAMAGED)
        return cls(plan, earlier, taken)

    @property
    def before(self) -> int:
        """Batches that each rank of the earlier runs had."""
        return sum(run.taken for run in self.earlier)

    @property
    def start(self) -> int:
        """Batches of the epoch that each rank had before the next pass."""
        return self.before + self.taken

    def __len__(self) -> int:
        """Batches of each rank in the whole epoch."""
        return self.before + len(self.plan)

    @property
    def batches_left(self) -> int:
        """Batches that the next pass yields."""
        return len(self.plan) - self.taken

    def runs(self, taken: int) -> tuple[EarlierRun, ...]:
        """The runs of the epoch, the last with `taken` batches of the plan; a run that took nothing is left out."""
        own = EarlierRun(World(self.plan.world_size, self.plan.micro_batches), taken)
        return (*self.earlier, own) if taken else self.earlier

    @cached_property
    def fingerprint(self) -> str:
        """Computed once, because a loader may ask for a state with every batch."""
        return self.plan.fingerprint()


def check_alike(
    known: Mapping[str, object], facts: Mapping[str, object], *, whose: str, remedy: str, at: str = ""
) -> None:
    """Refuses `facts` that differ from the known ones.

    Raises:
        PlanMismatchError: The sentence names the first fact that differs (or the part of it), and both values.

    >>> known = {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 200.0}}
    >>> check_alike(known, {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 201.0}}, whose="mine", remedy="Ask.")
    Traceback (most recent call last):
    lengthwise.planning.plan.PlanMismatchError: `cut.budget` must be mine, 200.0, but is 201.0. Ask.
    """
    for name, value in known.items():
        if facts[name] != value:
            part, expected, given = _difference(name, value, facts[name])
            rule = f"{whose}, {checks.show_value(expected)}"
            raise PlanMismatchError(checks.sentence(part, rule, given, remedy, at=at))


def _difference(name: str, known: object, given: object) -> tuple[str, object, object]:
    """Returns the first part in which two facts differ: its name, and its value in both."""
    if isinstance(known, Mapping) and isinstance(given, Mapping):
        # Down to the part: "cut.budget", 200.0 and 201.0, and not two batchings of five lines each.
        for key in known:
            if key in given and known[key] != given[key]:
                return _difference(f"{name}.{key}", known[key], given[key])
    return name, known, given
