"""Errors and warnings for code that takes other batches than the plan's.

A sampler cannot see the code between it and the training loop. It detects a worker, by PyTorch's `get_worker_info`;
Accelerate's sharding, which reads `drop_last`; and another sampler around it. It cannot detect a generator that skips
batches, nor Accelerate's `dispatch_batches`.
"""

from __future__ import annotations

import gc
from typing import Any

from numpy.typing import NDArray
from torch.utils.data import DistributedSampler, get_worker_info

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

    def warn_second_pass(self, epoch: int, look: str = "") -> None:
        """Warns that an epoch is taken a second time; `look` says how to look at a batch only."""
        remedy = f"Call set_epoch with a new number before each epoch.{look}"
        self._warn("second pass", f"Epoch {epoch} is taken a second time", remedy)

    def warn_only_batch(self, epoch: int) -> None:
        """Warns that a state counts a batch that may have been a look."""
        remedy = "If nothing was trained on it, this batch is lost: look at batches by loader.peek()."
        self._warn("only batch", f"The state of epoch {epoch} counts the one batch of a loop that was left", remedy)

    def warn_early_end(self, delivered: int, batches: int, epoch: int) -> None:
        """Warns that an epoch is left before its end."""
        remedy = (
            "Let the loop end by itself. Under a trainer, raise its limit (an epoch has sampler.steps steps), or let it"
            " read the length of every epoch: in Lightning by reload_dataloaders_every_n_epochs=1."
        )
        state = f"Epoch {epoch} was left after {delivered} of its {batches} batches, so sequences are lost"
        self._warn("early end", state, remedy)

    def warn_early_end_of_stream(self, epoch: int) -> None:
        """Warns that an epoch of a stream, whose length is unknown, is left before its end."""
        remedy = "Let the loop end by itself; if your epochs are shorter than the stream, keep one iterator for all."
        self._warn("early end", f"Epoch {epoch} of the stream was left before its end, so sequences are lost", remedy)

    def warn_left_position(self, loaded: int, epoch: int) -> None:
        """Warns that another epoch is set although the loaded position has batches left."""
        remedy = f"Begin with epoch {loaded}: `for epoch in range({loaded}, epochs)`."
        self._warn("left position", f"Epoch {epoch} is set, so the loaded position in epoch {loaded} is lost", remedy)

    def warn_old_scales(self, epoch: int) -> None:
        """Warns that loss scales were asked for before the epoch or the position was set."""
        remedy = "Call `loss_scales` anew after each `set_epoch` and `load_state_dict`."
        self._warn("old scales", f"Epoch {epoch} is taken with the loss scales of other batches", remedy)

    def _warn(self, name: str, state: str, remedy: str) -> None:
        # Warn once for each kind, not for each epoch: 100 epochs would repeat the warning 100 times.
        if self.is_first(name):
            checks.warn(f"{state}. {remedy}")


def check_no_worker(name: str = "sampler", remedy: str = "") -> None:
    """Refuses a sampler or a stream that is read in a loader's worker: each worker would take all batches."""
    if (worker := get_worker_info()) is not None:
        state = f"The dataset reads the {name} in worker {worker.id} of {worker.num_workers}, so each takes all batches"
        default_remedy = (
            "Give the loader a dataset with __getitem__, and the sampler as batch_sampler=; or let the dataset read"
            " lw.make_plan(...).batches(rank), which keeps no position."
        )
        raise checks.state_error(state, remedy or default_remedy)


_PREPARE = (
    "Give accelerator.prepare an lw.torch.DataLoader, which it leaves as it is, or leave this loader out of prepare; or"
    " make the sampler with rank=0, world_size=1."
)


def refuse_second_sharing(world_size: int, by: str = "the loader", remedy: str = _PREPARE) -> bool:
    """Raises if a sampler of several ranks is asked for `drop_last`; returns False on one rank.

    PyTorch does not read `drop_last`. Accelerate reads it when it shares the batches out once more, which would lose
    most of them.
    """
    if world_size > 1:
        state = f"The sampler has shared its batches out to {world_size} ranks, and {by} would do so again"
        raise checks.state_error(state, remedy)
    return False


def check_wrappers(sampler: object, *, world_size: int, start: int) -> None:
    """Refuses other samplers around this one that share its batches out once more, or skip its position once more."""
    # A sampler does not know who reads it. Its holder is an object, or the dict of its attributes.
    holders = gc.get_referrers(sampler)
    holders += gc.get_referrers(*(holder for holder in holders if type(holder) is dict))
    for kind in map(type, holders):
        if issubclass(kind, DistributedSampler):
            # PaddedBatch is the default of SpeechBrain, which makes such a wrapper.
            remedy = "Give the trainer lw.torch.DataLoader(dataset, sampler, collate_fn=PaddedBatch), not a sampler."
            refuse_second_sharing(world_size, f"a {kind.__name__}", remedy)
        elif kind.__name__ == "SkipBatchSampler" and start:  # of Accelerate
            state = f"The sampler begins after {start} batches, as loaded, and skip_first_batches would skip more"
            raise checks.state_error(state, "Loop over the loader itself.")


def check_dataset(dataset: Any, lengths: NDArray[Any]) -> None:
    """Refuses a data set of another size than the lengths, and lengths that are the number of parts of a sample."""
    sequences = len(lengths)
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):  # a data set of unknown size
        return
    if size != sequences:
        rule = f"as many as the {size} sequences of the loader's dataset"
        remedy = "Give the lengths of this dataset, in its order."
        raise checks.value_error("lengths", rule, sequences, remedy)
    # Most data sets differ within the first few: only others are read on.
    if sequences > 1 and all((part == lengths[0]).all() for part in (lengths[:1_000], lengths)):
        sample = dataset[0]
        if isinstance(sample, tuple | dict) and len(sample) == lengths.flat[0]:
            remedy = "That is the number of parts of a sample: take [len(tokens) for tokens, label in dataset]."
            raise checks.value_error("lengths", "those of the sequences", f"{len(sample)} for all", remedy)


def unused(epoch: int) -> ValueError:
    """Returns the error for an epoch whose batches were never read."""
    remedy = (
        "Give lw.torch.DataLoader(dataset, sampler) to the trainer, and no training_data to deepspeed.initialize; do "
        "without fabric.setup_dataloaders. To skip epochs, set only the first epoch that is trained."
    )
    return checks.state_error(f"Epoch {epoch} was set, but the sampler was not read", remedy)


def changed(begun: int, epoch: int) -> ValueError:
    """Returns the error for a pass over the epoch `begun` during which another epoch or position was set."""
    change = "A position was loaded or restarted" if epoch == begun else f"Epoch {epoch} was set"
    remedy = "Set the epoch, or load the position, before the loader begins to fetch its batches."
    return checks.state_error(f"{change} within a pass over epoch {begun}", remedy)
