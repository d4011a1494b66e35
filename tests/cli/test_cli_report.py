"""`--html`: the report of a command says what its table and its JSON say."""

import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.advice.candidates import first_budget
from lengthwise.cli.parser import draw_subset
from lengthwise.measures.metrics import MOST_EPOCHS, measure_epochs

pytestmark = pytest.mark.slow


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def test_compare_puts_forward_what_the_rule_of_advise_does(run, tmp_path):
    words = ("compare", "--subset", 2_000, "--world-size", 4, "--micro-batches", 4, "--html", tmp_path / "report.html")
    assert run(*words, "--strategies", "random,random-steps,max-entropy:0.05").status == 0
    page = read(tmp_path / "report.html")
    assert "random-steps computes" in page.said("h1")
    assert list(page.table("strategy")) == ["random", "random-steps", "max-entropy:0.05"]
    assert "random-steps" in page.said("code")


def test_inspect_says_what_random_batches_compute(run, four, tmp_path):
    assert run("inspect", four, "--batch-size", 2, "--html", tmp_path / "report.html").status == 0
    page = read(tmp_path / "report.html")
    share = run("inspect", four, "--batch-size", 2, "--json", "-").json["random_batches"]["padding_share"]
    assert page.said("h1") == f"Random batches compute {1 / (1 - share):.2f} frames for each frame of data."
    assert "optimal" not in page.said("p")


def test_random_batches_beside_a_plan_are_of_its_seed_epoch_ranks_and_chunks(run, tmp_path):
    words = ("plan", "--subset", 300, "--strategy", "sorted", "--seed", 3, "--epoch", 4, "--chunk", 700)
    world = {"world_size": 3, "micro_batches": 2}
    assert run(*words, "--world-size", 3, "--micro-batches", 2, "--html", tmp_path / "report.html").status == 0
    table = read(tmp_path / "report.html").table("strategy")
    row = table["random"]
    lengths = draw_subset(lw.example_lengths(), 300, seed=3)
    cut = lw.Budget(first_budget(lengths))
    batching = lw.Batching(cut=cut, order=lw.Shuffled(), chunks=lw.Chunks(700))
    plans = [lw.make_plan(lengths, batching, seed=3, epoch=4 + place, **world) for place in range(MOST_EPOCHS)]
    found = measure_epochs(plans, lengths)
    told = (f"{100 * found.padding_share:.1f} %", f"{found.randomness:.2f}")
    assert (row["padding"], row["randomness"]) == told
    assert row["waiting"] == f"{100 * found.straggler_waste:.1f} %"
    assert list(table) == ["random", "sorted"]
    assert run("plan", "--subset", 100, "--strategy", "random", "--html", tmp_path / "report.html").status == 0
    assert list(read(tmp_path / "report.html").table("strategy")) == ["random"]
