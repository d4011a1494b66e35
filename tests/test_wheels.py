"""What is installed as `lengthwise`: the library alone, which works with no package but those it names.

Both wheels are built from this checkout. They are tried in processes that see the unpacked wheels and, as links, the
packages that the library requires; neither the checkout nor any other package is there.
"""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TREES = {"lengthwise": ROOT / "src", "lengthwise_recipes": ROOT / "recipes" / "src"}
BYTES = {"lengthwise": 700_000, "lengthwise_recipes": 500_000}  # at most: source is small, data and pictures are not
SOURCE_BYTES = {"lengthwise": 2_000_000, "lengthwise_recipes": 500_000}  # the library's with tests and pages
OF_A_CLONE = {f"tests/{name}.py" for name in ("test_documents", "test_site", "test_wheels", "test_workflow")}

MAIN = "import sys; from lengthwise.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of both wheels and both source distributions."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("built")
    for tree in TREES.values():
        build(tree.parent, folder)
    return folder


@pytest.fixture(scope="module")
def wheels(built):
    """The wheel of each package."""
    return {name: next(built.glob(f"{name}-*.whl")) for name in TREES}


def build(source, folder, *options):
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *options]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def lengthwise(wheels, tmp_path_factory):
    """Runs `lengthwise` where these wheels are unpacked, and what the library requires is installed."""
    required = tmp_path_factory.mktemp("required")
    for name in requirements("lengthwise") - {"lengthwise"}:
        for top in {path.parts[0] for path in distribution(name).files}:
            found = distribution(name).locate_file(top)
            if top != ".." and found.exists():
                (required / top).symlink_to(found)

    def run(*words, installed=("lengthwise",)):
        places = [tmp_path_factory.getbasetemp() / "unpacked" / name for name in installed]
        for name, place in zip(installed, places, strict=True):
            if not place.exists():
                zipfile.ZipFile(wheels[name]).extractall(place)
        script = f"import sys; sys.path[:0] = {[*map(str, places), str(required)]!r}; {MAIN}"
        command = [sys.executable, "-I", "-S", "-W", "error", "-c", script, *words]
        return subprocess.run(command, cwd=required, capture_output=True, text=True, check=False)

    return run


def requirements(name):
    """The names of all packages that a package requires without extras, and its own."""
    found, waiting = set(), [name]
    while waiting:
        found.add(at := waiting.pop())
        for line in distribution(at).requires or ():
            each = Requirement(line)
            if (each.marker is None or each.marker.evaluate({"extra": ""})) and each.name not in found:
                waiting.append(each.name)
    return found


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.parametrize("name", TREES)
def test_a_wheel_holds_its_package_and_nothing_else(wheels, name):
    with zipfile.ZipFile(wheels[name]) as archive:
        held = {path for path in archive.namelist() if ".dist-info/" not in path}
        facts = {path.partition("/")[2] for path in archive.namelist() if ".dist-info/" in path}
    sources = {path.relative_to(TREES[name]).as_posix() for path in (TREES[name] / name).rglob("*.py")}
    templates = {path.relative_to(TREES[name]).as_posix() for path in (TREES[name] / name).glob("report/template/*")}
    assert held == sources | templates | {f"{name}/py.typed"}
    assert len(templates) == (3 if name == "lengthwise" else 0)
    assert facts == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert wheels[name].stat().st_size < BYTES[name]


@pytest.mark.parametrize("name", TREES)
def test_a_source_distribution_builds_the_same_wheel_and_the_librarys_holds_its_tests(built, wheels, tmp_path, name):
    source = built / wheels[name].name.replace("-py3-none-any.whl", ".tar.gz")
    assert source.stat().st_size < SOURCE_BYTES[name]
    with tarfile.open(source) as archive:
        assert max(member.size for member in archive) < 300_000
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    build(tree, tmp_path, "--target", "wheel")
    assert (tmp_path / wheels[name].name).read_bytes() == wheels[name].read_bytes()
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")} - OF_A_CLONE
    held = {path.relative_to(tree).as_posix() for path in (tree / "tests").rglob("*.py")}
    assert held == (tests if name == "lengthwise" else set())


def test_both_wheels_have_one_version_and_licence_and_the_recipes_require_the_library(wheels):
    assert (ROOT / "recipes" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    library, recipes = (metadata(wheels[name]) for name in TREES)
    assert library["Version"] == recipes["Version"]
    required = [Requirement(line) for line in recipes.get_all("Requires-Dist")]
    (own,) = (each for each in required if each.name == "lengthwise" and each.marker is None)
    assert (own.extras, own.specifier.contains(library["Version"])) == ({"report", "torch"}, True)
    assert not [line for line in library.get_all("Requires-Dist") if "recipes" in line]


def test_the_library_alone_compares(lengthwise):
    strategies = "random,optimal:4,max-entropy:0.1"
    done = lengthwise("compare", "--subset", "2000", "--strategies", strategies, "--world-size", "2", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["strategy"] for row in json.loads(done.stdout)["rows"]] == strategies.split(",")


def test_the_library_alone_says_how_to_get_the_recipes(lengthwise):
    assert "More commands, study and reproduce: pip install ./recipes, in a clone" in lengthwise("--help").stdout
    done = lengthwise("reproduce", "khomenko2016")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith("`lengthwise --help` lists all choices.\n")


def test_with_the_recipes_beside_it_their_commands_are_there(lengthwise):
    both = {"installed": tuple(TREES)}
    done = lengthwise("reproduce", "--help", **both)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in ("khomenko2016", "doetsch2017", "ge2021"))
    done = lengthwise("study", "handwriting", **both)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert re.search(r"`\w+` must be installed for a study.*: pip install \./recipes\.$", done.stderr.strip())
