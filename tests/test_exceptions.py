"""Every exception of ours is copied and pickled whole: one that is not hangs a pool of processes for ever."""

import ast
import copy
import importlib
import pickle
from pathlib import Path

import pytest

from lengthwise.choices.cut import OversizeError
from lengthwise.choices.rows import LongerThanRowError
from lengthwise.planning.make import NoStepError
from lengthwise.planning.plan import PlanMismatchError

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "recipes" / "src")

# One of each class, made as the package makes it.
ERRORS = [
    OversizeError(9.0, 10.0, 3),
    OversizeError(9.0, 10.0, 3, sequence=7),
    OversizeError(9.0, 30.0, 3, sequence=7, span=(10, 20), mean_cost=12.0),
    LongerThanRowError(9.0, 10.0, 3, sequence=7),
    LongerThanRowError(9.0, 10.0, 3, sequence=7, span=(10, 20)),
    NoStepError("`steps` must be at least 1, but is 0."),
    PlanMismatchError("`plan` must be mine, but is another."),
]


def exception_classes():
    for source in SOURCES:
        for path in source.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
                if any(base.endswith(("Error", "Exception", "Warning")) for base in bases):
                    if node.name.startswith("_"):  # of which a user sees nothing
                        continue
                    module = ".".join(path.relative_to(source).with_suffix("").parts)
                    yield getattr(importlib.import_module(module), node.name)


@pytest.mark.slow
def test_every_exception_class_is_tried():
    assert {type(error) for error in ERRORS} == set(exception_classes())


def facts(error):
    return type(error), str(error), error.args, {**vars(error)}


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_exception_is_copied_whole(error):
    original, error = facts(error), copy.copy(error)
    assert facts(error) == original
    error.add_note("of rank 3")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert facts(again) == facts(error)
