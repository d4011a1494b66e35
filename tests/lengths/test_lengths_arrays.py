"""Arrays in memory: what becomes lengths, what is refused, and in which words."""

import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lengthwise.lengths import as_lengths

GOOD = [
    ([3, 1, 2], [3, 1, 2]),
    ((3, 1), [3, 1]),
    (range(1, 4), [1, 2, 3]),
    ([3.0, 1e6], [3, 1_000_000]),
    ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    (np.array([3, 1], dtype=">i4"), [3, 1]),
    (np.array([200], dtype=np.uint8), [200]),
    (np.array([7.0], dtype=np.float16), [7]),
    (np.array([5, 6], dtype=object), [5, 6]),
    (np.array([5, Fraction(6)], dtype=object), [5, 6]),
    (torch.tensor([4, 9]), [4, 9]),
    (torch.tensor([[4, 9]], dtype=torch.int16), [[4, 9]]),
    (pa.array([8, 1]), [8, 1]),
    (pa.chunked_array([[8], [1]]), [8, 1]),
    ([2**63 - 1], [2**63 - 1]),
    (np.ma.array([1, 2], mask=False), [1, 2]),
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


def test_result_is_read_only_and_never_a_view():
    values = np.array([3, 1, 2])
    lengths = as_lengths(values)
    values[0] = 99
    assert lengths.tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        lengths[0] = 1


BAD = [
    ([3, 0], ValueError, "`lengths` must be at least 1, but is 0 at sequence 1. Drop the sequence"),
    ([3, -2, 0], ValueError, "`lengths` must be at least 1, but is -2 at sequence 1."),
    ([3.0, float("nan")], ValueError, "`lengths` must be finite, but is nan at sequence 1."),
    ([float("-inf")], ValueError, "`lengths` must be finite, but is -inf at sequence 0."),
    ([1, 2.5], ValueError, "`lengths` must be a whole number, but is 2.5 at sequence 1. If these are seconds"),
    ([[1, 2], [3, 0]], ValueError, "`lengths` must be at least 1, but is 0 at sequence 1, dimension 1."),
    (np.array([2**63], dtype=np.uint64), ValueError, "at most 2**63 - 1, but is 9223372036854775808 at sequence 0."),
    ([1e30], ValueError, "at most 2**63 - 1, but is 1e+30 at sequence 0."),
    ([1, 2**70], ValueError, f"from 1 to 2**63 - 1, but is {2**70} at sequence 1."),
    ([1, -(2**70)], ValueError, f"from 1 to 2**63 - 1, but is -{2**70} at sequence 1."),
    ([[1, 2], [3]], ValueError, "at the first, 2 numbers, but is [3] at sequence 1."),
    ([1, [2, 3]], ValueError, "at the first, one number, but is [2, 3] at sequence 1."),
    ([[1, [2]], [3, 4]], ValueError, "but is [1, [2]] at sequence 0."),
    (5, ValueError, "`lengths` must be an array of shape [n] or [n, dims], but is ()."),
    (None, ValueError, "but is ()."),
    (np.ones((2, 2, 2), dtype=int), ValueError, "shape [n] or [n, dims], but is (2, 2, 2)."),
    ([[], []], ValueError, "shape [n] or [n, dims], but is (2, 0)."),
    (np.zeros((0, 0)), ValueError, "shape [n] or [n, dims], but is (0, 0)."),
    (np.ma.array([1, 2], mask=[False, True]), ValueError, "without masked values, but is 'masked' at flat index 1."),
    (pa.array([1, None]), ValueError, "`lengths` must be finite, but is nan at sequence 1."),
    ([True, False], TypeError, "`lengths` must be whole numbers, but is True at sequence 0."),
    (np.array([1, True], dtype=object), TypeError, "whole numbers, but is True at sequence 1."),
    ([4, "7"], TypeError, "whole numbers, but is '7' at sequence 1."),
    (np.array(["7", "8"]), TypeError, "whole numbers, but is '7' at sequence 0."),
    ([4, None], TypeError, "whole numbers, but is None at sequence 1."),
    ([1j], TypeError, "whole numbers, but is 1j at sequence 0."),
    (torch.tensor([1.0], requires_grad=True), TypeError, "array of whole numbers, but is <class 'torch.Tensor'>."),
    (torch.tensor([1.0], dtype=torch.bfloat16), TypeError, "array of whole numbers, but is <class 'torch.Tensor'>."),
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
    with pytest.raises(ValueError, match=rf"but is {numbers[bad[0]]} at sequence {bad[0] // dims}[.,]"):
        as_lengths(values)


@given(st.lists(st.floats(), min_size=1))
def test_floats_pass_only_where_they_are_lengths(values):
    if all(np.isfinite(value) and value >= 1 and value == int(value) and value < 2**63 for value in values):
        assert as_lengths(values).tolist() == [int(value) for value in values]
    else:
        with pytest.raises(ValueError, match=r"^`lengths` must be .*, but is .* at sequence \d+\. "):
            as_lengths(values)
