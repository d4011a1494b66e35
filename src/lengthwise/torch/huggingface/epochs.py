"""The callback that sets the epochs, ends them where their plans end, and saves the position in checkpoints."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import transformers
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm
from transformers.trainer_callback import ExportableState

from lengthwise import checks
from lengthwise.torch.loader import DataLoader
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.trainers import Speed


class PlannedEpochs(transformers.TrainerCallback, ExportableState):
    """Sets the epochs, ends them where their plans end, and saves the sampler's position in the Trainer's checkpoints.

    It takes no arguments, because a Trainer that restores its callbacks gives them none.
    """

    sampler: BatchSampler | None = None
    # The batches of the epoch whose step was taken. On SIGTERM, batches of the next step may have been fetched too.
    trained: int = 0
    batches: int = 0  # all batches of the epoch
    begun: bool = False  # whether an epoch of this run has begun

    def __init__(self) -> None:
        self.speed: Speed = Speed()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loader = kwargs["train_dataloader"]
        if not isinstance(loader, DataLoader):
            remedy = "Keep PlannedTrainer's get_train_dataloader."
            raise checks.type_error("train_dataloader", "a lengthwise.torch.DataLoader", loader, remedy)
        sampler = loader.batch_sampler
        self.sampler, self.begun, self.speed = sampler, False, Speed()
        # A new run begins with epoch 0, wherever an earlier call of `train` left the sampler.
        if state.global_step:
            self._resume(sampler, args, state, kwargs.get("lr_scheduler"))
        else:
            sampler.set_epoch(0, restart=True)
        self.trained = sampler.start
        epochs = "" if args.max_steps > 0 else f" in {args.num_train_epochs:g} epochs"
        _tell(args, state, lambda: f"Lengthwise plans {state.max_steps:,} steps{epochs}.\n{sampler.summary()}")

    def _resume(self, sampler: BatchSampler, args: Any, state: Any, schedule: Any) -> None:
        """Resumes where the checkpoint was saved."""
        saved = state.stateful_callbacks.get(type(self).__name__, {}).get("attributes", {})
        if "position" not in saved:
            remedy = "Resume from a checkpoint of PlannedTrainer, or begin a new run with this one's model."
            rule = "saved in the checkpoint by PlannedTrainer"
            raise checks.value_error("position", rule, None, remedy, at=f"step {state.global_step}")
        sampler.resume(saved["position"])
        if args.max_steps <= 0:  # steps differ in size if the number of ranks has changed
            # The steps so far, counted on the current ranks: all steps of these epochs, less those that are left.
            steps = (sampler.epoch + 1) * sampler.steps - (len(sampler) - sampler.start) // sampler.micro_batches
            state.max_steps = state.global_step + total_steps_of(sampler, args.num_train_epochs) - steps
            saved_world = (saved["position"]["world_size"], saved["position"]["micro_batches"])
            if saved_world != (sampler.world_size, sampler.micro_batches):
                _move_schedule(schedule, steps)
        if state.global_step >= state.max_steps:
            rule, remedy = f"below max_steps, {state.max_steps}", "Raise num_train_epochs or max_steps to train on."
            checks.warn(checks.sentence("global_step", rule, state.global_step, remedy))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loader = kwargs["train_dataloader"]
        sampler = loader.batch_sampler
        # Another callback may have left the epoch early. Then its rest is skipped, as in a plain Trainer.
        is_over, self.begun = self.begun or loader.delivered == len(sampler), True
        is_last = args.max_steps <= 0 and sampler.epoch + 1 >= args.num_train_epochs
        # A run that was resumed after its last step takes no further step.
        if state.global_step >= state.max_steps or (is_over and is_last):
            control.should_epoch_stop = True
        elif is_over:
            sampler.set_epoch(sampler.epoch + 1)
        self.trained, self.batches = loader.delivered, len(sampler)
        self.speed.begin_epoch(sampler)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trained += args.gradient_accumulation_steps  # as many as the sampler's micro-batches

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.speed.note()
        state.epoch = kwargs["train_dataloader"].epoch + self.trained / self.batches
        # Never set it to False: another callback may have asked for the end before.
        control.should_epoch_stop |= self.trained == self.batches

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.speed.skip()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.speed.skip()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        epoch = kwargs["train_dataloader"].batch_sampler.epoch
        _tell(args, state, lambda: self.speed.describe_first(epoch, args.device))

    def state(self) -> dict[str, Any]:
        """Returns the state that the Trainer writes to its checkpoint."""
        if self.sampler is None:
            return {"args": {}, "attributes": {}}
        return {"args": {}, "attributes": {"position": self.sampler.state_after(self.trained)}}


def _tell(args: Any, state: Any, write: Callable[[], str]) -> None:
    """Prints a text from `write` with the Trainer's logs, on rank 0, unless log_level allows only errors."""
    if state.is_world_process_zero and args.get_process_log_level() <= logging.WARNING and (text := write()):
        tqdm.write(text)  # above the Trainer's progress bar


def _move_schedule(schedule: Any, steps: int) -> None:
    """Sets a schedule of the Trainer to `steps`, counted on the current ranks.

    Example: after half an epoch on 4 ranks, the checkpoint has step 4 of 8. On 2 ranks an epoch has 16 steps, so the
    schedule goes to step 8.
    """
    # The learning rate of a LambdaLR is a function of the count. Other schedules have a state that only steps change.
    if isinstance(schedule, LambdaLR):
        schedule.last_epoch = steps


def total_steps_of(sampler: BatchSampler, epochs: float) -> int:
    """Returns the optimiser steps of `epochs`, which may end with a part of an epoch."""
    return math.ceil(epochs * sampler.steps)
