"""`lengthwise advise`: its JSON is a contract, and what it prints fits on one screen."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.advice.search import epochs_to_plan
from lengthwise.cli import advise
from lengthwise.measures.metrics import measure_pooled

pytestmark = pytest.mark.usefixtures("few_epochs")

FACTS = {
    *("lengths", "sentence", "code", "limit", "unit", "sequences", "measured", "world_size", "micro_batches"),
    *("best", "more_mixed", "candidates"),
}
ROW = {
    "strategy",
    "batching",
    "price",
    "of_random",
    "on_front",
    "ships_in",
    "best",
    "padding_share",
    "step_mixing",
}
FEW = ("--example", "speech", "--subset", 800)


@pytest.fixture
def step_cost(tmp_path):
    counts, longest = np.repeat([1, 4, 16, 32], 4), np.tile([50, 200, 900, 2_000], 4)
    path = tmp_path / "step.json"
    lw.StepCost.of(counts, longest, 0.01 + 2e-5 * counts * longest).save(path)
    return path


def test_json_holds_what_the_library_says(run):
    found = run("advise", *FEW, "--batch-size", 8, "--world-size", 2, "--seed", 5, "--json", "-").json
    lengths = lw.example_lengths("speech")
    chosen = lengths[np.sort(lw.Key(seed=5, stage="subset").permutation(len(lengths))[:800])]
    advice = lw.advise(chosen, lw.FixedSize(8), world_size=2, seed=5)
    assert set(found) == FACTS
    assert found["lengths"]["fingerprint"] == lw.fingerprint(chosen)
    assert (found["sentence"], found["best"]) == (advice.sentence, advice.best.label)
    assert all(set(row) >= ROW for row in found["candidates"])
    (best,) = [row for row in found["candidates"] if row["best"]]
    assert lw.Batching.from_json(best["batching"]) == advice.best.batching
    assert [row["price"] for row in found["candidates"]] == [row.price for row in advice.candidates]
    assert found["code"].endswith(advice.code)


def test_a_note_says_what_the_heads_mean(run):
    told = " ".join(run("advise", "--subset", 1_000, "--world-size", 2).out.split())
    for head in ("waiting", "mixing", "steps vary", "computed / useful"):
        assert f"{head}: " in told
    assert "waiting: " not in run("advise", "--subset", 1_000).out  # one rank waits for nobody


def test_advise_says_why_random_waits_longer_than_elsewhere(run):
    given = ("--subset", 1_000, "--world-size", 4)
    said = " ".join(run("advise", *given).out.split())
    assert "waiting: the share of time that ranks wait, dealt as trainers do (`compare` deals by cost)" in said
    rows = run("advise", *given, "--json", "-").json["candidates"]
    waiting = {"advise": next(row["straggler_waste"] for row in rows if row["strategy"] == "random")}
    for deal in ("balanced", "in-turn"):
        plan = run("plan", *given, "--strategy", "random", "--deal", deal, "--json", "-").json
        waiting[deal] = plan["measures"]["straggler_waste"]
    assert waiting["balanced"] < 0.2 < waiting["in-turn"]
    assert waiting["advise"] == pytest.approx(waiting["in-turn"], rel=0.1)


@pytest.mark.parametrize("columns", [80, 100])
def test_it_fits_on_one_screen(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (
        (),
        ("--world-size", 8, "--micro-batches", 4),
        ("--budget", 20_000),
        ("--budget", 20_000, "--world-size", 2),
    ):
        done = run("advise", "--subset", 1_000, *words)
        assert (done.status, done.err) == (0, "")
        lines = done.out.splitlines()
        assert max(map(len, lines)) <= columns
        # Code that draws a subset has two lines more than code that reads a file.
        assert columns == 80 or len(lines) <= 42
        assert sum(re.match(r"\* \S", line) is not None for line in lines) == 1  # mark and label in one line
        assert "Lightning, Trainer" in done.out


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
    assert (measures.padding_share, measures.step_mixing) == (best["padding_share"], best["step_mixing"])
    assert names["sampler"].micro_batches == found["micro_batches"]


STRANGE = {"one": [7], "giant": [3] * 60 + [50_000], "ten": range(1, 11), "long": [2**40, 2**40 + 5, 2**39]}


@pytest.mark.parametrize("rows", STRANGE.values(), ids=STRANGE)
def test_strange_lengths_have_advice_with_each_label_once(run, tmp_path, rows):
    path = tmp_path / "strange.txt"
    path.write_text("\n".join(map(str, rows)))
    for words in ((), ("--world-size", 64), ("--within", 3), ("--batch-size", 1), ("--cut", "dynamic:9")):
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


def test_the_table_has_what_the_sentence_names_what_ships_and_some_of_the_front():
    found = lw.advise(lw.example_lengths(count=300), lw.FixedSize(8))
    # All of them on the front, and of what ships nothing: 21 rows, of which five or six are shown.
    rows = tuple(replace(row, on_front=True, ships_in="") for row in found.candidates[:21])
    for best in range(21):
        shown = advise._shown(replace(found, candidates=rows, best=rows[best], more_mixed=None))
        assert [rows.index(row) for row in shown] == sorted({0, 5, 10, 15, 20, best})
    both = replace(found, candidates=rows, best=rows[1], more_mixed=rows[2])
    assert [rows.index(row) for row in advise._shown(both)] == [0, 1, 2, 7, 13, 20]
    shipped = (*rows[:3], replace(rows[3], ships_in="somebody"), *rows[4:])
    shown = advise._shown(replace(found, candidates=shipped, best=shipped[0], more_mixed=None))
    assert shipped[3] in shown


def test_seconds_are_those_of_the_step_cost(run, step_cost, tmp_path):
    path = tmp_path / "advice.json"
    assert "seconds" in run("advise", *FEW, "--batch-size", 8, "--cost", step_cost, "--json", path).out
    assert json.loads(path.read_text())["unit"] == "seconds"


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_front_is_drawn(run, tmp_path, suffix):
    path = tmp_path / f"front{suffix}"
    assert run("advise", *FEW, "--world-size", 2, "--plot", path).status == 0
    assert path.stat().st_size > 5_000


def test_a_page_shows_what_is_recommended(run, tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "advice.html"
    found = run("advise", *FEW, "--world-size", 2, "--seed", 5, "--html", path, "--json", "-").json
    page = Page(path.read_text())
    assert page.said("h1").startswith("Random batches compute ")
    (tried,) = (table for table in page.tables if "cut" in table[0])
    at, rows = tried[0].index("cut"), {row["strategy"]: row for row in found["candidates"]}
    for label, *cells in tried[1:]:
        cut = lw.Batching.from_json(rows[label.removesuffix(" (recommended)")]["batching"]).cut
        assert cells[at - 1] == ("16" if isinstance(cut, lw.FixedSize) else f"{cut.budget:,.0f} frames")
    names = {}
    exec(found["code"].partition("\nsampler")[0].partition("DataLoader")[2], {"lw": lw}, names)
    plan = lw.make_plan(names["lengths"], names["batching"], seed=5, world_size=2)
    assert plan.fingerprint() in page.said("code")
    assert "What was tried" in page.said("h2")
    assert "random batches (Lightning, Trainer)" in page.text
    assert "batches of 16 sequences; 2 ranks" in page.said("p")


def test_a_page_says_one_number_for_one_measure(run, tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "advice.html"
    best = run("advise", *FEW, "--world-size", 2, "--html", path, "--json", "-").json["best"]
    tables = [table for table in Page(path.read_text()).tables if table[0][0] == "strategy" and len(table[0]) > 3]
    tried, measured = (
        next(
            dict(zip(table[0], row, strict=True)) for row in table[1:] if row[0].removesuffix(" (recommended)") == best
        )
        for table in tables
    )
    assert [tried[head] for head in ("step mixing", "waiting")] == [
        measured[head] for head in ("step mixing", "waiting")
    ]


def test_nothing_to_gain_is_said(run, tmp_path):
    path = tmp_path / "equal.txt"
    for count in (1, 2, 30):
        path.write_text("7\n" * count)
        assert (
            "You have nothing to gain: random batches compute no more than the cheapest. Shuffle."
            in run("advise", path).out
        )


REFUSED = {
    ("--within", "5 percent"): "`within` must be a number or a percentage, but is '5 percent'.",
    ("--within=-1%",): "`within` must be finite and at least 0, but is -0.01.",
    ("--cut", "rows:9000"): "`cut` must be a FixedSize, a Budget or a DynamicSize, but is Rows(",
    ("--budget", 100): "`budget` must be at least the cost of the costliest sequence,",
    ("--world-size", 0): "`world_size` must be at least 1, but is 0.",
    ("--cost", "missing.json"): "`path` must be a file that can be read, but is 'missing.json'.",
    ("--plot", "front.gif"): "`plot` must be a file of one of the kinds .png, .svg, .pdf, but is 'front.gif'.",
    ("--pack", 4096): "there is no --pack here",
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=[" ".join(map(str, words)) for words in REFUSED])
def test_bad_input_is_refused_in_one_sentence(run, words, message):
    done = run("advise", "--subset", 50, *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_inspect_names_the_command_and_the_code_of_the_same_lengths(run, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "\n".join("a word " * (1 + number % 5) for number in range(20)))
    out = run("inspect", f"{path}:text", "--count", "words", "--budget", 40).out
    assert f"lengthwise advise {path}:text --count words --budget 40\n" in out
    program = out[out.index("import lengthwise as lw") :].replace("\n    ", "\n")
    names = {}
    exec(program, names)
    assert names["plan"].costs.max() <= 40
    assert "lw.Batching(budget=40))" in program


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        ("--subset 60 --seed 3", lw.FixedSize(16)),
        ("--example speech --subset 40 --budget 20000.5", lw.Budget(20_000.5)),
        ("{folder}/s.csv:s --frame-shift 0.01 --multiple-of 8", lw.FixedSize(16, multiple_of=8)),
        ("{folder}/s.csv:s --frame-shift 5 --batch-size 2", lw.FixedSize(2)),
        ("{folder}/s.csv:s --cut dynamic:4,rule=paper", lw.DynamicSize(4, rule="paper")),
    ],
)
def test_the_next_command_is_of_the_same_lengths_and_the_same_cut(run, tmp_path, words, cut):
    (tmp_path / "s.csv").write_text("s\n50\n25\n125\n75\n")
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


def test_the_budget_to_begin_with_holds_the_longest(run, tmp_path):
    path = tmp_path / "lengths.txt"
    for lengths, said in (
        ([10] * 99 + [2_000], "about 478 frames; the longest alone has 2,000, the least --budget.\n"),
        ([10, 20], "about 240 frames: a --budget to begin with.\n"),
    ):
        path.write_text("\n".join(map(str, lengths)))
        assert f"16 sequences of the mean length have {said}" in run("inspect", path).out
