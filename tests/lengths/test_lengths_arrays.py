"""Arrays in memory: what becomes lengths, what is refused, and in which words."""

import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as hnp

import lengthwise as lw
from lengthwise.lengths import as_lengths

GOOD = [
    ([3, 1, 2], [3, 1, 2]),
    ([3.0, 1e6], [3, 1_000_000]),
    ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    (np.array([3, 1], dtype=">i4"), [3, 1]),
    (np.array([7.0], dtype=np.float16), [7]),
    (np.array([5, Fraction(6)], dtype=object), [5, 6]),
    (torch.tensor([4, 9]), [4, 9]),
    (pa.array([8, 1]), [8, 1]),
    ([2**63 - 1], [2**63 - 1]),
    ([[3], [4]], [[3], [4]]),
    ([np.array([3, 4]), np.array([1, 2])], [[3, 4], [1, 2]]),
    (np.array([range(1, 9)]), [list(range(1, 9))]),
]


@pytest.mark.parametrize(("values", "expected"), GOOD, ids=[str(k) for k in range(len(GOOD))])
def test_any_whole_numbers_become_int64(values, expected):
    lengths = as_lengths(values)
    assert lengths.dtype == np.int64
    assert lengths.tolist() == expected


@pytest.mark.parametrize("shape", [(0,), (0, 2)])
@pytest.mark.parametrize("dtype", [np.int32, np.float64, bool, str])
def test_no_sequences_are_legal(shape, dtype):
    lengths = as_lengths(np.zeros(shape, dtype=dtype))
    assert lengths.shape == shape
    assert lengths.dtype == np.int64
    assert lw.read_lengths([], frame_shift=160).tolist() == []


def test_result_is_read_only_and_never_a_view():
    values = np.array([3, 1, 2])
    lengths = as_lengths(values)
    values[0] = 99
    assert lengths.tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        lengths[0] = 1


BAD = [
    (np.ma.array([1, 2], mask=[False, True]), ValueError, "without masked values, but is 'masked'."),
    ([3, 0], ValueError, "`lengths` must be at least 1, but is 0 at sequence 1. Drop it, or count"),
    ([3.0, float("nan")], ValueError, "`lengths` must be finite, but is nan at sequence 1."),
    ([1, 2.5], ValueError, "is 2.5 at sequence 1. If these are seconds, turn them into"),
    ([[1, 2], [3, 0]], ValueError, "`lengths` must be at least 1, but is 0 at sequence 1, dimension 1."),
    (np.array([2**63], dtype=np.uint64), ValueError, "at most 2**63 - 1, but is 9223372036854775808 at sequence 0."),
    (np.array([3, 1e30], object), ValueError, "`lengths` must be at most 2**63 - 1, but is 1e+30 at sequence 1."),
    ([2.0**53], ValueError, "below 2**53 as a float, but is 9007199254740992.0 at sequence 0. Floats"),
    ([Fraction(2**53 + 1)], ValueError, "below 2**53 as a float, but is 9007199254740992.0 at sequence 0."),
    ([Fraction(10**400)], ValueError, "from 1 to 2**63 - 1, but is Fraction(1000"),
    (np.array([3, 2**24 + 1], dtype=np.float32), ValueError, "2**24 as a float, but is 16777216.0 at sequence 1."),
    (torch.tensor([3001.0], dtype=torch.float16), ValueError, "below 2**11 as a float, but is 3000.0 at sequence 0."),
    ([[1, 2], [3]], ValueError, "a list of numbers, or of rows of the same width, but is [[1, 2],"),
    ([[5, 6, 7], [1, 2, 3]], ValueError, "a list of numbers or of pairs, but is [5, 6, 7] at sequence 0."),
    (np.ones((4, 9), dtype=int), ValueError, "`lengths` must be at most 8 for each sequence, but is 9. If these are"),
    ([1, [2, 3]], ValueError, "but is [1, [2, 3]]."),
    (5, ValueError, "`lengths` must be an array of shape [n] or [n, dims], but is ()."),
    (None, TypeError, "must be a list or an array, but is <class 'NoneType'>. Give the length of each sequence, as"),
    ("train.csv", TypeError, "but is <class 'str'>. Read the lengths of a file with `read_lengths(path)`."),
    ((size for size in (3, 1)), TypeError, "but is <class 'generator'>. Put its numbers in a list: `list(lengths)`."),
    ({"a": 3}, TypeError, "but is <class 'dict'>. Give its values in the order of the sequences: `list(lengths."),
    (np.ones((2, 2, 2), dtype=int), ValueError, "shape [n] or [n, dims], but is (2, 2, 2)."),
    (pa.array([1, None]), ValueError, "`lengths` must be finite, but is nan at sequence 1."),
    ([True, False], TypeError, "`lengths` must be whole numbers, but is True at sequence 0."),
    ([5.0, np.True_], TypeError, f"`lengths` must be whole numbers, but is {np.True_!r} at sequence 1."),
    (pa.array([[5, 6], [7, 8]]), TypeError, "but is array([5, 6]) at sequence 0. Give the length of each sequence, as"),
    (["hello", "you"], TypeError, "is 'hello' at sequence 0. Give the length of each sequence, as `[len(sequence) for"),
    ([1j], TypeError, "whole numbers, but is 1j at sequence 0."),
    (torch.tensor([1.0], requires_grad=True), TypeError, "array of whole numbers, but is <class 'torch.Tensor'>."),
]


@pytest.mark.parametrize(("values", "kind", "words"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_what_is_no_length_is_refused_with_its_place(values, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        as_lengths(values)


@given(hnp.arrays(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes(), hnp.array_shapes(max_dims=2)))
def test_integers_pass_unchanged_or_the_first_bad_one_is_named(values):
    numbers = [int(value) for value in values.ravel()]
    bad = [at for at, value in enumerate(numbers) if not 1 <= value < 2**63]
    if not bad:
        lengths = as_lengths(values)
        assert lengths.shape == values.shape
        assert lengths.ravel().tolist() == numbers
        return
    dims = 1 if values.ndim == 1 else values.shape[1]
    with pytest.raises(ValueError, match=rf"but is {numbers[bad[0]]} at sequence {bad[0] // dims}[., ]"):
        as_lengths(values)


def test_a_list_of_hundreds_of_levels_is_one_sentence():
    deep = 7
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises((ValueError, TypeError), match=r"^`lengths` must be .*a list of hundreds of levels"):
        as_lengths(deep)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.float16, np.float64])
def test_numbers_of_few_bits_are_planned_and_measured_as_those_of_64(kind):
    lengths, batching = np.arange(1, 121).astype(kind), lw.Batching(budget=500)
    wide = lengths.astype(np.int64)
    plan = lw.make_plan(lengths, batching)
    assert plan.fingerprint() == lw.make_plan(wide, batching).fingerprint()
    batches = [batch.tolist() for batch in plan.batches()]
    assert lw.measure(batches, lengths, world_size=1) == lw.measure(batches, wide, world_size=1)
