"""What all tests share: no deadlines, the command line, and a process of their own for the tests of JAX.

A busy machine makes an example of Hypothesis late, and no code wrong.

JAX warns when a process that imported it forks, as a DataLoader with workers does: its tests run in another process.

`tests/jax/test_in_jax_process.py` starts that one.
"""

import gc
import json
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent

OF_JAX = (
    *(f"src/lengthwise/jax/{name}.py" for name in ("__init__", "collate", "epoch", "meter", "rows")),
    "recipes/src/lengthwise_recipes/compiled/jax_lstm.py",
    "recipes/tests/test_compiled.py",
    "tests/jax/test_jax_batches.py",
    "tests/jax/test_jax_rows.py",
)

# A loader's worker is a fork. Were it to collect the garbage of the tests before it, it would end their process groups,
# and wait without end for threads that it does not have. So a fork leaves alone what it inherits.
os.register_at_fork(after_in_child=gc.freeze)

# Each worker has a core. Threads for all cores would wait for each other there, busily: small networks took five times
# as long. NumPy and PyTorch read this when they are loaded; workers and all that tests start inherit it.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Ray would ask for numbers about itself when a process ends, and send them to its makers.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

settings.register_profile("tests", deadline=None, max_examples=50)
settings.load_profile("tests")

collect_ignore = [] if os.environ.get("LENGTHWISE_TESTS_OF_JAX") else list(OF_JAX)

# Files that cannot even be imported without the package of their engine: their tests skip with a reason.
collect_ignore += [f"src/lengthwise/engines/{name}.py" for name in ("dask", "datasets") if not find_spec(name)]


def worker_of(nodeid):
    """What is kept on one worker: a file, or all files of which a test starts processes."""
    path = nodeid.partition("::")[0]
    return "processes" if starts_processes(path) else path


@cache
def starts_processes(path):
    return "mark.processes" in (ROOT / path).read_text()


# What one worker does at a time, longest first: begun late, it would keep one worker after the others have ended.
LONGEST = ("processes", "tests/jax/test_in_jax_process.py", "tests/test_types.py")


def pytest_collection_modifyitems(items):
    """Marks what is fast, and puts what takes longest first."""
    for item in items:
        if item.get_closest_marker("processes") is None and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(worker_of(item.nodeid), len(LONGEST)))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Looks for doctests in the packages only: to look in the tests would import every trainer into each worker."""
    found = yield
    return [each for each in found if "tests" not in file_path.parts or type(each) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collects no garbage while it loads all packages, of which none is garbage, and leaves alone what was loaded.

    Tests that collect garbage a hundred times would search all of it each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def quick_collections(request):
    """Leaves alone what other tests left, too: each step that runs out of memory collects garbage."""
    if request.path.name in {"budget.py", "test_budget.py"}:
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `-n`: fixtures of a file are made once, and no test that starts processes runs beside another.

    Not by `--dist loadgroup`: under pytest 9.2, pytest-xdist 3.8 sends every test by itself (its issue 1386).
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
        """What stands on standard output, which must be JSON and nothing else."""
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
    from lengthwise.advice import search

    monkeypatch.setattr(search, "_MOST_EPOCHS", 2)


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
