"""DeepSpeed's engine under the loop of docs/trainers/deepspeed.md: the contract on two ranks, in its float32."""

import gc
import importlib.util
import os

import pytest
from contract import (
    EPOCHS,
    MICRO_BATCHES,
    Model,
    Record,
    Sequences,
    batch_sampler,
    check_resumed,
    check_run,
    loader_of,
    optimizer_of,
    run_on_ranks,
)

pytestmark = pytest.mark.processes

if importlib.util.find_spec("deepspeed") is None:
    pytest.skip("deepspeed is not installed", allow_module_level=True)

STOP = 7  # optimiser steps after which a run is left: the second of the second epoch
STAGES = (0, 1, 2, 3)  # of ZeRO: what is sharded
RESUMED = (0, 3)


class SingleModel(Model):
    """DeepSpeed does not reduce gradients of float64."""

    def __init__(self):
        super().__init__()
        self.float()

    def forward(self, numbers, features):
        return super().forward(numbers, features.float())


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


def train(folder, stage, stop=None, saved=False):
    """A run of three epochs: left after `stop` steps, or gone on with where one was left."""
    sampler, model, record = batch_sampler(), SingleModel(), Record()
    loader = loader_of(sampler)
    engine = engine_of(model, stage)
    if saved:
        _, client_state = engine.load_checkpoint(folder)
        loader.load_state_dict(client_state["loader"])
    before = engine.global_steps
    for epoch in range(loader.epoch, EPOCHS):
        loader.set_epoch(epoch)
        scales = sampler.loss_scales(micro_batches_averaged=True)
        for scale, (numbers, features, targets) in zip(scales, loader, strict=True):
            loss = (engine(numbers, features) - targets).square().mean()
            engine.backward(loss * scale)
            engine.step()
            if engine.global_steps == stop:
                break
        record.epochs.append(model.taken())
        if engine.global_steps == stop:
            engine.save_checkpoint(folder, client_state={"loader": loader.state_dict()})
            break
    record.steps, record.weights = engine.global_steps - before, weights_of(engine)
    return record


def weights_of(engine):
    from deepspeed import zero

    with zero.GatheredParameters(list(engine.module.parameters())):
        return engine.module.weights()


def loaders_of_deepspeed():
    """The batches of the loader that the engine makes of training data."""
    engine = engine_of(SingleModel(), 0)
    given = {"dataset": Sequences(), "num_local_io_workers": 0}
    taken = [numbers.tolist() for numbers, *_ in engine.deepspeed_io(**given)]
    ignored = batch_sampler()
    ignored.set_epoch(0)
    list(engine.deepspeed_io(**given))
    with pytest.raises(ValueError, match="no training_data to deepspeed"):
        ignored.set_epoch(1)
    return taken


def runs(folder):
    return {
        "whole": {stage: train(folder, stage) for stage in STAGES},
        "left": {stage: train(f"{folder}/{stage}", stage, stop=STOP) for stage in RESUMED},
        "resumed": {stage: train(f"{folder}/{stage}", stage, saved=True) for stage in RESUMED},
        "loaders": loaders_of_deepspeed(),
    }


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory):
    return run_on_ranks(runs, str(tmp_path_factory.mktemp("engine")))


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_keeps_the_contract(of_ranks, stage):
    check_run([run["whole"][stage] for run in of_ranks], rtol=1e-5)


@pytest.mark.parametrize("stage", RESUMED)
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(of_ranks, stage):
    check_resumed(*([run[name][stage] for run in of_ranks] for name in ("left", "resumed", "whole")))


def test_a_loader_that_deepspeed_makes_has_batches_of_its_own(of_ranks):
    batches = [batch for run in of_ranks for batch in run["loaders"]]
    assert {len(batch) for batch in batches} == {1}  # train_micro_batch_size_per_gpu: our sampler is not asked
