"""Settings and fixtures of all tests: no deadlines, the command line, and a process of its own for the tests of JAX.

On a busy machine an example of Hypothesis is late, and no code is wrong.

JAX warns when a process that imported it forks, as a DataLoader with workers does. So the files that import JAX run in
another process, which `tests/jax/test_in_jax_process.py` starts.
"""

import gc
import json
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent

OF_JAX = [
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("src/lengthwise/jax/*.py"))),
    *("tests/jax/test_jax_batches.py", "tests/jax/test_jax_rows.py"),
    *("recipes/src/lengthwise_recipes/compiled/jax_lstm.py", "recipes/tests/test_compiled.py"),
]
OF_JAX = [name for name in OF_JAX if (ROOT / name).exists()]  # the source distribution has no recipes

# Parts of programs, for packages that may not be installed.
collect_ignore_glob = ["tests/trainers/stand_ins/*"]

# A loader's worker is a fork. If it collected the garbage of earlier tests, it would end their process groups, and wait
# without end for threads that it does not have.
os.register_at_fork(after_in_child=gc.freeze)

# Each worker has one core, where more threads wait for each other: small networks took five times as long. NumPy and
# PyTorch read this when they are loaded. Workers and the processes of tests inherit it.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# When a process ends, Ray would send numbers about its use to its makers.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

settings.register_profile("tests", deadline=None, max_examples=50)
settings.load_profile("tests")

collect_ignore = [] if os.environ.get("LENGTHWISE_TESTS_OF_JAX") else OF_JAX[:]


def worker_of(nodeid):
    """Returns what is kept on one worker: a file, or "processes" for all files whose tests start some."""
    path = nodeid.partition("::")[0]
    return "processes" if starts_processes(path) else path


@cache
def starts_processes(path):
    return "mark.processes" in (ROOT / path).read_text()


# The longest come first. If one worker began them late, the others would wait for it.
LONGEST = ("processes", "tests/jax/test_in_jax_process.py")


def pytest_collection_modifyitems(items):
    """Marks fast tests, and puts the longest first."""
    for item in items:
        if item.get_closest_marker("processes") is None and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(worker_of(item.nodeid), len(LONGEST)))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Collects doctests of the packages only. Those of the tests would import every trainer into each worker."""
    modules = yield
    return [module for module in modules if "tests" not in file_path.parts or type(module) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keeps the collector of garbage away from the packages: tests that call it often would search them each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def quick_collections(request):
    """Keeps the collector away from what other tests left, too: each step that runs out of memory calls it."""
    if request.path.name in {"budget.py", "test_budget.py"}:
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keeps the tests of a file on one worker, and those that start processes on one, with `-n`.

    Under pytest 9.2, `--dist loadgroup` of pytest-xdist 3.8 sends every test by itself (its issue 1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return worker_of(nodeid)

    config.option.loadscopereorder = False  # the order is that of the items
    return ByFile(config, log)


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        """The JSON on standard output, where nothing else may stand."""
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    def command(*words):
        from lengthwise.cli import main

        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as leaving:
            status = leaving.code
        return Done(status, *capsys.readouterr())

    return command


@pytest.fixture
def few_epochs(monkeypatch):
    """Has `advise` measure each contender on two epochs in place of eight, which takes a third of the time."""
    from lengthwise.measures import metrics

    monkeypatch.setattr(metrics, "MOST_EPOCHS", 2)


@pytest.fixture
def four(tmp_path):
    """Sorted in twos they make the batches (2, 4) and (5, 9): 26 frames for 20."""
    path = tmp_path / "four.csv"
    path.write_text("name,frames,other\na,4,1\nb,2,1\nc,9,1\nd,5,1\n")
    return f"{path}:frames"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\n" + "".join(f"{3 + n % 7},{2 + n % 5}\n" for n in range(40)))
    return f"{path}:source,target"


@pytest.fixture
def unwritable(tmp_path):
    return tmp_path / "no_such_folder" / "file.json"


@pytest.fixture
def out(tmp_path):
    """The file that `write_lengths` writes."""
    return tmp_path / "lengths.npy"
