"""`MaxEntropy(mixing=...)`: the least padding at which plans mix what was asked."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning.joint import mixing_of_batches

SPEECH = lw.example_lengths("speech", count=6_000)
TAILED = lw.example_lengths(count=6_000)
PAIRS = np.random.default_rng(0).integers(10, 200, (4_000, 2))
FIXED = lw.FixedSize(16)


def asked(mixing, *, cut=FIXED, **verbs):
    return lw.Batching(cut=cut, order=lw.MaxEntropy(mixing=mixing), **verbs)


def measured(lengths, batching, *, epochs=10, **run):
    """The mean padding and mixing of single epochs."""
    found = [lw.measure(lw.make_plan(lengths, batching, epoch=epoch, **run), lengths) for epoch in range(epochs)]
    return tuple(np.mean([(each.padding_share, each.mixing) for each in found], axis=0))


def told(lengths, batching, **run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.make_plan(lengths, batching, **run)
    return caught


@pytest.mark.parametrize("mixing", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("lengths", [SPEECH, TAILED, PAIRS], ids=["speech", "tailed", "pairs"])
def test_plans_mix_what_was_asked_and_hardly_more(lengths, mixing):
    found = measured(lengths, asked(mixing))[1]
    assert mixing - 0.005 < found < mixing + 0.015


@pytest.mark.parametrize("cut", [FIXED, lw.Budget(8_000)], ids=repr)
def test_it_is_the_other_end_of_the_padding(cut):
    for padding in (0.05, 0.15, 0.25):
        of_padding = lw.Batching(cut=cut, order=lw.MaxEntropy(padding=padding), deal=lw.Balanced())
        pads, mixes = measured(SPEECH, of_padding)
        again = measured(SPEECH, asked(mixes, cut=cut, deal=lw.Balanced()))
        assert again == pytest.approx((pads, mixes), abs=0.01)


def test_the_padding_is_near_the_limit_in_closed_form():
    """For lengths that fall below a constant by an exponential the limit is mixing = D / D of random batches."""
    chance = np.random.default_rng(1)
    fall = np.round(chance.exponential(400.0, 60_000)).astype(np.int64)
    lengths = 10_000 - np.minimum(fall, 9_000)
    for mixing in (0.3, 0.6):
        plan = lw.make_plan(lengths, asked(mixing, cut=lw.FixedSize(100)))
        padded = np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) - lengths[plan.sequences]
        hidden = 2.5 / lw.measure(plan, lengths).mixing_bins  # by which bins may show too much
        assert mixing - hidden < padded.mean() / 400.0 < 1.1 * mixing


@pytest.mark.parametrize("world", [{"world_size": 40}, {"world_size": 8, "micro_batches": 8}])
def test_few_steps_mix_what_was_asked(world):
    batching = asked(0.4, cut=lw.Budget(20_000))
    assert measured(SPEECH[:600], batching, epochs=30, **world)[1] == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("ranks", [2, 8])
def test_portions_mix_it_together(ranks):
    batching = asked(0.4, deal=lw.Portions())
    assert measured(SPEECH, batching, world_size=ranks)[1] == pytest.approx(0.4, abs=0.015)


def test_more_than_random_batches_mix_is_said_once():
    batching = asked(0.999)
    (first,) = told(SPEECH, batching)
    random = measured(SPEECH, lw.Batching(cut=FIXED, order=lw.Shuffled()))[1]
    assert str(first.message).startswith("`mixing` must be within 0.02 of what was asked, 0.999, but is 0.")
    assert str(first.message).endswith(" here, and nothing mixes more: make the batches larger, or ask for less.")
    assert float(str(first.message).split("but is ")[1][:5]) == pytest.approx(random, abs=0.01)
    assert first.filename == __file__
    assert not told(SPEECH, batching, epoch=1)
    plan = lw.make_plan(SPEECH, batching)
    assert np.array_equal(plan.sequences, lw.make_plan(SPEECH, lw.Batching(cut=FIXED, order=lw.Shuffled())).sequences)


def test_less_than_sorted_batches_mix_is_sorted():
    lengths = SPEECH[:200]  # of 5 bins, in which sorted batches seem to mix 0.2
    (said,) = told(lengths, asked(0.05))
    assert str(said.message).startswith("`mixing` must be within 0.02 of what was asked, 0.05, but is 0.2")
    plans = [lw.make_plan(lengths, lw.Batching(cut=FIXED, order=order)) for order in (asked(0.05).order, lw.Sorted())]
    assert measured(lengths, asked(0.05))[0] == pytest.approx(lw.measure(plans[1], lengths).padding_share, abs=1e-3)


@pytest.mark.filterwarnings("ignore:`mixing` must be within")  # few sequences mix by chance alone
@pytest.mark.parametrize("lengths", [[], [7], [3, 9], [5] * 50, [1] * 20 + [900]])
def test_the_smallest_sets_are_planned(lengths):
    for cut in (lw.FixedSize(1), lw.FixedSize(4), lw.Budget(2_000), lw.Budget(100, oversize="alone")):
        for mixing in (0.0, 0.5, 1.0):
            plan = lw.make_plan(lengths, asked(mixing, cut=cut), world_size=3)
            assert sorted(set(plan.sequences.tolist())) == list(range(len(lengths)))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=200), st.integers(1, 9), st.booleans())
@settings(max_examples=30, derandomize=True)
def test_trials_measure_what_measure_does(lengths, size, pairs):
    lengths = np.array([lengths, lengths[::-1]]).T if pairs else np.array(lengths)
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(size), order=lw.Shuffled()))
    own = lengths.sum(axis=1) if pairs else lengths
    found = mixing_of_batches(own[plan.sequences], plan.padded_lengths.sum(axis=1), plan.batch_sizes)
    assert found == lw.measure(plan, lengths).mixing


def test_one_of_padding_and_mixing_is_given():
    for both in ({"padding": 0.1, "mixing": 0.5}, {}, {"mixing": 0.5, "scale": 3.0}):
        given_names = [name for name in ("padding", "mixing", "scale") if name in both]
        with pytest.raises(
            ValueError, match=r"`MaxEntropy` must be given one of padding, mixing, scale, but is"
        ) as one:
            lw.MaxEntropy(**both)
        assert str(given_names) in str(one.value)
    with pytest.raises(ValueError, match=r"`mixing` must be at least 0 and at most 1, but is 50\. Give a share of"):
        lw.MaxEntropy(mixing=50)


def test_batches_of_random_steps_would_be_sorted_so_it_is_strata_that_are_dealt():
    default = asked(0.5, cut=lw.Budget(9_000))
    assert default.deal == lw.Stratified()
    assert lw.measure(lw.make_plan(SPEECH, default, world_size=8), SPEECH).mixing > 0.48
    assert asked(0.5).deal == lw.Balanced()
    with pytest.raises(ValueError, match="must be left out beside RandomSteps"):
        asked(0.5, cut=default.cut, deal=lw.RandomSteps())


def test_it_goes_through_json():
    assert lw.Batching.from_json(asked(0.5).to_json()) == asked(0.5)


def test_on_the_command_line(run):
    expected = lw.make_plan(lw.example_lengths(), asked(0.3)).fingerprint()
    done = run("plan", "--batch-size", 16, "--strategy", "max-entropy,mixing=0.3", "--json", "-")
    assert done.json["plan"]["fingerprint"] == expected
    done = run("plan", "--strategy", "max-entropy:0.1,mixing=0.3")
    assert done.status == 2
    assert "`MaxEntropy` must be given one of padding, mixing, scale, but is ['padding', 'mixing']." in done.err
