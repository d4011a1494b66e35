"""The Hugging Face Trainer on planned batches: a small GPT-2 learns to read numbers aloud.

python examples/hugging_face.py
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

import lengthwise as lw
from lengthwise.torch.huggingface import PlannedTrainer

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
numbers = torch.randint(10**6, (500,), generator=torch.Generator().manual_seed(0)).pow(2) % 10**6 // 7**2
lines = [f"{number}: {' '.join(DIGITS[int(digit)] for digit in str(number))}." for number in numbers.tolist()]
tokens = [list(line.encode()) for line in lines]  # a token is a byte
texts = [{"input_ids": text, "labels": text} for text in tokens]
collate = lw.torch.PadCollate(value={"input_ids": 0})  # labels are padded with -100

torch.manual_seed(0)
sizes = {"vocab_size": 128, "n_positions": max(map(len, tokens)), "bos_token_id": 0, "eos_token_id": 0}
model = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=2, **sizes))

batching = lw.Batching(budget=1_000, padding=0.03)  # at most 1,000 tokens a batch, padding included
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        num_train_epochs=4,
        gradient_accumulation_steps=2,
        learning_rate=5e-3,
        use_cpu=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        logging_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = PlannedTrainer(model, arguments, train_dataset=texts, data_collator=collate, batching=batching)
    trainer.train()

print(f"steps: {trainer.state.global_step} taken, {4 * trainer.batch_sampler.steps} planned")
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print("loss of each epoch:", ", ".join(f"{loss:.2f}" for loss in losses))
