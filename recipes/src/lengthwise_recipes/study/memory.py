"""Memory: the peak bytes of a training step, measured on the costliest batch of each setup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from lengthwise_recipes.study.results import Peak
from lengthwise_recipes.study.runs import trial_step
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup, costliest_batch
from lengthwise_recipes.study.task import Task


def peaks(task: Task, setups: Sequence[Setup], settings: Settings) -> Iterator[Peak]:
    """Measures each setup by one step of one process, on the costliest batch of all epochs of seed 0.

    The peak counts weights, gradients, the state of the optimiser, the batch and all intermediate tensors, but not the
    buffers for the exchange of gradients. On a GPU the allocator of PyTorch counts, on a CPU its profiler. A first step
    creates the parts that PyTorch makes lazily; the second is measured.
    """
    torch.manual_seed(0)
    model = task.model()
    measure = _gpu_peak if settings.device == "cuda" else _cpu_peak
    for setup in setups:
        batch, width = costliest_batch(setup, task.lengths, seed=0, epochs=range(1, settings.epochs + 1))
        step = partial(trial_step, task, model, settings, batch, width)
        step()
        yield Peak(strategy=setup.label, bytes=measure(step))


def _gpu_peak(work: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    initial_bytes = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_allocated() - initial_bytes


def _cpu_peak(work: Callable[[], None]) -> int:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"]
    changes.sort(key=lambda change: change[0])
    return int(np.cumsum([size for _, size in changes]).max(initial=0))
