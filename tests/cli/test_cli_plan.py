"""`lengthwise plan` and `lengthwise inspect`."""

import json
import warnings

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.cli import compare
from lengthwise.cli.strategies import DEFAULT_STRATEGY


def test_a_saved_plan_is_the_plan(run, tmp_path):
    path = tmp_path / "plan.npz"
    words = ("--strategy", "semi-sorted:0.1,arrange=longest-first", "--budget", 9000, "--world-size", 4)
    words += ("--micro-batches", 2, "--seed", 5, "--epoch", 7, "--deal", "mixed", "--tail", "repeat")
    done = run("plan", *words, "--output", path, "--json", "-")
    lengths = lw.example_lengths()
    batching = lw.Batching(
        order=lw.SemiSorted(randomization_factor=0.1),
        cut=lw.Budget(9000.0),
        arrange=lw.ShortestFirst(reverse=True),
        deal=lw.Mixed(tail="repeat"),
    )
    expected = lw.make_plan(lengths, batching, seed=5, epoch=7, world_size=4, micro_batches=2)
    loaded = lw.Plan.load(path)
    assert loaded.fingerprint() == expected.fingerprint() == done.json["plan"]["fingerprint"]
    assert np.array_equal(loaded.grid, expected.grid)
    assert done.json["measures"] == lw.measure(expected, lengths).as_dict()


def test_batches_are_padded_to_multiples(run, tmp_path):
    path = tmp_path / "plan.npz"
    done = run("plan", "--budget", 20_000, "--multiple-of", 8, "--output", path)
    assert "batches of at most 20,000 padded frames, padded to multiples of 8" in done.out
    plan = lw.Plan.load(path)
    assert (plan.padded_lengths % 8 == 0).all()
    cut = lw.Budget(20_000, multiple_of=8)
    assert plan.fingerprint() == lw.make_plan(lw.example_lengths(), lw.Batching(cut=cut)).fingerprint()
    run("plan", "--cut", "budget:20000,count-multiple-of=8", "--multiple-of", 8, "--output", path)
    cut = lw.Budget(20_000, multiple_of=8, count_multiple_of=8)
    expected = lw.make_plan(lw.example_lengths(), lw.Batching(cut=cut))
    assert lw.Plan.load(path).fingerprint() == expected.fingerprint()


def test_four_lengths_by_hand(run, four):
    found = run("plan", four, "--strategy", "sorted", "--batch-size", 2, "--costliest", 1, "--json", "-").json
    assert set(found) == {"lengths", "plan", "measures", "report", "costliest"}
    assert found["costliest"] == [{"batch": 1, "sequences": 2, "padded_length": [9], "cost": 18.0}]
    assert found["report"] == {"dropped": [], "repeated": [], "over_max_cost": []}
    facts = {key: found["plan"][key] for key in ("seed", "epoch", "world_size")}
    assert facts == {"seed": 0, "epoch": 0, "world_size": 1}


def test_plan_and_compare_say_why_their_mixing_differs(run):
    words = ("--subset", 200, "--batch-size", 8)
    planned = " ".join(run("plan", *words, "--strategy", "random").out.split())
    assert "Mixing is estimated in 5 bins on this epoch alone; below about 0.2 it" in planned  # 1 + sqrt(200 / 10)
    assert (
        "`lengthwise compare` prints another number for short data: it pools epochs, 32 at most, to fill 256" in planned
    )
    assert "--json has more measures, which help(lengthwise.Measures) explains" in planned
    compared = " ".join(run("compare", *words, "--strategies", "random").out.split())
    assert compare._pooling_note(1, 256) == "estimated in 256 bins."  # of long data
    assert "estimated in 50 bins over 32 epochs, where `lengthwise plan` has one epoch and fewer bins." in compared


@pytest.mark.parametrize("deal", ["random-steps", "stratified", "balanced", "mixed", "in-turn", "portions"])
def test_every_deal_gives_all_ranks_the_same_number_of_steps(run, deal, tmp_path):
    path = tmp_path / "plan.npz"
    done = run("plan", "--subset", 200, "--deal", deal, "--world-size", 3, "--output", path)
    plan = lw.Plan.load(path)
    assert done.status == 0
    assert plan.world_size == 3
    taken = np.concatenate([batch for rank in range(3) for batch in plan.batches(rank)])
    assert np.array_equal(np.sort(taken), np.arange(200))


@pytest.mark.parametrize(
    ("words", "deal"),
    [
        ((), lw.Balanced(tail="drop")),
        (("--deal", "mixed"), lw.Mixed(tail="drop")),
        (("--tail", "split"), lw.Balanced()),
        (("--deal", "in-turn", "--tail", "repeat"), lw.InTurn(tail="repeat")),
    ],
)
def test_the_tail_is_that_of_the_strategy_unless_one_is_asked_for(run, words, deal):
    lengths, order = lw.example_lengths(), lw.Bucketed(buckets=4, by="uniform", pad_to_edge=True)
    batching = lw.Batching(cut=lw.FixedSize(100, drop_incomplete=True), order=order, deal=deal)
    expected = lw.make_plan(lengths, batching, world_size=7)
    words += ("--strategy", "mxnet:4,drop=true", "--batch-size", 100, "--world-size", 7, "--json", "-")
    found = run("plan", *words).json
    assert found["plan"]["fingerprint"] == expected.fingerprint()


def test_chunks(run, four):
    # 4, 2, 9 and 5 frames in chunks of at most 4: 1 + 1 + 3 + 2 of them.
    found = run("plan", four, "--chunk", 4, "--strategy", "random", "--json", "-").json
    assert found["measures"]["sequences"] == 7


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("--chunk 100", {"chunks": lw.Chunks(100)}),
        ("--chunk 100 --chunk-step 40", {"chunks": lw.Chunks(100, step=40)}),
        ("--strategy random --tail drop", {"deal": lw.Balanced(tail="drop")}),
    ],
)
def test_options_make_the_batching_that_they_name(run, words, choices):
    asked = ("plan", "--subset", 300, "--seed", 2, "--epoch", 5, "--strategy", "random", "--world-size", 3)
    lengths = lw.example_lengths()[np.sort(lw.Key(seed=2, stage="subset").permutation(10_480)[:300])]
    plan = lw.make_plan(
        lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled(), **choices), seed=2, epoch=5, world_size=3
    )
    facts = run(*asked, *words.split(), "--json", "-").json["plan"]
    assert facts == {"fingerprint": plan.fingerprint(), "seed": 2, "epoch": 5, "world_size": 3}


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, " ...")])
def test_twenty_that_are_dropped_are_listed(run, tmp_path, count, more):
    path = tmp_path / "lengths.txt"
    path.write_text("9\n" * count + "3\n")
    words = ("plan", path, "--strategy", "sorted", "--cut")
    said = run(*words, "budget:8,oversize=drop").out.splitlines()[-1]
    assert said == f"dropped: {count} sequences: {', '.join(map(str, range(20)))}{more}"
    said = run(*words, "budget:8,oversize=alone").out.splitlines()[-1]
    assert said.startswith(f"over max cost: {count} batches: ")
    assert said.endswith(" ...") == bool(more)
    report = run(*words, "budget:8,oversize=alone", "--json", "-").json["report"]
    assert len(report["over_max_cost"]) == count
    assert report["dropped"] == report["repeated"] == []


def test_the_table_and_what_stands_below_it(run, four):
    words = ("plan", four, "--strategy", "sorted", "--cut", "budget:8,oversize=drop")
    lines = run(*words).out.splitlines()
    assert lines[2] == "batches of at most 8 padded frames"
    assert ["padding", "15.4", "%"] in [line.split() for line in lines]  # (2, 4) and (5): 11 of 13 used
    assert lines[-1] == "dropped: 1 sequence: 2"


def test_plan_writes_json_to_a_file(run, tmp_path):
    path = tmp_path / "plan.json"
    assert "max-entropy" not in run("plan", "--subset", 100, "--json", path).err
    assert json.loads(path.read_text())["lengths"]["count"] == 100


def test_links_are_written_through(run, tmp_path):
    for name in ("plan.npz", "plan.json"):
        (tmp_path / name).symlink_to(f"real-{name}")
    words = ("plan", "--subset", 100, "--output", tmp_path / "plan.npz", "--json", tmp_path / "plan.json")
    assert run(*words).status == 0
    facts = json.loads((tmp_path / "real-plan.json").read_text())["plan"]
    assert lw.Plan.load(tmp_path / "real-plan.npz").fingerprint() == facts["fingerprint"]
    assert (tmp_path / "plan.npz").is_symlink()
    assert (tmp_path / "plan.json").is_symlink()


def test_inspect_by_hand(run, four):
    found = run("inspect", four, "--batch-size", 4, "--json", "-").json
    assert found["random_batches"] == {
        "batches": 1,
        "padding_share": pytest.approx(16 / 36),
        "zero_padding_rate": pytest.approx(16 / 36),
        "largest_cost": 36.0,
        "dropped": 0,
        "over_max_cost": 0,
    }
    assert found["lengths"] == lw.describe([4, 2, 9, 5]).as_dict()
    out = run("inspect", four, "--batch-size", 4).out
    assert "Random batches of 4 sequences would be 44.4 % padding: 1.80 frames computed for every frame of data." in out


def test_inspect_measures_random_batches_of_the_seed(run):
    lengths = lw.example_lengths()
    found = run("inspect", "--budget", 20_000, "--seed", 4, "--json", "-").json["random_batches"]
    plan = lw.make_plan(lengths, lw.Batching(budget=20_000, order=lw.Shuffled()), seed=4)
    measures = lw.measure(plan, lengths).as_dict()
    assert found == {name: measures[name] for name in found}


def test_inspect_draws_a_bar_of_equal_width_for_each_span(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, range(1, 41))))  # 40 lengths in bars of 3: the last is not full
    lines = [line.split() for line in run("inspect", path).out.splitlines()]
    assert ["1-3", "█" * 48, "3"] in lines
    assert ["40-42", "█" * 16, "1"] in lines


def test_inspect_draws_wider_bars_for_a_long_tail(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, [*range(1, 16), *range(1, 16), 65_535])))  # 16 bars, each twice as wide
    lines = [line.split() for line in run("inspect", path).out.splitlines()]
    assert ["1", "█" * 6, "2"] in lines
    assert ["8-15", "█" * 48, "16"] in lines
    assert ["32,768-65,535", "█" * 3, "1"] in lines
    assert "Bars are wider further down" in run("inspect", path).out


def test_inspect_without_a_file_says_that_its_lengths_are_generated(run):
    done = run("inspect", "--batch-size", 8)
    assert "    lengthwise advise --batch-size 8\n" in done.out
    code = "plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(8)))"
    assert done.out.endswith(f"    {code}\n    print(lw.measure(plan, lengths))\n")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("long-tailed example, generated\n10,480 sequences")
    assert "Random batches of 8 sequences would be" in done.out


def test_inspect_shows_every_dimension(run, pairs):
    done = run("inspect", pairs)
    lines = [line.split() for line in done.out.splitlines()]
    assert ["length", "1", "length", "2"] in lines
    facts = run("inspect", pairs, "--json", "-").json["lengths"]
    for name, key in (("shortest", "min"), ("longest", "max"), ("total", "total")):
        assert [name, *(f"{value:,}" for value in facts[key])] in lines
    assert ["mean", *(f"{value:,.1f}" for value in facts["mean"])] in lines
    for share in facts["quantiles"][0]:
        assert [share, "%", "are", "at", "most", *(f"{each[share]:,}" for each in facts["quantiles"])] in lines


def test_each_dimension_of_inspect_has_its_own_bars(run, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(f"{1 + n % 15} {n % 15 + 10 ** (n % 5)}" for n in range(45)))
    first, second = run("inspect", path).out.split("length 2 ")[-2:]
    assert ("Bars are wider" in first, "Bars are wider" in second) == (False, True)


def test_inspect_says_what_would_be_left_out(run, four):
    assert "They would leave 1 sequences out." in run("inspect", four, "--cut", "budget:8,oversize=drop").out


def test_inspect_says_what_would_cost_too_much(run, four):
    words = ("inspect", four, "--cut", "budget:4,oversize=alone")
    assert run(*words, "--json", "-").json["random_batches"]["over_max_cost"] == 2
    assert "2 of 4 batches would cost more than the cut allows." in run(*words).out


def test_without_a_strategy_the_plan_is_that_of_a_batching_without_an_order(run):
    expected = lw.make_plan(lw.example_lengths(), lw.Batching(budget=20_000))
    assert run("plan", "--budget", 20_000, "--json", "-").json["plan"]["fingerprint"] == expected.fingerprint()
    assert f"({DEFAULT_STRATEGY})" in " ".join(run("plan", "--help").out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("plan", "--budget", 90_000), 0),
        (("compare",), 0),
        (("plan", "--strategy", DEFAULT_STRATEGY), 1),
        (("compare", "--strategies", DEFAULT_STRATEGY), 1),
    ],
)
def test_only_a_padding_that_was_asked_for_warns_where_it_is_missed(run, tmp_path, words, told):
    path = tmp_path / "lengths.npy"
    np.save(path, np.arange(len("".join(map(str, words))), 80) ** 2)  # others each time: it is said once
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run(words[0], path, *words[1:])
    assert done.status == 0
    assert done.err.count("`padding` must be within") == told


def test_a_title_says_chunks_and_ranks(run):
    done = run("plan", "--budget", 20_000, "--chunk", 50, "--world-size", 2, "--micro-batches", 3)
    said = "batches of at most 20,000 padded frames; chunks of at most 50 frames; 2 ranks x 3 micro-batches a step"
    assert said in done.out.splitlines()
