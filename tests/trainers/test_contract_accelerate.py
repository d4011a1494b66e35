"""A loop under Accelerate: the contract on two ranks."""

import pytest
import torch
from contract import (
    BATCHING,
    EPOCHS,
    LENGTHS,
    MICRO_BATCHES,
    Model,
    Record,
    Sequences,
    batch_sampler,
    check_every_sequence_once,
    check_resumed,
    check_run,
    loader_of,
    optimizer_of,
    plan,
    run_on_ranks,
)
from torch.nn import functional
from torch.utils.data import DataLoader

import lengthwise as lw

pytestmark = pytest.mark.processes

accelerate = pytest.importorskip("accelerate")
from accelerate.utils import DataLoaderConfiguration  # noqa: E402

STOP = plan(0).steps + 2  # optimiser steps after which a run is left: in the middle of the second epoch
PREPARED = {  # settings under which Accelerate prepares a loader of PyTorch's, and what is said of our sampler in it
    "even batches": ({"even_batches": True}, "`batches` must be shared out once"),
    "uneven batches": ({"even_batches": False}, "`batches` must be shared out once"),
    "stateful": ({"use_stateful_dataloader": True}, "`batches` must be shared out once"),
    "split batches": ({"split_batches": True}, "you must have a `batch_size` attribute"),
}


class Dropping(Model):
    """Needs the state of PyTorch's generator to go on as if it had not been left."""

    def forward(self, numbers, features):
        return super().forward(numbers, functional.dropout(features, 0.3, self.training))


def train(folder, kind=Model, *, workers=0, stop=None, saved=False, prepares=True):
    """A run of three epochs: left and saved after `stop` steps, or gone on with where one was saved."""
    sampler, record = batch_sampler(), Record()  # before there are ranks
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=MICRO_BATCHES)
    loader = loader_of(sampler, workers)
    torch.manual_seed(accelerator.process_index)
    model = kind()
    wrapped, optimizer = accelerator.prepare(model, optimizer_of(model))
    if prepares:
        assert accelerator.prepare(loader) is loader
    else:
        accelerator.register_for_checkpointing(loader)
    if saved:
        accelerator.load_state(folder)
    for epoch in range(loader.epoch, EPOCHS):
        loader.set_epoch(epoch)
        scales = sampler.loss_scales(micro_batches_averaged=True)
        for (numbers, features, targets), scale in zip(loader, scales, strict=True):
            with accelerator.accumulate(wrapped):
                accelerator.backward((wrapped(numbers, features) - targets).square().mean() * scale)
                optimizer.step()
                optimizer.zero_grad()
            record.steps += accelerator.sync_gradients
            if record.steps == stop:
                break
        record.epochs.append(model.taken())
        if record.steps == stop:
            accelerator.save_state(folder)
            break
    record.weights = model.weights()
    return record


def plain(sampler):
    return DataLoader(Sequences(), batch_sampler=sampler)


class Naive:
    """A sampler of one's own: the same batches, and the attributes that a batch sampler of PyTorch has."""

    batch_size, drop_last = 4, False

    def __iter__(self):
        yield from (batch.tolist() for batch in lw.make_plan(LENGTHS, BATCHING).batches())

    def __len__(self):
        return len(lw.make_plan(LENGTHS, BATCHING))


def evaluation_sampler():
    return lw.torch.EvaluationSampler(LENGTHS, lw.Budget(2_000))


SAMPLERS = {"training": batch_sampler, "evaluation": evaluation_sampler}


def evaluated():
    """An evaluation in the middle of an epoch: the mean of the targets, their order, and the position it leaves."""
    accelerator = accelerate.Accelerator(cpu=True)
    training = batch_sampler()
    loader = loader_of(training)
    for _ in zip(range(3), loader, strict=False):
        pass
    sampler, outputs, mean = evaluation_sampler(), [], torch.zeros((), dtype=torch.float64)
    for (numbers, _, targets), weight in zip(plain(sampler), sampler.weights(), strict=True):
        mean += weight * targets.mean()
        outputs += numbers
    return float(accelerator.reduce(mean, reduction="sum")), sampler.restore_order(outputs), loader.delivered


def refusal(sampler, settings):
    """What is said of a loader that Accelerate prepared so."""
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**settings))
    with pytest.raises((ValueError, RuntimeError)) as caught:
        list(accelerator.prepare(plain(sampler)))
    return str(caught.value)


def refusals(made):
    """What is said of each loader that Accelerate prepares, by its settings."""
    return {name: refusal(made(), given) for name, (given, _) in PREPARED.items()}


def left_alone():
    """The batches that a loader of ours yields on this rank, under all settings of Accelerate."""
    taken = []
    for settings in [{"dispatch_batches": True}, *(given for given, _ in PREPARED.values())]:
        accelerator = accelerate.Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**settings))
        taken.append([numbers.tolist() for numbers, *_ in accelerator.prepare(loader_of(batch_sampler()))])
    return taken


def runs(folder):
    kinds = {"plain": {}, "workers": {"workers": 2}, "dropout": {"kind": Dropping}, "registered": {"prepares": False}}
    whole = {name: train(folder, **given) for name, given in kinds.items()}
    halves = {}
    for name, given in kinds.items():
        left = train(folder, stop=STOP, **given)
        halves[name] = (left, train(folder, saved=True, **given))
    naive = accelerate.Accelerator(cpu=True).prepare(plain(Naive()))
    told = {"naive": [numbers.tolist() for numbers, _, _ in naive]}
    told["evaluated"] = evaluated()
    told |= {kind: refusals(made) for kind, made in SAMPLERS.items()}
    told["left alone"] = left_alone()
    return whole, halves, told


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory):
    return run_on_ranks(runs, str(tmp_path_factory.mktemp("accelerate")), start=False)


@pytest.mark.parametrize("kind", ["plain", "workers"])
def test_a_run_keeps_the_contract(of_ranks, kind):
    check_run([whole[kind] for whole, _, _ in of_ranks])


@pytest.mark.parametrize("kind", ["plain", "workers", "dropout", "registered"])
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(of_ranks, kind):
    before, after = zip(*(halves[kind] for _, halves, _ in of_ranks), strict=True)
    check_resumed(before, after, [whole[kind] for whole, _, _ in of_ranks])


def test_ranks_evaluate_each_sequence_once_and_restore_the_order(of_ranks):
    targets = torch.stack([Sequences()[number][2] for number in range(len(LENGTHS))])
    for _, _, told in of_ranks:
        mean, outputs, delivered = told["evaluated"]
        assert mean == pytest.approx(float(targets.mean()), rel=1e-12)
        assert outputs == list(range(len(LENGTHS)))
        assert delivered == 3


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("name", PREPARED)
def test_a_loader_of_pytorchs_that_was_prepared_is_refused_whatever_the_settings(of_ranks, kind, name):
    said = [told[kind][name] for _, _, told in of_ranks]
    assert PREPARED[name][1] in said[0]
    assert said[1] == said[0]


def test_a_loader_of_ours_is_left_alone_whatever_the_settings(of_ranks):
    for rank, (_, _, told) in enumerate(of_ranks):
        assert told["left alone"] == [[batch.tolist() for batch in plan(0).batches(rank)]] * 5


def test_the_contract_finds_the_sequences_that_a_sampler_of_ones_own_loses(of_ranks):
    with pytest.raises(AssertionError):
        check_every_sequence_once([told["naive"] for _, _, told in of_ranks])
