"""Packed rows under the Hugging Face Trainer: each step has the gradient of the same step padded, in one batch."""

import gc
import re

import numpy as np
import pytest
import torch
from heads import SAID, Gradients, gradient

import lengthwise as lw
from lengthwise.torch import PadCollate, RowCollate, block_mask

transformers = pytest.importorskip("transformers")

from lengthwise.torch.huggingface import PlannedTrainer  # noqa: E402

CAPACITY, WORDS = 16, 11
TOKENS = [np.random.default_rng(number).integers(1, WORDS, 2 + number * 7 % 15).tolist() for number in range(20)]
LENGTHS = [len(tokens) for tokens in TOKENS]
ROWS = lw.Batching(cut=lw.Rows(CAPACITY, rows=2))
SETTINGS = {"num_train_epochs": 1, "gradient_accumulation_steps": 2, "remove_unused_columns": False, **SAID}
SIZE = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
STATE = {"hidden_size": 8, "num_hidden_layers": 1, "num_heads": 2, "head_dim": 8, "state_size": 4, "n_groups": 1}


def mask_of(positions):
    """The mask by which a place looks at its own sequence alone."""
    hidden = ~block_mask(torch.ones_like(positions).cumsum(1) - positions, causal=False)
    return torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)


class OwnMask(PlannedTrainer):
    """Gives the model a mask itself, and says so."""

    def training_step(self, model, inputs, *args):
        return super().training_step(model, {**inputs, "attention_mask": mask_of(inputs["position_ids"])}, *args)

    def check_rows(self, batch):
        assert "attention_mask" not in batch


class Masking(transformers.BertForMaskedLM):
    """Gives its part without a head a mask, which that part alone would lack."""

    def forward(self, *, position_ids=None, **fields):
        mask = None if position_ids is None else mask_of(position_ids)
        return super().forward(position_ids=position_ids, attention_mask=mask, **fields)


def bert(head=transformers.BertForMaskedLM):
    return head(transformers.BertConfig(vocab_size=WORDS, **SIZE))


def llama(**given):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=WORDS, **SIZE, **given))


def roberta():
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(vocab_size=WORDS + 1, pad_token_id=WORDS, **SIZE))


def mamba():
    return transformers.Mamba2ForCausalLM(transformers.Mamba2Config(vocab_size=WORDS, **STATE))


def trainer_of(model, folder, collate, *, trainer=PlannedTrainer, batching=ROWS, **more):
    """A Trainer on samples as tokenizers give them, with a mask."""
    gc.freeze()
    return trainer(
        model=model,
        args=transformers.TrainingArguments(str(folder), **SETTINGS),
        train_dataset=[{"input_ids": tokens, "attention_mask": [1] * len(tokens)} for tokens in TOKENS],
        batch_sampler=lw.torch.BatchSampler(LENGTHS, batching, micro_batches=2),
        data_collator=collate,
        **more,
    )


def packing(**given):
    return lambda samples: RowCollate(CAPACITY, rows=2)(samples).for_transformers(**given)


BERT = "^BertForMaskedLM does not keep the sequences of a packed row apart\\. Give batch.for_transformers"
MAMBA = "^Mamba2ForCausalLM does not keep the .* or layers with a state, as Mamba has\\. "
ROBERTA = "^RobertaForMaskedLM does not keep the .* For RoBERTa give position_start"
CASES = {  # a model, what the rows are given with, and what is said
    "looks across": (bert, {}, BERT),
    "looks across what lies flat": (bert, {"flat": True}, BERT),  # which flash attention alone keeps apart
    "a mask for all": (bert, {"causal": False}, None),
    "a mask of its own": (lambda: bert(Masking), {}, None),
    "by positions": (llama, {}, None),
    "by positions, flat": (llama, {"flat": True}, None),
    "a state": (mamba, {}, MAMBA),
    "a state, with a mask": (mamba, {"causal": True}, MAMBA),
    "positions from two": (roberta, {"causal": False}, ROBERTA),
    "positions from two, given": (roberta, {"causal": False, "position_start": WORDS + 1}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_does_not_keep_the_sequences_of_a_row_apart_is_refused(tmp_path, name):
    make, given, said = CASES[name]
    torch.manual_seed(0)
    trainer = trainer_of(make(), tmp_path, packing(**given))
    if said is None:
        trainer.train()
        return
    with pytest.raises(ValueError, match=said):
        trainer.train()


def test_a_trainer_that_gives_a_mask_itself_says_so(tmp_path):
    trainer_of(bert(), tmp_path, packing(), trainer=OwnMask).train()


def test_a_plan_that_packs_nothing_tries_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(PlannedTrainer, "check_rows", lambda *_: pytest.fail("tried"))

    def collate(samples):
        values = PadCollate()([sample["input_ids"] for sample in samples]).values
        return {"input_ids": values, "labels": values}

    trainer_of(llama(), tmp_path, collate, batching=lw.Batching(budget=64)).train()


def test_a_collate_function_that_gives_no_dict_is_refused(tmp_path):
    trainer = trainer_of(torch.nn.Linear(1, 1), tmp_path, RowCollate(CAPACITY, rows=2))
    with pytest.raises(TypeError, match=re.escape("`data_collator` must be one whose batches are dicts, but is 'Pa")):
        trainer.train()


def test_each_step_has_the_gradient_of_the_step_padded(tmp_path):
    torch.manual_seed(0)
    model = llama(initializer_range=0.5).double()
    still = torch.optim.SGD(model.parameters(), lr=0.0)  # so that every gradient is one of the same weights
    steps = Gradients(model)
    trainer = trainer_of(model, tmp_path, packing(), optimizers=(still, None), callbacks=[steps])
    trainer.args.max_grad_norm = 0.0
    trainer.train()
    plan = trainer.batch_sampler.plan
    assert len(steps.kept) == plan.steps > 1
    for step, packed in zip(plan.grid, steps.kept, strict=True):
        members = np.concatenate([plan.batch(int(number)) for number in step.reshape(-1)])
        padded = PadCollate()([{"input_ids": TOKENS[member], "labels": TOKENS[member]} for member in members])
        model.zero_grad()
        model(**padded).loss.backward()
        assert torch.allclose(packed, gradient(model), rtol=1e-4, atol=1e-6)
