"""Plans under PyTorch: samplers and collate functions for `torch.utils.data.DataLoader`, and parameter averaging.

sampler, windows, evaluation      what a loader is given: a plan, and a position in it
loader                            PyTorch's own, which counts what it has handed on
planner                           what epochs are planned from
position, ranks                   where in an epoch a run stands, and whether ranks and checkpoints agree
guard, padded                     what is refused, and what is warned of
stream, window, shards            lengths that are not known ahead: a loader by itself
collate, rows, fields             batches of samples
model_checks                      runs a network: are packed sequences apart, is the loss a mean over labels
budget, step_meter                what fits into memory, what a step costs
summary                           what an epoch computes
averaging                         models of all ranks made one
lightning, huggingface, trainers  trainers, imported by name; what their modules share, and how fast they are
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError('lengthwise.torch needs PyTorch: pip install "lengthwise[torch]"') from _error

from lengthwise.torch.averaging import ParameterAveraging as ParameterAveraging
from lengthwise.torch.budget import FoundBudget as FoundBudget
from lengthwise.torch.budget import find_budget as find_budget
from lengthwise.torch.collate import ConcatCollate as ConcatCollate
from lengthwise.torch.collate import Concatenated as Concatenated
from lengthwise.torch.collate import PackCollate as PackCollate
from lengthwise.torch.collate import PadCollate as PadCollate
from lengthwise.torch.collate import PaddedSequences as PaddedSequences
from lengthwise.torch.evaluation import EvaluationSampler as EvaluationSampler
from lengthwise.torch.loader import DataLoader as DataLoader
from lengthwise.torch.model_checks import attention_leaks as attention_leaks
from lengthwise.torch.rows import PackedRows as PackedRows
from lengthwise.torch.rows import RowCollate as RowCollate
from lengthwise.torch.rows import block_mask as block_mask
from lengthwise.torch.sampler import BatchSampler as BatchSampler
from lengthwise.torch.step_meter import measure_step as measure_step
from lengthwise.torch.stream import StreamBatches as StreamBatches
from lengthwise.torch.windows import WindowSampler as WindowSampler

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
    "measure_step",
]


def __dir__() -> list[str]:
    # Without the modules that hold them, of which tab completion would show more.
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
