"""The sampler for a Trainer with `batching`: lengths are read from the data set as the Trainer has prepared it.

A Trainer may add end tokens and templates, truncate texts, and drop some. Lengths that were read before are then wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.engines.sources import Rule, read_blocks
from lengthwise.torch.sampler import BatchSampler

_ROWS = 4096  # rows to measure at once
_TOKENS = "input_ids"


def make_sampler(dataset: Any, batching: Batching, args: Any) -> BatchSampler:
    """Returns the sampler of a prepared data set, with the seed and the micro-batches of the `TrainingArguments`.

    Several data sets in a dict are one after the other, as in the Trainer, and no batch mixes two of them.
    """
    parts = dataset if isinstance(dataset, Mapping) else {"": dataset}
    lengths = [read_lengths(part, args.length_column_name, str(name)) for name, part in parts.items()]
    if len({part.shape[1:] for part in lengths}) > 1:
        remedy = "Give all of them as many lengths for each sequence, or give batch_sampler= in place of batching=."
        widths = ", ".join(f"{name}: {part.shape}" for name, part in zip(parts, lengths, strict=True))
        raise checks.state_error(f"The data sets have lengths of several shapes ({widths})", remedy)
    groups = np.repeat(np.arange(len(lengths)), list(map(len, lengths))) if len(lengths) > 1 else None
    seed, steps = args.seed if args.data_seed is None else args.data_seed, args.gradient_accumulation_steps
    return BatchSampler(np.concatenate(lengths), batching, seed=seed, micro_batches=steps, groups=groups)


def drop_lengths(dataset: Any, column: str) -> Any:
    """Returns a data set, or a dict of them, without the column of lengths: some Trainers would take it for a text."""
    if hasattr(dataset, "items"):
        return type(dataset)({name: drop_lengths(part, column) for name, part in dataset.items()})
    return dataset.remove_columns(column) if column in (getattr(dataset, "column_names", None) or ()) else dataset


def read_lengths(dataset: Any, column: str, name: str = "") -> NDArray[Any]:
    """Returns the lengths of a data set: its column of lengths, or the sizes of its `input_ids`.

    Raises:
        ValueError: It has neither, both differ, or a row has no length.
    """
    place, names = f"data set {name}" if name else "", getattr(dataset, "column_names", None)
    if dataset is None or (names is not None and not {column, _TOKENS} & {*names}):
        raise _unmeasured(names, column, place)
    if names is None:
        return np.array([_measure(dataset[number], column, place) for number in range(len(dataset))])
    stated = np.asarray(dataset.with_format("numpy")[column][:]) if column in names else None
    if stated is not None and (_TOKENS not in names or stated.ndim > 1):
        return stated
    lengths = [np.zeros(0, np.int64)]
    for block in read_blocks(dataset, Rule(column=_TOKENS), _ROWS):
        for row, reason in block.reasons.items():
            raise ValueError(f"Row {sum(map(len, lengths)) + row} of `train_dataset`: {reason}")
        lengths.append(block.lengths)
    sizes = np.concatenate(lengths)
    if stated is not None and (wrong := np.count_nonzero(stated != sizes)):
        rule, remedy = f"the sizes of `{_TOKENS}`", "Remove the column, or give batch_sampler= in place of batching=."
        raise checks.value_error(column, rule, f"another in {wrong:,} of {len(sizes):,} rows", remedy, at=place)
    return sizes


def _measure(sample: Any, column: str, place: str) -> Any:
    """Returns the length of a sample of a data set without columns."""
    if not isinstance(sample, Mapping) or not {column, _TOKENS} & sample.keys():
        raise _unmeasured(list(sample) if isinstance(sample, Mapping) else type(sample).__name__, column, place)
    return sample[column] if column in sample else np.shape(sample[_TOKENS])[-1]


def _unmeasured(names: object, column: str, place: str) -> ValueError:
    rule = f"a data set with `{column}` or `{_TOKENS}`"
    remedy = f"Add the length of each sequence as `{column}`, or give batch_sampler= in place of batching=."
    return checks.value_error("train_dataset", rule, names, remedy, at=place)
