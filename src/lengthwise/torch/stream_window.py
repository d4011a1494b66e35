"""A window of a stream: sequences of all shards, planned like an epoch. Each rank batches its own sequences.

lengths  [m, dims]  the lengths of the sequences, shard by shard
weights  [m]        the weight of each sequence in the loss
shards   [m]        the shard of each sequence
groups   [m]        the number of the task or source of each sequence; None for one group
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arrange import arrange_of
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import Portions, World
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.planning.items import read_groups, read_source
from lengthwise.planning.loss import check_weights, scale_losses
from lengthwise.planning.make import NoStepError, plan_epoch, take_epoch
from lengthwise.planning.plan import Plan
from lengthwise.planning.resume import EarlierRun
from lengthwise.planning.settle import settle
from lengthwise.torch.position import DAMAGED
from lengthwise.torch.ranks import OwnRank, describe_error
from lengthwise.torch.shards import Start

_MOST_WINDOWS, _MOST_RUNS = 2**24, 2**8  # in an epoch, and in a window: `_key_epoch` packs both numbers into one


class Part(NamedTuple):
    """The part of a window that one rank has read, without the samples. The rank sends this part to the others."""

    shards: list[int]
    starts: dict[int, Start]
    lengths: list[Any]
    weights: list[float]
    groups: list[Any]


class StreamWindow(NamedTuple):
    """The sequences of a window, as all ranks know them."""

    lengths: NDArray[np.int64]
    weights: NDArray[np.float64]
    shards: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None

    @property
    def name(self) -> str:
        """The fingerprint of the lengths, and of the groups if the stream has groups."""
        name = fingerprint(self.lengths) if len(self.shards) else ""
        return name if self.groups is None else f"{name} in groups {fingerprint(self.groups + 1)}"


@dataclass(frozen=True)
class SampleFunctions:
    """The user's functions of a sample.

    Attributes:
        length: Returns the length of a sample, or a pair of lengths.
        weight: Returns the weight of a sample in the loss; None for 1.
        group_of: Returns the task or source of a sample; None for one group.
    """

    length: Callable[[Any], Any]
    weight: Callable[[Any], float] | None
    group_of: Callable[[Any], Any] | None

    def __post_init__(self) -> None:
        if not callable(self.length):
            raise checks.type_error("length", "a function of a sample", self.length, "Give length=len, for example.")
        for name, function in (("weight", self.weight), ("group_of", self.group_of)):
            if function is not None and not callable(function):
                raise checks.type_error(name, "a function of a sample, or None", function, "Leave it out.")

    def of(self, samples: list[Any], shards: list[int], starts: dict[int, Start]) -> Part:
        """Measures samples; `shards` has the shard of each sample."""
        _check_len(self.length, samples)

        def ask(name: str, function: Callable[[Any], Any]) -> list[Any]:
            return _ask(name, function, samples, lambda place: name_sample(place, shards, starts))

        weight: Any = self.weight
        weights = [1.0] * len(samples) if weight is None else ask("weight", lambda sample: float(weight(sample)))
        groups = [] if self.group_of is None else ask("group_of", self.group_of)
        lengths = ask("length", self.length)
        with naming_samples(shards, starts):
            check_weights(weights, len(weights), "Give one number for each sample.")
            return Part(shards, starts, as_lengths(lengths).tolist() if lengths else [], weights, groups)


def join_parts(parts: Sequence[Part], starts: Sequence[Start]) -> StreamWindow:
    """Returns the window of all ranks, shard by shard: the same on any number of ranks."""
    shards = [shard for part in parts for shard in part.shards]
    lengths = [length for part in parts for length in part.lengths]
    groups = [group for part in parts for group in part.groups]
    with naming_samples(shards, starts):  # lengths may be numbers on one rank, and pairs on another
        array = as_lengths(lengths) if lengths else np.empty((0, 1), np.int64)
    order = np.argsort(np.array(shards, np.int64), kind="stable")
    weights = np.array([weight for part in parts for weight in part.weights])
    numbers = read_groups(groups, len(groups))[order] if groups else None
    return StreamWindow(array[order], weights[order], np.array(shards, np.int64)[order], numbers)


def name_sample(place: int, shards: Sequence[int], starts: Mapping[int, Start] | Sequence[Start]) -> str:
    """Names the sample at a place of a window by its shard.

    >>> begin = {"read": 0, "source": None, "ended": False}
    >>> name_sample(3, [0, 0, 2, 2], {0: begin, 2: {**begin, "read": 40}})
    'sequence 41 of shard 2'
    """
    shard = int(shards[place])
    return f"sequence {starts[shard]['read'] + place - list(shards).index(shard)} of shard {shard}"


@contextmanager
def naming_samples(shards: Sequence[int], starts: Mapping[int, Start] | Sequence[Start]) -> Iterator[None]:
    """Wraps checks of a window, so that their errors name sequences by shard and not by place."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = re.sub(r"\bsequence (\d+)", lambda match: name_sample(int(match[1]), shards, starts), str(error))
        error.args = (text, *error.args[1:])
        raise


def _ask(name: str, function: Callable[[Any], Any], samples: list[Any], at: Callable[[int], str]) -> list[Any]:
    """Applies a user's function to each sample; an error names the sample."""
    answers: list[Any] = []
    try:
        answers.extend(function(sample) for sample in samples)
    except Exception as error:
        place = len(answers)
        # Adds a note, so that the error keeps its class and its text.
        error.add_note(f"`{name}` raised this at {at(place)}, {checks.show_value(samples[place])}.")
        raise
    return answers


def _check_len(length: Callable[[Any], Any], samples: list[Any]) -> None:
    """Refuses `len` as the length function of samples whose fields it would count."""
    if length is not len or not samples:
        return
    first = samples[0]
    # A tuple of words is a sequence, and has the right `len`.
    is_tuple = isinstance(first, tuple) and any(isinstance(part, Tensor | np.ndarray) for part in first)
    if is_tuple or isinstance(first, Mapping):
        rule, example = "the length of a sequence, not the number of a sample's fields", "len(sample['input_ids'])"
        raise checks.type_error("length", rule, length, f"Give lambda sample: {example}, for example.")


class Deliveries(NamedTuple):
    """The batches of the rest of a window, for one number of ranks and micro-batches.

    Attributes:
        plan: The plan of the k remaining sequences.
        members: [k], the numbers of these sequences in the window.
        owners: [batches], the rank that has the sequences of each batch.
        scales: [steps, micro_batches, ranks], the factor for the mean loss of each batch; 0 for a placeholder.
    """

    plan: Plan
    members: NDArray[np.int64]
    owners: NDArray[np.int64]
    scales: NDArray[np.float64]

    def batch(self, number: int) -> NDArray[np.int64]:
        """Returns the sequences of a batch, by their numbers in the window."""
        return self.members[self.plan.batch(number)]


@dataclass(frozen=True, slots=True)
class _Owned:
    """A deal like `Portions`, whose portions are the sequences that each rank has read."""

    owners: tuple[NDArray[np.int64], ...]

    tail = "split"

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        return list(self.owners)

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        return Portions().grid(numbers, costs, world, key)


def _key_epoch(epoch: int, window: int, run: int) -> int:
    """Returns the epoch number for the random numbers of one run over a window: no two runs of a seed share it.

    >>> _key_epoch(0, 0, 0), _key_epoch(0, 1, 0), _key_epoch(1, 0, 2) == 2**32 + 2
    (0, 256, True)
    """
    remedy = "Begin the next epoch without a state."
    checks.check_whole("windows", window, minimum=0, maximum=_MOST_WINDOWS - 1, remedy=remedy)
    checks.check_whole("runs", run, minimum=0, maximum=_MOST_RUNS - 1, remedy=remedy)
    return (epoch * _MOST_WINDOWS + window) * _MOST_RUNS + run


def deliver(
    window: StreamWindow,
    batching: Batching,
    runs: Sequence[EarlierRun],
    world: World,
    *,
    seed: int,
    epoch: int,
    number: int,
    is_full: bool = True,
) -> Deliveries:
    """Plans the rest of a window after earlier runs, for `world`.

    Args:
        runs: The earlier runs over this window, on other numbers of ranks or micro-batches.
        number: The number of the window.
        is_full: True if the shards filled the window. A short last window may miss its padding without a warning.

    Returns:
        The deliveries. They have no step if the choices drop every remaining batch.
    """
    batching = replace(batching, arrange=arrange_of(batching.arrange, epoch))
    with warnings.catch_warnings():
        if not is_full:
            warnings.filterwarnings("ignore", message="`padding` must be within")
        members = np.arange(len(window.shards))
        for place, run in enumerate(runs):
            key = _key_epoch(epoch, number, place)
            deliveries = _plan(window, members, batching, run.world, seed=seed, key=key)
            check_run(run.batches, deliveries.plan)
            rows = deliveries.plan.grid.reshape(-1, run.world.world_size)[: run.batches]
            # A batch counts as taken if its owner had it: on another rank it was a placeholder.
            batch_numbers = np.unique(rows[deliveries.owners[rows] == np.arange(run.world.world_size)])
            seen = [deliveries.batch(batch) for batch in batch_numbers.tolist()]
            members = np.setdiff1d(members, np.concatenate([np.empty(0, np.int64), *seen]))
        key = _key_epoch(epoch, number, len(runs))
        return _plan(window, members, batching, world, seed=seed, key=key)


def check_run(batches: int, plan: Plan) -> None:
    """Refuses a run that took more batches than the plan has: the rest of the window would be lost."""
    checks.check_whole("runs", batches, minimum=0, maximum=len(plan), remedy=DAMAGED)


def _plan(
    window: StreamWindow, members: NDArray[np.int64], batching: Batching, world: World, *, seed: int, key: int
) -> Deliveries:
    ranks = window.shards[members] % world.world_size

    def plan_members() -> Plan:
        groups = None if window.groups is None else window.groups[members]
        source, own = read_source(window.lengths[members], groups=groups), _with_owners(batching, ranks, world)
        items = take_epoch(source, own, 0)
        # A window has as many steps as its batches fill.
        settled = settle(items, source.name, own, world)
        return plan_epoch(source, items, own, settled, Key(seed=seed, epoch=key), world)

    try:
        plan = plan_members()
    except NoStepError:  # the rest was dropped before, or is too small for a step
        members, ranks = members[:0], ranks[:0]
        plan = plan_members()
    owners = ranks[plan.sequences[plan.offsets[:-1]]]
    return Deliveries(plan, members, owners, _scale(plan, owners, window.weights[members]))


def _with_owners(batching: Batching, ranks: NDArray[np.int64], world: World) -> Batching:
    """Returns the batching for a window in which sequence i belongs to rank `ranks[i]`."""
    if world.world_size == 1:
        return batching
    return replace(batching, deal=_Owned(tuple(np.flatnonzero(ranks == rank) for rank in range(world.world_size))))


def _scale(plan: Plan, owners: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns loss scales as `loss_scales`, but a batch counts once: at its first place on its owner's rank."""
    flat = plan.grid.reshape(-1)
    by_owner = np.flatnonzero((owners[plan.grid] == np.arange(plan.world_size)).reshape(-1))
    counted = np.zeros(len(flat))
    first = by_owner[np.unique(flat[by_owner], return_index=True)[1]]
    counted[first] = np.bincount(plan.batch_numbers, weights[plan.sequences], minlength=len(plan.costs))[flat[first]]
    sums = counted.reshape(plan.grid.shape)
    return scale_losses(plan, sums, "mean", ranks_averaged=True, micro_batches_averaged=False)


def share_placeholder(
    deliveries: Deliveries, window: StreamWindow, samples: Mapping[int, Any], own_rank: OwnRank
) -> list[Any]:
    """Returns a list of one sample for ranks without sequences in a window; a collective if such ranks exist.

    These ranks repeat the sample with a loss scale of 0, so that all ranks take the same number of batches. `samples`
    has this rank's samples, by their numbers in the window.
    """
    # The shortest planned sample, because a dropped one may be over the budget.
    planned = [number for number in deliveries.members[deliveries.plan.sequences].tolist() if number in samples]
    shortest = sorted(planned, key=lambda number: int(window.lengths[number].sum()))[:1]
    offer = [samples[number] for number in shortest]
    if len(np.unique(deliveries.owners)) in (0, own_rank.world_size):
        return offer

    def pack() -> bytes:
        try:
            return pickle.dumps(offer)
        except Exception as error:
            remedy = "Give samples that other processes can read, or as many shards of equal size as there are ranks."
            state = f"A sample for the ranks without one in a window cannot be pickled ({describe_error(error)})"
            raise checks.state_error(state, remedy, TypeError) from error

    return next(filter(None, map(pickle.loads, own_rank.share(pack))))
