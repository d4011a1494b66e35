"""Training: one network from the same weights under every setup, one epoch of each in turn.

Epochs are interleaved (epoch 1 of every setup, then epoch 2 of every setup), so that whatever else the machine does
falls on all alike. Only training is timed. Validation batches are the same for all, in random order, as in Ge et al.
2021. Every rank runs `train`, and waits while setups of fewer ranks train; rank 0 validates. With checkpoints, training
that was interrupted goes on after the last epoch of each run, bit by bit as if it had not been.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field

import jiwer
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import lengthwise as lw
from lengthwise.recipes.handwriting.checkpoints import Checkpoints
from lengthwise.recipes.handwriting.model import Recognizer, ctc_losses, decode, pad_frames
from lengthwise.recipes.handwriting.parallel import ALONE, Place
from lengthwise.recipes.handwriting.prepared import Prepared, PreparedCorpus
from lengthwise.recipes.handwriting.results import EpochRow
from lengthwise.recipes.handwriting.settings import Settings
from lengthwise.recipes.handwriting.setups import Setup, waiting_share

CLIPPED_NORM = 1.0
VALIDATION_BATCH = 16


@dataclass(kw_only=True, slots=True)
class Run:
    """One setup from one seed, on one of its ranks; on rank 0, `rows` grow by one an epoch.

    `wrapped` is the model as it is trained: in DDP where gradients are averaged. `done` counts the epochs.
    """

    setup: Setup
    seed: int
    place: Place
    model: nn.Module
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    averaging: lw.torch.ParameterAveraging | None = None
    rows: list[EpochRow] = field(default_factory=list)
    done: int = 0

    @property
    def name(self) -> str:
        return f"{self.setup.label}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """An epoch's training on all ranks: its loss is the mean over the sequences, its seconds are the slowest rank's."""

    plan: lw.Plan
    planning_seconds: float
    seconds: float
    loss: float


def train(
    setups: Sequence[Setup],
    settings: Settings,
    corpus: PreparedCorpus,
    place: Place = ALONE,
    checkpoints: Checkpoints | None = None,
) -> Generator[EpochRow]:
    """Trains every setup from every seed on this rank; on rank 0, yields a row for each epoch.

    Epochs that `checkpoints` hold are not trained again, and their rows are yielded as they were. Sets torch's global
    seed and number of threads.
    """
    ranks = max(setup.processes for setup in setups)
    torch.set_num_threads(settings.threads)
    for seed in range(settings.seeds):
        runs = first_runs(setups, settings, classes=len(corpus.alphabet) + 1, seed=seed, place=place)
        for run in runs.values():
            _go_on(run, checkpoints, settings.device)
            _warm_up(run, corpus.train)
        for epoch in range(1, settings.epochs + 1):
            for setup in setups:
                place.wait_for(ranks)
                if place.rank < setup.processes:
                    yield from _epoch(runs[setup.label], corpus, epoch, checkpoints)


def first_runs(
    setups: Sequence[Setup], settings: Settings, *, classes: int, seed: int, place: Place = ALONE
) -> dict[str, Run]:
    """Makes a run for every setup in which this rank takes part, by label, all from the same weights."""
    torch.manual_seed(seed)
    first = Recognizer(
        inputs=3 * settings.stack,
        classes=classes,
        hidden=settings.hidden,
        layers=settings.layers,
        dropout=settings.dropout,
        packed=settings.packed,
    ).to(settings.device)
    return {
        setup.label: _first_run(setup, settings, copy.deepcopy(first), seed, place)
        for setup in setups
        if place.rank < setup.processes
    }


def validate(model: nn.Module, samples: Prepared, alphabet: str) -> tuple[float, float]:
    """Mean CTC loss per symbol and character error rate, over fixed batches in random order."""
    batching = lw.strategy("random", cut=lw.FixedSize(VALIDATION_BATCH))
    plan = lw.make_plan(samples.lengths, batching, seed=0, epoch=0)
    losses, truths, guesses = [], [], []
    model.eval()
    with torch.no_grad():
        for batch in plan.batches():
            log_probabilities, counts, labels = _forward(model, samples, batch)
            losses.append(ctc_losses(log_probabilities, counts, labels))
            truths += [samples.texts[number] for number in batch]
            guesses += ["".join(alphabet[symbol - 1] for symbol in best) for best in decode(log_probabilities, counts)]
    return float(torch.cat(losses).mean()), float(jiwer.cer(truths, guesses))


def _first_run(setup: Setup, settings: Settings, model: nn.Module, seed: int, place: Place) -> Run:
    kind = {"adam": torch.optim.Adam, "adadelta": torch.optim.Adadelta}[settings.optimizer]
    run = Run(
        setup=setup,
        seed=seed,
        place=place,
        model=model,
        wrapped=model,
        optimizer=kind(model.parameters(), lr=settings.rate),
    )
    if setup.averaging == "gradient":
        run.wrapped = DistributedDataParallel(model, process_group=place.groups[setup.processes])
    if setup.averaging == "parameter":
        run.averaging = lw.torch.ParameterAveraging(
            model, alpha=settings.alpha, beta=settings.beta, group=place.groups[setup.processes]
        )
    return run


def _go_on(run: Run, checkpoints: Checkpoints | None, device: str) -> None:
    """Takes the latest state that all ranks of the run have kept, if there is one."""
    if checkpoints is None:
        return
    rank, ranks = run.place.rank, run.setup.processes
    kept = run.place.gathered(checkpoints.epochs(run.name, rank), ranks)
    run.done = max(set(kept[0]).intersection(*kept[1:]), default=0)
    if run.done:
        state = checkpoints.load(run.name, rank, run.done, device=device)
        run.model.load_state_dict(state["model"])
        run.optimizer.load_state_dict(state["optimizer"])
        run.rows = [EpochRow(**row) for row in state["rows"]]
        if run.averaging is not None:  # after an epoch V(t-1) is the model's own
            run.averaging.load_state_dict(dict(run.model.named_parameters()))


def _epoch(run: Run, corpus: PreparedCorpus, epoch: int, checkpoints: Checkpoints | None) -> Generator[EpochRow]:
    """Trains and keeps an epoch that is not done yet; on rank 0, yields its row."""
    if epoch > run.done:
        trained = _train_epoch(run, corpus.train, epoch)
        if run.place.rank == 0:
            run.rows.append(_row(run, corpus, epoch, trained))
        run.done = epoch
        if checkpoints is not None:
            rows = [asdict(row) for row in run.rows]
            state = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict(), "rows": rows}
            checkpoints.save(run.name, run.place.rank, epoch, state)
    if run.place.rank == 0:
        yield run.rows[epoch - 1]


def _row(run: Run, corpus: PreparedCorpus, epoch: int, trained: Trained) -> EpochRow:
    """Validates, and says what the epoch cost and what came of it."""
    plan = trained.plan
    validation_loss, error_rate = validate(run.model, corpus.validation, corpus.alphabet)
    measured = lw.measure(plan, corpus.train.lengths)
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
        useful_frames=int(corpus.train.lengths[plan.sequences].sum()),
        padding_share=float(measured.padding_share),
        mixing=float(measured.mixing),
        straggler_waste=waiting_share(run.setup, plan),
        training_loss=trained.loss,
        validation_loss=validation_loss,
        character_error_rate=error_rate,
    )


def _train_epoch(run: Run, train: Prepared, epoch: int) -> Trained:
    ranks, rank = run.setup.processes, run.place.rank
    start = time.perf_counter()
    plan = lw.make_plan(train.lengths, run.setup.batching, seed=run.seed, epoch=epoch, world_size=ranks)
    planning = time.perf_counter() - start
    # What the plan pads to, a bucket's edge for some: stacked as the points are.
    widths = (-(-plan.padded_lengths[plan.grid[:, 0, rank], 0] // train.stack)).tolist()
    # Dropout's masks follow seed, epoch and rank only: a strategy more or less in the study changes no other's.
    torch.manual_seed(int(np.random.SeedSequence([run.seed, epoch, rank]).generate_state(1)[0]))
    run.wrapped.train()
    run.place.wait_for(ranks)
    start = time.perf_counter()
    steps = zip(plan.batches(rank), widths, _scales(run, plan), strict=True)
    losses = torch.cat([_step(run, train, batch, width, scale) for batch, width, scale in steps])
    if run.averaging is not None:
        run.averaging.average()
    total = float(losses.sum())  # waits for a GPU to finish
    own = (total, len(losses), time.perf_counter() - start)
    totals, counts, seconds = zip(*run.place.gathered(own, ranks), strict=True)
    return Trained(plan=plan, planning_seconds=planning, seconds=max(seconds), loss=sum(totals) / sum(counts))


def _scales(run: Run, plan: lw.Plan) -> list[float]:
    """What this rank's losses are multiplied by: ranks that average gradients take the mean over the whole step."""
    if run.averaging is not None:
        return [1.0] * plan.steps
    return lw.loss_scales(plan)[:, 0, run.place.rank].tolist()


def _step(run: Run, train: Prepared, batch: NDArray[np.int64], width: int, scale: float) -> Tensor:
    """One optimiser step on the mean loss of a batch padded to `width` frames; the losses of its sequences [B]."""
    losses = ctc_losses(*_forward(run.wrapped, train, batch, width))
    run.optimizer.zero_grad()
    (scale * losses.mean()).backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), CLIPPED_NORM)
    run.optimizer.step()
    return losses.detach()


def _forward(
    model: nn.Module, samples: Prepared, batch: NDArray[np.int64], width: int = 0
) -> tuple[Tensor, Tensor, list[Tensor]]:
    frames, counts = pad_frames([samples.frames[number] for number in batch], width=width)
    device = next(model.parameters()).device
    return model(frames.to(device), counts.to(device)), counts, [samples.labels[number] for number in batch]


def _warm_up(run: Run, train: Prepared) -> None:
    """Plans once and runs the longest sequences through a copy, so that no first call's cost falls on an epoch."""
    lw.make_plan(train.lengths, run.setup.batching, seed=run.seed, epoch=0, world_size=run.setup.processes)
    model = copy.deepcopy(run.model)
    longest = np.argsort(train.lengths, kind="stable")[-VALIDATION_BATCH:]
    ctc_losses(*_forward(model, train, longest)).mean().backward()
