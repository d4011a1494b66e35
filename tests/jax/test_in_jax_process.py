"""Runs the tests that import JAX in a process of their own: this one forks."""

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "recipes/src", "recipes/tests")
OF_JAX = runpy.run_path(str(ROOT / "conftest.py"))["OF_JAX"]


def test_what_imports_jax():
    if find_spec("jaxlib") is None:  # without JAX, the name `jax` would be that of this folder
        pytest.skip("JAX is not installed")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *OF_JAX]
    # XLA optimises for long runs, and takes several times as long to compile: these steps are counted and compared.
    environment = os.environ | {"LENGTHWISE_TESTS_OF_JAX": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    print(ran.stdout)


def test_no_other_file_imports_jax():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    lines = ("import jax", "from jax", "from lengthwise.jax", 'importorskip("jax")', "from lengthwise import jax")
    found = {str(path.relative_to(ROOT)) for path in files if any(line in path.read_text() for line in lines)}
    named = {"src/lengthwise/__init__.py", "tests/jax/test_in_jax_process.py", "tests/test_front_door.py"}
    assert found - named == set(OF_JAX)
