"""Plans the same lengths by other systems and by Lengthwise, and measures the batches that each rank would get.

    python -m benchmarks.peers [PEER ...] [--data NAME ...] [--worlds RxM ...] [--sequences N ...]

Any part can be measured again: a row takes the place of that of the same peer, lengths, world and count in the latest
result of this machine. All take some hours, and 13 GB for the environments.

Each peer is called as its own trainer calls it (`peer_calls.py`), in a process and an environment of its own under
out/peers, which this command makes: the project installs none of them. All have the same cap of padded frames, or of
tokens in a row; those that count sequences take as many as 0.95 of the cap holds on average. Attention costs a sequence
of length L as L (1 + L / 1,000). Lengths are drawn, but for those of LJSpeech and Multi30k.

    padding, waiting, price    of the first epoch, in whole steps; the last two also under attention
    randomness                 of its steps
    over, largest              the share of batches over the cap, and the largest batch over the cap
    lost, repeated             sequences that no rank takes in an epoch, and places where a sequence is taken again
    unequal                    the most steps of a rank less the fewest, over ranks and epochs
    kept                       the share of neighbours in a batch that share a batch in the next epoch, too
    thousand_a_second, bytes   sequences a CPU second of one rank, at best, and peak bytes for each sequence

Peers named "like_..." are Lengthwise with the settings that docs/switch.md gives to those who come from another system.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import peer_ours
from numpy.typing import NDArray
from record import DATA, RESULTS, hardware, parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise_recipes.record import read
from sections.peers import peers as section

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "out" / "peers"
EPOCHS = 2
LIMIT = 1_800  # seconds of one call of a peer
ATTENTION = lw.Quadratic(quadratic=0.001)
CAPS = {"long-tailed": 20_000, "LJSpeech": 20_000, "chats": 32_768, "two humps": 20_000, "pairs": 4_096}
CAPACITIES = {"documents": 4_096}  # of rows, for those that pack
PACKING = ("lengthwise_rows", "lengthwise_rows:64", "lengthwise_best_fit", "trl", "axolotl", "grain", "torchtitan")
OURS = ("lengthwise", "lengthwise_attention", *PACKING[:3])
LIKE = tuple(f"like_{name}" for name in peer_ours.LIKE)  # measured on long-tailed lengths and several ranks alone
# For each environment, what pip installs, and its peers, with a number of buckets, or a multiple, after a colon. A
# package with "!" comes without what it requires, because only one module of it is imported.
ENVIRONMENTS = {
    "numpy": ("numpy", ("random", "fairseq", "fairseq:1")),
    "transformers": ("transformers[torch]", ("group_by_length", "batch_rebalance")),
    "lhotse": ("lhotse torch urllib3", ("lhotse", "nemo", "lhotse_concurrent", "lhotse:100")),
    "speechbrain": (
        "speechbrain! hyperpyyaml torch numpy scipy tqdm packaging huggingface_hub requests sentencepiece joblib",
        ("speechbrain", "speechbrain:300"),
    ),
    "espnet": ("espnet! typeguard torch numpy", ("espnet",)),
    "returnn": ("returnn torch", ("returnn",)),
    "tensorflow-cpu": ("tensorflow-cpu", ("tf_data", "tf_data:100")),
    "fastai": ("fastai torch", ("fastai",)),
    "verl": ("verl! torch numpy", ("verl",)),
    "trl": ("trl torch", ("trl",)),
    "axolotl": ("axolotl! transformers[torch] numba numpy", ("axolotl",)),
    "grain": ("grain", ("grain",)),
    "torchtitan": ("torchtitan! torch torchdata datasets tokenizers tyro spmd_types==0.2.3 numpy", ("torchtitan",)),
}
PACKAGES = dict.fromkeys([*OURS, *LIKE]) | {peer: name for name, (_, peers) in ENVIRONMENTS.items() for peer in peers}
PACKAGES = dict(sorted(PACKAGES.items(), key=lambda item: item[0].endswith("00")))  # other numbers of buckets last
COUNT, WORLD = 30_000, "8x4"
WORLDS = {"long-tailed": ("1x1", "8x1", WORLD), "documents": ("1x1", WORLD)}
# These two are also planned for more sequences: for 10,000,000 by ours, and for as many as take a rank a minute.
MANY, MOST_SECONDS = (100_000, 1_000_000, 10_000_000), 60.0


def main() -> None:
    """Measures, prints the rows, and writes them into the result."""
    options = parser(__doc__)
    options.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(PACKAGES)} (all)")
    options.add_argument("--data", nargs="*", metavar="NAME", help=f"of {', '.join(CAPS | CAPACITIES)} (all)")
    options.add_argument("--worlds", nargs="*", metavar="RxM", help=f"ranks x micro-batches ({WORLD}; {WORLDS})")
    many = f"({COUNT}; up to {MANY[-1]} of {', '.join(WORLDS)})"
    options.add_argument("--sequences", nargs="*", type=int, metavar="N", help=f"numbers of drawn lengths {many}")
    arguments, written = options.parse_args(), ""
    for peer in tqdm(arguments.peers or list(PACKAGES), disable=None):
        python, release = prepare(PACKAGES[peer])
        rows: list[dict[str, Any]] = []
        for name, world, count in cases(peer, arguments):
            slow = count > COUNT and not arguments.sequences and peer not in OURS
            if slow and count / 1e3 > MOST_SECONDS * rows[-1].get("thousand_a_second", 0.0):
                continue
            about = {"peer": peer, "version": release, "data": name, "world": world}
            about |= {"date": f"{datetime.now(UTC):%Y-%m-%d}"}
            rows.append(about | measure(peer, python, name, count, world, judged=count <= COUNT))
            print_row(rows[-1])
        written = write_rows(rows, whole=len(sys.argv) == 1)
        tqdm.write(written)
    if written.endswith(".json"):
        print(*section(read(Path(written))), sep="\n\n")


def cases(peer: str, arguments: Namespace) -> Iterator[tuple[str, str, int]]:
    """Yields the lengths, the world and the count of each row: those that are asked for, or those of the page."""
    names = CAPACITIES if peer in PACKING else ("long-tailed",) if peer in LIKE else CAPS
    worlds = {} if peer in LIKE else WORLDS
    for name in [name for name in names if name in (arguments.data or names)]:
        for world in arguments.worlds or worlds.get(name, [WORLD]):
            for count in arguments.sequences or (COUNT, *(MANY if name in worlds and world == WORLD else ())):
                yield name, world, count


def write_rows(rows: list[dict[str, Any]], *, whole: bool) -> str:
    """Writes rows into the latest result of this machine, under the date of today; without one, only a `whole` run."""
    paths = [path for path in RESULTS.glob("peers_*.json") if read(path)["machine"]["processor"] == hardware()]
    if not (paths or whole):
        return "This machine has no result of all peers, so the rows are not written."
    every = merge(read(max(paths))["rows"] if paths else [], rows)
    document = {"epochs": EPOCHS, "caps": CAPS | CAPACITIES, "rows": every}
    path = write("peers", {"command": "python -m benchmarks.peers", **document})
    for older in {*paths} - {path}:
        older.unlink()
    return str(path)


def merge(rows: list[dict[str, Any]], newer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns both, in the order of the peers; a newer row replaces that of the same peer, lengths, world and count."""
    by_case = {tuple(row[name] for name in ("peer", "data", "world", "sequences")): row for row in [*rows, *newer]}
    return sorted(by_case.values(), key=lambda row: [*PACKAGES].index(row["peer"]))


def measure(peer: str, python: Path, name: str, count: int, world: str, *, judged: bool = True) -> dict[str, Any]:
    """Returns the measures of a peer; or, if it fails, its error."""
    lengths = draw(name, count)
    ranks, micro_batches = map(int, world.split("x"))
    case = {"cap": (CAPS | CAPACITIES)[name], "ranks": ranks, "micro_batches": micro_batches, "epochs": EPOCHS}
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "input.npz", Path(folder) / "out.npz"
        np.savez(source, lengths=lengths, **case)
        command = [python, Path(__file__).with_name("peer_calls.py"), peer, source, out]
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return {"sequences": len(lengths), "error": f"took over {LIMIT} s"}
        if process.returncode:
            error = process.stderr.strip().rpartition("\n")[2][:200]
            return {"sequences": len(lengths), "error": "out of memory" if process.returncode == -9 else error}
        arrays = dict(np.load(out))
    epochs = [{name: arrays[f"{name}{epoch}"] for name in ("places", "sizes", "counts")} for epoch in range(EPOCHS)]
    seconds = min(float(arrays[f"seconds{epoch}"]) for epoch in range(EPOCHS))
    row: dict[str, Any] = {"sequences": len(lengths), "thousand_a_second": len(lengths) / seconds / 1e3}
    row["bytes"] = float(arrays["peak"]) / len(lengths)
    return row | (judge(epochs, lengths, peer, case) if judged else {})


def draw(name: str, count: int) -> NDArray[np.int64]:
    """Returns real lengths, or `count` drawn ones."""
    if name == "LJSpeech":
        return lw.read_lengths(DATA / "ljspeech" / "ljspeech_lengths.csv", column="frames_12p5ms")
    if name == "pairs":
        return lw.read_lengths(DATA / "lengths" / "multi30k_train_en_de_tokens.npy")
    if name == "long-tailed":
        return lw.example_lengths("long-tailed", count=count)
    chance = np.random.default_rng(0)
    if name == "chats":
        return np.clip(chance.lognormal(6.2, 1.0, count), 20, 16_000).astype(np.int64)
    if name == "documents":  # of mean 1,400
        return np.clip(np.rint(chance.lognormal(-0.245, 0.7, count) * 1_400), 1, 4_096).astype(np.int64)
    humps = np.where(chance.random(count) < 0.5, chance.normal(200, 30, count), chance.normal(2_000, 200, count))
    return np.clip(humps, 10, 4_000).astype(np.int64)


def prepare(package: str | None) -> tuple[Path, str]:
    """Makes an environment, unless it is there; returns its Python, and the version of its package."""
    if package is None:
        return Path(sys.executable), f"lengthwise {version('lengthwise')}"
    needs = ENVIRONMENTS[package][0]
    python, ready = FOLDER / package / "bin" / "python", FOLDER / package / "ready.txt"
    if not ready.exists() or ready.read_text() != needs:
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER / package], check=True)
        constraint = ("--constraint", ROOT / "constraints.txt") if "torch" in needs else ()
        install = [python, "-m", "pip", "install", "--quiet", *constraint]
        subprocess.run([*install, *(word for word in needs.split() if not word.endswith("!"))], check=True)
        if needs.startswith(f"{package}!"):
            subprocess.run([*install, "--no-deps", package], check=True)
        ready.write_text(needs)
    script = f"from importlib.metadata import version; print(version({package!r}))"
    process = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return python, f"{package} {process.stdout.strip()}"


def judge(epochs: list[dict[str, Any]], lengths: NDArray[np.int64], peer: str, case: dict[str, int]) -> dict[str, Any]:
    """Returns the measures of the batches of the ranks."""
    places, sizes, counts = (epochs[0][name] for name in ("places", "sizes", "counts"))
    sides, starts = lengths.reshape(len(lengths), -1), np.cumsum(sizes) - sizes
    longest = np.maximum.reduceat(sides[places], starts)
    frames = np.add.reduceat(sides[places].sum(axis=1), starts)
    alone = np.add.reduceat(ATTENTION(np.ones(len(places)), sides[places]), starts)
    computed, attention = sizes * longest.sum(axis=1), ATTENTION(sizes, longest)
    largest = computed
    if peer in PACKING or peer == "verl":  # nothing is padded but rows, and attention does not look across sequences
        largest, attention = frames, alone
        computed = np.full(len(sizes), case["cap"]) if peer in PACKING else frames
    times = np.bincount(places, minlength=len(lengths))
    steps = np.array([epoch["counts"] / case["micro_batches"] for epoch in epochs])
    # Steps that all ranks have, [steps, micro-batches, ranks]; the batches of one rank stand together.
    full_steps = int(counts.min()) // case["micro_batches"]
    grid = np.arange(full_steps * case["micro_batches"]).reshape(full_steps, -1, 1) + np.cumsum(counts) - counts
    batches = np.split(places, starts[1:])
    world = {"world_size": case["ranks"], "micro_batches": case["micro_batches"]}
    row = {
        "padding": 1.0 - float(frames.sum() / computed.sum()),
        "randomness": lw.measure([batches[place] for place in grid.flat], lengths, **world).randomness,
        "over": float(np.mean(largest > case["cap"])),
        "largest": float(largest.max() / case["cap"]),
        "lost": int((times == 0).sum()),
        "repeated": int((times - 1).clip(0).sum()),
        "unequal": float(steps.max() - steps.min()),
        "kept": keep(*epochs),
        "steps": float(steps.mean()),
    }
    for prefix, cost, needed in (("", computed, frames), ("attention_", attention, alone)):
        of_ranks = cost[grid].sum(axis=1)
        paid = of_ranks.max(axis=1).sum() * case["ranks"]
        row[f"{prefix}waiting"] = 1.0 - float(of_ranks.sum() / paid)
        row[f"{prefix}price"] = float(paid / needed[grid].sum())
    return row


def keep(first: dict[str, Any], second: dict[str, Any]) -> float:
    """Returns the share of neighbours in the batches of an epoch that share a batch of the next."""
    batch_of = np.full(1 + max(first["places"].max(), second["places"].max()), -1)
    batch_of[second["places"]] = np.repeat(np.arange(len(second["sizes"])), second["sizes"])
    batch = np.repeat(np.arange(len(first["sizes"])), first["sizes"])
    together = batch[1:] == batch[:-1]
    left, right = batch_of[first["places"][:-1][together]], batch_of[first["places"][1:][together]]
    return float(np.mean((left == right) & (left >= 0))) if len(left) else 0.0


def print_row(row: dict[str, Any]) -> None:
    """Prints a row as JSON on one line."""
    tqdm.write(
        json.dumps({name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()})
    )


if __name__ == "__main__":
    main()
