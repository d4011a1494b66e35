"""Processes that fill one cache of kernels at the same time, or find one that was damaged, draw the same numbers."""

import os
import shutil
import subprocess
import sys

import pytest

import lengthwise as lw

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PATIENCE = 120
FOUR = 4  # twice the cores of a small machine: each loads Numba, and compiles
TWO = 2  # as many as write one file at the same time

# What plans begin with: four kernels, of which one calls another that calls the third.
DRAW = """
import sys
import lengthwise as lw
from lengthwise import _compile

_compile.BEFORE_READING = _compile.BEFORE_COMPILING = 0.0  # nothing runs in Python first
print("ready", flush=True)
sys.stdin.readline()
print(lw.Key(seed=5).uniform(500).tolist())
"""


@pytest.fixture(scope="module")
def expected():
    return f"{lw.Key(seed=5).uniform(500).tolist()}\n", ""


def drawn_by(processes, folder):
    """What that many processes print that begin to draw together: numbers, and errors with warnings."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", DRAW]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(processes)]
    try:
        assert [process.stdout.readline() for process in started] == ["ready\n"] * processes
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        return [process.communicate(timeout=PATIENCE) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The folder of a cache that was empty, and what the four print that filled it together."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, drawn_by(FOUR, folder)


def test_four_processes_that_compile_at_once_draw_the_same(filled, expected):
    folder, printed = filled
    assert printed == [expected] * FOUR
    assert {path.suffix for path in folder.rglob("*.*")} >= {".nbc", ".nbi"}
    assert drawn_by(1, folder) == [expected]  # from what the four left


def test_two_processes_that_find_damaged_files_draw_the_same_and_mend_them(filled, tmp_path, expected):
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    damaged = sorted(tmp_path.rglob("*.nb[ci]"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:30])
    assert drawn_by(TWO, tmp_path) == [expected] * TWO
    assert all(path.stat().st_size > 30 for path in damaged)
