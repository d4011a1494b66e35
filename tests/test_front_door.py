"""The names of `import lengthwise as lw`, and what stands behind a door that is locked."""

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import lengthwise as lw

VERBS = {
    "Arrangement": {"__call__"},
    "Cost": {"__call__"},
    "Cut": {"__call__", "max_cost", "batch_sizes"},
    "Deal": {"tail", "portions", "grid"},
    "Order": {"__call__"},
}


def printed(script):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_what_is_not_installed_is_named_and_hasattr_says_no():
    script = """
    import sys

    for package in ("torch", "jax", "altair", "vl_convert", "jinja2"):
        sys.modules[package] = None
    import lengthwise as lw

    print(hasattr(lw, "torch"), getattr(lw, "jax", "nothing"), hasattr(lw, "report"), "histogram" in dir(lw.report))
    for line in (
        "lw.torch.BatchSampler", "from lengthwise import torch", "import lengthwise.torch",
        "lw.jax.PackedRows", "from lengthwise import jax", "import lengthwise.jax", "lw.report.histogram",
    ):
        try:
            exec(line)
        except (AttributeError, ImportError) as error:
            print(error)
    for package, name in (("vl_convert", "save_chart"), ("jinja2", "save_page")):
        del sys.modules[{"vl_convert": "altair", "jinja2": "vl_convert"}[package]]
        try:
            getattr(lw.report, name)
        except ImportError as error:
            print(error)
    """
    lines = printed(script).splitlines()
    assert lines == [
        "False nothing True True",
        *3 * ["lengthwise.torch needs PyTorch: pip install torch"],
        *3 * ["lengthwise.jax needs JAX: pip install jax"],
        *3 * ["Charts need Altair, jinja2 and vl-convert: pip install altair jinja2 vl-convert-python"],
    ]


def test_a_star_imports_every_public_name_and_no_framework():
    script = """
    import sys

    before = set(globals()) | {"before"}
    from lengthwise import *

    print(sorted(set(globals()) - before))
    print(sorted({"torch", "jax", "altair"} & set(sys.modules)))
    """
    assert printed(script).splitlines() == [str(sorted(lw.__all__)), "[]"]


def test_all_are_the_names_that_the_front_door_imports():
    nodes = ast.parse(Path(lw.__file__).read_text(encoding="utf-8")).body
    modules = [node for node in nodes if isinstance(node, ast.ImportFrom) and str(node.module).startswith("lengthwise")]
    assert lw.__all__ == sorted(alias.name for node in modules for alias in node.names)


@pytest.mark.parametrize("name", VERBS)
def test_a_protocol_says_of_every_method_what_it_takes(name):
    verbs = {verb: member for verb, member in vars(getattr(lw, name)).items() if verb in VERBS[name]}
    assert set(verbs) == VERBS[name]
    assert all(inspect.getdoc(member) for member in verbs.values())


def test_dir_lists_the_public_names_and_the_doors():
    names = [name for name in dir(lw) if not name.startswith("_")]
    assert names == sorted([*lw.__all__, "jax", "report", "torch"])
    assert {"__version__", "__doc__", "__all__"} <= set(dir(lw))
    with pytest.raises(AttributeError, match=r"^module 'lengthwise' has no attribute 'nothing'$"):
        lw.nothing  # noqa: B018
