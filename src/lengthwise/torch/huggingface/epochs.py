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
from lengthwise.report import words
from lengthwise.torch.loader import DataLoader
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.trainers import Speed


class PlannedEpochs(transformers.TrainerCallback, ExportableState):
    """Sets the epochs, ends them where their plans end, and saves the sampler's position in the Trainer's checkpoints.

    It takes no arguments, because a Trainer that restores its callbacks gives them none.
    """

    sampler: Any = None  # the BatchSampler, once a run has begun
    next_epoch: int = 0  # the epoch that on_epoch_begin sets
    # The batches of the epoch whose step was taken. On SIGTERM, batches of the next step may have been fetched too.
    trained_batches: int = 0

    def __init__(self) -> None:
        self.speed: Speed = Speed()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loader = kwargs["train_dataloader"]
        if not isinstance(loader, DataLoader):
            remedy = "Keep PlannedTrainer's get_train_dataloader."
            raise checks.type_error("train_dataloader", "a lengthwise.torch.DataLoader", loader, remedy)
        self.sampler = sampler = loader.batch_sampler
        self.speed = Speed()
        # A new run begins with epoch 0, wherever an earlier call of `train` left the sampler.
        if state.global_step:
            _resume(sampler, args, state, kwargs.get("lr_scheduler"))
        else:
            sampler.set_epoch(0, restart=True)
        self.trained_batches = sampler.start
        self.next_epoch = sampler.epoch + (sampler.start == len(sampler))  # the saved epoch may have ended
        count = args.num_train_epochs
        epochs = "" if args.max_steps > 0 else f" in {count:g} epoch{'s' * (count != 1)}"
        steps = words.count(state.max_steps, "step")
        _tell(args, state, lambda: f"Lengthwise plans {steps}{epochs}.\n{sampler.summary()}")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # A run that was resumed after its last step takes no further step.
        is_over = args.max_steps <= 0 and self.next_epoch >= args.num_train_epochs
        if is_over or state.global_step >= state.max_steps:
            control.should_epoch_stop = True
            return
        # Another callback may have left the last epoch early. Then its rest is skipped, as in a plain Trainer.
        self.sampler.set_epoch(self.next_epoch)
        self.trained_batches, self.next_epoch = self.sampler.start, self.next_epoch + 1
        self.speed.begin_epoch(self.sampler)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trained_batches += args.gradient_accumulation_steps  # as many as the sampler's micro-batches

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.speed.note()
        share = self.trained_batches / len(self.sampler)
        state.epoch = self.sampler.epoch + share
        control.should_epoch_stop |= share == 1  # never set to False: another callback may have asked for the end

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.speed.skip()

    on_save = on_evaluate

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        _tell(args, state, lambda: self.speed.describe_first(self.sampler.epoch, args.device))

    def state(self) -> dict[str, Any]:
        """Returns the state that the Trainer writes to its checkpoint."""
        position = {} if self.sampler is None else {"position": self.sampler.state_after(self.trained_batches)}
        return {"args": {}, "attributes": position}


def _resume(sampler: BatchSampler, args: Any, state: Any, schedule: Any) -> None:
    """Resumes where the checkpoint was saved."""
    saved = state.stateful_callbacks.get(PlannedEpochs.__name__, {}).get("attributes", {})
    if "position" not in saved:
        remedy = "Resume from a checkpoint of PlannedTrainer, or begin a new run with this one's model."
        raise checks.state_error(f"The checkpoint of step {state.global_step} has no position in the epoch", remedy)
    sampler.resume(saved["position"])
    if args.max_steps <= 0:  # steps differ in size if the number of ranks has changed
        # The steps of these epochs minus those that are left: the steps so far, as the current ranks count them.
        steps = (sampler.epoch + 1) * sampler.steps - (len(sampler) - sampler.start) // sampler.micro_batches
        state.max_steps = state.global_step + total_steps_of(sampler, args.num_train_epochs) - steps
        saved_world = (saved["position"]["world_size"], saved["position"]["micro_batches"])
        # The learning rate of a LambdaLR is a function of the count. Other schedules have a state that only steps
        # change. Example: after half an epoch on 4 ranks, the checkpoint has step 4 of 8. On 2 ranks an epoch has 16
        # steps, so the schedule goes to step 8.
        if saved_world != (sampler.world_size, sampler.micro_batches) and isinstance(schedule, LambdaLR):
            schedule.last_epoch = steps
    if state.global_step >= state.max_steps:
        rule, remedy = f"below max_steps, {state.max_steps}", "Raise num_train_epochs or max_steps to train on."
        checks.warn(checks.sentence("global_step", rule, state.global_step, remedy))


def _tell(args: Any, state: Any, write: Callable[[], str]) -> None:
    """Prints a text from `write` with the Trainer's logs, on rank 0, unless log_level allows only errors."""
    if state.is_world_process_zero and args.get_process_log_level() <= logging.WARNING and (text := write()):
        tqdm.write(text)  # above the Trainer's progress bar


def total_steps_of(sampler: BatchSampler, epochs: float) -> int:
    """Returns the optimiser steps of `epochs`, which may end with a part of an epoch."""
    return math.ceil(epochs * sampler.steps)
