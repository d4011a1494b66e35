"""Compares the limit of epochs with the best pools of batchings, for small sets with all their batchings.

    python -m lengthwise_recipes.limits.pools [--json pools.json]

A batching of a small set is a table: the number of sequences of each length padded to each length. The program lists
the tables of all epochs with at most a given number of empty places. Among all mixtures of these tables it searches the
pool with the least information about a length, at several prices of a padded frame, by multiplicative steps. At every
step the batching with the steepest descent bounds all mixtures. Pool and bound are compared with `epoch_limit` at the
padding of the pool.
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
MORE_EMPTY = 0, 2, 4  # places beyond those of sorted batches; with a batch size, half as many further batches
PRICES = 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.0  # nats for a frame of padding
MOST = 100_000  # batchings
NEAR = 1e-4  # nats
ROUNDS = 20_000

State = tuple[tuple[int, tuple[int, ...]], ...]
"""Unfinished batches: the padded length and the lengths of each."""


class Tables(NamedTuple):
    """Joint tables: `shares` [batchings, cells] of the sequences; a cell has a length and a padded length."""

    shares: NDArray[np.float64]
    lengths: NDArray[np.int64]
    padded: NDArray[np.int64]


def main() -> None:
    """Measures, and writes the result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, default=Path("pools.json"))
    path = options.parse_args().json
    cuts = [*({"batch_size": size} for size in SIZES), *({"budget": times} for times in BUDGETS)]
    cases = [(name, cut, extra_empty) for name in SETS for cut in cuts for extra_empty in MORE_EMPTY]
    rows = [row for case in tqdm(cases, disable=None) for row in measured(*case)]
    sets = {name: sorted(lengths) for name, lengths in SETS.items()}
    record.write(path, {"sets": sets, "rows": rows}, module="lengthwise_recipes.limits.pools")


def measured(name: str, cut: dict[str, int], extra_empty: int) -> list[dict[str, Any]]:
    """Returns a row for each price, unless the best pool pads about the same share as at the price before."""
    lengths = sorted(SETS[name], reverse=True)
    cut = {kind: value * lengths[0] if kind == "budget" else value for kind, value in cut.items()}
    places = {length: cut["batch_size"] if "batch_size" in cut else cut["budget"] // length for length in lengths}
    empty = places_left(lengths, places) + extra_empty
    of_epochs = {"empty_places": empty}
    if "batch_size" in cut:
        batches = -(-len(lengths) // cut["batch_size"]) + extra_empty // 2
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
        results = {"mixing": float(np.exp(-information)), "bound": float(np.exp(-least)), "limit": limit}
        rows.append(
            {"lengths": name, **cut, **of_epochs, "batchings": len(tables.shares), "padding_share": share, **results}
        )
    return rows


def places_left(lengths: list[int], places: dict[int, int]) -> int:
    """Counts the empty places of sorted batches, filled from the longest."""
    empty = 0
    for length in lengths:
        empty = (empty or places[length]) - 1
    return empty


def all_tables(lengths: list[int], places: dict[int, int], empty: int) -> Tables | None:
    """Returns the tables of all batchings of falling `lengths` with at most `empty` empty places; None if too many."""
    states: set[State] = {()}
    for length in lengths:
        new_states: set[State] = set()
        for state in states:
            for position, (padded, members) in enumerate(state):
                if len(members) < places[padded] and state.index((padded, members)) == position:
                    new_states.add(
                        tuple(sorted((*state[:position], (padded, (*members, length)), *state[position + 1 :])))
                    )
            if sum(places[padded] for padded, _ in state) + places[length] <= len(lengths) + empty:
                new_states.add(tuple(sorted((*state, (length, (length,))))))
        if len(new_states) > MOST:
            return None
        states = new_states
    tables = {tuple(sorted((padded, length) for padded, members in state for length in members)) for state in states}
    cells = sorted({cell for table in tables for cell in table})
    place = {cell: number for number, cell in enumerate(cells)}
    counts = np.zeros((len(tables), len(cells)))
    for row, table in enumerate(sorted(tables)):
        np.add.at(counts[row], [place[cell] for cell in table], 1.0)
    padded, shorter = np.array(cells).T
    return Tables(counts / len(lengths), shorter, padded)


def best_pool(tables: Tables, price: float) -> tuple[float, float, float]:
    """Finds the mixture with the least information plus `price` x padding.

    Returns its information in nats, a lower bound for all mixtures of its padding, and that padding in frames per
    sequence.
    """
    shares, lengths, padded = tables
    added = shares @ (padded - lengths)
    column = np.unique(padded, return_inverse=True)[1]
    row = np.unique(lengths, return_inverse=True)[1]
    of_length = np.bincount(row, shares[0])

    def look(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Returns the sum, and the information of each cell, in nats."""
        joint = weights @ shares
        information = np.log(joint / (np.bincount(column, joint)[column] * of_length[row]))
        return float(joint @ information + price * (weights @ added)), information

    # Every batching keeps some weight, so that no cell is empty.
    least_weight = 1e-12 / len(shares)
    weights = np.full(len(shares), 1.0 / len(shares))
    value, information = look(weights)
    bound, step = -np.inf, 1.0
    for _ in range(ROUNDS):
        slopes = shares @ information + price * added
        # The sum is convex, so its slopes bound every mixture.
        bound = max(bound, value - float(weights @ slopes - slopes.min()))
        if value - bound < NEAR or step < 1e-9:
            break
        new_weights = np.maximum(weights * np.exp(-step * (slopes - slopes.min())), least_weight)
        new_weights /= new_weights.sum()
        new_value, new_information = look(new_weights)
        if new_value <= value:
            weights, value, information, step = new_weights, new_value, new_information, 1.3 * step
        else:
            step /= 2.0
    padding = float(weights @ added)
    return value - price * padding, bound - price * padding, padding


if __name__ == "__main__":
    main()
