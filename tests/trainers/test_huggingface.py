"""The Trainer of Hugging Face in one process: run again, in steps of other sizes, and what it says and refuses."""

import re
import warnings
from collections import Counter
from itertools import chain

import pytest
import torch
from contract import BATCHING, EPOCHS, LENGTHS, SEED, Sequences, batch_sampler
from torch.utils.data import IterableDataset

from lengthwise import Batching, example_lengths, make_plan
from lengthwise.torch import BatchSampler, PadCollate

pytestmark = [
    pytest.mark.filterwarnings("ignore:(?!`|Epoch |The state )"),  # what others say; not our own sentences
    pytest.mark.processes,
]

transformers = pytest.importorskip("transformers")
import heads  # noqa: E402
from test_contract_huggingface import ALWAYS, Mean, trainer_of  # noqa: E402

from lengthwise.torch.huggingface import PlannedTrainer  # noqa: E402

MANY = example_lengths("long-tailed", count=300) // 8  # 37 batches, of which 24 are looked at


class Rates(transformers.TrainerCallback):
    """Notes the learning rate of each step."""

    def __init__(self):
        self.rates = []

    def on_pre_optimizer_step(self, args, state, control, optimizer, **_):
        self.rates.append(optimizer.param_groups[0]["lr"])


def trainer(folder, micro_batches, **settings):
    given = {"sampler": batch_sampler(micro_batches=micro_batches), "gradient_accumulation_steps": micro_batches}
    record, made = trainer_of("mean", str(folder), lr_scheduler_type="linear", **given | settings)
    made.add_callback(rates := Rates())
    return record, made, rates


def numbers(record, made):
    """All sequences that a run has taken, in order; those of an epoch that was left too."""
    return list(chain(*chain(*record.epochs), *made.model.pop_batches()))


# An epoch of 20 steps of one batch has 5 of four. So after 14 steps of one batch, a Trainer that divides by the steps
# of now believes that two epochs are over. Each run is left after its first step, in mid-epoch, at the end, and later.
@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(1, 2, 0.0), (1, 3, 0.7), (1, 4, 1.0), (1, 4, 2.9), (2, 1, 1.3), (4, 1, 0.7), (4, 1, 2.9), (3, 2, 1.0)],
)
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


@pytest.mark.parametrize("run", [{"max_steps": 13}, {"num_train_epochs": 2}], ids=["by steps", "by epochs"])
def test_samples_per_second_count_what_was_trained_on(tmp_path, run):
    sampler = batch_sampler(micro_batches=2, times=2)
    _, made, _ = trainer(tmp_path, 2, sampler=sampler, **run)
    speeds = made.train().metrics
    samples_in_step = speeds["train_samples_per_second"] / speeds["train_steps_per_second"]
    assert samples_in_step == pytest.approx(2 * len(LENGTHS) / sampler.steps, rel=0.1)  # both speeds are rounded


class Leaving(transformers.TrainerCallback):
    """Leaves each epoch after three steps of it."""

    def on_epoch_begin(self, args, state, control, **_):
        self.begun = state.global_step

    def on_step_end(self, args, state, control, **_):
        control.should_epoch_stop |= state.global_step == self.begun + 3


def test_epochs_that_another_callback_leaves_are_followed_by_the_next(tmp_path):
    record, made, _ = trainer(tmp_path, 2, save_strategy="epoch")
    made.add_callback(Leaving())
    with pytest.warns(UserWarning, match="^Epoch 0 was left after 6 of its 22 batches, so sequences are lost"):
        made.train()
    plans = [make_plan(LENGTHS, BATCHING, seed=SEED, epoch=epoch, micro_batches=2) for epoch in range(EPOCHS)]
    planned = [[batch.tolist() for batch in each.batches()] for each in plans]
    assert record.epochs == [batches[:6] for batches in planned]
    # From the end of the second epoch that was left: the rest of it, and no fourth.
    record, made, _ = trainer(tmp_path, 2)
    made.add_callback(Leaving())
    with pytest.warns(UserWarning, match="^Epoch 1 was left after 12 of its"):
        made.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-6")
    assert record.epochs[:2] == [planned[1][6:12], planned[2][:6]]
    assert not any(record.epochs[2:])


def test_the_trainer_tells_what_it_trains_on(tmp_path, capsys, caplog):
    total = EPOCHS * batch_sampler().steps
    _, made, _ = trainer(tmp_path, 2, stop=13, log_level="info")
    transformers.utils.logging.enable_propagation()
    made.train()
    transformers.utils.logging.disable_propagation()
    transformers.utils.logging.set_verbosity_error()
    logged = [record.getMessage().strip() for record in caplog.records]
    for line in (
        f"Num examples = {len(LENGTHS)}",
        "Num update steps per epoch = as planned",
        f"Total train batch size (w. parallel, distributed & accumulation) = {len(LENGTHS) // batch_sampler().steps}",
        f"Total optimization steps = {total}",
    ):
        assert line in logged
    begun = f"Lengthwise plans {total} steps in {EPOCHS} epochs.\n{batch_sampler().summary()}\n"
    assert begun in capsys.readouterr().out  # behind what libraries say first
    _, made, _ = trainer(tmp_path, 2, log_level="warning")
    made.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-13")
    told = capsys.readouterr().out
    assert told.startswith(f"Lengthwise plans {total} steps in {EPOCHS} epochs.\nEpoch 1 has ")
    assert f"\nEach rank has had {2 * (13 - batch_sampler().steps)} of its " in told
    _, made, _ = trainer(tmp_path, 2, max_steps=3)  # which asks for errors alone
    made.train()
    assert "Lengthwise" not in capsys.readouterr().out


def test_the_log_tells_padding_and_speed_since_the_last_log(tmp_path, capsys):
    every_step = {"logging_strategy": "steps", "logging_steps": 1, "eval_strategy": "steps", "eval_steps": 2}
    _, made, _ = trainer(tmp_path, 2, log_level="warning", **every_step)
    made.train()
    logs = [entry for entry in made.state.log_history if "loss" in entry]
    padding = []
    for epoch in range(EPOCHS):
        plan = make_plan(LENGTHS, BATCHING, seed=SEED, epoch=epoch, micro_batches=2)
        for step in plan.grid:
            batches = [LENGTHS[plan.batch(number)] for number in step.ravel()]
            computed = sum(len(batch) * batch.max() for batch in batches)
            padding.append(1 - sum(batch.sum() for batch in batches) / computed)
    assert [entry["padding"] for entry in logs] == pytest.approx(padding)
    assert all(entry["frames_per_second"] > 0 for entry in logs)
    assert min(padding) < made.state.log_history[-1]["padding"] < max(padding)  # of the whole run
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Epoch 0 took ")]
    assert told.startswith(f"Epoch 0 took {len(logs) // EPOCHS} steps in ")


@pytest.mark.parametrize(("steps", "micro_batches"), [(3, 2), (25, 1)])  # within the first epoch, and the second
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


class Padded(torch.nn.Module):
    """Gives the mean over padded texts."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, labels):
        return {"loss": (self.weight - input_ids)[labels.ne(-100)].square().mean()}


def collate(texts):
    padded = PadCollate()([torch.tensor(text["input_ids"]) if isinstance(text, dict) else text for text in texts])
    return {"input_ids": padded.values, "labels": padded.values.masked_fill(~padded.mask, -100)}


# Lengths of the data set that the Trainer has prepared


class Ending(transformers.Trainer):
    """Adds three end tokens to each text, as a template does."""

    def __init__(self, *args, train_dataset, **kwargs):
        longer = [{"input_ids": [*sample["input_ids"], 1, 1, 1]} for sample in train_dataset]
        if hasattr(train_dataset, "from_list"):  # a Dataset of Hugging Face, whose rows get an order of their own
            longer = type(train_dataset).from_list(longer[::-1]).select(range(len(longer))[::-1])
        super().__init__(*args, train_dataset=longer, **kwargs)


def check_sizes(trainer, arguments, new_model, raw, budget, **given):
    """Trains by `raw` lengths, which are too short, and by those that the Trainer reads; returns its sampler."""
    sampler = BatchSampler(raw, Batching(budget=budget), micro_batches=arguments.gradient_accumulation_steps)
    for choice in ({"batch_sampler": sampler}, {"batching": Batching(budget=budget)}):
        made, batches = type("Planned", (PlannedTrainer, trainer), {})(new_model(), arguments, **given, **choice), []
        pad = made.data_collator
        made.data_collator = lambda samples, pad=pad, to=batches: (to.append(batch := pad(samples)), batch)[1]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.train()
        told = sum(str(each.message).startswith("Batches hold ") for each in caught)
        most = max(batch["input_ids"].numel() for batch in batches)
        assert (most > budget, told) == ((True, 1) if "batch_sampler" in choice else (False, 0))
    return made.batch_sampler


@pytest.mark.parametrize("kind", ["dataset", "list"])
def test_lengths_are_read_after_the_trainer_has_prepared_the_data(tmp_path, kind):
    texts = [{"input_ids": [1] * int(length)} for length in MANY]
    texts = pytest.importorskip("datasets").Dataset.from_list(texts) if kind == "dataset" else texts
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS | {"seed": 4, "gradient_accumulation_steps": 3})
    sampler = check_sizes(Ending, arguments, Padded, MANY, 700, train_dataset=texts, data_collator=collate)
    assert sampler.lengths.tolist() == [length + 3 for length in MANY]
    assert (sampler.seed, sampler.micro_batches, sampler.groups) == (4, 3, None)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_texts_that_trl_ends_and_truncates_stay_within_the_budget(tmp_path):
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2, "w": 3}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    tokenizer, lengths = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special), MANY // 8 + 2
    texts = Dataset.from_dict({"text": ["w " * int(length) for length in lengths]})
    arguments = trl.SFTConfig(str(tmp_path), **ALWAYS, bf16=False, max_length=60)
    given = arguments, heads.llama, lengths, 90
    sampler = check_sizes(trl.SFTTrainer, *given, train_dataset=texts, processing_class=tokenizer)
    assert sampler.lengths.tolist() == [min(length + 1, 60) for length in lengths]


def test_data_sets_of_several_losses_share_no_batch(tmp_path):
    datasets = pytest.importorskip("datasets")
    pairs = datasets.Dataset.from_dict({"text": list("abcdef"), "length": [[5, 2], [9, 1], [2, 2]] * 2})
    both = datasets.DatasetDict(second=pairs.select([4, 0]), first=pairs.select([1, 2, 3]))
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS | {"data_seed": 5})
    made = PlannedTrainer(Padded(), arguments, train_dataset=both, eval_dataset=pairs, batching=Batching(budget=40))
    assert made.batch_sampler.lengths.tolist() == [[9, 1], [5, 2], [9, 1], [2, 2], [5, 2]]
    assert made.batch_sampler.groups.tolist() == [0, 0, 1, 1, 1]
    assert made.batch_sampler.seed == 5
    # Sentence-transformers would take the column of lengths for a text.
    assert made.train_dataset.column_names == {"second": ["text"], "first": ["text"]}
    assert made.eval_dataset.column_names == ["text"]
    said = "^Batches of the sampler may mix the data sets of `train_dataset`. Give batching= in place of batch_sampler="
    with pytest.raises(ValueError, match=said):
        PlannedTrainer(Padded(), arguments, train_dataset=both, batch_sampler=batch_sampler())


# What is refused


NO_LENGTHS = "`train_dataset` must be a data set with `length` or `input_ids`, but is "
UNREAD = {  # samples without lengths, and what is said
    "no tokens": ([{"text": "a"}], f"{NO_LENGTHS}['text']. Add the length of each sequence as `length`, or give "),
    "tensors": ([torch.ones(3)], f"{NO_LENGTHS}'Tensor'."),
    "no data set": (None, f"{NO_LENGTHS}None."),
    "two widths": ({"a": [{"length": 3}], "b": [{"length": [3, 4]}]}, "lengths of several shapes (a: (1,), b: (1, 2))"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_data_set_without_lengths_is_refused(tmp_path, name):
    samples, said = UNREAD[name]
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS)
    with pytest.raises(ValueError, match=re.escape(said)):
        PlannedTrainer(Padded(), arguments, train_dataset=samples, batching=Batching(budget=40))


def test_a_column_of_lengths_that_is_stale_is_refused(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"input_ids": [[1] * 5, [1] * 3, [1]], "length": [5, 7, 1]})
    said = "^`length` must be the sizes of `input_ids`, but is 'another in 1 of 3 rows'. Remove the column, or give "
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS)
    with pytest.raises(ValueError, match=said):
        PlannedTrainer(Padded(), arguments, train_dataset=rows, batching=Batching(budget=40))


@pytest.mark.parametrize("methods", [["_get_train_sampler"], ["training_step", "_generate"]])
def test_a_trainer_that_makes_its_own_batches_is_refused(methods):
    rollouts = type("Rollouts", (transformers.Trainer,), dict.fromkeys(methods))
    planned = type("Planned", (PlannedTrainer, rollouts), {})
    with pytest.raises(ValueError, match=f"^Rollouts makes its own batches, by `{methods[-1]}`. Use it without "):
        planned(batching=Batching(budget=40))


CHECKED = {  # a head, more for the Trainer, and what is said to its loss
    "llama": ("llama", {}, ""),
    "bart": ("bart, causal", {}, ""),
    "bart as others are": ("bart, causal", {"next_token": None}, "`next_token` must be False, as BartForCausalLM "),
    "gpt2 in place": ("gpt2", {"next_token": False}, "`next_token` must be True, as GPT2LMHeadModel compares its"),
    "a mean over rows": (
        "ctc, mean",
        {"weights": None},
        "The loss of Wav2Vec2ForCTC is not the mean over its labels. Give `weights`, 1 for each sequence",
    ),
    "a sum": ("ctc, sum", {"reduction": "mean"}, "`reduction='sum'` if it is a sum."),
    "weights": ("t5, weights", {}, "Only a mean over labels can be checked, and the Trainer has `weights` or "),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_loss_is_checked_where_it_is_asked_for(name, tmp_path):
    head, more, said = CHECKED[name]
    _, trainer = heads.trainer_of(head, str(tmp_path), micro_batches=2, **more)
    batch, before = trainer.data_collator([0, 1, 2]), torch.get_rng_state()
    if said:
        with pytest.raises(ValueError, match=re.escape(said)):
            trainer.check_loss(batch)
    else:
        trainer.check_loss(batch)
    assert torch.equal(torch.get_rng_state(), before)


class Later(transformers.Trainer):
    """Begins a run with one value more, as a later release of transformers may."""

    def set_initial_training_values(self, *arguments):
        return *super().set_initial_training_values(*arguments), True


class Earlier(transformers.Trainer):
    """Gives the size of a step when a run begins, as transformers 5.0 to 5.2 do."""

    def get_train_dataloader(self):
        self.set_initial_training_values(self.args, super().get_train_dataloader(), 8)

    def set_initial_training_values(self, args, dataloader, size):
        return super().set_initial_training_values(args, dataloader)


@pytest.mark.parametrize("release", [Later, Earlier])
def test_a_release_of_transformers_that_begins_a_run_by_other_values_is_refused(tmp_path, release):
    planned = type("Planned", (PlannedTrainer, release), {})
    _, made, _ = trainer(tmp_path, 2, trainer=planned)
    said = f"PlannedTrainer cannot set the steps of a run under transformers {transformers.__version__}. Install "
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        made.train()


def test_a_process_that_sees_several_gpus_is_refused(tmp_path):
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS)
    arguments._n_gpu = 2  # as where CUDA shows two, and torchrun started no process for each
    with pytest.raises(ValueError, match=r"`n_gpu` must be at most 1 in each process, but is 2\. Start one process"):
        PlannedTrainer(Mean(), arguments, train_dataset=LENGTHS, batch_sampler=batch_sampler())


class Streamed(IterableDataset):
    """Sequences one after the other, without numbers."""

    def __iter__(self):
        return iter(Sequences())


@pytest.mark.parametrize("dataset", [Streamed(), iter([1, 2])], ids=["streamed", "an iterator"])
def test_a_data_set_without_a_length_is_refused(tmp_path, dataset):
    arguments = transformers.TrainingArguments(str(tmp_path), **ALWAYS)
    said = r"`train_dataset` must be a data set of known length, but is <.*>\. Give one with __len__ and __getitem__"
    with pytest.raises(TypeError, match=said):
        PlannedTrainer(Mean(), arguments, train_dataset=dataset, batch_sampler=batch_sampler())
