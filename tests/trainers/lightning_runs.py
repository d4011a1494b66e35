"""Runs under Lightning's Trainer, which each rank imports and the tests do not: importing Lightning takes seconds."""

import importlib
import logging
import os
import warnings
from functools import partial
from pathlib import Path

import lightning
import pytest
from contract import EPOCHS, MICRO_BATCHES, Model, Record, Sequences, batch_sampler, loader_of, optimizer_of
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint
from lightning.pytorch.loggers import Logger
from test_contract_lightning import SAVED, STOP, WAYS, WITH_WORKERS
from torch import distributed
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import lengthwise.torch.lightning
from lengthwise.torch.lightning import PlannedEpochs
from ranks import complaint

OURS = "`.*` must be |Epoch |The state "  # how our warnings begin


class Task(LightningModule):
    """Trains the contract's model; `planned` knows the scales."""

    def __init__(self, planned):
        super().__init__()
        self.model, self.record, self.planned = Model(), Record(), planned

    def training_step(self, batch, batch_idx):
        return self.model.loss(*batch) * (self.planned.scale(batch_idx) if self.planned else 1.0)

    def validation_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        return optimizer_of(self.model)

    def on_before_optimizer_step(self, optimizer):
        self.record.steps += 1

    def on_train_epoch_end(self):
        if batches := self.model.pop_batches():
            self.record.epochs.append(batches)


class Manual(Task):
    """The same by hand: nothing divides the loss here, and a validation within a step would clear its gradients."""

    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        self.manual_backward(super().training_step(batch, batch_idx))
        if (batch_idx + 1) % MICRO_BATCHES == 0:
            optimizer = self.optimizers()
            optimizer.step()
            optimizer.zero_grad()


class Unscaled(Task):
    """Forgets the scale."""

    def training_step(self, batch, batch_idx):
        return self.model.loss(*batch)


class Failing(Task):
    """Saves at the start of an epoch. Fails with the second batch of a step, two steps into the second epoch."""

    def on_train_epoch_start(self):
        self.trainer.save_checkpoint(Path(self.trainer.default_root_dir, "starts", f"step={self.global_step}.ckpt"))

    def training_step(self, batch, batch_idx):
        if (self.trainer.current_epoch, batch_idx) == (1, 2 * MICRO_BATCHES + 1):
            raise RuntimeError("out of memory")
        return super().training_step(batch, batch_idx)


def stateful(sampler):
    return StatefulDataLoader(Sequences(), batch_sampler=sampler)


def plain(sampler):
    return DataLoader(Sequences(), batch_sampler=sampler)


with_workers = partial(loader_of, workers=2)
LOADERS = {"stateful loader": stateful, "plain loader": plain}


def fit(saved=None, *, sampler=None, planned=True, task=Task, loader=loader_of, checkpoint=None, **settings):
    """A run of three epochs, or the rest of one: what it did."""
    sampler = batch_sampler() if sampler is None else sampler
    planned = PlannedEpochs(sampler) if planned else None
    module = task(planned)
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    arguments = {
        **{"max_epochs": EPOCHS, "accelerator": "cpu", "devices": int(os.environ["WORLD_SIZE"])},
        **{"use_distributed_sampler": False, "reload_dataloaders_every_n_epochs": 1, "val_check_interval": 0.5},
        **{"accumulate_grad_batches": sampler.micro_batches, "num_sanity_val_steps": 0},
        **{"callbacks": [each for each in (planned, checkpoint) if each], "enable_checkpointing": bool(checkpoint)},
    }
    trainer = Trainer(**(quiet | arguments | settings))
    trainer.fit(module, loader(sampler), DataLoader(Sequences(), batch_size=60), ckpt_path=saved)
    module.record.weights = module.model.weights()
    return module.record


def refusal(*given, **settings):
    """Returns the error of a run that must not go on."""
    with pytest.raises((ValueError, TypeError)) as caught:
        fit(*given, **settings)
    return str(caught.value)


def only_ours():
    """Makes errors of our own warnings, and hides Lightning's on its loggers, devices and loaders."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message=OURS)


def checkpoint_of(folder, name):
    way, steps = SAVED[name]
    return Path(folder, way, f"step={steps}.ckpt")


def run_whole(folder):
    """A run for each way to ask for checkpoints, and others."""
    runs = {"manual": fit(task=Manual, accumulate_grad_batches=1, val_check_interval=1.0)}
    for way, asked in WAYS.items():
        checkpoint = ModelCheckpoint(Path(folder, way), filename="{step}", save_top_k=-1, **asked)
        runs[way] = fit(checkpoint=checkpoint, loader=LOADERS.get(way, loader_of))
    return runs | {"workers": fit(loader=with_workers)}


def leave(folder):
    """Saves checkpoints of runs that fail, stop in mid-epoch, or were resumed, and at the start of each epoch."""
    failed = OnExceptionCheckpoint(Path(folder, "failed"), f"step={STOP}")
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(task=Failing, checkpoint=failed, default_root_dir=folder)
    stopped = ModelCheckpoint(Path(folder, "stopped"), filename="{step}", **WAYS["epochs"])
    fit(checkpoint=stopped, max_steps=STOP)
    resumed = ModelCheckpoint(Path(folder, "resumed"), filename="{step}", **WAYS["steps"])
    fit(checkpoint_of(folder, "in mid-epoch"), checkpoint=resumed, max_steps=STOP + 2)


def resume_all(folder):
    """Goes on from each checkpoint, by name and workers; with workers under a limit of steps, too."""
    leave(folder)
    ways = {name: LOADERS.get(way, loader_of) for name, (way, _) in SAVED.items()}
    runs = {(name, 0): fit(checkpoint_of(folder, name), loader=loader) for name, loader in ways.items()}
    limited = {"loader": with_workers, "max_steps": 1_000}
    return runs | {(name, 2): fit(checkpoint_of(folder, name), **limited) for name in WITH_WORKERS}


def import_under_2_4():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lightning, "__version__", "2.4.0")
        with pytest.raises(ImportError) as caught:
            importlib.reload(lengthwise.torch.lightning)
    return str(caught.value)


def refusals(folder):
    resumed = batch_sampler()
    resumed.resume(resumed.state_after(4))
    fit(planned=False, max_epochs=1, checkpoint=ModelCheckpoint(Path(folder, "unplanned"), filename="last"))
    unplanned = {"planned": False, "loader": with_workers, "reload_dataloaders_every_n_epochs": 0}
    return {
        "fetched too early": refusal(checkpoint_of(folder, "between epochs"), **unplanned),
        "sharded twice": refusal(use_distributed_sampler=True),
        "lengths read once": refusal(reload_dataloaders_every_n_epochs=0),
        "overfit": refusal(overfit_batches=2),
        "a batch before the checkpoint": complaint(lambda: PlannedEpochs(resumed).scale(3)),
        "Lightning 2.4": import_under_2_4(),
        "other steps": refusal(accumulate_grad_batches=3),
        "every rank everything": refusal(sampler=batch_sampler(rank=0, world_size=1)),
        "another sampler": refusal(loader=lambda _: loader_of(batch_sampler())),
        "no position": refusal(Path(folder, "unplanned", "last.ckpt")),
    }


def run_alone(folder):
    """Goes on with the run that two ranks left, in steps as large as before; and runs others of one process."""
    distributed.destroy_process_group()
    os.environ |= {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"}
    path = checkpoint_of(folder, "in mid-epoch")
    return {
        "as large": fit(path, sampler=batch_sampler(micro_batches=4)),
        "otherwise": refusal(path, sampler=batch_sampler(micro_batches=3)),
        "again": run_twice(),
        "unscaled": warnings_of(task=Unscaled, max_epochs=1),
        "told": run_logged(),
    }


def run_twice():
    """Two runs over one sampler; the first is left within its second epoch."""
    sampler = batch_sampler()
    return [fit(sampler=sampler, max_steps=steps) for steps in (15, -1)]


class Heard(Logger):
    """Keeps what it is given to log."""

    name, version = "heard", 0

    def __init__(self):
        super().__init__()
        self.metrics = []

    def log_hyperparams(self, *_, **__):
        pass

    def log_metrics(self, metrics, step=None):
        self.metrics.append(metrics)


def run_logged():
    """The messages of a run of two epochs, and what it gives to its logger after each step."""
    messages, log, logger = [], logging.getLogger("lightning.pytorch"), Heard()
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    fit(max_epochs=2, logger=logger, log_every_n_steps=1)
    log.setLevel(logging.ERROR)
    log.removeHandler(handler)
    return messages, logger.metrics


def warnings_of(*given, **settings):
    """Returns the warnings of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(*given, **settings)
    return [str(each.message) for each in caught]


def run_all(folder):
    only_ours()
    return {
        "whole": run_whole(folder),
        "resumed": resume_all(folder),
        "refused": refusals(folder),
        "alone": run_alone(folder),
    }
