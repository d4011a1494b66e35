"""The evaluation of a Trainer on planned batches.

The Trainer averages the losses of batches as if all were equally large. Batches under a budget are not: 100 short
sequences or 5 long ones. So each loss is multiplied by the labels of its batch, and the mean of these products is
divided by that of the labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
import transformers
from numpy.typing import ArrayLike
from torch.utils import data

from lengthwise.choices.batching import Batching
from lengthwise.torch.evaluation import EvaluationSampler
from lengthwise.torch.huggingface.prepared import read_lengths
from lengthwise.torch.model_checks import count_labels

# The options taken over from the Trainer's own loaders.
LOADER_OPTIONS = (
    *("collate_fn", "num_workers", "pin_memory", "worker_init_fn", "multiprocessing_context"),
    *("prefetch_factor", "persistent_workers"),
)


class EvaluatingTrainer(transformers.Trainer):
    """A Trainer that evaluates the loss on batches cut by `batching`, sorted by length."""

    weights: ArrayLike | None = None
    reduction = "mean"
    _loss_shifts_labels = False
    _evaluated_by: Batching | None = None
    _evaluated: Iterator[int] | None = None  # the sequences of each batch of an evaluation, 0 for a repeated one
    _evaluated_labels = 0

    def get_eval_dataloader(self, eval_dataset: Any = None) -> data.DataLoader[Any]:
        """Returns the Trainer's own loader. Without `compute_metrics`, batches of a column `input_ids` are planned.

        For predictions, the Trainer gathers as many rows from each rank, in the order of the data set.
        """
        loader, batching = super().get_eval_dataloader(eval_dataset), self._evaluated_by
        dataset: Any = loader.dataset
        columns = () if isinstance(dataset, data.IterableDataset) else getattr(dataset, "column_names", None) or ()
        if batching is None or self.compute_metrics is not None or "input_ids" not in columns:
            return loader
        options = {name: getattr(loader, name) for name in LOADER_OPTIONS}
        lengths = read_lengths(dataset, self.args.length_column_name)
        sampler = EvaluationSampler(lengths, batching.cut, cost=batching.cost, balance=batching.balance)
        return data.DataLoader(dataset, batch_sampler=sampler, **options)

    def evaluation_loop(self, dataloader: data.DataLoader[Any], *args: Any, **kwargs: Any) -> Any:
        """Evaluates as the Trainer does. The loss of planned batches is the mean over all their labels."""
        sampler: Any = dataloader.batch_sampler
        self._evaluated, self._evaluated_labels = None, 0
        if isinstance(sampler, EvaluationSampler):
            sizes = map(len, sampler.plan.batches(sampler.rank))
            self._evaluated = iter(
                [size if weight else 0 for size, weight in zip(sizes, sampler.weights(), strict=True)]
            )
        output = super().evaluation_loop(dataloader, *args, **kwargs)
        if labels := int(self._gather(self._evaluated_labels).sum()):
            metrics, name = cast("Any", output.metrics), f"{kwargs.get('metric_key_prefix', 'eval')}_loss"
            metrics[name] *= len(sampler) * self._ranks / labels
        return output

    def prediction_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Evaluates a batch as the Trainer does. The loss of a planned batch is multiplied by its labels."""
        loss, *outputs = super().prediction_step(model, inputs, *args, **kwargs)
        if self._evaluated is not None and loss is not None:
            size = next(self._evaluated)
            labels = count_labels(inputs, shifted=self._loss_shifts_labels) if size and self.weights is None else None
            count = size if labels is None else labels
            self._evaluated_labels += count
            loss = loss.float() * (1 if self.reduction == "sum" else count)
            loss = loss if count else torch.zeros_like(loss)  # the mean over no label is NaN
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
