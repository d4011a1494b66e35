"""Training: one network from the same weights under every setup, one epoch of each in turn.

Epochs are interleaved in rounds (epoch 1 of every setup, then epoch 2 of every setup), so that whatever else the
machine does falls on all alike; and each round has an order of its own, since batches of shapes that the setup before
has just had are computed faster. Only training is timed. Every rank runs `train`, and waits while setups of fewer ranks
train; rank 0 validates and tests. With checkpoints, training that was interrupted goes on after the last epoch of each
run, on a CPU bit by bit as if it had not been.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise_recipes.study.checkpoints import Checkpoints
from lengthwise_recipes.study.memory import peaks
from lengthwise_recipes.study.noise import measure_noise
from lengthwise_recipes.study.parallel import ALONE, Place
from lengthwise_recipes.study.results import EpochRow, Finding, RunRow
from lengthwise_recipes.study.runs import Run, first_runs, trial_step
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup, costliest_batch, waiting_share
from lengthwise_recipes.study.task import Task, weights, whole_spans


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """An epoch's training on all ranks: its loss is the mean over what the task counts, its seconds the slowest's."""

    plan: lw.Plan
    planning_seconds: float
    seconds: float
    loss: float


def train(
    task: Task,
    setups: Sequence[Setup],
    settings: Settings,
    checkpoints: Checkpoints | None = None,
    place: Place = ALONE,
) -> Generator[Finding]:
    """Trains every setup from every seed on this rank; on rank 0, yields a row for each epoch as it ends.

    Before them, where `settings.memory`, comes the peak of each setup; after a run's last epoch a row of its test.
    Epochs that `checkpoints` hold are not trained again, and their rows are yielded as they were. Sets torch's global
    seed and number of threads.
    """
    ranks = max(setup.processes for setup in setups)
    torch.set_num_threads(settings.threads)
    if settings.memory and place.rank == 0:
        yield from peaks(task, setups, settings)
    for seed in range(settings.seeds):
        runs = first_runs(task, setups, settings, seed=seed, place=place)
        for run in runs.values():
            run.go_on(checkpoints)
            if run.done < settings.epochs:
                _warm_up(run, task)
        for epoch in range(1, settings.epochs + 1):
            for setup in in_turn(setups, seed=seed, epoch=epoch):
                place.wait_for(ranks)
                if place.rank < setup.processes:
                    yield from _epoch(runs[setup.label], task, epoch, checkpoints)


def in_turn(setups: Sequence[Setup], *, seed: int, epoch: int) -> list[Setup]:
    """The setups in the order of a round, the same on all ranks."""
    order = np.random.default_rng(np.random.SeedSequence([seed, epoch])).permutation(len(setups))
    return [setups[place] for place in order]


def judge_model(judge: Callable[[nn.Module], Mapping[str, float]], model: nn.Module) -> dict[str, float]:
    """What `validate` or `test` of a task gives, in evaluation mode and without gradients."""
    model.eval()
    with torch.no_grad():
        return {name: float(value) for name, value in judge(model).items()}


def _warm_up(run: Run, task: Task) -> None:
    """Plans once and takes a step on the costliest batch with a copy, so that no first call falls on an epoch."""
    batch, width = costliest_batch(run.setup, task.lengths, seed=run.seed)
    trial_step(task, run.model, run.settings, batch, width)


def _epoch(run: Run, task: Task, epoch: int, checkpoints: Checkpoints | None) -> Generator[Finding]:
    """Trains and keeps an epoch that is not done yet; on rank 0, yields its row, and after the last the run's test."""
    if epoch > run.done:
        trained = train_epoch(run, task, epoch)
        if run.place.rank == 0:
            run.rows.append(_row(run, task, epoch, trained))
        run.done, run.tested = epoch, None
        run.keep(checkpoints)
    if run.place.rank == 0:
        yield run.rows[epoch - 1]
        if epoch == run.settings.epochs:
            yield from _test(run, task, checkpoints)


def _row(run: Run, task: Task, epoch: int, trained: Trained) -> EpochRow:
    """Validates, and says what the epoch cost and what came of it."""
    plan = trained.plan
    spans = whole_spans(task.lengths) if plan.spans is None else plan.spans
    noise = measure_noise(task, run.model, plan) if epoch in run.settings.length_share else {}
    sequences, starts, stops = spans[plan.sequences].T
    measured = lw.measure(plan, task.lengths)
    return EpochRow(
        strategy=run.setup.label,
        processes=run.setup.processes,
        averaging=run.setup.averaging,
        seed=run.seed,
        epoch=epoch,
        steps=plan.steps,
        seconds=trained.seconds,
        planning_seconds=trained.planning_seconds,
        elapsed_seconds=trained.seconds + (run.rows[-1].elapsed_seconds if run.rows else 0.0),
        sequences=len(np.unique(sequences)),
        useful_frames=int((stops - starts).sum()),
        padding_share=float(measured.padding_share),
        mixing=float(measured.mixing),
        straggler_waste=waiting_share(run.setup, plan),
        training_loss=trained.loss,
        metrics=judge_model(task.validate, run.model) | noise,
    )


def _test(run: Run, task: Task, checkpoints: Checkpoints | None) -> Generator[RunRow]:
    """Tests a run that was not tested yet; its row, where there is something to say."""
    if run.tested is None:
        run.tested = judge_model(task.test, run.model)
        run.keep(checkpoints)
    if run.tested:
        yield RunRow(
            strategy=run.setup.label,
            processes=run.setup.processes,
            averaging=run.setup.averaging,
            seed=run.seed,
            metrics=run.tested,
        )


def train_epoch(run: Run, task: Task, epoch: int) -> Trained:
    """Trains one epoch of a run on this rank."""
    ranks = run.setup.processes
    start = time.perf_counter()
    plan = lw.make_plan(task.lengths, run.setup.batching, seed=run.seed, epoch=epoch, world_size=ranks)
    planning = time.perf_counter() - start
    counted = weights(task, plan.spans)
    steps = _steps(run, plan, counted)
    # Dropout's masks follow seed, epoch and rank only: a strategy more or less in the study changes no other's.
    torch.manual_seed(int(np.random.SeedSequence([run.seed, epoch, run.place.rank]).generate_state(1)[0]))
    run.wrapped.train()
    run.place.wait_for(ranks)
    start = time.perf_counter()
    losses = torch.stack([_step(run, task, *step) for step in steps])
    if run.averaging is not None:
        run.averaging.average()
    own = losses.cpu().double().numpy()  # waits for a GPU to finish
    seconds = max(run.place.gather(time.perf_counter() - start, ranks))
    return Trained(plan=plan, planning_seconds=planning, seconds=seconds, loss=_mean_loss(run, plan, counted, own))


def _steps(
    run: Run, plan: lw.Plan, counted: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], int, float, float]]:
    """Batch, width, loss scale and learning rate of each step of this rank."""
    rank = run.place.rank
    widths = plan.padded_lengths[plan.grid[:, 0, rank], 0].tolist()  # what the plan pads to, a bucket's edge for some
    rates = run.setup.rates(plan, counted, run.settings.rate)
    return zip(plan.batches(rank), widths, _scales(run, plan, counted), rates, strict=True)


def _scales(run: Run, plan: lw.Plan, counted: NDArray[np.float64]) -> list[float]:
    """What this rank's losses are multiplied by: ranks that average gradients take the mean over the whole step."""
    if run.averaging is not None:
        return [1.0] * plan.steps
    return lw.loss_scales(plan, counted)[:, 0, run.place.rank].tolist()


def _mean_loss(run: Run, plan: lw.Plan, counted: NDArray[np.float64], losses: NDArray[np.float64]) -> float:
    """The mean loss of the sequences of all ranks, from this rank's of each step; batches taken again do not count."""
    rank = run.place.rank
    sums = np.add.reduceat(counted[plan.sequences], plan.offsets[:-1])
    sizes = np.where(plan.first_taken[:, 0, rank], sums[plan.grid[:, 0, rank]], 0.0)
    own = (float(losses @ sizes), float(sizes.sum()))
    totals, counts = zip(*run.place.gather(own, run.setup.processes), strict=True)
    return sum(totals) / sum(counts)


def _step(run: Run, task: Task, batch: NDArray[np.int64], width: int, scale: float, rate: float) -> Tensor:
    """One optimiser step on the loss of a batch padded to `width`; the loss itself, unscaled."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    loss = task.loss(run.wrapped, batch, width)
    run.optimizer.zero_grad()
    (scale * loss).backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), run.settings.clipped_norm)
    run.optimizer.step()
    return loss.detach()
