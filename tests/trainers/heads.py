"""Small models of transformers with random weights, and the gradients of their steps on planned batches.

A head is a model with its loss. Those here differ in what the loss is a mean of, and in whether it is divided by the
count of labels that the Trainer gives (`num_items_in_batch`), or only takes that count as one of its `**kwargs`.
"""

import gc
from dataclasses import dataclass, field
from functools import partial

import datasets
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

import lengthwise as lw
from lengthwise.torch.huggingface import PlannedTrainer

LENGTHS = [3, 9, 4, 7, 12, 5, 6, 8, 10, 3, 11]
FEW = LENGTHS[:3]  # of 4 batches in a step, one is taken a second time
CLASSES, SYMBOLS = 3, 20
WIDTHS = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "hidden_size": 8}
SAID = {"use_cpu": True, "report_to": "none", "save_strategy": "no", "logging_strategy": "no", "log_level": "error"}


def text(number):
    return torch.arange(LENGTHS[number]) * (number + 3) % (SYMBOLS - 3) + 3


def texts(numbers, labels=None):
    """Ids and their mask; the labels are the ids, those of the padding -100, if no others are given."""
    ids = pad_sequence([text(number) for number in numbers], batch_first=True, padding_value=-100)
    labels = ids if labels is None else torch.tensor([labels(number) for number in numbers])
    return {"input_ids": ids.clamp(min=0), "attention_mask": ids.ne(-100).long(), "labels": labels}


def decoded(numbers):
    """Texts with the inputs of the decoder, because a smoother takes the labels away from the model."""
    batch = texts(numbers)
    return batch | {"decoder_input_ids": torch.nn.functional.pad(batch["input_ids"], (1, 0))[:, :-1]}


def answers(numbers):
    """The labels of every third text only: a batch may have none."""
    batch = texts(numbers)
    batch["labels"][[number % 3 != 0 for number in numbers]] = -100
    return batch


def sounds(numbers):
    waves = [torch.sin(torch.arange(400 + 160 * LENGTHS[number]) / (3 + number)).double() for number in numbers]
    labels = [text(number)[: 2 + number % 3] for number in numbers]
    return {
        "input_values": pad_sequence(waves, batch_first=True),
        "attention_mask": pad_sequence([torch.ones(len(wave), dtype=torch.long) for wave in waves], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=-100),
    }


def bert(head, **given):
    dropping = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return head(transformers.BertConfig(vocab_size=SYMBOLS, **WIDTHS, **dropping, **given))


def bart(head):
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "dropout": 0.0, "d_model": 8}
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    return head(transformers.BartConfig(vocab_size=SYMBOLS, max_position_embeddings=16, **heads, **sizes))


def t5():
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    config = transformers.T5Config(vocab_size=SYMBOLS, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=SYMBOLS, **WIDTHS))


def gpt2():
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 16}
    dropping = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=SYMBOLS, **sizes, **dropping))


def wav2vec2(reduction):
    names = ("hidden", "attention", "activation", "feat_proj", "final")
    convolutions = {"conv_dim": (8, 8), "conv_stride": (80, 2), "conv_kernel": (100, 2), "num_feat_extract_layers": 2}
    positions = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "feat_extract_norm": "layer"}
    dropping = {f"{name}_dropout": 0.0 for name in names} | {"layerdrop": 0.0, "mask_time_prob": 0.0}
    given = {**WIDTHS, **convolutions, **positions, **dropping, "ctc_loss_reduction": reduction}
    config = transformers.Wav2Vec2Config(vocab_size=SYMBOLS, pad_token_id=0, do_stable_layer_norm=True, **given)
    return transformers.Wav2Vec2ForCTC(config)


def summed(outputs, labels, num_items_in_batch):
    """A loss function that leaves the division to the count."""
    return torch.nn.functional.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch


@dataclass(frozen=True, kw_only=True)
class Head:
    """A model, what it is given, and more for the Trainer."""

    make: object
    collate: object = texts
    given: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    lengths: list = field(default_factory=lambda: LENGTHS)


class Generating(PlannedTrainer, transformers.Seq2SeqTrainer):
    """The Trainer of models that generate, on planned batches."""


classes = partial(texts, labels=lambda number: number % CLASSES)
classifier = partial(bert, transformers.BertForSequenceClassification, num_labels=CLASSES)
regression = partial(bert, transformers.BertForSequenceClassification, num_labels=1, problem_type="regression")
HARMLESS = {  # settings that sound as if they changed what a batch or a step is
    "averaged apart": {"average_tokens_across_devices": False},
    "dispatched": {"accelerator_config": {"dispatch_batches": True}},
    "split": {"accelerator_config": {"split_batches": True}},
    "uneven": {"accelerator_config": {"even_batches": False}},
    "accumulated": {
        "gradient_accumulation_steps": 1,
        "accelerator_config": {"gradient_accumulation_kwargs": {"num_steps": 2, "sync_each_batch": True}},
    },
    "out of order": {
        **{"dataloader_in_order": False, "dataloader_num_workers": 1},
        **{"dataloader_multiprocessing_context": "fork"},
    },
}
HEADS = {
    "classes": Head(make=classifier, collate=classes),
    "classes, smoothed": Head(make=classifier, collate=classes, settings={"label_smoothing_factor": 0.1}),
    "classes, a function": Head(make=classifier, collate=classes, given={"compute_loss_func": summed}),
    **{f"classes, {name}": Head(make=classifier, collate=classes, settings=each) for name, each in HARMLESS.items()},
    "values": Head(make=regression, collate=partial(texts, labels=lambda number: number / 7.0)),
    "tokens": Head(make=partial(bert, transformers.BertForTokenClassification, num_labels=SYMBOLS)),
    "t5": Head(make=t5),
    "t5, few": Head(make=t5, lengths=FEW),
    "t5, smoothed": Head(make=t5, collate=decoded, settings={"label_smoothing_factor": 0.1}),
    "t5, weights": Head(make=t5, given={"weights": LENGTHS}),
    "bart": Head(make=partial(bart, transformers.BartForConditionalGeneration), given={"trainer": Generating}),
    # It does not shift, though so named.
    "bart, causal": Head(make=partial(bart, transformers.BartForCausalLM), given={"next_token": False}),
    "llama": Head(make=llama),
    "llama, few": Head(make=llama, lengths=FEW),
    "llama, smoothed": Head(make=llama, settings={"label_smoothing_factor": 0.1}),
    "llama, answers": Head(make=llama, collate=answers),
    "llama, weights": Head(make=llama, given={"weights": [length - 1 for length in LENGTHS]}),
    "gpt2": Head(make=gpt2),  # shifts, though not so named
    "ctc, mean": Head(make=partial(wav2vec2, "mean"), collate=sounds, given={"weights": [1] * len(LENGTHS)}),
    "ctc, sum": Head(make=partial(wav2vec2, "sum"), collate=sounds, given={"reduction": "sum"}),
}


class Gradients(transformers.TrainerCallback):
    """Keeps the gradient of each step."""

    def __init__(self, model):
        self.model, self.kept = model, []

    def on_pre_optimizer_step(self, args, state, control, **_):
        self.kept.append(gradient(self.model))


def gradient(model):
    return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])


def trainer_of(name, folder, *, micro_batches, num_train_epochs=1, enable_jit_checkpoint=False, **more):
    """A Trainer for one epoch that changes no weights, and what keeps its gradients."""
    gc.freeze()  # each run of a Trainer collects the garbage of all that is imported, the runs before it included
    head = HEADS[name]
    torch.manual_seed(0)
    model = head.make().double()
    batching = lw.Batching(cut=lw.Budget(25), order=lw.Shuffled())
    sampler = lw.torch.BatchSampler(head.lengths, batching, seed=1, micro_batches=micro_batches)
    steps = {"gradient_accumulation_steps": micro_batches, "num_train_epochs": num_train_epochs, "disable_tqdm": True}
    steps["enable_jit_checkpoint"] = enable_jit_checkpoint
    settings = {"learning_rate": 0.0, "max_grad_norm": 0.0, "dataloader_pin_memory": False, **steps, **SAID}
    kept = Gradients(model)
    given = {"data_collator": head.collate, "trainer": PlannedTrainer, **head.given, **more}
    given |= {} if "batching" in more else {"batch_sampler": sampler}
    seq2seq = given["trainer"] is Generating
    arguments = transformers.Seq2SeqTrainingArguments if seq2seq else transformers.TrainingArguments
    return kept, given.pop("trainer")(
        model=model,
        args=arguments(folder, **settings | head.settings),
        train_dataset=given.pop("train_dataset", range(len(head.lengths))),
        callbacks=[kept],
        **given,
    )


def errors(name, folder, micro_batches):
    """Returns the relative error of each step's gradient, against that of the whole step at once."""
    kept, trainer = trainer_of(name, folder, micro_batches=micro_batches)
    trainer.train()
    plan = trainer.batch_sampler.plan
    assert len(kept.kept) == plan.steps
    wholes = [whole(name, trainer, {int(n) for b in step.ravel() for n in plan.batch(b)}) for step in plan.grid]
    return [float((one - other).norm() / other.norm()) for one, other in zip(kept.kept, wholes, strict=True)]


def whole(name, trainer, numbers):
    """The gradient of the mean over these sequences as one batch, by the model's loss or the Trainer's smoother."""
    model = trainer.model
    model.zero_grad()
    batch = HEADS[name].collate(sorted(numbers))
    outputs = model(**batch)
    loss = outputs.loss
    if trainer.label_smoother is not None:
        loss = trainer.label_smoother(outputs, batch["labels"], shift_labels="llama" in name)
    if name == "ctc, sum":
        loss = loss / int(batch["labels"].ne(-100).sum())
    loss.backward()
    return gradient(model)


def evaluated(name, folder):
    """The evaluated loss of the first ten sequences, five to each of two ranks, and their loss as one batch."""
    _, trainer = trainer_of(name, folder, micro_batches=1)
    trainer.args.per_device_eval_batch_size = 5
    with torch.no_grad():
        expected = float(trainer.model.eval()(**HEADS[name].collate(range(10))).loss)
    return trainer.evaluate(range(10))["eval_loss"], expected


def evaluated_as_planned(name, folder):
    """The evaluated loss of batches under a budget, that of all texts as one batch, and the sizes of the batches."""
    texts = [{"input_ids": text(number).tolist(), "number": number} for number in range(len(LENGTHS))]
    texts, sizes = datasets.Dataset.from_list(texts), []

    def collate(samples):
        sizes.append(len(samples))
        return HEADS[name].collate([sample["number"] for sample in samples])

    given = {"batching": lw.Batching(budget=11), "train_dataset": texts.select([0]), "data_collator": collate}
    _, trainer = trainer_of(name, folder, micro_batches=1, **given)
    trainer.args.remove_unused_columns = False
    with torch.no_grad():
        expected = float(trainer.model.eval()(**HEADS[name].collate(range(len(LENGTHS)))).loss)
    loss = trainer.evaluate(texts)["eval_loss"]
    trainer.predict(texts)
    return loss, expected, sizes, trainer.evaluate(texts.select([1, 2, 4]))["eval_loss"]


def largest_errors(folder, micro_batches, names=HEADS):
    """Returns the largest error of the gradients of each head, by name."""
    return {name: max(errors(name, folder, micro_batches)) for name in names}


class Partly:
    """Gives labels on rank 0 only."""

    def __call__(self, numbers):
        batch = texts(numbers)
        if torch.distributed.get_rank():
            batch["decoder_labels"] = batch.pop("labels")
        return batch


class Apart(PlannedTrainer):
    """Computes its loss without the loss of PlannedTrainer."""

    def compute_loss(self, model, inputs, *_, **__):
        return model(**inputs).loss


class Stopping(transformers.TrainerCallback):
    """Asks for the checkpoint that SIGTERM asks for, within the second step."""

    def on_substep_end(self, args, state, control, **_):
        if state.global_step == 1:
            self.manager.is_checkpoint_requested = True


def stopped_within_a_step(folder):
    """Gradients of a run of 4 steps, and of one that goes on from a checkpoint within the second step."""
    given = {"micro_batches": 3, "num_train_epochs": 2}
    whole, trainer = trainer_of("t5", folder, **given)
    trainer.train()
    _, left = trainer_of("t5", folder, **given, enable_jit_checkpoint=True)
    stopping = Stopping()
    stopping.manager = next(
        each.jit_manager for each in left.callback_handler.callbacks if hasattr(each, "jit_manager")
    )
    left.add_callback(stopping)
    left.train()
    resumed, trainer = trainer_of("t5", folder, **given)
    trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-1")
    return whole.kept, resumed.kept


REFUSED = {  # a head, more for the Trainer, and what is said
    "some labels": ("t5", {"data_collator": Partly()}, "Some batches have a tensor of labels, and others have none."),
    "another loss": (
        "t5",
        {"trainer": Apart},
        "`Apart.compute_loss` does not scale the loss by the share of the batch in its step. Let it call super()",
    ),
}


def refusals(folder):
    """Returns the errors of the heads of `REFUSED`."""
    return {name: refusal(*given, folder) for name, (*given, _) in REFUSED.items()}


def refusal(name, more, folder):
    try:
        trainer_of(name, folder, micro_batches=2, **more)[1].train()
    except ValueError as error:
        return str(error)
    return ""
