"""Measures fill, randomness and speed of packed rows, compared with other packers.

    pip install --no-deps --target FOLDER trl
    python benchmarks/packing.py --trl FOLDER

Rows have 4,096 tokens. Lengths are log-normal (sigma 0.7) of mean 500 and 1,400, cut off at 4,096, and token counts of
real data sets if they are there. Every method has the same lengths in the same random order, and returns rows of
sequence numbers. The repeats are interleaved: each method once, then each again. `lw.Rows` is timed as a cut, from
lengths in order to batches, and as a whole plan.

A second table compares the deals on the same rows: the waiting of ranks and the variation of steps, if only attention
costs time.

`--trl` runs `_pack_bfd` from the source of TRL: it packs an Arrow table of tokens, and copies them. TRL's rule on
lengths alone, next fit and first-fit decreasing are written here, in Python.
"""

from __future__ import annotations

import ast
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from record import DATA, parser, write
from tqdm import tqdm

import lengthwise as lw

CAPACITY = 4_096
COUNT = 100_000
MANY = 1_000_000  # sequences, for our methods only
REPEATS = 5
SIGMA = 0.7
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)
OURS = {
    "best-fit": lw.Rows(CAPACITY, by="best-fit"),
    "pool of 1,024": lw.Rows(CAPACITY),
    "pool of 64": lw.Rows(CAPACITY, pool=64),
}

DEALS = {"Balanced": lw.Balanced(), "Mixed": lw.Mixed(), "RandomSteps": lw.RandomSteps()}
WORLDS = ((8, 1), (8, 2), (8, 4), (8, 8), (8, 16), (2, 8), (32, 8))  # ranks, and rows of a batch

Lengths: TypeAlias = NDArray[np.int64]
Packed: TypeAlias = list[list[int]]


def main() -> None:
    """Measures, and writes the result."""
    arguments = parser(__doc__)
    arguments.add_argument("--trl", metavar="FOLDER", help="folder of TRL, from pip --target")
    folder = arguments.parse_args().trl
    written = {"next fit": next_fit, "first-fit decreasing": first_fit_decreasing, "TRL's rule": best_fit_of_trl}
    peers = {name: of_lengths(pack) for name, pack in written.items()}
    if folder:
        peers["TRL"] = load_trl(Path(folder))
    rows = []
    for name, lengths in data().items():
        rows += [{"data": name, "sequences": len(lengths), **row} for row in rows_of(lengths, peers)]
    for mean in (500, 1_400):
        lengths = log_normal(mean, MANY)
        rows += [{"data": f"mean {mean:,}", "sequences": MANY, **row} for row in rows_of(lengths, {})]
    deals = [row for mean in (500, 1_400) for row in rows_of_deals(f"mean {mean:,}", log_normal(mean, COUNT))]
    settings = {"capacity": CAPACITY, "repeats": REPEATS, "sigma": SIGMA, "trl": trl_version(folder)}
    print(write("packing", {**settings, "rows": rows, "deals": deals}))


def data() -> dict[str, Lengths]:
    """Returns lengths by name."""
    sets = {f"mean {mean:,}": log_normal(mean, COUNT) for mean in (500, 1_400)}
    questions = DATA / "lengths" / "gsm8k_train_question_answer_tokens.npy"
    dialogues = DATA / "lengths" / "hh_harmless_chosen_rejected_tokens.npy"
    if questions.exists():
        sets["GSM8K"] = lw.read_lengths(questions).sum(axis=1)  # a question and its answer
    if dialogues.exists():
        sets["HH harmless"] = lw.read_lengths(dialogues)[:, 0]  # the chosen answers
    return {name: np.minimum(lengths, CAPACITY) for name, lengths in sets.items()}


def log_normal(mean: int, count: int) -> Lengths:
    """Draws log-normal lengths of a mean, then cuts them off at the capacity."""
    lengths = np.random.default_rng(0).lognormal(0.0, SIGMA, count) * mean / np.exp(SIGMA**2 / 2)
    return np.rint(lengths).astype(np.int64).clip(1, CAPACITY)


def rows_of(lengths: Lengths, peers: dict[str, Peer]) -> list[dict[str, Any]]:
    """Returns a row for each method: its measures, and the seconds of every repeat."""
    shuffled = lengths[lw.Key(seed=0).permutation(len(lengths))]
    ours: dict[str, Callable[[], Any]] = {name: partial(cut_rows, cut, shuffled) for name, cut in OURS.items()}
    plans = {name: partial(make_plan, cut, lengths) for name, cut in OURS.items()}
    theirs = {name: partial(peer.pack, peer.prepare(shuffled)) for name, peer in peers.items()}
    seconds = timed({**ours, **theirs})
    planned = timed(plans)
    rows = []
    for name in OURS:
        plan = plans[name]()
        measures = lw.measure(plan, lengths)
        results = {
            "fill": measures.fill,
            "row_randomness": measure_rows(plan, lengths),
            "cost_spread": measures.cost_spread,
        }
        rows.append(
            {"method": name, "ours": True, "rows": measures.rows, **results, "seconds": seconds[name]}
            | {"plan_seconds": planned[name]}
        )
    for name, pack in theirs.items():
        results = measured(peers[name].read(pack()), shuffled)
        rows.append({"method": name, "ours": False, **results, "seconds": seconds[name]})
    return rows


def cut_rows(cut: lw.Rows, shuffled: Lengths) -> lw.Cuts:
    """Cuts lengths in order into batches."""
    none = np.empty(0, np.int64)
    return cut(shuffled[:, None], none, cost=ATTENTION, longest=np.array([CAPACITY]))


def make_plan(cut: lw.Rows, lengths: Lengths) -> lw.Plan:
    """Makes a whole plan, with its random order."""
    return lw.make_plan(lengths, lw.Batching(cut=cut, cost=ATTENTION))


def rows_of_deals(name: str, lengths: Lengths) -> list[dict[str, Any]]:
    """Returns a row for each deal, number of ranks and rows: waiting and variation of steps of the same rows."""
    results = []
    for ranks, rows in tqdm(WORLDS, disable=None):
        for deal, choice in DEALS.items():
            batching = lw.Batching(cut=lw.Rows(CAPACITY, rows=rows), cost=ATTENTION, deal=choice)
            plan = lw.make_plan(lengths, batching, world_size=ranks)
            measures = lw.measure(plan, lengths)
            # Whole steps only: the last one has fewer rows.
            full = plan.row_counts[plan.grid].sum(axis=(1, 2)) == ranks * rows
            costs = plan.costs[plan.grid].sum(axis=(1, 2))[full]
            names = ("fill", "straggler_waste", "step_length_variance")
            results.append(
                {"data": name, "ranks": ranks, "rows_of_batch": rows, "deal": deal}
                | {measure: getattr(measures, measure) for measure in names}
                | {"row_randomness": measure_rows(plan, lengths)}
                | {"step_cost_spread": float(costs.std() / costs.mean()) if len(costs) else None}
            )
    return results


def measure_rows(plan: lw.Plan, lengths: Lengths) -> float:
    """Returns the randomness of rows, as if each were a step."""
    return lw.measure([row for number in range(len(plan.costs)) for row in plan.rows(number)], lengths).randomness


def timed(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Returns the processor seconds of each call; a first call of each compiles, then they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in tqdm(range(REPEATS), disable=None):
        for name, call in calls.items():
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return seconds


def measured(packed: Packed, lengths: Lengths) -> dict[str, Any]:
    """Returns the same measures for any rows; checks that each sequence occurs once and no row is too full."""
    members = np.concatenate([np.array(row) for row in packed])
    used = np.add.reduceat(lengths[members], np.cumsum([0, *map(len, packed[:-1])]))
    if not np.array_equal(np.sort(members), np.arange(len(lengths))) or used.max() > CAPACITY:
        raise RuntimeError("not a packing")
    squares = np.array([float((lengths[row].astype(float) ** 2).sum()) for row in packed])
    return {
        "rows": len(packed),
        "fill": float(lengths.sum() / (len(packed) * CAPACITY)),
        "row_randomness": lw.measure(packed, lengths).randomness,
        "cost_spread": float(squares.std() / squares.mean()),
    }


def next_fit(lengths: Lengths) -> Packed:
    """Fills rows in order, each until the next sequence does not fit."""
    rows: Packed = []
    room = 0
    for number, length in enumerate(lengths.tolist()):
        if length > room:
            rows.append([])
            room = CAPACITY
        rows[-1].append(number)
        room -= length
    return rows


def first_fit_decreasing(lengths: Lengths) -> Packed:
    """Puts the longest first, each into the first row with room, by a tree of the most room below each node."""
    size = 1 << len(lengths).bit_length()
    tree = [CAPACITY] * (2 * size)
    rows: Packed = [[] for _ in range(len(lengths))]
    for number in np.argsort(-lengths, kind="stable").tolist():
        length, node = int(lengths[number]), 1
        while node < size:
            node *= 2
            if tree[node] < length:
                node += 1
        rows[node - size].append(number)
        tree[node] -= length
        while node > 1:
            node //= 2
            tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return [row for row in rows if row]


def best_fit_of_trl(lengths: Lengths) -> Packed:
    """Puts the longest first, each into the row with the least sufficient room; rows of equal room queue."""
    size = 1 << (CAPACITY - 1).bit_length()
    tree = [0] * (2 * size)  # the rooms of all rows
    queues: dict[int, deque[list[int]]] = defaultdict(deque)
    rows: Packed = []

    def mark(room: int, value: int) -> None:
        node = size + room - 1
        tree[node] = value
        while node > 1:
            node //= 2
            tree[node] = max(tree[2 * node], tree[2 * node + 1])

    mark(CAPACITY, CAPACITY)
    for number in np.argsort(-lengths, kind="stable").tolist():
        length, node = int(lengths[number]), 1
        while node < size:
            node = 2 * node if tree[2 * node] >= length else 2 * node + 1
        room = tree[node]
        row = queues[room].popleft() if room < CAPACITY else []
        if room == CAPACITY:
            rows.append(row)
        elif not queues[room]:
            mark(room, 0)
        row.append(number)
        queues[room - length].append(row)
        if room > length:
            mark(room - length, room - length)
    return rows


class Peer(NamedTuple):
    """Another packer: `prepare` makes its input and `read` reads its rows; only `pack` is timed."""

    prepare: Callable[[Lengths], Any]
    pack: Callable[[Any], Any]
    read: Callable[[Any], Packed]


def of_lengths(pack: Callable[[Lengths], Packed]) -> Peer:
    """Makes a peer of a packer from lengths to rows."""
    return Peer(lambda lengths: lengths, pack, lambda rows: rows)


def load_trl(folder: Path) -> Peer:
    """Loads `_pack_bfd` of TRL, without the imports of its module."""
    wanted = ("_SegmentTree", "_pack_bfd", "_check_if_columns_can_be_packed")
    source = (folder / "trl" / "data_utils.py").read_text()
    parts = [node for node in ast.parse(source).body if getattr(node, "name", "") in wanted]
    space: dict[str, Any] = {"pa": pa, "pyarrow": pa, "pc": pc, "np": np, "Literal": Literal}
    space |= {"deque": deque, "defaultdict": defaultdict}
    exec(compile(ast.Module(parts, []), "trl", "exec"), space)
    return Peer(tokens_of, lambda table: space["_pack_bfd"](table, CAPACITY), read_tokens)


def tokens_of(lengths: Lengths) -> pa.Table:
    """Returns a table of tokens; each token is the number of its sequence."""
    numbers = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.table({"input_ids": pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers))})


def read_tokens(table: pa.Table) -> Packed:
    """Reads the sequences of each row from its tokens."""
    column = table.column("input_ids").combine_chunks()
    tokens, ends = column.values.to_numpy(), column.offsets.to_numpy()
    rows = (tokens[start:stop] for start, stop in pairwise(ends))
    return [row[np.diff(row, prepend=-1) != 0].tolist() for row in rows]


def trl_version(folder: str | None) -> str | None:
    """Returns the version of TRL in the folder."""
    folders = sorted(Path(folder).glob("trl-*.dist-info")) if folder else []
    return folders[0].name.removeprefix("trl-").removesuffix(".dist-info") if folders else None


if __name__ == "__main__":
    main()
