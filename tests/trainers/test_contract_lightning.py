"""Lightning's Trainer on planned batches: the contract on two ranks."""

from importlib.util import find_spec
from itertools import chain

import contract
import pytest
from contract import EPOCHS, LENGTHS, MICRO_BATCHES, batch_sampler, plan

import lengthwise as lw
from ranks import ask_ranks

_INSTALLED = find_spec("lightning") and find_spec("torchdata")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not _INSTALLED, reason="Lightning or torchdata is not installed"),
]

STEPS = [plan(epoch).steps for epoch in range(EPOCHS)]
FIRST = STEPS[0]
STOP = FIRST + 2
WAYS = {  # to ask for checkpoints
    "steps": {"every_n_train_steps": 1},
    "epochs": {"every_n_epochs": 1, "save_on_train_epoch_end": True},
    "validations": {"every_n_epochs": 1, "save_on_train_epoch_end": False},
    "stateful loader": {"every_n_epochs": 1, "save_on_train_epoch_end": False},
    "plain loader": {"every_n_epochs": 1, "save_on_train_epoch_end": False},
}
SAVED = {  # the way, and how many steps are in the checkpoint
    "in mid-epoch": ("steps", STOP),
    "after the first step": ("steps", 1),
    "with the last batch of an epoch": ("steps", FIRST),
    "with the last batch of all": ("steps", sum(STEPS)),
    "between epochs": ("epochs", FIRST),
    "at a validation within a step": ("validations", FIRST // 2),
    "within a step, by a stateful loader too": ("stateful loader", FIRST // 2),
    "within a step, by PyTorch's loader": ("plain loader", FIRST // 2),
    "at the last validation of an epoch": ("validations", FIRST),
    "by a batch that failed within a step": ("failed", STOP),
    "by a run that was resumed in mid-epoch": ("resumed", STOP + 2),
    "at the end of a run that stopped in mid-epoch": ("stopped", STOP),
    "at the start of an epoch": ("starts", FIRST),
}
WITH_WORKERS = ("in mid-epoch", "at the last validation of an epoch", "between epochs", "at the start of an epoch")


def runs(folder):
    from lightning_runs import run_all

    return run_all(folder)


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory):
    return ask_ranks(runs, str(tmp_path_factory.mktemp("lightning")), start=False)


@pytest.mark.parametrize("kind", [*WAYS, "workers", "manual"])
def test_a_run_keeps_the_contract(of_ranks, kind):
    contract.check_run([run["whole"][kind] for run in of_ranks])


@pytest.mark.parametrize(("name", "workers"), [*((name, 0) for name in SAVED), *((name, 2) for name in WITH_WORKERS)])
def test_a_run_that_was_left_goes_on_as_if_it_were_not(of_ranks, name, workers):
    steps = SAVED[name][1]
    for run in of_ranks:
        whole, after = run["whole"]["workers"], run["resumed"][name, workers]
        assert [*chain(*after.epochs)] == [*chain(*whole.epochs)][steps * MICRO_BATCHES :]
        assert (after.steps, after.weights) == (sum(STEPS) - steps, whole.weights)


def test_another_number_of_ranks_takes_the_same_steps(of_ranks):
    had = [batch for run in of_ranks for batch in run["whole"]["workers"].epochs[1][: (STOP - FIRST) * MICRO_BATCHES]]
    for run in of_ranks:
        record = run["alone"]["as large"]
        contract.check_every_sequence_once([had, record.epochs[0]])
        assert record.steps == sum(STEPS) - STOP
        contract.check_weights([record])


def test_micro_batches_that_do_not_divide_what_was_taken_are_refused(of_ranks):
    for run in of_ranks:
        said = "The checkpoint ends within a step: 4 batches are no whole steps of 3. Resume with as many micro_batches"
        assert said in run["alone"]["otherwise"]


def test_a_sampler_that_a_run_has_left_within_an_epoch_begins_anew_without_a_warning(of_ranks):
    for run in of_ranks:
        left, whole = run["alone"]["again"]
        assert left.steps == 15
        assert len(whole.epochs) == EPOCHS
        assert [*chain(*whole.epochs)][: len([*chain(*left.epochs)])] == [*chain(*left.epochs)]
        for batches in whole.epochs:
            contract.check_every_sequence_once([batches])


def test_a_loss_without_its_scale_is_told_once(of_ranks):
    for run in of_ranks:
        (told,) = [each for each in run["alone"]["unscaled"] if "`loss`" in each]
        assert told == (
            "`loss` must be multiplied by planned.scale(batch_idx) in training_step, but is 'not scaled'. "
            "Without its scale, a short batch counts as much as a long one."
        )


def test_the_log_of_a_run_tells_what_it_trains_on_and_its_padding_and_speed(of_ranks):
    messages, metrics = of_ranks[0]["alone"]["told"]
    sampler, steps = batch_sampler(), batch_sampler().plan.steps  # of one rank
    assert messages.count(f"Lengthwise plans the batches.\n{batch_sampler().summary()}") == 1
    assert len([each for each in messages if each.startswith(f"Epoch 0 took {steps} steps in ")]) == 1
    logs, taken = [each for each in metrics if "padding" in each], 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        taken += sampler.plan.steps
        whole = lw.measure(sampler.plan, LENGTHS).padding_share
        assert logs[taken - 1]["padding"] == pytest.approx(whole, rel=1e-5)  # of the epoch so far
    assert len(logs) == taken
    assert all(each["frames_per_second"] > 0 for each in logs)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fetched too early", "Epoch 1 was set within a pass over epoch 0."),
        ("sharded twice", "or set `Trainer(use_distributed_sampler=False)`"),
        ("lengths read once", "`reload_dataloaders_every_n_epochs` must be 1, but is 0. Give it to the Trainer"),
        ("overfit", "`overfit_batches` must be 0, but is 2. Give it to the Trainer"),
        (
            "a batch before the checkpoint",
            "`batch_idx` must be at least 4, but is 3. Give the batch_idx of training_step",
        ),
        ("Lightning 2.4", 'Lengthwise needs Lightning 2.5 or newer: pip install "lightning>=2.5"'),
        ("other steps", "`micro_batches` must be the Trainer's accumulate_grad_batches, 3, but is 2. Give micro_"),
        ("every rank everything", "`world_size` must be the Trainer's, 2, but is 1."),
        ("another sampler", "`train_dataloader` must be a loader with the callback's sampler"),
        (
            "no position",
            "The checkpoint has no position in the epoch. Resume from one that was saved with PlannedEpochs",
        ),
    ],
)
def test_settings_that_contradict_the_sampler_are_named(of_ranks, name, said):
    for run in of_ranks:
        assert said in run["refused"][name]
