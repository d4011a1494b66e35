"""Choices, functions, samples and states that streams refuse."""

import json

import numpy as np
import pytest
import torch
from streams import BUDGET, samples, shards_of, stream_after, stream_of

import lengthwise as lw
from lengthwise.torch.shards import BEGIN
from ranks import complaint

LONG = lw.Batching(budget=4_000)
ENDLESS = []
ENDLESS.append(ENDLESS)


def stream_by_len(shards, **given):
    return lw.torch.StreamBatches(shards, BUDGET, **{"length": len, "collate_fn": list, "buffer": 40, **given})


def test_numbers_of_numpy_are_those_of_python_in_a_state():
    given = {"seed": np.int64(2), "buffer": np.int32(40), "micro_batches": np.uint8(2)}
    stream, other = stream_of(shards_of([60]), BUDGET, **given), stream_of(shards_of([60]), BUDGET, seed=2)
    stream.set_epoch(np.int64(1))
    assert len(list(stream)) > 2
    assert json.loads(json.dumps(stream.state_dict()))["epoch"] == 1
    other.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert list(other) == []


@pytest.mark.parametrize("name", ["length", "weight"])
def test_what_a_function_raises_is_told_of_which_sequence(name):
    def fail(sample):
        return 3 if sample != "bad" else {}["none"]

    shards = [["a"] * 50, ["b"] * 45 + ["bad"]]
    with pytest.raises(KeyError, match="none") as caught:
        list(stream_by_len(shards, **{name: fail}))
    assert caught.value.__notes__ == [f"`{name}` raised this at sequence 45 of shard 1, 'bad'."]


REFUSED = {
    "generator": (
        lambda: stream_of((sample for sample in samples(3)), LONG),
        "TypeError: `shards` must be iterables of samples that can be read in every epoch, but is <generator",
    ),
    "none": (lambda: stream_of([], LONG), "ValueError: `shards` must be at least one, but is []."),
    "number": (lambda: stream_of(7, LONG), "TypeError: `shards` must be iterables"),
    "batching": (lambda: stream_of([[]], 16), "TypeError: `batching` must be a Batching, but is 16."),
    "chunks": (
        lambda: stream_of([[]], lw.Batching(budget=90, chunks=lw.Chunks(5))),
        "ValueError: `batching` must be without chunks, but is Chunks(",
    ),
    "random steps": (
        lambda: stream_of([[]], lw.Batching(budget=90, deal=lw.RandomSteps())),
        "ValueError: Streams form no RandomSteps: each rank batches its own samples.",
    ),
    "length": (
        lambda: lw.torch.StreamBatches([[]], LONG, length=5),
        "TypeError: `length` must be a function of a sample, but is 5.",
    ),
    "len of dicts": (
        lambda: list(stream_by_len([[{"tokens": [1, 2, 3]}]])),
        "TypeError: `length` must be the length of a sequence, not the number of a sample's fields, but is <built-in",
    ),
    "buffer": (lambda: stream_of([[]], LONG, buffer=0), "ValueError: `buffer` must be at least 1, but is 0."),
    "zero": (lambda: list(stream_of([[(0, 0)]], LONG)), "ValueError: `lengths` must be at least 1, but is 0"),
    "over in a later window": (
        lambda: list(stream_of([[(n, 9) for n in range(99)], [(n, 9 + 6_000 * (n == 75)) for n in range(99)]], LONG)),
        "OversizeError: `budget` must be at least the cost of the costliest sequence, 6009, but is 4000.0 at sequence "
        "75 of shard 1.",
    ),
    "longer than a row": (
        lambda: list(stream_of([[(n, 9 + 60 * (n == 75)) for n in range(99)]], lw.Batching(cut=lw.Rows(20)))),
        "LongerThanRowError: `capacity` must be at least the longest sequence, 69, but is 20 at sequence 75 of shard 0",
    ),
    "nan": (
        lambda: list(stream_of([[(n, float("nan") if n == 75 else 9) for n in range(99)]], LONG)),
        "ValueError: `lengths` must be finite, but is nan at sequence 75 of shard 0. Drop the sequence or repair its",
    ),
    "weight": (
        lambda: list(stream_of(shards_of([4, 30]), LONG, weight=lambda pair: -1.0 if pair[0] == 1_027 else 1.0)),
        "ValueError: `weights` must be finite and at least 0, but is -1.0 at sequence 27 of shard 1.",
    ),
    "state": (
        lambda: stream_of([[]], LONG).load_state_dict({"epoch": 0}),
        "ValueError: `state` must be a state from StreamBatches.state_dict, but is {'epoch': 0}. Load the state",
    ),
    "starts": (
        lambda: stream_of([[]], LONG).load_state_dict({**stream_of([[]], LONG).state_dict(), "starts": [{}]}),
        "ValueError: `starts` must be the positions of 1 shards, but is [{}]. Load the state as it was saved.",
    ),
    "seed": (
        lambda: stream_of([[]], LONG).load_state_dict(stream_of([[]], LONG, seed=3).state_dict()),
        "PlanMismatchError: `seed` must be the checkpoint's, 3, but is 0.",
    ),
    "samples as shards": (
        lambda: stream_by_len([{"tokens": [5]}]),
        "TypeError: `shards` must be iterables of samples that can be read in every epoch, but is {'tokens': [5]}.",
    ),
    "len of tuples": (
        lambda: list(stream_by_len([[(torch.zeros(50, 3), 1)] * 9])),
        "TypeError: `length` must be the length of a sequence, not the number of a sample's fields, but is <built-in",
    ),
    "numbers beside pairs": (
        lambda: list(stream_by_len([["a"] * 5, ["b", "cc"]], length=lambda text: (1, 2) if text == "cc" else 1)),
        "ValueError: `lengths` must be a list of numbers, or of rows of the same width, but is [",
    ),
    "weight of no function": (
        lambda: stream_by_len([["a"]], weight=3),
        "TypeError: `weight` must be a function of a sample, or None, but is 3.",
    ),
    "a sample that holds itself": (
        lambda: list(stream_by_len([[ENDLESS]], collate_fn=torch.utils.data.default_collate)),
        "ValueError: `samples` must be of a few levels, none of which holds itself, but is [[...]]. Leave that",
    ),
    "collate_fn": (
        lambda: stream_by_len([["a"]], collate_fn=None),
        "TypeError: `collate_fn` must be a function of a list of samples, but is None.",
    ),
}


@pytest.mark.parametrize(("call", "said"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(call, said):
    assert complaint(call).startswith(said)


def test_a_sequence_may_be_a_tuple_of_words_and_a_weight_a_tensor():
    batches = list(stream_by_len([[("so", "it", "begins")] * 9], weight=lambda words: torch.tensor(len(words))))
    assert sum(map(len, batches)) == 9


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"runs": [[1, 1, 10**6]]}, "`runs` must be at most "),
        ({"runs": [[1, 2, 10**6], [1, 1, 0]]}, "`runs` must be at most "),
        ({"seed": torch.tensor([0, 0])}, "`seed` must be of plain numbers and words, but is 'Tensor'."),
        ({"epoch": 2**40}, "`epoch` must be at most 2147483648, but is 1099511627776. Load the state as it was saved."),
        *(({"starts": [BEGIN | {"read": read}]}, "`starts` must be ") for read in (-1, 1.5, "ten", None)),
        ({"starts": [BEGIN | {"ended": "no"}]}, "`ended` must be True or False, but is 'no'."),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else "",
)
def test_a_state_that_no_stream_wrote_is_refused(damage, told):
    """Batches that a window does not have would be taken from it without a word."""
    stream = stream_of(shards_of([200]))
    next(iter(stream))
    said = complaint(lambda: next(iter(stream_after(stream.state_dict() | damage, shards_of([200])))))
    assert f"Error: {told}" in said
