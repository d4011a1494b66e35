"""Times: how often epochs take each sequence, by the law of the draw; plans of copies."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning import settle
from lengthwise.planning import times as planning_times
from lengthwise.planning.settle import Recent
from lengthwise.planning.times import name_times, read_times

EPOCHS = [0, 1, 2, 7, 999_999, 10**6, 2**40, 2**64 - 2]
some_times = st.lists(
    st.one_of(st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 1.0, 1 / 3, 2.5, 7.0]), st.floats(0, 4, allow_nan=False)),
    min_size=1,
    max_size=40,
).filter(any)


def draw_copies(times, seed, lengths=None):
    return planning_times.draw_copies(times, np.ones(len(times), np.int64) if lengths is None else lengths, seed)


def exact(draw, number):
    """The times of a sequence as the draw has them, and its phase: fractions without rounding."""
    unit = 2**64
    times = Fraction(int(draw.whole[number])) + Fraction(int(draw.fraction[number]), unit)
    return times, Fraction(int(draw.phases[number]), unit)


@settings(max_examples=40, derandomize=True)
@given(some_times, st.integers(0, 2**64 - 1))
def test_the_draw_is_its_formula_without_rounding_in_every_epoch(times, seed):
    draw = draw_copies(np.array(times), seed)
    for number, asked in enumerate(times):
        own, phase = exact(draw, number)
        assert abs(own - Fraction(asked)) < Fraction(1, 2**64)
        for epoch in EPOCHS:
            expected = floor((epoch + 1) * own + phase) - floor(epoch * own + phase)
            assert draw.take(epoch)[number] == expected
            assert floor(own) <= expected <= ceil(own)


@settings(max_examples=40, derandomize=True)
@given(some_times, st.integers(0, 2**32), st.sampled_from(EPOCHS[:-1]), st.integers(1, 30))
def test_over_epochs_in_a_row_sequences_and_sources_are_exact(times, seed, first, epochs):
    """Each sequence, and all that have the same times together, are taken as often as asked, rounded up or down."""
    draw = draw_copies(np.array(times), seed)
    taken = sum(draw.take(epoch) for epoch in range(first, first + epochs))
    for value in set(times):
        of_value = np.flatnonzero(np.array(times) == value)
        own, _ = exact(draw, of_value[0])
        assert set(taken[of_value].tolist()) <= {floor(epochs * own), ceil(epochs * own)}
        together = len(of_value) * epochs * own
        assert floor(together) <= taken[of_value].sum() <= ceil(together)


def test_seeds_draw_other_phases_and_every_phase_is_as_likely():
    times = np.full(16, 0.5)
    first = np.array([draw_copies(times, seed).take(0) for seed in range(200)])
    assert (first.sum(axis=1) == 8).all()
    assert len({row.tobytes() for row in first}) > 195
    # Each is taken in half of the seeds: 100, with a standard deviation of 7.
    assert (np.abs(first.sum(axis=0) - 100) < 35).all()
    # So are sequences whose times all differ, each of which is a group of its own.
    apart = np.array([draw_copies(0.5 + np.arange(16) / 1_000, seed).take(0) for seed in range(200)])
    assert (np.abs(apart.sum(axis=0) - 100) < 38).all()


@pytest.mark.parametrize("often", [1 / 3, 0.4, 2.5])
def test_epochs_take_the_same_lengths_so_that_few_steps_are_left_over(often):
    """Sequences that are taken without regard to length fill 0.06 to 3.7 % more or less from epoch to epoch."""
    lengths = np.random.default_rng(0).lognormal(5, 0.8, 4_000).astype(int) + 1
    draw = draw_copies(np.full(4_000, often), 3, lengths)
    frames = np.array([draw.take(epoch) @ lengths for epoch in range(20)])
    assert frames.std() / frames.mean() < 0.002 * max(1.0, 0.4 / often**1.5)
    other = draw_copies(np.full(4_000, often), 4, lengths)
    both = np.mean([(draw.take(0) > np.floor(often)) & (other.take(0) > np.floor(often))])
    assert both == pytest.approx((often % 1) ** 2, abs=0.03)  # another seed takes others


def test_one_number_and_every_kind_of_numbers_are_read():
    assert read_times(2, 3).tolist() == [2.0, 2.0, 2.0]
    for kind in (np.float16, np.float32, np.uint8, np.int64, list):
        given_times = [0, 1, 2] if kind is list else np.array([0, 1, 2], kind)
        assert read_times(given_times, 3).tolist() == [0.0, 1.0, 2.0]
    names = [name_times(read_times(each, 2)) for each in ([-0.0, 1], [0, 1], [0, 1.5])]
    assert names[0] == names[1] != names[2]
    assert read_times([], 0).tolist() == []
    assert read_times(2**28, 1).tolist() == [2**28]
    with pytest.raises(ValueError, match=r"^`times` must be at most 268435456 in sum, rounded up, but is 268435457\.0"):
        read_times([2**28 - 0.5, 0.5], 2)
    own = np.array([1.0, 2.0])
    assert not np.shares_memory(read_times(own, 2), own)


def two_sources(large=4_000, small=600):
    """A large source of long sequences, taken 0.4 times, and a small one of short sequences, taken 2.5 times."""
    chance = np.random.default_rng(0)
    lengths = np.concatenate([chance.lognormal(5, 0.5, large), chance.lognormal(3.5, 0.4, small)]).astype(int) + 1
    return lengths, np.repeat([0.4, 2.5], [large, small])


@pytest.mark.parametrize("times", [1, np.ones(500)], ids=["one", "each"])
def test_times_of_one_make_the_batches_of_no_times(times):
    lengths = lw.example_lengths("long-tailed", count=500)
    batching = lw.Batching(budget=20_000, padding=0.1)
    plans = [lw.make_plan(lengths, batching, epoch=3, world_size=2, times=value) for value in (None, times)]
    for name in ("sequences", "offsets", "padded_lengths", "costs", "grid"):
        assert np.array_equal(*(getattr(plan, name) for plan in plans)), name


REQUESTS = {
    "budget": ({"budget": 20_000, "padding": 0.1}, 1, 2),
    "size": ({"cut": lw.FixedSize(16), "padding": 0.1}, 1, 1),
    "ranks": ({"budget": 20_000, "padding": 0.08}, 4, 1),
}


@pytest.mark.parametrize(("asked", "ranks", "dims"), REQUESTS.values(), ids=REQUESTS)
def test_a_padding_is_reached_in_every_epoch_though_it_is_fitted_once(asked, ranks, dims, monkeypatch):
    lengths, times = two_sources()
    spread = np.random.default_rng(1).uniform(0.9, 1.1, len(lengths))
    lengths = lengths if dims == 1 else np.column_stack([lengths, (lengths * spread).astype(int) + 1])
    fitted, fit_noise = [], settle.fit_noise
    monkeypatch.setattr(settle, "fit_noise", lambda *given: fitted.append(1) or fit_noise(*given))
    monkeypatch.setattr(settle, "_remembered", Recent(most=16))
    for epoch in range(4):
        plan = lw.make_plan(lengths, lw.Batching(**asked), epoch=epoch, times=times, world_size=ranks)
        assert lw.measure(plan, lengths).padding_share == pytest.approx(asked["padding"], abs=0.03)
    assert len(fitted) <= 1


def test_a_plan_is_the_same_whichever_seed_was_planned_before(monkeypatch):
    lengths, batching = lw.example_lengths("speech", count=500), lw.Batching(budget=8_000, padding=0.1, deal=lw.Mixed())
    plans = []
    for seeds in ([0, 1], [1]):
        monkeypatch.setattr(settle, "_remembered", Recent(most=16))
        of_seeds = [lw.make_plan(lengths, batching, times=0.5, seed=seed) for seed in seeds]
        plans.append(of_seeds[-1].fingerprint())
    assert plans[0] == plans[1]


@pytest.mark.parametrize("deal", [lw.Balanced(), lw.RandomSteps()], ids=["batches", "steps"])
def test_buckets_have_the_same_edges_in_every_epoch(deal):
    """Few shapes in a run, also where the longest sequence of a bucket is not taken in every epoch."""
    lengths, times = two_sources(200, 30)
    batching = lw.Batching(budget=20_000, order=lw.Bucketed(buckets=5, pad_to_edge=True), deal=deal)
    shapes = lw.batch_shapes(np.repeat(lengths, np.ceil(times).astype(int)), batching)
    assert len(shapes) <= 5
    for epoch in range(6):
        plan = lw.make_plan(lengths, batching, epoch=epoch, times=times, world_size=2)
        assert set(plan.padded_lengths[:, 0].tolist()) <= set(shapes[:, 1].tolist())
        rows = dict(shapes[:, ::-1].tolist())
        assert all(size <= rows[n] for size, (n,) in zip(plan.batch_sizes, plan.padded_lengths.tolist(), strict=True))


@pytest.mark.parametrize("order", [None, lw.Bucketed(buckets=2)], ids=["padding", "buckets"])
def test_an_epoch_may_take_nothing(order):
    """Two sequences are taken every fourth time: most epochs take none, the first among them."""
    batching = lw.Batching(cut=lw.FixedSize(2), **({"padding": 0.1} if order is None else {"order": order}))
    seed = next(seed for seed in range(99) if not draw_copies(np.array([0.25, 0.24]), seed).take(0).any())
    counts = []
    for epoch in range(8):
        plan = lw.make_plan([5, 9], batching, seed=seed, epoch=epoch, times=[0.25, 0.24], world_size=2)
        assert (plan.steps > 0) == (plan.count > 0)
        counts.append(plan.count)
    assert counts[0] == 0
    assert 3 <= sum(counts) <= 4


def test_an_order_is_fitted_though_the_first_epoch_has_giants_only():
    lengths, times = np.array([10, 20, 30, 900]), np.array([0.3, 0.31, 0.32, 1.0])
    batching = lw.Batching(cut=lw.Budget(100, oversize="alone"), padding=0.1)
    seed = next(seed for seed in range(999) if draw_copies(times, seed).take(0).tolist() == [0, 0, 0, 1])
    taken = [lw.make_plan(lengths, batching, seed=seed, epoch=epoch, times=times).count for epoch in range(10)]
    assert sum(taken) in range(16, 23)


def test_a_sequence_that_no_epoch_takes_has_no_bucket():
    batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Bucketed(buckets=2, pad_to_edge=True))
    plan = lw.make_plan([5, 6, 7, 8, 500], batching, times=[1, 1, 1, 1, 0])
    assert sorted(plan.padded_lengths[:, 0].tolist()) == [6, 8]


def test_a_giant_is_named_by_its_number_in_the_data_set():
    lengths, times = np.array([10, 20, 900, 30]), np.array([3, 0, 1, 2])
    with pytest.raises(lw.OversizeError, match=r"at sequence 2\. ") as caught:
        lw.make_plan(lengths, lw.Batching(budget=100), times=times)
    assert caught.value.sequence == 2
    with pytest.raises(lw.OversizeError, match=r"at sequence 2, frames \d+ to \d+\. "):
        lw.make_plan(lengths, lw.Batching(budget=100, chunks=lw.Chunks(400)), times=times)


def test_losses_and_measures_are_of_the_sequences_of_the_data_set():
    lengths, times = np.array([4, 8, 6]), np.array([1, 3, 0])
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(2)), times=times, micro_batches=2)
    sums = np.array([lengths[batch].sum() for batch in plan.batches()])
    assert lw.loss_scales(plan, lengths).reshape(-1) == pytest.approx(sums / 28)
    with pytest.raises(ValueError, match=r"`weights` must be of shape \[3\], but is \(4,\)"):
        lw.loss_scales(plan, np.ones(4))
    whole = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(4)), times=times)
    assert lw.measure(whole, lengths).padding_share == pytest.approx(1 - (4 + 3 * 8) / 32)
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        lw.measure(plan, lengths[plan.copies])
