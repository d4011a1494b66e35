"""Orders, worked by hand; those of the papers are in `tests/test_papers.py`."""

import numpy as np

import lengthwise as lw


def test_windows_are_sorted_and_no_batch_crosses_them():
    lengths = [5, 3, 8, 1, 9, 2, 7, 6, 4]
    batching = lw.Batching(order=lw.Windowed(window=4), cut=lw.FixedSize(3), arrange=lw.InOrder())
    batches = [np.array(lengths)[batch] for batch in lw.make_plan(lengths, batching, seed=3).batches()]
    # Windows of 4, 4 and 1 sequences give batches of 2 + 2, 2 + 2 and 1, each window rising.
    assert [len(batch) for batch in batches] == [2, 2, 2, 2, 1]
    for first, second in ((0, 1), (2, 3)):
        window = np.concatenate([batches[first], batches[second]])
        assert np.all(np.diff(window) > 0)
