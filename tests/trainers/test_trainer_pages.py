"""The code of the pages on trainers runs, each page in a process of its own: trainers leave much behind."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.processes

PAGES = sorted((Path(__file__).parents[2] / "docs" / "trainers").glob("*.md"))
TRAINERS = {"accelerate", "deepspeed", "huggingface", "jax", "lightning", "plain"}
OURS = "`.*` must be |Epoch |The state "  # how warnings of ours begin


def code_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


def missing(code):
    """Packages that the code imports and that are not installed."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes]
    return sorted({name.split(".")[0] for name in names if not find_spec(name.split(".")[0])})


def test_every_trainer_has_a_page():
    assert {page.stem for page in PAGES} == TRAINERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page, tmp_path):
    code = code_of(page)
    if missing(code):
        pytest.skip(f"needs {', '.join(missing(code))}")
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    status, printed, errors = run_program(tmp_path / "page.py", tmp_path, message=OURS)
    assert status == 0, errors
    shown = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert shown  # each page shows what is saved
    for block in shown:
        assert block in printed + errors  # Lightning logs it


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_begins_with_three_statements_of_its_recipe(page):
    text = page.read_text(encoding="utf-8")
    first = re.search(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    assert first is not None
    assert first[1] == "py"  # not run by itself
    statements = [ast.unparse(statement) for statement in ast.parse(first[2]).body]
    recipe = {ast.unparse(node) for node in ast.walk(ast.parse(code_of(page))) if isinstance(node, ast.stmt)}
    assert len(statements) == 3
    assert [statement for statement in statements if statement not in recipe] == []
