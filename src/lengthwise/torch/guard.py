"""Refuses whoever would take other batches than planned; the error says what to change.

A sampler cannot see what stands between it and the training loop. It sees a worker, which PyTorch tells, and
Accelerate's sharding of batch samplers, which asks for `drop_last`. It cannot see a generator that leaves batches out,
nor Accelerate's `dispatch_batches`.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import get_worker_info

from lengthwise import checks


def check_no_worker() -> None:
    """Refuses a data set that draws from a sampler in a loader's worker: each worker would take all batches."""
    if (worker := get_worker_info()) is not None:
        given = f"drawn from by the dataset, in worker {worker.id} of {worker.num_workers}"
        remedy = (
            "Give the loader a dataset with __getitem__, and the sampler as batch_sampler=; or let the dataset read"
            " lw.make_plan(...).batches(rank), which keeps no position."
        )
        raise checks.value_error("sampler", "drawn from by the loader", given, remedy)


def refuse_second_sharing(world_size: int) -> bool:
    """Refuses whoever asks a sampler of several ranks for `drop_last`; on one rank returns False.

    PyTorch does not ask. Accelerate does, to share the batches out to the ranks, which would lose most of them.
    """
    if world_size > 1:
        rule = f"shared out once, by the sampler's own rank and world_size of {world_size}"
        remedy = (
            "Give accelerator.prepare an lw.torch.DataLoader, which it leaves as it is, or leave this loader out of"
            " it; or make the sampler with rank=0, world_size=1."
        )
        raise checks.value_error("batches", rule, "shared out to the ranks again", remedy)
    return False


def check_dataset(dataset: Any, sequences: int) -> None:
    """Refuses a data set of another size than there are lengths: they would be the lengths of other sequences."""
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):  # one that does not tell its size
        return
    if size != sequences:
        rule = f"as many as the {size} sequences of the loader's dataset"
        remedy = "Give the lengths of this dataset, in its order."
        raise checks.value_error("lengths", rule, sequences, remedy)


def unused(epoch: int) -> ValueError:
    """The error for an epoch that nobody asked the sampler for."""
    remedy = (
        "Give it to the loader, lw.torch.DataLoader(dataset, sampler), that loader to the trainer, and no "
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
