"""The names of `import lengthwise as lw`, and what stands behind a door that is locked."""

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import lengthwise as lw

EXTRAS = {"torch": "lengthwise.torch needs PyTorch", "jax": "lengthwise.jax needs JAX"}

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


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_that_is_not_installed_is_named_and_hasattr_says_no(extra):
    script = f"""
    import sys

    sys.modules[{extra!r}] = None
    import lengthwise as lw

    print(hasattr(lw, {extra!r}), getattr(lw, {extra!r}, "nothing"))
    try:
        lw.{extra}.BatchSampler
    except AttributeError as error:
        print(error)
    for line in ("from lengthwise import {extra}", "import lengthwise.{extra}"):
        try:
            exec(line)
        except ImportError as error:
            print(error)
    """
    sentence = f'{EXTRAS[extra]}: pip install "lengthwise[{extra}]"'
    assert printed(script).splitlines() == ["False nothing", sentence, sentence, sentence]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name"), [("altair", "histogram"), ("vl_convert", "save_chart"), ("jinja2", "save_page")]
)
def test_reports_have_a_door_without_what_draws_them(package, name):
    script = f"""
    import sys

    sys.modules[{package!r}] = None
    import lengthwise as lw

    print(hasattr(lw, "report"), {name!r} in dir(lw.report))
    try:
        lw.report.{name}
    except ImportError as error:
        print(error)
    """
    sentence = 'Charts need Altair and vl-convert. Install them with: pip install "lengthwise[report]"'
    assert printed(script).splitlines() == ["True True", sentence]


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


@pytest.mark.parametrize("name", lw.__all__)
def test_every_public_name_says_what_it_is(name):
    thing = getattr(lw, name)
    written = inspect.getdoc(thing) or ""
    assert written, "no docstring"
    assert not written.startswith(f"{name}("), "the docstring that Python makes of the fields"


@pytest.mark.parametrize("name", ["Arrangement", "Cost", "Cut", "Deal", "Order"])
def test_a_protocol_says_of_every_method_what_it_takes(name):
    verbs = {verb: member for verb, member in vars(getattr(lw, name)).items() if verb in VERBS[name]}
    assert set(verbs) == VERBS[name]
    assert all(inspect.getdoc(member) for member in verbs.values())


def test_dir_lists_the_public_names_and_the_doors():
    names = [name for name in dir(lw) if not name.startswith("_")]
    assert names == sorted([*lw.__all__, "jax", "report", "torch"])
    assert {"__version__", "__doc__", "__all__"} <= set(dir(lw))


def test_a_name_that_does_not_exist_is_missed():
    with pytest.raises(AttributeError, match=r"^module 'lengthwise' has no attribute 'nothing'$"):
        lw.nothing  # noqa: B018
