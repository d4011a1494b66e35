"""How long does a program wait for its first plan?

    python benchmarks/first_plan.py [--repeats 5]

Each time in a fresh process: the import, and then the first plan, with an empty cache of kernels (cold) and with a full
one (warm). In seconds of one core, so that what else the machine does is left out. Cases take turns; the medians count.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from record import parser, write

# A thousand lengths: what is planned takes no time, and what is loaded and compiled takes all of it.
PROGRAM = """
import json, time
start = time.process_time()
import lengthwise as lw
imported = time.process_time()
lw.make_plan([50 + 37 * k % 901 for k in range(1_000)], {batching}, world_size={ranks})
print(json.dumps({{"import": imported - start, "plan": time.process_time() - imported}}))
"""
CASES = {
    "random": ("lw.Batching(order=lw.Shuffled(), budget=20_000)", 1),
    "the default": ("lw.Batching(budget=20_000)", 1),
    "the default, 8 ranks": ("lw.Batching(budget=20_000)", 8),
    "optimal:8": ("lw.Batching(order=lw.Bucketed(buckets=8), budget=20_000)", 1),
}


def main() -> None:
    """Measures every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    runs: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in CASES}
    for _ in range(arguments.repeats):
        for name, (batching, ranks) in CASES.items():
            with tempfile.TemporaryDirectory() as folder:
                program = PROGRAM.format(batching=batching, ranks=ranks)
                runs[name].append({state: in_fresh_process(program, folder) for state in ("cold", "warm")})
    rows = [{"case": name, **medians(of_case)} for name, of_case in runs.items()]
    for row in rows:
        print(row)
    print(write("first-plan", {"repeats": arguments.repeats, "rows": rows}))


def in_fresh_process(program: str, cache: str) -> dict[str, float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def medians(runs: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Of the import, and of the first plan with an empty and with a full cache."""
    found = {"import_seconds": statistics.median(run["warm"]["import"] for run in runs)}
    for state in ("cold", "warm"):
        found[f"{state}_seconds"] = statistics.median(run[state]["plan"] for run in runs)
    return found


if __name__ == "__main__":
    main()
