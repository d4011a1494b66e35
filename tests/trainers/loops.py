"""Loops of one's own, as the pages on trainers write them: plain, under Accelerate, and with DeepSpeed's engine."""

import contextlib
import gc
import os
from pathlib import Path

import accelerate
import torch
from contract import EPOCHS, MICRO_BATCHES, Model, Record, batch_sampler, loader_of, optimizer_of
from torch.nn.parallel import DistributedDataParallel


class Dropping(Model):
    """Needs the state of PyTorch's generator to go on as if it had not been left."""

    def forward(self, numbers, features):
        return super().forward(numbers, torch.nn.functional.dropout(features, 0.3, self.training))


class Single(Model):
    """Trains in float32: DeepSpeed does not reduce gradients of float64."""

    def __init__(self):
        super().__init__()
        self.float()

    def forward(self, numbers, features):
        return super().forward(numbers, features.float())


class Loop:
    """A sampler, a loader and a model; `train` takes a batch, and tells how many steps that made."""

    kind = Model
    micro_batches_averaged = True  # the trainer divides the gradients of a step by their number

    def __init__(self, *, micro_batches=MICRO_BATCHES, workers=0):
        self.sampler = batch_sampler(micro_batches=micro_batches)
        self.loader, self.model = loader_of(self.sampler, workers), self.kind()

    def loss(self, wrapped, numbers, features, targets):
        return (wrapped(numbers, features) - targets).square().mean()

    def weights(self):
        return self.model.weights()

    def run(self, folder, *, stop=None, saved=False):
        """A run of three epochs: left and saved after `stop` steps, or gone on with where one was saved."""
        record = Record()
        if saved:
            self.load(folder)
        for epoch in range(self.loader.epoch, EPOCHS):
            self.loader.set_epoch(epoch)
            scales = self.sampler.loss_scales(micro_batches_averaged=self.micro_batches_averaged)
            for batch, scale in zip(self.loader, scales, strict=True):
                record.steps += self.train(batch, scale)
                if record.steps == stop:
                    break
            record.epochs.append(self.model.pop_batches())
            if record.steps == stop:
                self.save(folder)
                break
        record.weights = self.weights()
        return record


class Plain(Loop):
    """A loop over DistributedDataParallel."""

    micro_batches_averaged = False

    def __init__(self, **given):
        super().__init__(**given)
        self.wrapped, self.optimizer, self.taken = DistributedDataParallel(self.model), optimizer_of(self.model), 0
        self.parts = {"model": self.model, "optimizer": self.optimizer, "loader": self.loader}

    def train(self, batch, scale):
        self.taken += 1
        is_last = self.taken % self.sampler.micro_batches == 0
        with contextlib.nullcontext() if is_last else self.wrapped.no_sync():
            (self.loss(self.wrapped, *batch) * scale).backward()
        if is_last:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return is_last

    def save(self, folder):
        rank = torch.distributed.get_rank()
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, Path(f"{folder}.{rank}.pt"))

    def load(self, folder):
        for name, state in torch.load(Path(f"{folder}.{torch.distributed.get_rank()}.pt")).items():
            self.parts[name].load_state_dict(state)


class Accelerated(Loop):
    """A loop under Accelerate, which keeps the position of a loader that it prepares, or that is registered with it."""

    def __init__(self, *, kind=Model, prepares=True, **given):
        self.kind = kind
        super().__init__(**given)  # before there are ranks
        self.accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=MICRO_BATCHES)
        torch.manual_seed(self.accelerator.process_index)
        self.wrapped, self.optimizer = self.accelerator.prepare(self.model, optimizer_of(self.model))
        if prepares:
            assert self.accelerator.prepare(self.loader) is self.loader
        else:
            self.accelerator.register_for_checkpointing(self.loader)

    def train(self, batch, scale):
        with self.accelerator.accumulate(self.wrapped):
            self.accelerator.backward(self.loss(self.wrapped, *batch) * scale)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return self.accelerator.sync_gradients

    def save(self, folder):
        self.accelerator.save_state(folder)

    def load(self, folder):
        self.accelerator.load_state(folder)


def engine_of(model, stage):
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    gc.freeze()  # each engine collects the garbage of all that is imported
    deepspeed.ops.__compatible_ops__ = {}  # gloo will do: nothing is to be compiled
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": MICRO_BATCHES,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer_of(model), config=config)
    return engine


class Engine(Loop):
    """The loop of DeepSpeed; `stage` of ZeRO says what is sharded."""

    kind = Single

    def __init__(self, *, stage):
        super().__init__()
        self.engine = engine_of(self.model, stage)

    def train(self, batch, scale):
        before = self.engine.global_steps
        self.engine.backward(self.loss(self.engine, *batch) * scale)
        self.engine.step()
        return self.engine.global_steps - before

    def save(self, folder):
        self.engine.save_checkpoint(folder, client_state={"loader": self.loader.state_dict()})

    def load(self, folder):
        _, client_state = self.engine.load_checkpoint(folder)
        self.loader.load_state_dict(client_state["loader"])

    def weights(self):
        from deepspeed import zero

        with zero.GatheredParameters(list(self.engine.module.parameters())):
            return self.engine.module.weights()
