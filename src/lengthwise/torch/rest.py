"""What is left for a run: the plan of an epoch, or of what earlier runs left of it, and where in it to begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lengthwise import checks
from lengthwise.choices.world import World
from lengthwise.planning.rest import EarlierRun
from lengthwise.planning.window_epoch import EpochPlan
from lengthwise.torch.position import DAMAGED, split_runs


@dataclass(frozen=True, eq=False)
class Rest:
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
    def after(cls, runs: tuple[EarlierRun, ...], plan: EpochPlan) -> Rest:
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
