"""The pages say what is true: their code runs, their tables are those of the results, their modules are the modules."""

import importlib
import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import lengthwise as lw
from test_architecture import ROOMS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
WRITTEN = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").rglob("*.md"))


def run_code(text, name="page"):
    exec(compile("\n".join(BLOCK.findall(text)), name, "exec"), {})


@pytest.mark.parametrize("code", BLOCK.findall(README))
def test_the_code_of_the_readme_runs_and_says_what_it_pads(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert "5.0 % of its frames are padding." in capsys.readouterr().err


ONE_AFTER_THE_OTHER = ("switch", "advice", "reference/own-choices", "gradients", "theory")


@pytest.mark.parametrize("name", ONE_AFTER_THE_OTHER)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    run_code((ROOT / "docs" / f"{name}.md").read_text(), name)


@pytest.mark.parametrize("name", ["guide.md", "packing.md", "loaders.md"])
def test_each_section_of_a_page_runs_by_itself(name, tmp_path, monkeypatch):
    """Readers copy a section, not a page: it imports what it needs."""
    monkeypatch.chdir(tmp_path)
    for section in re.split(r"^## ", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE):
        run_code(section, name)


@pytest.mark.filterwarnings("ignore")  # of Ray, and of pandas about Dask
def test_the_code_of_the_page_on_lengths_runs(tmp_path, monkeypatch):
    for package in ("pyarrow", "ray", "dask.dataframe", "datasets"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'lengthwise[io,engines]'")
    monkeypatch.chdir(tmp_path)
    run_code((ROOT / "docs" / "files.md").read_text())


@pytest.mark.parametrize("name", ["docs/advice.md", "docs/reference/report.md", "recipes/docs/length-share.md"])
def test_a_page_shows_what_its_code_prints(name, capsys, tmp_path, monkeypatch):
    page = (ROOT / name).read_text().partition("## What fits into memory")[0]  # then seconds are printed
    if "lw.report" in page:
        pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)  # pages may write files
    run_code(page, name)
    shown = " ".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    assert shown.split() == capsys.readouterr().out.split()
    for answer in re.findall(r"> (Random batches .*)", page):  # of the report that the code writes
        headline = re.search(r"<h1>(.*?)</h1>", (tmp_path / "report.html").read_text(encoding="utf-8"))[1]
        assert re.sub(r"<.*?>", "", headline) == answer


def test_the_page_on_gradients_says_what_was_measured():
    rows = json.loads(sorted((ROOT / "benchmarks" / "results").glob("gradients_*.json"))[-1].read_text())["rows"]
    page = (ROOT / "docs" / "gradients.md").read_text()
    exact = max(row["error"] for row in rows if row["way"] == "loss scales")
    usual = [row["error"] for row in rows if row["way"] == "batches averaged" and row["error"] > 1e-12]
    assert f"by {exact:.1e} of the largest entry" in page
    assert f"by {100 * min(usual):.1f} to {100 * max(usual):.0f} %" in page


def test_the_page_on_a_given_step_says_what_was_measured():
    document = json.loads(sorted((ROOT / "benchmarks" / "results").glob("given-step_*.json"))[-1].read_text())
    rows = [row for row in document["rows"] if row["sequences"] == 64 * row["ranks"]]
    page = (ROOT / "docs" / "gradients.md").read_text()
    assert f"On {len(rows) // 4} steps of three shapes" in page
    assert max(row["tokens"] / document["capacities"][str(row["ranks"])] for row in rows) <= 1.0
    for name, ways in (
        ("`plan_step`", ("step", "batch")),
        ("Karmarkar-Karp by rank", 2 * ("Karmarkar-Karp",)),
        ("first fit by rank", 2 * ("first fit",)),
    ):
        more = [row["micro_batches"] - row["least"] for row in rows if row["way"] == ways[0]]
        steps, most = sum(map(bool, more)), max(more)
        cells = [f"{steps} step{'s' * (steps > 1)}, by {'up to ' * (most > 1)}{most}"]
        for way, wait in zip(ways, ("wait_step", "wait_batch"), strict=True):
            waits = [100 * row[wait] for row in rows if row["way"] == way]
            cells.append(f"{min(waits):.1f} to {max(waits):.1f} %")
        seconds = [1e3 * row["seconds"] for row in rows if row["way"] in ways and row["ranks"] == 32]
        assert f"| {name} | {' | '.join(cells)} | {min(seconds):.0f} to {max(seconds):.0f} |" in page


def test_the_readme_is_three_screens_with_the_change_on_the_first():
    lines = [line for line in README.splitlines() if not line.startswith("<!--")]
    assert len(lines) <= 130
    assert len(README.split()) <= 900
    assert "```diff" in lines[:40]
    assert [line for line in lines if len(line) > 100] == []


CODE = re.compile(r"^( *)```\w*\n(.*?)^\1```|((?:^    [^\n]*\n)+)|(?<!`)(`[^`\n]+`)(?!`)", re.MULTILINE | re.DOTALL)


def test_code_of_a_page_is_read_without_scrolling():
    """At 1280 pixels the site shows 100 columns of a block, and 90 within a sentence."""
    wide = []
    for page in WRITTEN:
        for code in CODE.finditer(page.read_text(encoding="utf-8")):
            wide += [(page.name, line) for line in code[0].splitlines() if len(line) > (90 if code[4] else 100)]
    assert wide == []


def test_the_tables_of_the_results_are_short():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert max(table.count("\n") - 2 for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)) <= 28


def test_the_rows_of_a_table_have_as_many_cells_as_its_head():
    for page in WRITTEN:
        text = re.sub(r"```.*?```|`[^`\n]*`|\\\|", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({line.count("|") for line in table.splitlines()}) == 1, f"{page.name}: {table[:200]}"


def test_the_first_screen_says_what_the_example_computes():
    lengths = lw.example_lengths("long-tailed")
    random = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled()))
    planned = lw.make_plan(lengths, lw.Batching(budget=math.ceil(16 * lengths.mean() / 0.95)))
    shares = [100 * lw.measure(plan, lengths).padding_share for plan in (random, planned)]
    rows = [
        "| padding | {:.1f} % | {:.1f} % |".format(*shares),
        "| computed for each frame of data | {:.2f} | {:.2f} |".format(*(100 / (100 - share) for share in shares)),
        f"| largest batch | {random.costs.max():,.0f} frames | {planned.costs.max():,.0f} |",
        f"| steps in an epoch | {random.steps} | {planned.steps} |",
    ]
    assert "\n".join(rows) in README
    batching = lw.Batching(budget=planned.max_cost)
    assert f"lw.Batching(budget={planned.max_cost:_.0f})" in README
    steps = [lw.make_plan(lengths, batching, micro_batches=batches) for batches in (1, 2, 4, 8)]
    *first, last = [f"{lw.measure(plan, lengths).randomness:.2f}" for plan in steps]
    assert f"[randomness](docs/guide.md#steps) of a step is {', '.join(first)} or {last}." in README
    assert '"deal.RandomSteps"' in lw.make_plan(lengths, batching, world_size=8, micro_batches=2).batching


def test_the_tables_are_those_of_the_committed_results():
    checked = subprocess.run(
        [sys.executable, "benchmarks/tables.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


BENCHMARKS = sorted({path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"record", "peer_ours", "__init__"})


@pytest.mark.parametrize("name", BENCHMARKS)
def test_asking_a_benchmark_for_help_measures_nothing(name, monkeypatch, capsys):
    before = sorted(path.stat().st_mtime_ns for path in (ROOT / "benchmarks" / "results").iterdir())
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # where Python looks first for what it runs by its path
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", "--help"])
    with pytest.raises(SystemExit) as leaving:
        runpy.run_path(sys.argv[0], run_name="__main__")
    assert leaving.value.code in (None, 0)
    assert capsys.readouterr().out.startswith("usage:")
    assert sorted(path.stat().st_mtime_ns for path in (ROOT / "benchmarks" / "results").iterdir()) == before


def targets(pattern):
    """The pages and pictures that each page links to, as files."""
    for page in WRITTEN:
        text = re.sub(r'<img src="([^"]+)"', r"](\1)", page.read_text(encoding="utf-8"))
        for target in re.findall(rf"\]\(({pattern})[#)]", text):
            yield page, ((ROOT if target.startswith("/") else page.parent) / target.lstrip("/")).resolve()


def test_links_lead_somewhere_and_every_page_is_linked_to_from_another():
    assert [f"{page.name}: {file}" for page, file in targets(r"[^)#:]+") if not file.exists()] == []
    front = {ROOT / "README.md"}
    assert {*WRITTEN} - front == {file for page, file in targets(r"[^)#:\s]+\.md") if file != page} - front


def test_every_committed_picture_is_drawn_by_one_command_and_stands_on_a_page(tmp_path, monkeypatch):
    pytest.importorskip("altair")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    pictures = importlib.import_module("pictures")
    drawn = sorted(path for paths in pictures.pictures().values() for path in paths)
    committed = {path for folder in ("docs", "recipes/docs") for path in (ROOT / folder).rglob("*.svg")}
    assert committed == {*drawn, *(path.with_stem(f"{path.stem}-dark") for path in drawn)}
    assert sorted({file for _, file in targets(r"[^)#:]+\.svg")}) == drawn
    monkeypatch.setattr(pictures, "DOCS", tmp_path)
    pictures.draw_padding()
    # The bytes depend on the version of Vega, so only the letters are compared.
    paths = (ROOT / "docs" / "padding.svg", tmp_path / "padding.svg")
    old, new = (re.findall(r">([^<>]+)</text>", path.read_text(encoding="utf-8")) for path in paths)
    assert new == old


def test_the_page_on_the_code_lists_its_rooms_in_order():
    page = (ROOT / "docs" / "architecture.md").read_text()
    _, _, rooms = page.partition("## The rooms")
    cells = re.findall(r"^\| (`[^|]+`) \|", rooms, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)]
    assert names == [room for room in ROOMS if room != "__init__"]
