"""What all tests share: no deadlines, the command line, and a process of their own for the tests of JAX.

A busy machine makes an example of Hypothesis late, and no code wrong.

JAX warns when a process that imported it forks, as a DataLoader with workers does: its tests run in another process.

`tests/test_in_jax_process.py` starts that one.
"""

import gc
import json
import os
from importlib.util import find_spec
from typing import NamedTuple

import pytest
from hypothesis import settings

OF_JAX = (
    "src/lengthwise/jax.py",
    "recipes/src/lengthwise_recipes/compiled/jax_lstm.py",
    "recipes/tests/test_compiled.py",
    "tests/test_jax.py",
)

# A loader's worker is a fork. Were it to collect the garbage of the tests before it, it would end their process groups,
# and wait without end for threads that it does not have. So a fork leaves alone what it inherits.
os.register_at_fork(after_in_child=gc.freeze)

# Ray would ask for numbers about itself when a process ends, and send them to its makers.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

collect_ignore = [] if os.environ.get("LENGTHWISE_TESTS_OF_JAX") else list(OF_JAX)

# Files that cannot even be imported without the package of their engine: their tests skip with a reason.
OF_ENGINES = {"dask": "dask", "huggingface": "datasets", "ray": "ray"}
collect_ignore += [
    f"src/lengthwise/engines/{name}.py" for name, package in OF_ENGINES.items() if not find_spec(package)
]


def pytest_collection_modifyitems(items):
    """Marks what is fast. With `-n`, keeps a file on one worker, and all that start processes on the same one."""
    for item in items:
        starts_processes = item.get_closest_marker("processes") is not None
        group = item.get_closest_marker("xdist_group")
        if group is None:
            item.add_marker(pytest.mark.xdist_group("processes" if starts_processes else str(item.path)))
        if not starts_processes and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)
    items.sort(key=lambda item: item.get_closest_marker("processes") is None)  # the longest group begins first


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
