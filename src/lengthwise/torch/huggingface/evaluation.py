"""The evaluation of a Trainer on planned batches.

The Trainer averages the losses of batches as if all were equally large. Batches under a budget are not: 100 short
sequences or 5 long ones. So each loss is multiplied by the number of labels in its batch. At the end, the sum of these
products is divided by the number of all labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
import transformers
from numpy.typing import ArrayLike
from torch.utils import data

from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import Budget
from lengthwise.choices.rows import Rows
from lengthwise.torch.evaluation import EvaluationSampler
from lengthwise.torch.huggingface.prepared import read_lengths
from lengthwise.torch.model_checks import count_labels

# The options taken over from the Trainer's own loaders.
LOADER_OPTIONS = (
    *("collate_fn", "num_workers", "pin_memory", "worker_init_fn", "multiprocessing_context"),
    *("prefetch_factor", "persistent_workers"),
)


class EvaluatingTrainer(transformers.Trainer):
    """A Trainer that evaluates the loss on batches cut by `batching`, sorted by length.

    Predictions keep the Trainer's own batches: it gathers as many rows from each rank, in the order of the data set.
    """

    weights: ArrayLike | None = None
    reduction = "mean"
    _loss_shifts_labels = False
    _evaluated_by: Batching | None = None
    _evaluated: Iterator[int] | None = None  # the sequences of each batch of an evaluation, 0 for a repeated one

    def evaluation_loop(self, dataloader: data.DataLoader[Any], *args: Any, **kwargs: Any) -> Any:
        """Evaluates as the Trainer does; on planned batches, if only the loss is asked for.

        The loss is then the mean over all labels, each counted once; over sequences, if there are no `labels`.
        """
        only_loss = kwargs.get("prediction_loss_only") and "inputs" not in self.args.include_for_metrics
        loader = self._plan_evaluation(dataloader) if only_loss else None
        self._evaluated, self._evaluated_labels = None, 0
        if loader is None:
            return super().evaluation_loop(dataloader, *args, **kwargs)
        sampler: Any = loader.batch_sampler
        sizes = map(len, sampler.plan.batches(sampler.rank))
        self._evaluated = iter([size if weight else 0 for size, weight in zip(sizes, sampler.weights(), strict=True)])
        output = super().evaluation_loop(loader, *args, **kwargs)
        self._evaluated = None
        metrics, labels = cast("Any", output.metrics), int(self._gather(self._evaluated_labels).sum())
        for name in [name for name in metrics if name.endswith("_loss")]:
            metrics[name] *= len(sampler) * self._ranks / labels if labels else math.nan
        return output

    def _plan_evaluation(self, loader: data.DataLoader[Any]) -> data.DataLoader[Any] | None:
        """Returns a loader of planned batches of the same data set, or None if the Trainer's own must stay."""
        batching, dataset = self._evaluated_by, cast("Any", loader.dataset)
        columns = () if isinstance(dataset, data.IterableDataset) else getattr(dataset, "column_names", None) or ()
        is_plain = self.weights is None and self._sharing_ranks == 1
        # A Trainer that has methods of its own for this may evaluate other rows.
        methods = ("get_eval_dataloader", "_get_eval_sampler")
        is_plain &= all(getattr(type(self), name) is getattr(transformers.Trainer, name) for name in methods)
        if batching is None or isinstance(batching.cut, Rows) or not is_plain or "input_ids" not in columns:
            return None
        try:
            lengths = read_lengths(dataset, self.args.length_column_name)
        except ValueError:  # rows without lengths, which the data collator may refuse
            return None
        # Without gradients, a sequence over the budget is likely to fit.
        cut = replace(batching.cut, oversize="alone") if isinstance(batching.cut, Budget) else batching.cut
        sampler = EvaluationSampler(lengths, cut, cost=batching.cost, balance=batching.balance)
        options = {name: getattr(loader, name) for name in LOADER_OPTIONS}
        return data.DataLoader(dataset, batch_sampler=sampler, **options)

    def prediction_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Evaluates a batch as the Trainer does. The loss of a planned batch is multiplied by its labels."""
        loss, *outputs = super().prediction_step(model, inputs, *args, **kwargs)
        if self._evaluated is not None and loss is not None:
            size, labels = next(self._evaluated), count_labels(inputs, shifted=self._loss_shifts_labels)
            is_filtered = self.args.logging_nan_inf_filter  # the Trainer leaves batches out whose mean is NaN
            count = (size if labels is None else labels) if size and (torch.isfinite(loss) or not is_filtered) else 0
            self._evaluated_labels += count
            loss = loss.float() * (1 if self.reduction == "sum" else count) if count else torch.zeros_like(loss).float()
        return (loss, *outputs)

    @property
    def _ranks(self) -> int:
        """The number of ranks over which gradients and evaluation losses are averaged."""
        return self.accelerator.num_processes // self.get_tp_size()

    @property
    def _sharing_ranks(self) -> int:
        """The number of ranks that share each sequence, and count its labels."""
        return self.get_tp_size() * self.get_cp_size() * self.get_sp_size()

    def _gather(self, number: int) -> Any:
        """Returns the number of each rank, on the device."""
        return self.accelerator.gather(torch.full((1,), int(number), device=self.args.device))
