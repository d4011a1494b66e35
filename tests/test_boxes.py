"""Buckets of sequences of several lengths: which bucket holds what, and how near the search comes to the optimum."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _kernels
from lengthwise.choices.boxes import cross_edges, sort_rows
from lengthwise.choices.buckets import EDGES, find_bucket

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
SENTENCES = DATA / "lengths" / "multi30k_train_en_de_tokens.npy"
NEEDS_SENTENCES = pytest.mark.skipif(not SENTENCES.exists(), reason=f"no lengths at {SENTENCES}; set LENGTHWISE_DATA")

MOST_ABOVE = 0.03  # of the optimum's frames
FOUND = 0.9  # of the sets

rows = st.integers(2, 3).flatmap(
    lambda dims: st.lists(st.lists(st.integers(1, 9), min_size=dims, max_size=dims), min_size=1, max_size=12)
)
arrays = rows.map(lambda given: np.array(given, np.int64))


def least_frames(lengths, buckets):
    """The fewest padded frames of any rows: all sets of rows are tried, of the edges that sequences have."""
    corners = np.array(list(itertools.product(*(np.unique(column) for column in lengths.T))))
    holds = (lengths[:, None, :] <= corners).all(axis=2)
    frames = np.where(holds, corners.sum(axis=1), 2**40)
    few = min(buckets, len(corners))
    chosen = np.array(list(itertools.combinations(range(len(corners)), few)))
    parts = np.array_split(chosen, 1 + len(chosen) // 20_000)
    return min(int(frames[:, part].min(axis=2).sum(axis=0).min()) for part in parts)


@pytest.mark.parametrize(
    ("count", "longest", "dims", "most"), [(12, 7, 2, 4), (9, 30, 2, 3), (40, 6, 2, 4), (12, 4, 3, 3), (200, 5, 2, 3)]
)
def test_the_search_is_near_the_optimum_of_sets_small_enough_to_try_all_rows(count, longest, dims, most):
    chance = np.random.default_rng(0)
    above = []
    for _ in range(60):
        lengths, buckets = chance.integers(1, longest + 1, (count, dims)), int(chance.integers(2, most + 1))
        above.append(lw.padded_frames(lengths, lw.optimal_edges(lengths, buckets)) / least_frames(lengths, buckets) - 1)
    assert min(above) >= 0
    assert max(above) <= MOST_ABOVE
    assert np.mean(np.array(above) == 0) >= FOUND


def test_edges_worked_by_hand():
    # (2, 9) and (9, 2) share no bucket of two: (2, 9) and (9, 2) cost 22 apart, and (9, 9) twice 36.
    assert lw.optimal_edges([[2, 9], [9, 2]], 2).tolist() == [[2, 9], [9, 2]]
    assert lw.optimal_edges([[2, 9], [9, 2]], 1).tolist() == [[9, 9]]
    # With (1, 1) three times: (1, 1) and (9, 9) cost 6 + 36, (2, 9) and (9, 2) 3 x 11 + 22.
    assert lw.optimal_edges([[2, 9], [9, 2], [1, 1], [1, 1], [1, 1]], 2).tolist() == [[1, 1], [9, 9]]
    assert lw.optimal_edges([[3, 4], [3, 4]], 5).tolist() == [[3, 4]]
    assert lw.optimal_edges(np.array([[3], [4], [9]]), 2).tolist() == [[4], [9]]


@pytest.mark.parametrize("by", ["uniform", "quantile", "exponential"])
def test_other_edges_are_the_cells_of_a_grid_that_hold_a_sequence(by):
    lengths = np.array([[1, 1], [4, 3], [2, 8], [6, 9], [9, 1], [9, 3]])
    first, second = (EDGES[by](column, 2) for column in lengths.T)
    cells = {(min(first[first >= one]), min(second[second >= other])) for one, other in lengths.tolist()}
    assert {tuple(row) for row in EDGES[by](lengths, 4).tolist()} == cells


def test_a_grid_of_unequal_parts_worked_by_hand():
    # The first lengths are all alike, so that all three edges are of the second.
    assert lw.uniform_edges([[7, 1], [7, 4], [7, 7]], 3).tolist() == [[7, 3], [7, 5], [7, 7]]


@pytest.mark.parametrize("by", EDGES)
@settings(max_examples=50, derandomize=True)
@given(lengths=arrays, buckets=st.integers(1, 9))
def test_every_sequence_is_held_by_at_most_as_many_buckets_as_asked(by, lengths, buckets):
    edges = EDGES[by](lengths, buckets)
    assert 1 <= len(edges) <= buckets
    assert edges.tolist() == sort_rows(edges).tolist()
    bucket = find_bucket(lengths, edges)
    assert bucket.max() < len(edges)
    frames = lw.padded_frames(lengths, edges)
    assert frames == edges.sum(axis=1)[bucket].sum()
    assert lengths.sum() <= frames <= len(lengths) * lengths.max(axis=0).sum()
    if by == "optimal":
        assert sorted(set(bucket.tolist())) == list(range(len(edges))), "no bucket is empty"
        for number, row in enumerate(edges.tolist()):
            assert lengths[bucket == number].max(axis=0).tolist() == row, "no edge is longer than needed"
    if by == "optimal" and buckets >= len(np.unique(lengths, axis=0)):
        assert frames == lengths.sum()
    if buckets == 1:
        assert edges.tolist() == [lengths.max(axis=0).tolist()]


@settings(max_examples=50, derandomize=True)
@given(arrays, st.data())
def test_a_sequence_is_in_the_bucket_that_holds_it_with_the_fewest_frames(lengths, data):
    row = st.lists(st.integers(1, 9), min_size=lengths.shape[1], max_size=lengths.shape[1])
    edges = sort_rows(np.array(data.draw(st.lists(row, min_size=1, max_size=5))))
    again = np.empty(len(lengths), np.int64)
    _kernels.find_boxes.py_func(lengths, edges, again)
    assert again.tolist() == find_bucket(lengths, edges).tolist() == find_bucket(lengths - 0.5, edges).tolist()
    for sizes, bucket in zip(lengths.tolist(), find_bucket(lengths, edges).tolist(), strict=True):
        holding = [b for b, row in enumerate(edges.tolist()) if all(s <= e for s, e in zip(sizes, row, strict=True))]
        assert bucket == min(holding, key=lambda b: (sum(edges[b]), edges[b].tolist()), default=len(edges))


@settings(max_examples=30, derandomize=True)
@given(arrays, st.integers(1, 4), st.data())
def test_a_box_is_placed_where_all_pairs_of_edges_say(lengths, buckets, data):
    cells, counts = np.unique(lengths, axis=0, return_counts=True)
    boxes = np.concatenate([cells.max(axis=0)[None], cells[data.draw(st.permutations(range(len(cells))))][:buckets]])
    sizes = np.array([len(np.unique(column)) for column in cells.T])
    levels = np.zeros((len(sizes), sizes.max()), np.int64)
    for dim, column in enumerate(cells.T):
        levels[dim, : sizes[dim]] = np.unique(column)
    held = np.empty(len(cells), np.int64)
    box = data.draw(st.integers(0, len(boxes) - 1))
    _kernels.hold_cells(cells, boxes, box, held)
    found = _kernels.place_box(cells, counts, held, boxes[box], 0, 1, levels, sizes)
    assert found == _kernels.place_box.py_func(cells, counts, held, boxes[box], 0, 1, levels, sizes)
    tried = []
    for first, second in itertools.product(levels[0, : sizes[0]], levels[1, : sizes[1]]):
        moved = boxes.copy()
        moved[box, :2] = first, second
        fits = (cells[:, None, :] <= moved).all(axis=2)
        if fits.any(axis=1).all():
            frames = np.where(fits, moved.sum(axis=1), 2**40).min(axis=1)
            tried.append((int(counts @ frames), int(first), int(second)))
    assert found == min(tried) if tried else found[0] == 2**62
    before = boxes.copy()
    assert _kernels.move_boxes(cells, counts, levels, sizes, boxes) == _kernels.move_boxes.py_func(
        cells, counts, levels, sizes, before
    )
    assert boxes.tolist() == before.tolist()


@pytest.mark.parametrize("buckets", [12, 100, 200])
def test_more_than_64_values_of_a_length_are_rounded_up_and_pad_no_more_than_a_grid(buckets):
    lengths = np.random.default_rng(0).integers(1, 3_000, (5_000, 2))
    edges = lw.optimal_edges(lengths, buckets)
    bucket = find_bucket(lengths, edges)
    assert len(edges) <= buckets
    assert bucket.max() == len(edges) - 1
    grid = cross_edges(lengths, buckets, lw.optimal_edges)
    assert lw.padded_frames(lengths, edges) <= lw.padded_frames(lengths, grid)


def test_as_many_buckets_as_sequences_pad_nothing():
    lengths = np.random.default_rng(0).integers(1, 60, (4_000, 2))
    assert lw.padded_frames(lengths, lw.optimal_edges(lengths, 10**15)) == lengths.sum()


@NEEDS_SENTENCES
@pytest.mark.parametrize(("buckets", "padding", "grid"), [(4, 0.209, 0.364), (8, 0.116, 0.272), (16, 0.071, 0.164)])
def test_buckets_of_real_sentences_pad_what_their_page_says(buckets, padding, grid):
    lengths = np.load(SENTENCES)
    found = lw.padded_frames(lengths, lw.optimal_edges(lengths, buckets))
    assert 1 - lengths.sum() / found == pytest.approx(padding, abs=5e-4)
    crossed = cross_edges(lengths.astype(np.int64), buckets, lw.optimal_edges)
    assert 1 - lengths.sum() / lw.padded_frames(lengths, crossed) == pytest.approx(grid, abs=5e-4)
