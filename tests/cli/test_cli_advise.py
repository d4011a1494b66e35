"""`lengthwise advise`: its JSON is a contract, and what it prints fits on one screen."""

import json
import re

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.advice.search import epochs_to_plan
from lengthwise.measures.metrics import measure_pooled

pytestmark = pytest.mark.usefixtures("few_epochs")

FACTS = {"lengths", "sentence", "code", "unit", "sequences", "measured", "world_size", "micro_batches", "best"}
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
    assert set(found) == {*FACTS, "candidates"}
    assert found["lengths"]["fingerprint"] == lw.fingerprint(chosen)
    assert (found["sentence"], found["best"]) == (advice.sentence, advice.best.label)
    assert all(set(row) >= ROW for row in found["candidates"])
    (best,) = [row for row in found["candidates"] if row["best"]]
    assert lw.Batching.from_json(best["batching"]) == advice.best.batching
    assert [row["price"] for row in found["candidates"]] == [row.price for row in advice.candidates]
    assert found["code"].endswith(advice.code)


def test_random_waits_longer_here_than_in_compare(run):
    given = ("--batch-size", 16, "--subset", 1_000, "--world-size", 4)
    rows = run("advise", *given, "--json", "-").json["candidates"]
    waiting = {"advise": next(row["straggler_waste"] for row in rows if row["strategy"] == "random")}
    for deal in ("balanced", "in-turn"):
        plan = run("plan", *given, "--strategy", f"random,deal={deal}", "--json", "-").json
        waiting[deal] = plan["measures"]["straggler_waste"]
    assert waiting["balanced"] < 0.2 < waiting["in-turn"]
    assert waiting["advise"] == pytest.approx(waiting["in-turn"], rel=0.1)


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize(
    "words",
    ["", "--world-size 8 --micro-batches 4", "--budget 20000", "--budget 20000 --world-size 2"],
)
def test_it_fits_on_one_screen(run, monkeypatch, columns, words):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run("advise", "--subset", 1_000, *words.split())
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) <= 50
    assert "Lightning, Trainer" in done.out
    assert "cost=lw.Quadratic(linear=1, quadratic=0.002)" in " ".join(done.out.split())
    for head in ("waiting", "padding", "computed / useful"):  # one rank waits for nobody
        assert (f"\n{head}: " in done.out) == (head != "waiting" or "--world-size" in words)


@pytest.mark.parametrize(
    "words",
    [
        ("--batch-size", 8),
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
    epochs = range(epochs_to_plan(400))
    plans = [lw.make_plan(names["lengths"], names["batching"], epoch=epoch, **world) for epoch in epochs]
    (best,) = [row for row in found["candidates"] if row["best"]]
    measures = measure_pooled(plans, names["lengths"])
    assert (measures.padding_share, measures.randomness) == (best["padding_share"], best["randomness"])
    assert names["sampler"].micro_batches == found["micro_batches"]


STRANGE = {"one": [7], "giant": [3] * 60 + [50_000], "ten": range(1, 11), "long": [2**40, 2**40 + 5, 2**39]}


@pytest.mark.parametrize("rows", STRANGE.values(), ids=STRANGE)
def test_strange_lengths_have_advice_with_each_label_once(run, tmp_path, rows):
    path = tmp_path / "strange.txt"
    path.write_text("\n".join(map(str, rows)))
    for words in ((), ("--world-size", 64), ("--padding", 0.6), ("--batch-size", 1), ("--cut", "dynamic:9")):
        done = run("advise", path, *words, "--json", "-")
        assert (done.status, done.err) == (0, "")
        labels = [row["strategy"] for row in done.json["candidates"]]
        assert len(labels) == len(set(labels))
        assert labels.count(done.json["best"]) == 1


def test_the_code_reads_the_file_that_was_given(run, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("seconds\n" + "\n".join(f"{1 + number % 7}.5" for number in range(40)))
    code = run("advise", f"{path}:seconds", "--frame-shift", 0.01, "--batch-size", 4, "--json", "-").json["code"]
    (line,) = [line for line in code.splitlines() if line.startswith("lengths = ")]
    names = {"lw": lw}
    exec(line, names)
    assert names["lengths"].tolist()[:2] == [150, 250]


def test_seconds_are_those_of_the_step_cost(run, step_cost, tmp_path):
    path = tmp_path / "advice.json"
    assert "seconds" in run("advise", *FEW, "--batch-size", 8, "--cost", step_cost, "--json", path).out
    assert json.loads(path.read_text())["unit"] == "seconds"


def test_a_page_and_a_chart_show_the_rows_of_the_terminal(run, tmp_path):
    pytest.importorskip("jinja2")
    page_path, chart = tmp_path / "advice.html", tmp_path / "advice.png"
    words = ("advise", *FEW, "--world-size", 2, "--seed", 5)
    found = run(*words, "--html", page_path, "--plot", chart, "--json", "-").json
    assert chart.stat().st_size > 5_000
    page = Page(page_path.read_text())
    assert page.said("h1").startswith("Random batches compute ")
    assert "batches of 16 sequences; 2 ranks" in page.said("p")
    names = {}
    exec(found["code"].partition("\nsampler")[0].partition("import lengthwise as lw")[2], {"lw": lw}, names)
    plan = lw.make_plan(names["lengths"], names["batching"], seed=5, world_size=2)
    assert plan.fingerprint() in page.said("code")
    # The rows of the terminal, and one number for each measure.
    (tried,) = (table for table in page.tables if "ships in" in table[0])
    printed = [re.split(r"\s{2,}", line) for line in run(*words).out.splitlines()]
    for row in tried[1:]:
        assert [cell for cell in row if cell] in [[line[0].removesuffix(" *"), *line[1:]] for line in printed]
    (measured,) = (table for table in page.tables if "batches" in table[0] and "ships in" not in table[0])
    best = [
        dict(zip(table[0], row, strict=True)) for table in (tried, measured) for row in table if row[0] == found["best"]
    ]
    assert all(best[0][head] == best[1][head] for head in ("padding", "randomness", "waiting"))


def test_nothing_to_gain_is_said(run, tmp_path):
    path = tmp_path / "equal.txt"
    for count in (1, 2, 30):
        path.write_text("7\n" * count)
        assert "You have nothing to gain: no batches cost clearly less. Shuffle." in run("advise", path).out


REFUSED = {
    ("--padding", "5 percent"): "`--padding` must be a number, but is '5 percent'.",
    ("--padding=-0.01",): "`padding` must be above 0 and at most 0.99, but is -0.01.",
    ("--cut", "rows:9000"): "`cut` must be a FixedSize, a Budget or a DynamicSize, but is Rows(",
    ("--budget", 100): "`budget` must be at least the longest sequence, 1,125, but is 100.0. Try --budget 8306, ",
    ("--world-size", 0): "`world_size` must be at least 1, but is 0.",
    ("--cost", "missing.json"): "`path` must be a file that can be read, but is 'missing.json'.",
    ("--plot", "front.gif"): "`plot` must be a file of one of the kinds .png, .svg, .pdf, but is 'front.gif'.",
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=[" ".join(map(str, words)) for words in REFUSED])
def test_bad_input_is_refused_in_one_sentence(run, words, message):
    done = run("advise", "--subset", 50, *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        ("--subset 60 --seed 3", lw.FixedSize(16)),
        ("--example speech --subset 40 --budget 20000.5", lw.Budget(20_000.5)),
        ("{folder}/s.csv:s --frame-shift 0.01 --cut fixed:16,multiple-of=8", lw.FixedSize(16, multiple_of=8)),
        ("{folder}/s.csv:s --frame-shift 5 --batch-size 2", lw.FixedSize(2)),
        ("{folder}/s.csv:s --cut dynamic:4,rule=paper", lw.DynamicSize(4, rule="paper")),
        ("{folder}/t.csv:text --count words --budget 40", lw.Budget(40)),
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


@pytest.mark.parametrize(("lengths", "budget"), [([10] * 99 + [2_000], 2_000), ([10, 20], 267)])
def test_the_first_budget_holds_the_longest(run, tmp_path, lengths, budget):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, lengths)))
    assert f"A first budget: {budget:,} padded frames a batch, " in run("inspect", path).out
    assert run("plan", path, "--json", "-").json["measures"]["largest_cost"] <= budget
