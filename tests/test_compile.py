"""Kernels are compiled once, and their machine code is kept on disk."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from lengthwise import _compile, _kernels
from sources import imported

MODULE = """
from lengthwise._compile import kernel

@kernel
def double(number):
    return 2 * number
"""


def make_double(path):
    """The kernel of a file, made anew as another process makes it."""
    made = {}
    exec(compile(MODULE, str(path), "exec"), made)
    return made["double"]


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file of one kernel, with a cache of its own."""
    path = tmp_path / "tiny.py"
    path.write_text(MODULE)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))  # from which Numba sets the other again
    return path


def test_who_listens_is_told_of_what_is_compiled_and_of_nothing_that_is_on_disk(source):
    compiled = []
    with _compile.listen(lambda: compiled.append(1)):
        assert make_double(source)(4) == 8
        assert len(compiled) == 1
        again = make_double(source)
        assert again(4) == 8
        assert len(compiled) == 1
    assert sum(again.stats.cache_hits.values()) == 1
    assert make_double(source)(4.5) == 9.0
    assert len(compiled) == 1  # nobody listens


def test_without_a_folder_to_write_in_kernels_are_compiled(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert make_double("<no file>")(4) == 8  # beside no file there is no folder


def test_kernels_call_no_kernel_of_another_file():
    """Numba looks at a kernel's own file alone to see whether machine code is out of date.

    Steps are the exception, for one file would be too long: who changes `cuts` empties the cache.
    """
    folder = Path(_kernels.__file__).parent
    calls = {
        (path.stem, name.split(".")[2])
        for path in folder.glob("[!_]*.py")
        for name in imported(path, folder.parent)
        if name.startswith("lengthwise._kernels.")
    }
    assert calls == {("steps", "cuts")}


@pytest.mark.slow
def test_the_first_plan_of_a_process_needs_no_compiler_where_another_one_has_planned(tmp_path):
    program = (
        "import lengthwise as lw; from lengthwise import _compile; compiled = []\n"
        "with _compile.listen(lambda: compiled.append(1)):\n"
        "    lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled()))\n"
        "print(len(compiled) > 0)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    printed = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()
        for _ in range(2)
    ]
    assert printed == ["True", "False"]
