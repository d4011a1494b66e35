"""Collate functions: nothing lost, nothing moved, and padding that is what was asked for."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory
from utterances import Utterances, assert_alike, rows_of

import lengthwise as lw
from lengthwise.torch import ConcatCollate, PackCollate, PadCollate
from ranks import complaint

COLLATES = [PadCollate(shapes=[(4, 9)], value={"targets.tokens": -1.0}), PackCollate(), ConcatCollate()]


@pytest.mark.parametrize("collate", [PadCollate(), PackCollate(), ConcatCollate()], ids=repr)
def test_a_batch_shares_no_memory_with_its_samples_and_passes_gradients_to_them(collate):
    sample = torch.ones(3, 2, requires_grad=True)
    values = collate([sample])[0]  # what all three begin with
    (2 * values).sum().backward()
    assert sample.grad.tolist() == [[2.0, 2.0]] * 3
    values.detach().zero_()
    assert sample.tolist() == [[1.0, 1.0]] * 3


class Utterance(NamedTuple):
    frames: list[float]
    speaker: int
    text: str


@pytest.mark.parametrize("collate", [PadCollate(), ConcatCollate(), lw.torch.RowCollate(8)], ids=repr)
def test_a_batch_goes_to_a_device_as_a_tensor_does(collate):
    batch = collate([Utterance([1.0, 2.0], 3, "ab"), Utterance([4.0], 5, "c")])
    batch = getattr(batch, "frames", batch)
    by_accelerate = pytest.importorskip("accelerate").utils.send_to_device(batch, "meta")
    for moved in (batch.to("meta"), batch.to(torch.device("meta"), non_blocking=True), by_accelerate):
        assert type(moved) is type(batch)
        for part, before in zip(leaves_of(moved), leaves_of(batch), strict=True):
            if isinstance(before, torch.Tensor):
                assert (part.device.type, before.device.type) == ("meta", "cpu")
                assert (part.shape, part.dtype) == (before.shape, before.dtype)
            else:
                assert part == before


def leaves_of(batch):
    """Tensors, numbers and texts, in any depth."""
    if isinstance(batch, tuple | list):
        return [leaf for part in batch for leaf in leaves_of(part)]
    return [leaf for part in batch.values() for leaf in leaves_of(part)] if isinstance(batch, dict) else [batch]


# What padding holds

TEXTS = [
    {"tokens": [5, 6, 7], "attention_mask": [1, 1, 1], "token_type_ids": [0, 0, 1], "labels": [1, 0, 1]},
    {"tokens": [8], "attention_mask": [1], "token_type_ids": [0], "labels": [1]},
]


def padding_of(collate, samples=TEXTS):
    """Returns the padding of the shorter of two samples, by name."""
    return {name: field.values[1, -1].item() for name, field in collate(samples).items()}


def test_labels_are_padded_with_what_losses_leave_out_and_no_padding_is_attended_to():
    zeros = {"tokens": 0, "attention_mask": 0, "token_type_ids": 0}
    assert padding_of(PadCollate()) == {**zeros, "labels": -100}
    # The number for padding tokens is none for labels and masks.
    assert padding_of(PadCollate(value=9)) == {**zeros, "tokens": 9, "token_type_ids": 9, "labels": -100}
    assert padding_of(PadCollate(value={"tokens": 9})) == {**zeros, "tokens": 9, "labels": -100}
    by_name = {"labels": 0, "attention_mask": 1}
    assert padding_of(PadCollate(value=by_name)) == {**zeros, **by_name}


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


@pytest.mark.parametrize("name", ["input_ids", "input_values", "input_features"])
def test_samples_of_a_model_of_transformers_become_its_tensors_with_a_mask(name):
    samples = [{name: [5, 6, 7], "labels": [1], "text": "a"}, {name: [8], "labels": [2, 3], "text": "b"}]
    batch = PadCollate(shapes=[(3, 3)])(samples)
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert batch[name].tolist() == [[5, 6, 7], [8, 0, 0], [0, 0, 0]]
    assert (batch["labels"].tolist(), batch["text"]) == ([[1, -100, -100], [2, 3, -100], [-100] * 3], ["a", "b"])
    hidden = PadCollate()([{name: [5, 6], "attention_mask": [0, 1]}, {name: [7], "attention_mask": [1]}])
    assert hidden["attention_mask"].tolist() == [[0, 1], [1, 0]]  # that of the samples stays
    assert PadCollate()([{name: 5, "frames": [1, 2]}])["frames"].lengths.tolist() == [2]  # a number is no input


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


@pytest.mark.parametrize("fields", [1, 2], ids=["one length", "pairs"])
def test_every_batch_of_a_run_takes_a_planned_shape(fields):
    lengths = lw.example_lengths("long-tailed", count=100)
    edges = ((100, 400, 5_000), ((100, 100), (400, 400), (5_000, 5_000)))[fields - 1]
    lengths = lengths if fields == 1 else np.stack([lengths, lengths[::-1]], axis=1)
    batching = lw.Batching(cut=lw.Budget(20_000), order=lw.Bucketed(edges=edges, pad_to_edge=True))
    shapes = lw.batch_shapes(lengths, batching).tolist()
    assert len(shapes) <= 3
    collate, taken = PadCollate(shapes=shapes), []
    plan = lw.make_plan(lengths, batching)
    for number in range(len(plan.costs)):
        members = plan.batch(number)
        samples = [tuple(torch.ones(length) for length in np.ravel(lengths[member])) for member in members]
        batch = collate(samples)
        padded = [field.values.shape[1] for field in batch]
        assert padded == plan.padded_lengths[number].tolist()
        assert [len(batch[0].values), *padded] in shapes
        assert sum(int(field.mask.sum()) for field in batch) == lengths[members].sum()
        taken += members.tolist()
    assert sorted(taken) == list(range(100))


def test_a_sample_of_three_fields_takes_a_column_for_each_and_the_shape_of_the_least_sum():
    pair = {"input_ids": [5, 6], "attention_mask": [1, 1], "labels": [1, 2, 3]}
    batch = PadCollate(shapes=np.array([(2, 4, 9), (2, 9, 4)])[:, [0, 1, 1, 2]])([pair])
    assert [batch[name].shape for name in pair] == [(2, 4), (2, 4), (2, 9)]
    collate = PadCollate(shapes=[(2, 3, 9), (2, 4, 4), (2, 9, 9)])
    for source, target, shape in ((2, 4, [4, 4]), (3, 5, [3, 9]), (5, 1, [9, 9])):
        assert [field.values.shape[1] for field in collate([(torch.ones(source), torch.ones(target))])] == shape
    with pytest.raises(ValueError, match=r"`samples` must be within \(rows, padded length\) \(2, 4, 4\) or"):
        collate([(torch.ones(10), torch.ones(1))])


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


def test_sequences_laid_end_to_end_are_a_nested_tensor_without_a_copy():
    samples = [torch.randn(length, 2, 4) for length in (3, 6, 1)]
    batch = ConcatCollate()(samples)
    nested = batch.to_nested()
    assert nested.values().data_ptr() == batch.values.data_ptr()
    assert all(torch.equal(row, sample) for row, sample in zip(nested.unbind(), samples, strict=True))


# Under a DataLoader


@pytest.mark.parametrize("collate", [*COLLATES, PadCollate(value={"frames": -1})], ids=lambda each: type(each).__name__)
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
    loader = DataLoader(data, batch_sampler=batches, collate_fn=all_three, num_workers=1, timeout=120)
    for batch, numbers in zip(loader, batches, strict=True):
        assert_alike(batch, all_three([data[number] for number in numbers]))


def test_padded_sequences_are_pickled_and_copied():
    batch = PadCollate(shapes=[(3, 2)])([ONE, torch.ones(2)])
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
VALUE = 'Give one number, or a dict of numbers by field name, such as {"labels": -1}; in a tuple {"1": -1}.'
HELD = "Give a number that fits, or a dict of numbers by field name."
WITHIN = "Take lw.batch_shapes(lengths, batching) with the sampler's arguments, and lengths in the dataset's order."
WRITE = "Write the name as the samples have it, or leave it out."
ONE = torch.ones(1)

PADS_REFUSED = {
    "rows": (
        {"shapes": SHAPES},
        [torch.ones(4)] * 3,
        "`samples` must be within (rows, padded length) (4, 3) or (8, 3) or (2, 10) or (1, 40), but is (3, 4). "
        + WITHIN,
    ),
    "columns": (
        {"shapes": [(2, 9, 9, 9)]},
        [{"frames": ONE, "labels": ONE}],
        "`shapes` must be of one padded length, or of one for each of 2 sequence fields (frames, labels), but is "
        "(9, 9, 9). Give them in the order of the sample.",
    ),
    "half": ({"value": 0.5}, [[1, 2]], f"`value` must be a whole number that torch.int64 holds, but is 0.5. {HELD}"),
    "a negative byte": (
        {"value": -1},
        [{"image": torch.ones(2, dtype=torch.uint8)}],
        f"`value` must be a whole number that torch.uint8 holds, but is -1.0 at field image. {HELD}",
    ),
    "a name that is written wrong": (
        {"value": {"lables": -1}},
        [{"labels": [1, 2], "text": "a", "speaker": 3}],
        f"`value` must be a dict by the names of padded fields (labels, speaker), but is 'lables'. {WRITE}",
    ),
}


@pytest.mark.parametrize(("choices", "samples", "message"), PADS_REFUSED.values(), ids=PADS_REFUSED)
def test_a_batch_that_cannot_be_padded_as_asked_is_refused(choices, samples, message):
    collate = PadCollate(**choices)
    assert complaint(lambda: collate(samples)) == f"ValueError: {message}"


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"shapes": (16, 100)}, f"TypeError: `shapes` must be rows of whole numbers, but is (16, 100). {SHAPE}"),
        ({"shapes": [(1, 2.5)]}, f"TypeError: `shapes` must be a whole number, but is 2.5. {SHAPE}"),
        ({"shapes": [(4,)]}, "ValueError: `shapes` must be rows of equally many numbers, at least 2, but is (4,). "),
        ({"shapes": [(4, 2), (4, 2, 2)]}, "ValueError: `shapes` must be rows of equally many numbers, at least 2, but"),
        ({"shapes": [(2, 8)], "multiple_of": 8}, "ValueError: `multiple_of` must be left out if shapes are given"),
        ({"shapes": [(2, 8)], "count_multiple_of": 8}, "ValueError: `count_multiple_of` must be left out if shapes"),
        ({"value": "0"}, f"TypeError: `value` must be a number, but is '0'. {VALUE}"),
    ],
    ids=str,
)
def test_a_bad_choice_is_refused_when_it_is_made(choices, said):
    assert complaint(lambda: PadCollate(**choices)).startswith(said)


def test_a_sequence_without_frames_pads_and_concatenates_but_does_not_pack():
    samples = [{"label": torch.ones(2)}, {"label": torch.ones(0)}]
    assert PadCollate()(samples)["label"].mask.tolist() == [[True, True], [False, False]]
    assert ConcatCollate()(samples)["label"].offsets.tolist() == [0, 2, 2]
    assert complaint(lambda: PackCollate()(samples)) == (
        "ValueError: `samples` must be at least one frame long, but is 0 at sample 1, field label. "
        "Drop the sample, or use PadCollate, which pads it."
    )


def test_values_that_no_float_dtype_refuses():
    for value in (float("nan"), float("-inf"), np.float32(0.5)):
        padding = PadCollate(value=value)([ONE, torch.ones(2)]).values[0, 1]
        torch.testing.assert_close(padding, torch.tensor(float(value)), equal_nan=True)


@pytest.mark.parametrize("count_multiple_of", [1, 8])
def test_lengths_and_rows_are_filled_up_to_multiples_as_the_budget_counts_them(count_multiple_of):
    lengths = lw.example_lengths("long-tailed", count=300)
    multiples = {"multiple_of": 8, "count_multiple_of": count_multiple_of}
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Budget(20_000, **multiples)), world_size=2)
    collate = PadCollate(**multiples)
    for number, rows in enumerate(plan.row_counts.tolist()):
        members = plan.batch(number)
        batch, numbers = collate([(torch.ones(int(length)), 7) for length in lengths[members]])
        assert batch.mask.shape == (rows, plan.padded_lengths[number, 0])
        assert rows * batch.mask.shape[1] == plan.costs[number] <= 20_000
        assert rows % count_multiple_of == 0 or rows == len(members) < count_multiple_of
        assert int(batch.mask.sum()) == lengths[members].sum()
        assert numbers.tolist() == [7] * len(members) + [0] * (rows - len(members))
