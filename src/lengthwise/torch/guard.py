"""Refuses callers that would take other batches than planned; the error, with the first batch, says what to change.

The callers between a sampler and the trainer are read from the call stack. A sampler whose `reads_callers` is False
skips all of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.data import BatchSampler, IterableDataset, Sampler, get_worker_info

from lengthwise import checks
from lengthwise.torch.consumer import Caller, loader_among

# The attributes by which samplers that share out batches name the number of shares.
_REPLICAS = ("num_replicas", "num_processes", "num_shards", "world_size")
# Accelerate's loaders. They fetch the batch after the one that they hand on, and set epochs that they count themselves.
PREPARED = ("DataLoaderShard", "DataLoaderDispatcher")


def check_callers(sampler: Sampler[Any], found: Sequence[Caller], *, sequences: int, world_size: int) -> None:
    """Refuses callers that would take other batches than planned.

    Args:
        sampler: One of ours, which is about to yield its first batch.
        found: Who draws it, the innermost first.
        sequences: How many lengths the sampler has.
        world_size: How many ranks the sampler shares the batches out to.

    Raises:
        ValueError: A data set draws from it, in this process or in a loader's worker; it is one rank's of several, and
            something behind it shards its batches again; its batches are taken for sequence numbers, and batched once
            more; Accelerate prepared its loader; or the loader's data set has another number of sequences.
    """
    _check_no_dataset_draws(found)
    for holder, _ in found:
        # DataLoader(dataset, sampler=ours) wraps ours into PyTorch's BatchSampler, which batches our batches.
        if isinstance(holder, BatchSampler) and getattr(holder, "sampler", None) is sampler:
            remedy = "It yields whole batches: make the loader yourself, and give the trainer that loader."
            raise checks.value_error("sampler", "given to DataLoader as batch_sampler=", "sampler=", remedy)
        if type(holder).__name__ in PREPARED:
            remedy = "Leave the loader out of accelerator.prepare: the sampler gives each rank its own batches."
            raise checks.value_error("loader", "PyTorch's own", f"Accelerate's {type(holder).__name__}", remedy)
        # Any other sampler above ours, DistributedSampler say, takes a share of this rank's share.
        if world_size > 1 and isinstance(holder, Sampler) and holder is not sampler:
            _check_no_second_share(holder, world_size)
    _check_dataset_size(_dataset_of(found), sequences)


def unused(epoch: int) -> ValueError:
    """The error for an epoch that nobody asked the sampler for."""
    remedy = (
        "Give it to the loader, DataLoader(dataset, batch_sampler=sampler), that loader to the trainer, and no "
        "training_data to deepspeed.initialize; to skip epochs, set only the one to begin with."
    )
    rule = "asked for batches of every epoch that is set"
    return checks.value_error("sampler", rule, "not asked", remedy, at=f"epoch {epoch}")


def changed(begun: int, epoch: int) -> ValueError:
    """The error for a pass over the epoch `begun` that goes on after `epoch`, or another position, was set."""
    remedy = "Set the epoch, or load the position, before the loader begins to fetch its batches."
    if epoch != begun:
        return checks.value_error("epoch", f"{begun} until its pass has ended", epoch, remedy)
    return checks.value_error("position", "kept until the pass has ended", "loaded, or begun anew, since", remedy)


def _dataset_of(found: Sequence[Caller]) -> Any:
    """The data set of the loader that draws; None if there is none."""
    loader, _ = loader_among(found)
    return None if loader is None else vars(loader).get("_dataset")


def _check_no_dataset_draws(found: Sequence[Caller]) -> None:
    """Refuses a data set that draws: each worker of its loader would take all batches, and no count would be right."""
    # A loader asks its sampler in `_next_index`, and its data set in `_next_data`.
    worker = get_worker_info()
    _, method = loader_among(found)
    if worker is not None:
        given = f"drawn from by the dataset, in worker {worker.id} of {worker.num_workers}"
    elif method == "_next_data" or isinstance(_dataset_of(found), IterableDataset):
        given = "drawn from by the dataset"
    else:
        return
    remedy = (
        "Give the loader a dataset with __getitem__, and the sampler as batch_sampler=; or let the dataset read"
        " lw.make_plan(...).batches(rank), which keeps no position."
    )
    raise checks.value_error("sampler", "drawn from by the loader", given, remedy)


def _check_no_second_share(holder: Sampler, world_size: int) -> None:
    """Refuses a sampler that deals batches out once more."""
    found = [getattr(holder, name, 1) for name in _REPLICAS]
    shares = max(number for number in (1, *found) if isinstance(number, int))
    if shares > 1:
        rule = f"shared out once, by the sampler's own rank and world_size of {world_size}"
        remedy = (
            "Leave the loader out of accelerator.prepare, give Lightning's Trainer use_distributed_sampler=False, "
            "or make the sampler with rank=0, world_size=1."
        )
        raise checks.value_error("batches", rule, f"shared out to {shares} again by {type(holder).__name__}", remedy)


def _check_dataset_size(dataset: Any, sequences: int) -> None:
    """Refuses a data set of another size than there are lengths: they would be the lengths of other sequences."""
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):  # an iterable data set, or none at all
        return
    if size != sequences:
        rule = f"as many as the {size} sequences of the loader's dataset"
        remedy = "Give the lengths of this dataset, in its order."
        raise checks.value_error("lengths", rule, sequences, remedy)
