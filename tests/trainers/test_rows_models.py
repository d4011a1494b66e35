"""Which models of Hugging Face keep the sequences of a packed row apart: those that the page on packed rows names."""

import inspect
from pathlib import Path

import pytest
import torch

import lengthwise as lw

transformers = pytest.importorskip("transformers")

WORDS = 17
TOKENS = [[5, 6, 7, 8], [9, 3, 4], [2, 11, 5, 6, 7]]
WIDE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.5}
USUAL = {**WIDE, "intermediate_size": 16, "num_key_value_heads": 2, "head_dim": 8}
ENCODER = {**WIDE, "intermediate_size": 16}
STATE = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1, "attn_layer_indices": [1]}

# Names of transformers, and the settings of a small model of each.
BY_POSITIONS = {
    **dict.fromkeys(("Llama", "Qwen2", "Qwen3", "Gemma2", "Phi3"), USUAL),
    "Mistral": {**USUAL, "sliding_window": 2},
    "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.5},
}
BY_A_MASK = {
    "OPT": {**WIDE, "ffn_dim": 16, "word_embed_proj_dim": 16, "init_std": 0.5},
    "Falcon": WIDE,
    "Mpt": {"d_model": 16, "n_layers": 2, "n_heads": 2, "initializer_range": 0.5},
    "BioGpt": ENCODER,
    "XGLM": {"d_model": 16, "num_layers": 2, "attention_heads": 2, "ffn_dim": 16, "init_std": 0.5},
}
NEVER = {
    "Falcon": {**WIDE, "alibi": True},
    "Bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.5},
    "GptOss": {**USUAL, "num_local_experts": 2, "num_experts_per_tok": 2, "sliding_window": 2},
    "Mamba2": {**WIDE, "num_heads": 4, "head_dim": 8, "state_size": 4, "n_groups": 1},
    "Rwkv": {"hidden_size": 16, "num_hidden_layers": 2},
    "Bamba": {**ENCODER, "num_key_value_heads": 2, **STATE},
}
ENCODERS = {
    "Bert": ENCODER,
    "DistilBert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "initializer_range": 0.5},
    **{name: {**ENCODER, "embedding_size": 16} for name in ("Electra", "Albert")},
}
# From the number of the padding token, 1, on.
FROM_TWO = {name: {**ENCODER, "pad_token_id": 1} for name in ("Roberta", "XLMRoberta", "Camembert", "MPNet")}
PADDED_ENCODERS = {
    "FNet": ENCODER,
    "ConvBert": {**ENCODER, "embedding_size": 16},
    "DebertaV2": {**ENCODER, "relative_attention": True},
    "Esm": {**ENCODER, "position_embedding_type": "rotary"},
}
NAMES = {"Mpt": "MPT", "GPT2": "GPT-2", "BioGpt": "BioGPT", "GptOss": "GPT-OSS", "Mamba2": "Mamba", "Rwkv": "RWKV"}
NAMES |= {"DistilBert": "DistilBERT", "Electra": "ELECTRA", "Albert": "ALBERT", "Roberta": "RoBERTa", "Bert": "BERT"}
NAMES |= {"XLMRoberta": "XLM-R", "Camembert": "CamemBERT", "ConvBert": "ConvBERT", "DebertaV2": "DeBERTa", "Esm": "ESM"}
NAMES |= {"Qwen2": "Qwen", "Qwen3": "Qwen", "Gemma2": "Gemma", "Phi3": "Phi"}


def far_from_alone(name, settings, *, head="ForCausalLM", first=0, **given):
    """Returns the largest difference of packed sequences' outputs to those of each alone, relative to the greatest."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{"vocab_size": WORDS, "pad_token_id": 0, **settings})
    kind = "GPT2LMHeadModel" if name == "GPT2" else f"{name}{head}"
    model = getattr(transformers, kind)(config).eval()
    batch = lw.torch.RowCollate(16, labels=None)([{"input_ids": each} for each in TOKENS])
    with torch.no_grad():
        cache = {} if head == "ForMaskedLM" else {"use_cache": False}
        alone = [model(input_ids=torch.tensor([each]), **cache).logits[0] for each in TOKENS]
        inputs = batch.for_transformers(**given, position_start=first)
        if head == "ForMaskedLM":  # some encoders take no cache, and others no positions
            taken = inspect.signature(model.forward).parameters
            inputs = {key: value for key, value in inputs.items() if key in taken and key != "use_cache"}
        packed = model(**inputs).logits[0]
    found = [packed[batch.segments[0] == number + 1] for number in range(len(TOKENS))]
    furthest = max((one - other).abs().max() for one, other in zip(found, alone, strict=True))
    return float(furthest / torch.cat(alone).abs().max())


APART, TOGETHER, NEAR = (0, 1e-4), (0.01, float("inf")), (1e-3, float("inf"))
MASKED = {"head": "ForMaskedLM", "causal": False}
CASES = [
    *((name, settings, {}, APART) for name, settings in BY_POSITIONS.items()),
    *((name, settings, {}, TOGETHER) for name, settings in BY_A_MASK.items()),
    *((name, settings, {"causal": True}, APART) for name, settings in BY_A_MASK.items()),
    *((name, settings, given, TOGETHER) for name, settings in NEVER.items() for given in ({}, {"causal": True})),
    *((name, settings, MASKED, APART) for name, settings in ENCODERS.items()),
    *((name, settings, MASKED, TOGETHER) for name, settings in FROM_TWO.items()),
    *((name, settings, {**MASKED, "first": 2}, APART) for name, settings in FROM_TWO.items()),
    *((name, settings, MASKED, NEAR) for name, settings in PADDED_ENCODERS.items()),
]


@pytest.mark.parametrize(("name", "settings", "given", "expected"), CASES)
def test_a_model_keeps_sequences_apart_as_the_page_says(name, settings, given, expected):
    try:
        far = far_from_alone(name, settings, **given)
    except (ValueError, RuntimeError, TypeError):  # no mask of four dimensions, for example
        assert name in NEVER.keys() | PADDED_ENCODERS.keys()
    else:
        assert expected[0] <= far < expected[1]


def test_the_page_names_them():
    page = " ".join((Path(__file__).parents[2] / "docs" / "packing.md").read_text(encoding="utf-8").split())
    for name in (*BY_POSITIONS, *BY_A_MASK, *NEVER, *ENCODERS, *FROM_TWO, *PADDED_ENCODERS):
        assert NAMES.get(name, name) in page
