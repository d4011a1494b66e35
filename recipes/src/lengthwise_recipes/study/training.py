"""Trains one network from the same weights under every setup, one epoch of each after the other.

Epochs are in rounds: epoch 1 of every setup, then epoch 2 of every setup. So other work of the machine slows all setups
alike. Each round has another order, because batch shapes of the previous setup are computed faster. Only training is
timed; with `settings.timed`, rounds of first epochs are timed after it, and not validated. Every rank runs `train`, and
waits while setups of fewer ranks train; rank 0 validates and tests. With checkpoints, interrupted training continues
after the last epoch of each run, on a CPU with bit-identical results.
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
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.study.checkpoints import Checkpoints
from lengthwise_recipes.study.memory import peaks
from lengthwise_recipes.study.noise import measure_noise
from lengthwise_recipes.study.parallel import ALONE, Place
from lengthwise_recipes.study.results import EpochRow, Finding, RunRow, Timed
from lengthwise_recipes.study.runs import Run, first_runs, trial_step
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup, costliest_batch, waiting_share
from lengthwise_recipes.study.task import Task, weights, whole_spans


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """The training of an epoch on all ranks: its mean loss, and the seconds of the slowest rank."""

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
    """Trains every setup from every seed on this rank. On rank 0 it yields a row at the end of each epoch.

    With `settings.memory` it yields the peak of each setup first. After the last epoch of a run it yields a row of its
    test. Epochs in `checkpoints` are not trained again; their rows are yielded from there. Sets the global seed and the
    number of threads of torch.
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
    for repeat in range(settings.timed):
        runs = first_runs(task, setups, settings, seed=repeat, place=place)
        for run in runs.values():
            _warm_up(run, task)
        for setup in in_turn(setups, seed=repeat, epoch=1):
            place.wait_for(ranks)
            if place.rank < setup.processes:
                trained = train_epoch(runs[setup.label], task, 1)
                if place.rank == 0:
                    yield Timed(strategy=setup.label, row=_row(runs[setup.label], task, 1, trained, {}))


def in_turn(setups: Sequence[Setup], *, seed: int, epoch: int) -> list[Setup]:
    """Returns the setups in the order of a round, the same on all ranks."""
    order = np.random.default_rng(np.random.SeedSequence([seed, epoch])).permutation(len(setups))
    return [setups[place] for place in order]


def judge_model(judge: Callable[[nn.Module], Mapping[str, float]], model: nn.Module) -> dict[str, float]:
    """Calls `validate` or `test` of a task, in evaluation mode and without gradients."""
    model.eval()
    with torch.no_grad():
        return {name: float(value) for name, value in judge(model).items()}


def _warm_up(run: Run, task: Task) -> None:
    """Plans once and takes a step on the costliest batch with a copy, so that no epoch includes a slow first call."""
    batch, width = costliest_batch(run.setup, task.lengths, seed=run.seed)
    trial_step(task, run.model, run.settings, batch, width)


def _epoch(run: Run, task: Task, epoch: int, checkpoints: Checkpoints | None) -> Generator[Finding]:
    """Trains and saves an epoch unless it is done; on rank 0, yields its row, and after the last epoch the test."""
    if epoch > run.done:
        trained = train_epoch(run, task, epoch)
        if run.place.rank == 0:
            metrics = judge_model(task.validate, run.model)
            if epoch in run.settings.length_share:
                metrics |= measure_noise(task, run.model, trained.plan)
            run.rows.append(_row(run, task, epoch, trained, metrics))
        run.done, run.tested = epoch, None
        run.keep(checkpoints)
    if run.place.rank == 0:
        yield run.rows[epoch - 1]
        if epoch == run.settings.epochs:
            yield from _test(run, task, checkpoints)


def _row(run: Run, task: Task, epoch: int, trained: Trained, metrics: Mapping[str, float]) -> EpochRow:
    plan = trained.plan
    spans = whole_spans(task.lengths) if plan.spans is None else plan.spans
    sequences, starts, stops = spans[plan.sequences].T
    return EpochRow(
        **run.origin,
        epoch=epoch,
        steps=plan.steps,
        seconds=trained.seconds,
        planning_seconds=trained.planning_seconds,
        elapsed_seconds=trained.seconds + (run.rows[-1].elapsed_seconds if run.rows else 0.0),
        sequences=len(np.unique(sequences)),
        useful_frames=int((stops - starts).sum()),
        padding_share=float(lw.measure(plan, task.lengths).padding_share),
        mixing=measure_mixing(plan, task.lengths),
        straggler_waste=waiting_share(run.setup, plan),
        training_loss=trained.loss,
        metrics=metrics,
    )


def _test(run: Run, task: Task, checkpoints: Checkpoints | None) -> Generator[RunRow]:
    """Tests a run unless it is tested; yields its row if the test has metrics."""
    if run.tested is None:
        run.tested = judge_model(task.test, run.model)
        run.keep(checkpoints)
    if run.tested:
        yield RunRow(**run.origin, metrics=run.tested)


def train_epoch(run: Run, task: Task, epoch: int) -> Trained:
    """Trains one epoch of a run on this rank."""
    ranks = run.setup.processes
    start = time.perf_counter()
    plan = lw.make_plan(task.lengths, run.setup.batching, seed=run.seed, epoch=epoch, world_size=ranks)
    planning = time.perf_counter() - start
    counted = weights(task, plan.spans)
    steps = _steps(run, plan, counted)
    # The masks of dropout depend on seed, epoch and rank only, not on the other strategies of the study.
    torch.manual_seed(int(np.random.SeedSequence([run.seed, epoch, run.place.rank]).generate_state(1)[0]))
    run.wrapped.train()
    run.place.wait_for(ranks)
    start = time.perf_counter()
    losses = torch.stack([_step(run, task, *step) for step in steps])
    if run.averaging is not None:
        run.averaging.average()
    step_losses = losses.cpu().double().numpy()  # waits for a GPU to finish
    seconds = max(run.place.gather(time.perf_counter() - start, ranks))
    return Trained(
        plan=plan, planning_seconds=planning, seconds=seconds, loss=_mean_loss(run, plan, counted, step_losses)
    )


def _steps(
    run: Run, plan: lw.Plan, counted: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], int, float, float]]:
    """Returns batch, width, loss scale and learning rate of each step of this rank."""
    rank = run.place.rank
    widths = plan.padded_lengths[plan.grid[:, 0, rank], 0].tolist()  # the padded lengths of the plan
    rates = run.setup.rates(plan, counted, run.settings.rate)
    return zip(plan.batches(rank), widths, _scales(run, plan, counted), rates, strict=True)


def _scales(run: Run, plan: lw.Plan, counted: NDArray[np.float64]) -> list[float]:
    """Returns the factors of the losses of this rank, for gradients that are averaged over the whole step."""
    if run.averaging is not None:
        return [1.0] * plan.steps
    return lw.loss_scales(plan, counted)[:, 0, run.place.rank].tolist()


def _mean_loss(run: Run, plan: lw.Plan, counted: NDArray[np.float64], losses: NDArray[np.float64]) -> float:
    """Returns the mean loss over all ranks, from the losses of this rank; repeated batches do not count."""
    rank = run.place.rank
    sums = np.add.reduceat(counted[plan.sequences], plan.offsets[:-1])
    sizes = np.where(plan.first_taken[:, 0, rank], sums[plan.grid[:, 0, rank]], 0.0)
    rank_sums = (float(losses @ sizes), float(sizes.sum()))
    totals, counts = zip(*run.place.gather(rank_sums, run.setup.processes), strict=True)
    return sum(totals) / sum(counts)


def _step(run: Run, task: Task, batch: NDArray[np.int64], width: int, scale: float, rate: float) -> Tensor:
    """Takes an optimiser step on a batch padded to `width`; returns the loss without its scale."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    loss = task.loss(run.wrapped, batch, width)
    run.optimizer.zero_grad()
    (scale * loss).backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), run.settings.clipped_norm)
    run.optimizer.step()
    return loss.detach()
