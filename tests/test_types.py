"""The types agree. Ruff sees to it that every public function has some: together what `py.typed` promises."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYRIGHT = Path(sys.executable).with_name("pyright")
BASES = ("torch", "lightning", "transformers")  # packages whose classes ours extend


@pytest.mark.slow
@pytest.mark.skipif(not PYRIGHT.exists() or not all(map(find_spec, BASES)), reason="needs the extra `dev`")
def test_the_types_agree():
    """In the tests, not before them: one core would do nothing meanwhile."""
    # Pyright asks the first `python` on the path where other packages are.
    environment = os.environ | {"PATH": os.pathsep.join([str(PYRIGHT.parent), os.environ["PATH"]])}
    started = {"env": environment, "cwd": ROOT, "capture_output": True, "text": True, "timeout": 900}
    if subprocess.run([PYRIGHT, "--version"], **started).returncode:
        pytest.skip("pyright cannot run: it fetches itself on first use")
    done = subprocess.run([PYRIGHT], **started)
    assert done.returncode == 0, done.stdout + done.stderr
