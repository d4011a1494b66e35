"""The recipes stand on the library's public names, and their imports run one way: read from the source."""

import re
from pathlib import Path

import pytest

import lengthwise as lw
from sources import asserts, imported, spans_of_functions

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lengthwise_recipes"
FILES = sorted(SOURCE.rglob("*.py"))

# A module may import only rooms above its own, and its own: what all share, then the tasks, then the papers.
ROOMS = (
    *("__init__", "skipped", "contents", "kept", "record", "intervals", "claims", "pages", "knobs"),
    *("mixing", "pictures", "limits", "length_share", "study"),
    *("speech", "handwriting", "acoustic", "synthesis", "compiled"),
    *("khomenko2016", "doetsch2017", "ge2021", "quality", "order", "commands"),
)

# Public modules of the library, beside its public names; of the command line, what commands of other packages may use.
PUBLIC = (
    "checks",
    "files",
    "report",
    "torch",
    "jax",
    "cli.parser",
    "cli.show",
    "cli.strategies",
)


def relative(path):
    return path.relative_to(SOURCE).as_posix()


def is_public(name):
    """Whether a dotted name of the library is one that others may import."""
    inside = name.partition(".")[2]
    if any(part.startswith("_") for part in inside.split(".")):
        return False
    return inside in {"", *lw.__all__} or any(f"{inside}.".startswith(f"{module}.") for module in PUBLIC)


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_recipes_import_public_names_alone(path):
    of_the_library = {name for name in imported(path, SOURCE) if name.split(".")[0] == "lengthwise"}
    assert {name for name in of_the_library if not is_public(name)} == set()


def test_what_is_public_is_told_apart():
    public = (
        "lengthwise",
        "lengthwise.Plan",
        "lengthwise.checks.sentence",
        "lengthwise.report.style",
        "lengthwise.cli.show",
    )
    assert all(map(is_public, public))
    for name in ("lengthwise._random", "lengthwise.torch._x", "lengthwise.choices.cut.Budget", "lengthwise.cli.main"):
        assert not is_public(name)


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_run_down_the_list_of_the_recipes(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert own in ROOMS, f"{relative(path)}: add it to ROOMS, below all that it imports"
    allowed = set(ROOMS[: ROOMS.index(own) + 1])
    names = [name.split(".") for name in imported(path, SOURCE) if name.split(".")[0] == SOURCE.name]
    assert {(*name, "__init__")[1] for name in names} <= allowed


@pytest.mark.parametrize(("package", "rooms"), [("altair", set()), ("jax", {"compiled"}), ("librosa", {"speech"})])
def test_a_heavy_package_is_imported_in_its_rooms_of_the_recipes_only(package, rooms):
    importers = {path for path in FILES if package in {name.split(".")[0] for name in imported(path, SOURCE)}}
    assert {path.relative_to(SOURCE).parts[0] for path in importers} <= rooms


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_file_of_the_recipes_is_short_and_asserts_nothing(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert asserts(path) == []


def test_every_function_of_the_recipes_is_readable_at_a_glance():
    spans = spans_of_functions(FILES)
    assert sum(span < 30 for span in spans) >= 0.9 * len(spans)


def test_the_readme_lists_the_rooms_in_order():
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| recipes | hold |")[2]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)] == list(ROOMS[1:])
