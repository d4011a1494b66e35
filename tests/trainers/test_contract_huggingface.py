"""The Trainer of Hugging Face transformers on planned batches: the contract on two ranks."""

import gc
import math

import contract
import pytest
import torch
from contract import BATCHING, EPOCHS, LENGTHS, MICRO_BATCHES, RANKS, Sequences, batch_sampler, plan
from torch.utils.data import DataLoader, Subset

import lengthwise as lw
from ranks import ask_ranks

pytestmark = pytest.mark.processes

transformers = pytest.importorskip("transformers")
import heads  # noqa: E402

from lengthwise.torch.huggingface import PlannedTrainer  # noqa: E402

STOP = 7  # optimiser steps after which a run is left: the second of the second epoch
RESUMED = ("mean", "dropping")
ALONE = ("classes", "t5", "llama", "llama, smoothed", "gpt2")
EVALUATED = ("classes", "t5", "llama")
AS_PLANNED = (*EVALUATED, "tokens", "classes, a function", "llama, answers", "bart, causal")
WORKERS = {"dataloader_num_workers": 2, "dataloader_multiprocessing_context": "fork"}
STEPS = [plan(epoch).steps for epoch in range(EPOCHS)]


class Mean(contract.Model):
    """Gives the mean loss of its batch; the Trainer cannot count what it is a mean of."""

    def forward(self, numbers, features, labels):
        return {"loss": (super().forward(numbers, features) - labels).square().mean()}


class Dropping(Mean):
    """Draws from the global generator in each batch."""

    def forward(self, numbers, features, labels):
        return super().forward(numbers, torch.nn.functional.dropout(features, training=self.training), labels)


KINDS = {"mean": Mean, "dropping": Dropping}


class Recorder(transformers.TrainerCallback):
    """Notes what a run did, and saves and leaves it after `stop` steps of its own."""

    def __init__(self, record, model, stop):
        self.record, self.model, self.stop = record, model, stop

    def on_step_end(self, args, state, control, **_):
        self.record.steps += 1
        if self.record.steps == self.stop:
            control.should_save = control.should_training_stop = True
        self.record.told.setdefault("places", []).append(state.epoch)

    def on_evaluate(self, args, state, control, metrics, **_):
        self.record.told.setdefault("losses", []).append(metrics["eval_loss"])

    def on_epoch_end(self, args, state, control, **_):
        self.record.epochs.append(self.model.pop_batches())
        self.record.told["max_steps"] = state.max_steps


class Resharding(transformers.Trainer):
    """Hands the loader to Accelerate, as the Trainer does with every loader of its own."""

    def get_train_dataloader(self):
        loader = DataLoader(self.train_dataset, batch_sampler=batch_sampler(), collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)


class ReshardingPlanned(Resharding, PlannedTrainer):
    """The same, in place of the loader of a PlannedTrainer."""


def collated(samples):
    return dict(zip(("numbers", "features", "labels"), torch.utils.data.default_collate(samples), strict=True))


ALWAYS = {
    **{"num_train_epochs": EPOCHS, "gradient_accumulation_steps": MICRO_BATCHES, "max_grad_norm": 0.0},
    **{"lr_scheduler_type": "constant", "save_strategy": "no", "logging_strategy": "no", "report_to": "none"},
    **{"use_cpu": True, "disable_tqdm": True, "log_level": "error"},
}
ALMOST_NONE = [1, *[0] * (len(LENGTHS) - 1)]  # the weight of the first sequence alone
REFUSED = {  # how the run is set up, and what is said to it
    "uneven": ({"trainer": Resharding, "accelerator_config": {"even_batches": False}}, "leave this loader out of"),
    "prepared": (
        {"trainer": ReshardingPlanned},
        "The sampler has shared its batches out to 2 ranks, and the loader would do so again.",
    ),
    "accumulation": (
        {"gradient_accumulation_steps": 3},
        "`micro_batches` must be the Trainer's gradient_accumulation_steps, 3, but is 2. Give batching= in place of",
    ),
    "weightless": ({"weights": [0] * len(LENGTHS)}, "`weights` must be above 0 for some sequence, but is 0.0."),
    "shrinking": ({"auto_find_batch_size": True}, "`auto_find_batch_size` must be False, but is True."),
    "grouping": (
        {"train_sampling_strategy": "group_by_length"},
        "`train_sampling_strategy` must be 'random', but is 'group_by_length'",
    ),
    "all on every rank": (
        {"sampler": batch_sampler(rank=0, world_size=1)},
        "`world_size` must be the Trainer's, 2, but is 1.",
    ),
    "other lengths": (
        {"dataset": Subset(Sequences(), range(50))},
        "`lengths` must be as many as the 50 sequences of the loader's dataset, but is 60.",
    ),
    "no sampler": (
        {"sampler": [[0, 1], [2]]},
        "`batch_sampler` must be a lengthwise.torch.BatchSampler, but is [[0, 1], [2]].",
    ),
    "weights": ({"weights": [1.0]}, "`weights` must be of shape [60], but is (1,)."),
}


def trainer_of(
    kind, folder, *, trainer=PlannedTrainer, sampler=None, weights=None, dataset=None, stop=None, **settings
):
    gc.freeze()  # each run of a Trainer collects the garbage of all that is imported, the runs before it included
    model, record, more = KINDS[kind](), contract.Record(), {}
    if issubclass(trainer, PlannedTrainer):
        more = {"batch_sampler": sampler or batch_sampler(), "weights": weights}
    return record, trainer(
        model=model,
        args=transformers.TrainingArguments(folder, **ALWAYS | settings),
        train_dataset=dataset or Sequences(),
        eval_dataset=Sequences(),
        data_collator=collated,
        optimizers=(contract.optimizer_of(model), None),
        callbacks=[Recorder(record, model, stop)],
        **more,
    )


def train(kind, folder, *, saved=None, **given):
    record, trainer = trainer_of(kind, folder, **given)
    trainer.train(resume_from_checkpoint=saved)
    record.weights = trainer.model.weights()
    return record


def refusal(kind, folder, **given):
    """Returns the error of a run that must not begin."""
    with pytest.raises((ValueError, TypeError)) as caught:
        train(kind, folder, **given)
    return str(caught.value)


def run_on_two_ranks(folder):
    left = {kind: f"{folder}/{kind}/checkpoint-{STOP}" for kind in RESUMED}
    return {
        "whole": {kind: train(kind, folder, **WORKERS if kind == "mean" else {}) for kind in KINDS},
        "left": {kind: train(kind, f"{folder}/{kind}", stop=STOP, **WORKERS) for kind in RESUMED},
        "resumed": {kind: train(kind, folder, saved=left[kind]) for kind in RESUMED},
        "restored": train("mean", folder, saved=left["mean"], restore_callback_states_from_checkpoint=True),
        "epoch end": train("mean", f"{folder}/epochs", save_strategy="epoch", eval_strategy="epoch"),
        # On several ranks, sentence-transformers sets dataloader_drop_last itself.
        "next epoch": train("mean", folder, saved=f"{folder}/epochs/checkpoint-{STEPS[0]}", dataloader_drop_last=True),
        "weightless": train("mean", folder, weights=ALMOST_NONE, eval_strategy="epoch"),
        "heads": heads.largest_errors(folder, MICRO_BATCHES),
        "evaluated": {name: heads.evaluated(name, folder) for name in EVALUATED},
        "as planned": {name: heads.evaluated_as_planned(name, folder) for name in AS_PLANNED},
        "heads refused": heads.refusals(folder),
        "refused": {name: refusal("mean", folder, **given) for name, (given, _) in REFUSED.items()},
    }


def run_on_one_rank(folder):
    """Goes on with the run that two ranks left, in steps as large as before; and runs others of one process."""
    train("mean", folder, trainer=transformers.Trainer, stop=2)
    left, whole_steps = f"{folder}/mean/checkpoint-{STOP}", RANKS * MICRO_BATCHES
    sampler = batch_sampler(micro_batches=whole_steps)
    return {
        "as large": train("mean", folder, saved=left, sampler=sampler, gradient_accumulation_steps=whole_steps),
        "another trainer's": refusal("mean", folder, saved=f"{folder}/checkpoint-2"),
        "by steps": train("mean", folder, max_steps=15),
        "heads": heads.largest_errors(folder, 3, ALONE),
        "stopped": heads.stopped_within_a_step(f"{folder}/stopped"),
        "a part": train("mean", folder, num_train_epochs=1.5),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("trainer"))


@pytest.fixture(scope="module")
def of_ranks(folder):
    return ask_ranks(run_on_two_ranks, folder)


@pytest.fixture(scope="module")
def alone(of_ranks, folder):
    assert of_ranks[0]["left"]["mean"].steps == STOP  # it saved what these go on from
    return ask_ranks(run_on_one_rank, folder, world_size=1)[0]


def test_a_run_keeps_the_contract(of_ranks):
    contract.check_run([run["whole"]["mean"] for run in of_ranks])


@pytest.mark.parametrize("name", heads.HEADS)
def test_a_step_of_any_head_has_the_gradient_of_the_whole_step(of_ranks, name):
    for run in of_ranks:
        assert run["heads"][name] < 1e-6


@pytest.mark.parametrize("name", ALONE)
def test_micro_batches_of_one_process_have_the_gradient_of_the_whole_step(alone, name):
    assert alone["heads"][name] < 1e-6


@pytest.mark.parametrize("name", EVALUATED)
def test_an_evaluated_loss_is_that_of_all_ranks(of_ranks, name):
    for run in of_ranks:
        loss, expected = run["evaluated"][name]
        assert loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", AS_PLANNED)
def test_planned_batches_have_the_evaluated_loss_of_one_batch(of_ranks, name):
    for run in of_ranks:
        loss, expected, taken, of_three = run["as planned"][name]
        # Nine batches of two ranks; the longest text is over the budget. To predict, the Trainer has batches of eight.
        assert (loss, taken[4:6]) == (pytest.approx(expected, rel=1e-6), [2, 8])
        assert math.isnan(of_three) == (name == "llama, answers")  # they have no label there


@pytest.mark.parametrize("name", heads.REFUSED)
def test_a_loss_that_cannot_be_scaled_is_refused(of_ranks, name):
    for run in of_ranks:
        assert heads.REFUSED[name][2] in run["heads refused"][name]


def test_sequences_without_weight_teach_nothing_and_are_evaluated_all_the_same(of_ranks):
    model, sequences = contract.Model(), Sequences()
    optimizer = contract.optimizer_of(model)
    for epoch in range(EPOCHS):
        for step in plan(epoch).grid:
            optimizer.zero_grad(set_to_none=False)
            # A loss is of a batch: that of the first sequence counts, with all that are in it.
            for numbers in filter(lambda numbers: 0 in numbers, map(plan(epoch).batch, step.ravel())):
                model.loss(*torch.utils.data.default_collate([sequences[number] for number in numbers])).backward()
            optimizer.step()
    for run in of_ranks:
        assert run["weightless"].weights == pytest.approx(model.weights(), rel=1e-9)
        assert len(run["weightless"].told["losses"]) == EPOCHS
        assert min(run["weightless"].told["losses"]) > 0


def test_the_trainer_is_told_the_steps_of_all_epochs_and_where_it_stands(of_ranks):
    record = of_ranks[0]["whole"]["mean"]
    assert len(set(STEPS)) == 1
    assert record.told["max_steps"] == sum(STEPS)
    places = [epoch + (step + 1) / steps for epoch, steps in enumerate(STEPS) for step in range(steps)]
    assert record.told["places"] == pytest.approx(places)


@pytest.mark.parametrize("kind", RESUMED)
def test_a_run_left_in_mid_epoch_goes_on_as_if_it_were_not(of_ranks, kind):
    contract.check_resumed(*([run[name][kind] for run in of_ranks] for name in ("left", "resumed", "whole")))
    whole = of_ranks[0]["whole"][kind].told
    assert of_ranks[0]["resumed"][kind].told == {"max_steps": whole["max_steps"], "places": whole["places"][STOP:]}


def test_callbacks_that_the_trainer_makes_anew_keep_the_position(of_ranks):
    for run in of_ranks:
        assert run["restored"].epochs == run["resumed"]["mean"].epochs
        assert run["restored"].weights == run["resumed"]["mean"].weights


def test_a_run_that_evaluates_and_saves_every_epoch_goes_on_from_the_end_of_one(of_ranks):
    contract.check_run([run["epoch end"] for run in of_ranks])
    for run in of_ranks:
        assert run["next epoch"].epochs == run["epoch end"].epochs[1:]
        assert run["next epoch"].weights == run["epoch end"].weights


def test_a_checkpoint_within_a_step_goes_on_with_the_whole_step(alone):
    whole, resumed = alone["stopped"]
    assert (len(whole), len(resumed)) == (4, 3)
    for one, other in zip(whole[1:], resumed, strict=True):
        assert torch.equal(one, other)


def test_another_number_of_ranks_takes_the_same_steps(alone):
    record = alone["as large"]
    assert record.steps == sum(STEPS) - STOP
    assert record.weights == pytest.approx(contract.reference_weights(), rel=1e-6, abs=1e-8)


def test_steps_may_be_given_in_place_of_epochs(alone):
    epochs = [lw.make_plan(LENGTHS, BATCHING, seed=7, epoch=epoch, micro_batches=MICRO_BATCHES) for epoch in range(2)]
    assert alone["by steps"].steps == alone["by steps"].told["max_steps"] == 15
    assert sum(each.steps for each in epochs) > 15 > epochs[0].steps
    assert alone["by steps"].epochs[0] == [batch.tolist() for batch in epochs[0].batches()]
    assert alone["a part"].steps == epochs[0].steps + -(-epochs[1].steps // 2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_the_sampler_is_refused(of_ranks, name):
    for run in of_ranks:
        assert REFUSED[name][1] in run["refused"][name]


def test_a_checkpoint_without_a_position_is_refused(alone):
    assert (
        "The checkpoint of step 2 has no position in the epoch. Resume from a checkpoint of PlannedTrainer"
        in alone["another trainer's"]
    )
