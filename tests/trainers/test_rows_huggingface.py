"""Packed rows under the Hugging Face Trainer: each step has the gradient of the same step padded, in one batch."""

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.torch import PadCollate, RowCollate, block_mask

transformers = pytest.importorskip("transformers")

from lengthwise.torch.huggingface import PlannedTrainer  # noqa: E402

CAPACITY, WORDS = 16, 11
TOKENS = [np.random.default_rng(number).integers(1, WORDS, 2 + number * 7 % 15).tolist() for number in range(40)]
SETTINGS = {
    **{"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "max_grad_norm": 0.0},
    **{
        "num_train_epochs": 1,
        "gradient_accumulation_steps": 2,
        "remove_unused_columns": False,
        "logging_strategy": "no",
    },
}


class Steps(transformers.TrainerCallback):
    """Keeps the gradient before each step."""

    def __init__(self, model):
        self.model, self.gradients = model, []

    def on_pre_optimizer_step(self, *_, **__):
        self.gradients.append(torch.cat([each.grad.flatten().clone() for each in self.model.parameters()]))


def collate(samples):
    return RowCollate(CAPACITY, rows=2)(samples).for_transformers()


@pytest.mark.parametrize(
    "collator", [RowCollate(CAPACITY), lambda texts: PadCollate()([text["input_ids"] for text in texts])]
)
def test_a_collate_function_that_gives_no_dict_is_refused(tmp_path, collator):
    trainer = PlannedTrainer(
        model=torch.nn.Linear(1, 1),
        args=transformers.TrainingArguments(str(tmp_path), **SETTINGS),
        train_dataset=[{"input_ids": each} for each in TOKENS],
        batch_sampler=lw.torch.BatchSampler(
            [len(each) for each in TOKENS], lw.Batching(cut=lw.Rows(CAPACITY)), micro_batches=2
        ),
        data_collator=collator,
    )
    with pytest.raises(TypeError, match=r"^`data_collator` must be one whose batches are dicts, but is 'Pa"):
        trainer.train()


MODELS = {
    "bert": lambda size: transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=WORDS, **size)),
    "llama": lambda size: transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=WORDS, **size)),
}


def train_packed(tmp_path, name, trainer=PlannedTrainer, **given):
    """Trains a small model on packed rows of samples as tokenizers give them, with a mask."""
    size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    lengths = [len(each) for each in TOKENS]
    trainer(
        model=MODELS[name](size),
        args=transformers.TrainingArguments(str(tmp_path), **SETTINGS),
        train_dataset=[{"input_ids": each, "attention_mask": [1] * len(each)} for each in TOKENS],
        batch_sampler=lw.torch.BatchSampler(lengths, lw.Batching(cut=lw.Rows(CAPACITY, rows=2)), micro_batches=2),
        data_collator=lambda samples: RowCollate(CAPACITY, rows=2)(samples).for_transformers(**given),
    ).train()


def test_a_model_whose_attention_looks_across_sequences_is_refused(tmp_path):
    message = r"^`attention_mask` must be one by which BertForMaskedLM keeps the sequences of a packed row apart, but"
    with pytest.raises(ValueError, match=message):
        train_packed(tmp_path, "bert")
    with pytest.raises(ValueError, match=message):  # laid end to end, which flash attention alone keeps apart
        train_packed(tmp_path, "bert", flat=True)


@pytest.mark.parametrize("given", [{}, {"causal": True}, {"flat": True}])
def test_a_model_with_a_state_that_runs_on_into_the_next_sequence_is_refused(tmp_path, given, monkeypatch):
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_heads": 2, "head_dim": 8, "state_size": 4, "n_groups": 1}
    config = transformers.Mamba2Config(vocab_size=WORDS, **size)
    monkeypatch.setitem(MODELS, "mamba2", lambda _: transformers.Mamba2ForCausalLM(config))
    message = r"^`attention_mask` must be one by which Mamba2ForCausalLM .* or layers with a state, as Mamba has\. "
    with pytest.raises(ValueError, match=message):
        train_packed(tmp_path, "mamba2", **given)


def mask_of(positions):
    """What a place may look at: its own sequence."""
    hidden = ~block_mask(torch.ones_like(positions).cumsum(1) - positions, causal=False)
    return torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)


class OwnMask(PlannedTrainer):
    """Gives the model a mask itself."""

    def training_step(self, model, inputs, *args):
        return super().training_step(model, {**inputs, "attention_mask": mask_of(inputs["position_ids"])}, *args)

    def check_rows(self, batch):
        assert "attention_mask" not in batch


def test_a_trainer_that_gives_a_mask_itself_says_so(tmp_path):
    train_packed(tmp_path, "bert", trainer=OwnMask)


class Masking(transformers.BertForMaskedLM):
    """Gives its part without a head a mask, which that part alone would lack."""

    def forward(self, *, position_ids=None, **fields):
        mask = None if position_ids is None else mask_of(position_ids)
        return super().forward(position_ids=position_ids, attention_mask=mask, **fields)


def test_a_model_that_gives_its_part_a_mask_is_not_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "own", lambda size: Masking(transformers.BertConfig(vocab_size=WORDS, **size)))
    train_packed(tmp_path, "own")


@pytest.mark.parametrize(("name", "given"), [("bert", {"causal": False}), ("llama", {}), ("llama", {"flat": True})])
def test_a_model_that_keeps_sequences_apart_trains(tmp_path, name, given):
    train_packed(tmp_path, name, **given)


def test_a_model_that_counts_positions_from_two_is_refused_until_it_gets_them(tmp_path, monkeypatch):
    make = lambda size: transformers.RobertaForMaskedLM(  # noqa: E731
        transformers.RobertaConfig(vocab_size=WORDS + 1, pad_token_id=WORDS, **size)
    )
    monkeypatch.setitem(MODELS, "roberta", make)
    with pytest.raises(ValueError, match=r"RobertaForMaskedLM keeps the sequences .* For RoBERTa give position_start"):
        train_packed(tmp_path, "roberta", causal=False)
    train_packed(tmp_path, "roberta", causal=False, position_start=WORDS + 1)


def test_a_plan_that_packs_nothing_tries_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(PlannedTrainer, "check_rows", lambda *_: pytest.fail("tried"))
    lengths = [len(each) for each in TOKENS]
    PlannedTrainer(
        model=MODELS["llama"]({"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}),
        args=transformers.TrainingArguments(str(tmp_path), **{**SETTINGS, "max_steps": 2}),
        train_dataset=TOKENS,
        batch_sampler=lw.torch.BatchSampler(lengths, lw.Batching(budget=64), micro_batches=2),
        data_collator=lambda texts: {
            "input_ids": (values := PadCollate()(texts).values),
            "labels": values,
        },
    ).train()


def test_each_step_has_the_gradient_of_the_step_padded(tmp_path):
    size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=WORDS, initializer_range=0.5, **size))
    model = model.double()
    lengths = [len(each) for each in TOKENS]
    sampler = lw.torch.BatchSampler(lengths, lw.Batching(cut=lw.Rows(CAPACITY, rows=2)), micro_batches=2)
    steps = Steps(model)
    still = torch.optim.SGD(model.parameters(), lr=0.0)  # so that every gradient is one of the same weights
    PlannedTrainer(
        model=model,
        args=transformers.TrainingArguments(str(tmp_path), **SETTINGS),
        train_dataset=[{"input_ids": each} for each in TOKENS],
        batch_sampler=sampler,
        data_collator=collate,
        optimizers=(still, None),
        callbacks=[steps],
    ).train()
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Rows(CAPACITY, rows=2)), micro_batches=2)
    assert len(steps.gradients) == plan.steps > 3
    for step, gradient in zip(plan.grid, steps.gradients, strict=True):
        members = np.concatenate([plan.batch(int(number)) for number in step.reshape(-1)])
        samples = [{"input_ids": TOKENS[member], "labels": TOKENS[member]} for member in members]
        padded = PadCollate()(samples)
        tokens = padded["input_ids"]
        model.zero_grad()
        model(
            input_ids=tokens.values, attention_mask=tokens.mask.long(), labels=padded["labels"].values
        ).loss.backward()
        whole = torch.cat([each.grad.flatten() for each in model.parameters()])
        assert torch.allclose(gradient, whole, rtol=1e-4, atol=1e-6)
