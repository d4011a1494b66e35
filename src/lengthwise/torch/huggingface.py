"""The Trainer of Hugging Face transformers on planned batches. Nothing else imports transformers: import it by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

try:
    import transformers
except ImportError as error:
    raise ImportError('lengthwise.torch.huggingface needs transformers 5: pip install "transformers[torch]"') from error

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import DataLoader
from transformers.trainer_callback import ExportableState

from lengthwise import _checks
from lengthwise.plan import Plan
from lengthwise.torch.sampler import BatchSampler

# What a loader of the Trainer has besides its batches; the batches are ours.
_KEPT = (
    *("collate_fn", "num_workers", "pin_memory", "worker_init_fn", "multiprocessing_context"),
    *("prefetch_factor", "persistent_workers"),
)
# Arguments of the Trainer that would decide what a batch is: anything else than this would be ignored.
_DECIDED = {"auto_find_batch_size": False, "dataloader_drop_last": False, "train_sampling_strategy": "random"}


class PlannedTrainer(transformers.Trainer):
    """A Trainer that trains on the batches of a sampler, each once, and steps exactly where the plan does.

    What a Trainer does otherwise, and this one does not: hand the loader to Accelerate, which shares the batches out to
    the ranks once more; believe that every epoch is as long as the first, and leave longer ones before their end; and
    draw, to resume, all batches that it has had.

    The loss of each batch is scaled so that the gradient of a step is that of its weighted mean loss, on any number of
    ranks. Where the Trainer counts the labels of the whole step itself (`num_items_in_batch`), the model divides by
    them and nothing is scaled again. What goes wrong in use: a subclass whose `compute_loss` does not call this one's.

    For a Trainer of another kind, put this one before it: `class Planned(PlannedTrainer, Seq2SeqTrainer): ...`.

    Args:
        *args: As Trainer takes them.
        batch_sampler: With as many `micro_batches` as `gradient_accumulation_steps`. Each `train` begins at epoch 0, or
            where its checkpoint was saved. `per_device_train_batch_size` is without effect.
        weights: [n], what each sequence counts for in the loss that the model gives as a mean over a batch, as
            `lw.loss_scales` takes them: 1 each where not given, or its tokens.
        callbacks: As Trainer takes them.
        **kwargs: As Trainer takes them.

    Raises:
        TypeError: `batch_sampler` is none; and with `train`, a loader that does not draw from it.
        ValueError: A setting of the Trainer that contradicts the sampler, with the value it needs; and with `train`, a
            data set of another size, or a checkpoint that another Trainer saved.
        PlanMismatchError: The checkpoint is of other lengths, another batching or seed.
    """

    def __init__(
        self,
        *args: Any,
        batch_sampler: BatchSampler,
        weights: ArrayLike | None = None,
        callbacks: Sequence[transformers.TrainerCallback] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, callbacks=[_PlannedEpochs(), *(callbacks or ())], **kwargs)
        if not isinstance(batch_sampler, BatchSampler):
            remedy = "Make one of the lengths and a batching."
            raise _checks.type_error("batch_sampler", "a lengthwise.torch.BatchSampler", batch_sampler, remedy)
        self.batch_sampler = batch_sampler
        self.weights = weights
        self._scaled: tuple[Plan, NDArray[np.float64]] | None = None
        self._check_settings()
        self.args.ignore_data_skip = True  # the sampler goes on at its position: there is nothing to skip

    def get_train_dataloader(self) -> DataLoader:
        """The Trainer's own loader in all but its batches, and not prepared by Accelerate."""
        loader = super().get_train_dataloader()
        dataset: Any = loader.dataset
        if len(dataset) != len(self.batch_sampler.lengths):
            remedy = "Give the lengths of this data set, in its order."
            rule = f"as many as the {len(dataset)} sequences of train_dataset"
            raise _checks.value_error("lengths", rule, len(self.batch_sampler.lengths), remedy)
        kept = {name: getattr(loader, name) for name in _KEPT}
        return DataLoader(dataset, batch_sampler=self.batch_sampler, generator=torch.Generator(), **kept)

    def set_initial_training_values(self, args: transformers.TrainingArguments, dataloader: DataLoader) -> Any:
        """The Trainer's own, but for exact steps; each epoch may take them all, and ends where its plan does."""
        values = list(super().set_initial_training_values(args, dataloader))
        by_steps = args.max_steps > 0
        steps = args.max_steps if by_steps else _total_steps(self.batch_sampler, args.num_train_epochs)
        values[0] = steps if by_steps else math.ceil(args.num_train_epochs)
        values[1] = values[-1] = steps
        return tuple(values)

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Any]:
        """The batches of one step; their scales are kept until they are trained on."""
        batches, counted = super().get_batch_samples(epoch_iterator, num_batches, device)
        last = self.batch_sampler.delivered - self.batch_sampler.start
        self._coming = iter(self._scales()[last - len(batches) : last].tolist())
        return batches, counted

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """The Trainer's own, of the next batch of the step."""
        self._scale = next(self._coming)
        return super().training_step(*args, **kwargs)

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The Trainer's own, scaled where it is not of the whole step already."""
        computed = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if not model.training or num_items_in_batch is not None:
            return computed
        return (computed[0] * self._scale, computed[1]) if return_outputs else computed * self._scale

    def _scales(self) -> NDArray[np.float64]:
        """One for each batch of this pass."""
        plan = self.batch_sampler.plan
        if self._scaled is None or self._scaled[0] is not plan:
            averaged = self.compute_loss_func is None and not getattr(self, "loss_is_scaled_for_ga", None)
            self._scaled = plan, self.batch_sampler.loss_scales(self.weights, micro_batches_averaged=averaged)
        return self._scaled[1]

    def _check_settings(self) -> None:
        ranks = self.args.world_size // (self.get_tp_size() * self.get_cp_size() * self.get_sp_size())
        if self.batch_sampler.world_size != ranks:
            remedy = "Make the sampler without rank and world_size, or with those of data parallelism."
            raise _checks.value_error("world_size", f"the Trainer's, {ranks}", self.batch_sampler.world_size, remedy)
        if self.args.n_gpu > 1:  # nn.DataParallel splits every batch, and takes the mean of the pieces' means
            remedy = "Start one process for each GPU with torchrun, or let CUDA_VISIBLE_DEVICES name one."
            raise _checks.value_error("n_gpu", "at most 1 in each process", self.args.n_gpu, remedy)
        needed = _DECIDED | {"gradient_accumulation_steps": self.batch_sampler.micro_batches}
        if ranks > 1:
            needed["average_tokens_across_devices"] = True
        for name, value in needed.items():
            if getattr(self.args, name, value) != value:
                remedy = "Set it so in TrainingArguments: the batch sampler decides what a batch and a step are."
                raise _checks.value_error(name, repr(value), getattr(self.args, name), remedy)


class _PlannedEpochs(transformers.TrainerCallback, ExportableState):
    """Sets the epochs, ends them where their plan does, and keeps the sampler's position in the Trainer's checkpoints.

    It takes no arguments, so that a Trainer which restores its callbacks can make it anew.
    """

    sampler: BatchSampler | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        sampler = kwargs["train_dataloader"].batch_sampler
        if not isinstance(sampler, BatchSampler):
            remedy = "Keep PlannedTrainer's get_train_dataloader, and leave its loader out of accelerator.prepare."
            raise _checks.type_error("train_dataloader.batch_sampler", "the batch sampler itself", sampler, remedy)
        self.sampler = sampler
        if not state.global_step:
            sampler.set_epoch(0)
            return
        saved = state.stateful_callbacks.get(type(self).__name__, {}).get("attributes", {})
        if "position" not in saved:
            remedy = "Resume from a checkpoint of PlannedTrainer, or begin a new run with this one's model."
            rule = "kept by the checkpoint, which PlannedTrainer does"
            raise _checks.value_error("position", rule, None, remedy, at=f"step {state.global_step}")
        sampler.load_state_dict(saved["position"])
        if args.max_steps <= 0:  # steps differ in size where the ranks are others than before
            done = sampler.total_steps(sampler.epoch + 1) - _batches_left(sampler) // sampler.micro_batches
            state.max_steps = state.global_step + _total_steps(sampler, args.num_train_epochs) - done

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        loader = kwargs["train_dataloader"]
        sampler = loader.batch_sampler
        if not _batches_left(sampler) and state.global_step < state.max_steps:
            sampler.set_epoch(sampler.epoch + 1)
        # Workers are seeded from the loader's own generator: the global one is to be as a checkpoint left it.
        place = np.random.SeedSequence((args.seed, sampler.epoch, sampler.delivered))
        loader.generator.manual_seed(int(place.generate_state(1, np.uint64)[0]))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        sampler = kwargs["train_dataloader"].batch_sampler
        state.epoch = sampler.epoch + sampler.delivered / len(sampler)
        control.should_epoch_stop |= not _batches_left(sampler)

    def state(self) -> dict[str, Any]:
        """What the Trainer writes to its checkpoint."""
        position = {} if self.sampler is None else {"position": self.sampler.state_dict()}
        return {"args": {}, "attributes": position}


def _batches_left(sampler: BatchSampler) -> int:
    return len(sampler) - sampler.delivered


def _total_steps(sampler: BatchSampler, epochs: float) -> int:
    """Optimiser steps of so many epochs, of which the last may be a part."""
    whole = math.floor(epochs)
    steps = sampler.total_steps(whole)
    if epochs > whole:
        steps += math.ceil((epochs - whole) * (sampler.total_steps(whole + 1) - steps))
    return steps
