"""How near can any batching come to the limit of epochs? Of small sets, by all batchings that there are.

    python -m lengthwise_recipes.limits.pools [--json pools.json]

A batching of a small set is a table: how many sequences of each length are padded to each length. All tables of epochs
that leave no more places empty than is said are made. The pool that tells least of a length is looked for among all
mixtures of them, at several prices of a padded frame, by multiplicative steps. At every step, the batching that would
lessen the sum most says how much less any mixture can have: so what no pool can pass is known as well. Both stand
beside `mixing_limit` at the padding of the pool found.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from lengthwise_recipes import record
from lengthwise_recipes.limits.bounds import epoch_limit

SETS = {
    "5 lengths, once": (10, 14, 20, 28, 40),
    "5 lengths, twice each": (10, 14, 20, 28, 40) * 2,
    "5 lengths, three times each": (10, 14, 20, 28, 40) * 3,
    "11 log-normal lengths": (8, 12, 13, 14, 18, 22, 22, 26, 31, 39, 50),
    "8 lengths and 2 long ones": (3, 4, 5, 6, 7, 8, 9, 10, 30, 60),
}
SIZES = 2, 3, 4  # sequences in a batch
BUDGETS = 2, 4  # times the longest length
MORE_EMPTY = 0, 2, 4  # places, beyond those that sorted batches leave empty; or half as many batches of a size
PRICES = 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.0  # nats for a frame of padding
MOST = 100_000  # batchings
NEAR = 1e-4  # nats
ROUNDS = 20_000

State = tuple[tuple[int, tuple[int, ...]], ...]
"""Batches under way: what each is padded to, and its lengths."""


class Tables(NamedTuple):
    """Joint tables: `shares` [batchings, cells] of the sequences that have `lengths` and are `padded` to [cells]."""

    shares: NDArray[np.float64]
    lengths: NDArray[np.int64]
    padded: NDArray[np.int64]


def main() -> None:
    """Measures, and writes the result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, default=Path("pools.json"))
    path = options.parse_args().json
    cuts = [*({"batch_size": size} for size in SIZES), *({"budget": times} for times in BUDGETS)]
    cases = [(name, cut, more) for name in SETS for cut in cuts for more in MORE_EMPTY]
    rows = [row for case in tqdm(cases, disable=None) for row in measured(*case)]
    sets = {name: sorted(each) for name, each in SETS.items()}
    record.write(path, {"sets": sets, "rows": rows}, module="lengthwise_recipes.limits.pools")


def measured(name: str, cut: dict[str, int], more: int) -> list[dict[str, Any]]:
    """A row for each price at which the best pool pads another share."""
    lengths = sorted(SETS[name], reverse=True)
    cut = {kind: value * lengths[0] if kind == "budget" else value for kind, value in cut.items()}
    places = {length: cut["batch_size"] if "batch_size" in cut else cut["budget"] // length for length in lengths}
    empty = places_left(lengths, places) + more
    of_epochs = {"empty_places": empty}
    if "batch_size" in cut:
        batches = -(-len(lengths) // cut["batch_size"]) + more // 2
        empty = batches * cut["batch_size"] - len(lengths)
        of_epochs = {"batches": batches}
    tables = all_tables(lengths, places, empty)
    if tables is None:
        return []
    rows: list[dict[str, Any]] = []
    for price in PRICES:
        information, least, padding = best_pool(tables, price)
        share = padding / (padding + float(np.mean(lengths)))
        if rows and share - rows[-1]["padding_share"] < 1e-3:
            continue
        limit = epoch_limit(lengths, share, **cut, **of_epochs)
        found = {"mixing": float(np.exp(-information)), "bound": float(np.exp(-least)), "limit": limit}
        rows.append(
            {"lengths": name, **cut, **of_epochs, "batchings": len(tables.shares), "padding_share": share, **found}
        )
    return rows


def places_left(lengths: list[int], places: dict[int, int]) -> int:
    """The places that sorted batches leave empty, filled from the longest."""
    left = 0
    for length in lengths:
        left = (left or places[length]) - 1
    return left


def all_tables(lengths: list[int], places: dict[int, int], empty: int) -> Tables | None:
    """Those of all batchings that leave at most `empty` places; None if there are too many. `lengths` fall."""
    states: set[State] = {()}
    for length in lengths:
        grown: set[State] = set()
        for state in states:
            for at, (padded, members) in enumerate(state):
                if len(members) < places[padded] and state.index((padded, members)) == at:
                    grown.add(tuple(sorted((*state[:at], (padded, (*members, length)), *state[at + 1 :]))))
            if sum(places[padded] for padded, _ in state) + places[length] <= len(lengths) + empty:
                grown.add(tuple(sorted((*state, (length, (length,))))))
        if len(grown) > MOST:
            return None
        states = grown
    tables = {tuple(sorted((padded, one) for padded, members in state for one in members)) for state in states}
    cells = sorted({cell for table in tables for cell in table})
    place = {cell: number for number, cell in enumerate(cells)}
    counts = np.zeros((len(tables), len(cells)))
    for row, table in enumerate(sorted(tables)):
        np.add.at(counts[row], [place[cell] for cell in table], 1.0)
    padded, shorter = np.array(cells).T
    return Tables(counts / len(lengths), shorter, padded)


def best_pool(tables: Tables, price: float) -> tuple[float, float, float]:
    """The mixture of least information plus `price` x padding: its information, what none is below, and its padding.

    Information is in nats, and padding in frames a sequence. What none is below holds for mixtures of that padding.
    """
    shares, lengths, padded = tables
    added = shares @ (padded - lengths)
    column = np.unique(padded, return_inverse=True)[1]
    row = np.unique(lengths, return_inverse=True)[1]
    of_length = np.bincount(row, shares[0])

    def look(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The sum, and the information of each cell, in nats."""
        joint = weights @ shares
        told = np.log(joint / (np.bincount(column, joint)[column] * of_length[row]))
        return float(joint @ told + price * (weights @ added)), told

    # Every batching keeps some weight, so that no cell is empty.
    least_weight = 1e-12 / len(shares)
    weights = np.full(len(shares), 1.0 / len(shares))
    value, told = look(weights)
    bound, step = -np.inf, 1.0
    for _ in range(ROUNDS):
        slopes = shares @ told + price * added
        # The sum is convex, so no mixture is further below than its slopes say.
        bound = max(bound, value - float(weights @ slopes - slopes.min()))
        if value - bound < NEAR or step < 1e-9:
            break
        tried = np.maximum(weights * np.exp(-step * (slopes - slopes.min())), least_weight)
        tried /= tried.sum()
        reached, told_there = look(tried)
        if reached <= value:
            weights, value, told, step = tried, reached, told_there, 1.3 * step
        else:
            step /= 2.0
    padding = float(weights @ added)
    return value - price * padding, bound - price * padding, padding


if __name__ == "__main__":
    main()
