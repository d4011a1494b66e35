"""Plans under PyTorch: samplers and collate functions for `torch.utils.data.DataLoader`, and parameter averaging.

sampler, windows, evaluation      batch samplers: a plan, and a position in it
loader                            PyTorch's DataLoader, which also counts the batches it yields
planner                           the inputs of the plans of all epochs
position, ranks                   the position of a run; checks that ranks and checkpoints have the same plan
guard, padded                     errors and warnings of a loop that does not follow the plan
arrived                           the frames of the batches that arrive
stream, stream_window, shards     loaders of streams, whose lengths are not known ahead
collate, rows, fields             collate functions
model_checks                      checks of a model: attention between packed sequences, and the mean of the loss
budget, step_meter                the largest budget that fits into memory, the cost of a step
summary                           a description of an epoch in sentences
averaging                         parameter averaging over the ranks
lightning, huggingface, trainers  callbacks and a Trainer, imported by name; their common checks, loss scales, speed
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError("lengthwise.torch needs PyTorch: pip install torch") from _error

from lengthwise.torch.averaging import ParameterAveraging
from lengthwise.torch.budget import FoundBudget, find_budget
from lengthwise.torch.collate import ConcatCollate, Concatenated, PackCollate, PadCollate, PaddedSequences
from lengthwise.torch.evaluation import EvaluationSampler
from lengthwise.torch.loader import DataLoader
from lengthwise.torch.model_checks import attention_leaks
from lengthwise.torch.ranks import gather_numbers
from lengthwise.torch.rows import PackedRows, RowCollate, block_mask
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.step_meter import measure_step
from lengthwise.torch.stream import StreamBatches
from lengthwise.torch.windows import WindowSampler

__all__ = [
    "BatchSampler",
    "ConcatCollate",
    "Concatenated",
    "DataLoader",
    "EvaluationSampler",
    "FoundBudget",
    "PackCollate",
    "PackedRows",
    "PadCollate",
    "PaddedSequences",
    "ParameterAveraging",
    "RowCollate",
    "StreamBatches",
    "WindowSampler",
    "attention_leaks",
    "block_mask",
    "find_budget",
    "gather_numbers",
    "measure_step",
]


def __dir__() -> list[str]:
    # Hides the submodules from tab completion.
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
