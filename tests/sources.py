"""What stands in source files, read without running them: imports, asserts and the lengths of functions."""

import ast
from functools import cache


@cache  # many tests ask it of every file
def imported(path, package):
    """The dotted names that a file imports, wherever in it: lazily and for types alone too, and by importlib.

    Args:
        path: Of the file.
        package: The folder of its package, which relative imports are told from.
    """
    names = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(_from_names(node, path, package))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names.update(each.value for each in node.args if isinstance(each, ast.Constant))
    return frozenset(names)


def _from_names(node, path, package):
    parents = path.relative_to(package.parent).parts[:-1]
    base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
    module = ".".join(filter(None, (base, node.module)))
    # `from lengthwise import cut` names a room; `from lengthwise.choices.cut import Cut` a thing within one.
    return [f"{module}.{alias.name}" for alias in node.names]


def asserts(path):
    """The lines of a file that assert."""
    return [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.Assert)]


def unstable_sorts(path):
    """The lines of a file that call NumPy's `argsort` without saying that equals stay in their order."""
    calls = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return [
        call.lineno
        for call in calls
        if getattr(call.func, "attr", "") == "argsort"
        and getattr(call.func.value, "id", "") != "_random"
        and not any(word.arg == "kind" and getattr(word.value, "value", "") == "stable" for word in call.keywords)
    ]


def spans_of_functions(paths):
    """How many lines the functions of files have, their docstrings left out."""
    nodes = [node for path in paths for node in ast.walk(tree_of(path))]
    return [node.end_lineno - _first_line(node) + 1 for node in nodes if isinstance(node, ast.FunctionDef)]


def _first_line(function):
    """Where the code of a function begins, its docstring left out."""
    return function.body[1].lineno if ast.get_docstring(function) and len(function.body) > 1 else function.lineno


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))
