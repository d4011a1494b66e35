"""`--html`: the report of a command says what its table and its JSON say."""

import json
import shlex
import subprocess
import sys
import textwrap

import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.advice.candidates import first_budget

pytestmark = pytest.mark.slow


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def test_compare_writes_its_table(run, tmp_path):
    words = ("compare", "--subset", 300, "--strategies", "random,sorted,max-entropy:0.1")
    found = run(*words, "--html", tmp_path / "report.html", "--json", "-").json
    page = read(tmp_path / "report.html")
    table = page.table("strategy")
    for row in found["rows"]:
        cells = table[row["strategy"]]
        assert cells["padding"] == f"{100 * row['padding_share']:.1f} %"
        assert (cells["randomness"], cells["largest cost"]) == (
            f"{row['randomness']:.2f}",
            f"{row['largest_cost']:,.0f}",
        )
    assert "long-tailed example, generated, a random subset: batches of at most " in page.said("p")


def test_compare_puts_forward_what_the_rule_of_advise_does(run, tmp_path):
    words = ("compare", "--subset", 2_000, "--world-size", 4, "--micro-batches", 4, "--html", tmp_path / "report.html")
    assert run(*words, "--strategies", "random,random-steps,max-entropy:0.05").status == 0
    page = read(tmp_path / "report.html")
    assert "random-steps computes" in page.said("h1")
    assert list(page.table("strategy")) == ["random", "random-steps", "max-entropy:0.05"]
    assert "random-steps" in page.said("code")


def test_where_nothing_is_to_be_gained_the_headline_says_so(run, tmp_path):
    (tmp_path / "equal.csv").write_text("frames\n" + "7\n" * 64)
    words = ("compare", tmp_path / "equal.csv", "--strategies", "random,sorted", "--html", tmp_path / "report.html")
    assert run(*words).status == 0
    told = "Random batches compute 1.00 frames for each frame of data; no strategy computes clearly less."
    assert read(tmp_path / "report.html").said("h1") == told


def test_inspect_says_what_random_batches_compute(run, four, tmp_path):
    assert run("inspect", four, "--batch-size", 2, "--html", tmp_path / "report.html").status == 0
    page = read(tmp_path / "report.html")
    share = run("inspect", four, "--batch-size", 2, "--json", "-").json["random_batches"]["padding_share"]
    assert page.said("h1") == f"Random batches compute {1 / (1 - share):.2f} frames for each frame of data."
    assert "optimal" not in page.said("p")


def test_plan_stands_beside_random_batches_for_the_same_ranks(run, tmp_path):
    words = ("plan", "--subset", 400, "--strategy", "optimal:4", "--world-size", 2, "--micro-batches", 3)
    found = run(*words, "--html", tmp_path / "report.html", "--json", "-").json
    page = read(tmp_path / "report.html")
    table = page.table("strategy")
    assert list(table) == ["random", "optimal:4"]
    assert table["optimal:4"]["padding"] == f"{100 * found['measures']['padding_share']:.1f} %"
    assert found["plan"]["fingerprint"] in page.said("code")


def test_random_batches_beside_a_plan_are_of_its_seed_epoch_ranks_and_chunks(run, tmp_path):
    words = ("plan", "--subset", 300, "--strategy", "sorted", "--seed", 3, "--epoch", 4, "--chunk", 700)
    world = {"world_size": 3, "micro_batches": 2}
    assert run(*words, "--world-size", 3, "--micro-batches", 2, "--html", tmp_path / "report.html").status == 0
    row = read(tmp_path / "report.html").table("strategy")["random"]
    lengths = lw.example_lengths()[sorted(lw.Key(seed=3, stage="subset").permutation(10_480)[:300])]
    cut = lw.Budget(first_budget(lengths))
    batching = lw.Batching(cut=cut, order=lw.Shuffled(), chunks=lw.Chunks(700))
    found = lw.measure(lw.make_plan(lengths, batching, seed=3, epoch=4, **world), lengths)
    told = (f"{100 * found.padding_share:.1f} %", f"{found.randomness:.2f}")
    assert (row["padding"], row["randomness"]) == told
    assert row["waiting"] == f"{100 * found.straggler_waste:.1f} %"


def test_a_plan_of_random_batches_stands_alone(run, tmp_path):
    assert run("plan", "--subset", 100, "--strategy", "random", "--html", tmp_path / "one.html").status == 0
    assert list(read(tmp_path / "one.html").table("strategy")) == ["random"]


def test_rows_are_packed_in_a_report_too(run, tmp_path):
    words = ("--subset", 400, "--cut", "rows:8192,rows=2")
    assert run("compare", *words, "--html", tmp_path / "rows.html").status == 0
    assert read(tmp_path / "rows.html").said("h1").startswith("Rows of best-fit are ")
    assert run("plan", *words, "--html", tmp_path / "plan.html").status == 0
    assert list(read(tmp_path / "plan.html").table("strategy")) == ["random", "the default"]


@pytest.mark.parametrize(
    "options",
    [
        "--subset 50 --seed 3",
        "--example speech --subset 40",
        "{four}",
        "{pairs}",
        "{folder}/s.csv:seconds --frame-shift 0.01",
    ],
)
def test_the_code_of_the_page_reads_the_same_lengths(run, four, pairs, tmp_path, options):
    (tmp_path / "s.csv").write_text("seconds\n0.5\n0.25\n1.125\n")
    words = shlex.split(options.format(four=four, pairs=pairs, folder=tmp_path))
    path = tmp_path / "report.html"
    found = run("plan", *words, "--batch-size", 2, "--html", path, "--json", "-").json
    code = read(path).said("code")
    code = code[code.index("import lengthwise") :].partition("\nprint(")[0]
    ran = {}
    exec(code, ran)
    assert ran["plan"].fingerprint() == found["plan"]["fingerprint"]


def test_a_file_may_have_any_name(run, tmp_path):
    path = tmp_path / "<script>alert(1)<script>.csv"
    path.write_text("frames\n4\n2\n9\n5\n")
    assert run("compare", path, "--strategies", "random", "--html", tmp_path / "report.html").status == 0
    page = read(tmp_path / "report.html")
    assert len(page.of("script")) == 1
    assert "<script>alert(1)<script>" in page.said("p")


def test_the_command_stands_on_the_page(tmp_path):
    words = [*("compare", "--subset", "50", "--strategies", "random"), "--html", str(tmp_path / "report.html")]
    done = subprocess.run([sys.executable, "-m", "lengthwise", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    page = read(tmp_path / "report.html")
    assert f"lengthwise {shlex.join(words)}" in page.said("code")
    assert f"Lengthwise {lw.__version__}" in page.said("p")


def test_a_report_without_jinja2_is_refused_before_the_work(tmp_path):
    script = f"""
    import sys

    sys.modules["jinja2"] = None
    from lengthwise.cli import main

    sys.exit(main(["compare", "--json", "-", "--html", {str(tmp_path / "report.html")!r}]))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert 'Charts need Altair and vl-convert. Install them with: pip install "lengthwise[report]"' in done.stderr


def test_json_is_what_it_is_without_a_report(run, tmp_path):
    words = ("inspect", "--subset", 60, "--json", "-")
    assert json.loads(run(*words, "--html", tmp_path / "x.html").out) == run(*words).json
