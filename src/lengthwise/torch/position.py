"""The position of a run in an epoch: the arguments of `make_plan`, and the fingerprint of the plan. For example:

    {"seed": 0, "lengths": "9f...", "batching": {"cut": {"choice": "cut.Budget", ...}, ...},
     "sequences": 9000, "epoch": 3, "world_size": 6, "micro_batches": 1, "plan": "3a...",
     "runs": [[8, 1, 120], [6, 1, 40]]}

In epoch 3, each of 8 ranks had 120 batches; then each of 6 ranks had 40 of the rest, and saved the state. `plan`
is the fingerprint of the plan of the 6 ranks, which holds all that the 8 ranks left. If the state would exceed a
kilobyte, a digest replaces the batching. If the sampler has `times` or `groups`, the state has their fingerprints too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from lengthwise import checks
from lengthwise.choices.batching import comparable, spell_out
from lengthwise.choices.deal import World, check_world
from lengthwise.planning.plan import PlanMismatchError
from lengthwise.planning.resume import EarlierRun, read_runs
from lengthwise.planning.window_epoch import EpochPlan

KEYS = ("seed", "lengths", "batching", "sequences", "epoch", "world_size", "micro_batches", "plan", "runs")
_MAX_CHARACTERS = 999  # the longest state, as JSON
_ABSENT = "left out"  # in place of a key that only one of two facts has
DAMAGED = "Load the state as it was saved."


@dataclass(frozen=True, slots=True)
class Position:
    """The contents of a state.

    Attributes:
        epoch: The epoch, counted from 0.
        runs: The runs of the epoch that took batches, including the run that saved the state.
        world: The numbers of ranks and micro-batches when the state was saved.
        plan: The fingerprint of the plan for this world.
    """

    epoch: int
    runs: tuple[EarlierRun, ...]
    world: World
    plan: str

    def check_plan(self, fingerprint: str) -> None:
        """Refuses another plan than that of the state: it would lose some sequences and repeat others.

        Raises:
            PlanMismatchError: The fingerprints differ.
        """
        if fingerprint != self.plan:
            remedy = (
                "Lengths, batching and seed agree. Look for a cost function (or another choice of your own) that has"
                " changed, or for another version of lengthwise."
            )
            raise PlanMismatchError(checks.sentence("plan", f"the checkpoint's, {self.plan!r}", fingerprint, remedy))


def split_runs(runs: tuple[EarlierRun, ...], world: World) -> tuple[tuple[EarlierRun, ...], int]:
    """Returns the runs before a last one in `world`, and the batches of this last one: 0 if there is none.

    >>> earlier, own = EarlierRun(World(8, 1), 120), EarlierRun(World(6, 1), 40)
    >>> split_runs((earlier, own), World(6, 1)) == ((earlier,), 40), split_runs((earlier,), World(6, 1))[1]
    (True, 0)
    """
    # Two runs in a row in one world are one run: the second took the next batches of the same plan.
    if runs and runs[-1].world == world:
        return runs[:-1], runs[-1].batches
    return runs, 0


def write_state(facts: Mapping[str, Any], world: World, runs: tuple[EarlierRun, ...]) -> dict[str, Any]:
    """Returns a new state for `read_state`. Runs that took no batch are left out."""
    # No entry for times or groups that were not given.
    present = {name: fact for name, fact in facts.items() if fact is not None}
    state = {**present, **world._asdict(), "runs": [run.numbers for run in runs if run.batches]}
    if len(json.dumps(state)) > _MAX_CHARACTERS:
        state["batching"] = _digest(facts["batching"])
    # A copy through JSON: if the caller changes the state, the sampler does not change.
    return json.loads(json.dumps(state))


def read_state(state: Mapping[str, Any], identity: Mapping[str, Any], *, sequences: int) -> Position:
    """Returns the position in a state, after checking it.

    Args:
        state: A state from `write_state`.
        identity: Seed, lengths, times, groups and batching of the sampler that resumes.
        sequences: The number of lengths of that sampler.

    Raises:
        ValueError: The state is not from `write_state`.
        PlanMismatchError: The state has another seed or batching, or other lengths, times or groups.
    """
    if not isinstance(state, Mapping) or any(name not in state for name in KEYS):
        raise checks.value_error("state", "a state from DataLoader.state_dict", state, DAMAGED)
    check_plain(state, ("seed", "lengths", "times", "groups", "batching", "plan"))
    epoch = checks.check_whole("epoch", state["epoch"], minimum=0, remedy=DAMAGED)
    _check_count(state, epoch, sequences)
    if isinstance(state["batching"], str):  # a state over a kilobyte has a digest
        identity = {**identity, "batching": _digest(identity["batching"])}
    remedy = "Resume with what the checkpoint was made with, or begin a new run."
    if state["lengths"] != identity["lengths"]:  # digits that say nothing by themselves
        remedy = f"Some length or their order has changed: lw.fingerprint(lengths) tells them apart. {remedy}"
    # The plan's fingerprint would only show that something differs. This error names the part that differs: the seed,
    # the lengths, or a part of the batching.
    check_alike({name: state.get(name) for name in identity}, identity, whose="the checkpoint's", remedy=remedy)
    world = check_world(state["world_size"], state["micro_batches"], remedy=DAMAGED)
    return Position(epoch, read_runs(state["runs"], name="runs", remedy=DAMAGED), world, state["plan"])


def check_plain(state: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuses values that JSON cannot hold, such as arrays: `==` returns an array for them."""
    for name in names:
        try:
            # States also come from torch.save, which keeps arrays and tensors.
            json.dumps(state.get(name))
        except (TypeError, ValueError, RecursionError) as error:
            rule = "of plain numbers and words"
            raise checks.value_error(name, rule, type(state.get(name)).__name__, DAMAGED) from error


def _check_count(state: Mapping[str, Any], epoch: int, sequences: int) -> None:
    """Refuses a data set that has grown or shrunk since the state was saved."""
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
    """Returns 16 hex digits that name a batching."""
    return hashlib.blake2b(json.dumps(spell_out(choices)).encode(), digest_size=8).hexdigest()


@dataclass(eq=False)
class Remainder:
    """The rest of an epoch: a plan, and the number of its batches that each rank has had.

    Example: 8 ranks had 120 batches each, and then 6 ranks had 40 each. `plan` is the plan of the 6 ranks for all
    that the 8 ranks left, and `plan_start` is 40.

    Attributes:
        plan: The plan of all that the earlier runs left, or of the whole epoch.
        earlier_runs: The runs before, on other numbers of ranks or micro-batches.
        plan_start: The batches of the plan that each rank had before the next pass.
        use: "set" once its epoch was set, "asked" once its plan or length was read, "begun" once a pass has begun. An
            epoch that a trainer sets and never reads is refused. The plan of a new sampler or of a loaded state counts
            as asked.
        complete_passes: The passes that have read all batches from the sampler.
        is_counted: True once an `lw.torch.DataLoader` begins a pass: then no wrapper is between it and the sampler.
    """

    plan: EpochPlan
    earlier_runs: tuple[EarlierRun, ...]
    plan_start: int
    use: Literal["set", "asked", "begun"] = "asked"
    complete_passes: int = 0
    is_counted: bool = False

    @classmethod
    def after(cls, runs: tuple[EarlierRun, ...], plan: EpochPlan) -> Remainder:
        """Returns the position after `runs`. `plan` is the plan of the last run, or of the next one."""
        earlier_runs, plan_start = split_runs(runs, World(plan.world_size, plan.micro_batches))
        # A damaged state may have more batches than the plan. `len` of windows takes time, so it is read for runs with
        # batches only.
        if plan_start:
            checks.check_whole("runs", plan_start, minimum=0, maximum=len(plan), remedy=DAMAGED)
        return cls(plan, earlier_runs, plan_start)

    @property
    def earlier_batches(self) -> int:
        """The batches of the epoch that each rank had in the earlier runs."""
        return sum(run.batches for run in self.earlier_runs)

    @property
    def start(self) -> int:
        """The batches of the epoch that each rank had before the next pass."""
        return self.earlier_batches + self.plan_start

    @property
    def batches_in_epoch(self) -> int:
        """The batches of a rank in the whole epoch, those of earlier runs too."""
        return self.earlier_batches + len(self.plan)

    @property
    def batches_left(self) -> int:
        """The batches that the next pass yields."""
        return len(self.plan) - self.plan_start

    def batches(self, rank: int, start: int) -> Iterator[list[Any]]:
        """Yields the batches of a rank from number `start` of the plan on, each as a new list for a data set."""
        for batch in self.plan.batches(rank, start):
            # Chunks are rows (sequence, start, stop): the data set gets one at a time, as a tuple.
            yield list(map(tuple, batch.tolist())) if batch.ndim == 2 else batch.tolist()

    def runs(self, plan_batches: int) -> tuple[EarlierRun, ...]:
        """Returns the runs of the epoch; the last had `plan_batches` of the plan, and is left out for 0."""
        latest_run = EarlierRun(World(self.plan.world_size, self.plan.micro_batches), plan_batches)
        return (*self.earlier_runs, latest_run) if plan_batches else self.earlier_runs

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the plan, computed once because a loader may save a state with every batch."""
        return self.plan.fingerprint()


@dataclass(eq=False)
class Pass:
    """One loop over the batches that are left of a plan.

    Attributes:
        remainder: The plan, and the place in it where the loop began.
        taken: The batches that the loop was given, and the failed ones before them.
        failed: The batches since then that could not be read. A resumed run tries them again.
        state: "open" while the loop may go on, "left" once it was dropped, "ended" once it was at its end.
    """

    remainder: Remainder
    taken: int = 0
    failed: int = 0
    state: Literal["open", "left", "ended"] = "open"

    def __getstate__(self) -> dict[str, Any]:
        """A copy has no loop that may go on."""
        return self.__dict__ | {"state": self.state.replace("open", "left")}

    @property
    def may_go_on(self) -> bool:
        """Tells if the loop may yield more batches."""
        return self.state == "open" and self.taken + self.failed < self.remainder.batches_left

    def count(self, batches: int) -> None:
        """Counts batches that the loop was given, and the failed ones just before them."""
        self.taken, self.failed = self.taken + self.failed + batches, 0


def find_position(passes: Sequence[Pass], start: int) -> int:
    """Returns the batches of the epoch that were delivered: those of the pass that had the latest batch.

    Args:
        passes: The passes that begin at `start`, in the order of their latest batches.
        start: The batches of the epoch that were delivered before.

    Raises:
        ValueError: An earlier pass may go on.
    """
    if any(loop.may_go_on for loop in passes[:-1]):
        remedy = "Give one a loader and a sampler of its own, or state_dict your count. To look, take loader.peek()."
        raise checks.state_error("Two loops over this loader have begun, so its position is unknown", remedy)
    return start + (passes[-1].taken if passes else 0)


def check_alike(
    expected: Mapping[str, object], facts: Mapping[str, object], *, whose: str, remedy: str, at: str = ""
) -> None:
    """Refuses `facts` that differ from the expected ones.

    Raises:
        PlanMismatchError: Some fact differs. The sentence names the part that differs, and both values.

    >>> facts = {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 200.0}}
    >>> check_alike(facts, {"seed": 0, "cut": {"choice": "cut.Budget", "budget": 201.0}}, whose="mine", remedy="Ask.")
    Traceback (most recent call last):
    lengthwise.planning.plan.PlanMismatchError: `cut.budget` must be mine, 200.0, but is 201.0. Ask.
    """
    for name, fact in expected.items():
        value = facts[name]
        if name == "batching" and isinstance(fact, Mapping) and isinstance(value, Mapping):
            fact, value = comparable(fact), comparable(value)  # files of 0.1 write defaults, too
        if value != fact:
            part, expected_part, value = _difference(name, fact, value)
            rule = f"{whose}, {checks.show_value(expected_part)}"
            raise PlanMismatchError(checks.sentence(part, rule, value, remedy, at=at))


def _difference(name: str, expected: object, value: object) -> tuple[str, object, object]:
    """Returns the first part in which two facts differ: its name, and its value in both."""
    if not (isinstance(expected, Mapping) and isinstance(value, Mapping)):
        return name, expected, value
    # Names the part: "cut.budget", 200.0 and 201.0, and not two batchings of five lines each.
    pairs = ((key, expected.get(key, _ABSENT), value.get(key, _ABSENT)) for key in {**expected, **value})
    key, *parts = next(pair for pair in pairs if pair[1] != pair[2])
    return _difference(f"{name}.{key}", *parts)
