"""The types agree, and every public name has one that a type checker can read: what `py.typed` promises."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYRIGHT = Path(sys.executable).with_name("pyright")
BASES = ("torch", "lightning", "transformers")  # packages whose classes ours extend


def pyright(*words):
    # Pyright asks the first `python` on the path where other packages are.
    path = os.pathsep.join([str(PYRIGHT.parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path}
    return subprocess.run([PYRIGHT, *words], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYRIGHT.exists() or not all(map(find_spec, BASES)), reason="needs the extra `dev`"),
]


@pytest.fixture(scope="module", autouse=True)
def runs():
    if pyright("--version").returncode:
        pytest.skip("pyright cannot run: it fetches itself on first use")


def test_the_types_agree():
    """In the tests, not before them: one core would do nothing meanwhile."""
    done = pyright()
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_has_a_type():
    done = pyright("--verifytypes", "lengthwise", "--ignoreexternal")
    assert "Type completeness score: 100%" in done.stdout, done.stdout + done.stderr
