"""Sequences of several lengths in bands: a line without jumps, that pads less than sorting by the sum."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.choices.bands import count_bands, line_up


def line_up_by_hand(lengths, bands):
    """The line, the long way: band after band, each divided by itself, and every other one turned."""
    cells = [np.arange(len(lengths))]
    for column, count in zip(lengths.T, [*bands, len(lengths)], strict=True):
        values, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        band = np.arange(len(values))
        if len(values) > count:
            middle = (np.cumsum(counts) - counts / 2) / len(lengths)
            band = np.minimum((middle * count).astype(np.int64), count - 1)
        band, parts = band[inverse.reshape(-1)], []
        for number, cell in enumerate(cells):
            inside = [cell[band[cell] == each] for each in np.unique(band[cell])]
            parts += inside[:: -1 if number % 2 else 1]
        cells = parts
    places = np.empty(len(lengths), np.int64)
    for number, cell in enumerate(cells):
        places[cell] = number + 1
    return places


class BySum:
    """By the sum of both lengths, as sequences were sorted without bands."""

    def __call__(self, sizes, key):
        return lw.Ordered(np.argsort(sizes, kind="stable"))


def pairs_of(count, *, seed=0):
    """Source and target: short texts whose lengths go together, as of a translation."""
    chance = np.random.default_rng(seed)
    source = chance.lognormal(2.5, 0.4, count)
    return np.stack([source, source * chance.lognormal(0.0, 0.25, count)], axis=1).astype(np.int64) + 1


def padding_of(lengths, order, cut, **run):
    return lw.measure(lw.make_plan(lengths, lw.Batching(order=order, cut=cut, deal=lw.Balanced()), **run), lengths)


def test_a_line_by_hand():
    lengths = np.array([[1, 1], [4, 3], [2, 8], [6, 9], [9, 5], [5, 2]])
    assert line_up(lengths, [2]).tolist() == [1, 2, 3, 4, 5, 6]
    assert line_up(lengths, [1]).tolist() == [1, 3, 5, 6, 4, 2]  # by the second length alone
    assert line_up(lengths, [9]).tolist() == [1, 3, 2, 5, 6, 4]  # each first length is a band, every other turned
    of_three = np.array([[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [2, 1, 1], [2, 1, 2], [2, 2, 1], [2, 2, 2]])
    assert line_up(of_three, [2, 2]).tolist() == [1, 2, 4, 3, 8, 7, 5, 6]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("longest", [3, 65_535, 65_536, 2**40])
def test_a_line_is_the_same_by_tables_and_by_sorts(dims, longest, monkeypatch):
    chance = np.random.default_rng(longest)
    for count, bands, counted in itertools.product((1, 700), (1, 7, 256), (2**16, 0)):
        monkeypatch.setattr("lengthwise.choices.bands._COUNTED", counted)  # 0: more is sorted
        lengths = chance.integers(1, longest + 1, (count, dims))
        lengths[chance.random(count) < 0.2] = lengths[0]
        in_turn = [bands, 3, 1][: dims - 1]
        expected = line_up_by_hand(lengths, in_turn)
        for array in (lengths, np.asfortranarray(lengths)):
            assert np.array_equal(line_up(array, in_turn), expected)


@settings(max_examples=50, derandomize=True)
@given(st.integers(2, 4), st.floats(0.1, 1e6), st.data())
def test_any_lengths_have_bands(dims, batches, data):
    edge = st.sampled_from([1, 2, 9, 300, 10**6, 2**40])
    row = st.lists(edge, min_size=dims, max_size=dims)
    lengths = np.array(data.draw(st.lists(row, min_size=1, max_size=40)))
    bands = count_bands(lengths, batches)
    assert len(bands) in (0, dims - 1)
    assert all(1 <= count <= max(len(lengths), batches) for count in bands)


def padding_of_steps(lengths, bands, batches, *, size=32):
    """Padding of random steps of so many batches of `size`, each step sorted in bands; for no bands, by the sum."""
    chance, useful, computed = np.random.default_rng(0), 0, 0
    for _ in range(max(4, 200 // batches)):
        step = lengths[chance.permutation(len(lengths))[: batches * size]]
        key = line_up(step, bands) if bands else step.sum(axis=1)
        padded = step[np.argsort(key, kind="stable")].reshape(batches, size, -1)
        useful, computed = useful + int(step.sum()), computed + size * int(padded.max(axis=1).sum())
    return 1 - useful / computed


def correlated(first, second, between):
    """Pairs whose lengths are log-normal, of two spreads that go together by `between`."""
    shared, apart = np.random.default_rng(1).normal(0, 1, (2, 20_000))
    source = np.exp(4 + first * shared)
    target = np.exp(4 + second * (between * shared + (1 - between**2) ** 0.5 * apart))
    return np.stack([source, target], axis=1).astype(np.int64) + 1


def test_more_sequences_are_sorted_in_more_bands():
    lengths = correlated(0.5, 0.5, 0.7)
    counts = [count_bands(lengths, batches)[0] for batches in (16, 256, 4_096)]
    assert counts == sorted(counts)
    assert counts[2] / counts[1] == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize("spreads", [(0.5, 0.5, 0.0), (0.5, 0.5, 0.9), (0.4, 0.7, 0.3)], ids=str)
def test_the_number_of_bands_pads_hardly_more_than_the_best_one(spreads):
    lengths = correlated(*spreads)
    for batches, slack in ((8, 0.04), (128, 0.02)):
        padding = padding_of_steps(lengths, count_bands(lengths, batches), batches)
        tried = [(), *((count,) for count in (1, 2, 4, 8, 16, 32, len(lengths)))]
        assert padding < slack + min(padding_of_steps(lengths, bands, batches) for bands in tried)


@pytest.mark.parametrize("cut", [lw.FixedSize(32), lw.Budget(2_000)], ids=repr)
def test_sorted_pairs_pad_a_fraction_of_what_sorting_by_the_sum_does(cut):
    lengths = pairs_of(8_000)
    by_sum = padding_of(lengths, BySum(), cut).padding_share
    assert padding_of(lengths, lw.Sorted(), cut).padding_share < 0.4 * by_sum
    evaluation = lw.measure(lw.evaluation_plan(lengths, cut), lengths)
    assert evaluation.padding_share < 0.4 * by_sum
    assert (evaluation.dropped, evaluation.repeated) == (0, 0)


def test_random_steps_of_two_lengths_are_sorted_in_bands():
    lengths = pairs_of(8_000)
    batching = lw.Batching(budget=2_000, order=lw.Shuffled(), deal=lw.RandomSteps())
    plans = [lw.make_plan(lengths, batching, world_size=16, epoch=epoch) for epoch in range(4)]
    measures = lw.measure(plans, lengths)
    assert measures.padding_share < 0.2
    assert measures.randomness > 0.98
    assert measures.straggler_waste < 0.03
    assert measures.step_length_variance == pytest.approx(1.0, abs=0.2)
