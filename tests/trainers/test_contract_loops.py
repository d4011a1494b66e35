"""Loops of one's own, under Accelerate and under DeepSpeed: the contract on two ranks, and on one that goes on."""

from importlib.util import find_spec

import contract
import pytest
import torch
from contract import EPOCHS, LENGTHS, MICRO_BATCHES, RANKS, Sequences, batch_sampler, loader_of, plan
from torch import distributed
from torch.utils.data import DataLoader

import lengthwise as lw
from ranks import ask_ranks

pytestmark = pytest.mark.processes

accelerate = pytest.importorskip("accelerate")
import loops  # noqa: E402
from accelerate.utils import DataLoaderConfiguration  # noqa: E402

FIRST = plan(0).steps
STOP = FIRST + 2  # optimiser steps after which a run is left: in the middle of the second epoch
LOOPS = {
    "Accelerate": (loops.Accelerated, {}),
    "Accelerate, dropout": (loops.Accelerated, {"kind": loops.Dropping, "workers": 2}),
    "Accelerate, registered": (loops.Accelerated, {"prepares": False}),
    "plain": (loops.Plain, {"workers": 2}),
}
STAGES = range(4) if find_spec("deepspeed") else ()
LOOPS |= {f"DeepSpeed, stage {stage}": (loops.Engine, {"stage": stage}) for stage in STAGES}
RESUMED = [name for name in LOOPS if name not in ("DeepSpeed, stage 1", "DeepSpeed, stage 2")]
PREPARED = {  # settings under which Accelerate prepares a loader of PyTorch's, and what is said of our sampler in it
    "even batches": ({"even_batches": True}, "The sampler has shared its batches out to 2 ranks"),
    "uneven batches": ({"even_batches": False}, "The sampler has shared its batches out to 2 ranks"),
    "stateful": ({"use_stateful_dataloader": True}, "The sampler has shared its batches out to 2 ranks"),
    "split batches": ({"split_batches": True}, "you must have a `batch_size` attribute"),
}


def loader_of_torch(sampler):
    return DataLoader(Sequences(), batch_sampler=sampler)


def evaluation_sampler():
    return lw.torch.EvaluationSampler(LENGTHS, lw.Budget(2_000))


SAMPLERS = {"training": batch_sampler, "evaluation": evaluation_sampler}


def evaluate():
    """An evaluation in the middle of an epoch: the mean of the targets, their order, and the position it leaves."""
    loader = loader_of(batch_sampler())
    for _ in zip(range(3), loader, strict=False):
        pass
    sampler, outputs, mean = evaluation_sampler(), [], torch.zeros((), dtype=torch.float64)
    for (numbers, _, targets), weight in zip(loader_of_torch(sampler), sampler.weights(), strict=True):
        mean += weight * targets.mean()
        outputs += numbers
    mean = accelerate.Accelerator(cpu=True).reduce(mean, reduction="sum")
    return float(mean), sampler.restore_order(outputs), loader.delivered


def accelerator_of(settings):
    return accelerate.Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**settings))


def numbers_of(loader):
    return [numbers.tolist() for numbers, *_ in loader]


def refusal(make_sampler, settings):
    """Returns the error of a loader that Accelerate prepared with these settings."""
    with pytest.raises((ValueError, RuntimeError)) as caught:
        list(accelerator_of(settings).prepare(loader_of_torch(make_sampler())))
    return str(caught.value)


def check_loader_of_deepspeed():
    """The engine makes its own loader of training data, which does not ask our sampler."""
    ignored = batch_sampler()
    ignored.set_epoch(0)
    list(loops.engine_of(loops.Single(), 0).deepspeed_io(dataset=Sequences(), num_local_io_workers=0))
    with pytest.raises(ValueError, match="no training_data to deepspeed"):
        ignored.set_epoch(1)


def run_alone(folder):
    """Goes on with the run that two ranks left, in steps as large as before."""
    distributed.destroy_process_group()
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    return loops.Plain(micro_batches=MICRO_BATCHES * RANKS).run(f"{folder}/plain", saved=True)


def runs(folder):
    answers = {"whole": {}, "left": {}, "rest": {}}
    for name, (loop, given) in LOOPS.items():
        answers["whole"][name] = loop(**given).run(folder)
        if name in RESUMED:
            answers["left"][name] = loop(**given).run(f"{folder}/{name}", stop=STOP)
            answers["rest"][name] = loop(**given).run(f"{folder}/{name}", saved=True)
    answers["evaluated"] = evaluate()
    for kind, make_sampler in SAMPLERS.items():
        answers[kind] = {name: refusal(make_sampler, settings) for name, (settings, _) in PREPARED.items()}
    every = [{"dispatch_batches": True}, *(settings for settings, _ in PREPARED.values())]
    answers["ours"] = [numbers_of(accelerator_of(settings).prepare(loader_of(batch_sampler()))) for settings in every]
    if STAGES:
        check_loader_of_deepspeed()
    return answers | {"alone": run_alone(folder)}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return ask_ranks(runs, str(tmp_path_factory.mktemp("loops")), start=False)


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "Accelerate, dropout"])
def test_a_run_keeps_the_contract(ranks, name):
    contract.check_run([rank["whole"][name] for rank in ranks], rtol=1e-5 if "DeepSpeed" in name else 1e-9)


@pytest.mark.parametrize("name", RESUMED)
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(ranks, name):
    contract.check_resumed(*([rank[part][name] for rank in ranks] for part in ("left", "rest", "whole")))


def test_another_number_of_ranks_takes_the_same_steps(ranks):
    taken = [batch for rank in ranks for batch in rank["left"]["plain"].epochs[1]]
    assert len(taken) == (STOP - FIRST) * MICRO_BATCHES * RANKS
    for rank in ranks:
        rest = rank["alone"]
        contract.check_every_sequence_once([taken, rest.epochs[0]])
        assert rest.steps == sum(plan(epoch).steps for epoch in range(EPOCHS)) - STOP
        contract.check_weights([rest])


def test_ranks_evaluate_each_sequence_once_and_restore_the_order(ranks):
    targets = torch.stack([Sequences()[number][2] for number in range(len(LENGTHS))])
    for rank in ranks:
        mean, outputs, delivered = rank["evaluated"]
        assert mean == pytest.approx(float(targets.mean()), rel=1e-12)
        assert outputs == list(range(len(LENGTHS)))
        assert delivered == 3


def test_a_loader_of_ours_is_left_alone_whatever_the_settings_of_accelerate(ranks):
    for number, rank in enumerate(ranks):
        assert rank["ours"] == [[batch.tolist() for batch in plan(0).batches(number)]] * 5


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("name", PREPARED)
def test_a_loader_of_pytorchs_that_accelerate_prepared_is_refused_whatever_the_settings(ranks, kind, name):
    first, second = (rank[kind][name] for rank in ranks)
    assert PREPARED[name][1] in first
    assert first == second
