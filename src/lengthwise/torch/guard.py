"""Errors and warnings for code that takes other batches than the plan's.

A sampler cannot see the code between it and the training loop. It detects two cases: a worker, by PyTorch's
`get_worker_info`, and Accelerate's sharding, which reads `drop_last`. It cannot detect a generator that skips batches,
nor Accelerate's `dispatch_batches`.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import get_worker_info

from lengthwise import checks


class Notices:
    """The warnings of one sampler, each given once; a copy of the sampler has its own."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def is_first(self, name: str) -> bool:
        """Tells if this is the first notice of that name, and records it."""
        is_first = name not in self._given
        self._given.add(name)
        return is_first

    def warn_second_pass(self, epoch: int) -> None:
        """Warns that an epoch is taken a second time."""
        remedy = "Call set_epoch with a new number before each epoch."
        self._warn("epoch", "a new number for every epoch", epoch, remedy, at="the second pass")

    def warn_early_end(self, delivered: int, batches: int, epoch: int) -> None:
        """Warns that an epoch is left before its end."""
        remedy = (
            "Raise the trainer's limit (an epoch has sampler.steps steps), or let the trainer read the length of every"
            " epoch: in Lightning by reload_dataloaders_every_n_epochs=1."
        )
        rule = f"{batches} before the next epoch, or sequences are lost"
        self._warn("batches delivered", rule, delivered, remedy, at=f"epoch {epoch}")

    def warn_early_end_of_stream(self, epoch: int) -> None:
        """Warns that an epoch of a stream, whose length is unknown, is left before its end."""
        remedy = "Let the loop end by itself; if your epochs are shorter than the stream, keep one iterator for all."
        rule = "read to its end before the next epoch, or sequences are lost"
        self._warn("stream", rule, "left early", remedy, at=f"epoch {epoch}")

    def warn_left_position(self, loaded: int, epoch: int) -> None:
        """Warns that another epoch is set although the loaded position has batches left."""
        remedy = f"Begin with it, or the loaded position is lost: `for epoch in range({loaded}, epochs)`."
        self._warn("first epoch", f"{loaded}, the epoch of the loaded state", epoch, remedy)

    def _warn(self, name: str, rule: str, value: object, remedy: str, *, at: str = "") -> None:
        # Warn once for each kind, not for each epoch: 100 epochs would repeat the warning 100 times.
        if self.is_first(name):
            checks.warn(checks.sentence(name, rule, value, remedy, at=at))


def check_no_worker(name: str = "sampler", remedy: str = "") -> None:
    """Refuses a sampler or a stream that is read in a loader's worker: each worker would take all batches."""
    if (worker := get_worker_info()) is not None:
        reader = f"read by the dataset, in worker {worker.id} of {worker.num_workers}"
        default_remedy = (
            "Give the loader a dataset with __getitem__, and the sampler as batch_sampler=; or let the dataset read"
            " lw.make_plan(...).batches(rank), which keeps no position."
        )
        raise checks.value_error(name, "read in the process that trains", reader, remedy or default_remedy)


def refuse_second_sharing(world_size: int) -> bool:
    """Raises if a sampler of several ranks is asked for `drop_last`; returns False on one rank.

    PyTorch does not read `drop_last`. Accelerate reads it when it shares the batches out once more, which would lose
    most of them.
    """
    if world_size > 1:
        rule = f"shared out once, by the sampler's own rank and world_size of {world_size}"
        remedy = (
            "Give accelerator.prepare an lw.torch.DataLoader, which it leaves as it is, or leave this loader out of"
            " prepare; or make the sampler with rank=0, world_size=1."
        )
        raise checks.value_error("batches", rule, "shared out to the ranks again", remedy)
    return False


def check_dataset(dataset: Any, sequences: int) -> None:
    """Refuses a data set whose size is not the number of lengths: they describe another data set."""
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):  # a data set of unknown size
        return
    if size != sequences:
        rule = f"as many as the {size} sequences of the loader's dataset"
        remedy = "Give the lengths of this dataset, in its order."
        raise checks.value_error("lengths", rule, sequences, remedy)


def unused(epoch: int) -> ValueError:
    """Returns the error for an epoch whose batches were never read."""
    remedy = (
        "Give lw.torch.DataLoader(dataset, sampler) to the trainer, and no training_data to deepspeed.initialize. "
        "To skip epochs, set only the first epoch that is trained."
    )
    rule = "read in every epoch that is set"
    return checks.value_error("sampler", rule, "not read", remedy, at=f"epoch {epoch}")


def changed(begun: int, epoch: int) -> ValueError:
    """Returns the error for a pass over the epoch `begun` during which another epoch or position was set."""
    remedy = "Set the epoch, or load the position, before the loader begins to fetch its batches."
    if epoch != begun:
        return checks.value_error("epoch", f"{begun} until its pass has ended", epoch, remedy)
    return checks.value_error("position", "kept until the pass has ended", "loaded or restarted since", remedy)
