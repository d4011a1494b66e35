"""Trains small networks on random batches, on two strategies of the Hugging Face Trainer, and on those of Lengthwise.

    python -m benchmarks.training [--models NAME ...] [--ranks 1 2] [--updates 25] [--rounds 3] [--device cuda]

Each case is a process for each rank, with one thread: a loop with DDP (gloo, or nccl), and for the transformer the
Trainer, too. An update has 4 batches on each rank, of 8 sequences on average. All ways have the same data, first
weights and updates, and weigh each frame of an update alike. "Equal memory" has the largest of a few budgets with
which its peak memory is at most 2 % above that of group_by_length; it stops once it has seen as much data as others.

    tokens a second    useful ones of all ranks; an update lasts as long as the rank of most CPU time; the median
                       of several rounds, which all cases take in turn; the result has the speed of each
    memory             peak of a rank beyond that before training, in MB; of the GPU with `--device cuda`
    by default         the same in the runs that are timed, their median
    largest            padded tokens of the largest batch
    loss               after the last update, of 64 sequences that no batch holds

Memory is that of a run of its own, in which the C library gives each block of 128 KiB back once it is free, and oneDNN
keeps nothing for the next batch of a shape. By default both keep more, and not as much in each run. On a GPU time is
that of the clock, networks compute in bfloat16, and they and the lengths are larger. On a CPU, the LSTM is also trained
without what oneDNN keeps. The result also has the microseconds of a step that computes next to nothing: of a loader
alone, and of the Trainer.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peer_calls import CALLS, Run, peak_bytes
from record import parser, write
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

import lengthwise as lw
from sections.trained import training as section

WAYS = ("random", "group_by_length", "batch_rebalance", "lengthwise", "equal memory")
MODELS = ("transformer", "lstm", "convolution")
SIZE, MICRO_BATCHES, COUNT, HELD_OUT = 8, 4, 2_000, 64
BUDGETS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)  # of equal memory, in largest batches of group_by_length
SYMBOLS, FRAMES = 32, 4  # symbols, and the frames of one in the tasks of frames


def main() -> None:
    """Runs every case in processes of its own, and writes the result."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="*", choices=MODELS, default=MODELS, help="(all)")
    options.add_argument("--ranks", nargs="*", type=int, default=[1, 2], help="processes of a case (1 2)")
    options.add_argument("--updates", type=int, default=25, help="of each case (%(default)s)")
    options.add_argument("--rounds", type=int, default=3, help="of which the median counts (%(default)s)")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(%(default)s)")
    options.add_argument("--case", help="the case of this process, in JSON")
    arguments = options.parse_args()
    if arguments.case:
        case = json.loads(arguments.case)
        measures = train(case) if "way" in case else overheads()
        if os.environ.get("RANK", "0") == "0":
            print(json.dumps(measures))
        return
    loops = [(model, "DDP") for model in arguments.models]
    loops += [("transformer", "Trainer")] if "transformer" in arguments.models else []
    kinds = [*itertools.product(loops, arguments.ranks)]
    kinds += [(("lstm", "no cache"), 1)] if "lstm" in arguments.models else []
    settings = {"updates": arguments.updates, "device": arguments.device}
    rows: list[dict[str, Any]] = []
    for (model, loop), ranks in tqdm(kinds, disable=None):
        rows += with_memory({"model": model, "loop": loop, "ranks": ranks}, settings)
    rounds: list[list[dict[str, Any]]] = [[] for _ in rows]
    for _ in range(arguments.rounds):
        for row, measured in zip(tqdm(rows, disable=None), rounds, strict=True):
            measured.append(call(row | settings))
            tqdm.write(json.dumps(row | measured[-1]))
    for row, measured in zip(rows, rounds, strict=True):
        row["rounds"] = [each.get("tokens_a_second", 0.0) for each in measured]
        row["tokens_a_second"] = median(row["rounds"])
        row["by_default"] = median(each.get("memory", 0.0) for each in measured)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else ""
    facts = {"size": SIZE, "micro_batches": MICRO_BATCHES, "sequences": COUNT}
    facts |= {"updates": arguments.updates, "rounds": arguments.rounds}
    facts |= {"torch": torch.__version__, "transformers": version("transformers")}
    whole = (*arguments.models, *arguments.ranks) == (*MODELS, 1, 2)
    document = {**facts, "overheads": call({"loop": "overheads"}), "rows": rows}
    print(write("training" if whole else "part-of-training", document, device_name=name))
    print(*section(document), sep="\n\n")


def with_memory(case: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each way, with its memory; the budget of the last is sought."""
    rows = [case | {"way": way} for way in WAYS]
    for row in rows[:-1]:
        row |= call(row | settings, frees=True)
    theirs, ours = rows[1], rows[-1]
    for share in BUDGETS:
        tried = ours | {"budget": int(share * theirs.get("largest", 0))}
        tried |= call(tried | settings, frees=True)
        if "error" in tried or ("memory" in ours and tried["memory"] > 1.02 * theirs["memory"]):
            break
        ours |= tried
    return rows


def call(case: dict[str, Any], *, frees: bool = False) -> dict[str, Any]:
    """Returns the measures of a case from processes of its own; or, if it fails, its error."""
    ranks, variables = case.get("ranks", 1), os.environ | {"OMP_NUM_THREADS": "1"}
    variables |= {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"} if frees or case["loop"] == "no cache" else {}
    variables |= {"MALLOC_MMAP_THRESHOLD_": str(2**17)} if frees else {}
    several = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    command = [sys.executable, "-W", "ignore", *several, __file__, "--case", json.dumps(case)]
    process = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    printed = [line for line in process.stdout.splitlines() if line.startswith('{"')]
    return json.loads(printed[-1]) if printed else {"error": process.stderr[-300:]}


def train(case: dict[str, Any]) -> dict[str, Any]:
    """Trains one case; returns the measures, the same on all ranks."""
    torch.manual_seed(0)
    cuda = case["device"] == "cuda"
    if case["ranks"] > 1:
        distributed.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    lengths = 4 + lw.example_lengths("long-tailed", count=COUNT + HELD_OUT) // (1 if cuda else 8)
    samples, training = draw(lengths), lengths[:-HELD_OUT]
    budget = case.get("budget") or int(SIZE * training.mean() / 0.95)
    if case["loop"] == "Trainer":
        import_module("lengthwise.torch.huggingface")  # its memory is not that of training
    model = build(case["model"], int(lengths.max()), large=cuda).to(device)
    first = copy.deepcopy(model)  # what the first step loads and compiles is not of training
    model_loss(case, first, samples[:1]).backward()
    torch.optim.AdamW(first.parameters()).step()
    del first
    if not cuda:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    start_bytes = torch.cuda.memory_allocated() if cuda else peak_bytes()
    run = Run(training, budget, case["ranks"], MICRO_BATCHES)
    seconds, batches = (with_trainer if case["loop"] == "Trainer" else with_ddp)(case, model, samples, run)
    peak = torch.cuda.max_memory_allocated() if cuda else peak_bytes()
    shared: list[Any] = [(seconds, peak - start_bytes, batches)] * case["ranks"]
    if case["ranks"] > 1:
        distributed.all_gather_object(shared, (seconds, peak - start_bytes, batches))
    seconds, peaks, batches = zip(*shared, strict=True)
    updates, batches = len(batches[0]) // MICRO_BATCHES, list(itertools.chain(*batches))
    model.eval()
    with torch.no_grad():
        starts = range(len(training), len(samples), SIZE)
        loss = sum(float(model_loss(case, model, samples[start : start + SIZE])) for start in starts)
    frames = sum(int(lengths[batch].sum()) for batch in batches)
    return {
        "tokens_a_second": frames / float(np.max(seconds, axis=0).sum()),
        "memory": max(peaks) / 1e6,
        "largest": max(len(batch) * int(lengths[batch].max()) for batch in batches),
        "updates": updates,
        "padding": 1.0 - frames / sum(len(batch) * int(lengths[batch].max()) for batch in batches),
        "loss": loss / int(lengths[-HELD_OUT:].sum()),
    }


def draw(lengths: NDArray[np.int64]) -> list[dict[str, torch.Tensor]]:
    """Returns a sample for each length: symbols of which each follows from the last, mostly, and their noisy frames."""
    chance, faces = np.random.default_rng(0), np.random.default_rng(1).normal(size=(SYMBOLS, 16))
    samples = []
    for length in lengths.tolist():
        jumps = np.where(chance.random(length) < 0.1, chance.integers(0, SYMBOLS, length), 5)
        symbols = np.cumsum(jumps) % SYMBOLS
        shown = np.repeat(symbols[: -(-length // FRAMES)], FRAMES)[:length]
        frames = faces[shown] + chance.normal(size=(length, 16))
        sample = {"input_ids": symbols, "labels": symbols, "frames": frames.astype(np.float32), "shown": shown}
        samples.append({name: torch.from_numpy(array) for name, array in sample.items()})
    return samples


def build(name: str, longest: int, *, large: bool) -> nn.Module:
    """Returns a small network, or a larger one for a GPU."""
    width, layers = (768, 12) if large else (128, 2)
    if name == "transformer":
        from transformers import GPT2Config, GPT2LMHeadModel

        shape = {"n_embd": width, "n_layer": layers, "n_head": width // 64, "n_positions": longest}
        return GPT2LMHeadModel(GPT2Config(vocab_size=SYMBOLS, bos_token_id=0, eos_token_id=0, **shape))
    if name == "lstm":
        return Recurrent(width, layers)
    parts = [(nn.Conv1d(width if number else 16, width, 9, padding=4), nn.ReLU()) for number in range(layers)]
    return nn.Sequential(*itertools.chain(*parts), nn.Conv1d(width, SYMBOLS, 1))


class Recurrent(nn.Module):
    """An LSTM in both directions, which scores the symbols and the blank of CTC."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, width, layers, batch_first=True, bidirectional=True)
        self.last = nn.Linear(2 * width, SYMBOLS + 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(frames)[0])


def model_loss(case: dict[str, Any], model: nn.Module, samples: list[dict[str, torch.Tensor]]) -> torch.Tensor:
    """Returns the sum over all frames of the loss of a padded batch."""
    device = next(model.parameters()).device
    counts = torch.tensor([len(sample["labels"]) for sample in samples])
    padded = {name: nn.utils.rnn.pad_sequence([sample[name] for sample in samples], True) for name in samples[0]}
    padded = {name: values.to(device) for name, values in padded.items()}
    mask = (torch.arange(int(counts.max())) < counts[:, None]).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        if case["model"] == "transformer":
            scores = model(input_ids=padded["input_ids"], attention_mask=mask.long()).logits[:, :-1]
            wanted, mask = padded["labels"][:, 1:], mask[:, 1:]
        else:
            frames, wanted = padded["frames"], padded["shown"]
            scores = model(frames.mT).mT if case["model"] == "convolution" else model(frames)
    if case["model"] != "lstm":
        return nn.functional.cross_entropy(scores[mask].float(), wanted[mask], reduction="sum")
    chances, symbols = scores.float().log_softmax(-1).transpose(0, 1), -(-counts // FRAMES)
    return nn.functional.ctc_loss(chances, wanted[:, ::FRAMES] + 1, counts, symbols, reduction="sum")


def updates_of(case: dict[str, Any], run: Run) -> Iterator[list[tuple[Any, ...]]]:
    """Yields the batches of each update, [micro-batches, ranks], until the updates or the data are enough."""
    call, updates_left = CALLS["lengthwise" if case["way"] == "equal memory" else case["way"]], case["updates"]
    frames_left = updates_left * SIZE * run.ranks * run.micro_batches * run.lengths.mean()
    for epoch in itertools.count():
        slots = list(zip(*call(run, epoch), strict=False))
        for start in range(0, len(slots) - run.micro_batches + 1, run.micro_batches):
            if updates_left == 0 or frames_left <= 0:
                return
            updates_left -= 1
            update = slots[start : start + run.micro_batches]
            frames_left -= frames_of(update, run) if case["way"] == "equal memory" else 0
            yield update


def frames_of(update: list[tuple[Any, ...]], run: Run) -> int:
    """Returns the frames of all batches of an update."""
    return sum(int(run.lengths[batch].sum()) for slot in update for batch in slot)


def clock(case: dict[str, Any]) -> float:
    """Returns the CPU seconds of this process; on a GPU those of the clock."""
    if case["device"] == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def with_ddp(case: dict[str, Any], model: nn.Module, samples: list[Any], run: Run) -> tuple[list[float], list[Any]]:
    """Trains in a plain loop; returns the seconds of each step, and the batches of this rank."""
    rank = distributed.get_rank() if case["ranks"] > 1 else 0
    parallel = DistributedDataParallel(model) if case["ranks"] > 1 else model
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-3)
    seconds, batches = [], []
    for update in updates_of(case, run):
        started, frames = clock(case), frames_of(update, run)
        optimizer.zero_grad()
        for slot in update:
            batches.append(list(slot[rank]))
            loss = model_loss(case, parallel, [samples[place] for place in slot[rank]])
            (loss * case["ranks"] / frames).backward()  # DDP averages over the ranks; each frame weighs alike
        optimizer.step()
        seconds.append(clock(case) - started)
    return seconds, batches


def with_trainer(case: dict[str, Any], model: nn.Module, samples: list[Any], run: Run) -> tuple[list[float], list[Any]]:
    """Trains under the Hugging Face Trainer; returns the seconds of all steps, and the batches of this rank."""
    from transformers import Trainer, TrainingArguments

    from lengthwise.torch.huggingface import PlannedTrainer

    batches: list[Any] = []
    collate = lw.torch.PadCollate()

    def collate_and_record(batch: list[Any]) -> Any:
        batches.append([sample["place"] for sample in batch])
        return collate([{name: sample[name] for name in ("input_ids", "labels")} for sample in batch])

    data = [sample | {"place": place} for place, sample in enumerate(samples[: len(run.lengths)])]
    steps = sum(1 for _ in updates_of(case, run))
    options: dict[str, Any] = {
        "max_steps": steps,
        "per_device_train_batch_size": SIZE,
        "gradient_accumulation_steps": MICRO_BATCHES,
    }
    options |= {"learning_rate": 1e-3, "report_to": "none"}
    options |= {"lr_scheduler_type": "constant", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
    options |= {"remove_unused_columns": False, "use_cpu": case["device"] == "cpu", "bf16": case["device"] == "cuda"}
    ours = case["way"] in WAYS[3:]
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(folder, train_sampling_strategy="random" if ours else case["way"], **options)
        shared: dict[str, Any] = {"args": settings, "train_dataset": data, "data_collator": collate_and_record}
        shared |= {"batching": lw.Batching(budget=run.cap)} if ours else {}
        trainer = (PlannedTrainer if ours else Trainer)(model, **shared)
        started = clock(case)
        trainer.train()
    return [clock(case) - started], batches[: steps * MICRO_BATCHES]  # it has read one more


class OneWeight(nn.Module):
    """A model that computes next to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return {"loss": self.weight * attention_mask.shape[0]}


def overheads() -> dict[str, float]:
    """Returns the microseconds of a step by loop and way: medians over steps, the least of five runs in turn."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from lengthwise.torch.huggingface import PlannedTrainer

    sample = {"input_ids": torch.zeros(8, dtype=torch.long), "labels": torch.zeros(8, dtype=torch.long)}
    data: Any = [sample] * 4_000
    batching, collate, times = lw.Batching(budget=8 * SIZE), lw.torch.PadCollate(), list[float]()

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    def load(batches: Iterable[Any]) -> None:
        times.extend(time.perf_counter() for _ in batches)

    def with_trainer(way: str, **options: Any) -> None:
        shared: dict[str, Any] = {
            "max_steps": 400,
            "per_device_train_batch_size": SIZE,
            "report_to": "none",
            "use_cpu": True,
        }
        shared |= {"save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
        settings = TrainingArguments(tempfile.gettempdir(), train_sampling_strategy=way, **shared)
        kind = PlannedTrainer if options else Trainer
        kind(OneWeight(), settings, collate, data, callbacks=[Clock()], **options).train()

    ways: dict[str, Any] = {
        "loader, random": lambda: load(torch.utils.data.DataLoader(data, SIZE, True, collate_fn=len)),
        "loader, lengthwise": lambda: load(
            lw.torch.DataLoader(data, lw.torch.BatchSampler([8] * len(data), batching), collate_fn=len)
        ),
        "Trainer, random": lambda: with_trainer("random"),
        "Trainer, group_by_length": lambda: with_trainer("group_by_length"),
        "Trainer, lengthwise": lambda: with_trainer("random", batching=batching),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _, (name, run) in itertools.product(range(5), ways.items()):
        times.clear()
        run()
        least[name] = min(least[name], 1e6 * float(np.median(np.diff(times))))
    return least


if __name__ == "__main__":
    main()
