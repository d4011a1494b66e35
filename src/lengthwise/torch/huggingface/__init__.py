"""The Trainer of Hugging Face transformers on planned batches. Nothing else imports transformers: import it by name."""

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

# What is kept of the Trainer's own loader; the batches are the sampler's.
_KEPT = (
    *("collate_fn", "num_workers", "pin_memory", "worker_init_fn", "multiprocessing_context"),
    *("prefetch_factor", "persistent_workers"),
)
# Arguments of the Trainer that would decide what a batch is: other values than these would be ignored.
_DECIDED = {"auto_find_batch_size": False, "dataloader_drop_last": False, "train_sampling_strategy": "random"}


class PlannedTrainer(transformers.Trainer):
    """A Trainer that trains on the batches of a sampler, each once, and steps exactly where the plan does.

    A plain Trainer does three things that this one does not:

    - It hands the loader to Accelerate, which shares the batches out to the ranks once more.
    - It takes every epoch to be as long as the first, and leaves longer ones before their end.
    - It resumes by drawing all batches again that it has had.

    The loss of each batch is scaled so that the gradient of a step is that of its weighted mean loss, on any number of
    ranks. Some models divide their loss by the count that the Trainer gives them (`num_items_in_batch`); many take the
    count and divide by their own. So each model is told the count of its own batch, and both kinds give the mean over
    it. What goes wrong in use: a loss that is not what `weights`, `reduction` and `next_token` say. Try it once, by
    `check_loss`.

    Each log of a loss has `padding`, and `frames_per_second`: the frames of data of all ranks, since the last log.
    Evaluations and checkpoints do not count.

    For a Trainer of another kind, put this one before it: `class Planned(PlannedTrainer, Seq2SeqTrainer): ...`.

    Args:
        *args: As Trainer takes them.
        batch_sampler: With as many `micro_batches` as `gradient_accumulation_steps`. Each `train` begins at epoch 0, or
            where its checkpoint was saved. `per_device_train_batch_size` is without effect.
        weights: [n], what each sequence counts for in the mean loss of a batch, as in `lw.loss_scales`: 1 each if the
            model takes the mean over sequences. By default the labels that are not -100 are counted, as the Trainer
            does, and the sequences of batches without `labels`.
        reduction: Which the model's loss of a batch is: a "mean", or a "sum", which no count divides.
        next_token: Whether the model compares its outputs with the next labels, so that the first of a row does not
            count. By default by the name of its class, which is wrong for `BartForCausalLM` and its relatives.
        callbacks: As Trainer takes them.
        **kwargs: As Trainer takes them.

    Raises:
        TypeError: `batch_sampler` is no `BatchSampler`, or `train_dataset` has no length; and with `train`, the loader
            does not draw from `batch_sampler`.
        ValueError: A setting of the Trainer that contradicts the sampler, with the value it needs; and with `train`, a
            data set of another size, a checkpoint that another Trainer saved, or packed rows of a model whose attention
            looks from one sequence to another.
        PlanMismatchError: The checkpoint is of other lengths, another batching or seed.
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
        self._labelled: bool | None = None  # whether batches have labels: known from the first step
        self._has_unchecked_rows = isinstance(batch_sampler.batching.cut, Rows)
        self._pass_scales = PassScales(batch_sampler)
        self._check_settings()
        self.args.ignore_data_skip = True  # the sampler goes on at its position: there is nothing to skip

    def get_train_dataloader(self) -> DataLoader:
        """The Trainer's own loader with the sampler's batches, and not prepared by Accelerate."""
        _check_dataset(self.train_dataset)
        loader = super().get_train_dataloader()
        dataset: Any = loader.dataset
        kept = {name: getattr(loader, name) for name in _KEPT}
        return _Loader(dataset, self.batch_sampler, quiet=True, **kept)

    def set_initial_training_values(
        self, args: transformers.TrainingArguments, dataloader: data.DataLoader[Any]
    ) -> Any:
        """The Trainer's own values, with the exact number of steps. Each epoch ends where its plan does."""
        values = list(super().set_initial_training_values(args, dataloader))
        by_steps = args.max_steps > 0
        steps = args.max_steps if by_steps else total_steps_of(self.batch_sampler, args.num_train_epochs)
        # First the epochs, last all steps.
        values[0] = steps if by_steps else math.ceil(args.num_train_epochs)
        values[-1] = steps
        # Between them the steps of each epoch, which the callback ends. The Trainer would divide the steps of a
        # checkpoint by them, to skip epochs: 20 steps of one rank are no two epochs of two ranks with 10.
        values[1] = _AsPlanned(sys.maxsize)
        if len(self.batch_sampler):
            # Samples of a step, and of the run, for what the Trainer logs: it would count batches of its own size.
            times = self.batch_sampler.times
            taken = len(self.batch_sampler.lengths) if times is None else float(times.sum())
            values[4] = round(taken * args.gradient_accumulation_steps / len(self.batch_sampler))
            if by_steps:
                values[3] = values[4] * steps
        return tuple(values)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """The Trainer's own; beside a loss also the padding, and the frames of data a second, since the last log."""
        if "loss" in logs:
            logs.update(self._epochs.speed.take_log().as_log())
        super().log(logs, *args, **kwargs)

    def get_batch_samples(
        self,
        epoch_iterator: Iterator[Any],
        num_batches: int,
        device: torch.device,  # noqa: ARG002
    ) -> tuple[list[Any], Any]:
        """The batches of one step. Keeps the count and the scale of each until `training_step` trains on it."""
        if self.control.should_epoch_stop:  # at the beginning of an epoch: all steps are taken
            return [], None
        # Not by the Trainer's own, which would add up the labels of all ranks here, as `_scales_by_labels` does.
        batches = list(islice(epoch_iterator, num_batches))
        if not batches:  # whatever the reason, the Trainer would ask for the next step, for ever
            self.control.should_epoch_stop = True
            return batches, None
        for batch in batches:
            if hasattr(batch, "_fields"):  # the Trainer copies tuples, which it cannot do with a named one
                remedy = "Return a dict of its tensors by the model's names: of packed rows, batch.for_transformers()."
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
        """The Trainer's own step, on the next batch of the optimiser step."""
        # The Trainer gives no number of the batch: it takes those of `get_batch_samples` in turn.
        self._batch = next(self._coming)
        self._computed = False
        loss = super().training_step(*args, **kwargs)
        if not self._computed:
            remedy = "Let it call super().compute_loss, or put PlannedTrainer before the Trainer that has it."
            name = type(self).compute_loss.__qualname__
            raise checks.value_error("compute_loss", "PlannedTrainer's, or call it", name, remedy)
        return loss

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The Trainer's own loss of this batch alone, times the share of the batch in its step."""
        if model.training:
            self._computed = True
            count, scale = self._batch
        else:
            count = count_labels(inputs, shifted=self._loss_shifts_labels)
            scale = self._evaluation_scale(count, num_items_in_batch)
        computed = self._loss_of_batch(model, inputs, return_outputs, count)
        return (computed[0] * scale, computed[1]) if return_outputs else computed * scale

    def _loss_of_batch(self, model: Any, inputs: dict[str, Any], return_outputs: bool, count: int | None) -> Any:
        """The Trainer's own loss, given the count of this batch's labels, so that every model gives the mean over them.

        For a sum the count is 1, which divides nothing.
        """
        # Without a count a model gives its own mean. Told the count of this batch, one that divides gives the same.
        told = None
        # With `weights`, the model's own mean is taken as it is.
        takes_count = self.model_accepts_loss_kwargs and self.weights is None
        if count is not None and (self.compute_loss_func is not None or takes_count):
            # Filled on the device: to copy a number there would wait for all that the device has to do.
            told = torch.full((), 1 if self.reduction == "sum" else max(count, 1), device=self.args.device)
        averages = self.args.average_tokens_across_devices
        self.args.average_tokens_across_devices = False  # by which the Trainer would multiply by the number of ranks
        try:
            return super().compute_loss(model, inputs, return_outputs, told)
        finally:
            self.args.average_tokens_across_devices = averages

    @property
    def _epochs(self) -> PlannedEpochs:
        """The callback of this class; a Trainer that restores its callbacks makes another."""
        return next(callback for callback in self.callback_handler.callbacks if isinstance(callback, PlannedEpochs))

    @property
    def _ranks(self) -> int:
        """The number of ranks over which gradients and evaluation losses are averaged."""
        return self.accelerator.num_processes // self.get_tp_size()

    @property
    def _averages_micro_batches(self) -> bool:
        """Whether the Trainer divides the loss of each batch by the micro-batches of a step."""
        scaled = getattr(self, "loss_is_scaled_for_ga", None)
        return not (self.compute_loss_func is not None if scaled is None else scaled)

    def _scales(self) -> NDArray[np.float64]:
        """The scale of each batch of this pass, by the weights of its sequences."""
        averaged = self._averages_micro_batches
        return self._pass_scales.now(self.weights, reduction=self.reduction, micro_batches_averaged=averaged)

    def _scales_by_labels(self, counts: list[int | None], planned_scales: NDArray[np.float64]) -> list[Any]:
        """The scale of each batch of the step: its labels over those of the step, which the ranks add up.

        Args:
            counts: Labels of each batch of this rank.
            planned_scales: By sequences: 0 for a batch that is taken a second time. Returned if no batch has labels.
        """
        labelled = None not in counts
        remedy = "Let the data collator give them for every batch, or give weights."
        if self._labelled is None:  # the first step: only here the ranks wait for each other
            ranks, self._labelled = self._gather(labelled).tolist(), labelled
            if 0 < sum(ranks) < len(ranks):
                rule = f"a tensor on all {len(ranks)} ranks"
                raise checks.value_error("labels", rule, f"one on {sum(ranks)}", remedy)
        if labelled != self._labelled:
            raise checks.value_error("labels", "a tensor in every batch, or in none", f"in some: {counts}", remedy)
        if not labelled:
            return planned_scales.tolist()
        # A batch that is taken again, to keep the ranks in step, counts no labels.
        kept = [count or 0 if scale > 0 else 0 for count, scale in zip(counts, planned_scales, strict=True)]
        whole: Any = max(sum(kept), 1)
        if self.accelerator.num_processes > 1:  # a tensor, which nobody reads: that would wait for the device
            whole = self._gather(sum(kept)).sum().clamp(min=1).double()
        # Ranks that share a sequence counted its labels each: divided by how many they are.
        factor = self._ranks * self.get_tp_size() * self.get_cp_size() * self.get_sp_size()
        factor *= len(counts) if self._averages_micro_batches else 1
        shares = (planned_scales > 0).tolist() if self.reduction == "sum" else kept
        return [share * factor / whole for share in shares]

    def _gather(self, number: int) -> Any:
        """Returns the number of each rank, on the device."""
        return self.accelerator.gather(torch.full((1,), int(number), device=self.args.device))

    def check_rows(self, batch: Any) -> None:
        """Refuses a model whose attention looks from one sequence of a packed row to another.

        It is called with the first batch of a plan of `lw.Rows`, on all ranks. Models with encoder and decoder, and
        those under FSDP or DeepSpeed, are not tried. Override it in a Trainer that gives the model its mask later.
        """
        whole: Any = self.model
        config = getattr(whole, "config", None)
        if getattr(config, "is_encoder_decoder", True) or self.is_fsdp_enabled or self.is_deepspeed_enabled:
            return
        with self.compute_loss_context_manager():
            leaks = attention_leaks(whole, self._prepare_inputs(dict(batch)))
        if self._gather(bool(leaks)).any():
            remedy = (
                "Give batch.for_transformers(causal=False) for an encoder, causal=True for others. Pad if the model "
                "has sliding windows, or layers with a state, as Mamba has. For RoBERTa give position_start=2, too. "
                "Override check_rows in a Trainer that gives the mask itself."
            )
            rule = f"one by which {type(whole).__name__} keeps the sequences of a packed row apart"
            mask = batch.get("attention_mask")
            raise checks.value_error("attention_mask", rule, None if mask is None else list(mask.shape), remedy)

    def check_loss(self, batch: Any) -> None:
        """Checks that the loss is the mean over its labels, as `next_token` says. Call it once, before you train.

        The loss is computed five times, without gradients, on labels of which some are set to -100.

        Args:
            batch: What the data collator gives, with several rows and -100 among their labels.

        Raises:
            ValueError: The loss is a mean over something else; the batch cannot tell; or `weights` or a sum was said,
                which nothing can check.
        """
        if self.weights is not None or self.reduction == "sum":
            remedy = "Compare the loss of a batch with those of its sequences."
            rule = "left out, as is reduction='sum': only a mean over labels can be checked"
            raise checks.value_error("weights", rule, self.reduction, remedy)
        model, shifted = cast("Any", self.model), self._loss_shifts_labels

        def compute(batch: dict[str, Any]) -> float:
            inputs = self._prepare_inputs(batch)
            with self.compute_loss_context_manager():
                return float(self._loss_of_batch(model, inputs, False, count_labels(inputs, shifted=shifted)))

        with evaluating(model):
            check_mean_loss(compute, batch, shifted=shifted, name=type(model).__name__)

    def _evaluation_scale(self, count: int | None, counted: torch.Tensor | int | None) -> float:
        """The scale of a batch of `count` labels, of `counted` on all ranks; the Trainer averages over the ranks."""
        if count is None or counted is None:
            return 1.0
        ranks = self._ranks if self.args.average_tokens_across_devices else 1
        return (1 if self.reduction == "sum" else count) * ranks / max(float(counted), 1.0)

    def _check_settings(self) -> None:
        ranks = self.args.world_size // (self.get_tp_size() * self.get_cp_size() * self.get_sp_size())
        needed = _DECIDED | {"gradient_accumulation_steps": self.batch_sampler.micro_batches}
        remedy = "Set it so in TrainingArguments: the batch sampler decides what a batch and a step are."
        check_settings(self.batch_sampler, self.args, needed, ranks=ranks, remedy=remedy)
        if self.args.n_gpu > 1:  # nn.DataParallel splits every batch, and takes the mean of the pieces' means
            remedy = "Start one process for each GPU with torchrun, or let CUDA_VISIBLE_DEVICES name one."
            raise checks.value_error("n_gpu", "at most 1 in each process", self.args.n_gpu, remedy)
        usual = transformers.TrainingArguments.per_device_train_batch_size
        if self.args.per_device_train_batch_size != usual:
            remedy = "The batching of the sampler decides how many sequences a batch holds."
            given = self.args.per_device_train_batch_size
            rule = "left out beside a batch sampler"
            checks.warn(checks.sentence("per_device_train_batch_size", rule, given, remedy))


class _Loader(DataLoader):
    """A loader whose epochs the callback sets: the Trainer would set its own count, which knows no other ranks."""

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        pass


class _AsPlanned(int):
    """A bound that no epoch reaches, for the Trainer's loop; what the Trainer logs of it is not the number."""

    def __format__(self, spec: str) -> str:
        return "as planned"


def _check_dataset(dataset: Any) -> None:
    """Refuses a data set whose sequences have no numbers. None is fine: a Trainer that only evaluates."""
    if dataset is not None and (isinstance(dataset, data.IterableDataset) or not hasattr(dataset, "__len__")):
        remedy = "Give one with __len__ and __getitem__, such as list(train_dataset): a plan is of sequence numbers."
        raise checks.type_error("train_dataset", "a data set of known length", dataset, remedy)
