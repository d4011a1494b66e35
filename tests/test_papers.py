"""What the papers say, worked by hand. The recipes have the numbers of their tables."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise._random import Key


def ordered(lengths, order):
    """The sequences in the order that an order gives."""
    batching = lw.Batching(order=order, cut=lw.FixedSize(1), deal=lw.InTurn(), arrange=lw.InOrder())
    return lw.make_plan(lengths, batching).sequences


def test_ge_semi_sorting_moves_a_sequence_past_those_at_most_the_noise_longer():
    lengths = lw.example_lengths("speech", count=5_000)
    for factor in (0.0, 0.05, 0.3):
        noise = factor * (lengths.max() - lengths.min())
        row = lengths[ordered(lengths, lw.SemiSorted(randomization_factor=factor))]
        overtaken = (np.maximum.accumulate(row) - row).max()
        assert 0.8 * noise <= overtaken <= noise


def test_ge_buckets_hold_neighbours_in_random_order():
    lengths = np.random.default_rng(0).permutation(np.arange(1, 101))
    row = lengths[ordered(lengths, lw.Bucketed(size=25))].reshape(4, 25)
    assert [sorted(bucket) for bucket in row.tolist()] == [list(range(at, at + 25)) for at in (1, 26, 51, 76)]
    uneven = lengths[ordered(lengths, lw.Bucketed(size=40))]
    assert sorted(uneven[:20]) == list(range(1, 21)), "the bucket of the shortest is the smaller one"
    assert sorted(uneven[20:60]) == list(range(21, 61))
    assert all(bucket != sorted(bucket) for bucket in row.tolist())


def test_doetsch_alternated_sorting_worked_by_hand():
    lengths = np.array([70, 10, 40, 20, 80, 30, 60, 50])
    # The shuffle of seed 0, epoch 0 puts the sequences in this order, so that the bins of two bins hold these lengths:
    shuffled = [6, 2, 0, 3, 1, 4, 7, 5]
    assert Key().permutation(8).tolist() == shuffled
    first, second = sorted(lengths[shuffled[:4]]), sorted(lengths[shuffled[4:]])
    assert lengths[ordered(lengths, lw.AlternatedSort(bins=2))].tolist() == first + second[::-1]
    # Three bins of 3, 3 and 2: up, down, up.
    bins = [sorted(lengths[shuffled[a:b]]) for a, b in ((0, 3), (3, 6), (6, 8))]
    assert lengths[ordered(lengths, lw.AlternatedSort(bins=3))].tolist() == bins[0] + bins[1][::-1] + bins[2]
    assert lengths[ordered(lengths, lw.AlternatedSort(bins=1))].tolist() == sorted(lengths)
    assert ordered(lengths, lw.AlternatedSort(bins=8)).tolist() == shuffled
    assert ordered(lengths, lw.AlternatedSort(bins=99)).tolist() == shuffled


def test_doetsch_two_sequences_share_a_bin_as_often_as_they_should():
    together, sizes = 0, np.arange(1.0, 9.0)
    for epoch in range(2_000):
        row = lw.AlternatedSort(bins=2)(sizes, Key(epoch=epoch, stage="order")).sequences.tolist()
        together += (row.index(0) < 4) == (row.index(1) < 4)
    # (n/N - 1) / (n - 1) = 3/7, and not the 1/2 of the paper's formula.
    assert together / 2_000 == pytest.approx(3 / 7, abs=5 * np.sqrt(3 / 7 * 4 / 7 / 2_000))


def test_doetsch_chunks_worked_by_hand():
    spans = [[0, 0, 50], [0, 25, 75], [0, 50, 100], [0, 75, 120], [1, 0, 50], [2, 0, 50], [2, 25, 51]]
    assert lw.Chunks(50, step=25)(np.array([120, 50, 51])).tolist() == spans
    assert lw.Chunks(50)(np.array([120])).tolist() == [[0, 0, 50], [0, 50, 100], [0, 100, 120]]
    assert lw.Chunks(120)(np.array([120])).tolist() == [[0, 0, 120]]
    longest = 2**63 - 1
    halves = [[0, 0, 2**62], [0, 2**62, longest]]
    assert lw.Chunks(2**62)(np.array([longest])).tolist() == halves
    plan = lw.make_plan([120, 50, 51], lw.Batching(cut=lw.Budget(100), chunks=lw.Chunks(50, step=25)))
    assert plan.count == 7
    taken = sorted(span for batch in plan.batches() for span in batch.tolist())
    assert taken == spans
    assert plan.batch_sizes.max() == 2


def test_doetsch_mxnet_drops_only_when_asked():
    def mxnet(*edges, drop=False):
        order = lw.Bucketed(edges=edges, pad_to_edge=True, longer="drop" if drop else "error")
        return lw.Batching(order=order, cut=lw.FixedSize(2, drop_incomplete=drop))

    lengths = [1, 2, 3, 4, 5, 11, 12, 13, 25]
    with pytest.raises(ValueError, match="`edges` must be such that a bucket holds the longest sequence, 25"):
        lw.make_plan(lengths, mxnet(5, 20))
    kept = lw.make_plan(lengths, mxnet(5, 20, 30))
    assert kept.dropped().size == 0
    assert sorted(kept.padded_lengths[:, 0].tolist()) == [5, 5, 5, 20, 20, 30]
    assert sorted(kept.batch_sizes.tolist()) == [1, 1, 1, 2, 2, 2]
    # Of the five up to 5 one is left over, of the three up to 20 one, and 25 is longer than the last bucket.
    dropping = lw.make_plan(lengths, mxnet(5, 20, drop=True))
    assert dropping.padded_lengths[:, 0].tolist().count(5) == 2
    assert dropping.padded_lengths[:, 0].tolist().count(20) == 1
    assert dropping.batch_sizes.tolist() == [2, 2, 2]
    assert len(dropping.dropped()) == 3
    assert dropping.dropped()[-1] == 8


def test_khomenko_buckets_come_shortest_first_and_their_steps_at_random():
    lengths = lw.example_lengths(count=1_000)
    batching = lw.Batching(order=lw.Bucketed(buckets=5), cut=lw.FixedSize(8), arrange=lw.ShortestFirst())
    edges = lw.optimal_edges(lengths, 5)
    plan = lw.make_plan(lengths, batching)
    buckets = np.searchsorted(edges, plan.padded_lengths[plan.grid[:, 0, 0], 0])
    assert (np.diff(buckets) >= 0).all()
    assert (np.diff(plan.padded_lengths[plan.grid[buckets == 0, 0, 0], 0]) < 0).any()


def test_khomenko_portions_are_dealt_anew_every_epoch():
    lengths = lw.example_lengths(count=1_001)
    batching = lw.Batching(order=lw.Bucketed(buckets=4), cut=lw.FixedSize(8), deal=lw.Portions())
    portions = []
    for epoch in range(3):
        plan = lw.make_plan(lengths, batching, epoch=epoch, world_size=4)
        ranks = [sorted(np.concatenate(list(plan.batches(rank))).tolist()) for rank in range(4)]
        assert sorted(map(len, ranks)) == [250, 250, 250, 251]
        assert sorted(number for rank in ranks for number in rank) == list(range(1_001))
        portions.append(frozenset(map(tuple, ranks)))
    assert len(set(portions)) == 3
