"""The Trainer of Hugging Face, run more than once: again, and on from checkpoints in steps of other sizes."""

from collections import Counter
from itertools import chain

import pytest
from contract import BATCHING, EPOCHS, LENGTHS, SEED, batch_sampler

from lengthwise import make_plan

pytestmark = [
    pytest.mark.filterwarnings("ignore:(?!`)"),  # what torch and transformers say; not our own sentences
    pytest.mark.processes,
]

transformers = pytest.importorskip("transformers")
from test_contract_huggingface import trainer_of  # noqa: E402


class Rates(transformers.TrainerCallback):
    """Notes the learning rate of each step."""

    def __init__(self):
        self.rates = []

    def on_pre_optimizer_step(self, args, state, control, optimizer, **_):  # noqa: ARG002
        self.rates.append(optimizer.param_groups[0]["lr"])


def trainer(folder, micro_batches, **settings):
    given = {"sampler": batch_sampler(micro_batches=micro_batches), "gradient_accumulation_steps": micro_batches}
    record, made = trainer_of("mean", str(folder), lr_scheduler_type="linear", **given | settings)
    made.add_callback(rates := Rates())
    return record, made, rates


def numbers(record, made):
    """All sequences that a run has taken, in order; those of an epoch that was left too."""
    return list(chain(*chain(*record.epochs), *made.model.taken()))


# An epoch of 20 steps of one batch has 5 of four. So after 14 steps of one batch, a Trainer that divides by the steps
# of now believes that two epochs are over. Each run is left after its first step, in mid-epoch, at the end, and later.
@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, 3), (1, 4), (2, 1), (4, 1), (3, 2)])
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0, 1.3, 2.9])
def test_a_run_goes_on_in_steps_of_any_size_to_its_last_epoch(tmp_path, before, after, share):
    whole = [epochs * batch_sampler(micro_batches=before).steps for epochs in range(EPOCHS + 1)]
    stop = max(1, int(share * whole[1]))
    left, first, early = trainer(tmp_path, before, stop=stop)
    first.train()
    record, second, late = trainer(tmp_path, after)
    second.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-{stop}")
    assert Counter(numbers(left, first) + numbers(record, second)) == dict.fromkeys(range(len(LENGTHS)), EPOCHS)
    assert second.state.global_step == second.state.max_steps == stop + record.steps
    assert second.state.epoch == EPOCHS
    # The schedule goes on where it was, up to one of the larger steps, and falls by as much each step, to 0 at the end.
    total = EPOCHS * batch_sampler(micro_batches=after).steps
    falls = [0.05 * left / total for left in range(len(late.rates) - 1, 0, -1)]
    assert late.rates[1:] == pytest.approx(falls)
    assert late.rates[0] == pytest.approx(early.rates[-1], abs=0.05 / whole[-1] + 1e-9)
    assert late.rates[0] - falls[0] < 2 * 0.05 / min(total, whole[-1]) if falls else True
    assert second.lr_scheduler.get_last_lr() == [pytest.approx(0.0, abs=1e-12)]


@pytest.mark.parametrize("settings", [{}, {"max_steps": 25}])
def test_samples_per_second_count_what_was_trained_on(tmp_path, settings):
    _, made, _ = trainer(tmp_path, 2, **settings)
    speeds = made.train().metrics
    of_step = speeds["train_samples_per_second"] / speeds["train_steps_per_second"]
    assert of_step == pytest.approx(len(LENGTHS) / batch_sampler().steps, rel=0.1)  # whole sequences


class Leaving(transformers.TrainerCallback):
    """Leaves each epoch after three steps of it."""

    def on_epoch_begin(self, args, state, control, **_):  # noqa: ARG002
        self.begun = state.global_step

    def on_step_end(self, args, state, control, **_):  # noqa: ARG002
        control.should_epoch_stop |= state.global_step == self.begun + 3


def test_epochs_that_another_callback_leaves_are_followed_by_the_next(tmp_path):
    record, made, _ = trainer(tmp_path, 2, save_strategy="epoch")
    made.add_callback(Leaving())
    with pytest.warns(
        UserWarning, match=r"`batches delivered` must be 22 before the next epoch, .* but is 6 at epoch 0"
    ):
        made.train()
    plans = [make_plan(LENGTHS, BATCHING, seed=SEED, epoch=epoch, micro_batches=2) for epoch in range(EPOCHS)]
    planned = [[batch.tolist() for batch in each.batches()] for each in plans]
    assert record.epochs == [batches[:6] for batches in planned]
    # From the end of the second epoch that was left: the rest of it, and no fourth.
    record, made, _ = trainer(tmp_path, 2)
    made.add_callback(Leaving())
    with pytest.warns(UserWarning, match="`batches delivered`"):
        made.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-6")
    assert record.epochs[:2] == [planned[1][6:12], planned[2][:6]]
    assert not any(record.epochs[2:])


def test_the_trainer_tells_what_it_trains_on(tmp_path, capsys):
    _, made, _ = trainer(tmp_path, 2, stop=13, log_level="warning")
    made.train()
    total = EPOCHS * batch_sampler().steps
    begun = f"Lengthwise plans {total} steps in {EPOCHS} epochs.\n{batch_sampler().summary()}\n"
    assert begun in capsys.readouterr().out  # behind what libraries say first
    _, made, _ = trainer(tmp_path, 2, log_level="warning")
    made.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-13")
    told = capsys.readouterr().out
    assert told.startswith(f"Lengthwise plans {total} steps in {EPOCHS} epochs.\nEpoch 1 has ")
    assert f"\nEach rank has had {2 * (13 - batch_sampler().steps)} of its " in told
    _, made, _ = trainer(tmp_path, 2, max_steps=3, log_level="warning")
    made.train()
    assert capsys.readouterr().out.startswith("Lengthwise plans 3 steps.\nEpoch 0 has ")
    _, made, _ = trainer(tmp_path, 2, max_steps=3)  # which asks for errors alone
    made.train()
    assert "Lengthwise" not in capsys.readouterr().out


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_log_tells_padding_and_speed_since_the_last_log(tmp_path, capsys, micro_batches):
    more = {
        "log_level": "warning",
        "logging_strategy": "steps",
        "logging_steps": 1,
        "eval_strategy": "steps",
        "eval_steps": 2,
    }
    _, made, _ = trainer(tmp_path, micro_batches, **more)
    made.train()
    logs = [entry for entry in made.state.log_history if "loss" in entry]
    plans = [batch_sampler(micro_batches=micro_batches).plan] + [
        make_plan(LENGTHS, BATCHING, seed=SEED, epoch=epoch, micro_batches=micro_batches) for epoch in (1, 2)
    ]
    padding = []
    for plan in plans:
        for step in plan.grid:
            batches = [LENGTHS[plan.batch(number)] for number in step.ravel()]
            data, computed = (
                sum(int(of(each)) for each in batches) for of in (sum, lambda each: len(each) * max(each))
            )
            padding.append(1 - data / computed)
    assert [entry["padding"] for entry in logs] == pytest.approx(padding)
    assert all(entry["frames_per_second"] > 0 for entry in logs)
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Epoch 0 took ")]
    assert told.startswith(f"Epoch 0 took {plans[0].steps} steps in ")


@pytest.mark.parametrize("steps", [3, 25])  # within the first epoch, and within the second
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_trainer_that_trains_again_takes_the_same_batches_and_warns_of_nothing(tmp_path, steps, micro_batches):
    record, made, _ = trainer(tmp_path, micro_batches, max_steps=steps)
    made.train()
    once = list(chain(*record.epochs))
    made.train()
    assert len(once) == steps * micro_batches
    assert list(chain(*record.epochs)) == once * 2


@pytest.mark.parametrize("workers", [0, 2])  # workers fetch batches before the Trainer asks for any
def test_a_run_that_has_all_its_steps_says_so_alone_and_takes_none(tmp_path, workers):
    record, made, _ = trainer(tmp_path, 1, save_strategy="epoch", dataloader_num_workers=workers)
    made.train()
    total, taken = made.state.global_step, numbers(record, made)
    said = rf"`global_step` must be below max_steps, {total}, but is {total}\. Raise num_train_epochs or max_steps"
    with pytest.warns(UserWarning, match=said):
        made.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-{total}")
    assert numbers(record, made) == taken
    assert made.state.global_step == total
