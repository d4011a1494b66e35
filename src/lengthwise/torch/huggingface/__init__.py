"""Hugging Face's Trainer on planned batches. Import it by name: `lengthwise.torch` does not import transformers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import torch

try:
    import transformers
except ImportError as _error:
    _sentence = 'lengthwise.torch.huggingface needs transformers 5: pip install "transformers[torch]"'
    raise ImportError(_sentence) from _error

from numpy.typing import ArrayLike, NDArray
from torch.utils import data

from lengthwise import checks
from lengthwise.choices.rows import Rows
from lengthwise.planning.loss import REDUCTIONS
from lengthwise.torch.huggingface.epochs import PlannedEpochs, total_steps_of
from lengthwise.torch.loader import DataLoader
from lengthwise.torch.model_checks import attention_leaks, check_mean_loss, count_labels, evaluating
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.trainers import PassScales, check_sampler, check_settings

# The options taken over from the Trainer's own loader.
_LOADER_OPTIONS = (
    *("collate_fn", "num_workers", "pin_memory", "worker_init_fn", "multiprocessing_context"),
    *("prefetch_factor", "persistent_workers"),
)
# Arguments of the Trainer about batches: other values than these would have no effect.
_DECIDED = {"auto_find_batch_size": False, "dataloader_drop_last": False, "train_sampling_strategy": "random"}


class PlannedTrainer(transformers.Trainer):
    """A Trainer that trains on the batches of a sampler, each once, with the steps of the plan.

    With these batches, a plain Trainer makes three mistakes:

    - It gives the loader to Accelerate, which shares the batches out to the ranks once more.
    - It assumes that all epochs are as long as the first, and leaves longer ones before their end.
    - When it resumes, it reads all earlier batches again.

    The loss of each batch is scaled so that the gradient of a step is that of the weighted mean loss of the step, on
    any number of ranks. Some models divide their loss by the Trainer's count of labels (`num_items_in_batch`), others
    by their own count. So the model gets the count of one batch, and both kinds return the mean over that batch. If the
    loss does not match `weights`, `reduction` and `next_token`, the scales are wrong: call `check_loss` once.

    Each log of a loss has `padding` and `frames_per_second` since the last log. The frames are those of data, on all
    ranks; the time of evaluations and checkpoints does not count.

    To use another kind of Trainer, inherit from this one first: `class Planned(PlannedTrainer, Seq2SeqTrainer): ...`.

    Args:
        *args: Arguments of the Trainer.
        batch_sampler: A sampler whose `micro_batches` are the `gradient_accumulation_steps`. Each `train` begins at
            epoch 0, or where its checkpoint was saved. `per_device_train_batch_size` has no effect.
        weights: [n], the weight of each sequence in the mean loss of a batch, as in `lw.loss_scales`: give ones if the
            model's loss is a mean over sequences. By default batches count by their labels that are not -100, as in the
            Trainer, or by their sequences if they have no `labels`.
        reduction: The kind of the model's loss of a batch: "mean" or "sum".
        next_token: True if the model compares its outputs with the next labels, so that the first label of a row does
            not count. By default the name of its class decides, which is wrong for `BartForCausalLM` and similar
            classes.
        callbacks: Callbacks of the Trainer.
        **kwargs: Arguments of the Trainer.

    Raises:
        TypeError: `batch_sampler` is not a `BatchSampler`, or `train_dataset` has no length. In `train`: the loader
            does not use `batch_sampler`.
        ValueError: A setting of the Trainer contradicts the sampler. In `train`: the data set has another size, another
            Trainer saved the checkpoint, or attention looks from one sequence of a packed row to another.
        PlanMismatchError: The checkpoint has other lengths, another batching or another seed.
    """

    def __init__(
        self,
        *args: Any,
        batch_sampler: BatchSampler,
        weights: ArrayLike | None = None,
        reduction: str = "mean",
        next_token: bool | None = None,
        callbacks: Sequence[transformers.TrainerCallback] | None = None,
        **kwargs: Any,
    ) -> None:
        _check_dataset(kwargs.get("train_dataset", args[3] if len(args) > 3 else None))
        super().__init__(*args, callbacks=[PlannedEpochs(), *(callbacks or ())], **kwargs)
        check_sampler("batch_sampler", batch_sampler)
        self.batch_sampler = batch_sampler
        self.weights = weights
        self.reduction: str = checks.check_choice("reduction", reduction, REDUCTIONS)
        if next_token is None:
            model: Any = getattr(self.model, "get_base_model", lambda: self.model)()  # under adapters of PEFT
            next_token = getattr(self, "_loss_shifts_labels", False) or type(model).__name__.endswith("LMHeadModel")
        # The Trainer counts by this attribute when it evaluates.
        self._loss_shifts_labels: bool = checks.check_flag("next_token", next_token)
        self._labelled: bool | None = None  # whether batches have labels; set by the first step
        self._has_unchecked_rows = isinstance(batch_sampler.batching.cut, Rows)
        self._pass_scales = PassScales(batch_sampler)
        self._check_settings()
        self.args.ignore_data_skip = True  # the sampler has the position

    def get_train_dataloader(self) -> DataLoader:
        """Returns the Trainer's own loader with the sampler's batches, not prepared by Accelerate."""
        _check_dataset(self.train_dataset)
        loader = super().get_train_dataloader()
        dataset: Any = loader.dataset
        options = {name: getattr(loader, name) for name in _LOADER_OPTIONS}
        return _Loader(dataset, self.batch_sampler, quiet=True, **options)

    def set_initial_training_values(
        self, args: transformers.TrainingArguments, dataloader: data.DataLoader[Any]
    ) -> Any:
        """Returns the Trainer's own values, with the exact number of steps. Each epoch ends where its plan does."""
        values = list(super().set_initial_training_values(args, dataloader))
        by_steps = args.max_steps > 0
        steps = args.max_steps if by_steps else total_steps_of(self.batch_sampler, args.num_train_epochs)
        # The first value is the number of epochs, the last one the number of steps.
        values[0] = steps if by_steps else math.ceil(args.num_train_epochs)
        values[-1] = steps
        # The second is the number of steps of an epoch: a limit that is never reached, because the callback ends the
        # epochs. With the true number, the Trainer would skip as many epochs as the steps of a checkpoint make: 20
        # steps are one epoch on one rank, and two epochs on two ranks.
        values[1] = _AsPlanned(sys.maxsize)
        if len(self.batch_sampler):
            # The samples of a step and of the run, for the Trainer's logs: it would count batches of its own size.
            times = self.batch_sampler.times
            samples = len(self.batch_sampler.lengths) if times is None else float(times.sum())
            values[4] = round(samples * args.gradient_accumulation_steps / len(self.batch_sampler))
            if by_steps:
                values[3] = values[4] * steps
        return tuple(values)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs as the Trainer does, and adds the padding and the frames of data a second to logs of the loss."""
        if "loss" in logs:
            logs.update(self._epochs.speed.take_log().as_log())
        super().log(logs, *args, **kwargs)

    def get_batch_samples(
        self,
        epoch_iterator: Iterator[Any],
        num_batches: int,
        device: torch.device,
    ) -> tuple[list[Any], Any]:
        """Returns the batches of one step. Keeps their counts and scales for `training_step`."""
        if self.control.should_epoch_stop:  # already set when the epoch begins: no steps are left
            return [], None
        # The Trainer's method would add up the labels of all ranks, as `_scales_by_labels` does.
        batches = list(islice(epoch_iterator, num_batches))
        if not batches:  # else the Trainer would ask for the next step for ever
            self.control.should_epoch_stop = True
            return batches, None
        for batch in batches:
            if hasattr(batch, "_fields"):  # the Trainer cannot copy a named tuple
                remedy = "Return a dict of its tensors by the model's names; for packed rows, batch.for_transformers()."
                raise checks.type_error("data_collator", "one whose batches are dicts", type(batch).__name__, remedy)
        first = self._epochs.trained - self.batch_sampler.start
        planned_scales = self._scales()[first : first + len(batches)]
        counts = [count_labels(batch, shifted=self._loss_shifts_labels) for batch in batches]
        if self._has_unchecked_rows:
            self.check_rows(batches[0])
            self._has_unchecked_rows = False
        scales = self._scales_by_labels(counts, planned_scales) if self.weights is None else planned_scales.tolist()
        self._coming = iter(zip(counts, scales, strict=True))
        return batches, None  # the count of the step is in the scales

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Trains on the next batch of the optimiser step, as the Trainer does."""
        # The Trainer does not number the batches, but takes those of `get_batch_samples` in order.
        self._batch = next(self._coming)
        self._computed = False
        loss = super().training_step(*args, **kwargs)
        if not self._computed:
            remedy = "Let it call super().compute_loss, or put PlannedTrainer before the Trainer that has it."
            name = type(self).compute_loss.__qualname__
            raise checks.value_error("compute_loss", "PlannedTrainer's, or a method that calls it", name, remedy)
        return loss

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """Returns the Trainer's own loss of this batch alone, times the share of the batch in its step."""
        if model.training:
            self._computed = True
            count, scale = self._batch
        else:
            count = count_labels(inputs, shifted=self._loss_shifts_labels)
            scale = self._evaluation_scale(count, num_items_in_batch)
        computed = self._loss_of_batch(model, inputs, return_outputs, count)
        return (computed[0] * scale, computed[1]) if return_outputs else computed * scale

    def _loss_of_batch(self, model: Any, inputs: dict[str, Any], return_outputs: bool, count: int | None) -> Any:
        """Returns the Trainer's own loss with the count of this batch's labels, so that each model returns their mean.

        For a sum the count is 1, which divides nothing.
        """
        # Without a count, a model returns its own mean. With the count of this batch, a model that divides by the count
        # returns the same mean.
        divisor = None
        # With `weights`, no count is given: the model returns its own mean.
        takes_count = self.model_accepts_loss_kwargs and self.weights is None
        if count is not None and (self.compute_loss_func is not None or takes_count):
            # Fill it on the device: copying a number to the device would wait for it.
            divisor = torch.full((), 1 if self.reduction == "sum" else max(count, 1), device=self.args.device)
        averages = self.args.average_tokens_across_devices
        self.args.average_tokens_across_devices = False  # else the Trainer would multiply by the number of ranks
        try:
            return super().compute_loss(model, inputs, return_outputs, divisor)
        finally:
            self.args.average_tokens_across_devices = averages

    @property
    def _epochs(self) -> PlannedEpochs:
        """The callback, looked up each time: a Trainer that restores its callbacks makes another one."""
        return next(callback for callback in self.callback_handler.callbacks if isinstance(callback, PlannedEpochs))

    @property
    def _ranks(self) -> int:
        """The number of ranks over which gradients and evaluation losses are averaged."""
        return self.accelerator.num_processes // self.get_tp_size()

    @property
    def _averages_micro_batches(self) -> bool:
        """Tells if the Trainer divides the loss of each batch by the micro-batches of a step."""
        scaled = getattr(self, "loss_is_scaled_for_ga", None)
        return not (self.compute_loss_func is not None if scaled is None else scaled)

    def _scales(self) -> NDArray[np.float64]:
        """Returns the scale of each batch of this pass, by the weights of its sequences."""
        averaged = self._averages_micro_batches
        return self._pass_scales.now(self.weights, reduction=self.reduction, micro_batches_averaged=averaged)

    def _scales_by_labels(self, counts: list[int | None], planned_scales: NDArray[np.float64]) -> list[Any]:
        """Returns the scale of each batch of the step: its labels divided by those of the step on all ranks.

        Args:
            counts: The labels of each batch of this rank.
            planned_scales: The scales by sequences, with 0 for a repeated batch. They are returned if no batch has
                labels.
        """
        labelled = None not in counts
        remedy = "Let the data collator give them for every batch, or give weights."
        if self._labelled is None:  # the first step, the only one where ranks wait for each other
            ranks, self._labelled = self._gather(labelled).tolist(), labelled
            if 0 < sum(ranks) < len(ranks):
                rule = f"a tensor on all {len(ranks)} ranks"
                raise checks.value_error("labels", rule, f"one on {sum(ranks)}", remedy)
        if labelled != self._labelled:
            raise checks.value_error("labels", "a tensor in every batch, or in none", f"in some: {counts}", remedy)
        if not labelled:
            return planned_scales.tolist()
        # A repeated batch, which only keeps the ranks in step, counts no labels.
        label_counts = [count or 0 if scale > 0 else 0 for count, scale in zip(counts, planned_scales, strict=True)]
        total: Any = max(sum(label_counts), 1)
        if self.accelerator.num_processes > 1:  # stays a tensor: reading it would wait for the device
            total = self._gather(sum(label_counts)).sum().clamp(min=1).double()
        # Ranks that share a sequence have each counted its labels: this factor corrects for them.
        factor = self._ranks * self.get_tp_size() * self.get_cp_size() * self.get_sp_size()
        factor *= len(counts) if self._averages_micro_batches else 1
        shares = (planned_scales > 0).tolist() if self.reduction == "sum" else label_counts
        return [share * factor / total for share in shares]

    def _gather(self, number: int) -> Any:
        """Returns the number of each rank, on the device."""
        return self.accelerator.gather(torch.full((1,), int(number), device=self.args.device))

    def check_rows(self, batch: Any) -> None:
        """Refuses a model whose attention looks from one sequence of a packed row to another.

        It is called with the first batch of a plan of `lw.Rows`, on all ranks. It does not check models with encoder
        and decoder, nor those under FSDP or DeepSpeed. Override it in a Trainer that adds the mask later.
        """
        model: Any = self.model
        config = getattr(model, "config", None)
        if getattr(config, "is_encoder_decoder", True) or self.is_fsdp_enabled or self.is_deepspeed_enabled:
            return
        with self.compute_loss_context_manager():
            leaks = attention_leaks(model, self._prepare_inputs(dict(batch)))
        if self._gather(bool(leaks)).any():
            remedy = (
                "Give batch.for_transformers(causal=False) for an encoder, causal=True for others. Pad if the model "
                "has sliding windows, or layers with a state, as Mamba has. For RoBERTa give position_start=2, too. "
                "Override check_rows in a Trainer that gives the mask itself."
            )
            rule = f"one that keeps the sequences of a packed row apart in {type(model).__name__}"
            mask = batch.get("attention_mask")
            raise checks.value_error("attention_mask", rule, None if mask is None else list(mask.shape), remedy)

    def check_loss(self, batch: Any) -> None:
        """Checks that the loss is the mean over its labels (the next ones if `next_token`). Call it before training.

        The loss is computed five times, without gradients, with some labels set to -100.

        Args:
            batch: A batch from the data collator, with several rows and -100 among their labels.

        Raises:
            ValueError: The loss is another mean, the batch cannot show it, or the Trainer has `weights` or
                `reduction="sum"`, which cannot be checked.
        """
        if self.weights is not None or self.reduction == "sum":
            remedy = "Compare the loss of a batch with those of its sequences."
            name = "reduction" if self.weights is None else "weights"
            rule = "left out, because only a mean over labels can be checked"
            raise checks.value_error(name, rule, getattr(self, name), remedy)
        model, shifted = cast("Any", self.model), self._loss_shifts_labels

        def compute(batch: dict[str, Any]) -> float:
            inputs = self._prepare_inputs(batch)
            with self.compute_loss_context_manager():
                return float(self._loss_of_batch(model, inputs, False, count_labels(inputs, shifted=shifted)))

        with evaluating(model):
            check_mean_loss(compute, batch, shifted=shifted, name=type(model).__name__)

    def _evaluation_scale(self, count: int | None, counted: torch.Tensor | int | None) -> float:
        """Returns the scale of a batch with `count` of the `counted` labels; the Trainer averages over the ranks."""
        if count is None or counted is None:
            return 1.0
        ranks = self._ranks if self.args.average_tokens_across_devices else 1
        return (1 if self.reduction == "sum" else count) * ranks / max(float(counted), 1.0)

    def _check_settings(self) -> None:
        ranks = self.args.world_size // (self.get_tp_size() * self.get_cp_size() * self.get_sp_size())
        needed = _DECIDED | {"gradient_accumulation_steps": self.batch_sampler.micro_batches}
        remedy = "Set this value in TrainingArguments: the batch sampler decides what a batch and a step are."
        check_settings(self.batch_sampler, self.args, needed, ranks=ranks, remedy=remedy)
        if self.args.n_gpu > 1:  # nn.DataParallel splits every batch, and averages the means of the parts
            remedy = "Start one process for each GPU with torchrun, or let CUDA_VISIBLE_DEVICES name one."
            raise checks.value_error("n_gpu", "at most 1 in each process", self.args.n_gpu, remedy)


class _Loader(DataLoader):
    """A loader whose epochs the callback sets, because the Trainer's count ignores changes of the number of ranks."""

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        pass


class _AsPlanned(int):
    """A limit that no epoch reaches, for the Trainer's loop. The Trainer logs it as "as planned"."""

    def __format__(self, spec: str) -> str:
        return "as planned"


def _check_dataset(dataset: Any) -> None:
    """Refuses a data set without length. None is fine, for a Trainer that only evaluates."""
    if dataset is not None and (isinstance(dataset, data.IterableDataset) or not hasattr(dataset, "__len__")):
        remedy = "Give one with __len__ and __getitem__, such as list(train_dataset): a plan lists sequence numbers."
        raise checks.type_error("train_dataset", "a data set of known length", dataset, remedy)
