"""Processes that fill one cache of kernels at the same time, or find one that was damaged, make the same plan."""

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

PLAN = """
import sys
import lengthwise as lw
from lengthwise import _compile

_compile.BEFORE_READING = _compile.BEFORE_COMPILING = 0.0  # nothing runs in Python first
lengths = lw.example_lengths(count=500)
print("ready", flush=True)
sys.stdin.readline()
print(lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.SemiSorted(0.1)), seed=5).fingerprint())
"""


@pytest.fixture(scope="module")
def expected():
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.SemiSorted(0.1))
    return lw.make_plan(lw.example_lengths(count=500), batching, seed=5).fingerprint()


def plans_of(processes, folder):
    """What that many processes print that begin to plan together: fingerprints, and errors with warnings."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", PLAN]
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
    return folder, plans_of(FOUR, folder)


def test_four_processes_that_compile_at_once_make_one_plan(filled, expected):
    folder, printed = filled
    assert printed == [(f"{expected}\n", "")] * FOUR
    assert {path.suffix for path in folder.rglob("*.*")} >= {".nbc", ".nbi"}
    assert plans_of(1, folder) == [(f"{expected}\n", "")]  # from what the four left


def test_two_processes_that_find_damaged_files_make_one_plan_and_mend_them(filled, tmp_path, expected):
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    damaged = sorted(tmp_path.rglob("*.nb[ci]"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:30])
    assert plans_of(TWO, tmp_path) == [(f"{expected}\n", "")] * TWO
    assert all(path.stat().st_size > 30 for path in damaged)
