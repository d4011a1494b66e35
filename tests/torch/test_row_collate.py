"""Rows as tensors: what stands where, and that a network learns from them exactly as from padded batches."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import PadCollate, RowCollate, block_mask
from ranks import complaint

CAPACITY, WORDS = 24, 17


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


@pytest.mark.parametrize(("by", "most"), [("pool", None), ("pool", 3), ("best-fit", 1), ("best-fit", 3)])
@pytest.mark.parametrize("deal", [lw.Balanced(), lw.RandomSteps()])
def test_a_loader_yields_the_rows_of_the_plan(deal, most, by):
    tokens = token_lists(90)
    lengths = [len(each) for each in tokens]
    batching = lw.Batching(cut=lw.Rows(CAPACITY, rows=4, by=by, max_in_row=most), deal=deal)
    collate = RowCollate(CAPACITY, max_in_row=most)
    sampler = lw.torch.BatchSampler(lengths, batching, rank=1, world_size=2)
    data = [{"input_ids": each} for each in tokens]
    plan, seen = sampler.plan, 0
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    for number, batch in zip(plan.grid[:, 0, 1], loader, strict=True):
        rows = plan.rows(int(number))
        assert batch.positions.shape == (len(rows), CAPACITY)
        assert batch.segments.amax(1).tolist() == [len(row) for row in rows]
        assert most is None or batch.segments.max() <= most
        for row, laid in zip(rows, batch.fields["input_ids"], strict=True):
            expected = [token for member in row for token in tokens[member]]
            assert laid.tolist() == expected + [0] * (CAPACITY - len(expected))
            seen += len(row)
    assert seen > 0


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def llama(**settings):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=WORDS, **SMALL, **settings)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_model_of_transformers_learns_the_same_from_rows(attention):
    model = llama(attn_implementation=attention, initializer_range=0.5).double()
    tokens = [*token_lists(9, 2), [4]]
    # The mask of the samples does not let the sequences of a row attend to each other.
    batch = RowCollate(CAPACITY)([{"input_ids": each, "attention_mask": [1] * len(each)} for each in tokens])
    assert "attention_mask" not in batch.for_transformers()
    assert "attention_mask" not in batch.for_transformers(flat=True)
    theirs = model(**PadCollate()([{"input_ids": each, "labels": each} for each in tokens])).loss
    ours = model(**batch.for_transformers()).loss
    # Its positions turn in float32, and its loss is computed in it.
    assert torch.allclose(ours, theirs, rtol=1e-6)
    assert torch.allclose(gradients(model, ours), gradients(model, theirs), atol=1e-6)


def test_a_mask_that_hides_tokens_of_a_sample_is_refused():
    batch = RowCollate(6)([{"input_ids": [5, 6, 0], "attention_mask": [1, 1, 0]}])
    with pytest.raises(ValueError, match=r"^`attention_mask` must be 1 at every token of a sample, but is 0\. Pack "):
        batch.for_transformers()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_with_a_mask_of_its_own_a_model_takes_sequences_of_a_row_alone(attention, dtype):
    """Other models are in `test_rows_models.py`."""
    model, tokens = llama(attn_implementation=attention).to(dtype), token_lists(9, 3)
    batch = RowCollate(CAPACITY, labels=None)([{"input_ids": each} for each in tokens])
    outputs = model(**batch.for_transformers(causal=True, dtype=model.dtype)).logits
    packed = torch.cat([row[own > 0] for row, own in zip(outputs, batch.segments, strict=True)])
    alone = torch.cat([model(input_ids=torch.tensor([each])).logits[0] for each in tokens])
    near = {torch.float64: 1e-6, torch.bfloat16: 2e-2}[dtype]  # Llama turns positions in float32
    assert torch.allclose(packed, alone, atol=near)


def test_flash_attention_takes_no_mask():
    batch = RowCollate(6)([{"input_ids": [5, 6]}])
    with pytest.raises(ValueError, match=r"^`causal` must be left out if flat=True, but is False\."):
        batch.for_transformers(flat=True, causal=False)
    with pytest.raises(TypeError, match=r"^`dtype` must be a type of floats of 16 bits or more, but is torch\.int64"):
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
        (lambda: RowCollate(4, max_in_row=0), "`max_in_row` must be at least 1, but is 0. Give the most sequences in "),
        (
            lambda: RowCollate(4)([torch.ones(2), torch.ones(5)]),
            "`samples` must be 1 to 4 frames long, but is 5 at sample 1. Plan with the lengths of these samples.",
        ),
        (
            lambda: RowCollate(4)([{"a": [1, 2], "b": [1, 2, 3]}]),
            "`samples` must be 2 long, as field a is, but is 3 at sample 0, field b. ",
        ),
        (
            lambda: RowCollate(4, rows=1)([torch.ones(3), torch.ones(3)]),
            "`samples` must be at most 1 row(s) of 4 frames, but is 2. Give the capacity and the rows of the plan, ",
        ),
        (lambda: RowCollate(4)([1, 2]), "`samples` must be of at least one sequence field, but is 0. "),
    ],
)
def test_what_does_not_fit_is_one_sentence(make, message):
    assert complaint(make).startswith(f"ValueError: {message}")


# Labels: what they hold at borders, and that no sample gets some that it should not have.

PROMPT = {"input_ids": [5, 6, 7], "labels": [-100, -100, 7]}


@pytest.mark.parametrize("samples", [[PROMPT, {"input_ids": [1, 2]}], [{"input_ids": [1, 2]}, PROMPT]])
def test_a_sample_without_labels_beside_one_with_labels_is_refused(samples):
    """A copy of its tokens would train on a prompt that the data set meant to hide."""
    with pytest.raises(ValueError, match=r"^`samples` must be of the same set of fields in every .* at sample 1\. "):
        RowCollate(6)(samples)


def test_labels_of_a_sample_within_a_sample_end_at_borders_too():
    samples = [{"text": {"input_ids": ids, "labels": ids}, "pair": ({"labels": ids},)} for ids in ([5, 6, 7], [8, 9])]
    fields = RowCollate(6)(samples).fields
    expected = [[-100, 6, 7, -100, 9, -100]]
    assert fields["text"]["labels"].tolist() == fields["pair"][0]["labels"].tolist() == expected
    assert fields["text"]["input_ids"].tolist() == [[5, 6, 7, 8, 9, 0]]
    kept = RowCollate(6, labels="text.labels")(samples).fields
    assert kept["text"]["labels"].tolist() == expected
    assert kept["pair"][0]["labels"].tolist() == [[5, 6, 7, 8, 9, -100]]


@pytest.mark.parametrize("given", [True, False], ids=["given", "copied"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
def test_labels_of_tokens_without_a_sign_get_one(kind, given):
    ids = np.array([5, 6, 7], kind)
    fields = RowCollate(4)([{"input_ids": ids} | ({"labels": ids} if given else {})]).fields
    assert (fields["labels"].tolist(), fields["labels"].dtype) == ([[-100, 6, 7, -100]], torch.int64)
    assert fields["input_ids"].tolist() == [[5, 6, 7, 0]]
    assert fields["input_ids"].dtype == torch.from_numpy(np.empty(0, kind)).dtype
    same = RowCollate(4, value={"labels": 255})([{"input_ids": ids}]).fields["labels"]
    assert (same.tolist(), same.dtype) == ([[255, 6, 7, 255]], torch.int64)


class Pieces:
    """Answers the spans of a plan of chunks with tokens that tell their sequence and their place."""

    def __getitem__(self, span):
        sequence, start, stop = span
        return {"input_ids": torch.arange(start, stop) + 100 * sequence}


def test_a_piece_of_a_sequence_is_a_sequence_of_its_own():
    """So are its positions, its labels, and what it weighs."""
    lengths, batching = [25, 7, 12, 1], lw.Batching(cut=lw.Rows(12, rows=2), chunks=lw.Chunks(10))
    sampler = lw.torch.BatchSampler(lengths, batching, micro_batches=2)
    spans = sampler.plan.spans
    labels = spans[:, 2] - spans[:, 1] - 1
    scales = sampler.loss_scales(weights=labels)
    counted = []
    for batch in DataLoader(Pieces(), batch_sampler=sampler, collate_fn=RowCollate(12, rows=2)):
        own, first = batch.segments > 0, batch.positions == 0
        assert (batch.fields["input_ids"][own & first] % 100 % 10 == 0).all()
        assert (batch.fields["labels"][first] == -100).all()
        assert (batch.fields["labels"][own & ~first] >= 0).all()
        counted.append(int((batch.fields["labels"] >= 0).sum()))
    assert sum(counted) == labels.sum() == sum(lengths) - len(spans)
    totals = np.repeat(np.array(counted).reshape(-1, 2).sum(axis=1), 2)
    assert scales == pytest.approx(np.array(counted) / totals)


def test_more_frames_than_offsets_count_are_refused():
    with pytest.raises(ValueError, match=r"^`samples` must be below 2\*\*31 frames in all, which int32 offsets can "):
        RowCollate(2**24, rows=128)([{"input_ids": [5, 6]}])


@pytest.mark.parametrize("wrong", [False, 0, ["labels"], {}])
def test_a_name_of_labels_that_is_no_text_is_refused(wrong):
    """`labels=False` would add a field `False`, and leave the first label of each sequence as it is."""
    with pytest.raises(TypeError, match=r"^`labels` must be a text, but is .* Give the name of a field, or None for"):
        RowCollate(4, labels=wrong)
    with pytest.raises(TypeError, match=r"^`inputs` must be a text, but is .* Give the name of the field that labels"):
        RowCollate(4, inputs=wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bool, torch.int8])
@pytest.mark.parametrize("value", [0.0, 1.0, {"labels": 1}], ids=repr)
@pytest.mark.parametrize("next_token", [True, False])
def test_padding_of_labels_holds_what_pad_collate_gives_it_and_targets_of_floats_are_all_kept(dtype, value, next_token):
    samples = [{"labels": torch.tensor([1, 0, 1]).to(dtype)}, {"labels": torch.tensor([1]).to(dtype)}]
    padded = PadCollate(value=value)(samples)["labels"]
    laid = RowCollate(3, value=value, next_token=next_token)(samples).fields["labels"]
    assert laid[1, 1:].tolist() == padded.values[1, 1:].tolist()
    # The first label is no target of a network that predicts the next, where the loss can leave it out.
    left_out = next_token and (dtype == torch.int8 or isinstance(value, dict))
    first = padded.values[1, 1:2].tolist() * 2 if left_out else [1, 1]
    assert laid[:, 0].tolist() == first
    assert laid[0, 1:].tolist() == [0, 1]
