"""The world that a step is shared out to: ranks, and the batches that each of them takes in a step."""

from __future__ import annotations

from typing import NamedTuple

from lengthwise import checks

_MAX_SLOTS = 2**20  # batches in a step: more is a mistake, and the grid of its plan would fill the memory


class World(NamedTuple):
    """What a step is shared out to: `world_size` ranks, and on each `micro_batches` batches, one after another.

    Attributes:
        world_size: How many ranks there are.
        micro_batches: How many batches each of them takes in one step.

    >>> World(8, 2).slots
    16
    """

    world_size: int
    micro_batches: int

    @property
    def slots(self) -> int:
        """Batches in a step."""
        return self.world_size * self.micro_batches


def check_world(world_size: object, micro_batches: object = 1, *, remedy: str = "") -> World:
    """Returns the world of a run, and refuses numbers that no run has.

    Args:
        world_size: Ranks.
        micro_batches: Batches that each rank takes in a step.
        remedy: What the error advises; by default, to give the right number.

    >>> check_world(8, 2).slots
    16
    """
    ranks = checks.check_whole("world_size", world_size, minimum=1, remedy=remedy or "Give the number of ranks.")
    fix = remedy or "Give the batches a rank takes in a step."
    world = World(ranks, checks.check_whole("micro_batches", micro_batches, minimum=1, remedy=fix))
    if world.slots > _MAX_SLOTS:
        rule = f"at most {_MAX_SLOTS} batches in a step"
        fix = remedy or "Check world_size and micro_batches."
        raise checks.value_error("world_size x micro_batches", rule, world.slots, fix)
    return world
