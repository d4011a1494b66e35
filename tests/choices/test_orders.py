"""Orders and bucket edges by hand, and what holds for every kind; `tests/test_papers.py` has those of the papers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.choices.buckets import EDGES, padded_frames

LENGTHS = length_sets.flat.filter(len)


@pytest.mark.parametrize(
    ("by", "lengths", "buckets", "edges"),
    [
        ("uniform", [10, 50], 4, [20, 30, 40, 50]),
        ("uniform", [10, 12], 10**15, [10, 11, 12]),  # no more buckets than whole lengths
        ("exponential", [10, 12], 10**15, [10, 11, 12]),
        ("quantile", [3, 1, 2, 3, 9], 10**15, [1, 2, 3, 9]),  # nor than lengths that there are
        ("optimal", [3, 1, 2, 3, 9], 10**15, [1, 2, 3, 9]),
        ("exponential", [10, 1_000], 2, [100, 1_000]),  # each width ten times the one before
        ("exponential", [3, 192], 6, [6, 12, 24, 48, 96, 192]),
        ("quantile", [1, 1, 1, 1, 2, 9], 3, [1, 9]),  # a third and two thirds both end among the ones
        ("quantile", [5, 3, 1, 4, 2], 2, [3, 5]),  # the half ends within the third
        ("optimal", [1, 1, 1, 100, 101], 2, [1, 101]),
        # [4, 10] costs 3 x 4 + 10 = 22, against 2 + 3 x 10 = 32 and 2 x 3 + 2 x 10 = 26.
        ("optimal", [2, 3, 4, 10], 2, [4, 10]),
        ("optimal", [7, 7], 5, [7]),
    ],
)
def test_edges_worked_by_hand(by, lengths, buckets, edges):
    assert EDGES[by](lengths, buckets).tolist() == edges


@pytest.mark.parametrize("by", EDGES)
@settings(max_examples=50, derandomize=True)
@given(lengths=LENGTHS, buckets=st.integers(1, 9))
def test_edges_rise_to_the_longest_and_optimal_ones_pad_least(by, lengths, buckets):
    edges = EDGES[by](lengths, buckets)
    assert 1 <= len(edges) <= buckets
    assert (np.diff(edges) > 0).all()
    assert edges[-1] == lengths.max()
    assert edges[0] >= lengths.min()
    frames = padded_frames(lengths, edges)
    assert lengths.sum() <= padded_frames(lengths, lw.optimal_edges(lengths, buckets)) <= frames
    assert frames <= len(lengths) * lengths.max()


@pytest.mark.parametrize("by", EDGES)
def test_a_strategy_cuts_at_the_edges_of_its_kind(by):
    lengths = lw.example_lengths(count=500)
    edges = EDGES[by](lengths, 5)
    batching = lw.Batching(order=lw.Bucketed(buckets=5, by=by, pad_to_edge=True), cut=lw.FixedSize(8))
    plan = lw.make_plan(lengths, batching)
    for number in range(len(plan.costs)):
        longest = lengths[plan.batch(number)].max()
        assert plan.padded_lengths[number, 0] == edges[np.searchsorted(edges, longest)]


def test_an_order_of_two_lengths_that_is_no_line_of_bands_goes_by_their_sum():
    lengths = [[9, 1], [1, 2], [5, 6], [2, 3]]
    batching = lw.Batching(order=lw.SemiSorted(0.0), cut=lw.FixedSize(1), deal=lw.InTurn(), arrange=lw.InOrder())
    assert lw.make_plan(lengths, batching).sequences.tolist() == [1, 3, 0, 2]


def test_edges_of_tensors_are_whole_numbers():
    torch = pytest.importorskip("torch")
    assert lw.Bucketed(edges=torch.tensor([100, 500])).edges == (100, 500)
    assert lw.Bucketed(edges=list(torch.tensor([100, 500]))).edges == (100, 500)
    mixed = [torch.tensor([60, 50]), (20, torch.tensor(30))]
    assert lw.Bucketed(edges=mixed).edges == ((20, 30), (60, 50))
    for wrong in (5, [1.5], [[1.5, 2.0]]):
        with pytest.raises(TypeError, match=r"^`edges` must be "):
            lw.Bucketed(edges=torch.tensor(wrong))


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
