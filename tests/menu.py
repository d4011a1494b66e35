"""The table of all choices, and the cases drawn from it. To test a new choice, add one line."""

import random
from typing import NamedTuple

import numpy as np

import length_sets
import lengthwise as lw
from lengthwise.choices.deal import TAILS
from lengthwise.choices.order import finds_noise, pads_to_edge


def by_calls(counts, padded_lengths):
    """A cost of the user's own, which has no coefficients: count x longest^1.5, and a little for each batch."""
    return 0.5 + np.asarray(counts) * (np.asarray(padded_lengths, np.float64) ** 1.5).sum(axis=1)


class InGivenOrder:
    """An order of the user's own: as the sequences come."""

    def __call__(self, sizes, key):
        del key
        return lw.Ordered(np.arange(len(sizes)))


COSTS = {
    "padded": lw.Padded(),
    "quadratic": lw.Quadratic(linear=0.3, quadratic=0.007, per_sequence=1.1, per_batch=0.9),
    "per_length": lw.Quadratic(linear=0.3, quadratic=0.007, per_sequence=1.1, per_batch=0.9, per_length=0.7),
    "largest": lw.Padded(dims="largest"),
    "by_calls": by_calls,
}

ORDERS = {
    "shuffled": lw.Shuffled(),
    "sorted": lw.Sorted(),
    "falling": lw.Sorted(descending=True),
    "semi_sorted": lw.SemiSorted(randomization_factor=0.2),
    "alternated": lw.AlternatedSort(bins=3),
    "windowed": lw.Windowed(window=7),
    "bucketed": lw.Bucketed(size=7),
    "edges_drop": lw.Bucketed(edges=(20, 90, 400), longer="drop"),
    "edges_fixed": lw.Bucketed(edges=(20, 90, 6_000), pad_to_edge=True),
    "optimal": lw.Bucketed(buckets=4),
    "optimal_fixed": lw.Bucketed(buckets=4, pad_to_edge=True),
    "uniform": lw.Bucketed(buckets=3, by="uniform"),
    "quantile_fixed": lw.Bucketed(buckets=3, by="quantile", pad_to_edge=True),
    "exponential": lw.Bucketed(buckets=5, by="exponential"),
    "entropy_padding": lw.MaxEntropy(padding=0.1),
    "entropy_scale": lw.MaxEntropy(scale=20.0),
}

# For pairs, edges are rows, given by hand. Neither of (20, 90) and (90, 20) holds the other. Buckets that batches are
# padded to hold the one before, so that they go with every deal.
OF_PAIRS = {name: order for name, order in ORDERS.items() if not (hasattr(order, "edges") and order.size is None)} | {
    "edges_drop": lw.Bucketed(edges=((20, 90), (90, 20), (400, 400)), longer="drop"),
    "edges": lw.Bucketed(edges=((20, 90), (90, 20), (900, 900), (6_000, 6_000))),
    "edges_drop_fixed": lw.Bucketed(edges=((20, 40), (90, 90), (400, 400)), longer="drop", pad_to_edge=True),
    "edges_fixed": lw.Bucketed(edges=((20, 90), (90, 90), (900, 900), (6_000, 6_000)), pad_to_edge=True),
}


def cuts(budget, tight):
    """Returns every cut, by a `budget` that holds every sequence, and a `tight` one that holds about half of them."""
    return {
        "fixed": lw.FixedSize(3),
        "one": lw.FixedSize(1),
        "fixed_drop": lw.FixedSize(3, drop_incomplete=True),
        "budget": lw.Budget(budget),
        "budget_few": lw.Budget(budget, max_sequences=2),
        "budget_alone": lw.Budget(tight, oversize="alone"),
        "budget_drop": lw.Budget(tight, oversize="drop"),
        "budget_multiples": lw.Budget(budget, oversize="alone", multiple_of=8, count_multiple_of=2),
        "budget_drop_multiples": lw.Budget(tight, oversize="drop", multiple_of=4, count_multiple_of=3),
        "fixed_multiple": lw.FixedSize(3, multiple_of=8),
        "dynamic": lw.DynamicSize(2),
        "dynamic_multiples": lw.DynamicSize(4, multiple_of=8, count_multiple_of=2),
        "dynamic_paper": lw.DynamicSize(2, rule="paper"),
        # No cost here is below the frames of a sequence, so these rows hold the longest.
        "rows": lw.Rows(int(budget) + 1, rows=2),
        "rows_best_fit": lw.Rows(int(budget) + 1, by="best-fit"),
        "rows_of_two": lw.Rows(int(budget) + 1, rows=2, max_in_row=2),
        "rows_best_fit_of_three": lw.Rows(int(budget) + 1, rows=2, by="best-fit", max_in_row=3),
        "rows_drop": lw.Rows(int(tight) + 1, rows=3, pool=4, oversize="drop"),
    }


def packs(cut):
    return isinstance(cut, lw.Rows)


WHOLE_DEALS = (lw.Balanced, lw.Mixed, lw.Stratified, lw.InTurn)
DEALS = {
    **{f"{deal.__name__}_{tail}": deal(tail=tail) for deal in WHOLE_DEALS for tail in TAILS},
    "portions": lw.Portions(),
    **{f"RandomSteps_{tail}": lw.RandomSteps(tail=tail) for tail in TAILS},
    "RandomSteps_by_count": lw.RandomSteps(even=False),
}

ARRANGEMENTS = {
    "in_order": lw.InOrder(),
    "shuffled": lw.ShuffledSteps(),
    "shortest": lw.ShortestFirst(),
    "longest": lw.ShortestFirst(reverse=True),
    "shortest_at_first": lw.ShortestFirst(epochs=1),
    "costliest": lw.CostliestFirst(),
    "costliest_all": lw.CostliestFirst(steps=None),
}

CHUNKS = {"whole": None, "chunks": lw.Chunks(40), "overlapping": lw.Chunks(50, step=30)}


def suit_order(order, cut):
    """Returns the order; a random one where it says how much to pad, which rows do not ask."""
    return lw.Shuffled() if packs(cut) and (finds_noise(order) or pads_to_edge(order)) else order


def suit(deal, cut, cost=None, order=None):
    """Returns the deal, or the nearest that goes with the cut, the cost and the order."""
    if not isinstance(deal, lw.RandomSteps):
        return deal
    if not packs(cut) and finds_noise(order):
        return lw.Stratified(tail=deal.tail)
    priced = packs(cut) or cost is None or type(cost) is lw.Quadratic or cost == lw.Padded()
    if not priced or getattr(cut, "rule", "") == "paper" or getattr(cut, "drop_incomplete", False):
        return lw.Mixed(tail=deal.tail)
    return deal if isinstance(cut, lw.FixedSize) else lw.RandomSteps(tail=deal.tail)


def may_drop(batching):
    """Returns whether a choice was asked to drop."""
    order, cut = batching.order, batching.cut
    asked = getattr(order, "longer", "") == "drop" or getattr(cut, "oversize", "") == "drop"
    return asked or getattr(cut, "drop_incomplete", False) or batching.deal.tail == "drop"


class Case(NamedTuple):
    """A plan to make: lengths, choices, and the other arguments of `make_plan`."""

    lengths: np.ndarray
    batching: lw.Batching
    options: dict

    def plan(self, **changes):
        """Makes the plan; returns None where a choice was asked to drop, and has dropped all."""
        try:
            return lw.make_plan(self.lengths, self.batching, **self.options | changes)
        except ValueError as error:
            if not may_drop(self.batching) or not str(error).startswith("`steps` must be at least 1, but is 0"):
                raise
            return None


def draw_cases(cut):
    """Returns cases of one cut with every order, twice each, of one length a sequence and of two."""
    chance = random.Random(cut)
    names = [(1, order) for order in ORDERS] + [(2, order) for order in OF_PAIRS if not cut.startswith("rows")]
    return [draw_case(chance, cut, order, dims) for dims, order in 2 * names]


def draw_case(chance, cut, order, dims):
    def one_of(table):
        return table[chance.choice(list(table))]

    lengths, cost, chunks = length_sets.draw_lengths(chance, dims), one_of(COSTS), one_of(CHUNKS) if dims == 1 else None
    order = (ORDERS if dims == 1 else OF_PAIRS)[order]
    cut = cuts(*budgets(lengths if chunks is None else np.minimum(lengths, chunks.size), order, cost))[cut]
    options = {"world_size": chance.randint(1, 9), "micro_batches": chance.randint(1, 4)}
    options |= {"seed": chance.randint(0, 9), "epoch": chance.choice([0, 1, 5, 10**6])}
    deal = suit(one_of(DEALS), cut, cost, order)
    if len(lengths) and chance.random() < 0.3:
        options["times"] = np.array([0.5, *(chance.choice([0.0, 0.4, 1.0, 2.5]) for _ in lengths[1:])])
    if chance.random() < 0.3:
        options |= {"groups": np.array([chance.randrange(3) for _ in lengths], np.int64), "micro_batches": 3}
        if isinstance(deal, lw.RandomSteps) and (packs(cut) or not deal.even):
            deal = lw.Mixed(tail=deal.tail)
    choices = {"order": suit_order(order, cut), "cut": cut, "deal": deal, "arrange": one_of(ARRANGEMENTS)}
    return Case(lengths, lw.Batching(**choices, cost=cost, chunks=chunks), options)


def budgets(lengths, order, cost):
    """Returns a budget that holds three of the longest sequences, and one that about half of them are within."""
    if not len(lengths):
        return 10.0, 10.0
    rising = np.sort(lengths.reshape(len(lengths), -1), axis=0)
    edges = order.edges if pads_to_edge(order) and order.edges else ()
    longest, middle = np.maximum(rising[-1], np.max(edges, axis=0, initial=0)), rising[len(rising) // 2]
    return float(cost(np.array([3]), longest[None])[0]), float(cost(np.array([1]), middle[None])[0])
