"""Fast array helpers give what NumPy gives."""

import numpy as np
import pytest

from lengthwise.choices.arithmetic import longest_of, sum_rows


@pytest.mark.parametrize("count", [0, 20, 2**11, 2**11 + 1])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rows_are_summed_and_their_longest_found_as_numpy_does(count, dims):
    rows = np.random.default_rng(dims).integers(1, 2**40, (count, dims))
    assert sum_rows(rows).tolist() == rows.sum(axis=1).tolist()
    assert longest_of(rows).tolist() == rows.max(axis=0, initial=0).tolist()
