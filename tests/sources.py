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


# Functions that NumPy and C libraries round in ways of their own. `sqrt`, `frexp` and `ldexp` are exact everywhere.
ROUNDED = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "pow", "power"),
        *("float_power", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "hypot"),
        *("asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "erf", "erfc", "gamma", "lgamma", "fma"),
        *("geomspace", "logspace", "interp", "quantile", "percentile", "polyfit", "corrcoef", "cov"),
        *("dot", "vdot", "inner", "matmul", "einsum", "tensordot", "linalg", "fft", "random"),
    )
)


def rounded_otherwise(path):
    """The lines of a file that compute what another platform may round otherwise.

    These are calls of such functions, powers of all but 2, and products of vectors: in which order these are added
    depends on the processor and on threads.
    """
    return sorted({node.lineno for node in ast.walk(tree_of(path)) if _rounds_otherwise(node)})


def _rounds_otherwise(node):
    match node:
        case ast.Attribute(value=ast.Name(id="np" | "math"), attr=name):
            return name in ROUNDED
        case ast.ImportFrom(module="math" | "cmath" | "numpy", names=names):
            return not ROUNDED.isdisjoint(alias.name for alias in names)
        case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow()):
            return False
        case ast.BinOp(op=ast.Pow() | ast.MatMult()) | ast.AugAssign(op=ast.Pow() | ast.MatMult()):
            return True
        case ast.Call(func=ast.Name(id="pow")):
            return True
        case ast.Call(func=ast.Attribute(value=value, attr="dot")):
            return getattr(value, "id", "") != "_exact"  # which adds one after the other
    return False


def spans_of_functions(paths):
    """How many lines the functions of files have, their docstrings left out."""
    nodes = [node for path in paths for node in ast.walk(tree_of(path))]
    return [node.end_lineno - _first_line(node) + 1 for node in nodes if isinstance(node, ast.FunctionDef)]


def _first_line(function):
    """Where the code of a function begins, its docstring left out."""
    return function.body[1].lineno if ast.get_docstring(function) and len(function.body) > 1 else function.lineno


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))
