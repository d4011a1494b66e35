"""`lengthwise advise`: its JSON is a contract, and what it prints fits on one screen."""

import json
import re

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs
from lengthwise.report.words import percent

pytestmark = pytest.mark.usefixtures("few_epochs")

FACTS = {
    "lengths",
    "sentence",
    "attention",
    "longest",
    "code",
    "unit",
    "sequences",
    "measured",
    "world_size",
    "micro_batches",
}
ROW = {"strategy", "batching", "price", "ships_in", "best", "padding_share", "randomness"}
FEW = ("--example", "speech", "--subset", 800)


@pytest.fixture
def step_cost(tmp_path):
    counts, longest = np.repeat([1, 4, 16, 32], 4), np.tile([50, 200, 900, 2_000], 4)
    path = tmp_path / "step.json"
    lw.StepCost.of(counts, longest, 0.01 + 2e-5 * counts * longest).save(path)
    return path


def test_json_holds_what_the_library_says(run):
    words = ("--batch-size", 8, "--world-size", 2, "--seed", 5, "--padding", 0.05)
    found = run("advise", *FEW, *words, "--json", "-").json
    lengths = lw.example_lengths("speech")
    chosen = lengths[np.sort(lw.Key(seed=5, stage="subset").permutation(len(lengths))[:800])]
    advice = lw.advise(chosen, lw.FixedSize(8), world_size=2, seed=5, padding=0.05)
    assert set(found) == {*FACTS, "best", "candidates"}
    assert found["lengths"]["fingerprint"] == lw.fingerprint(chosen)
    assert (found["sentence"], found["best"]) == (advice.sentence, advice.best.label)
    assert all(set(row) >= ROW for row in found["candidates"])
    (best,) = [row for row in found["candidates"] if row["best"]]
    assert lw.Batching.from_json(best["batching"]) == advice.best.batching
    assert [row["price"] for row in found["candidates"]] == [row.price for row in advice.candidates]
    assert found["code"].endswith(advice.code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--cut", "dynamic:16,rule=paper"),
        ("--cut", "fixed:16,drop-incomplete=true", "--micro-batches", 2),
        ("--cut", "budget:30000,max-sequences=8,multiple-of=8", "--world-size", 64),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_what_is_printed_runs_and_pads_as_much_as_is_printed(run, tmp_path, words):
    torch = pytest.importorskip("torch")
    path = tmp_path / "advice.json"
    out = run("advise", "--example", "speech", "--subset", 400, *words, "--json", path).out
    found = json.loads(path.read_text())
    names = {"dataset": [torch.zeros(2)] * 400, "epochs": 1}
    exec(out[out.index("import lengthwise as lw") :], names)
    world = {name: found[name] for name in ("world_size", "micro_batches")}
    epochs = range(epochs_to_pool(400))
    plans = [lw.make_plan(names["lengths"], names["batching"], epoch=epoch, **world) for epoch in epochs]
    (best,) = [row for row in found["candidates"] if row["best"]]
    measures = measure_epochs(plans, names["lengths"])
    assert (measures.padding_share, measures.randomness) == (best["padding_share"], best["randomness"])
    assert names["sampler"].micro_batches == found["micro_batches"]


def test_seconds_are_those_of_the_step_cost(run, step_cost, tmp_path):
    path = tmp_path / "advice.json"
    assert "seconds" in run("advise", *FEW, "--batch-size", 8, "--cost", step_cost, "--json", path).out
    assert json.loads(path.read_text())["unit"] == "seconds"


@pytest.mark.slow
def test_a_page_and_a_chart_show_the_rows_of_the_terminal(run, tmp_path):
    pytest.importorskip("jinja2")
    page_path, chart = tmp_path / "advice.html", tmp_path / "advice.png"
    words = ("advise", *FEW, "--world-size", 2, "--seed", 5)
    found = run(*words, "--html", page_path, "--plot", chart, "--json", "-").json
    assert chart.stat().st_size > 5_000
    page = Page.of_file(page_path)
    assert page.said("h1").startswith("Random batches compute ")
    assert "batches of 16 sequences; 2 ranks" in page.said("p")
    names = {}
    exec(found["code"].partition("\nsampler")[0].partition("import lengthwise as lw")[2], {"lw": lw}, names)
    plan = lw.make_plan(names["lengths"], names["batching"], seed=5, world_size=2)
    assert plan.fingerprint() in page.said("code")
    (tried,) = (table for table in page.tables if table[0][0] == "strategy")  # no other table of measures
    printed = [re.split(r"\s{2,}", line) for line in run(*words).out.splitlines()]
    rows = {row["strategy"]: row for row in found["candidates"]}
    for row in tried[1:]:
        assert [cell for cell in row if cell] in [[line[0].removesuffix(" *"), *line[1:]] for line in printed]
        assert percent(rows[row[0]]["padding_share"]) in row


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        ("--example speech --subset 40 --budget 20000.5", lw.Budget(20_000.5)),
        ("{folder}/s.csv:s --frame-shift 0.01 --cut fixed:16,multiple-of=8", lw.FixedSize(16, multiple_of=8)),
        ("{folder}/s.csv:s --cut dynamic:4,rule=paper", lw.DynamicSize(4, rule="paper")),
        ("{folder}/t.csv:text --count words --budget 40", lw.Budget(40)),
        ("{folder}/s.csv:s --max-length 60 --subset 3 --seed 2", lw.FixedSize(16)),
    ],
)
def test_the_next_command_of_inspect_is_of_the_same_lengths_and_the_same_cut(run, tmp_path, words, cut):
    (tmp_path / "s.csv").write_text("s\n50\n25\n125\n75\n")
    (tmp_path / "t.csv").write_text("text\n" + "\n".join("a word " * (1 + number % 5) for number in range(20)))
    words = words.format(folder=tmp_path).split()
    out, facts = run("inspect", *words).out, run("inspect", *words, "--json", "-").json["lengths"]
    (command,) = re.findall(r"^    lengthwise (advise .*)$", out, re.MULTILINE)
    found = run(*command.split(), "--json", "-").json
    assert found["lengths"]["fingerprint"] == facts["fingerprint"]
    (random,) = [row["batching"] for row in found["candidates"] if row["strategy"] == "random"]
    assert lw.Batching.from_json(random).cut == cut
    names = {}
    exec(found["code"].partition("\nbatching")[0], names)
    assert lw.fingerprint(names["lengths"]) == facts["fingerprint"]


def test_sequences_that_set_the_budget_are_named_with_what_to_do(run, tmp_path):
    lengths = np.array([*range(1, 301), 5_000, 9_000])
    np.save(tmp_path / "lengths.npy", lengths)
    cap = max(cap for cap in range(9_000) if np.ceil(16 * lengths.clip(max=cap).mean() / 0.95) >= cap)
    told = f"The budget is set by 2 sequences longer than {cap:,}: cut there, and plan with lengths.clip(max={cap}), or"
    for command in ("inspect", "advise"):
        assert told in " ".join(run(command, tmp_path / "lengths.npy").out.split())
        for words in (("--max-length", cap), ("--cut", f"budget:{cap},oversize=drop")):
            assert "The budget is set" not in run(command, tmp_path / "lengths.npy", *words).out
