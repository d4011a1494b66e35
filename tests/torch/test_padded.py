"""What a sampler says of batches that do not come as they were planned: lengths of another order, or one length."""

import re
import warnings
from collections import UserDict
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=300) // 8 + 4
SPEECH = lw.example_lengths("speech", count=300) // 8
BATCHINGS = {
    "budget": lw.Batching(budget=700),
    "fixed": lw.Batching(cut=lw.FixedSize(8), order=lw.SemiSorted(randomization_factor=0.2)),
    "edges": lw.Batching(cut=lw.FixedSize(8), order=lw.Bucketed(buckets=6, pad_to_edge=True)),
    "sorted": lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted(), arrange=lw.InOrder()),
    "random": lw.Batching(cut=lw.Budget(900), order=lw.Shuffled()),
}
SAID = (
    r"^`lengths` must be those of the dataset, in its order, but is '\d+ and \d+ for batches that are padded to \d+ "
    r"and \d+'\. Measure them once the dataset is shuffled, filtered and tokenized, in its order\.$"
)


def padded_and_lengths(samples):
    return pad_sequence(samples, batch_first=True), torch.tensor([len(sample) for sample in samples])


def time_first(samples):
    return {"frames": pad_sequence(samples), "speaker": torch.zeros(len(samples))}


def of_a_tokenizer(samples):
    padded = pad_sequence(samples, batch_first=True)
    return UserDict(input_ids=padded.numpy(), attention_mask=(padded == 0).numpy())


def channels_first(samples):
    """[B, 80, T], beside labels of a tenth of the length, give or take."""
    labels = [torch.zeros(1 + len(sample) // 10 + number % 2) for number, sample in enumerate(samples)]
    frames = pad_sequence(samples, batch_first=True)[:, None].expand(-1, 80, -1)
    return [frames, pad_sequence(labels, batch_first=True)]


PADDING = {
    "PadCollate": lw.torch.PadCollate(),
    "padded and lengths": padded_and_lengths,
    "time first": time_first,
    "of a tokenizer": of_a_tokenizer,
    "channels first": channels_first,
}


def nested(samples):
    return torch.nested.nested_tensor(samples, layout=torch.jagged)


OTHERS = {"packed": lw.torch.PackCollate(), "end to end": lw.torch.ConcatCollate(), "a list": list, "nested": nested}


def said(lengths, found, *, batching="budget", collate=padded_and_lengths, epochs=2, sampler=None, **options):
    """What is said of a data set of sequences that are `found` long, planned by `lengths`."""
    sampler = sampler or lw.torch.BatchSampler(lengths, BATCHINGS[batching])
    loader = lw.torch.DataLoader([torch.zeros(int(length)) for length in found], sampler, collate_fn=collate, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for _ in loader:
                pass
    return [str(each.message) for each in caught if not str(each.message).startswith("`padding`")]


def shuffled(lengths, seed=0):
    return np.random.default_rng(seed).permutation(lengths)


@pytest.mark.parametrize("batching", [name for name in BATCHINGS if name != "random"])
@pytest.mark.parametrize("lengths", [LENGTHS, SPEECH], ids=["long-tailed", "speech"])
@pytest.mark.parametrize("seed", range(4))
def test_lengths_of_another_order_are_told_once(batching, lengths, seed):
    (told,) = said(lengths, shuffled(lengths, seed), batching=batching)
    assert re.match(SAID, told)


@pytest.mark.parametrize("collate", PADDING.values(), ids=PADDING)
@pytest.mark.parametrize("workers", [0, 1])
def test_what_pads_may_be_ones_own_function(collate, workers):
    given = {"collate": collate, "num_workers": workers, "epochs": 2 - workers}
    assert len(said(LENGTHS, shuffled(LENGTHS), **given)) == 1
    assert said(LENGTHS, LENGTHS, **given) == []


UNITS = {
    "the same": lambda lengths, _: lengths,
    "special tokens": lambda lengths, _: lengths + 2,
    "words": lambda lengths, random: (lengths * random.uniform(1.0, 2.0, len(lengths))).astype(int),
    "truncated, a tenth": lambda lengths, _: lengths.clip(max=int(np.quantile(lengths, 0.9))),
    "truncated, half": lambda lengths, _: lengths.clip(max=int(np.median(lengths))),
    "samples": lambda lengths, random: lengths * 16 + random.integers(0, 16, len(lengths)),
    "every fourth frame": lambda lengths, _: (lengths + 3) // 4,
    "perturbed in speed": lambda lengths, random: (lengths * random.uniform(0.8, 1.2, len(lengths))).astype(int),
    "cropped at random": lambda lengths, random: (lengths * random.uniform(0.3, 1.0, len(lengths))).astype(int) + 1,
    "cut to one length": lambda lengths, _: np.full(len(lengths), lengths.min()),
}


# Of random batches, each holds a sequence that was truncated: the frames tell nothing, and labels may vary by chance.
@pytest.mark.parametrize(
    ("unit", "batching"), [each for each in product(UNITS, BATCHINGS) if each != ("truncated, half", "random")]
)
@pytest.mark.parametrize("lengths", [LENGTHS, SPEECH], ids=["long-tailed", "speech"])
def test_batches_in_order_say_nothing(unit, batching, lengths):
    for seed, collate in enumerate(PADDING.values()):
        found = UNITS[unit](lengths, np.random.default_rng(seed))
        assert said(lengths, found, batching=batching, collate=collate, epochs=1) == []


@pytest.mark.parametrize("found", [LENGTHS, LENGTHS[::-1], [300] * len(LENGTHS)], ids=["in order", "not", "alike"])
@pytest.mark.parametrize("collate", OTHERS.values(), ids=OTHERS)
def test_batches_without_padding_say_nothing(found, collate):
    assert said(LENGTHS, found, collate=collate) == []


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_random_sequences_does_not_show_that_their_order_is_right(seed):
    """Random batches under a budget hold more frames of data, the more sequences they hold."""
    (told,) = said(LENGTHS, shuffled(LENGTHS, seed), batching="random")
    assert re.match(SAID, told)


def test_batches_that_do_not_tell_yet_are_followed_by_a_look_at_the_next():
    shown = []

    def short_at_first(samples):
        shown.append(len(samples))
        return padded_and_lengths([sample[:4] for sample in samples] if len(shown) <= 24 else samples)

    (told,) = said(LENGTHS, shuffled(LENGTHS), collate=short_at_first, epochs=4)
    assert re.match(SAID, told)


def test_lengths_that_hardly_vary_say_nothing():
    lengths = np.random.default_rng(0).integers(100, 120, 600)
    assert said(lengths, lengths[::-1]) == []


@pytest.mark.parametrize("batching", ["budget", "fixed"])
@pytest.mark.parametrize("workers", [0, 1])
def test_sequences_that_were_padded_before_are_told_once(batching, workers):
    (told,) = said(LENGTHS, [300] * len(LENGTHS), batching=batching, num_workers=workers)
    rule = "`batches` must be padded to what is planned, "
    remedy = "but is '300 for all'. Let the collate function alone pad, to the longest sequence of the batch: no"
    assert told.startswith(rule)
    assert remedy in told


def test_features_that_were_padded_before_are_told_too():
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHINGS["budget"])
    loader = lw.torch.DataLoader([torch.zeros(300, 3)] * len(LENGTHS), sampler)
    with pytest.warns(UserWarning, match="`batches` must be padded to what is planned, .* but is '300 for all'"):
        list(loader)


def test_two_lengths_are_in_order_if_one_of_them_is():
    both = np.stack([LENGTHS, shuffled(LENGTHS, 1)], axis=1)
    sampler = lw.torch.BatchSampler(both, BATCHINGS["fixed"])
    assert said(both, LENGTHS, sampler=sampler) == []
    sampler = lw.torch.BatchSampler(both, BATCHINGS["fixed"])
    assert len(said(both, shuffled(LENGTHS, 2), sampler=sampler)) == 1


@pytest.mark.parametrize("order", ["in order", "another"])
def test_windows_and_resumed_epochs_are_looked_at(order):
    found = LENGTHS if order == "in order" else shuffled(LENGTHS)
    windows = lw.torch.WindowSampler(LENGTHS, BATCHINGS["budget"], window=300, block=10)
    resumed = lw.torch.BatchSampler(LENGTHS, BATCHINGS["budget"])
    resumed.resume(lw.torch.BatchSampler(LENGTHS, BATCHINGS["budget"], micro_batches=2).state_after(6))
    for sampler in (windows, resumed):
        assert len(said(LENGTHS, found, sampler=sampler)) == (order == "another")


def end_to_end(samples):
    return {"input_ids": torch.cat(samples)[None], "starts": torch.zeros(len(samples) + 1)}


def rows_and_prompts(samples):
    """Packed rows, beside something padded of each sequence."""
    return lw.torch.RowCollate(500)(samples), pad_sequence(samples)


def with_a_vector(samples):
    return lw.torch.RowCollate(800)(samples), torch.zeros(len(samples), 256)


@pytest.mark.parametrize("collate", PADDING.values(), ids=PADDING)
def test_rows_that_are_padded_instead_are_told_once(collate):
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.Rows(500, rows=2)))
    (told,) = said(LENGTHS, LENGTHS, sampler=sampler, collate=collate, epochs=4)
    assert re.match(
        r"^`batches` must be rows of 500, as planned, but is 'padded to their longest sequence, \d+ to \d+'\. Collate"
        r" with lw\.torch\.RowCollate\(500\), or cut by a Budget: batches are far too large\.$",
        told,
    )


ONLY_500, LIMITED = "rows of 500, as planned", "rows of 500 with at most 3 sequences, as planned"


@pytest.mark.parametrize(
    ("most", "collate", "rule", "remedy"),
    [
        (None, lw.torch.RowCollate(600), ONLY_500, "500"),
        (3, lw.torch.RowCollate(600, max_in_row=3), LIMITED, "500, max_in_row=3"),
        (3, lw.torch.RowCollate(500), LIMITED, "500, max_in_row=3"),
        (3, lw.torch.RowCollate(500, max_in_row=3), None, None),
    ],
    ids=["capacity", "capacity with a limit", "limit", "as planned"],
)
def test_rows_that_are_not_as_planned_are_told_once(most, collate, rule, remedy):
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.Rows(500, rows=2, max_in_row=most)))
    told = said(LENGTHS, LENGTHS, sampler=sampler, collate=collate, epochs=4)
    assert len(told) == (rule is not None)
    for each in told:
        assert each.startswith(f"`batches` must be {rule}, but is 'rows of {collate.capacity} with up to ")
        assert f"Collate with lw.torch.RowCollate({remedy}), or plan with" in each


@pytest.mark.parametrize("collate", [end_to_end, rows_and_prompts, with_a_vector, list])
def test_rows_that_are_laid_end_to_end_or_stand_beside_something_padded_say_nothing(collate):
    sampler = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.Rows(500, rows=2)))
    assert said(LENGTHS, LENGTHS, sampler=sampler, collate=collate, epochs=4) == []


def test_packed_rows_and_chunks_say_nothing():
    rows = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.Rows(500, rows=4)))
    assert said(LENGTHS, shuffled(LENGTHS), sampler=rows, collate=lw.torch.RowCollate(500)) == []
    chunks = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.FixedSize(8), chunks=lw.Chunks(20)))
    spans = [(0, 0, 20)] * len(LENGTHS)
    loader = lw.torch.DataLoader(Spans(spans), chunks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(len(batch.lengths) for batch in loader) == len(chunks.plan.spans)


class Spans(list):
    def __getitem__(self, span):
        return torch.zeros(span[2] - span[1])


class Failing(list):
    def __getitem__(self, number):
        if number % 40 == 0:
            raise KeyError(number)
        return super().__getitem__(number)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_fail_to_load_are_passed_over(workers):
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHINGS["budget"])
    data = Failing(torch.zeros(int(length)) for length in LENGTHS)
    loader = lw.torch.DataLoader(data, sampler, collate_fn=padded_and_lengths, num_workers=workers)
    iterator, failed, taken = iter(loader), 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while failed + taken < len(sampler):
            try:
                next(iterator)
                taken += 1
            except KeyError:
                failed += 1
    assert failed > 1
    assert next(iterator, None) is None
    assert loader.delivered == len(sampler)


MULTIPLES = np.random.default_rng(0).integers(2, 58, 400)
ONE_EDGE, TWO_EDGES = (
    lw.Batching(budget=512, order=lw.Bucketed(edges=edges, pad_to_edge=True)) for edges in ((64,), (8, 64))
)


@pytest.mark.parametrize(
    ("batching", "collate"),
    [
        (lw.Batching(cut=lw.Budget(512, multiple_of=64)), None),
        (lw.Batching(cut=lw.Budget(512, multiple_of=32)), None),
        *((each, lw.torch.PadCollate(shapes=lw.batch_shapes(MULTIPLES, each))) for each in (ONE_EDGE, TWO_EDGES)),
    ],
    ids=["64", "32", "one edge", "two edges"],
)
def test_batches_that_the_plan_itself_pads_to_few_lengths_say_nothing(batching, collate):
    sampler = lw.torch.BatchSampler(MULTIPLES, batching)
    assert said(MULTIPLES, MULTIPLES, sampler=sampler, collate=collate) == []
