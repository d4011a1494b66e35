from datasets import Dataset
from transformers import BertConfig, BertModel, ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

import lengthwise as lw

tokenizer = ByT5Tokenizer()  # of bytes
sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
model = LlamaForCausalLM(LlamaConfig(vocab_size=384, **sizes))
settings = {"use_cpu": True, "dataloader_pin_memory": False, "report_to": "none", "num_train_epochs": 1}
texts = ["a" * int(length) for length in lw.example_lengths("long-tailed", count=400) // 8]
tokenizer.chat_template = "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}"
chats = Dataset.from_dict({"messages": [[{"role": "user", "content": text}] for text in texts]})
chosen = ["b" * (1 + len(text) // 2) for text in texts]
pairs = Dataset.from_dict({"prompt": texts, "chosen": chosen, "rejected": ["c"] * 400})
sentences = Dataset.from_dict({"first": texts, "second": texts, "score": [0.5] * 400})
tokenizer.save_pretrained("encoder")
BertModel(BertConfig(vocab_size=384, **sizes)).save_pretrained("encoder")
