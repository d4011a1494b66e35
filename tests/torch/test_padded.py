"""The warnings of a sampler whose batches do not come as planned: in another order, of one length, or not as rows."""

import re
import warnings
from collections import UserDict
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import lengthwise as lw

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths("long-tailed", count=300) // 8 + 4
SPEECH = lw.example_lengths("speech", count=300) // 8
ALIKE = np.random.default_rng(0).integers(100, 120, 600)
BATCHINGS = {
    "budget": lw.Batching(budget=700),
    "fixed": lw.Batching(cut=lw.FixedSize(8), order=lw.SemiSorted(randomization_factor=0.2)),
    "edges": lw.Batching(cut=lw.FixedSize(8), order=lw.Bucketed(buckets=6, pad_to_edge=True)),
    "sorted": lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted(), arrange=lw.InOrder()),
    "random": lw.Batching(cut=lw.Budget(900), order=lw.Shuffled()),
}
SAID = (
    r"^Batches planned for lengths of up to \d+ and \d+ are padded to \d+ and \d+\. `lengths` must be those of the "
    r"dataset, in its order, after it is shuffled, filtered and tokenized\.$"
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


def sampler_of(lengths=LENGTHS, batching="budget", *, kind=lw.torch.BatchSampler, **given):
    return kind(lengths, BATCHINGS[batching] if isinstance(batching, str) else batching, **given)


def resumed():
    sampler = sampler_of()
    sampler.resume(sampler_of(micro_batches=2).state_after(6))
    return sampler


def warnings_of(sampler, found, *, collate=padded_and_lengths, epochs=2, **options):
    """Returns the warnings of loops over sequences that are `found` long."""
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


# Another order of the data set


@pytest.mark.parametrize("batching", BATCHINGS)
def test_lengths_of_another_order_are_told_once(batching):
    for seed, lengths in enumerate((LENGTHS, LENGTHS if batching == "random" else SPEECH)):
        (told,) = warnings_of(sampler_of(lengths, batching), shuffled(lengths, seed))
        assert re.match(SAID, told)


UNITS = {
    "the same": lambda lengths, _: lengths,
    "special tokens": lambda lengths, _: lengths + 2,
    "words": lambda lengths, random: (lengths * random.uniform(1.0, 2.0, len(lengths))).astype(int),
    "truncated, half": lambda lengths, _: lengths.clip(max=int(np.median(lengths))),
    "every fourth frame": lambda lengths, _: (lengths + 3) // 4,
    "cropped at random": lambda lengths, random: (lengths * random.uniform(0.3, 1.0, len(lengths))).astype(int) + 1,
    "cut to one length": lambda lengths, _: np.full(len(lengths), lengths.min()),
}


# Of random batches, each holds a sequence that was truncated: the frames tell nothing, and labels may vary by chance.
@pytest.mark.parametrize(
    ("unit", "batching"), [each for each in product(UNITS, BATCHINGS) if each != ("truncated, half", "random")]
)
def test_batches_in_order_say_nothing(unit, batching):
    for seed, collate in enumerate(PADDING.values()):
        lengths = SPEECH if seed % 2 else LENGTHS
        found = UNITS[unit](lengths, np.random.default_rng(seed))
        told = warnings_of(sampler_of(lengths, batching), found, collate=collate, epochs=1)
        assert [each for each in told if not each.startswith("Batches hold")] == []


def windows():
    return sampler_of(kind=lw.torch.WindowSampler, window=300, block=10)


LONGER = {
    "an end token": lambda lengths: lengths + 1,
    "a template": lambda lengths: lengths + 40,
    "tokens for words": lambda lengths: lengths * 5 // 2,
}


@pytest.mark.parametrize("longer", LONGER.values(), ids=LONGER)
@pytest.mark.parametrize("make", [sampler_of, windows, resumed], ids=["plan", "windows", "resumed"])
def test_batches_over_the_budget_are_told_once(longer, make):
    said = r"^Batches hold \d+\.\d\d x the frames of the plan: \d+ of 24 are over the budget of 700\. If you "
    for number, collate in enumerate(PADDING.values()):
        (told,) = warnings_of(sampler := make(), longer(sampler.lengths), collate=collate, num_workers=number % 2)
        assert re.match(said, told)


def test_the_first_batch_over_the_budget_in_a_later_epoch_is_told():
    data = [torch.zeros(length) for length in LENGTHS.tolist()]
    loader = lw.torch.DataLoader(data, sampler_of())
    assert len([*loader]) == len(loader)
    data[:] = [each.repeat(2) for each in data]
    loader.set_epoch(1)
    with pytest.warns(
        UserWarning, match=rf"^Batches hold 2\.00 x .*: 1 of {len(loader) + 1} are over the budget of 700\."
    ):
        assert len([*loader]) == len(loader)


def test_lengths_that_were_cropped_after_they_were_read_are_told():
    (told,) = warnings_of(sampler_of(), LENGTHS.clip(max=60))
    assert re.match(
        r"^Batches hold \d\d % of the frames of the plan\. Crop the lengths .* np\.minimum\(lengths, 60\)", told
    )


@pytest.mark.parametrize("lengths", [ALIKE, LENGTHS.repeat(2).clip(max=85)], ids=["hardly vary", "cropped"])
def test_batches_over_the_budget_are_told_where_the_order_cannot_be(lengths):
    (told,) = warnings_of(sampler_of(lengths), shuffled(lengths), epochs=1)
    assert re.match(r"^Batches hold 1\.\d\d x .* Are the lengths in the order of the data set\?", told)


def test_batches_within_the_budget_or_of_another_unit_say_nothing():
    roomy = lw.Batching(cut=lw.Budget(700, multiple_of=8))
    assert warnings_of(sampler_of(LENGTHS // 8 * 8 - 3, roomy), LENGTHS // 8 * 8) == []  # specials in the multiples
    assert warnings_of(sampler_of(), LENGTHS * 20, epochs=1) == []  # samples for frames
    alone = lw.Batching(cut=lw.Budget(150, oversize="alone"))
    assert warnings_of(sampler_of(batching=alone), LENGTHS) == []  # planned to be over it


def pairs(other=None):
    other = shuffled(LENGTHS, 1) if other is None else other
    return sampler_of(np.stack([LENGTHS, other], axis=1), "fixed")


def pairs_with_one_prompt():
    return pairs(np.full(len(LENGTHS), 7))


@pytest.mark.parametrize("make", [windows, resumed, pairs, pairs_with_one_prompt])
@pytest.mark.parametrize("collate", PADDING.values(), ids=PADDING)
def test_what_pads_may_be_ones_own_function_and_the_sampler_of_any_kind(make, collate):
    """A data set of two lengths is in order if one of them is."""
    assert len(warnings_of(make(), shuffled(LENGTHS, 2), collate=collate)) == 1
    assert warnings_of(make(), LENGTHS, collate=collate) == []


@pytest.mark.parametrize("found", [LENGTHS, LENGTHS[::-1], [300] * len(LENGTHS)], ids=["in order", "not", "alike"])
@pytest.mark.parametrize("collate", OTHERS.values(), ids=OTHERS)
def test_batches_without_padding_say_nothing(found, collate):
    assert warnings_of(sampler_of(), found, collate=collate) == []


def test_batches_that_do_not_tell_yet_are_followed_by_a_look_at_the_next():
    shown = []

    def short_at_first(samples):
        shown.append(len(samples))
        return padded_and_lengths([sample[:4] for sample in samples] if len(shown) <= 24 else samples)

    (told,) = warnings_of(sampler_of(), shuffled(LENGTHS), collate=short_at_first, epochs=4)
    assert re.match(SAID, told)


# Batches of one length, and packed rows


@pytest.mark.parametrize("batching", ["budget", "fixed"])
@pytest.mark.parametrize("workers", [0, 1])
def test_sequences_that_were_padded_before_are_told_once(batching, workers):
    (told,) = warnings_of(sampler_of(batching=batching), [300] * len(LENGTHS), num_workers=workers)
    assert told.startswith("`batches` must be padded to the planned lengths, ")
    assert "but is '300 for all'. Pad in the collate function alone, to the longest sequence of the batch, and" in told


PLANNED, LIMITED = "rows of 500, as planned", "rows of 500 with at most 3 sequences, as planned"
PADDED = r"padded to their longest sequence, \d+ to \d+'. Collate with lw.torch.RowCollate\(500\), or cut by a Budget"


@pytest.mark.parametrize(
    ("most", "collate", "rule", "value"),
    [
        (None, padded_and_lengths, PLANNED, PADDED),
        (None, time_first, PLANNED, PADDED),
        (None, lw.torch.RowCollate(600), PLANNED, r"rows of 600 with up to .*RowCollate\(500\), or plan with"),
        (3, lw.torch.RowCollate(600, max_in_row=3), LIMITED, r"rows of 600 .*RowCollate\(500, max_in_row=3\), or plan"),
        (3, lw.torch.RowCollate(500), LIMITED, r"rows of 500 with up to .*RowCollate\(500, max_in_row=3\), or plan"),
    ],
    ids=["padded", "padded, time first", "capacity", "capacity with a limit", "limit"],
)
def test_rows_that_are_not_as_planned_are_told_once(most, collate, rule, value):
    sampler = sampler_of(batching=lw.Batching(cut=lw.Rows(500, rows=2, max_in_row=most)))
    (told,) = warnings_of(sampler, LENGTHS, collate=collate, epochs=4)
    assert re.match(f"^`batches` must be {rule}, but is '{value}", told)


def end_to_end(samples):
    return {"input_ids": torch.cat(samples)[None], "starts": torch.zeros(len(samples) + 1)}


def rows_and_prompts(samples):
    """Packed rows, beside something padded of each sequence."""
    return lw.torch.RowCollate(500)(samples), pad_sequence(samples)


ROWS = lw.Batching(cut=lw.Rows(500, rows=2))
LIMITED_ROWS = lw.Batching(cut=lw.Rows(500, rows=2, max_in_row=3))
SHORT = np.random.default_rng(0).integers(2, 58, 400)
EDGES = {"one edge": lw.Bucketed(edges=(64,), pad_to_edge=True), "two": lw.Bucketed(edges=(8, 64), pad_to_edge=True)}
EDGED = {name: lw.Batching(budget=512, order=order) for name, order in EDGES.items()}
SILENT = {  # a sampler, the lengths of the data set, and the collate function
    "hardly vary": (sampler_of(ALIKE, "fixed"), ALIKE[::-1], None),
    "rows as planned": (sampler_of(batching=LIMITED_ROWS), LENGTHS, lw.torch.RowCollate(500, max_in_row=3)),
    "rows of another order": (sampler_of(batching=ROWS), shuffled(LENGTHS), lw.torch.RowCollate(500)),
    "rows end to end": (sampler_of(batching=ROWS), LENGTHS, end_to_end),
    "rows and prompts": (sampler_of(batching=ROWS), LENGTHS, rows_and_prompts),
    "rows as lists": (sampler_of(batching=ROWS), LENGTHS, list),
    # The plan itself pads to few lengths.
    "multiples of 64": (sampler_of(SHORT, lw.Batching(cut=lw.Budget(512, multiple_of=64))), SHORT, None),
    "multiples of 32": (sampler_of(SHORT, lw.Batching(cut=lw.Budget(512, multiple_of=32))), SHORT, None),
    **{
        name: (sampler_of(SHORT, each), SHORT, lw.torch.PadCollate(shapes=lw.batch_shapes(SHORT, each)))
        for name, each in EDGED.items()
    },
}


@pytest.mark.parametrize(("sampler", "found", "collate"), SILENT.values(), ids=SILENT)
def test_what_is_right_or_cannot_be_told_says_nothing(sampler, found, collate):
    assert warnings_of(sampler, found, collate=collate, epochs=4) == []


class Spans:
    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, span):
        return torch.zeros(span[2] - span[1])


def test_chunks_say_nothing():
    sampler = sampler_of(batching=lw.Batching(cut=lw.FixedSize(8), chunks=lw.Chunks(20)))
    # Warnings are errors here.
    assert sum(len(batch.lengths) for batch in lw.torch.DataLoader(Spans(), sampler)) == len(sampler.plan.spans)
