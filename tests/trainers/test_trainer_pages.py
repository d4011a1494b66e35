"""The code of the pages on trainers runs, each page in a process of its own: trainers leave much behind."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DOORS = ("any-loop", "speech", "trl")  # pages of several systems, a section each
WRITTEN = {page.stem: page for page in sorted((ROOT / "docs" / "trainers").glob("*.md"))}
PAGES = [page for name, page in WRITTEN.items() if name not in DOORS]
OURS = "`.*` must be |Epoch |The state "  # how warnings of ours begin


def code_of(page):
    return blocks(page.read_text(encoding="utf-8"))


def blocks(text, kind="python"):
    return "\n".join(re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL))


def missing(code):
    """Packages that the code imports and that are not installed."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes]
    return sorted({name.split(".")[0] for name in names if not find_spec(name.split(".")[0])})


def test_every_trainer_has_a_page():
    assert {*WRITTEN} == {"accelerate", "huggingface", "jax", "lightning", "plain", *DOORS}


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


def sections():
    """The sections of the pages of several systems: the name of the page, its head, the title, and the text."""
    found = []
    for name in DOORS:
        head, *parts = re.split(r"^## (.*)\n", WRITTEN[name].read_text(encoding="utf-8"), flags=re.MULTILINE)
        found += [(name, head, title, text) for title, text in zip(parts[::2], parts[1::2], strict=True)]
    return found


# The second epoch was taken whole; Lightning has gone on to the third.
WHOLE = "\nassert (loader.epoch, loader.delivered) in {(1, len(loader)), (2, 0)}\n"
ALL_STEPS = "\nassert trainer.state.global_step == trainer.args.num_train_epochs * trainer.batch_sampler.steps\n"


@pytest.mark.parametrize(("name", "head", "title", "text"), sections(), ids=[title for _, _, title, _ in sections()])
def test_each_section_runs_with_its_system(name, head, title, text, tmp_path):
    """After the head of its page, and after what stands in for the model and the data of the reader."""
    stand_ins = [Path(__file__).parent / "stand_ins" / f"{each.lower()}.py" for each in (name, title)]
    if title == "Ray Train":
        pytest.skip("Ray Train starts a cluster, which takes half a minute")
    code = "\n".join([path.read_text() for path in stand_ins if path.exists()] + [blocks(head + text)])
    for package in missing(code):
        pytest.importorskip(package, reason=f"needs {package}")
    trains = re.search(r"^(?! ).*(?<!\.)\bloader\b", blocks(text), re.MULTILINE) is not None  # not within a function
    code += WHOLE * trains + ALL_STEPS * ("\ntrainer.train()" in text)
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    status, printed, errors = run_program(tmp_path / "page.py", tmp_path, message=OURS)
    assert status == 0, errors
    assert blocks(text, "text").strip() in printed


NAMES = {"DeepSpeed": "deepspeed", "Ray Train": "ray", "Fabric": "lightning", "transformers": "transformers"}


def test_the_table_of_systems_has_the_versions_of_the_sections_which_are_those_of_the_tests():
    table = re.findall(r"^\| \[(.+)\]\(.*\) \| (\S+) \|", WRITTEN["any-loop"].read_text(encoding="utf-8"), re.MULTILINE)
    lines = [re.findall(r"^(.+) (\S+), 2026-11\.", text, re.MULTILINE) for *_, text in sections()]
    assert {*table} == {line for found in lines for line in found}
    without = [title for (*_, title, _), found in zip(sections(), lines, strict=True) if not found]
    assert without == ["Images of several sizes"]
    assert len(table) == len({*table})
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    assert {f"{package}=={dict(table)[name]}" for name, package in NAMES.items()} <= {*pinned}
