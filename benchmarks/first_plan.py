"""How long does a program wait for its first plan?

    python benchmarks/first_plan.py [--repeats 5]

Each time in a fresh process: the import, and then the first plan, with an empty cache of kernels (cold) and with a full
one (warm). In seconds of one core, so that what else
the machine does is left out. Cases take turns; the medians count.

Then, in a process that has planned for a while, the first plan of a few hundred lengths that it has not seen, to which
an order is fitted, and the plan of their next epoch.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from record import parser, write

import lengthwise as lw

PROGRAM = """
import json, time
start = time.process_time()
import lengthwise as lw
imported = time.process_time()
lengths = [50 + 37 * k % 901 for k in range({count})]
begun = time.process_time()
lw.make_plan(lengths, {batching}, world_size={ranks})
print(json.dumps({{"import": imported - start, "plan": time.process_time() - begun}}))
"""
BATCHINGS = {
    "random": ("lw.Batching(order=lw.Shuffled(), budget=20_000)", 1),
    "the default": ("lw.Batching(budget=20_000)", 1),
    "the default, 8 ranks": ("lw.Batching(budget=20_000)", 8),
    "optimal:8": ("lw.Batching(order=lw.Bucketed(buckets=8), budget=20_000)", 1),
}
# As few as in an example, and as many as LJSpeech has. Planning takes no time beside what is loaded and compiled.
COUNTS = 1_000, 13_100
FEW, SETS, BEFORE = 300, 60, 40  # lengths; sets of them that are timed, and those that are planned before
BATCHINGS_OF_FEW = {
    "budget of 8,000": lw.Batching(budget=8_000),
    "budget of 20,000": lw.Batching(budget=20_000),
    "16 a batch": lw.Batching(cut=lw.FixedSize(16)),
}


def main() -> None:
    """Measures every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    cases = list(itertools.product(COUNTS, BATCHINGS))
    runs: dict[tuple[int, str], list[dict[str, dict[str, float]]]] = {case: [] for case in cases}
    for _ in range(arguments.repeats):
        for count, name in cases:
            batching, ranks = BATCHINGS[name]
            states = {"cold": PROGRAM, "warm": PROGRAM}
            with tempfile.TemporaryDirectory() as folder:
                runs[count, name].append(
                    {
                        state: in_fresh_process(program.format(count=count, batching=batching, ranks=ranks), folder)
                        for state, program in states.items()
                    }
                )
    rows = [{"count": count, "case": name, **medians(of_case)} for (count, name), of_case in runs.items()]
    few = [time_few(name, batching, ranks) for name, batching in BATCHINGS_OF_FEW.items() for ranks in (1, 8)]
    for row in rows + few:
        print(row)
    print(write("first-plan", {"repeats": arguments.repeats, "rows": rows, "few": few}))


def in_fresh_process(program: str, cache: str) -> dict[str, float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def time_few(name: str, batching: lw.Batching, ranks: int) -> dict[str, object]:
    """Of lengths that no plan was made for: the first plan, and that of the next epoch."""
    sets = lw.example_lengths("long-tailed", count=FEW * (BEFORE + SETS)).reshape(-1, FEW)
    seconds: list[list[float]] = [[], []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a padding that so few lengths do not allow
        for lengths in sets:
            for epoch, found in enumerate(seconds):
                start = time.process_time()
                lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)
                found.append(time.process_time() - start)
    first, later = (statistics.median(found[BEFORE:]) for found in seconds)
    return {"count": FEW, "case": name, "world_size": ranks, "new_seconds": first, "later_seconds": later}


def medians(runs: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Of the import, and of the first plan with an empty and with a full cache."""
    found = {"import_seconds": statistics.median(run["warm"]["import"] for run in runs)}
    for state in ("cold", "warm"):
        found[f"{state}_seconds"] = statistics.median(run[state]["plan"] for run in runs)
    return found


if __name__ == "__main__":
    main()
