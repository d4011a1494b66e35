"""The length share against sums over all pairs, and against the variance of real steps."""

import re

import numpy as np
import pytest

import lengthwise as lw
from lengthwise_recipes.length_share.share import LengthShare

PARAMETERS = 40


def draw(count, strength, *, kinds=None, seed=0):
    """Lengths, and gradients of which a part of size `strength` goes with the length; their mean is not 0."""
    numbers = np.random.default_rng(seed)
    lengths = numbers.integers(20, 400, count) if kinds is None else numbers.choice(kinds, count)
    towards, common = numbers.normal(size=(2, PARAMETERS)) / np.sqrt(PARAMETERS)
    scaled = (lengths - lengths.mean()) / lengths.std()
    own = numbers.normal(size=(count, PARAMETERS)) / np.sqrt(PARAMETERS)
    return lengths, own + strength * scaled[:, None] * towards + 0.3 * common


def residuals(gradients, weights=None):
    weights = np.ones(len(gradients)) if weights is None else weights / weights.mean()
    return weights[:, None] * (gradients - np.average(gradients, axis=0, weights=weights)), weights


def step_variance(plans, gradients, weights=None):
    """The mean of |step's weighted mean gradient - that of all|^2, by hand."""
    found = []
    own, weights = residuals(gradients, weights)
    for plan in plans:
        for step in range(plan.steps):
            numbers = plan.grid[step][plan.first_taken[step]]
            members = np.concatenate([plan.batch(number) for number in numbers])
            found.append(np.square(own[members].sum(axis=0) / weights[members].sum()).sum())
    return float(np.mean(found))


def test_the_share_is_the_mean_over_pairs_of_one_length():
    lengths, gradients = draw(160, 0.5, kinds=[30, 60, 90])
    share = LengthShare.of(gradients, np.arange(160), lengths)

    def mean_product(left, right):
        pairs = [a @ b for i, a in left for j, b in right if i != j]
        return np.mean(pairs)

    kinds = [[(number, gradients[number]) for number in np.flatnonzero(lengths == kind)] for kind in (30, 60, 90)]
    masses = np.array([len(kind) for kind in kinds]) / 160
    means = np.array([[mean_product(left, right) for right in kinds] for left in kinds])
    centred = (np.eye(3) - np.outer(np.ones(3), masses)) @ means @ (np.eye(3) - np.outer(np.ones(3), masses)).T
    between = masses @ np.diag(centred)
    within = sum(
        mass * np.var([gradient for _, gradient in kind], axis=0, ddof=1).sum()
        for mass, kind in zip(masses, kinds, strict=True)
    )
    assert len(np.unique(share.bins)) == 3
    assert share.share == pytest.approx(between / (between + within), rel=1e-9)
    assert share.noise_scale == pytest.approx((between + within) / (masses @ means @ masses), rel=1e-9)


@pytest.mark.parametrize(("strength", "weighted"), [(0.0, False), (0.1, True), (0.3, False), (1.0, True)])
def test_what_a_plan_is_worth_is_what_its_steps_show(strength, weighted):
    lengths, gradients = draw(2_000, strength)
    weights = lengths.astype(float) if weighted else None
    share = LengthShare.of(gradients, np.arange(2_000), lengths, weights=weights)
    for world in ({"world_size": 1}, {"world_size": 2, "micro_batches": 2}):
        random = lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled(), deal=lw.Mixed())
        chance = [lw.make_plan(lengths, random, seed=1, epoch=epoch, **world) for epoch in range(24)]
        by_chance = step_variance(chance, gradients, weights)
        for order in (lw.Sorted(), lw.MaxEntropy(padding=0.1), lw.Shuffled()):
            batching = lw.Batching(cut=lw.FixedSize(16), order=order)
            plans = [lw.make_plan(lengths, batching, epoch=epoch, **world) for epoch in range(12)]
            shown = step_variance(plans, gradients, weights) / by_chance
            # 750 random steps of one direction show their own variance to about 5 %.
            assert share.measure(plans).variance_ratio == pytest.approx(shown, rel=0.1), (order, world)


def test_a_sample_tells_the_share_without_bias_and_how_far_to_trust_it():
    lengths, gradients = draw(4_000, 0.2)
    truth = LengthShare.of(gradients[:1_500], np.arange(1_500), lengths).share
    numbers = np.random.default_rng(1)
    found = []
    for _ in range(40):
        sampled = numbers.permutation(4_000)[:256]
        found.append(LengthShare.of(gradients[sampled], sampled, lengths))
    shares = np.array([each.share for each in found])
    # The truth itself is measured on 1,500 of 4,000.
    assert abs(shares.mean() - truth) < 4 * shares.std() / np.sqrt(len(found))
    said = np.mean([each.standard_error for each in found])
    assert 0.7 * shares.std() < said < 1.7 * shares.std()


def test_without_length_in_them_gradients_of_many_parameters_have_no_share():
    # The square of a mean of 16 gradients is a sixteenth of their spread: a share of 6 % where none is.
    lengths, gradients = draw(512, 0.0)
    share = LengthShare.of(gradients, np.arange(512), lengths)
    assert abs(share.share) < 3 * share.standard_error < 0.02


def test_two_lengths_tell_what_neither_sum_shows():
    numbers = np.random.default_rng(0)
    first = numbers.integers(10, 100, 2_000)
    pairs = np.stack([first, 110 - first], axis=1)  # every sum is 110
    gradients = numbers.normal(size=(2_000, PARAMETERS)) + 5 * (first > 50)[:, None]
    share = LengthShare.of(gradients, np.arange(2_000), pairs)
    assert share.share > 0.7
    plan = lw.make_plan(pairs, lw.Batching(cut=lw.FixedSize(20), order=lw.Sorted()))
    assert share.measure(plan).variance_ratio > 10


def test_a_batch_that_is_taken_again_does_not_count():
    lengths, gradients = draw(40, 0.5)
    share = LengthShare.of(gradients, np.arange(40), lengths)
    batching = lw.Batching(cut=lw.FixedSize(10), order=lw.Sorted(), deal=lw.InTurn(tail="repeat"))
    plan = lw.make_plan(lengths, batching, world_size=3)  # 4 batches in 2 steps of 3
    assert len(plan.repeated())
    noise = share.measure(plan)
    assert noise.effective_size * noise.variance_ratio == pytest.approx(20)


@pytest.mark.parametrize("power", [-700, 700])
def test_the_unit_of_the_gradients_changes_nothing(power):
    lengths, gradients = draw(64, 0.5)
    found = [LengthShare.of(each, np.arange(64), lengths) for each in (gradients, np.ldexp(gradients, power))]
    assert found[0].share == found[1].share
    assert found[0].noise_scale == found[1].noise_scale


def test_sequences_without_weight_change_nothing():
    lengths, gradients = draw(400, 0.5)
    weights = np.ones(400)
    weights[::4] = 0
    loud = gradients.copy()
    loud[::4] *= 1_000
    found = [LengthShare.of(each, np.arange(400), lengths, weights=weights).share for each in (gradients, loud)]
    assert found[0] == pytest.approx(found[1])


def test_a_share_holds_for_all_epochs_and_says_so_of_each():
    lengths, gradients = draw(400, 0.3)
    share = LengthShare.of(gradients, np.arange(400), lengths)
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.Sorted())
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(3)]
    assert share.measure(plans).variance_ratio == pytest.approx(share.measure(plans[0]).variance_ratio, rel=0.05)
    assert share.measure(plans[0]) == share.measure([plans[0]])


LENGTHS, GRADIENTS = draw(64, 0.0)
ALL = np.arange(64)
SHARE = LengthShare.of(GRADIENTS, ALL, LENGTHS)
BATCHING = lw.Batching(cut=lw.FixedSize(8))
BROKEN = GRADIENTS.copy()
BROKEN[3, 1] = np.nan
VALUES = {
    "few": (
        lambda: LengthShare.of(GRADIENTS[:9], ALL[:9], LENGTHS),
        "`sampled` must be at least 32 sequences, but is 9. Measure more gradients: 512 show a share of 1 %.",
    ),
    "outside": (
        lambda: LengthShare.of(GRADIENTS, ALL + 1, LENGTHS),
        "`sampled` must be of sequence numbers from 0 to 63, but is 64. Give the number of the sequence of each "
        "gradient.",
    ),
    "twice": (
        lambda: LengthShare.of(GRADIENTS, ALL // 2, LENGTHS),
        "`sampled` must be different sequences, but is '0 twice'. Give each sequence once.",
    ),
    "shape": (
        lambda: LengthShare.of(GRADIENTS[:40], ALL, LENGTHS),
        "`gradients` must be of shape [64, parameters], but is (40, 40). Give one row for each sequence of `sampled`.",
    ),
    "not finite": (
        lambda: LengthShare.of(BROKEN, ALL, LENGTHS),
        "`gradients` must be finite, but is nan at row 3. Leave this sequence out.",
    ),
    "alike": (
        lambda: LengthShare.of(np.ones((64, 3)), ALL, LENGTHS),
        "`gradients` must be different from each other, but is 'the same'. Measure at weights where the loss of some "
        "sequence can fall.",
    ),
    "alike but for rounding": (
        lambda: LengthShare.of(np.full((64, 3), 0.1), ALL, LENGTHS),
        "`gradients` must be different from each other, but is 'the same'. Measure at weights where the loss of some "
        "sequence can fall.",
    ),
    "all in one": (
        lambda: LengthShare.of(GRADIENTS * (ALL == 5)[:, None], ALL, LENGTHS),
        "`gradients` must be above 0 for more of the sample, but is '0 for nearly all'. Sample more sequences, with "
        "weights above 0 and a loss that can fall.",
    ),
    "weights": (
        lambda: LengthShare.of(GRADIENTS, ALL, LENGTHS, weights=[1.0]),
        "`weights` must be of shape [64], but is (1,). Give one weight for each sequence.",
    ),
    "no weight": (
        lambda: LengthShare.of(GRADIENTS, ALL, LENGTHS, weights=np.zeros(64)),
        "`weights` must be above 0 for some sequence, but is 0.0. Leave them out to count each sequence as 1.",
    ),
    "other lengths": (
        lambda: SHARE.measure(lw.make_plan(LENGTHS + 1, BATCHING)),
        f"`plan` must be for the lengths of the share, of fingerprint {lw.fingerprint(LENGTHS)}, but is "
        f"'{lw.fingerprint(LENGTHS + 1)}'. Plan for the same lengths.",
    ),
    "copies": (
        lambda: SHARE.measure(lw.make_plan(LENGTHS, BATCHING, times=2)),
        "`plan` must be of each sequence once, but is 'of copies'. Measure the share, and plan, without times.",
    ),
    "chunks": (
        lambda: SHARE.measure(lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8), chunks=lw.Chunks(50)))),
        "`plan` must be of whole sequences, but is 'chunks'. Measure the share, and plan, without chunks.",
    ),
    "no plan": (
        lambda: SHARE.measure([]),
        "`plans` must be one plan or more, but is []. Give a plan.",
    ),
}


@pytest.mark.parametrize(("call", "message"), VALUES.values(), ids=VALUES)
def test_what_cannot_be_measured_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_other_things_than_numbers_and_plans_are_refused():
    for sampled in (ALL + 0.0, ALL[:, None]):
        with pytest.raises(TypeError, match=r"^`sampled` must be a list of whole numbers, but is "):
            LengthShare.of(GRADIENTS, sampled, LENGTHS)
    with pytest.raises(TypeError, match=r"^`plan` must be a (lengthwise\.)?Plan, but is "):
        SHARE.measure(["plan"])


def test_a_share_is_shown_in_a_line():
    assert re.fullmatch(
        r"LengthShare\(-?\d+\.\d% ± \d+\.\d%, noise scale \S+ sequences, measured on 64 of 64 sequences\)", repr(SHARE)
    )
