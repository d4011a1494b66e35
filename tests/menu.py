"""The table of all choices: what the promises are tested on. A new policy is tested by adding one line."""

import numpy as np

import lengthwise as lw


def by_calls(counts, padded_lengths):
    """A cost of the user's own, without prices: count x longest^1.5 and a little for each batch."""
    return 0.5 + np.asarray(counts) * (np.asarray(padded_lengths, np.float64) ** 1.5).sum(axis=1)


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
    "entropy_mixing": lw.MaxEntropy(mixing=0.5),
    "entropy_scale": lw.MaxEntropy(scale=20.0),
}

# What suits pairs: edges have a row for each bucket, and are given by hand. (20, 90) and (90, 20) hold each what the
# other does not; buckets that are padded to hold the one before, so that they go with every deal.
OF_PAIRS = {name: order for name, order in ORDERS.items() if not (hasattr(order, "edges") and order.size is None)} | {
    "edges_drop": lw.Bucketed(edges=((20, 90), (90, 20), (400, 400)), longer="drop"),
    "edges": lw.Bucketed(edges=((20, 90), (90, 20), (900, 900), (6_000, 6_000))),
    "edges_drop_fixed": lw.Bucketed(edges=((20, 40), (90, 90), (400, 400)), longer="drop", pad_to_edge=True),
    "edges_fixed": lw.Bucketed(edges=((20, 90), (90, 90), (900, 900), (6_000, 6_000)), pad_to_edge=True),
}


def cuts(budget, tight):
    """Every cut, for a `budget` that every sequence is within, and a `tight` one that about half of them are."""
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
        # No cost is below the frames of a sequence here, nor a budget below those of the longest.
        "rows": lw.Rows(int(budget) + 1, rows=2),
        "rows_best_fit": lw.Rows(int(budget) + 1, by="best-fit"),
        "rows_of_two": lw.Rows(int(budget) + 1, rows=2, max_in_row=2),
        "rows_best_fit_of_three": lw.Rows(int(budget) + 1, rows=2, by="best-fit", max_in_row=3),
        "rows_drop": lw.Rows(int(tight) + 1, rows=3, pool=4, oversize="drop"),
    }


def padding_cuts(budget, tight):
    """Every cut but those that pack rows: these take one length a sequence, and pad to no edges."""
    return {name: cut for name, cut in cuts(budget, tight).items() if not packs(cut)}


def padded_to(lengths, cut):
    """The lengths as a cut pads them: rounded up to its multiple."""
    multiple = getattr(cut, "multiple_of", 1)
    return -(-lengths // multiple) * multiple


def packs(cut):
    """Whether the cut packs sequences into rows."""
    return isinstance(cut, lw.Rows)


DEALS = {
    f"{deal.__name__}_{tail}": deal(tail=tail)
    for deal in (lw.Balanced, lw.Mixed, lw.Stratified, lw.InTurn)
    for tail in ("split", "repeat", "drop")
} | {"portions": lw.Portions()}
DEALS |= {f"RandomSteps_{tail}": lw.RandomSteps(tail=tail) for tail in ("split", "repeat", "drop")}
DEALS |= {"RandomSteps_by_count": lw.RandomSteps(even=False)}

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


def needs_one_length(order, chunks, cut=""):
    """Whether a choice of these tables is for [n] lengths only, or with some deals: `OF_PAIRS` has those for pairs."""
    of_one = chunks is not None or cut.startswith("rows")
    return of_one or any(getattr(order, name, None) is not None for name in ("edges", "buckets"))


def suit_order(order, cut):
    """The order, or a random one where it says how much to pad, which rows do not ask."""
    asked = any(getattr(order, name, None) is not None for name in ("padding", "mixing"))
    return lw.Shuffled() if (asked or getattr(order, "pad_to_edge", False)) and packs(cut) else order


def may_drop(order, cut, deal):
    """Whether a choice was asked to drop."""
    asked = getattr(order, "longer", "") == "drop" or getattr(cut, "oversize", "") == "drop"
    return asked or getattr(cut, "drop_incomplete", False) or deal.tail == "drop"


def suit(deal, cut, cost=None, order=None):
    """The deal, or the nearest that the cut, the cost and the order allow: not every one forms steps, nor by count."""
    priced = packs(cut) or cost is None or type(cost) is lw.Quadratic or cost == lw.Padded()
    if not isinstance(deal, lw.RandomSteps):
        return deal
    if not packs(cut) and any(getattr(order, name, None) is not None for name in ("padding", "mixing")):
        return lw.Stratified(tail=deal.tail)
    forms_steps = priced and getattr(cut, "rule", "") != "paper" and not getattr(cut, "drop_incomplete", False)
    if isinstance(cut, lw.FixedSize) and forms_steps:
        return deal
    return lw.RandomSteps(tail=deal.tail) if forms_steps else lw.Mixed(tail=deal.tail)
