"""What the Trainer of Hugging Face says of batches that are not padded as planned, and of settings without effect."""

import logging
from itertools import product

import numpy as np
import pytest
import torch

import lengthwise as lw

pytestmark = pytest.mark.filterwarnings("ignore:(?!`)")  # what torch and transformers say; not our own sentences

transformers = pytest.importorskip("transformers")
from lengthwise.torch.huggingface import PlannedTrainer  # noqa: E402

LENGTHS = lw.example_lengths("long-tailed", count=300) // 8  # 37 batches of 8, of which 24 are looked at
BATCHINGS = {
    "budget": lw.Batching(budget=700),
    "fixed": lw.Batching(cut=lw.FixedSize(8), order=lw.SemiSorted(randomization_factor=0.2)),
    "edges": lw.Batching(cut=lw.FixedSize(8), order=lw.Bucketed(buckets=6, pad_to_edge=True)),
    "random": lw.Batching(cut=lw.Budget(700), order=lw.Shuffled()),
    "rows": lw.Batching(cut=lw.Rows(500, rows=4)),
}


class Mean(torch.nn.Module):
    """A loss of one weight."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, labels):
        values, kept = (self.weight - input_ids).square(), labels.ne(-100)
        return {"loss": values[kept].mean()}


def collate(texts, to=None):
    padded = lw.torch.PadCollate(multiple_of=to or 1)(texts)
    return {"input_ids": padded.values, "labels": padded.values.masked_fill(~padded.mask, -100)}


def texts_of(lengths):
    return [torch.arange(int(length)) % 7 for length in lengths]


def train(folder, texts, lengths=LENGTHS, *, batching="budget", collator=collate, **settings):
    usual = {"num_train_epochs": 1, "use_cpu": True, "report_to": "none", "disable_tqdm": True, "log_level": "error"}
    usual |= {"save_strategy": "no", "logging_strategy": "no"}
    arguments = transformers.TrainingArguments(str(folder), **usual | settings)
    sampler = lw.torch.BatchSampler(lengths, BATCHINGS[batching])
    trainer = PlannedTrainer(Mean(), arguments, train_dataset=texts, data_collator=collator, batch_sampler=sampler)
    trainer.train()


@pytest.mark.parametrize(
    ("batching", "unit"),
    [
        (batching, unit)
        for batching, unit in product(BATCHINGS, ["tokens", "special tokens", "words", "truncated"])
        if (batching, unit) != ("random", "truncated")  # of which each holds a text that was truncated: all pad alike
    ],
)
def test_batches_that_are_padded_as_planned_say_nothing(tmp_path, batching, unit):
    texts = {
        "tokens": LENGTHS,
        "special tokens": LENGTHS + 2,
        "words": (LENGTHS * np.random.default_rng(0).uniform(1.0, 2.0, len(LENGTHS))).astype(int),
        "truncated": LENGTHS.clip(max=100),
    }[unit]
    train(tmp_path, texts_of(texts), batching=batching)


@pytest.mark.parametrize("batching", [name for name in BATCHINGS if name not in ("random", "rows")])
@pytest.mark.parametrize("seed", range(2))
def test_lengths_of_another_order_are_told(tmp_path, batching, seed):
    shuffled = np.random.default_rng(seed).permutation(LENGTHS)
    said = r"`lengths` must be those of the dataset, in its order, but is '\d+ and \d+ for batches that are padded to"
    with pytest.warns(UserWarning, match=said):
        train(tmp_path, texts_of(shuffled), batching=batching)


@pytest.mark.parametrize("batching", ["budget", "fixed"])
def test_texts_that_a_tokenizer_has_padded_are_told(tmp_path, batching):
    said = r"`batches` must be padded to what is planned, \d+ to \d+, but is '300 for all'\. Let the collate function"
    with pytest.warns(UserWarning, match=said):
        train(tmp_path, texts_of([300] * len(LENGTHS)), batching=batching)


def test_lengths_that_hardly_vary_say_nothing(tmp_path):
    lengths = np.random.default_rng(0).integers(100, 110, 300)
    train(tmp_path, texts_of(lengths[::-1]), lengths)


@pytest.fixture
def logged():
    """What the Trainer logs at level info."""
    logger, heard = logging.getLogger("transformers.trainer"), []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage().strip())
    logger.addHandler(handler)
    yield heard
    logger.removeHandler(handler)
    transformers.utils.logging.set_verbosity_error()


@pytest.mark.parametrize("limit", [{}, {"max_steps": 3}], ids=["epochs", "steps"])
def test_the_log_of_the_trainer_counts_what_is_planned(tmp_path, logged, limit):
    train(tmp_path, texts_of(LENGTHS), log_level="info", **limit)
    plan = lw.make_plan(LENGTHS, BATCHINGS["budget"])
    steps = limit.get("max_steps", plan.steps)
    for line in (
        f"Num examples = {len(LENGTHS)}",
        "Num update steps per epoch = as planned",
        f"Total train batch size (w. parallel, distributed & accumulation) = {round(len(LENGTHS) / plan.steps)}",
        f"Total optimization steps = {steps}",
    ):
        assert line in logged
