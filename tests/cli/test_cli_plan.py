"""`lengthwise plan` and `lengthwise inspect`."""

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.cli.parser import draw_subset
from lengthwise.measures.metrics import MOST_EPOCHS, measure_epochs
from lengthwise.report import words as words_of


def test_a_saved_plan_is_the_plan(run, tmp_path):
    path = tmp_path / "plan.npz"
    strategy = "semi-sorted:0.1,arrange=longest-first,deal=mixed,tail=repeat"
    words = "--budget 9000 --chunk 900 --world-size 4 --micro-batches 2 --seed 5 --epoch 7 --subset 3000"
    done = run("plan", "--strategy", strategy, *words.split(), "--output", path, "--json", "-")
    lengths = draw_subset(lw.example_lengths(), 3_000, seed=5)
    batching = lw.Batching(
        order=lw.SemiSorted(randomization_factor=0.1),
        cut=lw.Budget(9000.0),
        arrange=lw.ShortestFirst(reverse=True),
        deal=lw.Mixed(tail="repeat"),
        chunks=lw.Chunks(900),
    )
    world = {"seed": 5, "world_size": 4, "micro_batches": 2}
    expected, *later = (lw.make_plan(lengths, batching, epoch=7 + place, **world) for place in range(MOST_EPOCHS))
    facts = {key: done.json["plan"][key] for key in ("seed", "epoch", "world_size", "batching")}
    assert facts == {"seed": 5, "epoch": 7, "world_size": 4, "batching": expected.batching}
    assert set(done.json) == {"lengths", "plan", "measures", "report"}
    loaded = lw.Plan.load(path)
    assert loaded.fingerprint() == expected.fingerprint() == done.json["plan"]["fingerprint"]
    assert np.array_equal(loaded.grid, expected.grid)
    assert done.json["measures"] == measure_epochs([expected, *later], lengths).as_dict()


@pytest.mark.parametrize(
    ("words", "deal"),
    [("", lw.Balanced()), (",deal=mixed", lw.Mixed()), (",deal=in-turn,tail=repeat", lw.InTurn(tail="repeat"))],
)
def test_the_tail_is_that_of_the_strategy_unless_one_is_asked_for(run, words, deal):
    lengths, order = lw.example_lengths(), lw.Bucketed(buckets=4, by="uniform", pad_to_edge=True)
    batching = lw.Batching(cut=lw.FixedSize(100, drop_incomplete=True), order=order, deal=deal)
    expected = lw.make_plan(lengths, batching, world_size=7)
    words = f"plan --strategy mxnet:4{words} --cut fixed:100,drop-incomplete=true --world-size 7 --json -"
    assert run(*words.split()).json["plan"]["fingerprint"] == expected.fingerprint()


def test_what_is_lost_is_counted_and_listed(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("9\n" * 21 + "3\n")
    for policy, fact, head in (("drop", "dropped", "dropped"), ("alone", "over_max_cost", "over the budget")):
        words = ("plan", path, "--strategy", "sorted", "--cut", f"budget:8,oversize={policy}")
        assert [*head.split(), "21"] in [line.split() for line in run(*words).out.splitlines()]
        report = run(*words, "--json", "-").json["report"]
        assert {name: len(numbers) for name, numbers in report.items() if numbers} == {fact: 21}


def test_inspect_by_hand(run, four):
    found = run("inspect", four, "--batch-size", 4, "--json", "-").json
    measures = {"batches": 1, "padding_share": 1 - 20 / 36, "largest_cost": 36.0, "dropped": 0, "over_max_cost": 0}
    assert found["random_batches"].items() >= measures.items()
    assert found["lengths"] == lw.describe([4, 2, 9, 5]).as_dict()
    out = run("inspect", four, "--batch-size", 4).out
    assert "Random batches of 4 sequences would be 44.4 % padding: 1.80 frames computed for every frame of data." in out


def test_inspect_draws_bars_of_equal_width_and_wider_ones_for_a_long_tail(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, range(1, 41))))  # 40 lengths in bars of 3: the last is not full
    lines = [line.split() for line in run("inspect", path).out.splitlines()]
    assert ["1-3", "█" * 48, "3"] in lines
    assert ["40-42", "█" * 16, "1"] in lines
    path.write_text("\n".join(map(str, [*range(1, 16), *range(1, 16), 65_535])))  # 16 bars, each twice as wide
    out = run("inspect", path).out
    assert ["8-15", "█" * 48, "16"] in [line.split() for line in out.splitlines()]
    assert "Bars further down cover more lengths" in out


def test_inspect_without_a_file_says_that_its_lengths_are_generated(run):
    done = run("inspect", "--batch-size", 8)
    assert done.out.endswith("    lengthwise advise --batch-size 8\n")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("long-tailed example, generated\n")
    assert "A first budget: 6,163 padded frames a batch, 8 x the mean length / 0.95, or the longest" in done.out
    assert "Random batches of 8 sequences would be" in done.out


def test_inspect_shows_every_dimension(run, pairs):
    done = run("inspect", pairs)
    lines = [line.split() for line in done.out.splitlines()]
    assert ["length", "1", "length", "2"] in lines
    facts = run("inspect", pairs, "--json", "-").json["lengths"]
    for name, key in (("shortest", "min"), ("longest", "max"), ("total", "total")):
        assert [name, *(f"{value:,}" for value in facts[key])] in lines
    assert ["mean", *(f"{value:,.1f}" for value in facts["mean"])] in lines
    for share in ("5", "50", "95"):
        assert [share, "%", "are", "at", "most", *(f"{each[share]:,}" for each in facts["quantiles"])] in lines


def test_without_a_strategy_the_plan_is_that_of_a_batching_without_an_order(run):
    expected = lw.make_plan(lw.example_lengths(), lw.Batching(budget=20_000))
    done = run("plan", "--budget", 20_000)
    assert f"plan {expected.fingerprint()}, lw.Batching(budget=20_000, order=lw.MaxEntropy(0.05))" in done.out


@pytest.mark.slow
def test_a_report_of_inspect_says_what_random_batches_compute(run, four, tmp_path):
    assert run("inspect", four, "--batch-size", 2, "--html", tmp_path / "report.html").status == 0
    page = Page.of_file(tmp_path / "report.html")
    share = run("inspect", four, "--batch-size", 2, "--json", "-").json["random_batches"]["padding_share"]
    assert page.said("h1") == f"Random batches compute {1 / (1 - share):.2f} frames for each frame of data."
    assert "optimal" not in page.said("p")


@pytest.mark.slow
def test_random_batches_beside_a_plan_are_of_its_seed_epoch_ranks_and_chunks(run, tmp_path):
    words = ("plan", "--subset", 300, "--strategy", "sorted", "--seed", 3, "--epoch", 4, "--chunk", 700)
    world = {"world_size": 3, "micro_batches": 2}
    assert run(*words, "--world-size", 3, "--micro-batches", 2, "--html", tmp_path / "report.html").status == 0
    table = Page.of_file(tmp_path / "report.html").table("strategy")
    row = table["random of 16"]
    lengths = draw_subset(lw.example_lengths(), 300, seed=3)
    batching = lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled(), deal=lw.InTurn(), chunks=lw.Chunks(700))
    plans = [lw.make_plan(lengths, batching, seed=3, epoch=4 + place, **world) for place in range(MOST_EPOCHS)]
    found = measure_epochs(plans, lengths)
    told = (f"{100 * found.padding_share:.1f} %", f"{found.randomness:.2f}")
    assert (row["padding"], row["randomness"]) == told
    assert row["waiting"] == words_of.percent(found.straggler_waste)
    assert list(table) == ["random of 16", "sorted"]
    assert run("plan", "--subset", 100, "--strategy", "random", "--html", tmp_path / "report.html").status == 0
    assert list(Page.of_file(tmp_path / "report.html").table("strategy")) == ["random of 16", "random"]
