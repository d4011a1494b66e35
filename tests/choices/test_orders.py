"""Orders, worked by hand; those of the papers are in `tests/test_papers.py`."""

import numpy as np
import pytest

import lengthwise as lw
import menu


def test_windows_are_sorted_and_no_batch_crosses_them():
    lengths = [5, 3, 8, 1, 9, 2, 7, 6, 4]
    batching = lw.Batching(order=lw.Windowed(window=4), cut=lw.FixedSize(3), arrange=lw.InOrder())
    batches = [np.array(lengths)[batch] for batch in lw.make_plan(lengths, batching, seed=3).batches()]
    # Windows of 4, 4 and 1 sequences give batches of 2 + 2, 2 + 2 and 1, each window rising.
    assert [len(batch) for batch in batches] == [2, 2, 2, 2, 1]
    for first, second in ((0, 1), (2, 3)):
        window = np.concatenate([batches[first], batches[second]])
        assert np.all(np.diff(window) > 0)


def test_more_bins_than_sequences_are_one_for_each():
    plans = [lw.make_plan([5, 3, 8], lw.Batching(order=lw.AlternatedSort(n), cut=lw.FixedSize(2))) for n in (3, 10**15)]
    assert np.array_equal(plans[0].sequences, plans[1].sequences)


# Six sequences of 3 and two of 9, in buckets of their own; some buckets stay empty.
TWO_KINDS = np.array([3, 9, 3, 3, 3, 9, 3, 3])
TWO_BUCKETS = {
    "edges": {"order": lw.Bucketed(edges=(3, 9))},
    "empty buckets": {"order": lw.Bucketed(edges=(1, 2, 3, 5, 9, 12))},
    "empty buckets, padded to": {"order": lw.Bucketed(edges=(1, 3, 5, 9, 12), pad_to_edge=True)},
    "optimal": {"order": lw.Bucketed(buckets=2)},
    "groups": {"order": lw.Shuffled(), "groups": TWO_KINDS},
    "groups of buckets": {"order": lw.Bucketed(edges=(3, 9)), "groups": TWO_KINDS},
}


@pytest.mark.parametrize("kind", TWO_BUCKETS)
@pytest.mark.parametrize(
    ("cut", "ranks", "sizes"),
    [
        (lw.FixedSize(2), 1, [2, 2, 2, 2]),
        (lw.FixedSize(3), 1, [3, 3, 2]),
        (lw.FixedSize(3), 4, [2, 2, 2, 2]),
        (lw.FixedSize(3, drop_incomplete=True), 1, [3, 3]),
        (lw.Budget(18), 1, [6, 2]),
        (lw.Budget(18), 4, [3, 3, 1, 1]),  # each costs 9
        (lw.Budget(8, oversize="drop"), 1, [2, 2, 2]),
        (lw.Budget(8, oversize="alone"), 5, [2, 2, 2, 1, 1]),
        (lw.DynamicSize(2, rule="paper"), 1, [6, 2]),
        (lw.Rows(9, rows=2), 1, [6, 2]),
        (lw.Rows(9, rows=1), 2, [3, 3, 1, 1]),
        (lw.Rows(8, rows=3, oversize="drop"), 1, [6]),
    ],
    ids=str,
)
def test_a_border_where_a_batch_ends_anyway_makes_no_empty_batch(kind, cut, ranks, sizes):
    choices = dict(TWO_BUCKETS[kind])
    groups = choices.pop("groups", None)
    if menu.packs(cut):
        choices["order"] = menu.suit_order(choices["order"], cut)
    batching = lw.Batching(cut=cut, deal=lw.Balanced(), **choices)
    plan = lw.make_plan(TWO_KINDS, batching, groups=groups, world_size=ranks)
    assert sorted(plan.batch_sizes.tolist(), reverse=True) == sizes
    assert all(len(set(TWO_KINDS[plan.batch(number)].tolist())) == 1 for number in range(len(sizes)))
    assert plan.grid.size == len(sizes)
