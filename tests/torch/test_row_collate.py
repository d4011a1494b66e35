"""Rows as tensors: what stands where, and that a network learns from them exactly as from padded batches."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import PadCollate, RowCollate, block_mask

CAPACITY, WORDS, WIDTH = 24, 17, 8
DEALS = (lw.Balanced(), lw.RandomSteps())


def token_lists(count, seed=0, *, most=CAPACITY):
    chance = np.random.default_rng(seed)
    return [chance.integers(1, WORDS, chance.integers(1, most + 1)).tolist() for _ in range(count)]


def test_each_tensor_by_hand():
    samples = [
        {"input_ids": [5, 6, 7], "weight": 2.0, "name": "a"},
        {"input_ids": [8, 9], "weight": 3.0, "name": "b"},
        {"input_ids": [3, 4], "weight": 4.0, "name": "c"},
    ]
    batch = RowCollate(6, rows=3, value=1)(samples)
    assert batch.fields["input_ids"].tolist() == [[5, 6, 7, 8, 9, 1], [3, 4, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]
    none = [-100] * 6
    assert batch.fields["labels"].tolist() == [[-100, 6, 7, -100, 9, -100], [-100, 4, *none[:4]], none]
    assert batch.fields["weight"].tolist() == [2.0, 3.0, 4.0]
    assert batch.fields["name"] == ["a", "b", "c"]
    assert batch.positions.tolist() == [[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]
    assert batch.segments.tolist() == [[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
    assert batch.offsets.tolist() == [0, 3, 5, 6, 8, 12, 18]
    assert batch.offsets.dtype == torch.int32
    assert batch.max_length == 6


def test_labels_that_are_given_and_labels_of_each_place():
    sample = {"input_ids": [5, 6, 7], "labels": [-100, -100, 7]}
    assert RowCollate(4)([sample]).fields["labels"].tolist() == [[-100, -100, 7, -100]]
    tags = {"input_ids": [5, 6], "labels": [1, 0]}
    assert RowCollate(4, next_token=False)([tags]).fields["labels"].tolist() == [[1, 0, -100, -100]]
    assert "labels" not in RowCollate(4, labels=None)([{"input_ids": [5]}]).fields


def test_what_padding_holds_is_said_by_name():
    sample = {"input_ids": [5, 6], "attention_mask": [1, 1]}
    fields = RowCollate(4, value=7)([sample]).fields
    assert (fields["input_ids"].tolist(), fields["attention_mask"].tolist()) == ([[5, 6, 7, 7]], [[1, 1, 0, 0]])
    fields = RowCollate(4, value={"input_ids": 7, "labels": -1})([sample]).fields
    assert (fields["input_ids"].tolist(), fields["labels"].tolist()) == ([[5, 6, 7, 7]], [[-1, 6, -1, -1]])


def test_frames_of_any_shape_and_samples_of_any_structure():
    samples = [(torch.ones(2, 3), np.array([1, 2])), (torch.zeros(1, 3), np.array([3]))]
    frames, tags = RowCollate(4, value={"0": 0.5, "1": -1})(samples).fields
    assert frames.shape == (1, 4, 3)
    assert frames[0, 3].tolist() == [0.5, 0.5, 0.5]
    assert tags.tolist() == [[1, 2, 3, -1]]


def test_a_batch_of_one_row_is_that_of_transformers():
    flattening = pytest.importorskip("transformers").DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    samples = [{"input_ids": tokens} for tokens in ([5, 6, 7], [8, 9], [4])]
    theirs = flattening([dict(sample) for sample in samples])
    ours = RowCollate(6)(samples).for_transformers(flat=True)
    assert set(ours) == {*theirs, "use_cache"}
    for name, value in theirs.items():
        assert torch.equal(torch.as_tensor(ours[name]), torch.as_tensor(value)), name


def test_rows_laid_flat():
    batch = RowCollate(4)([{"input_ids": [5, 6, 7]}, {"input_ids": [8, 9]}])
    flat = batch.for_transformers(flat=True)
    assert flat["input_ids"].tolist() == [[5, 6, 7, 0, 8, 9, 0, 0]]
    assert flat["cu_seq_lens_k"].tolist() == [0, 3, 4, 6, 8]
    assert flat["max_length_q"] == 3
    with pytest.raises(TypeError, match=r"^`fields` must be a dict, but is 'Tensor'\. "):
        RowCollate(4)([torch.ones(3)]).for_transformers()


@pytest.mark.parametrize("by", ["pool", "best-fit"])
@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("deal", DEALS)
def test_a_loader_yields_the_rows_of_the_plan(deal, most, by):
    tokens = token_lists(90)
    lengths = [len(each) for each in tokens]
    batching = lw.Batching(cut=lw.Rows(CAPACITY, rows=4, by=by, max_in_row=most), deal=deal)
    collate = RowCollate(CAPACITY, max_in_row=most)
    sampler = lw.torch.BatchSampler(lengths, batching, rank=1, world_size=2)
    data = [{"input_ids": each} for each in tokens]
    plan, seen = sampler.plan, 0
    for number, batch in zip(
        plan.grid[:, 0, 1], DataLoader(data, batch_sampler=sampler, collate_fn=collate), strict=True
    ):
        rows = plan.rows(int(number))
        assert batch.positions.shape == (len(rows), CAPACITY)
        assert batch.segments.amax(1).tolist() == [len(row) for row in rows]
        assert most is None or batch.segments.max() <= most
        for row, laid in zip(rows, batch.fields["input_ids"], strict=True):
            expected = [token for member in row for token in tokens[member]]
            assert laid.tolist() == expected + [0] * (CAPACITY - len(expected))
            seen += len(row)
    assert seen > 0


class Transformer(nn.Module):
    """Two layers of causal attention over learned positions; in float64, so that sums may come in any order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(CAPACITY, WIDTH)
        self.mixes = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH)) for _ in range(2)
        )
        self.out = nn.Linear(WIDTH, WORDS)
        self.double()

    def forward(self, tokens, positions, attend):
        """Scores [rows, places, WORDS]; `attend` maps queries, keys and values [rows, heads, places, 4] to the mix."""
        state = self.words(tokens) + self.places(positions)
        for mix, feed in zip(self.mixes, self.feeds, strict=True):
            rows, places, _ = state.shape
            parts = mix(state).reshape(rows, places, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
            state = state + attend(*parts).transpose(1, 2).reshape(rows, places, WIDTH)
            state = state + feed(state)
        return self.out(state)


def next_token_loss(scores, labels, reduction):
    """The loss as models of Hugging Face compute it: each place against the next label."""
    return functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction=reduction)


def masked(mask):
    return lambda *parts: functional.scaled_dot_product_attention(*parts, attn_mask=mask)


def by_offsets(offsets):
    """Attention that knows the ends of sequences alone, as varlen kernels do."""

    def attend(*parts):
        rows, heads, places, width = parts[0].shape
        flat = [part.transpose(1, 2).reshape(rows * places, heads, width) for part in parts]
        segments = [
            functional.scaled_dot_product_attention(*(part[low:high].transpose(0, 1) for part in flat), is_causal=True)
            for low, high in itertools.pairwise(offsets)
        ]
        return torch.cat(segments, dim=1).reshape(heads, rows, places, width).transpose(0, 1)

    return attend


def padded_loss(model, tokens, reduction="sum"):
    padded = PadCollate()([{"input_ids": each, "labels": each} for each in tokens])
    values, labels = padded["input_ids"].values, padded["labels"].values
    positions = torch.arange(values.shape[1]).expand_as(values)
    seen = padded["input_ids"].mask[:, None, None, :] & torch.ones(2 * values.shape[1:], dtype=torch.bool).tril()
    return next_token_loss(model(values, positions, masked(seen)), labels, reduction)


def packed_loss(model, batch, attend, reduction="sum"):
    scores = model(batch.fields["input_ids"], batch.positions, attend)
    return next_token_loss(scores, batch.fields["labels"], reduction)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("attention", ["mask", "offsets"])
@pytest.mark.parametrize("rows", [None, 20])
def test_packed_and_padded_steps_have_equal_losses_and_gradients(attention, rows):
    model, tokens = Transformer(), token_lists(40)
    batch = RowCollate(CAPACITY, rows=rows)([{"input_ids": each} for each in tokens if len(each) > 0][:25])
    attend = masked(batch.attention_mask()) if attention == "mask" else by_offsets(batch.offsets.tolist())
    packed, padded = packed_loss(model, batch, attend), padded_loss(model, tokens[:25])
    assert torch.allclose(packed, padded, rtol=1e-12)
    assert torch.allclose(gradients(model, packed), gradients(model, padded), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("deal", DEALS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_scaled_losses_of_packed_ranks_make_the_gradient_of_the_whole_step(reduction, deal):
    model, tokens = Transformer(), token_lists(60, 1)
    lengths = np.array([len(each) for each in tokens])
    labels = lengths - 1  # the first token of a sequence is nobody's next token
    batching = lw.Batching(cut=lw.Rows(CAPACITY, rows=2), deal=deal)
    plan = lw.make_plan(lengths, batching, world_size=2, micro_batches=3)
    scales = lw.loss_scales(plan, labels, reduction=reduction)
    collate = RowCollate(CAPACITY, rows=2)
    for step, batches in enumerate(plan.grid):
        total = torch.zeros_like(gradients(model, padded_loss(model, tokens)))
        members = np.concatenate([plan.batch(number) for number in batches.reshape(-1).tolist()])
        for place, number in np.ndenumerate(batches):
            batch = collate([{"input_ids": tokens[member]} for member in plan.batch(int(number))])
            loss = packed_loss(model, batch, masked(batch.attention_mask()), reduction)
            total += gradients(model, float(scales[step][place]) * loss) / plan.world_size
        whole = padded_loss(model, [tokens[member] for member in members], "mean")
        assert torch.allclose(total, gradients(model, whole), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_model_of_transformers_learns_the_same_from_rows(attention):
    transformers = pytest.importorskip("transformers")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    chosen = {"vocab_size": WORDS, "attn_implementation": attention, "initializer_range": 0.5}
    config = transformers.LlamaConfig(**chosen, **size)
    model, tokens = transformers.LlamaForCausalLM(config).double(), [*token_lists(9, 2), [4]]
    batch = RowCollate(CAPACITY)([{"input_ids": each} for each in tokens])
    padded = PadCollate()([{"input_ids": each, "labels": each} for each in tokens])
    values, labels = padded["input_ids"], padded["labels"].values
    theirs = model(input_ids=values.values, attention_mask=values.mask.long(), labels=labels).loss
    ours = model(**batch.for_transformers()).loss
    # Its positions turn in float32, and its loss is computed in it.
    assert torch.allclose(ours, theirs, rtol=1e-6)
    assert torch.allclose(gradients(model, ours), gradients(model, theirs), atol=1e-6)


SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def a_model(name, **settings):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(vocab_size=WORDS, **settings)
    heads = {"Bert": "BertForMaskedLM", "OPT": "OPTForCausalLM", "Llama": "LlamaForCausalLM"}
    return getattr(transformers, heads[name])(config).eval()


def outputs_apart(model, tokens):
    return torch.cat([model(input_ids=torch.tensor([each])).logits[0] for each in tokens])


def outputs_packed(model, batch, inputs):
    outputs, rows = model(**inputs).logits, zip(batch.segments, strict=True)
    return torch.cat([outputs[row][own > 0] for row, (own,) in enumerate(rows)])


def test_the_mask_of_the_samples_does_not_let_sequences_of_a_row_attend_to_each_other():
    model, tokens = a_model("Llama", **SMALL, initializer_range=0.5), token_lists(9, 3)
    batch = RowCollate(CAPACITY)([{"input_ids": each, "attention_mask": [1] * len(each)} for each in tokens])
    inputs = batch.for_transformers()
    assert "attention_mask" not in inputs
    assert "attention_mask" not in batch.for_transformers(flat=True)
    assert torch.allclose(outputs_packed(model, batch, inputs), outputs_apart(model, tokens), atol=1e-5)


def test_a_mask_that_hides_tokens_of_a_sample_is_refused():
    batch = RowCollate(6)([{"input_ids": [5, 6, 0], "attention_mask": [1, 1, 0]}])
    with pytest.raises(ValueError, match=r"^`attention_mask` must be 1 at every token of a sample, but is 0\. Pack "):
        batch.for_transformers()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("name", "causal", "size"),
    [
        ("Bert", False, SMALL),
        ("OPT", True, {"hidden_size": 16, "ffn_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 2}),
        ("Llama", True, SMALL),
    ],
)
def test_with_a_mask_of_its_own_every_model_takes_sequences_of_a_row_alone(name, causal, size, attention, dtype):
    embedded = {"word_embed_proj_dim": 16} if name == "OPT" else {}
    model = a_model(name, attn_implementation=attention, **size, **embedded).to(dtype)
    tokens = token_lists(9, 3)
    batch = RowCollate(CAPACITY, labels=None)([{"input_ids": each} for each in tokens])
    packed = outputs_packed(model, batch, batch.for_transformers(causal=causal, dtype=model.dtype))
    near = {torch.float32: 1e-5, torch.float64: 1e-6, torch.bfloat16: 2e-2}[dtype]  # Llama turns positions in float32
    assert torch.allclose(packed, outputs_apart(model, tokens), atol=near)


def test_flash_attention_takes_no_mask():
    batch = RowCollate(6)([{"input_ids": [5, 6]}])
    with pytest.raises(ValueError, match=r"^`causal` must be left out beside flat=True, but is False\."):
        batch.for_transformers(flat=True, causal=False)
    with pytest.raises(
        TypeError, match=r"^`dtype` must be a type of floats of 16 bits or more, but is torch\.int64\. "
    ):
        batch.for_transformers(dtype=torch.int64)
    with pytest.raises(TypeError, match=r"^`causal` must be "):
        batch.for_transformers(causal="yes")


def test_a_mask_without_a_future_and_with_one():
    segments = torch.tensor([[1, 1, 0]])
    assert block_mask(segments).int().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 0, 1]]]]
    assert block_mask(segments, causal=False).int().tolist() == [[[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RowCollate(0), "`capacity` must be at least 1, but is 0. Give the tokens of a row, as in lw.Rows."),
        (lambda: RowCollate(4, rows=0), "`rows` must be at least 1, but is 0. "),
        (lambda: RowCollate(4, max_in_row=0), "`max_in_row` must be at least 1, but is 0. Give the most sequences in "),
        (
            lambda: RowCollate(4)([torch.ones(2), torch.ones(5)]),
            "`samples` must be 1 to 4 frames long, but is 5 at sample 1. Plan with the lengths of these samples.",
        ),
        (lambda: RowCollate(4)([torch.ones(0)]), "`samples` must be 1 to 4 frames long, but is 0 at sample 0. "),
        (
            lambda: RowCollate(4)([{"a": [1, 2], "b": [1, 2, 3]}]),
            "`samples` must be 2 long as field a, but is 3 at sample 0, field b. ",
        ),
        (
            lambda: RowCollate(4, rows=1)([torch.ones(3), torch.ones(3)]),
            "`samples` must be within 1 rows of 4, but is 2. Give the capacity and the rows of the plan, and samples ",
        ),
        (lambda: RowCollate(4)([1, 2]), "`samples` must be of at least one sequence field, but is 0. "),
    ],
)
def test_what_does_not_fit_is_one_sentence(make, message):
    with pytest.raises(ValueError, match=r"^`") as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("wrong", [False, True, 0, ["labels"], ("labels",), {}])
def test_a_name_of_labels_that_is_no_text_is_refused(wrong):
    """`labels=False` would add a field `False`, and leave the first label of each sequence as it is."""
    with pytest.raises(TypeError, match=r"^`labels` must be a text, but is .* Give the name of a field, or None for"):
        RowCollate(4, labels=wrong)
    with pytest.raises(TypeError, match=r"^`inputs` must be a text, but is .* Give the name of the field that labels"):
        RowCollate(4, inputs=wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.bool, torch.int64, torch.int8])
@pytest.mark.parametrize("value", [0.0, 1.0, {"labels": 1}], ids=repr)
@pytest.mark.parametrize("next_token", [True, False])
def test_padding_of_labels_holds_what_pad_collate_gives_it_and_targets_of_floats_are_all_kept(dtype, value, next_token):
    samples = [{"labels": torch.tensor([1, 0, 1]).to(dtype)}, {"labels": torch.tensor([1]).to(dtype)}]
    padded = PadCollate(value=value)(samples)["labels"]
    laid = RowCollate(3, value=value, next_token=next_token)(samples).fields["labels"]
    assert laid[1, 1:].tolist() == padded.values[1, 1:].tolist()
    # The first label is no target of a network that predicts the next, where the loss can leave it out.
    left_out = next_token and (dtype in (torch.int64, torch.int8) or isinstance(value, dict))
    first = padded.values[1, 1:2].tolist() * 2 if left_out else [1, 1]
    assert laid[:, 0].tolist() == first
    assert laid[0, 1:].tolist() == [0, 1]
