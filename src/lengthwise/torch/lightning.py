"""Lightning's Trainer on planned batches. Import it by name: `lengthwise.torch` does not import Lightning."""

from __future__ import annotations

import warnings
from typing import Any

try:
    import lightning
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities import CombinedLoader, rank_zero_info

    if tuple(map(int, lightning.__version__.split(".")[:2])) < (2, 5):
        raise ImportError(f"Lightning {lightning.__version__} miscounts the batches of a resumed epoch")
except ImportError as _error:
    raise ImportError('Lengthwise needs Lightning 2.5 or newer: pip install "lightning>=2.5"') from _error

from numpy.typing import ArrayLike

from lengthwise import checks
from lengthwise.torch.sampler import BatchSampler, check_sampler
from lengthwise.torch.trainers import PassScales, Speed, check_settings

KEY = "lengthwise"  # the key of the sampler's position in a checkpoint


class PlannedEpochs(Callback):
    """Trains on the batches of a sampler, each once in every epoch, and keeps its position in Lightning's checkpoints.

    With these batches, a plain Trainer makes three mistakes:

    - It reads the length of an epoch before it sets the epoch. So it ends the epoch after a resumed one too early.
    - It keeps no position: a run that is resumed within an epoch begins the epoch again.
    - If a checkpoint was saved with the last batch of an epoch, it skips batches of the next one.

    The Trainer needs `use_distributed_sampler=False`, `reload_dataloaders_every_n_epochs=1` and as many
    `accumulate_grad_batches` as the sampler has `micro_batches`. Another value is an error that names the setting. A
    checkpoint that was saved within a step resumes at the beginning of the step. Multiply the loss of each batch by
    `scale(batch_idx)`.

    Loggers get `padding` and `frames_per_second` of the epoch so far. Padding is that of the batches of this rank, by
    their masks; a batch without a mask counts as planned. The frames are those of data, on all ranks; the time of
    validations does not count.

    Args:
        sampler: The sampler of the training loader, made without rank and world_size. It begins with epoch 0, or where
            the checkpoint was saved.
        weights: [n], the weight of each sequence in the loss, as in `lw.loss_scales`; by default 1.

    Raises:
        TypeError: `sampler` is not a `BatchSampler`.
        ValueError: In `fit`: a setting of the Trainer contradicts the sampler, the loader has another sampler, or the
            checkpoint was saved without this callback.
        PlanMismatchError: The checkpoint has other lengths, another batching or another seed.
    """

    def __init__(self, sampler: BatchSampler, *, weights: ArrayLike | None = None) -> None:
        check_sampler("sampler", sampler)
        self.sampler = sampler
        self.weights = weights
        self._averaged = True
        self._asked = False  # whether `scale` was called
        self._epoch = sampler.epoch  # the epoch whose batches Lightning counts
        self._speed = Speed()
        self._scales = PassScales(sampler)

    def scale(self, batch_idx: int) -> float:
        """Returns the factor for the mean loss of batch `batch_idx`, to call in `training_step`.

        With this factor, the gradient of a step is that of the weighted mean loss of the step, on any number of ranks
        and micro-batches.
        """
        self._asked = True
        scales, start = self._scales.now(self.weights, micro_batches_averaged=self._averaged), self.sampler.start
        remedy = "Give the batch_idx of training_step."
        checks.check_whole("batch_idx", batch_idx, minimum=start, maximum=start + len(scales) - 1, remedy=remedy)
        return float(scales[batch_idx - start])

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        self._averaged = pl_module.automatic_optimization  # which divides the loss by its micro-batches
        self._check_settings(trainer)
        # A new run begins at batch 0, even if an earlier run left the sampler in the middle of an epoch.
        self.sampler.set_epoch(trainer.current_epoch, restart=not trainer.global_step)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        loaders = CombinedLoader(trainer.train_dataloader).flattened
        if all(getattr(loader, "batch_sampler", None) is not self.sampler for loader in loaders):
            remedy = "Give it to the DataLoader too, as its batch_sampler."
            raise checks.value_error("train_dataloader", "a loader with the callback's sampler", loaders, remedy)
        if trainer.is_global_zero:
            self.sampler.notices.is_first("what an epoch pads")  # else the loader would print a part of the summary
            rank_zero_info(f"Lengthwise plans the batches.\n{self.sampler.summary()}")

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self._asked:
            self._asked = True  # warns once
            rule = "multiplied by planned.scale(batch_idx) in training_step"
            remedy = "Without its scale, a short batch counts as much as a long one."
            checks.warn(checks.sentence("loss", rule, "not scaled", remedy))

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._speed.begin_epoch(self.sampler)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._epoch = self.sampler.epoch  # Lightning does not call `on_train_epoch_start` if it resumes in mid-epoch

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Logs the padding and the frames of data a second of the epoch so far."""
        self._speed.note((batch_idx + 1) % self.sampler.micro_batches == 0)
        if trainer.loggers:
            pl_module.log_dict(self._speed.epoch().as_log())

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._speed.skip()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Sets the next epoch before Lightning reads its length; an epoch that is stopped early stays set."""
        if speed := self._speed.describe_first(self.sampler.epoch, trainer.strategy.root_device):
            rank_zero_info(speed)
        progress: Any = trainer.fit_loop.epoch_loop.batch_progress
        if progress.current.processed == trainer.num_training_batches:
            self.sampler.set_epoch(trainer.current_epoch + 1)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Saves the position in the epoch."""
        sampler = self.sampler
        batches = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]["current"]
        # Once the next epoch is set, Lightning's count is still that of the last epoch.
        trained = batches["processed"] if sampler.epoch == self._epoch else sampler.start
        checkpoint[KEY] = sampler.state_after(max(trained, sampler.start))

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        # Validating or predicting from a checkpoint draws nothing from the sampler.
        if trainer.state.fn != "fit":
            return
        if KEY not in checkpoint:
            remedy = "Resume from one that was saved with PlannedEpochs, or begin a new run with its model."
            raise checks.state_error("The checkpoint has no position in the epoch", remedy)
        self.sampler.resume(checkpoint[KEY])
        # Lightning warns because the loader has no state. The sampler has the position.
        warnings.filterwarnings("ignore", message="You're resuming from a checkpoint that ended before the epoch")
        if self.sampler.start % self.sampler.micro_batches:  # Lightning counts from the beginning of the epoch
            batches, micro_batches = self.sampler.start, self.sampler.micro_batches
            state = f"The checkpoint ends within a step: {batches} batches are no whole steps of {micro_batches}"
            remedy = "Resume with as many micro_batches as before, or from the end of an epoch."
            raise checks.state_error(state, remedy)
        self.sampler.set_epoch(_agree(checkpoint["loops"]["fit_loop"], self.sampler))

    def _check_settings(self, trainer: Trainer) -> None:
        needed = {"reload_dataloaders_every_n_epochs": 1, "overfit_batches": 0}
        accumulation = "accumulate_grad_batches" if self._averaged else None
        ranks = (trainer.distributed_sampler_kwargs or {}).get("num_replicas", 1)
        remedy = (
            "Give it to the Trainer: the sampler decides what a step and an epoch are. To overfit, plan few lengths."
        )
        check_settings(self.sampler, trainer, needed, ranks=ranks, remedy=remedy, accumulation=accumulation)


def _agree(loop: dict[str, Any], sampler: BatchSampler) -> int:
    """Sets the counts of Lightning's loop to the position of the sampler.

    Returns:
        The epoch to resume.
    """
    loop["state_dict"].pop("combined_loader", None)  # the state of a loader may be within a step
    batches, epochs = loop["epoch_loop.batch_progress"], loop["epoch_progress"]
    is_over = sampler.start == len(sampler)
    epoch, trained = (sampler.epoch + 1, 0) if is_over else (sampler.epoch, sampler.start)
    # At the start of an epoch, Lightning's count is still that of the last one.
    counted = batches["current"]["processed"] if epochs["current"]["started"] == sampler.epoch + 1 else 0
    in_hook = trained > 0 and batches["current"]["completed"] < batches["current"]["processed"]
    # 7 batches trained, in steps of 3: the position is 6, and 1 batch is repeated.
    total = batches["total"]["processed"] + sampler.start - counted
    for count, processed in (("total", total), ("current", trained)):
        batches[count] = dict.fromkeys(batches[count], processed) | {"completed": processed - in_hook}
        epochs[count] = dict.fromkeys(epochs[count], epoch + (trained > 0)) | {"processed": epoch, "completed": epoch}
    batches["is_last_batch"] = False  # else the epoch would end at once
    return epoch
