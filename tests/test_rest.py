"""The rest of an epoch: whoever takes it, however often the number of ranks changes, nothing is lost or repeated."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import lengthwise as lw
import menu

CASES_PER_PAIR = 6


@pytest.mark.parametrize("deal", menu.DEALS)
@pytest.mark.parametrize("order", ["shuffled", "alternated", "optimal_fixed", "entropy_padding"])
def test_every_sequence_is_taken_once_however_the_ranks_change(order, deal):
    chance = random.Random(f"{order} {deal}")
    for _ in range(CASES_PER_PAIR):
        lengths = np.array([max(1, round(chance.lognormvariate(4, 0.8))) for _ in range(chance.randint(0, 60))], int)
        longest = 2.0 * lengths.max(initial=1)
        cuts = menu.cuts(3 * longest, float(np.median(lengths)) if len(lengths) else 1.0)
        cut = cuts[chance.choice(list(cuts))]
        batching = lw.Batching(
            order=menu.suit_order(menu.ORDERS[order], cut),
            cut=cut,
            deal=menu.suit(menu.DEALS[deal], cut, order=menu.ORDERS[order]),
            arrange=menu.ARRANGEMENTS[chance.choice(list(menu.ARRANGEMENTS))],
        )
        loses_nothing(lengths, batching, chance)
        loses_nothing(lengths, batching, chance, times=np.array([chance.choice([0.4, 1, 2.5]) for _ in lengths]))


def loses_nothing(lengths, batching, chance, times=None):
    """Takes an epoch in one to four runs on ever other numbers of ranks."""
    droppable = menu.may_drop(batching.order, batching.cut, batching.deal)
    runs, got = [], [np.empty(0, np.int64)]
    for left in reversed(range(chance.randint(1, 4))):
        shape = {"world_size": chance.randint(1, 6), "micro_batches": chance.randint(1, 3)}
        try:
            plan = lw.make_plan(lengths, batching, after=runs, times=times, **shape)
        except ValueError as error:
            if droppable and "`steps` must be at least 1" in str(error):
                return
            raise
        assert plan.grid.shape[1:] == (shape["micro_batches"], shape["world_size"])
        assert plan.batch_sizes.min(initial=1) > 0
        assert not runs or np.array_equal(plan.delivered, np.sort(np.concatenate(got)))
        if runs and not isinstance(batching.deal, lw.Portions):
            takes_only_the_unseen(plan, batching.deal.tail)
        taken = chance.randint(0, len(plan)) if left else len(plan)
        runs.append((*shape.values(), taken))
        got.append(sequences_taken(plan, taken))
    everything = np.concatenate(got)
    assert len(np.unique(everything)) == len(everything)
    missing = np.setdiff1d(np.arange(plan.count), everything)
    assert np.array_equal(missing if times is None else plan.copies[missing], plan.dropped())
    assert droppable or not len(missing)


def takes_only_the_unseen(plan, tail):
    """Batches stand again where the policy is to repeat, less than a step of them, or where sequences are too few."""
    again = int((~plan.first_taken).sum())
    assert again < plan.world_size * plan.micro_batches or (plan.batch_sizes == 1).all()
    assert not again or tail == "repeat" or (tail == "split" and (plan.batch_sizes == 1).all())


def sequences_taken(plan, taken):
    """What the ranks have after `taken` batches each; those that only keep a rank in step do not count."""
    places = slice(0, taken)
    grid, first = (array.reshape(-1, plan.world_size)[places] for array in (plan.grid, plan.first_taken))
    parts = [plan.sequences[plan.offsets[number] : plan.offsets[number + 1]] for number in grid[first]]
    return np.concatenate([np.empty(0, np.int64), *parts])


@pytest.mark.parametrize("chunks", menu.CHUNKS)
def test_chunks_too(chunks):
    lengths = lw.example_lengths("speech", count=200)
    batching = lw.Batching(cut=lw.FixedSize(5), chunks=menu.CHUNKS[chunks])
    whole = lw.make_plan(lengths, batching, world_size=4)
    rest = lw.make_plan(lengths, batching, world_size=3, after=[(4, 1, 7)])
    seen = np.concatenate(
        [whole.sequences[whole.offsets[b] : whole.offsets[b + 1]] for b in whole.grid[:7].reshape(-1)]
    )
    assert sorted([*seen, *rest.sequences]) == list(range(whole.count))
    assert np.array_equal(rest.delivered, np.sort(seen))
    assert not len(rest.dropped())


DIVIDING = [(8, 1), (4, 2), (2, 4), (1, 8)]


@pytest.mark.parametrize("deal", [lw.Balanced(), lw.Mixed(), lw.InTurn()])
@pytest.mark.parametrize("places", DIVIDING)
def test_the_same_steps_where_the_micro_batches_divide(deal, places):
    lengths = lw.example_lengths("long-tailed", count=4_000)
    batching = lw.Batching(cut=lw.Budget(30_000), order=lw.SemiSorted(randomization_factor=0.2), deal=deal)
    whole = lw.make_plan(lengths, batching, seed=5, world_size=8)
    rest = lw.make_plan(lengths, batching, seed=5, world_size=places[0], micro_batches=places[1], after=[(8, 1, 6)])
    assert steps(rest) == steps(whole)[6:]
    again = lw.make_plan(lengths, batching, seed=5, world_size=8, after=[(8, 1, 6), (*places, 2 * places[1])])
    assert steps(again) == steps(whole)[8:]


def steps(plan):
    """The sequences of each step."""
    return [
        sorted(number for batch in step.reshape(-1) for number in plan.batch(int(batch)).tolist()) for step in plan.grid
    ]


def test_redealt_batches_keep_their_company_and_their_budget():
    lengths = lw.example_lengths("long-tailed", count=8_000)
    batching = lw.Batching(budget=20_000, padding=0.1)
    whole = lw.make_plan(lengths, batching, world_size=8)
    rest = lw.make_plan(lengths, batching, world_size=6, after=[(8, 1, 10)])
    batches = {tuple(sorted(whole.batch(number).tolist())) for number in range(len(whole.costs))}
    kept = [tuple(sorted(rest.batch(number).tolist())) in batches for number in range(len(rest.costs))]
    assert np.mean(kept) > 0.9  # but for those that a tail splits
    assert rest.costs.max() <= 20_000
    assert lw.measure(rest, lengths).straggler_waste < 0.05  # of similar cost again


def test_a_batch_that_stood_twice_and_was_delivered_weighs_nothing():
    # Three batches on two ranks, the cheapest twice: [[2, 2], [0, 1]] or so.
    batching = lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted(), deal=lw.InTurn(tail="repeat"), arrange=lw.InOrder())
    lengths = [3, 4, 5]
    whole = lw.make_plan(lengths, batching, world_size=2)
    assert whole.grid.tolist() == [[[0, 1]], [[2, 0]]]
    rest = lw.make_plan(lengths, batching, world_size=1, micro_batches=2, after=[(2, 1, 1)])
    assert sorted(number for batch in rest.batches() for number in batch) == [0, 2]
    weights = lw.loss_scales(rest)
    of_repeated = [rest.batch(int(number)).tolist() == [0] for number in rest.grid.reshape(-1)]
    assert weights.reshape(-1)[of_repeated].tolist() == [0.0]
    assert weights.sum() == 1.0


def test_a_batch_that_stood_twice_is_not_taken_again_two_runs_later():
    """Of three sequences, two ranks take two; then one rank takes the third first, before one of those again."""
    batching = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(1), deal=lw.Mixed(tail="repeat"))
    for epoch in range(8):
        plan = lw.make_plan([3, 4, 5], batching, epoch=epoch, world_size=4, after=[(2, 1, 1), (1, 2, 1)])
        assert plan.sequences.tolist() == np.setdiff1d(np.arange(3), plan.delivered).tolist()


@dataclass(frozen=True)
class Noting:
    """Deals as `Mixed` does, and notes what names its randomness."""

    tail: str = "split"
    noted: list = field(default_factory=list, compare=False)

    def portions(self, count, world, key):
        return lw.Mixed().portions(count, world, key)

    def grid(self, numbers, costs, world, key):
        self.noted.append((key.stage, key.lane))
        return lw.Mixed().grid(numbers, costs, world, key)


def test_every_run_of_an_epoch_is_dealt_by_randomness_of_its_own():
    deal = Noting()
    batching = lw.Batching(cut=lw.FixedSize(1), deal=deal)
    lw.make_plan(np.arange(1, 41), batching, world_size=5, after=[(2, 1, 3), (3, 1, 2), (4, 1, 1)])
    assert len(deal.noted) == len(set(deal.noted)) == 4


def test_what_is_left_of_portions_costs_every_rank_about_the_same():
    lengths = lw.example_lengths(count=400)
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.Sorted(), deal=lw.Portions())
    for epoch in range(3):
        rest = lw.make_plan(lengths, batching, epoch=epoch, world_size=3, after=[(4, 1, 5)])
        assert lw.measure(rest, lengths).straggler_waste < 0.15


def test_the_rest_is_priced_with_filled_rows_too():
    batching = lw.Batching(cut=lw.Budget(240, count_multiple_of=8), order=lw.Sorted())
    rest = lw.make_plan([10] * 72, batching, after=[(1, 1, 1)], world_size=3)
    assert sorted(zip(rest.batch_sizes.tolist(), rest.costs.tolist(), strict=True)) == [(12, 160), (12, 160), (24, 240)]


def test_nothing_may_be_left():
    batching = lw.Batching(cut=lw.FixedSize(2))
    rest = lw.make_plan([1, 2, 3, 4], batching, world_size=3, after=[(1, 1, 2)])
    assert rest.grid.shape == (0, 1, 3)
    assert len(rest) == 0
    assert rest.delivered.tolist() == [0, 1, 2, 3]
    assert not len(rest.dropped())


def test_the_rest_is_saved_and_named(tmp_path):
    batching = lw.Batching(cut=lw.FixedSize(2))
    lengths = lw.example_lengths("speech", count=40)
    rest = lw.make_plan(lengths, batching, world_size=3, after=[(2, 1, 4)])
    rest.save(tmp_path / "rest.npz")
    loaded = lw.Plan.load(tmp_path / "rest.npz")
    assert loaded.fingerprint() == rest.fingerprint()
    assert np.array_equal(loaded.delivered, rest.delivered)
    other = lw.make_plan(lengths, batching, world_size=3, after=[(2, 1, 5)])
    assert other.fingerprint() != rest.fingerprint()


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ([(2, 1)], "`after` must be a list of three whole numbers each, but is [(2, 1)]"),
        ([(0, 1, 2)], "`after` must be at least 1, but is 0"),
        ([(2, 1, 21)], "`after` must be at most 10, but is 21"),
        ([(2, 1, 1.5)], "`after` must be a whole number"),
    ],
)
def test_bad_runs_are_refused(after, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        lw.make_plan(np.arange(1, 41), lw.Batching(cut=lw.FixedSize(2)), after=after)
    assert message in str(caught.value)
