"""The site is built without a warning, its links lead somewhere, and the reference has every public name."""

import doctest
import html
import json
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from urllib.parse import unquote

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PATIENCE = 120  # seconds: a build takes about 7 on a core of its own

# Modules that a user imports from. Of each, every name without an underscore is in the reference.
ROOMS = ("checks", "files", "jax", "report", "torch")
PUBLIC = ("lengthwise", *(f"lengthwise.{room}" for room in ROOMS))
CLASSES = {  # of trainers, and those that functions return or take
    *("lengthwise.torch.huggingface.PlannedTrainer", "lengthwise.torch.lightning.PlannedEpochs"),
    *("lengthwise.advice.answer.Advice", "lengthwise.advice.answer.AdviceRow"),
    *("lengthwise.engines.LengthsFile", "lengthwise.engines.BadRow", "lengthwise.lengths.description.Description"),
}


class Links(HTMLParser):
    """What a page of the site links to and loads, and the names of its places."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.loaded, self.places = [], [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given.get("id"), given.get("name")}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"])
        if tag in {"img", "script", "link", "iframe", "source"} and given.get("rel") != "canonical":
            self.loaded += filter(None, (given.get("src"), given.get("href")))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {page: Links(page) for page in site.rglob("*.html")}


def test_every_link_and_picture_of_the_site_leads_to_a_place_in_it(site, pages):
    broken = []
    for page, links in pages.items():
        for target in (*links.targets, *links.loaded):
            path, _, place = unquote(target).partition("#")
            if page.name == "404.html" or re.match(r"(https?|mailto|data):", path):
                continue
            file = (page.parent / path).resolve() if path else page
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file() or (place and file in pages and place not in pages[file].places):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(pages):
    assert [url for links in pages.values() for url in links.loaded if re.match(r"(https?:)?//", url)] == []


def test_the_site_has_the_pages_from_outside_of_the_folder_of_documents(site):
    papers = ("papers/khomenko2016", "papers/doetsch2017", "papers/ge2021")
    for name in (*papers, "recipes", "quality", "changelog", "contributing"):
        assert (site / f"{name}.html").is_file(), name
    assert list(site.glob("**/results/*.json"))
    assert not list(site.rglob("site.py"))


def test_the_tools_of_the_site_do_what_their_examples_say():
    for name in ("site", "docstrings"):
        done = doctest.testmod(_tool(name))
        assert (done.failed, done.attempted > 1) == (0, True)
    docstring = "Of dp[i][k]:\n\n    >>> a[1][0]\n    1\n\nEnd."
    shown = "Of dp[i]\\[k]:\n\n    ```pycon\n    >>> a[1][0]\n    1\n    ```\n\nEnd."
    assert _tool("docstrings").as_markdown(docstring) == shown


def test_signatures_of_the_reference_name_nothing_private(site):
    found = {}
    for path in (site / "reference").glob("*.html"):
        for code in re.findall(r"doc-signature.*?<code>(.*?)</code>", path.read_text(encoding="utf-8"), re.DOTALL):
            text = html.unescape(re.sub("<[^>]+>", "", code))
            found[text.partition("(")[0]] = text
    assert "order: Order | None = None," in found["Batching"]
    assert "arrange: Arrangement = ShuffledSteps()," in found["Batching"]
    assert [text for text in found.values() if re.search(r"^ +_\w+:|\b_?DEFAULT", text, re.MULTILINE)] == []


def _tool(name):
    pytest.importorskip("mkdocs")
    spec = spec_from_file_location(f"tool_{name}", DOCS / "tools" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_reference():
    """Every name that the pages of the reference say something of, as often as they do."""
    texts = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")]
    return Counter(name for text in texts for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE))


@pytest.fixture(scope="module")
def package():
    """The package, read and not imported: so no framework is needed."""
    griffe = pytest.importorskip("griffe")
    return griffe.load("lengthwise", search_paths=[ROOT / "src"], resolve_aliases=True)


def public_members(package, name):
    """What a module offers: what is in `__all__`, or its own classes and functions that are not private."""
    module = package[name.partition(".")[2]] if "." in name else package
    names = module.exports or [each for each, member in module.members.items() if _is_offered(module, member)]
    return {f"{name}.{each}": module[each] for each in names}


def _is_offered(module, member):
    own = member.is_alias if module.is_init_module else not member.is_alias
    path = member.target_path if member.is_alias else member.path
    public = not member.name.startswith("_") and path.startswith("lengthwise.")
    return own and public and (member.is_class or member.is_function)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_has_every_public_name_once_and_each_has_a_docstring(package, name):
    expected = public_members(package, name)
    found = {path: count for path, count in in_reference().items() if path.rpartition(".")[0] == name}
    differ = sorted(path for path in expected.keys() | found.keys() if found.get(path) != (path in expected))
    assert differ == [], "docs/reference must have each public name once"
    assert [path for path, member in expected.items() if not member.docstring] == []


def test_the_reference_has_nothing_but_public_names():
    homes = {path.rpartition(".")[0] for path in in_reference() if path not in CLASSES}
    assert homes == set(PUBLIC)
    assert set(in_reference()) >= CLASSES


def test_the_page_on_the_command_line_is_what_the_parsers_say():
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert text == _tool("command_line").page(), "run python docs/tools/command_line.py"


def results(what):
    return json.loads(sorted((ROOT / "benchmarks" / "results").glob(f"{what}_*.json"))[-1].read_text())


def test_the_front_page_is_the_readme(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings
    assert re.findall(r"<h2 id=\"[^\"]*\">(.*?)<a", page) == headings


def test_the_page_on_theory_says_what_was_measured():
    page = " ".join((DOCS / "theory.md").read_text(encoding="utf-8").split())
    document = results("mixing")
    assert f"mixed more at {document['max_entropy_ahead']} of {document['points']} settings" in page
    shares = [_shares_of_limit(data["points"]) for data in document["data"].values()]
    ours, theirs = (" | ".join(f"{100 * share:.0f} %" for share in row) for row in zip(*shares, strict=True))
    assert f"| max-entropy | {ours} |" in page
    assert f"| semi-sorted | {theirs} |" in page
    near = sorted(round(100 * share) for share, _ in shares)
    assert f"at about 10 % padding it has {near[0]} to {near[-1]} % of the limit" in page
    points = [point for data in document["data"].values() for point in data["points"]]
    least = min(points, key=lambda point: point["max_entropy_mixing"] / point["limit"])
    share = f"{100 * least['max_entropy_mixing'] / least['limit']:.0f} %"
    assert f"at {100 * least['padding_share']:.1f} % it has {share} of the limit" in page


def _shares_of_limit(points):
    """Max-entropy's mixing and semi-sorting's over the limit, where semi-sorting pads closest to 10 %."""
    semi_sorted = [point for point in points if point["strategy"].startswith("semi-sorted:")]
    near = min(semi_sorted, key=lambda point: abs(point["padding_share"] - 0.1))
    return near["max_entropy_mixing"] / near["limit"], near["mixing"] / near["limit"]


def test_the_page_on_shapes_prints_what_was_measured():
    document, guide = results("shapes"), " ".join((ROOT / "docs" / "packing.md").read_text().split())
    waiting = {(row["budget"], row["multiple"]): row["waiting"] for row in document["multiples"]}
    for multiple, words in ((8, "{} % of their time under 20,000 frames, and {} %"), (1, "they wait {} % and {} %")):
        assert words.format(*(round(100 * waiting[budget, multiple]) for budget in (20_000, 80_000))) in guide
