"""Runs: one setup from one seed, on one rank; saved after each epoch, and continued from there."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lengthwise as lw
from lengthwise_recipes.study.checkpoints import Checkpoints
from lengthwise_recipes.study.parallel import ALONE, Place
from lengthwise_recipes.study.results import EpochRow
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.setups import Setup
from lengthwise_recipes.study.task import Task

OPTIMIZERS = {"adam": torch.optim.Adam, "adadelta": torch.optim.Adadelta}


@dataclass(kw_only=True, slots=True)
class Run:
    """One setup from one seed, on one of its ranks; on rank 0 each epoch adds a row to `rows`.

    `wrapped` is the model in DDP if gradients are averaged, else the model. `done` counts the epochs. `tested` is the
    result of the test after the last epoch, None before.
    """

    setup: Setup
    settings: Settings
    seed: int
    place: Place
    model: nn.Module
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    averaging: lw.torch.ParameterAveraging | None = None
    rows: list[EpochRow] = field(default_factory=list)
    done: int = 0
    tested: Mapping[str, float] | None = None

    @property
    def name(self) -> str:
        return run_name(self.setup, self.seed)

    @property
    def origin(self) -> dict[str, Any]:
        """The fields of its rows that say which run they are of."""
        setup = self.setup
        strategy = {"strategy": setup.label, "processes": setup.processes, "averaging": setup.averaging}
        return strategy | {"seed": self.seed}

    def keep(self, checkpoints: Checkpoints | None) -> None:
        """Saves the state of the run, if there are checkpoints."""
        if checkpoints is None:
            return
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "tested": self.tested,
        }
        checkpoints.save(self.name, self.place.rank, self.done, state)

    def go_on(self, checkpoints: Checkpoints | None) -> None:
        """Loads the latest state that all ranks of the run have, if there is one."""
        if checkpoints is None:
            return
        rank, ranks = self.place.rank, self.setup.processes
        states = checkpoints.load(self.name, rank)
        epochs_of_ranks = self.place.gather(sorted(states), ranks)
        self.done = max(set(epochs_of_ranks[0]).intersection(*epochs_of_ranks[1:]), default=0)
        if self.done:
            state = states[self.done]
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.rows = [EpochRow(**row) for row in state["rows"]]
            self.tested = state["tested"]
            if self.averaging is not None:  # after an epoch V(t-1) is the model itself
                self.averaging.load_state_dict(dict(self.model.named_parameters()))


def run_name(setup: Setup, seed: int) -> str:
    """Returns the name of a run in checkpoints."""
    return f"{setup.label}, seed {seed}"


def first_runs(
    task: Task, setups: Sequence[Setup], settings: Settings, *, seed: int, place: Place = ALONE
) -> dict[str, Run]:
    """Makes a run for every setup with this rank, by label, all from the same weights."""
    torch.manual_seed(seed)
    first = task.model()
    return {
        setup.label: _first_run(setup, settings, copy_model(first, settings), seed, place)
        for setup in setups
        if place.rank < setup.processes
    }


def copy_model(model: nn.Module, settings: Settings) -> nn.Module:
    """Copies a model to the device of the settings; `to` also makes the weights of an LSTM contiguous for cuDNN."""
    return copy.deepcopy(model).to(settings.device)


def trial_step(task: Task, model: nn.Module, settings: Settings, batch: NDArray[np.int64], width: int) -> None:
    """Takes a whole training step with a copy of the model, and waits for its end."""
    copied = copy_model(model, settings)
    optimizer = new_optimizer(copied, settings)
    task.loss(copied, batch, width).backward()
    nn.utils.clip_grad_norm_(copied.parameters(), settings.clipped_norm)
    optimizer.step()
    if settings.device == "cuda":
        torch.cuda.synchronize()


def new_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    kind = OPTIMIZERS[settings.optimizer]
    return kind(model.parameters(), lr=settings.rate, weight_decay=settings.weight_decay)


def _first_run(setup: Setup, settings: Settings, model: nn.Module, seed: int, place: Place) -> Run:
    run = Run(
        setup=setup,
        settings=settings,
        seed=seed,
        place=place,
        model=model,
        wrapped=model,
        optimizer=new_optimizer(model, settings),
    )
    if setup.averaging == "gradient":
        run.wrapped = DistributedDataParallel(model, process_group=place.groups[setup.processes])
    if setup.averaging == "parameter":
        run.averaging = lw.torch.ParameterAveraging(
            model, alpha=settings.alpha, beta=settings.beta, group=place.groups[setup.processes]
        )
    return run
