"""A notebook shows what it was committed with; advice, measures and plans are tables in it."""

import ast
import json
from pathlib import Path

import pytest

import lengthwise as lw
from html_pages import Page

TOUR = Path(__file__).parents[1] / "examples" / "tour.ipynb"
TEXT = TOUR.read_text(encoding="utf-8")
CELLS = [cell for cell in json.loads(TEXT)["cells"] if cell["cell_type"] == "code"]


def run_cell(source, names):
    """Runs a cell, and returns what Jupyter would show: the value of its last line, if it has one."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), TOUR.name, "exec"), names)
    code = ast.unparse(last)
    return eval(code, names) if isinstance(last, ast.Expr) else exec(code, names)


@pytest.mark.slow
def test_the_tour_runs_and_shows_what_it_was_committed_with(capsys):
    alt, _ = pytest.importorskip("altair"), pytest.importorskip("torch")
    names = {}
    with alt.renderers.enable("default"):  # the tour enables another, which would stay enabled
        for cell in CELLS:
            value, printed = run_cell("".join(cell["source"]), names), "".join(capsys.readouterr())
            for output in cell["outputs"]:
                shown = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
                if "text/html" in shown:
                    assert value._repr_html_() == shown["text/html"]
                elif "image/svg+xml" in shown:  # its bytes depend on versions and fonts
                    assert value._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
                else:
                    assert "".join(output.get("text", [])) in printed
                    assert repr(value).split() == shown.get("text/plain", "None").split()
    assert names["losses"][-1] < 0.3 * names["losses"][0]


def test_the_tour_is_small_ran_from_top_to_bottom_and_names_no_folder():
    assert len(TEXT) < 200_000
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    assert [word for word in (str(Path.home()), str(TOUR.parents[1]), "tmp/", "file:", "<script") if word in TEXT] == []


@pytest.mark.parametrize("ranks", [1, 4])
def test_advice_and_measures_show_what_they_print_and_the_candidates(ranks):
    advice = lw.advise(lw.example_lengths(count=400), world_size=ranks)
    page, measures = Page(advice._repr_html_()), Page(advice.best.measures._repr_html_())
    (heads, *rows), (first, *lines, last) = page.tables[0], str(advice.best.measures).splitlines()
    assert (page.said("p"), measures.said("p")) == (str(advice).replace("\n", ""), first + last)
    assert [" ".join(row).split() for row in measures.tables[0]] == [line.split() for line in lines]
    labels = [f"{row.label}{' (recommended)' * (row is advice.best)}" for row in advice.candidates]
    assert [row[0] for row in rows] == labels
    assert ("waiting" in heads) == (ranks > 1)


def test_a_plan_names_its_batching_in_python_and_a_choice_of_the_user_escaped():
    def reverse(lengths, _key):
        return lw.Ordered(range(len(lengths))[::-1])

    for order, text in ((lw.Sorted(), "lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())"), (reverse, "<locals>")):
        plan = lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=order))
        rows = dict(Page(plan._repr_html_()).tables[0])
        assert (rows["steps"], text in rows["batching"]) == ("2", True)
        assert str(plan) == f"{plan!r}\nbatching: {rows['batching']}"
