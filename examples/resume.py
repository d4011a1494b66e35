"""A run on three ranks is cut off within an epoch, and goes on with two: no sequence is lost, and none taken twice.

python examples/resume.py
"""

import os
import tempfile
from multiprocessing import Process
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

import lengthwise as lw

lengths = 4 + lw.example_lengths("long-tailed", count=600) // 64
sequences = [torch.full((int(length), 1), number / 600) for number, length in enumerate(lengths)]  # shows its number


def train(rank: int, ranks: int, folder: Path, cut_off_after: int) -> None:
    """Trains one epoch on one rank, or the rest of the epoch if there is a checkpoint."""
    torch.distributed.init_process_group("gloo", f"file://{folder}/ranks-{ranks}", rank=rank, world_size=ranks)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sampler = lw.torch.BatchSampler(lengths, lw.Batching(budget=150, padding=0.1), seed=0)
    loader = lw.torch.DataLoader(sequences, sampler, quiet=True)
    if (checkpoint := folder / "checkpoint.pt").exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])  # saved on three ranks: these two share out the rest
    for step, (batch, scale) in enumerate(zip(loader, sampler.loss_scales(weights=lengths), strict=True), 1):
        (model(batch.values)[batch.mask].square().mean() * scale).backward()
        optimizer.step()
        optimizer.zero_grad()
        with (folder / f"{ranks}-ranks-{rank}").open("a") as taken:
            print(step, *(600 * batch.values[:, 0, 0]).round().int().tolist(), file=taken)
        if step == cut_off_after:
            os._exit(1)  # as if the machine were gone
        if step % 10 == 0 and rank == 0:
            torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, checkpoint)
    del model  # if the DDP model is freed last, PyTorch 2.13 may hang
    torch.distributed.destroy_process_group()


def run(ranks: int, folder: Path, *, cut_off_after: int = 0, steps: int = 600) -> list[int]:
    """Runs all ranks, and returns the sequences that they took in the first `steps` steps."""
    processes = [Process(target=train, args=(rank, ranks, folder, cut_off_after)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = [line.split() for path in folder.glob(f"{ranks}-ranks-*") for line in path.read_text().splitlines()]
    return [int(number) for step, *numbers in lines if int(step) <= steps for number in numbers]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        before, after = run(3, Path(folder), cut_off_after=14, steps=10), run(2, Path(folder))
    print(f"3 ranks were cut off after 14 steps; the checkpoint of step 10 knows of {len(before)} sequences.")
    print(f"2 ranks went on and took the other {len(after)}; each once: {sorted(before + after) == list(range(600))}.")
