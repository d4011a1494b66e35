"""Kernels are compiled once, and their machine code is kept on disk."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from lengthwise import _compile

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


def test_a_kernel_is_compiled_again_if_any_file_beside_it_has_changed(source):
    """Kernels call those of other files, but Numba looks at a kernel's own file alone."""
    assert make_double(source)(4) == 8
    (source.parent / "beside.py").write_text("CHANGED = True")
    compiled = []
    with _compile.listen(lambda: compiled.append(1)):
        assert make_double(source)(4) == 8
    assert compiled == [1]
    assert len(list(source.parent.rglob("*.nbc"))) == 2  # another process may still load the first


def test_a_folder_that_takes_no_files_any_more_stops_nothing(source):
    double = make_double(source)
    folder = Path(double.stats.cache_path)
    shutil.rmtree(folder)
    folder.write_text("As on a full disk, nothing can be written here.")
    assert double(4) == 8


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("spoil", [lambda _: b"", lambda kept: kept[:-9], lambda _: pickle.dumps("not of Numba" * 9)])
def test_files_that_were_cut_off_or_are_foreign_are_written_again(source, suffix, spoil):
    assert make_double(source)(4) == 8
    (path,) = source.parent.rglob(f"*{suffix}")
    path.write_bytes(spoil(path.read_bytes()))
    compiled = []
    with _compile.listen(lambda: compiled.append(1)):
        assert make_double(source)(4) == 8
        assert make_double(source)(4) == 8
    assert compiled == [1]


def test_importing_the_package_does_not_import_the_compiler():
    program = "import sys, lengthwise; print('numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


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
