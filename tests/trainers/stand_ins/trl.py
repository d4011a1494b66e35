from datasets import Dataset
from transformers import BertConfig, BertModel, ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

import lengthwise as lw

lengths = (lw.example_lengths("long-tailed", count=400) // 8).tolist()
tokenizer = ByT5Tokenizer()  # of bytes
sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
model = LlamaForCausalLM(LlamaConfig(vocab_size=384, **sizes))
settings = {"use_cpu": True, "dataloader_pin_memory": False, "report_to": "none", "num_train_epochs": 1}
texts = ["a" * length for length in lengths]
tokenizer.chat_template = "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}"
chats = Dataset.from_dict({"messages": [[{"role": "user", "content": text}] for text in texts]})
answers = {"chosen": ["b" * (1 + length // 2) for length in lengths], "rejected": ["c"] * 400}
pairs = Dataset.from_dict({"prompt": texts, **answers})
sentences = Dataset.from_dict({"first": texts, "second": texts, "score": [0.5] * 400})
tokenizer.save_pretrained("encoder")
BertModel(BertConfig(vocab_size=384, **sizes)).save_pretrained("encoder")
