"""One recommendation: plan, compare, advise, inspect, the README and the pages name the same batches."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.cli.strategies import parse_strategy

ROOT = Path(__file__).parents[2]
ONE_RANK, MANY = {}, {"world_size": 8, "micro_batches": 4}


@pytest.fixture(params=["long-tailed", "speech", "a file"])
def data(request, tmp_path):
    """Returns the words that name the lengths on the command line, and the lengths."""
    if request.param != "a file":
        return ("--example", request.param), lw.example_lengths(request.param)
    lengths = np.random.default_rng(0).integers(1, 2_000, 3_000)
    path = tmp_path / "lengths.csv"
    path.write_text("frames\n" + "\n".join(map(str, lengths)))
    return (f"{path}:frames",), lengths


@pytest.mark.parametrize("options", [(), ("--batch-size", 5)], ids=["as usual", "of 5"])
def test_all_commands_say_the_same_of_random_batches(run, tmp_path, options):
    words = ("--subset", 900, *options)
    size = options[-1] if options else 16
    inspected = run("inspect", *words, "--json", "-").json["random_batches"]["padding_share"]
    advice = run("advise", *words, "--json", "-").json
    compared = run("compare", *words, "--json", "-").json["rows"][0]
    run("plan", *words, "--html", tmp_path / "plan.html")
    name, row = next(iter(Page.of_file(tmp_path / "plan.html").table("strategy").items()))
    assert (name, compared["strategy"]) == (f"random of {size}", "random" if options else "random of 16")
    assert {each["padding_share"] for each in (compared, advice["candidates"][-1])} == {inspected}
    assert row["padding"] == f"{100 * inspected:.1f} %"
    said = f"Random batches of {size} sequences pad {row['padding']} and compute {1 / (1 - inspected):.2f} frames"
    assert advice["sentence"].startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize("world", [ONE_RANK, MANY], ids=["one rank", "many"])
def test_all_commands_name_the_same_batches(run, data, world):
    words, lengths = data
    options = [word for name, size in world.items() for word in (f"--{name.replace('_', '-')}", size)]
    advice = run("advise", *words, *options, "--json", "-").json
    (row,) = [row for row in advice["candidates"] if row["best"]]
    batching = lw.Batching.from_json(row["batching"])
    assert batching == lw.advise(lengths, **world).best.batching
    plan = lw.make_plan(lengths, batching, **world)
    assert run("plan", *words, *options, "--json", "-").json["plan"]["fingerprint"] == plan.fingerprint()
    compared = run("compare", *words, *options, "--strategies", f"random,{advice['best']}").out
    assert f"batches of at most {batching.budget:,.0f} padded frames" in compared
    assert re.findall(r"^(\S+) \*", compared, re.MULTILINE) == [advice["best"]]
    assert f"A first budget: {batching.budget:,.0f} padded frames" in run("inspect", *words).out


def test_the_decided_batches_are_a_row_of_compare_and_a_balance_is_that_of_all_commands(run):
    words = ("--example", "speech", "--subset", 900, "--world-size", 8, "--balance", 0.001)
    (best,) = re.findall(r"^(\S+) \*", run("compare", *words).out, re.MULTILINE)
    advice = run("advise", *words, "--json", "-").json
    assert (advice["best"], advice["unit"]) == (best, "work")
    assert "balance=lw.Quadratic(quadratic=0.001)" in advice["code"]
    plan = run("plan", *words, "--json", "-").json["plan"]
    batching = lw.Batching.from_json(plan["batching"])
    assert batching.balance == lw.Quadratic(quadratic=0.001)
    assert parse_strategy(best, cut=batching.cut) == replace(batching, balance=None)


def test_the_readme_and_the_pages_name_the_budget_of_advise():
    budget = lw.advise(lw.example_lengths()).best.batching.budget
    for page in ("README.md", "docs/advice.md"):
        budgets = re.findall(r"lw.Batching\(budget=([\d_]+)\)", (ROOT / page).read_text(encoding="utf-8"))
        assert {int(number) for number in budgets} == {budget}, page
