"""The sampler over windows, for more lengths than can be planned at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import ArrayLike
from torch import distributed

from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.deal import World
from lengthwise.planning.window_epoch import WindowEpoch
from lengthwise.planning.windows import Windows
from lengthwise.torch.planner import Planner
from lengthwise.torch.sampler import BatchSampler


# Only the plan differs from `BatchSampler`: a `WindowEpoch` has all the members of a `Plan` that the sampler uses.
class WindowSampler(BatchSampler):
    """Yields the batches of one epoch of `lengthwise.Windows`, for `lw.torch.DataLoader(dataset, sampler)`.

    Use it like `BatchSampler`. Three things differ:

    - All lengths are read once, piece by piece, when the sampler is made.
    - A plan is made when its window is reached, so one or two windows are in memory. A plan of 2**20 sequences takes a
      few hundredths of a second.
    - A checkpoint identifies the lengths by a sample of them.

    Args:
        lengths: As for `Windows`: an array, which may be memory-mapped, or the path of a `.npy` file.
        batching: The choices.
        window: The most sequences in a window, a multiple of `block`.
        block: The number of neighbouring sequences that stay together.
        seed: The seed of the run.
        rank: The rank of this process; by default from torch.distributed if it is running, else 0.
        world_size: The number of ranks that share out the batches; by default from torch.distributed, else 1.
        group: The process group of the ranks that share out the batches, in place of rank and world_size.
        micro_batches: The batches of each rank in one optimiser step.

    Raises:
        ValueError: As `Windows` and `BatchSampler`.
        PlanMismatchError: Another rank has other windows, or none.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> sampler = WindowSampler([5, 9, 2, 4], batching, window=2, block=1)
    >>> len(sampler), sum(map(len, sampler))
    (2, 4)
    """

    def __init__(
        self,
        lengths: ArrayLike | str | os.PathLike[str],
        batching: Batching,
        *,
        window: int = 2**20,
        block: int = 2048,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        group: distributed.ProcessGroup | None = None,
        micro_batches: int = 1,
    ) -> None:
        self._shape = {"window": window, "block": block}
        # BatchSampler passes the lengths on to `_read`, below.
        source: Any = lengths
        world: Any = {"rank": rank, "world_size": world_size, "group": group, "micro_batches": micro_batches}
        super().__init__(source, batching, seed=seed, **world)

    @property
    def windows(self) -> Windows:
        """The windows, shared out to the ranks of this run."""
        return self.plan.windows

    @property
    def plan(self) -> WindowEpoch:  # pyrefly: ignore[bad-override]  # a BatchSampler's is a Plan
        """The current epoch, window by window: only its rest if another number of ranks saved the loaded state."""
        return cast(WindowEpoch, super().plan)

    def _read(self, lengths: ArrayLike, times: ArrayLike | None, groups: ArrayLike | None) -> Planner:
        del times, groups  # a WindowSampler takes neither
        check_batching(self.batching)
        windows = Windows(lengths, self.batching, seed=self.seed, **self._shape)
        return _WindowPlanner(windows.lengths, self.batching, self.seed, None, None, windows)


@dataclass(frozen=True, eq=False)
class _WindowPlanner(Planner):
    windows: Windows

    def plan(self, epoch: int, world: World, after: Sequence[tuple[int, int, int]]) -> WindowEpoch:
        return WindowEpoch(self.windows.share_out(*world), epoch, after=after)
