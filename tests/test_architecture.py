"""The house stands as designed: read from the source, and from an import with every extra blocked."""

import ast
import re
from pathlib import Path

import pytest

from sources import asserts, imported, rounded_otherwise, spans_of_functions, unstable_sorts

SOURCE = Path(__file__).parents[1] / "src" / "lengthwise"

# A module may import only rooms above its own, and its own. `__init__` is the front door: `import lengthwise as lw`.
ROOMS = (
    *("checks", "files", "_html", "_compile", "_kernels", "_exact", "_random"),
    *("lengths", "engines", "choices", "planning", "measures", "advice", "__init__"),
    *("report", "_samples", "torch", "jax", "cli", "__main__"),
)

# So it is within the rooms that have an order of their own; `__init__` stands below what it imports.
WITHIN = {
    "choices": (
        *("__init__", "arithmetic", "cost", "chunk", "buckets", "bands", "order", "greedy", "cut", "rows", "deal"),
        *("arrange", "names", "batching"),
    ),
    "engines": ("sources", "write", "__init__"),
    "lengths": (
        *("rules", "columns", "cells", "arrays", "text", "arrow", "audio", "formats"),
        *("read", "description", "__init__"),
    ),
    "planning": (
        *("times", "items", "plan", "custom", "exact_count", "steps", "portion", "epoch", "trial", "settle"),
        *("plan_warnings", "resume", "make", "step_batches", "given_step", "__init__"),
        *("shapes", "few_shapes", "loss", "evaluation", "window_steps", "windows", "window_epoch"),
    ),
}

FILES = sorted(SOURCE.rglob("*.py"))


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms_imported(path, SOURCE):
    names = [name.split(".") for name in imported(path, SOURCE)]
    seconds = {(*name, "__init__")[1] for name in names if name[0] == "lengthwise"}
    return {second if second in ROOMS else "__init__" for second in seconds}


def relative(path):
    return path.relative_to(SOURCE).as_posix()


INSIDE = [path for path in FILES if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", INSIDE, ids=relative)
def test_imports_run_down_the_list_of_rooms(path):
    assert room_of(path) in ROOMS, f"{relative(path)}: add the room to ROOMS, below all that it imports"
    allowed = ROOMS[: ROOMS.index(room_of(path)) + 1]
    assert rooms_imported(path, SOURCE) <= set(allowed)


@pytest.mark.parametrize("path", [path for path in INSIDE if room_of(path) in WITHIN], ids=relative)
def test_imports_run_down_the_list_within_a_room(path):
    room = room_of(path)
    own = path.relative_to(SOURCE / room).parts[0].removesuffix(".py")
    assert own in WITHIN[room], f"{relative(path)}: add it to WITHIN, below all that it imports"
    allowed = WITHIN[room][: WITHIN[room].index(own) + 1]
    names = [name for name in imported(path, SOURCE) if name.startswith(f"lengthwise.{room}.")]
    thirds = {(*name.split("."), "__init__")[2] for name in names}
    assert {third if third in WITHIN[room] else "__init__" for third in thirds} <= set(allowed)


@pytest.mark.parametrize(
    ("package", "rooms"),
    [
        *(("numba", {"_compile"}), ("altair", {"report"}), ("vl_convert", {"report"}), ("jinja2", {"report"})),
        *(("torch", {"torch"}), ("jax", {"jax"})),
        *((package, {"engines"}) for package in ("datasets", "dask", "ray")),
        ("fsspec", {"lengths"}),
        ("lengthwise_recipes", set()),
    ],
)
def test_a_heavy_package_is_imported_in_its_rooms_only_and_the_recipes_nowhere(package, rooms):
    importers = {room_of(path) for path in FILES if package in {name.split(".")[0] for name in imported(path, SOURCE)}}
    assert importers <= rooms


@pytest.mark.parametrize(("package", "door"), [("lightning", "lightning"), ("transformers", "huggingface")])
def test_a_trainer_is_imported_by_its_module_alone_which_nothing_else_imports(package, door):
    importers = {path for path in FILES if package in {name.split(".")[0] for name in imported(path, SOURCE)}}
    importers |= {path for path in FILES if any(f"torch.{door}" in name for name in imported(path, SOURCE))}
    assert {path.relative_to(SOURCE).parts[1].removesuffix(".py") for path in importers} == {door}


@pytest.mark.parametrize("room", ["advice", "choices", "engines", "lengths", "measures", "planning", "torch"])
def test_the_top_of_a_large_room_names_all_its_modules(room):
    top = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8")))
    modules = {path.relative_to(SOURCE / room).parts[0].removesuffix(".py") for path in FILES if room_of(path) == room}
    assert modules - {"__init__"} <= set(re.findall(r"\w+", top))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_file_is_short_and_asserts_nothing(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert asserts(path) == []
    assert unstable_sorts(path) == [], "equals come in another order on another platform, and so do plans"


# What makes plans, and the example lengths.
OF_PLANS = [
    path
    for path in FILES
    if room_of(path) in ("_kernels", "_exact", "_random", "choices", "planning")
    or relative(path) == "lengths/description.py"
]


@pytest.mark.parametrize("path", OF_PLANS, ids=relative)
def test_plans_are_computed_by_what_every_platform_rounds_the_same(path):
    assert rounded_otherwise(path) == [], "a platform that rounds otherwise makes another plan: see `_exact`"


def test_what_platforms_round_otherwise_is_found(tmp_path):
    (tmp_path / "some.py").write_text(
        "from math import log\nimport numpy as np\nlow = np.exp(1.0)\nsides = low ** 0.5\nmean = sides @ low\n"
        "low.dot(sides)\nlow **= 0.5\npow(low, 0.5)\n"
        "exact = 2.0**-30 * np.sqrt(low) * _exact.dot(low, low) * _exact.log(low)\n"
    )
    assert rounded_otherwise(tmp_path / "some.py") == [1, 3, 4, 5, 6, 7, 8]


def test_every_function_of_the_source_is_readable_at_a_glance():
    spans = spans_of_functions(FILES)
    assert sum(span < 30 for span in spans) >= 0.9 * len(spans)


# One room writes files, `files`: no other file of the packages opens, makes or moves one.

ROOT = SOURCE.parents[1]
SOURCES = (ROOT / "src", ROOT / "recipes" / "src")
MAY_NOT_WRITE = sorted(path for source in SOURCES for path in source.rglob("*.py") if path.name != "files.py")

# Calls that make, write or move a file, by their last name, or by their last two.
NAMES = {"write_text", "write_bytes", "touch", "tofile", "mkstemp", "NamedTemporaryFile", "rename", "symlink_to"}
NAMES |= {"hardlink_to", "savez", "savez_compressed", "savetxt", "savefig", "dump", "memmap", "copyfile", "copytree"}
DOTTED = {"np.save", "torch.save", "os.replace", "os.open", "os.link", "os.symlink", "shutil.copy", "shutil.move"}
OPENERS = {"", "io", "os", "wave", "gzip", "bz2", "lzma", "zipfile", "codecs"}  # whose first argument is the path
READING = {"'r'", "'rb'", "'rt'"}


def lines_that_write(source):
    tree = ast.parse(source)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and "BytesIO()" in ast.unparse(node.value)]
    harmless = {"os.devnull", *(ast.unparse(node.targets[0]) for node in made)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _writes(call) and not harmless & set(map(ast.unparse, call.args))]


def _writes(call):
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name == "open" and owner != "os":
        modes = [ast.unparse(each) for each in call.args[1 if owner in OPENERS else 0 :][:1]]
        modes += [ast.unparse(each.value) for each in call.keywords if each.arg == "mode"]
        return not READING.issuperset(modes)
    # Text is replaced by text, a path by one argument: where it is moved to.
    moved = name == "replace" and len(call.args) == 1 and not call.keywords
    return moved or name in NAMES or f"{owner.rpartition('.')[2]}.{name}" in DOTTED


@pytest.mark.parametrize("path", MAY_NOT_WRITE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_other_room_writes_files(path):
    assert lines_that_write(path.read_text(encoding="utf-8")) == []


WRITING = """
open(path, "w")
open(path, mode="ab")
path.open("x")
path.write_text(text)
np.save(path, array)
torch.save(state, path)
json.dump(document, file)
os.replace(draft, path)
draft.replace(path)
shutil.copy(draft, path)
os.open(path, os.O_WRONLY)
wave.open(path, "wb")
"""


def test_lines_that_write_are_known():
    assert lines_that_write(WRITING) == [number for number, line in enumerate(WRITING.splitlines(), 1) if line]
