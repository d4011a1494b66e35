"""Hugging Face's Trainer on planned batches. Import it by name: `lengthwise.torch` does not import transformers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

import torch

try:
    import transformers
except ImportError as _error:
    _sentence = 'lengthwise.torch.huggingface needs transformers 5.3 or newer: pip install "transformers[torch]"'
    raise ImportError(_sentence) from _error

from numpy.typing import ArrayLike
from torch.utils import data

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.rows import Rows
from lengthwise.planning.loss import REDUCTIONS
from lengthwise.torch.huggingface.epochs import PlannedEpochs, total_steps_of
from lengthwise.torch.huggingface.evaluation import LOADER_OPTIONS, EvaluatingTrainer
from lengthwise.torch.huggingface.prepared import drop_lengths, make_sampler
from lengthwise.torch.loader import DataLoader
from lengthwise.torch.model_checks import attention_leaks, check_mean_loss, count_labels, evaluating
from lengthwise.torch.sampler import BatchSampler, check_sampler
from lengthwise.torch.trainers import PassScales, Step, check_settings, count_once, scale_by_labels

# Arguments of the Trainer about batches: other values than these would have no effect.
_REQUIRED = {"auto_find_batch_size": False, "train_sampling_strategy": "random", "packing": False}
# A Trainer that has one of these and a `training_step` trains on batches of its own, such as texts that it generates.
_OWN_BATCHES = {"_generate", "generate_on_policy_outputs", "get_train_dataloader"}


class PlannedTrainer(EvaluatingTrainer):
    """A Trainer that trains on the batches of a sampler, each once, with the steps of the plan.

    With these batches, a plain Trainer makes three mistakes:

    - It gives the loader to Accelerate, which shares the batches out to the ranks once more.
    - It assumes that all epochs are as long as the first, and leaves longer ones before their end.
    - When it resumes, it reads all earlier batches again.

    The loss of each batch is scaled so that the gradient of a step is that of the weighted mean loss of the step, on
    any number of ranks. Some models divide their loss by the Trainer's count of labels (`num_items_in_batch`), others
    by their own count. So the model gets the count of one batch, and both kinds return the mean over that batch. If the
    loss does not match `weights`, `reduction` and `next_token`, the scales are wrong: call `check_loss` once.

    Each log of a loss has `padding` and `frames_per_second` since the last log, and the final log has those of the run.
    Padding is that of the batches of this rank, by their masks; a batch without a mask counts as planned. The frames
    are those of data, on all ranks; the time of evaluations and checkpoints does not count.

    Each `train` begins at epoch 0, or where its checkpoint was saved. `per_device_train_batch_size` and
    `dataloader_drop_last` have no effect.

    To use another kind of Trainer, inherit from this one first: `class Planned(PlannedTrainer, SFTTrainer): ...`.

    Args:
        *args: Arguments of the Trainer.
        batching: The choices. The sampler has `gradient_accumulation_steps`, and `data_seed` or `seed`. The lengths are
            read from `train_dataset` once the Trainer has prepared it: its column `length` (`length_column_name`),
            which is then left out, or the sizes of its `input_ids`. If it is a dict, no batch mixes two data sets.
            Evaluations of the loss alone have planned batches, too; see the page on this Trainer.
        batch_sampler: In place of `batching`: a sampler whose `micro_batches` are the `gradient_accumulation_steps`.
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
        ValueError: A setting of the Trainer contradicts the sampler, the Trainer makes its own batches, or the prepared
            data set has no lengths. In `train`: the data set has another size, another Trainer saved the checkpoint, or
            attention looks from one sequence of a packed row to another.
        PlanMismatchError: The checkpoint has other lengths, another batching or another seed.
    """

    def __init__(
        self,
        *args: Any,
        batching: Batching | None = None,
        batch_sampler: BatchSampler | None = None,
        weights: ArrayLike | None = None,
        reduction: str = "mean",
        next_token: bool | None = None,
        callbacks: Sequence[transformers.TrainerCallback] | None = None,
        **kwargs: Any,
    ) -> None:
        checks.check_one("PlannedTrainer", {"batching": batching, "batch_sampler": batch_sampler})
        _check_batches_are_given(type(self))
        _check_dataset(kwargs.get("train_dataset", args[3] if len(args) > 3 else None))
        super().__init__(*args, callbacks=[PlannedEpochs(), *(callbacks or ())], **kwargs)
        if batching is not None:
            batch_sampler = make_sampler(self.train_dataset, batching, self.args)
            for name in ("train_dataset", "eval_dataset"):
                setattr(self, name, drop_lengths(getattr(self, name), self.args.length_column_name))
        self.batch_sampler: BatchSampler = check_sampler("batch_sampler", batch_sampler)
        self.weights = weights
        self.reduction: str = checks.check_choice("reduction", reduction, REDUCTIONS)
        if next_token is None:
            model: Any = getattr(self.model, "get_base_model", lambda: self.model)()  # under adapters of PEFT
            next_token = getattr(self, "_loss_shifts_labels", False) or type(model).__name__.endswith("LMHeadModel")
        # The Trainer counts by this attribute when it evaluates.
        self._loss_shifts_labels: bool = checks.check_flag("next_token", next_token)
        self._labelled: bool | None = None  # whether batches have labels; set by the first step
        self._has_unchecked_rows = isinstance(self.batch_sampler.batching.cut, Rows)
        self._pass_scales = PassScales(self.batch_sampler)
        self._evaluated_by = batching if self.batch_sampler.lengths.ndim == 1 else None
        self._step = Step([], [], [])
        self._check_settings()
        self.args.ignore_data_skip = True  # the sampler has the position
        self.args.dataloader_drop_last = False  # sentence-transformers sets it on several ranks

    def get_train_dataloader(self) -> DataLoader:
        """Returns the Trainer's own loader with the sampler's batches, not prepared by Accelerate."""
        _check_dataset(self.train_dataset)
        loader = super().get_train_dataloader()
        dataset: Any = loader.dataset
        options = {name: getattr(loader, name) for name in LOADER_OPTIONS}
        return _Loader(dataset, self.batch_sampler, quiet=True, **options)

    def set_initial_training_values(
        self, args: transformers.TrainingArguments, dataloader: data.DataLoader[Any], *extra: Any
    ) -> Any:
        """Returns the Trainer's own values, with the exact number of steps. Each epoch ends where its plan does."""
        values: Any = super().set_initial_training_values(args, dataloader, *extra)
        if extra or len(values) != len(_InitialValues._fields):  # transformers before 5.3 gives a third argument
            state = f"PlannedTrainer cannot set the steps of a run under transformers {transformers.__version__}"
            raise checks.state_error(state, "Install transformers 5.23, or a newer lengthwise.")
        sampler = self.batch_sampler
        by_steps = args.max_steps > 0
        steps = args.max_steps if by_steps else total_steps_of(sampler, args.num_train_epochs)
        # The Trainer's logs would count batches of its own size.
        samples = len(sampler.lengths) if sampler.times is None else float(sampler.times.sum())
        samples_in_step = samples * sampler.micro_batches / max(len(sampler), 1)
        return _InitialValues(*values)._replace(
            num_train_epochs=steps if by_steps else math.ceil(args.num_train_epochs),
            # This limit is never reached, because the callback ends the epochs. With the true number, the Trainer would
            # skip as many epochs as the steps of a checkpoint make: 20 steps are one epoch on one rank, and two epochs
            # on two ranks.
            num_update_steps_per_epoch=_AsPlanned(sys.maxsize),
            num_train_samples=round(samples_in_step * steps),
            total_train_batch_size=round(samples_in_step),
            max_steps=steps,
        )

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs as the Trainer does, and adds the padding and the frames of data a second to logs of the loss."""
        if "loss" in logs:
            logs.update(self._epochs.speed.take_log().as_log())
        elif "train_loss" in logs:  # the last log, of the whole run
            logs.update(self._epochs.speed.total().as_log())
        super().log(logs, *args, **kwargs)

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Any]:
        """Returns the batches of one step, and keeps their `Step` for `training_step`."""
        # The epoch is stopped already if no steps are left when it begins. An epoch without batches is stopped here:
        # else the Trainer would ask for the next step for ever.
        batches = [] if self.control.should_epoch_stop else list(islice(epoch_iterator, num_batches))
        self.control.should_epoch_stop |= not batches
        if batches:
            self._step = self._make_step(batches)
        return batches, None  # the count of the step is in the scales

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Trains on the next batch of the optimiser step, as the Trainer does."""
        # The Trainer does not number the batches, but takes those of `get_batch_samples` in order.
        self._step.begin()
        self.current_gradient_accumulation_steps = 1  # else the Trainer might divide the loss, by the kind of the model
        loss = super().training_step(*args, **kwargs)
        self._step.check_scaled(type(self).compute_loss.__qualname__)
        return loss

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Returns the Trainer's own loss of this batch alone, times the share of the batch in its step."""
        count, scale = self._step.read() if model.training else self._read_evaluation(inputs, num_items_in_batch)
        computed = self._loss_of_batch(model, inputs, return_outputs, count)
        return (computed[0] * scale, computed[1]) if return_outputs else computed * scale

    def _read_evaluation(self, inputs: Any, total: torch.Tensor | int | None) -> tuple[int | None, float]:
        """Returns the count and the scale of an evaluated batch. The Trainer gives the `total` of all ranks."""
        count = count_labels(inputs, shifted=self._loss_shifts_labels)
        if count is None or total is None or self._evaluated is not None:
            return count, 1.0
        ranks = self._ranks if self.args.average_tokens_across_devices else 1
        return count, scale_by_labels([count], [1.0], float(total), reduction=self.reduction, ranks=ranks)[0]

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

    def _make_step(self, batches: list[Any]) -> Step:
        """Counts the labels of the batches, and returns their step with its loss scales."""
        for batch in batches:
            if hasattr(batch, "_fields"):  # the Trainer cannot copy a named tuple
                remedy = "Return a dict of its tensors by the model's names; for packed rows, batch.for_transformers()."
                raise checks.type_error("data_collator", "one whose batches are dicts", type(batch).__name__, remedy)
        if self._has_unchecked_rows:
            self.check_rows(batches[0])
            self._has_unchecked_rows = False
        counts = [count_labels(batch, shifted=self._loss_shifts_labels) for batch in batches]
        first = self._epochs.trained_batches - self.batch_sampler.start
        scales = self._pass_scales.now(self.weights, reduction=self.reduction)[first : first + len(batches)].tolist()
        if self.weights is None and self._are_labelled(counts):
            total: Any = sum(count_once(counts, scales))
            if self.accelerator.num_processes > 1:  # stays a tensor: reading it would wait for the device
                total = self._gather(total).sum().double() / self._sharing_ranks
            scales = scale_by_labels(counts, scales, total, reduction=self.reduction, ranks=self._ranks)
        return Step(batches, counts, scales)

    def _are_labelled(self, counts: list[int | None]) -> bool:
        """Tells if batches have labels; refuses some with and some without."""
        kinds = {count is not None for count in counts}
        if self._labelled is None:  # the first step, the only one where ranks wait for each other
            kinds.update(map(bool, self._gather(False not in kinds).tolist()))
            self._labelled = True in kinds
        if kinds != {self._labelled}:
            remedy = "Let the data collator give them for every batch, or give weights."
            raise checks.state_error("Some batches have a tensor of labels, and others have none", remedy)
        return self._labelled

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
            name = type(model).__name__
            raise checks.state_error(f"{name} does not keep the sequences of a packed row apart", remedy)

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
            state = "Only a mean over labels can be checked, and the Trainer has `weights` or `reduction='sum'`"
            raise checks.state_error(state, "Compare the loss of a batch with those of its sequences.")
        model, shifted = cast("Any", self.model), self._loss_shifts_labels

        def compute(batch: dict[str, Any]) -> float:
            inputs = self._prepare_inputs(batch)
            with self.compute_loss_context_manager():
                return float(self._loss_of_batch(model, inputs, False, count_labels(inputs, shifted=shifted)))

        with evaluating(model):
            check_mean_loss(compute, batch, shifted=shifted, name=type(model).__name__)

    def _check_settings(self) -> None:
        ranks = self.args.world_size // self._sharing_ranks
        datasets, sampler = self.train_dataset, self.batch_sampler
        if isinstance(datasets, Mapping) and len(datasets) > 1 and sampler.groups is None:
            remedy = "Give batching= in place of batch_sampler=, or the sampler groups=, the data set of each sequence."
            raise checks.state_error("Batches of the sampler may mix the data sets of `train_dataset`", remedy)
        remedy = "Set this value in TrainingArguments: the batch sampler decides what a batch and a step are."
        steps = {"accumulation": "gradient_accumulation_steps", "give": "Give batching= in place of batch_sampler=, or"}
        check_settings(sampler, self.args, _REQUIRED, ranks=ranks, remedy=remedy, **steps)
        if self.args.n_gpu > 1:  # nn.DataParallel splits every batch, and averages the means of the parts
            remedy = "Start one process for each GPU with torchrun, or let CUDA_VISIBLE_DEVICES name one."
            raise checks.value_error("n_gpu", "at most 1 in each process", self.args.n_gpu, remedy)


class _Loader(DataLoader):
    """A loader whose epochs the callback sets, because the Trainer's count ignores changes of the number of ranks."""

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        pass


class _InitialValues(NamedTuple):
    """The values of the Trainer's `set_initial_training_values`, by their names in transformers."""

    num_train_epochs: int
    num_update_steps_per_epoch: int
    num_examples: int
    num_train_samples: float
    total_train_batch_size: int
    steps_in_epoch: int | None
    max_steps: int


class _AsPlanned(int):
    """A limit that no epoch reaches, for the Trainer's loop. The Trainer logs it as "as planned"."""

    def __format__(self, spec: str) -> str:
        return "as planned"


def _check_batches_are_given(kind: type) -> None:
    """Refuses a Trainer that does not train on the batches that it is given."""
    for owner in (base for base in kind.__mro__ if base not in PlannedTrainer.__mro__):
        names = vars(owner).keys()
        if methods := {"_get_train_sampler"} & names or ("training_step" in names and _OWN_BATCHES & names):
            remedy = "Use it without PlannedTrainer; if the method is yours, and only orders the data, leave it out."
            raise checks.state_error(f"{owner.__name__} makes its own batches, by `{min(methods)}`", remedy)


def _check_dataset(dataset: Any) -> None:
    """Refuses a data set without length. None is fine, for a Trainer that only evaluates."""
    if dataset is not None and (isinstance(dataset, data.IterableDataset) or not hasattr(dataset, "__len__")):
        remedy = "Give one with __len__ and __getitem__, such as list(train_dataset): a plan lists sequence numbers."
        raise checks.type_error("train_dataset", "a data set of known length", dataset, remedy)
