"""The names of `import lengthwise as lw`, and what stands behind a door that is locked."""

import ast
import importlib
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


def imports_of_the_front_door():
    """Every name that the package imports for itself or for readers of types, and where it is from."""
    nodes = ast.parse(Path(lw.__file__).read_text(encoding="utf-8")).body
    known = next(node.body for node in nodes if isinstance(node, ast.If))
    for node in [*nodes, *known]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lengthwise."):
            yield from ((alias.asname or alias.name, node.module, node in known) for alias in node.names)


def test_all_are_the_names_that_the_front_door_imports():
    assert lw.__all__ == sorted(name for name, _, _ in imports_of_the_front_door() if not name.startswith("_"))


def test_what_is_imported_on_first_use_is_what_readers_of_types_see():
    told = {name: module for name, module, late in imports_of_the_front_door() if late}
    assert {name: f"lengthwise.{module}" for name, module in lw._HOMES.items()} == told
    for name, module in told.items():
        assert getattr(lw, name) is getattr(importlib.import_module(module), name)


def test_what_few_programs_use_is_imported_when_they_use_it():
    script = """
    import sys
    import lengthwise as lw

    late = {f"lengthwise.{module}" for module in lw._LATE} | {"logging"}
    print(sorted(late & set(sys.modules)))
    print(lw.mixing_limit([1, 2], 0.1) < 1, "lengthwise.measures.limit" in sys.modules, "mixing_limit" in vars(lw))
    print("advise" in dir(lw), hasattr(lw, "advice_of_nobody"))
    """
    assert printed(script).splitlines() == ["[]", "True True True", "True False"]


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
