"""Collate functions: nothing lost, nothing moved, and padding that is what was asked for."""

import copy
import pickle
import re
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory
from utterances import Utterances, assert_alike, rows_of

import lengthwise as lw
from lengthwise.torch import ConcatCollate, PackCollate, PadCollate

COLLATES = [PadCollate(shapes=[(4, 9)], value={"targets.tokens": -1.0}), PackCollate(), ConcatCollate()]


@pytest.mark.parametrize("collate", [PadCollate(), PackCollate(), ConcatCollate()], ids=repr)
def test_a_batch_shares_no_memory_with_its_samples_and_passes_gradients_to_them(collate):
    sample = torch.ones(3, 2, requires_grad=True)
    values = collate([sample])[0]  # what all three begin with
    (2 * values).sum().backward()
    assert sample.grad.tolist() == [[2.0, 2.0]] * 3
    values.detach().zero_()
    assert sample.tolist() == [[1.0, 1.0]] * 3


def test_batches_stay_on_the_device_of_the_samples():
    samples = [(torch.ones(3, device="meta"), np.ones(2))]
    padded, on_cpu = PadCollate()(samples)
    joined, _ = ConcatCollate()(samples)
    assert {part.device.type for part in (*padded, joined.values, joined.offsets)} == {"meta"}
    assert on_cpu.values.device.type == "cpu"


class Utterance(NamedTuple):
    frames: list[float]
    speaker: int
    text: str


@pytest.mark.parametrize(
    ("collate", "of_batch"),
    [
        (PadCollate(), lambda batch: batch.frames),
        (ConcatCollate(), lambda batch: batch.frames),
        (lw.torch.RowCollate(8), lambda batch: batch),
    ],
    ids=["padded", "concatenated", "rows"],
)
def test_a_batch_goes_to_a_device_as_a_tensor_does(collate, of_batch):
    samples = [Utterance([1.0, 2.0], 3, "ab"), Utterance([4.0], 5, "c")]
    batch = of_batch(collate(samples))
    for moved in (batch.to("meta"), batch.to(torch.device("meta"), non_blocking=True), by_accelerate(batch, "meta")):
        assert type(moved) is type(batch)
        for part, before in zip(leaves_of(moved), leaves_of(batch), strict=True):
            if isinstance(before, torch.Tensor):
                assert (part.device.type, before.device.type) == ("meta", "cpu")
                assert (part.shape, part.dtype) == (before.shape, before.dtype)
            else:
                assert part == before


def by_accelerate(batch, device):
    return pytest.importorskip("accelerate").utils.send_to_device(batch, device)


def leaves_of(batch):
    """Tensors, numbers and texts, in any depth."""
    if isinstance(batch, tuple | list):
        return [leaf for part in batch for leaf in leaves_of(part)]
    return [leaf for part in batch.values() for leaf in leaves_of(part)] if isinstance(batch, dict) else [batch]


# What padding holds

TEXTS = [
    {"input_ids": [5, 6, 7], "attention_mask": [1, 1, 1], "token_type_ids": [0, 0, 1], "labels": [1, 0, 1]},
    {"input_ids": [8], "attention_mask": [1], "token_type_ids": [0], "labels": [1]},
]


def padding_of(collate, samples=TEXTS):
    """What stands behind the shorter of two samples, by name."""
    return {name: field.values[1, -1].item() for name, field in collate(samples).items()}


def test_labels_are_padded_with_what_losses_leave_out_and_no_padding_is_attended_to():
    zeros = {"input_ids": 0, "attention_mask": 0, "token_type_ids": 0}
    assert padding_of(PadCollate()) == {**zeros, "labels": -100}
    # The number for padding tokens is none for labels and masks.
    assert padding_of(PadCollate(value=9)) == {
        "input_ids": 9,
        "attention_mask": 0,
        "token_type_ids": 9,
        "labels": -100,
    }
    assert padding_of(PadCollate(value={"input_ids": 9})) == {**zeros, "input_ids": 9, "labels": -100}
    assert padding_of(PadCollate(value={"labels": 0, "attention_mask": 1})) == {
        **zeros,
        "attention_mask": 1,
        "labels": 0,
    }


def test_which_fields_are_labels():
    two, one = torch.ones(2, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
    assert padding_of(PadCollate(), [{"label": two}, {"label": one}]) == {"label": -100}
    assert padding_of(PadCollate(), [{"old_labels": two}, {"old_labels": one}]) == {"old_labels": 0}
    frames, inner = PadCollate()([(two, {"labels": two}), (one, {"labels": one})])
    assert (frames.values[1].tolist(), inner["labels"].values[1].tolist()) == ([1, 0], [1, -100])
    _, inner = PadCollate(value={"1.labels": 5, "0": 6})([(two, {"labels": two}), (one, {"labels": one})])
    assert inner["labels"].values[1].tolist() == [1, 5]
    unsigned = PadCollate()([{"labels": two.to(torch.uint8)}, {"labels": one.to(torch.uint8)}])["labels"].values
    assert (unsigned.dtype, unsigned[1].tolist()) == (torch.int64, [1, -100])
    # No loss leaves -100 out of these.
    for dtype in (torch.float32, torch.bool):
        assert padding_of(PadCollate(), [{"labels": two.to(dtype)}, {"labels": one.to(dtype)}]) == {"labels": 0}


def test_rows_that_a_batch_lacks_have_no_class():
    samples = [{"input_ids": [5, 6], "labels": 3, "weight": 0.5, "text": "a"}]
    batch = PadCollate(shapes=[(3, 2)])(samples)
    assert batch["labels"].tolist() == [3, -100, -100]
    assert batch["weight"].tolist() == [0.5, 0.0, 0.0]
    by_name = PadCollate(shapes=[(3, 2)], value={"labels": 7, "weight": 1})(samples)
    assert (by_name["labels"].tolist(), by_name["weight"].tolist()) == ([3, 7, 7], [0.5, 1.0, 1.0])
    ranked = PadCollate(shapes=[(2, 4)])([{"labels": [1, 2]}])["labels"]
    assert ranked.values.tolist() == [[1, 2, -100, -100], [-100] * 4]


def test_the_loss_of_padded_labels_is_that_of_the_labels_alone():
    seed = torch.Generator().manual_seed(0)
    labels = [torch.randint(0, 5, (length,), generator=seed) for length in (3, 7, 1)]
    scores = [torch.randn(length, 5, generator=seed, dtype=torch.float64) for length in (3, 7, 1)]
    batch = PadCollate(shapes=[(4, 9)])([{"scores": s, "labels": k} for s, k in zip(scores, labels, strict=True)])
    alone = functional.cross_entropy(torch.cat(scores), torch.cat(labels))
    padded = functional.cross_entropy(batch["scores"].values.flatten(0, 1), batch["labels"].values.flatten())
    torch.testing.assert_close(padded, alone)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_ctc_does_not_look_at_what_pads_its_labels(dtype):
    seed = torch.Generator().manual_seed(0)
    samples = [
        {
            "frames": torch.randn(frames, 5, generator=seed, dtype=torch.float64),
            "labels": torch.randint(1, 5, (length,), generator=seed, dtype=dtype),
        }
        for frames, length in ((9, 3), (12, 5), (7, 1))
    ]
    found = []
    for value in (0.0, {"labels": 0}):
        batch = PadCollate(value=value)(samples)
        frames, labels = batch["frames"], batch["labels"]
        assert labels.values[2, -1] == (0 if value else -100)
        scores = frames.values.requires_grad_()
        loss = functional.ctc_loss(scores.log_softmax(2).transpose(0, 1), labels.values, frames.lengths, labels.lengths)
        loss.backward()
        found.append((loss.item(), scores.grad))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


# Fixed shapes

SHAPES = np.array([(8, 3), (2, 10), (4, 3), (1, 40)])


@pytest.mark.parametrize(
    ("lengths", "shape"),
    [
        ([1], (4, 3)),  # the shortest padded length, then the fewest rows
        ([3, 3, 3, 3], (4, 3)),
        ([3, 3, 3, 3, 3], (8, 3)),
        ([3, 4], (2, 10)),
        ([11], (1, 40)),
        ([0], (4, 3)),
    ],
)
def test_a_batch_takes_the_shape_of_the_shortest_padded_length_that_holds_it(lengths, shape):
    batch = PadCollate(shapes=SHAPES, value=-1)([torch.ones(length) for length in lengths])
    assert batch.values.shape == batch.mask.shape == shape
    assert batch.lengths.tolist() == lengths + [0] * (shape[0] - len(lengths))
    assert batch.values.sum() == sum(lengths) - (shape[0] * shape[1] - sum(lengths))


def test_one_padded_length_is_for_all_fields_and_several_are_for_one_each():
    sample = (torch.ones(5, 3), torch.ones(2, dtype=torch.int64))
    frames, labels = PadCollate(shapes=[(2, 8)])([sample])
    assert (frames.values.shape, labels.values.shape) == ((2, 8, 3), (2, 8))
    by_field = PadCollate(shapes=[(2, 8, 4), (2, 6, 4), (1, 5, 1)])  # the labels do not fit the shortest
    frames, labels = by_field([sample])
    assert (frames.values.shape, labels.values.shape) == ((2, 6, 3), (2, 4))


def test_every_batch_of_a_run_takes_a_planned_shape_and_compiles_once_for_each():
    lengths = lw.example_lengths("long-tailed", count=300)
    order = lw.Bucketed(buckets=4, pad_to_edge=True)
    batching = lw.Batching(cut=lw.Budget(20_000), order=order, arrange=lw.ShuffledSteps())
    shapes = [tuple(shape) for shape in lw.batch_shapes(lengths, batching).tolist()]
    sampler = lw.torch.BatchSampler(lengths, batching)
    samples = [torch.full((length,), number) for number, length in enumerate(lengths)]
    loader = DataLoader(samples, batch_sampler=sampler, collate_fn=PadCollate(shapes=shapes))
    compiled = []

    def compiler(graph, inputs):
        compiled.append(tuple(inputs[0].shape))
        return graph.forward

    summed = torch.compile(lambda values, mask: (values * mask).sum(), backend=compiler, dynamic=False)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        total = 0
        for batch in loader:
            assert tuple(batch.values.shape) in shapes
            total += int(summed(batch.values, batch.mask))
        assert total == int((np.arange(len(lengths)) * lengths).sum())
    assert sorted(compiled) == sorted(set(compiled))
    assert set(compiled) <= set(shapes)
    assert len(shapes) <= 4


# The three forms, over random samples

KINDS = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@st.composite
def batches(draw):
    """B samples of up to three sequence fields, in one of four structures, and the fields themselves."""
    count = draw(st.integers(1, 6))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        frame, dtype = draw(st.sampled_from([(), (1,), (3,), (2, 2)])), draw(st.sampled_from(KINDS))
        lengths = draw(st.lists(st.integers(1, 7), min_size=count, max_size=count))
        drawn = [torch.randint(0, 9, (length, *frame), generator=seed).to(dtype) for length in lengths]
        in_numpy = draw(st.booleans()) and dtype != torch.bfloat16
        fields.append([tensor.numpy() for tensor in drawn] if in_numpy else drawn)
    structure = draw(st.sampled_from([tuple, list, lambda row: dict(enumerate(row)), lambda row: {"deep": tuple(row)}]))
    return [structure(row) for row in zip(*fields, strict=True)], fields


def leaves(batch):
    """The sequence fields of a batch in one of the structures of `batches`."""
    if isinstance(batch, dict):
        return leaves(batch.get("deep", tuple(batch.values())))
    return list(batch)


def assert_same_rows(batch, fields):
    for leaf, entries in zip(leaves(batch), fields, strict=True):
        for row, entry in zip(rows_of(leaf)[: len(entries)], entries, strict=True):
            expected = torch.as_tensor(entry)
            assert row.dtype == expected.dtype
            assert torch.equal(row, expected)


@given(batches(), st.booleans())
def test_padding_keeps_the_sequences_and_holds_the_value(drawn, fixed):
    samples, fields = drawn
    batch = PadCollate(shapes=[(6, 7)] if fixed else None, value=1)(samples)
    assert_same_rows(batch, fields)
    for leaf, entries in zip(leaves(batch), fields, strict=True):
        lengths = [len(entry) for entry in entries]
        rows, longest = (6, 7) if fixed else (len(samples), max(lengths))
        assert leaf.values.shape[:2] == leaf.mask.shape == (rows, longest)
        assert leaf.lengths.tolist() == lengths + [0] * (rows - len(lengths))
        assert torch.equal(leaf.mask.sum(1), leaf.lengths)
        assert bool((leaf.values[~leaf.mask] == 1).all())


@given(batches())
def test_packing_and_concatenating_give_back_the_sequences(drawn):
    samples, fields = drawn
    assert_same_rows(PackCollate()(samples), fields)
    batch = ConcatCollate()(samples)
    assert_same_rows(batch, fields)
    for leaf, entries in zip(leaves(batch), fields, strict=True):
        assert leaf.offsets.dtype == torch.int32
        assert leaf.offsets.tolist() == np.cumsum([0, *map(len, entries)]).tolist()
        assert leaf.max_length == max(map(len, entries))
        assert len(leaf.values) == leaf.offsets[-1]


def random_sequences(lengths, *frame):
    seed = torch.Generator().manual_seed(0)
    return [torch.randn(length, *frame, generator=seed, dtype=torch.float64) for length in lengths]


def test_an_lstm_over_packed_samples_computes_each_as_if_alone():
    samples = random_sequences([3, 6, 1, 6], 4)
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(4, 5, bidirectional=True, dtype=torch.float64)
    output, (state, _) = lstm(PackCollate()(samples))
    for number, (row, sample) in enumerate(zip(rows_of(output), samples, strict=True)):
        alone, (its_state, _) = lstm(sample)
        torch.testing.assert_close(row, alone)
        torch.testing.assert_close(state[:, number], its_state)


# PyTorch's own CPU attention builds a nested tensor of the older layout inside, and warns of it.
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_attention_over_the_nested_tensor_computes_each_as_if_alone():
    samples = random_sequences([3, 6, 1], 2, 4)
    batch = ConcatCollate()(samples)
    nested = batch.to_nested()
    assert nested.values().data_ptr() == batch.values.data_ptr()
    heads = nested.transpose(1, 2)
    attended = functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2)
    for row, sample in zip(attended.unbind(), samples, strict=True):
        alone = sample.transpose(0, 1)
        expected = functional.scaled_dot_product_attention(alone, alone, alone).transpose(0, 1)
        torch.testing.assert_close(row, expected)


# Under a DataLoader


@pytest.mark.parametrize(
    "collate", [*COLLATES, PadCollate(value={"frames": -1})], ids=lambda collate: type(collate).__name__
)
def test_collates_are_values_that_pickle(collate):
    again = pickle.loads(pickle.dumps(collate))
    assert again == collate
    assert hash(again) == hash(collate)
    samples = [Utterances()[number] for number in (4, 2)]
    assert_alike(again(samples), collate(samples))


def all_three(samples):
    return [collate(samples) for collate in COLLATES]


def test_batches_come_through_a_worker_as_they_were_made():
    data = Utterances()
    batches = [[4, 0], [1, 5, 3], [2]]
    loader = DataLoader(
        data, batch_sampler=batches, collate_fn=all_three, num_workers=1, multiprocessing_context="spawn", timeout=120
    )
    for batch, numbers in zip(loader, batches, strict=True):
        assert_alike(batch, all_three([data[number] for number in numbers]))


def test_lengths_travel_as_numbers():
    batch = PadCollate(shapes=[(3, 2)])([ONE, torch.ones(2)])
    assert batch.__reduce__()[1][1] == [1, 2, 0]
    assert_alike(pickle.loads(pickle.dumps(batch)), batch)
    moved = copy.deepcopy(batch.to("meta"))
    assert (moved.lengths.device.type, moved.lengths.dtype) == ("meta", torch.int64)


def test_pinning_reaches_every_tensor_and_keeps_the_structure(monkeypatch):
    pinned = []

    def pin(tensor):  # what PyTorch's own needs is a GPU
        pinned.append(tensor)
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    samples = [Utterances()[number] for number in (4, 2)]
    batch = all_three(samples)
    assert_alike(pin_memory(batch), batch)
    assert len(pinned) == 6 + 8 + 6


# What is refused

SHAPE = "Give what lw.batch_shapes gives: [(16, 100), (8, 200)], for example."
VALUE = 'Give one number, or numbers by the names of fields, such as {"labels": -1}; in a tuple {"1": -1}.'
HELD = "Give one that it holds; if other fields need another, by name, as a dict."
ONE = torch.ones(1)

PADS_REFUSED = {
    "waveforms as torchaudio loads them": (
        {},
        [{"audio": torch.ones(1, 16_000)}, {"audio": torch.ones(1, 8_000)}],
        "`samples` must be of one shape of a frame in every sample, (16000,) as in sample 0, but is (8000,) at "
        "sample 1, field audio. Make them alike in the data set's __getitem__, and time first: squeeze(0) a waveform "
        "[1, T], transpose features [F, T].",
    ),
    "rows": (
        {"shapes": SHAPES},
        [torch.ones(4)] * 3,
        "`samples` must be within (rows, padded length) (4, 3) or (8, 3) or (2, 10) or (1, 40), but is (3, 4). "
        "Take lw.batch_shapes(lengths, batching), those of the sampler, and lengths in the order of the dataset.",
    ),
    "no shape": (
        {"shapes": np.empty((0, 2), np.int64)},
        [ONE],
        "`samples` must be within (rows, padded length) of nothing, but is (1, 1). "
        "Take lw.batch_shapes(lengths, batching), those of the sampler, and lengths in the order of the dataset.",
    ),
    "columns": (
        {"shapes": [(2, 9, 9, 9)]},
        [{"frames": ONE, "labels": ONE}],
        "`shapes` must be of one padded length, or of one for each of 2 sequence fields (frames, labels), but is "
        "(9, 9, 9). Give them in the order of the sample.",
    ),
    "half a token": (
        {"value": 0.5},
        [[1, 2]],
        f"`value` must be a whole number that torch.int64 holds, but is 0.5. {HELD}",
    ),
    "a mask of twos": (
        {"value": 2},
        [torch.ones(2, dtype=torch.bool)],
        f"`value` must be a whole number that torch.bool holds, but is 2.0. {HELD}",
    ),
    "beyond half precision": (
        {"value": -1e9},
        [torch.ones(2, dtype=torch.float16)],
        f"`value` must be a number that torch.float16 holds, but is -1000000000.0. {HELD}",
    ),
    "a negative byte": (
        {"value": -1},
        [{"image": torch.ones(2, dtype=torch.uint8)}],
        f"`value` must be a whole number that torch.uint8 holds, but is -1.0 at field image. {HELD}",
    ),
    "a name that is written wrong": (
        {"value": {"lables": -1}},
        [{"labels": [1, 2], "text": "a", "speaker": 3}],
        "`value` must be by the names of fields that are padded (labels, speaker), but is 'lables'. "
        "Write the name as the samples have it, or leave it out.",
    ),
    "a name of text": (
        {"value": {"text": 0}},
        [{"labels": [1, 2], "text": "a"}],
        "`value` must be by the names of fields that are padded (labels), but is 'text'. "
        "Write the name as the samples have it, or leave it out.",
    ),
}


@pytest.mark.parametrize(("choices", "samples", "message"), PADS_REFUSED.values(), ids=PADS_REFUSED)
def test_a_batch_that_cannot_be_padded_as_asked_is_refused(choices, samples, message):
    collate = PadCollate(**choices)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        collate(samples)


MADE_WRONG = {
    "flat": ({"shapes": (16, 100)}, TypeError, f"`shapes` must be rows of whole numbers, but is (16, 100). {SHAPE}"),
    "no axis": (
        {"shapes": np.array(3)},
        TypeError,
        f"`shapes` must be rows of whole numbers, but is array(3). {SHAPE}",
    ),
    "half": ({"shapes": [(1, 2.5)]}, TypeError, f"`shapes` must be a whole number, but is 2.5. {SHAPE}"),
    "none": ({"shapes": [(0, 2)]}, ValueError, f"`shapes` must be at least 1, but is 0. {SHAPE}"),
    "rows only": (
        {"shapes": [(4,)]},
        ValueError,
        f"`shapes` must be rows of one width, at least 2, but is (4,). {SHAPE}",
    ),
    "uneven": (
        {"shapes": [(4, 2), (4, 2, 2)]},
        ValueError,
        f"`shapes` must be rows of one width, at least 2, but is (4, 2, 2). {SHAPE}",
    ),
    "text": ({"value": "0"}, TypeError, f"`value` must be a number, but is '0'. {VALUE}"),
    "a word by name": ({"value": {"a": "b"}}, TypeError, f"`value` must be a number, but is 'b'. {VALUE}"),
    "one for each": ({"value": (0, 1)}, TypeError, f"`value` must be a number, but is (0, 1). {VALUE}"),
}


@pytest.mark.parametrize(("choices", "error", "message"), MADE_WRONG.values(), ids=MADE_WRONG)
def test_a_bad_choice_is_refused_when_it_is_made(choices, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        PadCollate(**choices)


def test_a_sequence_without_frames_pads_and_concatenates_but_does_not_pack():
    samples = [{"label": torch.ones(2)}, {"label": torch.ones(0)}]
    assert PadCollate()(samples)["label"].mask.tolist() == [[True, True], [False, False]]
    assert ConcatCollate()(samples)["label"].offsets.tolist() == [0, 2, 2]
    message = (
        "`samples` must be at least one frame long, but is 0 at sample 1, field label. "
        "Drop the sample, or use PadCollate, which pads it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        PackCollate()(samples)


def test_more_frames_than_offsets_can_count_are_refused():
    half = torch.zeros(1, dtype=torch.uint8).expand(2**30)  # a view: a byte of memory
    with pytest.raises(ValueError, match=r"^`samples` must be below 2\*\*31 frames in all.*, but is 2147483648\."):
        ConcatCollate()([half, half])


def test_values_that_no_float_dtype_refuses():
    for value in (float("nan"), float("-inf"), np.float32(0.5)):
        padding = PadCollate(value=value)([ONE, torch.ones(2)]).values[0, 1]
        torch.testing.assert_close(padding, torch.tensor(float(value)), equal_nan=True)


def test_sequences_are_padded_to_multiples_as_the_plan_says():
    lengths = lw.example_lengths(count=60) // 20 + 1
    batching = lw.Batching(cut=lw.Budget(400, multiple_of=8), order=lw.Shuffled())
    collate = PadCollate(multiple_of=8)
    plan = lw.make_plan(lengths, batching)
    for number in plan.grid.reshape(-1):
        batch = collate([torch.ones(int(lengths[sequence])) for sequence in plan.batch(number)])
        assert tuple(batch.values.shape) == (plan.batch_sizes[number], plan.padded_lengths[number, 0])
        assert batch.mask.sum() == batch.lengths.sum()
    with pytest.raises(ValueError, match=r"^`multiple_of` must be left out beside shapes, but is 8"):
        PadCollate(shapes=[(2, 8)], multiple_of=8)


def test_rows_are_filled_up_to_a_multiple_as_the_budget_counts_them():
    lengths = lw.example_lengths("long-tailed", count=500)
    cut = lw.Budget(20_000, multiple_of=8, count_multiple_of=8)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut), world_size=2)
    collate = lw.torch.PadCollate(multiple_of=8, count_multiple_of=8)
    shapes = []
    for number, rows in enumerate(plan.row_counts.tolist()):
        length = int(plan.padded_lengths[number, 0])
        batch, numbers = collate([(torch.ones(int(lengths[at])), 7) for at in plan.batch(number)])
        shapes.append(tuple(batch.mask.shape))
        assert shapes[-1] == (rows, length)
        assert rows * length == plan.costs[number] <= 20_000
        assert int(batch.mask.sum()) == lengths[plan.batch(number)].sum()
        assert numbers.tolist() == [7] * len(plan.batch(number)) + [0] * (rows - len(plan.batch(number)))
    assert {rows % 8 for rows, _ in shapes if rows > 8} == {0}
    with pytest.raises(ValueError, match=r"^`count_multiple_of` must be left out beside shapes, but is 8"):
        lw.torch.PadCollate(shapes=[(2, 4)], count_multiple_of=8)
