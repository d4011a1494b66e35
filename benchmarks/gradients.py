"""Measures the error of the gradient of a step on several ranks, compared with one process.

    python benchmarks/gradients.py [--ranks 2 4] [--device cuda]

A small LSTM predicts random tokens in float64 under DDP and FSDP. Each rank is a process, with gloo, or with nccl and
its own GPU. Each way to weight the losses of a step multiplies the mean loss of each batch by a factor. The error is
max |difference| / max |gradient| over all parameters, the greatest of some steps. For comparison, one process computes
the whole step as one padded batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib.metadata import version
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from record import parser, write
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

import lengthwise as lw

SYMBOLS = 11
WRAPPERS = ("DDP", "FSDP")
LOSSES = ("sequence", "token", "supervised")
WAYS = ("batches summed", "batches averaged", "ranks averaged", "loss scales")
CUTS = {"budget:1000": lw.Budget(1_000), "fixed:16": lw.FixedSize(16)}
SEQUENCES, SHORTER, STEPS = 1_000, 8, 4  # lengths are divided by SHORTER; STEPS steps are measured
PATIENCE = timedelta(seconds=120)  # a rank fails if it waits longer


class Case(NamedTuple):
    """A case: the wrapper that averages over ranks, the loss, the way to weight losses, and the micro-batches."""

    wrapper: str
    loss: str
    way: str
    micro_batches: int


class Job(NamedTuple):
    """The arguments of every rank."""

    cases: list[Case]
    lengths: NDArray[np.int64]
    batching: lw.Batching
    steps: int | None
    device: str = "cpu"


def main() -> None:
    """Measures every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = options.parse_args()
    if arguments.device == "cuda" and max(arguments.ranks) > torch.cuda.device_count():
        options.error(f"--ranks must be at most {torch.cuda.device_count()}, one GPU for each rank")
    lengths = lw.example_lengths("long-tailed", count=SEQUENCES) // SHORTER
    cases = [Case(*choices) for choices in product(WRAPPERS, LOSSES, WAYS, (1, 3))]
    rows: list[dict[str, Any]] = []
    for ranks, cut in tqdm(list(product(arguments.ranks, CUTS)), disable=None):
        job = Job(cases, lengths, lw.Batching(cut=CUTS[cut], padding=0.05), STEPS, arguments.device)
        for case, error in zip(cases, errors(job, ranks=ranks), strict=True):
            rows.append({"cut": cut, "ranks": ranks, **case._asdict(), "error": error})
    facts = {
        "device": arguments.device,
        "sequences": SEQUENCES,
        "shorter": SHORTER,
        "steps": STEPS,
        "torch": version("torch"),
        "rows": rows,
    }
    print(f"loss scales: at most {max(row['error'] for row in rows if row['way'] == 'loss scales'):.1e}")
    if arguments.device == "cuda":
        print(write("gradients-nccl", facts, device_name=torch.cuda.get_device_name()))
    else:
        print(write("gradients", facts))


def spawn_ranks(function: Callable[..., None], *arguments: Any, world_size: int) -> None:
    """Runs `function(rank, *arguments)` on every rank, and waits for the end."""
    spawn(function, arguments, nprocs=world_size)


def errors(job: Job, *, ranks: int, start: Callable[..., None] = spawn_ranks) -> list[float]:
    """Returns the error of each case, measured by `ranks` processes, which `start` starts."""
    with TemporaryDirectory() as folder:
        start(measure, ranks, folder, job, world_size=ranks)
        return json.loads((Path(folder) / "errors.json").read_text())


def measure(rank: int, ranks: int, folder: str, job: Job) -> None:
    """Measures every case on one rank; rank 0 writes the errors."""
    torch.set_num_threads(1)
    backend = "nccl" if job.device == "cuda" else "gloo"
    if job.device == "cuda":
        torch.cuda.set_device(rank)
    store = f"file://{folder}/store"
    distributed.init_process_group(backend, init_method=store, rank=rank, world_size=ranks, timeout=PATIENCE)
    try:
        case_errors = [case_error(case, job, rank, ranks) for case in job.cases]
    finally:
        distributed.destroy_process_group()
    if rank == 0:
        (Path(folder) / "errors.json").write_text(json.dumps(case_errors))


def case_error(case: Case, job: Job, rank: int, ranks: int) -> float:
    """Returns the greatest error of the steps on rank 0; NaN if the error of a step is NaN."""
    plan = lw.make_plan(job.lengths, job.batching, world_size=ranks, micro_batches=case.micro_batches)
    scales = batch_scales(plan, sequence_weights(job.lengths, case.loss), case.way)
    alone, model = Predictor().to(job.device), wrapped(case.wrapper, job.device)
    step_errors = []
    for step in range(plan.steps)[: job.steps]:
        model.zero_grad()
        for turn, number in enumerate(plan.grid[step, :, rank]):
            with synchronised(model, turn == plan.micro_batches - 1):
                loss = batch_loss(model, plan.batch(number), job.lengths, case.loss)
                (scales[step, turn, rank] * loss).backward()
        step_gradient = gradient(model)
        if rank == 0:
            whole_gradient = whole_step(alone, plan, step, job.lengths, case.loss)
            step_errors.append(float((step_gradient - whole_gradient).abs().max() / whole_gradient.abs().max()))
    return float(np.max(step_errors)) if rank == 0 else 0.0


def batch_scales(plan: lw.Plan, weights: NDArray[np.float64], way: str) -> NDArray[np.float64]:
    """Returns the factor for the mean loss of each batch: [steps, micro_batches, ranks].

    - "batches summed": 1.
    - "batches averaged": 1 / micro-batches.
    - "ranks averaged": the exact mean over the batches of each rank.

    The wrapper averages over ranks.
    """
    if way == "loss scales":
        return lw.loss_scales(plan, weights)
    if way == "ranks averaged":
        batch_weights = np.add.reduceat(weights[plan.sequences], plan.offsets[:-1])[plan.grid]
        return batch_weights / np.maximum(batch_weights.sum(axis=1, keepdims=True), 1.0)
    return np.full(plan.grid.shape, {"batches summed": 1.0, "batches averaged": 1.0 / plan.micro_batches}[way])


def whole_step(model: nn.Module, plan: lw.Plan, step: int, lengths: NDArray[np.int64], loss: str) -> torch.Tensor:
    """Returns the gradient of the whole step, with each of its sequences once."""
    batches = plan.grid[step][plan.first_taken[step]]
    model.zero_grad()
    batch_loss(model, np.concatenate([plan.batch(number) for number in batches]), lengths, loss).backward()
    return gradient(model)


class Predictor(nn.Module):
    """Predicts log probabilities of the next token: [b, t] to [b, t, SYMBOLS]. Weights are equal in all processes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(SYMBOLS, 8)
        self.recurrent = nn.LSTM(8, 16, batch_first=True)
        self.scores = nn.Linear(16, SYMBOLS)
        self.double()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.scores(self.recurrent(self.embedding(tokens))[0]).log_softmax(-1)


def wrapped(wrapper: str, device: str) -> nn.Module:
    model = Predictor().to(device)
    if wrapper == "DDP":
        return DistributedDataParallel(model)
    fully_shard(model, mesh=init_device_mesh(device, (distributed.get_world_size(),)))
    return model


def synchronised(model: nn.Module, now: bool) -> AbstractContextManager[None]:
    """Averages gradients over ranks after the last batch of a step only."""
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(now)
    return model.no_sync() if isinstance(model, DistributedDataParallel) and not now else nullcontext()


def gradient(model: nn.Module) -> torch.Tensor:
    """Returns the gradient of all parameters in one row; a sharded model is gathered from all ranks."""
    parts = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return torch.cat([(part.full_tensor() if isinstance(part, DTensor) else part).reshape(-1) for part in parts])


def batch_loss(model: nn.Module, numbers: NDArray[np.int64], lengths: NDArray[np.int64], loss: str) -> torch.Tensor:
    """Returns the mean loss over the sequences, tokens or supervised tokens of a batch; 0 if it has none."""
    tokens = nn.utils.rnn.pad_sequence([sequence(number, lengths) for number in numbers], batch_first=True)
    device = next(model.parameters()).device
    tokens, weights = tokens.to(device), token_weights(numbers, lengths, loss).to(device)
    losses = nn.functional.nll_loss(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:], reduction="none")
    return (losses * weights).sum() / weights.sum().clamp(min=1.0)


def sequence(number: int, lengths: NDArray[np.int64]) -> torch.Tensor:
    """Returns a start token and `lengths[number]` tokens to predict."""
    generator = torch.Generator().manual_seed(int(number))
    return torch.randint(SYMBOLS, (int(lengths[number]) + 1,), generator=generator)


def token_weights(numbers: NDArray[np.int64], lengths: NDArray[np.int64], loss: str) -> torch.Tensor:
    """Returns the weight of each token: [b, t], 0 for padding."""
    sequence_lengths = torch.as_tensor(lengths[numbers])[:, None]
    position = torch.arange(int(sequence_lengths.max()))
    inside = (position < sequence_lengths).double()
    if loss == "sequence":
        return inside / sequence_lengths
    if loss == "token":
        return inside
    return inside * (position >= sequence_lengths - torch.as_tensor(supervised_tokens(lengths)[numbers])[:, None])


def supervised_tokens(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the number of supervised tokens at the end of each sequence, 0 for every third."""
    counts = np.random.default_rng(0).integers(0, lengths, endpoint=True)
    counts[::3] = 0
    return counts


def sequence_weights(lengths: NDArray[np.int64], loss: str) -> NDArray[np.float64]:
    """Returns the weight of each sequence, the sum of its `token_weights`."""
    kinds = {"sequence": np.ones_like(lengths), "token": lengths, "supervised": supervised_tokens(lengths)}
    return kinds[loss].astype(np.float64)


if __name__ == "__main__":
    main()
